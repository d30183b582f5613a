/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#include "hostile.h"

static uint32_t pong(uint32_t n);
static uint32_t ping(uint32_t n)
{
	return pong(n + 1) ^ n;
}
static uint32_t pong(uint32_t n)
{
	return ping(n + 3) + n;
}

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = ping(k);
}
