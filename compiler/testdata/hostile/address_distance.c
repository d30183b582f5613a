/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

/* The distance of two places in the packet tells nothing. */
static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint8_t *p = payload(request, 0, 3), *q = payload(request, k & 1, 1);

	if (p && q)
		sink = q - p;
	sink = request->ctx->data_end - request->ctx->data;
}
