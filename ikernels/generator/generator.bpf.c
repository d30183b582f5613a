// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * generator sends a message to the peer of its socket, again and again, without the application's threads and the kernel's sockets. The application notes the
 * message, and says by registers how many datagrams it wants and how often. What comes to the socket passes.
 *
 * XDP sends only what comes in. So the daemon has a thread (ikernels/generator.go) that runs generator_send on live frames, as many as are due, and
 * generator_count on the tracepoint that tells what the interface took of them.
 */
struct ik_registers {
	unsigned long long running; /* not 0: it sends. It becomes 0 when count are sent */
	unsigned long long count; /* of datagrams to send; 0: no end */
	unsigned long long interval; /* ns from one datagram to the next; 0: as fast as it goes */
	unsigned long long sent; /* datagrams that the interface took */
	unsigned long long refused; /* and that it did not: they are made anew */
	unsigned long long number; /* of the next datagram */
};

#include "../notes.h"

#include <bpf/bpf_tracing.h>

enum generator_limit {
	GENERATOR_MESSAGE = 1472, /* bytes */
	GENERATOR_FRAME = 2048, /* bytes of a frame's memory; a power of two */
	GENERATOR_NOWHERE = 0xffffffff,
};

enum ik_own_fault {
	GENERATOR_FAULT_IMPOSSIBLE_MESSAGE = IK_FAULT_OWN, /* of a note */
	GENERATOR_FAULT_MESSAGE_WHILE_RUNNING,
	GENERATOR_FAULT_PEER_OUT_OF_REACH, /* there is no way to it any more, or the message is too long for it */
	GENERATOR_FAULT_INTERFACE_GONE,
};

/* A note: this, and behind it the message's bytes. Offsets are in these; GENERATOR_NOWHERE: there is none. */
struct generator_note {
	__u32 number_at; /* where 8 bytes become the datagram's number, in network order */
	__u32 time_at; /* where 8 bytes become the time of CLOCK_MONOTONIC in ns, in network order */
};

struct generator_message {
	struct generator_note note;
	__u32 len;
	__u8 bytes[GENERATOR_MESSAGE];
	__u32 noted; /* not 0: there is a message */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct generator_message);
} generator_messages SEC(".maps");

/* What the daemon makes of the message. Offsets are in the frame; GENERATOR_NOWHERE: there is none. */
struct generator_frame {
	__u32 len;
	__u32 check_at; /* the UDP checksum */
	__u32 number_at;
	__u32 time_at;
	__u32 sum; /* of what the checksum is of, without number and time */
	__u8 bytes[GENERATOR_FRAME + 8]; /* an access of eight bytes at any offset below GENERATOR_FRAME is within */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct generator_frame);
} generator_frames SEC(".maps");

/* Set by the daemon before each run. */
volatile __u32 generator_place; /* of the socket (flows.h) */
volatile __u32 generator_interface;
volatile __u32 generator_batch; /* frames that go out together */
volatile __u32 generator_tick; /* of them: how many came */

volatile __u32 generator_idle; /* not 0: nothing is to be sent any more */
volatile __u64 generator_thread; /* in which it runs */
volatile __u64 generator_flying; /* frames of which it is not yet known whether the interface took them */

/* At the begin of a batch: what flies then was lost on its way to the interface. */
static __always_inline void generator_settle(void)
{
	struct ik_state *s;

	generator_thread = bpf_get_current_task();
	if (!generator_flying)
		return;
	s = ik_begin();
	if (!s)
		return;
	s->registers.refused += generator_flying;
	generator_flying = 0;
	ik_end(s);
}

/* Whether a datagram is to be sent now, and its number. */
static __always_inline int generator_is_due(__u64 *number)
{
	struct ik_state *s;
	int due = 0;

	if (ik_faulted || !ik_has_socket(generator_place)) {
		generator_idle = 1;
		return 0;
	}
	s = ik_begin();
	if (!s)
		return 0;
	if (!s->registers.running) {
		generator_idle = 1;
	} else if (!s->registers.count || s->registers.sent + generator_flying < s->registers.count) {
		*number = s->registers.number++;
		generator_flying++;
		due = 1;
	} else if (s->registers.sent >= s->registers.count) {
		s->registers.running = 0;
		generator_idle = 1;
	}
	ik_end(s);
	return due;
}

/* Writes eight bytes of the frame. Returns what they add to the checksum. */
static __always_inline __u32 generator_write(struct generator_frame *f, __u32 at, __u64 value)
{
	__u64 words = bpf_cpu_to_be64(value);
	__u32 sum = ln_csum_fold((words & 0xffff) + (words >> 16 & 0xffff) + (words >> 32 & 0xffff) + (words >> 48));

	if (at >= GENERATOR_FRAME)
		return 0;
	for (int i = 0; i < 8; i++)
		f->bytes[at + i] = words >> 8 * i;
	return at % 2 ? (__u16)(sum << 8 | sum >> 8) : sum;
}

