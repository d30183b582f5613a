/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of TCP connections. An ikernel whose ik_receive takes these, too, includes this file after ikernel.h, and defines ik_stream_message: how many bytes
 * each message of a stream has. Messages are counted from the stream's beginning, whenever the socket is attached.
 *
 * The ikernel gets each message whole and once, however segments cut the stream. A segment, as the kernel hands it over, is dropped if it begins and ends with
 * messages, and all of them are dropped; or else the socket gets all of it. Verdicts that are not IK_DROP mean IK_PASS.
 */
#ifndef IK_STREAM_H
#define IK_STREAM_H

#include "connections.h"
#include "ikernel.h"

/* The bytes of a message, up to IK_STREAM_MESSAGE; 0: the ikernel wants none. */
static __always_inline __u64 ik_stream_message(void);

/* A segment, on its way through its messages. */
struct ik_segment {
	struct __sk_buff *skb;
	__u32 at; /* where the next message begins */
	__u32 size; /* of a message */
	__u32 passes; /* whether the socket gets it */
	__u32 pad;
	struct ln_flow flow;
};

/* Addresses as in packets, of which those of IPv4 that an IPv6 socket has are IPv4. */
static __always_inline void ik_write_flow(struct __sk_buff *skb, struct ln_flow *flow)
{
	__u32 own[4] = { skb->local_ip4 }, peer[4] = { skb->remote_ip4 };

	flow->peer_port = skb->remote_port >> 16;
	flow->own_port = bpf_htons(skb->local_port);
	if (skb->family == 10) {
		for (int i = 0; i < 4; i++) {
			own[i] = i == 0	  ? skb->local_ip6[0]
				 : i == 1 ? skb->local_ip6[1]
				 : i == 2 ? skb->local_ip6[2]
					  : skb->local_ip6[3];
			peer[i] = i == 0   ? skb->remote_ip6[0]
				  : i == 1 ? skb->remote_ip6[1]
				  : i == 2 ? skb->remote_ip6[2]
					   : skb->remote_ip6[3];
		}
		flow->ipv6 = peer[0] || peer[1] || peer[2] != bpf_htonl(0xffff);
	}
	if (skb->family == 10 && !flow->ipv6) {
		own[0] = own[3];
		peer[0] = peer[3];
		own[1] = own[2] = own[3] = peer[1] = peer[2] = peer[3] = 0;
	}
	ln_copy_addr(flow->own_addr, own);
	ln_copy_addr(flow->peer_addr, peer);
}

/* Has the ikernel get a message. Counts by atomic steps: other than with datagrams, one message may interrupt another on its CPU. */
static __always_inline void ik_take(struct ik_segment *s, const __u8 *bytes)
{
	struct ik_message m = { .bytes = bytes, .len = s->size, .flow = &s->flow };
	struct ik_counts *counts;
	enum ik_verdict verdict;
	__u32 zero = 0;

	verdict = ik_receive(&m) == IK_DROP && !ik_faulted ? IK_DROP : IK_PASS;
	if (verdict != IK_DROP)
		s->passes = 1;
	counts = bpf_map_lookup_elem(&ik_counters, &zero);
	if (counts)
		__sync_fetch_and_add(&counts->verdicts[verdict], 1);
}

static long ik_take_next(__u32 i, struct ik_segment *s)
{
	__u8 bytes[IK_STREAM_MESSAGE] = {};
	__u32 size = s->size;

	if (!ln_length_fits(size, sizeof(bytes)) || bpf_skb_load_bytes(s->skb, s->at, bytes, size)) {
		s->passes = 1;
		return 1;
	}
	ik_take(s, bytes);
	s->at += s->size;
	return 0;
}

/* Adds the segment's first bytes to the message that began before it, of which have are there. */
static __noinline int ik_join(struct ik_segment *s, struct ik_connection *c, __u32 have, __u32 len)
{
	__u8 bytes[IK_STREAM_MESSAGE];
	__u32 n = s->size - have;
	int known = c->part_end == c->next - len && c->part_of == s->size;

	if (n > len)
		n = len;
	s->passes = 1;
	s->at = n;
	ln_opaque(have);
	if (have >= IK_STREAM_MESSAGE || !ln_length_fits(n, IK_STREAM_MESSAGE) ||
	    bpf_skb_load_bytes(s->skb, 0, c->bytes + have, n))
		return -1;
	if (!known)
		return 0; /* its beginning came before the socket was attached */
	if (have + n < s->size) {
		c->part_end = c->next;
		return 0;
	}
	__builtin_memcpy(bytes, c->bytes, sizeof(bytes)); /* another connection may get c */
	ik_take(s, bytes);
	return 0;
}

/* Keeps the beginning of a message that the segment ends with. */
static __always_inline void ik_keep(struct ik_segment *s, struct ik_connection *c, __u32 rest)
{
	s->passes = 1;
	if (rest >= IK_STREAM_MESSAGE)
		return;
	ln_opaque(rest);
	rest &= IK_STREAM_MESSAGE - 1; /* for Linux 7.3, which else forgets the bounds of what is left */
	if (!ln_length_fits(rest, IK_STREAM_MESSAGE) || bpf_skb_load_bytes(s->skb, s->at, c->bytes, rest))
		return;
	c->part_end = c->next;
	c->part_of = s->size;
}

SEC("sk_skb/verdict")
int ik_stream(struct __sk_buff *skb)
{
	__u64 cookie = bpf_get_socket_cookie(skb), size = ik_stream_message();
	struct ik_connection *c = bpf_map_lookup_elem(&ik_connections, &cookie);
	struct ik_segment s = { .skb = skb };
	__u32 len = skb->len, have;

	if (ik_faulted || !c || !size || size > IK_STREAM_MESSAGE)
		return SK_PASS;
	s.size = size;
	s.passes = c->waits;
	ik_write_flow(skb, &s.flow);
	have = (c->next - len) % size;
	if (have && ik_join(&s, c, have, len))
		return SK_PASS;
	bpf_loop((len - s.at) / s.size, ik_take_next, &s, 0);
	if (s.at < len)
		ik_keep(&s, c, len - s.at);
	return s.passes ? SK_PASS : SK_DROP;
}

#endif
