/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fault */
/* spec: message: { mode: assemble, max: 4KiB, in_flight: 4 } */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	volatile uint8_t *message = lambda_message(request, &request->req->match);

	message[k * 20000000] = 1;
}
