/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: a recursion */
#include "handmade.h"

__noinline int odd(__u32 n);

__noinline int even(__u32 n)
{
	lambda_opaque(n);
	return n ? odd(n - 1) : 1;
}

__noinline int odd(__u32 n)
{
	lambda_opaque(n);
	return n ? even(n - 1) : 0;
}

ENTRY
{
	return odd(ctx->rx_queue_index);
}
