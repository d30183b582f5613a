/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A copy of the packet at hand, and its digest, by which the packet is recognised. */
#ifndef LN_COPY_H
#define LN_COPY_H

#include "maps.h"

/* Copies the packet at hand; -1 where it is too long. */
static __always_inline int ln_late_load(struct xdp_md *ctx, struct ln_late *late)
{
	__u32 len = bpf_xdp_get_buff_len(ctx), last;

	if (!ln_length_fits(len, LN_LATE_BYTES))
		return -1;
	last = (len - 1) & ~7U;
	__builtin_memset(late->bytes + last, 0, sizeof(__u64)); /* the last word may reach beyond the packet */
	late->size = len;
	return bpf_xdp_load_bytes(ctx, 0, late->bytes, len);
}

/* The mixing is FNV-1a's, on words. */
LN_GLOBAL __u64 ln_late_digest(const struct ln_late *late)
{
	__u64 digest, word;

	if (!late)
		return 0;
	digest = 0xcbf29ce484222325ULL ^ late->pass.instance;
	for (__u32 i = 0; i < LN_LATE_BYTES / sizeof(word) && i * sizeof(word) < late->size; i++) {
		__builtin_memcpy(&word, late->bytes + i * sizeof(word), sizeof(word));
		digest = (digest ^ word) * 0x100000001b3ULL;
		digest ^= digest >> 29;
	}
	return digest;
}

#endif
