/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

extern int neighbour(EXTRACTED_HEADERS_T *);

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = neighbour(request) + k; /* here */
}
