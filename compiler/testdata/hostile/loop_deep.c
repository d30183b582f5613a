/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	for (uint32_t a = 0; a < 1000; a++)
		for (uint32_t b = 0; b < 1000; b++)
			for (uint32_t c = 0; c < 1000; c++)
				for (uint32_t d = 0; d < 1000; d++)
					sink += a * b + c * d + k;
}
