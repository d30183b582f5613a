/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of external calls. */
#ifndef LN_CALLS_MAPS_H
#define LN_CALLS_MAPS_H

#include "../maps.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct ln_service);
} ln_services SEC(".maps");

/* pacer maps this one and the next two. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LN_MAX_CALLS + LN_MAX_RAW_CALLS);
	__type(key, __u32);
	__type(value, struct ln_call);
} ln_calls SEC(".maps");

/* The record of each of the last calls, by the low bits of the call's number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LN_MAX_CALLS);
	__type(key, __u32);
	__type(value, __u64);
} ln_call_log SEC(".maps");

/* The number of the next call. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} ln_next_call SEC(".maps");

/* Requests to services, kept to be sent again, by the index of the call's record. A call without an entry has one try. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LN_MAX_RETAINED);
	__type(key, __u32);
	__type(value, struct ln_sent);
} ln_retained SEC(".maps");

/* Where such a request is put together: it is too long for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_sent);
} ln_sending SEC(".maps");

#endif
