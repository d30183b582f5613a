/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers that cannot be predicted from earlier ones: SipHash-2-4 of a counter, under a key of
 * the NIC's own. A few values of bpf_get_prandom_u32(), in contrast, reveal the next (lib/random32.c).
 */
#ifndef LN_RANDOM_H
#define LN_RANDOM_H

#include "../maps.h"
#include "../siphash.h"

/* A subprogram of which the verifier has nothing to prove: it takes and gives only numbers. */
static __noinline __u64 ln_random(__u64 counter)
{
	__u64 v[4];

	ln_sip_begin(v, ln_call_key[0], ln_call_key[1]);
	ln_sip_word(v, counter);
	return ln_sip_end(v, sizeof(counter), 0);
}

#endif
