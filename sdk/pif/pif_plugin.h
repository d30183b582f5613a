/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The header that a P4 program's Micro-C includes, with the names of Netronome's tools. The types of the program's own headers
 * are in pif_program.h, which the compiler makes from the P4.
 */
#ifndef PIF_PLUGIN_H
#define PIF_PLUGIN_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <memory.h>
#include <stdint.h>
#include <string.h>

/* The return values of a primitive action's C function; RETURN_* in the paper's listings. */
enum {
	PIF_PLUGIN_RETURN_DROP = 0,
	PIF_PLUGIN_RETURN_FORWARD = 1,
	RETURN_DROP = PIF_PLUGIN_RETURN_DROP,
	RETURN_FORWARD = PIF_PLUGIN_RETURN_FORWARD,
};

/* A rule's data reaches the lambda in metadata. */
typedef struct pif_match_data {
	uint8_t none;
} MATCH_DATA_T;

#include <pif_program.h>

#ifdef PIF_WAITS
#define sleep(cycles) pif_wait(cycles) /* pif_pass.h */

static __attribute__((always_inline, noreturn)) inline void pif_wait(uint32_t cycles);
#endif

#endif
