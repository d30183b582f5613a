/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "handmade.h"

/* Ethernet, IPv4, UDP: every address and port is another. */
ENTRY
{
	__u8 *p = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ln_request *r = request();

	if (!r || p + 74 > end)
		return RETURN_FAULT;
	for (int i = 0; i < 12; i++)
		p[i] ^= 0x55;
	for (int i = 26; i < 38; i++)
		p[i] ^= 0x55;
	r->out_len = 8;
	return RETURN_FORWARD;
}
