// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * The observer: sees all that servers of memcached's protocols read and send on their TCP and UDP sockets, in order, at the socket's boundary. It runs
 * in the server's system call, after the kernel has copied the bytes. So a write is known before the server can execute it.
 */
#include "buffer.h"
#include "connection.h"
#include "../../bpf/verifier.h"

char mc_license[] SEC("license") = "Dual BSD/GPL";

const volatile __u64 mc_secret = 0;
const volatile __u8 mc_preemptible; /* a thread may lose the processor in these programs: since Linux 7.0 */

void bpf_preempt_disable(void) __ksym __weak;
void bpf_preempt_enable(void) __ksym __weak;

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct mc_connection);
} mc_connections SEC(".maps");

struct mc_datagram_key {
	struct mc_server_key at; /* the kernel may use a socket's memory for another */
	__u64 sk;
	__u64 thread;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536); /* threads, each with each socket that it reads */
	__type(key, struct mc_datagram_key);
	__type(value, struct mc_connection);
} mc_datagrams SEC(".maps");

/* Stays empty: what a new entry is made from. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mc_connection);
} mc_empty SEC(".maps");

/* A thread's, since it may lose the processor while it looks at them. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct mc_piece);
} mc_pieces SEC(".maps");

/* Says whose a connection is. */
static __always_inline void mc_bind(struct mc_connection *c, const struct mc_server *server, __u32 epoch)
{
	c->server = *server;
	c->epoch = epoch;
}

