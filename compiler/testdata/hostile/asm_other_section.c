/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

asm(".pushsection xdp,\"ax\"; .globl evil; evil: .quad 0xb7, 0x95; .popsection"); /* here */

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	sink = k;
}
