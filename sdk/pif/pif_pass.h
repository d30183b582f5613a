/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a match stage and the NIC program (bpf/stage) agree on. A run of the stage is one pass of one packet. Where that is cloned, or
 * has to wait, it runs the stage once more: on the clone, or when the host may have written what is waited for.
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
 * Ends the run. sleep() stands in loops that wait for a flag, but nothing may spin in the NIC: the packet is parked as it came, and
 * the lambda runs from its beginning again. So what it did before a wait it does again; it should wait first. Nothing was written to
 * the packet yet: that comes behind the lambda. BPF's exit leaves the function that it stands in, and all of the stage is inlined.
 */
static __attribute__((always_inline, noreturn)) inline void pif_wait(uint32_t cycles)
{
	(void)cycles; /* the host's write decides how long */
	asm volatile("r0 = %0\n\texit" : : "i"(LN_STAGE_WAIT));
	__builtin_unreachable();
}

#endif
