/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

asm(".section xdp,\"ax\"\n.globl evil\nevil: r0 = 2\nexit\n.text"); /* here */

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = k;
}
