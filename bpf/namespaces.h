/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What namespaces may do, and what they did. All programs of a node have these maps together (internal/limits). */
#ifndef LN_NAMESPACES_H
#define LN_NAMESPACES_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

/* By the index of a namespace. User space writes it, programs only read it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LN_MAX_NAMESPACES);
	__type(key, __u32);
	__type(value, struct ln_quota);
} ln_quotas SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LN_MAX_NAMESPACES);
	__type(key, __u32);
	__type(value, struct ln_turns);
} ln_turns_taken SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LN_MAX_NAMESPACES);
	__type(key, __u32);
	__type(value, struct ln_allowance);
} ln_allowances SEC(".maps");

/* User space writes it, programs only read it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_budget);
} ln_budgets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_cpu);
} ln_cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_links);
} ln_links_taken SEC(".maps");

/* User space writes it, programs only read it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LN_MAX_NAMESPACES);
	__type(key, __u32);
	__type(value, struct ln_keys);
} ln_namespace_keys SEC(".maps");

/* The numbers of the namespaces that have networks, by the network (enum ln_network). User space writes it, programs only read it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LN_MAX_NETWORKS);
	__type(key, __u32);
	__type(value, __u32);
} ln_networks SEC(".maps");

/* The index of the namespace that has the lambda in a slot. */
static __always_inline __u32 ln_namespace_of(const struct ln_slot *slot)
{
	return slot->namespace_id & (LN_MAX_NAMESPACES - 1);
}

/* How packets for the lambda in a slot must come. */
static __always_inline const struct ln_keys *ln_keys_of(const struct ln_slot *slot)
{
	__u32 namespace = ln_namespace_of(slot);

	return bpf_map_lookup_elem(&ln_namespace_keys, &namespace);
}

struct ln_locked_windows {
	struct bpf_spin_lock lock;
	struct ln_windows set;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LN_WINDOW_SETS);
	__type(key, __u32);
	__type(value, struct ln_locked_windows);
} ln_clients SEC(".maps");

#endif
