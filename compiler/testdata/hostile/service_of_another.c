/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
/* spec: services: [{ name: mine, protocol: memcached, address: '192.0.2.7:11211' }] */
#define VERDICT RETURN_CALL
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	lambda_call(request, k, 0, 4);
}
