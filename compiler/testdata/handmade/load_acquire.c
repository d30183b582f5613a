/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: not followed */
#include "handmade.h"

/* A load in the class of stores: r1 becomes what the stack holds, but looks as if it were still 0. */
ENTRY
{
	struct ln_request *r = request();

	if (!r)
		return RETURN_FAULT;
	asm volatile("*(u64 *)(r10 - 64) = %[ctx]\n"
		     "r1 = 0\n"
		     ".byte 0xdb, 0xa1; .short -64; .long 0x100\n" /* r1 = load_acquire((u64 *)(r10 - 64)) */
		     "*(u64 *)(%[r] + 0) = r1" ::[ctx] "r"(ctx),
		     [r] "r"(r)
		     : "r1", "memory");
	return RETURN_DROP;
}
