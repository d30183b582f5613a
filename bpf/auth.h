/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Authentication: a packet's tag is SipHash-2-4 under a key of its namespace, and each sequence number of a client is good for one packet. */
#ifndef LN_AUTH_H
#define LN_AUTH_H

#include <bpf/bpf_endian.h>

#include "maps.h"
#include "siphash.h"
#include "window.h"

#define LN_TAG_FLAGS (LN_FLAG_TAG | LN_FLAG_TAG_PAYLOAD | LN_FLAG_ODD_KEY)

/* What ln_check_tag() returns for a packet that has been here. */
#define LN_REPLAYED (-1)

/* Words that are hashed at once: the verifier walks each word of a loop. */
#define LN_TAG_BLOCK 16

/* Hashes the words of a payload from a number on, to the end of their block. */
LN_GLOBAL int ln_tag_block(const struct ln_tagged *tagged, struct ln_sip *sip, __u32 from, __u32 words)
{
	struct ln_sip s;

	if (!tagged || !sip)
		return -1;
	s = *sip;
	for (__u32 k = 0; k < LN_TAG_BLOCK; k++) {
		__u32 i = from + k;

		ln_opaque(i);
		if (i >= words || i >= LN_TAGGED_WORDS)
			break;
		ln_sip_word(s.v, tagged->words[i]);
	}
	*sip = s;
	return 0;
}

/* Computes the tag of the first bytes in ln_tagging, which begin with a header, under a namespace's key. Returns -1 if there is no such key. */
LN_GLOBAL int ln_tag(__u32 namespace, __u32 odd, __u32 bytes)
{
	__u32 zero = 0, words = bytes / 8, rest = bytes % 8;
	const struct ln_keys *keys = bpf_map_lookup_elem(&ln_namespace_keys, &namespace);
	struct ln_tagged *tagged = bpf_map_lookup_elem(&ln_tagging, &zero);
	struct ln_sip sip;
	const struct ln_key *key;
	__u64 last = 0;

	if (!keys || !tagged)
		return -1;
	key = &keys->key[odd & 1];
	if (!key->valid)
		return -1;
	ln_sip_begin(sip.v, key->word[0], key->word[1]);
#pragma unroll
	for (int i = 0; i < LN_TAGGED_HEADER / 8; i++)
		ln_sip_word(sip.v, tagged->words[i]);
	ln_opaque(words); /* so that it is checked, and not bytes */
	if (rest && words < LN_TAGGED_WORDS) /* before the loop, as in ln_csum_packet() */
		last = tagged->words[words] & ((1ULL << (8 * rest)) - 1);
	for (__u32 i = LN_TAGGED_HEADER / 8; i < words && i < LN_TAGGED_WORDS; i += LN_TAG_BLOCK)
		ln_tag_block(tagged, &sip, i, words);
	tagged->tag = ln_sip_end(sip.v, bytes, last);
	return 0;
}

/* Puts what a tag covers into ln_tagging: the header up to the tag and, if it says so, length bytes at offset at. Returns their number, or -1. */
static __always_inline int ln_gather(struct xdp_md *ctx, struct ln_tagged *tagged, const struct ln_rpc *rpc, __u32 at,
				     __u32 length)
{
	for (int i = 0; i < LN_TAGGED_HEADER / 8; i++)
		tagged->words[i] = ((const __u64 *)rpc)[i];
	if (!(rpc->flags & LN_FLAG_TAG_PAYLOAD) || !length)
		return LN_TAGGED_HEADER;
	if (!ln_length_fits(length, LN_RPC_MAX_PAYLOAD) ||
	    bpf_xdp_load_bytes(ctx, at, &tagged->words[LN_TAGGED_HEADER / 8], length))
		return -1;
	return LN_TAGGED_HEADER + length;
}

/* Notes that a client of a namespace uses a sequence number, and returns whether it did before. */
LN_GLOBAL int ln_is_replay(__u32 namespace_id, __u32 client, __u32 sequence)
{
	__u32 number = ln_window_set(namespace_id, client);
	struct ln_locked_windows *windows = bpf_map_lookup_elem(&ln_clients, &number);
	int replay;

	if (!windows)
		return 1;
	bpf_spin_lock(&windows->lock);
	replay = ln_window_replay(&windows->set, namespace_id, client, sequence);
	bpf_spin_unlock(&windows->lock);
	return replay;
}

/* Whether a packet has the right tag, and comes for the first time: 0, LN_CODE_BAD_TAG or LN_REPLAYED. */
LN_GLOBAL int ln_check_tag(struct xdp_md *ctx, struct ln_scratch *scratch, __u32 namespace_id, __u32 at)
{
	__u32 zero = 0;
	struct ln_tagged *tagged = bpf_map_lookup_elem(&ln_tagging, &zero);
	const struct ln_rpc *rpc;
	int bytes;

	if (!scratch || !tagged)
		return LN_CODE_BAD_TAG;
	rpc = (const struct ln_rpc *)scratch->flow.rpc;
	if (!rpc->client) /* anonymous clients would share a window */
		return LN_CODE_BAD_TAG;
	bytes = ln_gather(ctx, tagged, rpc, at, bpf_ntohs(rpc->length));
	if (bytes < 0 || ln_tag(namespace_id % LN_MAX_NAMESPACES, !!(rpc->flags & LN_FLAG_ODD_KEY), bytes) ||
	    tagged->tag != bpf_be64_to_cpu(rpc->tag))
		return LN_CODE_BAD_TAG;
	return ln_is_replay(namespace_id, bpf_ntohl(rpc->client), bpf_ntohl(rpc->sequence)) ? LN_REPLAYED : 0;
}

/*
 * Tags an answer with the key by which its request was tagged; rpc is its header, at the offset of what it carries. If the key is gone, the answer
 * has no tag.
 */
static __always_inline void ln_sign(struct xdp_md *ctx, const struct ln_flow *flow, struct ln_rpc *rpc, __u32 at,
				    __u32 length)
{
	__u32 zero = 0, flags = ((const struct ln_rpc *)flow->rpc)->flags & LN_TAG_FLAGS;
	struct ln_tagged *tagged = bpf_map_lookup_elem(&ln_tagging, &zero);
	int bytes;

	if (!tagged)
		return;
	rpc->flags |= flags;
	bytes = ln_gather(ctx, tagged, rpc, at, length);
	if (bytes < 0 || ln_tag(flow->signer, !!(flags & LN_FLAG_ODD_KEY), bytes))
		rpc->flags &= ~LN_TAG_FLAGS;
	else
		rpc->tag = bpf_cpu_to_be64(tagged->tag);
}

#endif
