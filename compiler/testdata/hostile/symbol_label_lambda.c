/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

__attribute__((used)) int mine(struct xdp_md *ctx) __asm__("lambda");
int mine(struct xdp_md *ctx) /* here */
{
	return 2;
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = k;
}
