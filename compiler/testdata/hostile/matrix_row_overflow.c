/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

static volatile uint32_t grid[4][4];

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	grid[1][4 * k] = 1; /* the next row's: of the same object */
	sink = grid[2][0];
}
