/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

extern int ln_root(struct xdp_md *);

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = ln_root(request->ctx) + k; /* here */
}
