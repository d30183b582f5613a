/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a match stage and the NIC program (bpf/stage) agree on. A run of the stage is one pass of one packet. If the packet is cloned or
 * has to wait, the stage runs once more: on the clone, or when the host may have written what the packet waits for.
 */
#ifndef PIF_PASS_H
#define PIF_PASS_H

#define LN_LAYOUT_NO_LOCKS
#include "layout.h"

#ifdef PIF_CLONES
_Static_assert(PIF_KEPT_WORDS == LN_KEPT_WORDS, "the compiler and bpf/layout.h disagree on what a clone keeps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_pass);
} ln_passes SEC(".maps");
#endif

/*
 * Ends the run. sleep() is used in loops that wait for a flag, but nothing may spin in the NIC: the packet is parked as it came, and
 * later the lambda runs from its beginning again. It repeats what it did before the wait, so it should wait first. The packet is still
 * unchanged: it is written after the lambda. BPF's exit leaves the function that it is in, and the whole stage is inlined.
 */
static __attribute__((always_inline, noreturn)) inline void pif_wait(uint32_t cycles)
{
	(void)cycles; /* the host's write decides how long */
	asm volatile("r0 = %0\n\texit" : : "i"(LN_STAGE_WAIT));
	__builtin_unreachable();
}

#endif
