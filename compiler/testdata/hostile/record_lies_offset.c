/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#define VERDICT RETURN_FORWARD
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	request->req->out_off = -(int)(k << 20);
	request->req->out_len = 0xffffffff * k;
	request->req->out_total = 1u << 31;
}
