/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: limits.time */
#include "handmade.h"

/* The verifier walks through it to its end. */
ENTRY
{
	__u64 sum = 0;

	for (int i = 0; i < 60000; i++)
		sum += bpf_ktime_get_ns() + bpf_ktime_get_ns() + bpf_ktime_get_ns() + bpf_ktime_get_ns();
	lambda_opaque(sum);
	return RETURN_DROP;
}
