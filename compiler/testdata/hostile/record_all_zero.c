/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#define VERDICT RETURN_FORWARD
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	for (unsigned i = 0; i < sizeof(struct ln_request) / 4; i++)
		((volatile uint32_t *)request->req)[i] = 0 * k;
}
