/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static struct {
	struct bpf_spin_lock lock;
	volatile uint32_t n;
} shared __attribute__((section(".data.shared")));

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	bpf_spin_lock(&shared.lock);
	while (k) /* here */
		shared.n++;
}
