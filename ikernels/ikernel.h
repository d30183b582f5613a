/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an ikernel is made of. Its source defines struct ik_registers, of integers of 64 bits, before it includes this file, and ik_receive after it:
 *
 *	struct ik_registers {
 *		__u64 messages;
 *	};
 *
 *	#include "../ikernel.h"
 *
 *	static __always_inline enum ik_verdict ik_receive(struct ik_message *m)
 *	{
 *		struct ik_state *s = ik_begin();
 *
 *		if (!s)
 *			return IK_PASS;
 *		s->registers.messages++;
 *		ik_end(s);
 *		return IK_PASS;
 *	}
 */
#ifndef IK_IKERNEL_H
#define IK_IKERNEL_H

#define LN_CHAINS 65536 /* an ikernel can have sockets at any port */

#include "../bpf/chain.h"
#include "../bpf/headers.h"
#include "attached.h"

_Static_assert(sizeof(struct ik_registers) <= 8 * IK_REGISTERS, "an ikernel has at most 16 registers of 64 bits");

/* A message to a socket: the payload of a datagram, or a part of a stream (stream.h). */
struct ik_message {
	struct xdp_md *ctx;
	const __u8 *bytes; /* of a stream's message; NULL: it is in the packet */
	const struct ln_flow *flow; /* whose it is */
	__u32 at; /* where in the packet it begins */
	__u32 len; /* its bytes */
};

/* What the ikernel does with a message. */
static __always_inline enum ik_verdict ik_receive(struct ik_message *m);

static __always_inline int ik_load_stream(const struct ik_message *m, __u32 off, __u8 *to, __u32 len)
{
	ln_opaque(off);
	if (off >= IK_STREAM_MESSAGE || len > IK_STREAM_MESSAGE || off > m->len || len > m->len - off)
		return -1;
	for (__u32 i = 0; i < len; i++) {
		__u32 at = off + i;

		ln_opaque(at);
		if (at >= IK_STREAM_MESSAGE)
			return -1;
		to[i] = m->bytes[at];
	}
	return 0;
}

/* Copies bytes of a message that begin at off; -1 if it is too short. */
static __always_inline int ik_load(const struct ik_message *m, __u32 off, void *to, __u32 len)
{
	if (m->bytes)
		return ik_load_stream(m, off, to, len);
	return off > m->len || len > m->len - off ? -1 : (int)bpf_xdp_load_bytes(m->ctx, m->at + off, to, len);
}

/* Registers, and the lock that makes what is done to several of them one step. */
struct ik_state {
	struct bpf_spin_lock lock;
	struct ik_registers registers;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ik_state);
} ik_states SEC(".maps");

static __noinline enum ik_verdict ik_fault(__u32 code); /* faults.h */

/* Locks the registers. No function may be called until ik_end. Without registers it is a fault. */
static __always_inline struct ik_state *ik_begin(void)
{
	__u32 zero = 0;
	struct ik_state *s = bpf_map_lookup_elem(&ik_states, &zero);

	if (s)
		bpf_spin_lock(&s->lock);
	else
		ik_fault(IK_FAULT_STATE_NOT_FOUND);
	return s;
}

static __always_inline void ik_end(struct ik_state *s)
{
	bpf_spin_unlock(&s->lock);
}

/* Messages, by what became of them. */
struct ik_counts {
	__u64 verdicts[IK_VERDICTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ik_counts);
} ik_counters SEC(".maps");

/* Too large for the stack. */
struct ik_scratch {
	struct ln_flow flow;
	__u32 faulted; /* at this message */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ik_scratch);
} ik_scratchpads SEC(".maps");

#include "faults.h"

