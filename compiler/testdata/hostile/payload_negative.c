/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#define VERDICT RETURN_FORWARD
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint8_t *p = payload(request, -(int)(1000 * k), 1);

	if (p)
		*p = 0xff;
}
