/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

__attribute__((section("xdp"), used, noinline)) int second(struct xdp_md *ctx)
{
	return ctx->rx_queue_index; /* here */
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = k;
}
