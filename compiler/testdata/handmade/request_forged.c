/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "handmade.h"

/* Overwrites every number that the NIC program reads afterwards. */
ENTRY
{
	struct ln_request *r = request();

	if (!r)
		return RETURN_FAULT;
	for (unsigned int i = 0; i < sizeof(*r) / sizeof(__u32); i++)
		((__u32 *)r)[i] = 0x80000001u + i;
	return RETURN_FORWARD;
}
