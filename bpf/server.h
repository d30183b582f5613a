/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The addresses at which the server of an ikernel listens. User space sets them before the program is loaded. */
#ifndef LN_SERVER_H
#define LN_SERVER_H

#include "parse.h"

#define LN_SERVER_ADDRESSES 32

const volatile __u64 ln_server_addresses[LN_SERVER_ADDRESSES][2]; /* as in struct ln_flow */
const volatile __u32 ln_server_address_count;

/*
 * Whether the server listens at this address. At other addresses and the same port may be another server: of this machine, or of one that this machine
 * forwards packets to.
 */
static __always_inline int ln_is_servers(const struct ln_flow *flow)
{
	const __u64 *addr = (const __u64 *)flow->own_addr;

	for (__u32 i = 0; i < LN_SERVER_ADDRESSES && i < ln_server_address_count; i++)
		if (addr[0] == ln_server_addresses[i][0] && addr[1] == ln_server_addresses[i][1])
			return 1;
	return 0;
}

#endif
