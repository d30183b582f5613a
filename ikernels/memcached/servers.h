/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The servers that are observed: where they are, the guards of each, and what is counted of each. One observer has all servers of a machine, so that
 * what it costs does not grow with their number.
 */
#ifndef MC_SERVERS_H
#define MC_SERVERS_H

#include "command.h"
#include "guard.h"

enum mc_server_limit {
	MC_SERVERS = 1024, /* at once, a power of two */
};

/* Where a server is. */
struct mc_server_key {
	__u64 netns; /* cookie of its network namespace */
	__u64 port;
};

struct mc_server {
	__u64 number; /* is never given again; 0: none. Modulo MC_SERVERS, it is the server's place in the maps below */
	__u64 guard_mask; /* guards of single keys, a power of two, less 1 */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MC_SERVERS);
	__type(key, struct mc_server_key);
	__type(value, struct mc_server);
} mc_servers SEC(".maps");

/* How many servers are at a port, in any network namespace. Most sockets of a machine are no observed server's, and are known by this. */
volatile __u16 mc_ports[65536];

/* Grows whenever a server comes or goes. What was found out before is to be found out anew. */
volatile __u32 mc_epoch = 0;

enum mc_count {
	MC_COUNT_CHANGES, /* commands read that change a key */
	MC_COUNT_CHANGES_ALL, /* what was read that may change any key */
	MC_COUNT_FOUND, /* lost connections that were found again */
	MC_COUNT_MAX,
};

/* Why a connection is lost. */
enum mc_loss {
	MC_LOSS_JOINED, /* it was there before the observer */
	MC_LOSS_COMMAND, /* a command is unknown or malformed */
	MC_LOSS_RESPONSE, /* a response is malformed, or nobody asked for it */
	MC_LOSS_PASSED, /* the server read bytes that the observer did not see */
	MC_LOSS_BYTES, /* the bytes cannot be found in the server's memory */
	MC_LOSS_MAX,
};

struct mc_place {
	__u64 server; /* its number; 0: the place is free */
	__u64 counts[MC_COUNT_MAX];
	__u64 losses[MC_LOSS_MAX]; /* connections, by why they were lost */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MC_SERVERS);
	__type(key, __u32);
	__type(value, struct mc_place);
} mc_places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MC_SERVERS);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(map_flags, MC_GUARDS_FLAGS);
			__uint(max_entries, 1);
			__type(key, __u32);
			__type(value, __u64);
		});
} mc_guards_of SEC(".maps");

/* The server that has this socket; 0: none. */
static __always_inline const struct mc_server *mc_server_of(const struct sock *sk)
{
	struct mc_server_key key = { .port = sk->__sk_common.skc_num };

	if (!mc_ports[key.port & 0xffff])
		return 0;
	key.netns = sk->__sk_common.skc_net.net->net_cookie;
	return bpf_map_lookup_elem(&mc_servers, &key);
}

/* The place of a server that is observed still, or 0. */
static __always_inline struct mc_place *mc_place_of(__u64 server)
{
	__u32 i = server & (MC_SERVERS - 1);
	struct mc_place *place = bpf_map_lookup_elem(&mc_places, &i);

	return place && place->server == server ? place : 0;
}

static __always_inline void mc_count(__u64 server, enum mc_count count)
{
	struct mc_place *place = mc_place_of(server);

	if (place)
		__sync_fetch_and_add(&place->counts[count], 1);
}

static __always_inline void mc_count_lost(__u64 server, enum mc_loss why)
{
	struct mc_place *place = mc_place_of(server);

	if (place)
		__sync_fetch_and_add(&place->losses[why], 1);
}

/* A guard of a server that is observed still, or 0. */
static __always_inline __u64 *mc_guard_at(__u64 server, __u32 index)
{
	__u32 i = server & (MC_SERVERS - 1);
	void *guards = mc_place_of(server) ? bpf_map_lookup_elem(&mc_guards_of, &i) : 0;

	return guards ? bpf_map_lookup_elem(guards, &index) : 0;
}

MC_GLOBAL int mc_add_to_guard(__u64 server, __u32 index, __u32 n)
{
	__u64 *guard = mc_guard_at(server, index);

	if (guard)
		__sync_fetch_and_add(guard, n);
	return 0;
}

/*
 * A server has read what cannot be followed, so nobody can tell when it will be executed: the guard of all keys stays closed. Once its count of
 * pending writes is half full, it is left as it is, so that it never runs over to 0.
 */
MC_GLOBAL int mc_keep_closed(__u64 server)
{
	__u64 *guard = mc_guard_at(server, MC_GUARD_ALL);

	if (guard && (*(volatile __u64 *)guard & (MC_GUARD_PENDING - 1)) < MC_GUARD_PENDING / 2)
		__sync_fetch_and_add(guard, MC_GUARD_PENDING + 1);
	mc_count(server, MC_COUNT_CHANGES_ALL);
	return 0;
}

/* A server has read a write of this guard's keys. */
static __always_inline void mc_write_begins(__u64 server, __u32 guard)
{
	mc_add_to_guard(server, guard, MC_GUARD_PENDING + 1);
}

/* A server has executed a write that began before. */
static __always_inline void mc_write_ends(__u64 server, __u32 guard)
{
	mc_add_to_guard(server, guard, MC_GUARD_PENDING - 1);
}

#endif
