/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: bpf_loop */
#include "handmade.h"

static long callback(__u64 i, void *context)
{
	return 0;
}

ENTRY
{
	return bpf_loop(1 << 23, callback, NULL, 0);
}
