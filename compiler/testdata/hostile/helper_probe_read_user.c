/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused */
#include "hostile.h"

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint64_t word = 0;

	word += bpf_probe_read_user(&word, sizeof(word), (void *)(0x400000UL + k)); /* here */
	sink = word;
}
