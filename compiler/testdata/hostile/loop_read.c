/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static uint8_t buffer[1400];

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	for (;;)
		sink += lambda_read(request, buffer, 1024 * k);
}
