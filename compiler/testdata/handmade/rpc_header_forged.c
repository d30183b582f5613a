/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "handmade.h"

/* Another workload, another request, another type. */
ENTRY
{
	__u8 *p = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ln_request *r = request();

	if (!r || p + 74 > end)
		return RETURN_FAULT;
	for (int i = 42; i < 74; i++)
		p[i] = ~p[i];
	r->out_len = 8;
	return RETURN_FORWARD;
}
