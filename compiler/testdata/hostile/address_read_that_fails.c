/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

/* The verifier takes the old contents for the packet's bytes. */
static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint64_t kept;

	asm volatile("*(u64 *)(r10 - 504) = %[ctx]\n"
		     "r1 = %[ctx]\n"
		     "r2 = 30000\n"
		     "r3 = r10\n"
		     "r3 += -504\n"
		     "r4 = 8\n"
		     "call %[load]\n"
		     "%[kept] = *(u64 *)(r10 - 504)"
		     : [kept] "=&r"(kept)
		     : [ctx] "r"(request->ctx), [load] "i"(BPF_FUNC_xdp_load_bytes)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
	sink = kept + k; /* here */
}
