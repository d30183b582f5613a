/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

/* A loop that the verifier walks in a few milliseconds is allowed. */
static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	asm volatile("r6 = 0\n"
		     "l_%=: call %[random]\n"
		     "r6 += 1\n"
		     "if r6 < 20000 goto l_%=" ::[random] "i"(BPF_FUNC_get_prandom_u32)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "r6");
	sink = k;
}
