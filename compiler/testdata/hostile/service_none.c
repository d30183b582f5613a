/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
#define VERDICT RETURN_CALL
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	lambda_call(request, k - 1, 0, 4);
}
