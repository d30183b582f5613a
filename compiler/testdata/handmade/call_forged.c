/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "handmade.h"

/* A call that no service is bound for. */
ENTRY
{
	struct ln_request *r = request();

	if (!r)
		return RETURN_FAULT;
	r->service = 0xffffffff;
	r->out_len = 64;
	return RETURN_CALL;
}
