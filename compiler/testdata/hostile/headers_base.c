/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#define VERDICT RETURN_FORWARD
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	request->base = 0xfffffff0 + k;
	sink = payload(request, 0, 1) ? 1 : 0;
}
