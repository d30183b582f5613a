/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stands in for libbpf's header of this name, so that the NIC program builds as ordinary C: maps are arrays, helpers are
 * functions of the fuzzer's (nic_fuzz.c).
 */
#ifndef BPF_HELPERS_H
#define BPF_HELPERS_H

#include <linux/bpf.h>
#include <stddef.h>

#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, type) typeof(type) *name
#undef __always_inline /* libc's own */
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))

/* Memory for value_size * entries bytes is made when a map is first used. */
void *fuzz_lookup(const void *map, __u32 value_size, __u32 entries, __u32 key);
int fuzz_tail_call(struct xdp_md *ctx, const void *map, __u32 slot, int *verdict);
void fuzz_lock(void);
void fuzz_unlock(void);

#define bpf_map_lookup_elem(map, key) \
	((typeof((map)->value))fuzz_lookup(map, sizeof(*(map)->value), sizeof(*(map)->max_entries) / sizeof(int), \
					   *(const __u32 *)(key)))

/* A tail call ends the function that makes it, unless there is nothing to call. */
#define bpf_tail_call(ctx, map, slot) \
	do { \
		int called; \
		if (!fuzz_tail_call(ctx, map, slot, &called)) \
			return called; \
	} while (0)

#define bpf_spin_lock(lock) ((void)(lock), fuzz_lock())
#define bpf_spin_unlock(lock) ((void)(lock), fuzz_unlock())

__u64 bpf_ktime_get_ns(void);
__u64 bpf_ktime_get_coarse_ns(void);
__u32 bpf_get_prandom_u32(void);
__u64 bpf_xdp_get_buff_len(struct xdp_md *ctx);
long bpf_xdp_adjust_head(struct xdp_md *ctx, int delta);
long bpf_xdp_adjust_tail(struct xdp_md *ctx, int delta);
long bpf_xdp_load_bytes(struct xdp_md *ctx, __u32 off, void *to, __u32 len);
long bpf_xdp_store_bytes(struct xdp_md *ctx, __u32 off, const void *from, __u32 len);
long bpf_fib_lookup(void *ctx, struct bpf_fib_lookup *params, int size, __u32 flags);
long bpf_redirect(__u32 index, __u64 flags);
long bpf_map_update_elem(const void *map, const void *key, const void *value, __u64 flags);
long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags);
long bpf_map_delete_elem(const void *map, const void *key);

#endif
