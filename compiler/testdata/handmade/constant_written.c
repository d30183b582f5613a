/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: write into map forbidden */
#include "handmade.h"

const volatile __u64 constant = 7;

ENTRY
{
	__u64 *p = (__u64 *)&constant;

	lambda_opaque(p);
	*p = 8;
	return RETURN_DROP;
}
