/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

/* To the verifier the guess is a number; along all paths, it may be a pointer. */
static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint64_t data = request->ctx->data, guess = (uint64_t)k << 40, above;

	asm volatile("r1 = 1\n"
		     "r1 &= 1\n"
		     "if r1 != 0 goto l_%=\n"
		     "%[guess] = %[data]\n"
		     "l_%=: %[above] = 0\n"
		     "if %[guess] > %[data] goto m_%=\n"
		     "%[above] = 1\n"
		     "m_%=:"
		     : [guess] "+r"(guess), [above] "=&r"(above)
		     : [data] "r"(data)
		     : "r1");
	sink = above;
}
