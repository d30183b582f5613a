/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contained */
#include "handmade.h"

ENTRY
{
	return XDP_REDIRECT | 0x100;
}
