/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

extern void bpf_rcu_read_lock(void) __attribute__((section(".ksyms")));

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	bpf_rcu_read_lock(); /* here */
	sink = k;
}