/* Sends a datagram back as it is. Its checksum stays right, since it sums the same words in another order. */
static __always_inline int ik_turn(struct xdp_md *ctx, const struct ln_packet *pkt, const struct ln_flow *flow)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *l3;
	struct udphdr *udp = data + pkt->l4;

	l3 = ln_write_l2(data, end, flow);
	if (!l3 || pkt->l4 > 0xff || (void *)(udp + 1) > end)
		return XDP_DROP;
	if (flow->ipv6) {
		if (l3 + sizeof(struct ipv6hdr) > end)
			return XDP_DROP;
		ln_write_ipv6(l3, flow->own_addr, flow->peer_addr, flow->flow_label, pkt->udp_len);
	} else {
		if (l3 + sizeof(struct iphdr) > end)
			return XDP_DROP;
		ln_write_ipv4(l3, *(__be32 *)flow->own_addr, *(__be32 *)flow->peer_addr, flow->tos, pkt->udp_len);
	}
	udp->source = flow->own_port;
	udp->dest = flow->peer_port;
	return XDP_TX;
}

/* What becomes of a datagram: the XDP action. */
static __always_inline int ik_serve(struct xdp_md *ctx, struct ik_scratch *scratch, const struct ln_packet *pkt)
{
	struct ik_message m = { .ctx = ctx };
	struct ik_counts *counts;
	enum ik_verdict verdict;
	__u32 zero = 0;

	if (ik_faulted)
		return XDP_PASS;
	counts = bpf_map_lookup_elem(&ik_counters, &zero);
	if (!counts || ln_save_flow(ctx, pkt, &scratch->flow) || !ik_is_attached(ctx, &scratch->flow))
		return XDP_PASS;
	/* What comes by loopback is from this machine, and has no checksum yet. */
	if (ctx->ingress_ifindex != LN_LOOPBACK &&
	    (!ln_is_peer(&scratch->flow) || !ln_checksum_ok(ctx, pkt, &scratch->flow)))
		return XDP_PASS;
	m.flow = &scratch->flow;
	m.at = pkt->l4 + sizeof(struct udphdr);
	m.len = pkt->udp_len - sizeof(struct udphdr);
	scratch->faulted = 0;
	verdict = ik_receive(&m);
	if (verdict >= IK_VERDICTS)
		verdict = ik_fault(IK_FAULT_UNKNOWN_VERDICT);
	if (scratch->faulted)
		verdict = IK_PASS;
	counts->verdicts[verdict]++;
	switch (verdict) {
	case IK_DROP:
		return XDP_DROP;
	case IK_REPLY:
		return ik_turn(ctx, pkt, &scratch->flow);
	default:
		return XDP_PASS;
	}
}

SEC("xdp.frags")
int ik_datagram(struct xdp_md *ctx)
{
	struct ik_scratch *scratch;
	struct ln_packet pkt;
	__u32 zero = 0;
	int action;

	scratch = bpf_map_lookup_elem(&ik_scratchpads, &zero);
	if (!scratch || ln_parse(ctx, &pkt))
		return XDP_PASS;
	action = ik_serve(ctx, scratch, &pkt);
	return action == XDP_PASS ? ln_pass(ctx, bpf_ntohs(pkt.dport)) : action;
}

/* Runs a transaction: 0, or 1 if a register has not the value that is expected. Run by the daemon, and attached nowhere. */
SEC("syscall")
int ik_transact(struct ik_transaction *t)
{
	struct ik_state *s = ik_begin();
	__u64 *words, before;
	int differs = 0;

	if (!s)
		return -1;
	words = (__u64 *)&s->registers;
	/* The verifier takes no offset into a context but constant ones. */
#pragma unroll
	for (int i = 0; i < sizeof(s->registers) / 8; i++)
		differs |= t->expect >> i & 1 && words[i] != t->expected[i];
#pragma unroll
	for (int i = 0; i < sizeof(s->registers) / 8; i++) {
		before = words[i];
		if (!differs && t->write >> i & 1)
			words[i] = t->values[i];
		t->values[i] = before;
	}
	ik_end(s);
	return differs;
}

const struct ik_counts *ik_counts_ __attribute__((unused));
const enum ik_limit *ik_limit_ __attribute__((unused));
const enum ik_verdict *ik_verdict_ __attribute__((unused));
const struct ik_registers *ik_registers_ __attribute__((unused));

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif
