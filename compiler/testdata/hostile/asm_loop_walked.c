/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

/* The verifier walks through it to its end; it would take tens of milliseconds. */
static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	asm volatile("r6 = 0\n"
		     "l_%=: call %[time]; call %[time]; call %[time]; call %[time]; call %[time]; call %[time]\n"
		     "r6 += 1\n"
		     "if r6 < 50000 goto l_%=" ::[time] "i"(BPF_FUNC_ktime_get_ns)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "r6");
	sink = k;
}
