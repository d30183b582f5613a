/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* HMAC-SHA256 (RFC 2104) of what is signed, by each of the keys. */
#ifndef CJ_HMAC_H
#define CJ_HMAC_H

#include "sha256.h"

/* A key: the states of SHA-256 after the key with either padding, so that only the text is left to add. */
struct cj_secret {
	__u32 inner[8];
	__u32 outer[8];
	__u64 kid; /* the hash of its name in tokens; 0: it has none */
};

struct cj_secrets {
	__u32 count;
	__u32 zero;
	struct cj_secret keys[CJ_KEYS];
};

struct cj_secrets_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cj_secrets);
};

/* The keys. User space replaces all of them at once, by another map, and has done so when no program reads the former any more. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct cj_secrets_map);
} cj_keys SEC(".maps");

/* Pads the signed text at the beginning of the token's buffer. Returns how many blocks it is; 0: none. */
static __always_inline __u32 cj_pad(struct cj_scratch *s)
{
	__u32 len = s->signed_len, blocks, end;

	if (len > CJ_SIGNED)
		return 0;
	blocks = (len + 9 + CJ_BLOCK - 1) / CJ_BLOCK;
	end = blocks * CJ_BLOCK - 8;
	s->token[len] = 0x80;
	for (int i = 0; i < CJ_BLOCK + 8; i += 8)
		*(__u64 *)(s->token + len + 1 + i) = 0;
	*(__u64 *)(s->token + end) = bpf_cpu_to_be64((__u64)(CJ_BLOCK + len) * 8);
	return blocks;
}

/* Whether the signature is by this key. Takes as long for each signature. */
LN_GLOBAL int cj_is_by(struct cj_scratch *s, const struct cj_secret *key, __u32 blocks)
{
	__u32 *outer, differs = 0;

	if (!s || !key)
		return 0;
	__builtin_memcpy(s->hash, key->inner, sizeof(s->hash));
	for (__u32 i = 0; i < CJ_SIGNED / CJ_BLOCK + 1 && i < blocks; i++)
		cj_add_block(s, i * CJ_BLOCK);
	outer = (__u32 *)(s->token + CJ_OUTER);
	for (int i = 0; i < 8; i++) {
		outer[i] = bpf_htonl(s->hash[i]);
		outer[8 + i] = 0;
	}
	outer[8] = bpf_htonl(0x80000000);
	outer[15] = bpf_htonl((CJ_BLOCK + sizeof(s->hash)) * 8);
	__builtin_memcpy(s->hash, key->outer, sizeof(s->hash));
	cj_add_block(s, CJ_OUTER);
	for (int i = 0; i < 8; i++)
		differs |= s->hash[i] ^ bpf_ntohl(((__u32 *)s->signature)[i]);
	return !differs;
}

/* Looks for the key that has signed. A token that names one of the keys must be by this one. CJ_PASSED: there is one. */
static __noinline int cj_check(struct cj_scratch *s)
{
	__u32 zero = 0, named = 0, blocks = cj_pad(s);
	const struct cj_secrets *all;
	__u64 kid = s->json.values.kid;
	void *map;

	map = bpf_map_lookup_elem(&cj_keys, &zero);
	if (!map)
		return CJ_FORGED;
	all = bpf_map_lookup_elem(map, &zero);
	if (!all || !blocks)
		return CJ_FORGED;
	for (__u32 i = 0; i < CJ_KEYS && i < all->count; i++)
		named |= kid && all->keys[i].kid == kid;
	for (__u32 i = 0; i < CJ_KEYS && i < all->count; i++)
		if ((!named || all->keys[i].kid == kid) && cj_is_by(s, &all->keys[i], blocks))
			return CJ_PASSED;
	return CJ_FORGED;
}

#endif
