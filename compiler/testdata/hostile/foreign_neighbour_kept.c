/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "hostile.h"

LAMBDA_KEPT uint64_t served;

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	served = ~0UL * k; /* its own, of the same name and section */
}
