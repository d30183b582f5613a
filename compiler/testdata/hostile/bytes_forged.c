/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	volatile uint32_t *p;
	uint8_t *b = (uint8_t *)&p;

	for (int i = 0; i < 8; i++)
		b[i] = (uint8_t)(k * 0xa5);
	*p = 1;
}
