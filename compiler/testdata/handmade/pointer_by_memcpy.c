/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: an address */
#include "handmade.h"

/* Forged from the bytes of another: the address is kept in between. */
ENTRY
{
	__u8 *p = (void *)(long)ctx->data;
	struct ln_request *r = request();

	if (!r)
		return RETURN_FAULT;
	__builtin_memcpy(&r->match, &p, sizeof(p));
	return RETURN_FORWARD;
}
