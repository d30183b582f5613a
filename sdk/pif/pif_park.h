/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets whose lambda waits for the host. sleep() stands in loops that wait for a flag, but nothing may spin in the NIC: the run
 * ends there, and the packet is parked as it came. When the host has written the flag it resumes what is parked (lambda_resume),
 * or the client sends its request once more: the lambda then runs from its beginning. So what it did before a wait it does
 * again; it should wait first.
 *
 * The packet is saved before the lambda runs, as a wait in any of its functions has nothing at hand but the CPU that it runs on.
 */
#ifndef PIF_PARK_H
#define PIF_PARK_H

#define PIF_PARKED_MAX 64 /* packets */
#define PIF_PACKET_MAX 2048
#define PIF_KEY_WORDS 8 /* 64-bit words at a packet's begin that tell packets apart */

struct pif_parked {
	uint32_t len;
	uint32_t pad;
	struct pif_carry carry;
	uint64_t key;
	uint8_t bytes[PIF_PACKET_MAX];
};

/* By the packets' keys, so that a packet which is sent once more is not parked twice. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PIF_PARKED_MAX);
	__type(key, __u64);
	__type(value, struct pif_parked);
} pif_parked SEC(".maps");

/* The packet that this CPU works on. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pif_parked);
} pif_current SEC(".maps");

static __always_inline struct pif_parked *pif_get_current(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&pif_current, &zero);
}

/*
 * An IPv4 sender numbers its packets, so the identification (bytes 18 and 19) and the header's checksum (24 and 25) are no
 * part of what tells them apart. The mixing is FNV-1a's, on words.
 */
static __always_inline uint64_t pif_key(const uint8_t *bytes, uint64_t instance)
{
	uint64_t key = 0xcbf29ce484222325ULL ^ instance;

	for (int i = 0; i < PIF_KEY_WORDS; i++) {
		uint64_t w = ((const uint64_t *)bytes)[i];

		if (i == 2)
			w &= ~(0xffffULL << 16);
		if (i == 3)
			w &= ~0xffffULL;
		key = (key ^ w) * 0x100000001b3ULL;
		key ^= key >> 29;
	}
	return key;
}

/* Saves the packet before a lambda that may wait. One that is too large cannot be parked: where it waits, it is dropped. */
static __always_inline int pif_save(struct xdp_md *ctx, struct pif_carry *carry)
{
	struct pif_parked *current = pif_get_current();
	uint32_t len = bpf_xdp_get_buff_len(ctx);

	if (!current)
		return PIF_STOP;
	current->len = 0;
	asm volatile("" : "+r"(len)); /* the bound that is checked is the bound that is used */
	if (!len || len > PIF_PACKET_MAX)
		return 0;
	if (len < PIF_KEY_WORDS * sizeof(uint64_t))
		__builtin_memset(current->bytes, 0, PIF_KEY_WORDS * sizeof(uint64_t));
	if (bpf_xdp_load_bytes(ctx, 0, current->bytes, len))
		return 0;
	current->carry = *carry;
	current->key = pif_key(current->bytes, carry->instance);
	current->len = len;
	return 0;
}

/*
 * Parks the packet and ends the run. BPF's exit leaves the function that it stands in; the lambda is inlined into pif_pass(), and
 * that, or what it is inlined into, drops the packet with it. Nothing was written to the packet yet: that comes behind the lambda.
 */
static __attribute__((always_inline, noreturn)) inline void pif_wait(uint32_t cycles)
{
	struct pif_parked *current = pif_get_current();

	(void)cycles; /* the host's write decides how long */
	if (current && current->len)
		bpf_map_update_elem(&pif_parked, &current->key, current, BPF_NOEXIST);
	asm volatile("r0 = %0\n\texit" : : "i"(XDP_DROP));
	__builtin_unreachable();
}

/* Makes the packet at hand the parked one whose key it begins with; 0, or -1 where there is none. */
static __always_inline int pif_unpark(struct xdp_md *ctx, struct pif_carry *carry)
{
	struct pif_parked *parked;
	uint64_t key;
	uint32_t len;

	if (bpf_xdp_load_bytes(ctx, 0, &key, sizeof(key)))
		return -1;
	parked = bpf_map_lookup_elem(&pif_parked, &key);
	if (!parked)
		return -1;
	len = parked->len;
	asm volatile("" : "+r"(len));
	if (!len || len > PIF_PACKET_MAX || bpf_xdp_adjust_tail(ctx, (int)len - (int)bpf_xdp_get_buff_len(ctx)) ||
	    bpf_xdp_store_bytes(ctx, 0, parked->bytes, len))
		return -1;
	*carry = parked->carry;
	return bpf_map_delete_elem(&pif_parked, &key) ? -1 : 0; /* of two who resume it, one did */
}

#endif
