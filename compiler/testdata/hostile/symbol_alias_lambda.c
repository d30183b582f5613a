/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

int mine(struct xdp_md *ctx)
{
	return 2;
}
int lambda(struct xdp_md *ctx) __attribute__((alias("mine"))); /* here */

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = k;
}
