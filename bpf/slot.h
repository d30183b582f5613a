/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef LN_SLOT_H
#define LN_SLOT_H

#include <linux/types.h>

/*
 * Zero, and not known to the verifier: where it knows a tail call's slot, the kernel patches the program itself whenever the map changes
 * (kernel/bpf/arraymap.c, prog_array_map_poke_run), also while packets pass it. Some virtual machines do not survive that.
 */
static volatile __u32 ln_zero;

#endif
