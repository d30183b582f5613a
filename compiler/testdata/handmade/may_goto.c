/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: unmetered loop */
#include "handmade.h"

ENTRY
{
	asm volatile goto("l_%=: may_goto %l[out]; goto l_%=" :: ::out);
out:
	return RETURN_DROP;
}