/* Makes the page the frame with this number. Not 0 if the page is too short. */
static __always_inline int generator_fill(struct xdp_md *ctx, struct generator_frame *f, __u64 number)
{
	__u32 room = bpf_xdp_get_buff_len(ctx), sum = f->sum, len, at = f->check_at;

	sum += generator_write(f, f->number_at, number);
	sum += generator_write(f, f->time_at, bpf_ktime_get_ns());
	sum = ln_csum_fold(sum);
	if (at >= GENERATOR_FRAME)
		return -1;
	*(__u16 *)&f->bytes[at] = sum == 0xffff ? 0xffff : (__u16)~sum;
	/* A recycled page keeps the length that its last user gave it. */
	if (bpf_xdp_adjust_tail(ctx, (int)f->len - (int)room))
		return -1;
	len = f->len;
	return ln_length_fits(len, GENERATOR_FRAME) ? (int)bpf_xdp_store_bytes(ctx, 0, f->bytes, len) : -1;
}

SEC("xdp")
int generator_send(struct xdp_md *ctx)
{
	struct generator_frame *f;
	__u32 zero = 0;
	__u64 number;

	if (generator_tick >= generator_batch)
		generator_tick = 0;
	if (!generator_tick++)
		generator_settle();
	f = bpf_map_lookup_elem(&generator_frames, &zero);
	if (!f || !generator_is_due(&number))
		return XDP_DROP;
	return generator_fill(ctx, f, number) ? XDP_DROP : XDP_TX;
}

/* Of what the kernel has. */
struct net_device {
	int ifindex;
} __attribute__((preserve_access_index));

/* Counts what the interface took, and what it had no room for. In any thread of the system that sends by XDP, and so it looks first whether it is this one. */
SEC("tp_btf/xdp_devmap_xmit")
int BPF_PROG(generator_count, const struct net_device *from, const struct net_device *to, int sent, int drops)
{
	struct ik_state *s;

	if (bpf_get_current_task() != generator_thread || from != to || to->ifindex != generator_interface)
		return 0;
	s = ik_begin();
	if (!s)
		return 0;
	s->registers.sent += sent;
	s->registers.refused += drops;
	generator_flying -= sent + drops;
	if (s->registers.count && s->registers.sent >= s->registers.count) {
		s->registers.running = 0;
		generator_idle = 1;
	}
	ik_end(s);
	return 0;
}

static __always_inline enum ik_verdict ik_receive(struct ik_message *m)
{
	return IK_PASS;
}

__u32 bpf_dynptr_size(const struct bpf_dynptr *p) __ksym;

/* Whether eight bytes at an offset are in the message, if they are to be anywhere. */
static __always_inline int generator_fits(__u32 at, __u32 len)
{
	return at == GENERATOR_NOWHERE || (at <= len && len - at >= 8);
}

/* Two at one place would both be wrong. */
static __always_inline int generator_overlaps(const struct generator_note *n)
{
	return n->number_at != GENERATOR_NOWHERE && n->time_at != GENERATOR_NOWHERE && n->number_at < n->time_at + 8 &&
	       n->time_at < n->number_at + 8;
}

/* Reads a note; not 0 if there can be no such message. */
static __always_inline int generator_read(const struct bpf_dynptr *note, struct generator_message *m)
{
	__u32 len = bpf_dynptr_size(note);

	if (len < sizeof(m->note) || len > sizeof(m->note) + GENERATOR_MESSAGE ||
	    ik_read_note(note, 0, &m->note, sizeof(m->note)))
		return -1;
	len -= sizeof(m->note);
	m->len = len;
	if (!generator_fits(m->note.number_at, len) || !generator_fits(m->note.time_at, len) ||
	    generator_overlaps(&m->note))
		return -1;
	if (len && (!ln_length_fits(len, GENERATOR_MESSAGE) || ik_read_note(note, sizeof(m->note), m->bytes, len)))
		return -1;
	m->noted = 1;
	return 0;
}

static __always_inline void ik_note(const struct bpf_dynptr *note)
{
	struct ik_state *s = ik_begin();
	struct generator_message *m;
	__u32 zero = 0;
	__u64 running;

	if (!s)
		return;
	running = s->registers.running;
	ik_end(s);
	m = bpf_map_lookup_elem(&generator_messages, &zero);
	if (!m)
		ik_fault(IK_FAULT_MEMORY_NOT_FOUND);
	else if (running)
		ik_fault(GENERATOR_FAULT_MESSAGE_WHILE_RUNNING);
	else if (generator_read(note, m))
		ik_fault(GENERATOR_FAULT_IMPOSSIBLE_MESSAGE);
}

/* Has the ikernel fault of something that the daemon found. */
SEC("syscall")
int generator_give_up(__u32 *code)
{
	ik_fault(*code);
	return 0;
}

const enum generator_limit *generator_limit_ __attribute__((unused));
const enum ik_own_fault *ik_own_fault_ __attribute__((unused));
