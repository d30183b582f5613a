/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
/* spec: targets: [nic, process] */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	static const double third = 1.0L / 3; /* here */

	sink = third * k;
}
