/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static const uint32_t constant = 1;
extern uint32_t other __attribute__((alias("constant"))); /* here */

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	other = k;
}
