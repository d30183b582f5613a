/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets whose lambda waits for the host. They lie in an array map, each in a slot that its own bytes choose. */
#ifndef PIF_PARK_H
#define PIF_PARK_H

#define PIF_SLOTS 64 /* a power of two */
#define PIF_PROBES 4 /* slots that one packet may take */
#define PIF_PACKET_MAX 2048
#define PIF_KEY_WORDS 8 /* 64-bit words at a packet's begin that tell packets apart */

enum { PIF_SLOT_FREE = 0, PIF_SLOT_BUSY = 1, PIF_SLOT_PARKED = 2 };

struct pif_slot {
	uint32_t state;
	uint32_t len;
	uint64_t key;
	struct pif_carry carry;
	uint8_t bytes[PIF_PACKET_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PIF_SLOTS);
	__type(key, __u32);
	__type(value, struct pif_slot);
} pif_slots SEC(".maps");

/* What became of packets that waited. */
struct {
	uint64_t parked, resumed, repeated, refused;
} pif_parking;

static uint32_t pif_cursor; /* the slot that is looked at first */

/*
 * A packet that is sent once more has the key of the first one. An IPv4 sender numbers its packets, so the identification
 * (bytes 18 and 19) and the header's checksum (24 and 25) are left out.
 */
static __always_inline uint64_t pif_key(const uint8_t *bytes)
{
	const uint64_t *word = (const uint64_t *)bytes;
	uint64_t key = 0xcbf29ce484222325ULL;

	for (int i = 0; i < PIF_KEY_WORDS; i++) {
		uint64_t w = word[i];

		if (i == 2)
			w &= ~(0xffffULL << 16);
		if (i == 3)
			w &= ~0xffffULL;
		key = (key ^ w) * 0x100000001b3ULL;
		key ^= key >> 29;
	}
	return key ?: 1;
}

/* Takes a free slot for the packet. NULL where it lies in one already, or there is none. */
static __always_inline struct pif_slot *pif_take(uint64_t key)
{
	for (uint32_t i = 0; i < PIF_PROBES; i++) {
		uint32_t index = (key + i) % PIF_SLOTS;
		struct pif_slot *slot = bpf_map_lookup_elem(&pif_slots, &index);

		if (!slot)
			return NULL;
		if (slot->state != PIF_SLOT_FREE && slot->key == key) {
			__sync_fetch_and_add(&pif_parking.repeated, 1);
			return NULL;
		}
		if (__sync_val_compare_and_swap(&slot->state, PIF_SLOT_FREE, PIF_SLOT_BUSY) == PIF_SLOT_FREE)
			return slot;
	}
	__sync_fetch_and_add(&pif_parking.refused, 1);
	return NULL;
}

static __noinline int pif_park(struct xdp_md *ctx, struct pif_carry *carry)
{
	uint64_t begin[PIF_KEY_WORDS] = {};
	uint32_t len = bpf_xdp_get_buff_len(ctx);
	uint32_t n = len < sizeof(begin) ? len : sizeof(begin);
	struct pif_slot *slot;

	asm volatile("" : "+r"(n), "+r"(len)); /* the bounds checked are the bounds used */
	if (!carry || !n || n > sizeof(begin) || bpf_xdp_load_bytes(ctx, 0, begin, n))
		return XDP_DROP;
	if (len > PIF_PACKET_MAX) {
		__sync_fetch_and_add(&pif_parking.refused, 1);
		return XDP_DROP;
	}
	begin[0] ^= (uint64_t)carry->instance << 63;
	slot = pif_take(pif_key((const uint8_t *)begin));
	if (!slot)
		return XDP_DROP;
	if (bpf_xdp_load_bytes(ctx, 0, slot->bytes, len)) {
		__sync_lock_test_and_set(&slot->state, PIF_SLOT_FREE);
		return XDP_DROP;
	}
	slot->len = len;
	slot->carry = *carry;
	slot->key = pif_key((const uint8_t *)begin);
	__sync_fetch_and_add(&pif_parking.parked, 1);
	__sync_lock_test_and_set(&slot->state, PIF_SLOT_PARKED);
	return XDP_DROP;
}

/* Makes the packet at hand the next parked one; 0, or -1 where there is none. */
static __noinline int pif_unpark(struct xdp_md *ctx, struct pif_carry *carry)
{
	uint32_t first = __sync_fetch_and_add(&pif_cursor, 1), len;
	struct pif_slot *slot = NULL;
	int err;

	if (!carry)
		return -1;
	for (uint32_t i = 0; i < PIF_SLOTS; i++) {
		uint32_t index = (first + i) % PIF_SLOTS;

		slot = bpf_map_lookup_elem(&pif_slots, &index);
		if (!slot)
			return -1;
		if (slot->state == PIF_SLOT_PARKED &&
		    __sync_val_compare_and_swap(&slot->state, PIF_SLOT_PARKED, PIF_SLOT_BUSY) == PIF_SLOT_PARKED)
			break;
		slot = NULL;
	}
	if (!slot)
		return -1;
	len = slot->len;
	asm volatile("" : "+r"(len));
	err = -1;
	if (len && len <= PIF_PACKET_MAX && !bpf_xdp_adjust_tail(ctx, (int)len - (int)bpf_xdp_get_buff_len(ctx)))
		err = bpf_xdp_store_bytes(ctx, 0, slot->bytes, len);
	*carry = slot->carry;
	if (!err)
		__sync_fetch_and_add(&pif_parking.resumed, 1);
	__sync_lock_test_and_set(&slot->state, err ? PIF_SLOT_PARKED : PIF_SLOT_FREE);
	return err ? -1 : 0;
}

#endif