/* A connection of which nothing is known. The socket may have one from when its server was observed before. */
static __always_inline struct mc_connection *mc_connect(struct sock *sk, const struct mc_server *server, __u32 epoch)
{
	struct mc_connection *c;

	bpf_sk_storage_delete(&mc_connections, sk);
	c = bpf_sk_storage_get(&mc_connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (c)
		mc_bind(c, server, epoch);
	return c;
}

/*
 * The connection of a socket of a server; that of a socket which was there before the server was observed is lost. The server is told where it had to
 * be looked for.
 */
static __always_inline struct mc_connection *mc_connection_of(struct sock *sk, const struct mc_server **of)
{
	const struct mc_server *server;
	struct mc_connection *c;
	__u32 epoch = mc_epoch;

	if (!mc_ports[sk->__sk_common.skc_num])
		return 0;
	c = bpf_sk_storage_get(&mc_connections, sk, 0, 0);
	if (c && c->epoch == epoch)
		return c;
	server = *of = mc_server_of(sk);
	if (!server)
		return 0;
	if (c && c->server.number == server->number) {
		c->epoch = epoch;
		return c;
	}
	c = mc_connect(sk, server, epoch);
	if (c)
		mc_lose_connection(c, MC_LOSS_JOINED);
	return c;
}

struct mc_vector_walk {
	struct mc_walk *walk;
	__u64 at; /* the next element */
	__u64 left; /* bytes to look at from there on */
};

static long mc_walk_element(__u32 i, struct mc_vector_walk *v)
{
	struct mc_walk *w = v->walk;
	struct mc_iovec element;

	if (!v->left || bpf_probe_read_user(&element, sizeof(element), (void *)v->at))
		return 1;
	v->at += sizeof(element);
	w->address = element.base;
	w->left = element.len < v->left ? element.len : v->left;
	v->left -= w->left;
	bpf_loop(MC_PIECES, mc_walk_piece, w, 0);
	return 0;
}

/* Looks at the first len bytes of the system call's buffer. */
static __noinline int mc_walk(struct mc_walk *w, const struct mc_buffer *b, __u64 len)
{
	struct mc_vector_walk v = { .walk = w, .at = b->address, .left = len };

	if (b->kind == MC_BUFFER_VECTOR) {
		bpf_loop(b->count, mc_walk_element, &v, 0);
		return v.left ? -1 : 0;
	}
	w->address = b->address;
	w->left = len;
	bpf_loop(MC_PIECES, mc_walk_piece, w, 0);
	return 0;
}

/* Memory of this thread for bytes to look at. */
static __always_inline struct mc_piece *mc_piece_of(void)
{
	return bpf_task_storage_get(&mc_pieces, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Looks at the bytes that the server has read or sent; a connection whose bytes cannot be found is lost. */
static __always_inline void mc_look(struct mc_connection *c, const struct mc_buffer *b, __u64 len, __u32 sent)
{
	struct mc_walk w = { .connection = c, .sent = sent, .piece = mc_piece_of() };

	if (!w.piece || b->kind == MC_BUFFER_UNKNOWN || mc_walk(&w, b, len))
		mc_lose_connection(c, MC_LOSS_BYTES);
}

/*
 * The datagrams that this thread reads from a socket of a server, and those that it answers. The thread has executed one when it reads the next,
 * and has answered it. The server is told where it had to be looked for.
 */
static __always_inline struct mc_connection *mc_datagrams_of(struct sock *sk, const struct mc_server **of)
{
	struct mc_datagram_key key = { .sk = (__u64)sk, .thread = bpf_get_current_pid_tgid() };
	struct mc_connection *c, *empty;
	const struct mc_server *server;
	__u32 epoch = mc_epoch, zero = 0;

	if (!mc_ports[sk->__sk_common.skc_num])
		return 0;
	key.at.netns = sk->__sk_common.skc_net.net->net_cookie;
	key.at.port = sk->__sk_common.skc_num;
	c = bpf_map_lookup_elem(&mc_datagrams, &key);
	if (c && c->epoch == epoch)
		return c;
	server = *of = mc_server_of(sk);
	if (!server)
		return 0;
	if (!c || c->server.number != server->number) {
		empty = bpf_map_lookup_elem(&mc_empty, &zero);
		if (!empty || bpf_map_update_elem(&mc_datagrams, &key, empty, BPF_ANY))
			return 0;
		c = bpf_map_lookup_elem(&mc_datagrams, &key);
		if (!c)
			return 0;
	}
	mc_bind(c, server, epoch);
	return c;
}

/*
 * Whether a datagram is a GET of one key, and nothing else: "get KEY". Most datagrams that the cache leaves to the server are. This is the cheapest
 * way to see that such a one changes nothing.
 */
static __noinline int mc_is_get(const struct mc_buffer *b, __u32 len)
{
	struct mc_piece *piece = mc_piece_of();
	const __u32 begin = MC_DATAGRAM_HEADER + sizeof("get ") - 1;

	if (!piece || b->kind != MC_BUFFER_BYTES || len <= begin + 2 || !ln_length_fits(len, begin + MC_KEY_MAX + 2))
		return 0;
	if (bpf_probe_read_user(piece->bytes, len, (void *)b->address))
		return 0;
	if (*(__u32 *)(piece->bytes + MC_DATAGRAM_HEADER) != *(const __u32 *)"get ")
		return 0;
	for (__u32 i = begin; i < begin + MC_KEY_MAX && i < len - 2; i++)
		if (piece->bytes[i] <= ' ')
			return 0;
	return piece->bytes[(len - 2) & (MC_PIECE - 1)] == '\r' && piece->bytes[(len - 1) & (MC_PIECE - 1)] == '\n';
}

/* The server has read a datagram, or tried to. To look at one again ends its writes, and begins them once more. */
static __always_inline void mc_read_datagram(struct sock *sk, int result, int again)
{
	const struct mc_server *server = 0;
	struct mc_connection *c = mc_datagrams_of(sk, &server);
	struct mc_buffer buffer = {};

	if (!c && server) /* there are too many threads */
		mc_keep_closed(server->number);
	if (!c)
		return;
	if (result <= 0) {
		mc_executed(c);
		return;
	}
	if (again && c->lost) { /* whether it looks like commands was seen, or never will be */
		mc_begin_any(c);
		return;
	}
	c->again = again;
	if (c->request.phase != MC_PHASE_BEGIN)
		mc_lose_connection(
			c, MC_LOSS_COMMAND); /* the server may take this datagram for the rest of that command */
	mc_begin_read(c, 0);
	c->request.protocol = MC_PROTOCOL_NONE;
	c->response.phase = MC_PHASE_BEGIN;
	c->read = 0;
	c->answered = 0;
	c->header = MC_DATAGRAM_HEADER;
	mc_find_buffer(&buffer);
	if (!c->lost && mc_is_get(&buffer, result)) {
		c->read = 1;
		return;
	}
	mc_look(c, &buffer, result, 0);
	mc_end_read(c);
}

/* Whether the client will send no more. The end of its stream, too, takes a sequence number. */
static __always_inline int mc_has_ended(const struct sock *sk)
{
	return sk->sk_shutdown & MC_RCV_SHUTDOWN;
}

/* The server has read of a connection, or tried to. */
static __always_inline void mc_read_stream(struct sock *sk, int result, int flags, int again)
{
	const struct mc_server *server = 0;
	struct mc_connection *c = mc_connection_of(sk, &server);
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	__u32 read = result > 0 ? result : 0, at;
	struct mc_buffer buffer = {};

	if (!c && server) /* the socket has no memory for it (net.core.optmem_max) */
		mc_keep_closed(server->number);
	if (!c || !tcp)
		return;
	at = tcp->copied_seq;
	if (again && (result <= 0 || at == c->at))
		return; /* it was seen */
	if (at - c->at != read && !(mc_has_ended(sk) && at - c->at == read + 1))
		mc_lose_connection(c, MC_LOSS_PASSED); /* something was read past the observer */
	c->at = at;
	if (result <= 0) {
		mc_executed(c);
		return;
	}
	if (!(flags & MC_MSG_TRUNC)) /* which throws the bytes away */
		mc_find_buffer(&buffer);
	mc_begin_read(c, buffer.kind != MC_BUFFER_BYTES || read >= buffer.count);
	mc_look(c, &buffer, read, 0);
	mc_end_read(c);
}

static __always_inline void mc_hold(void)
{
	if (mc_preemptible)
		bpf_preempt_disable();
}

static __always_inline void mc_release(void)
{
	if (mc_preemptible)
		bpf_preempt_enable();
}

static __always_inline void mc_on_read(struct sock *sk, int result, int flags, int again)
{
	if (flags & (MC_MSG_PEEK | MC_MSG_ERRQUEUE))
		return;
	if (sk->sk_protocol == MC_IPPROTO_TCP)
		mc_read_stream(sk, result, flags, again);
	else if (sk->sk_protocol == MC_IPPROTO_UDP)
		mc_read_datagram(sk, result, again);
}

static __always_inline void mc_on_send(struct sock *sk, int result)
{
	const struct mc_server *server = 0;
	struct mc_connection *c = 0;
	struct mc_buffer buffer = {};

	if (sk->sk_protocol == MC_IPPROTO_TCP)
		c = mc_connection_of(sk, &server);
	else if (sk->sk_protocol == MC_IPPROTO_UDP)
		c = mc_datagrams_of(sk, &server);
	if (!c || (c->lost && !c->guess))
		return;
	c->header = 0;
	if (sk->sk_protocol == MC_IPPROTO_UDP) {
		if (!c->lost && c->head == c->tail && !c->more)
			return; /* no write waits for the answer, and the next datagram begins anew */
		c->header = MC_DATAGRAM_HEADER;
	}
	mc_find_buffer(&buffer);
	mc_look(c, &buffer, result, 1);
	mc_end_send(c);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(mc_send, struct sock *sk, int result, int flags)
{
	if (result <= 0)
		return 0;
	mc_hold();
	mc_on_send(sk, result);
	mc_release();
	return 0;
}

/* A connection begins: nothing was read of it. Or the server is gone: the next one at this port has other values. */
static __always_inline void mc_on_state(struct sock *sk, int before, int now)
{
	__u32 epoch = mc_epoch;
	const struct mc_server *server = mc_server_of(sk);
	struct mc_connection *c;
	struct tcp_sock *tcp;

	if (!server)
		return;
	/* A new connection's socket is made from the listener's, and leaves that state, too. */
	if (before == MC_TCP_LISTEN && now == MC_TCP_CLOSE) {
		mc_write_begins(server->number, MC_GUARD_ALL);
		mc_write_ends(server->number, MC_GUARD_ALL);
		mc_count(server->number, MC_COUNT_CHANGES_ALL);
	}
	if (now != MC_TCP_ESTABLISHED)
		return;
	tcp = bpf_skc_to_tcp_sock(sk);
	c = bpf_sk_storage_get(&mc_connections, sk, 0, 0);
	if (!c || c->server.number != server->number) /* a server may read with the handshake (TCP Fast Open) */
		c = mc_connect(sk, server, epoch);
	if (c && tcp)
		c->at = tcp->copied_seq;
}

/* The server has closed a connection: what it read is executed, or never will be. */
static __always_inline void mc_on_end(struct sock *sk)
{
	struct mc_connection *c = bpf_sk_storage_get(&mc_connections, sk, 0, 0);

	if (!c)
		return;
	c->whole = c->tail;
	c->request.phase = MC_PHASE_BEGIN;
	mc_executed(c);
}

/*
 * The kernel leaves a program on a tracepoint out where another thread is in it on the same processor. Before Linux 7.0 that cannot be. Since
 * then a thread may lose the processor in a program, here up to the moment at which it calls mc_hold. So a program that must miss nothing is
 * there four times, and the copies run one after the other. To see something twice does no harm. To miss it, four threads would have to lose
 * the processor at once, each in another copy, within the few instructions before mc_hold.
 */
#define MC_COPY(copy) \
	SEC("tp_btf/sock_recv_length") \
	int BPF_PROG(mc_read_##copy, struct sock *sk, int result, int flags) \
	{ \
		mc_hold(); \
		mc_on_read(sk, result, flags, copy); \
		mc_release(); \
		return 0; \
	} \
\
	SEC("tp_btf/inet_sock_set_state") \
	int BPF_PROG(mc_state_##copy, struct sock *sk, int before, int now) \
	{ \
		if (sk->sk_protocol != MC_IPPROTO_TCP) \
			return 0; \
		mc_hold(); \
		mc_on_state(sk, before, now); \
		mc_release(); \
		return 0; \
	} \
\
	SEC("tp_btf/tcp_destroy_sock") \
	int BPF_PROG(mc_end_##copy, struct sock *sk) \
	{ \
		mc_hold(); \
		mc_on_end(sk); \
		mc_release(); \
		return 0; \
	}

MC_COPY(0)
MC_COPY(1)
MC_COPY(2)
MC_COPY(3)

/* Named here so that BTF, and the Go types made from it, have them. */
const enum mc_connection_limit *mc_connection_limit_ __attribute__((unused));
const enum mc_loss *mc_loss_ __attribute__((unused));
const enum mc_count *mc_count_ __attribute__((unused));
const enum mc_phase *mc_phase_ __attribute__((unused));
const enum mc_guard_limit *mc_guard_limit_ __attribute__((unused));
const enum mc_server_limit *mc_server_limit_ __attribute__((unused));
