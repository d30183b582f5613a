/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
/* spec: message: { mode: assemble, max: 4KiB, in_flight: 4 } */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	request->req->match.record += 12345678 * k;
	sink = *lambda_message(request, &request->req->match);
}
