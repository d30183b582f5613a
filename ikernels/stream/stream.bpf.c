// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * What stands between a TCP socket and its ikernel. Attached sockets are in a map whose program, ik_enter, gets each segment in order before the application
 * can read it, and hands it to the ikernel by a tail call. Without an ikernel all segments pass: the daemon takes it out of the table, or the kernel does, which
 * clears a table of programs when its last user ends, also by kill -9.
 *
 * A socket stays in the map until it closes, as the kernel forgets what has passed but is not read when it leaves earlier. So the map must outlive the daemon.
 * It does, since ik_enter refers to it, and each socket to ik_enter.
 */
#include <bpf/bpf_core_read.h>

#include "../../bpf/slot.h"
#include "../connections.h"

/* Of the kernel. */
enum {
	IK_O_NONBLOCK = 04000,
};

struct file {
	unsigned int f_flags;
} __attribute__((preserve_access_index));

struct socket {
	struct file *file;
} __attribute__((preserve_access_index));

struct sock {
	struct socket *sk_socket;
} __attribute__((preserve_access_index));

struct inet_connection_sock {
	const void *icsk_ulp_ops;
} __attribute__((preserve_access_index));

struct tcp_sock {
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u64 bytes_received;
} __attribute__((preserve_access_index));

struct tcp_skb_cb {
	__u32 seq;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct sock *sk;
	char cb[48];
} __attribute__((preserve_access_index));

void *bpf_cast_to_kern_ctx(void *ctx) __ksym;

/* The sockets: that which is attached, or all connections of a listening one. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, IK_CONNECTIONS);
	__type(key, __u64); /* the socket's cookie */
	__type(value, __u64);
} ik_streams SEC(".maps");

/* The ikernel's program. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} ik_live SEC(".maps");

/* ik_accept, as long as the listening socket is attached. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} ik_accepting SEC(".maps");

/* Connections that were put into ik_streams. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2 * IK_CONNECTIONS);
	__type(key, __u64);
	__type(value, __u32);
} ik_accepted SEC(".maps");

/* Whether a descriptor of the socket may block. One that is not yet accepted has none. */
static __always_inline int ik_blocks(const struct sock *sk)
{
	struct file *file = BPF_CORE_READ(sk, sk_socket, file);

	return file && !(BPF_CORE_READ(file, f_flags) & IK_O_NONBLOCK);
}

/*
 * Whether the kernel itself reads the socket, for a protocol such as TLS: it did not when the socket was attached. Then segments are what that protocol makes, and
 * say nothing of their place in the stream (net/tls/tls_sw.c, sk_psock_tls_strp_read).
 */
static __always_inline int ik_has_protocol(const struct sock *sk)
{
	return BPF_CORE_READ((const struct inet_connection_sock *)sk, icsk_ulp_ops) != NULL;
}

/* How many bytes of the stream came before the one with this number. */
static __always_inline __u64 ik_position(const struct sock *sk, __u32 seq)
{
	const struct tcp_sock *tcp = (const void *)sk;

	/* Both count the end of the stream, which has a number, as a byte (tcp_rcv_nxt_update). */
	return BPF_CORE_READ(tcp, bytes_received) - (__u32)(BPF_CORE_READ(tcp, rcv_nxt) - seq);
}

static __always_inline struct ik_connection *ik_connection_of(__u64 cookie, const struct sock *sk, __u32 seq)
{
	struct ik_connection *c = bpf_map_lookup_elem(&ik_connections, &cookie), new = {};
	__u32 read;

	if (c)
		return c;
	/* The application may have read a part of the segment before the socket was attached. */
	read = BPF_CORE_READ((const struct tcp_sock *)sk, copied_seq);
	if ((__s32)(read - seq) > 0)
		seq = read;
	new.next = ik_position(sk, seq);
	new.seq = seq;
	bpf_map_update_elem(&ik_connections, &cookie, &new, BPF_ANY);
	return bpf_map_lookup_elem(&ik_connections, &cookie);
}

struct ik_cut {
	struct __sk_buff *skb;
	__u32 left;
};

enum { IK_MOST_CUT = 4095 }; /* bytes that the kernel cuts off at once */

static long ik_cut_some(__u32 i, struct ik_cut *cut)
{
	__u32 n = cut->left;

	if (n > IK_MOST_CUT)
		n = IK_MOST_CUT;
	cut->left -= n;
	return bpf_skb_adjust_room(cut->skb, -(__s32)n, 0, 0) != 0;
}

/* Cuts bytes off that an earlier segment had, as one has that is sent again together with another: the kernel itself does so only where it reads a socket. */
static __always_inline void ik_cut(struct __sk_buff *skb, __u32 again)
{
	struct ik_cut cut = { .skb = skb, .left = again };

	bpf_loop((again + IK_MOST_CUT - 1) / IK_MOST_CUT, ik_cut_some, &cut, 0);
}

SEC("sk_skb/verdict")
int ik_enter(struct __sk_buff *skb)
{
	struct sk_buff *kernels = bpf_cast_to_kern_ctx(skb);
	__u64 cookie = bpf_get_socket_cookie(skb);
	const struct sock *sk = BPF_CORE_READ(kernels, sk);
	__u32 len = skb->len, seq, again;
	struct ik_connection *c;

	/* Keeps the map as long as there are sockets. */
	asm volatile("" ::"r"(&ik_streams));
	if (!len || ik_has_protocol(sk)) /* without a byte it is the end of the stream */
		return SK_PASS;
	bpf_probe_read_kernel(&seq, sizeof(seq),
			      (void *)kernels + bpf_core_field_offset(kernels->cb) +
				      bpf_core_field_offset(struct tcp_skb_cb, seq));
	c = ik_connection_of(cookie, sk, seq);
	if (!c)
		return SK_PASS;
	again = c->seq - seq;
	if ((__s32)again > 0) {
		if (again >= len)
			return SK_DROP;
		ik_cut(skb, again);
		len -= again;
	}
	c->next += len;
	c->seq += len;
	c->waits = ik_blocks(sk);
	bpf_tail_call(skb, &ik_live, ln_zero);
	return SK_PASS;
}

/* Gets each packet to a listening socket and its connections, before TCP does. All pass. */
SEC("socket")
int ik_filter(struct __sk_buff *skb)
{
	bpf_tail_call(skb, &ik_accepting, ln_zero);
	return -1;
}

/*
 * Puts a connection into the map with the first packet that follows the handshake. One whose application might wait in recv(2) already is left alone, as it
 * would wait for ever: what wakes it is what the program takes away.
 */
SEC("socket")
int ik_accept(struct __sk_buff *skb)
{
	__u64 cookie = bpf_get_socket_cookie(skb);
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *tcp;
	__u32 one = 1;

	if (!sk || sk->state != BPF_TCP_ESTABLISHED || bpf_map_lookup_elem(&ik_accepted, &cookie))
		return -1;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp || ik_blocks((const void *)tcp))
		return -1;
	if (!bpf_map_update_elem(&ik_streams, &cookie, sk, BPF_NOEXIST))
		bpf_map_update_elem(&ik_accepted, &cookie, &one, BPF_ANY);
	return -1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
