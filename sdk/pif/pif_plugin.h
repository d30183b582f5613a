/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the Micro-C of a P4 program includes, under the names of Netronome's tools. The types of the program's own headers
 * are in pif_program.h, which the compiler makes from the P4.
 */
#ifndef PIF_PLUGIN_H
#define PIF_PLUGIN_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <memory.h>
#include <stdint.h>
#include <string.h>

/* What the C function of a primitive action returns; RETURN_* in the paper's listings. */
enum {
	PIF_PLUGIN_RETURN_DROP = 0,
	PIF_PLUGIN_RETURN_FORWARD = 1,
	RETURN_DROP = PIF_PLUGIN_RETURN_DROP,
	RETURN_FORWARD = PIF_PLUGIN_RETURN_FORWARD,
};

/* A rule's data reach the lambda in metadata. */
typedef struct pif_match_data {
	uint8_t none;
} MATCH_DATA_T;

#include <pif_program.h>

/* What a pass of a packet through the match stage returns besides an XDP action. */
enum {
	PIF_PARK = 64, /* the lambda waits: keep the packet */
	PIF_GO_ON = 65,
};

/*
 * sleep() stands in loops that wait for a flag. Nothing may spin in the NIC, so the run ends here and the packet is parked as
 * it came; when the host has written the flag, or the client has sent the packet once more, it runs again from the beginning.
 * What a lambda did before a wait it does again, so it should wait first. BPF's exit leaves the function that it stands in;
 * all of the lambda is inlined into pif_pass(), so that is the one. Packets are written to behind the lambda only.
 */
#ifdef PIF_WAITS
#define sleep(cycles) pif_wait(cycles)

static __attribute__((always_inline, noreturn)) inline void pif_wait(uint32_t cycles)
{
	(void)cycles; /* the host's write decides how long */
	asm volatile("r0 = %0\n\texit" : : "i"(PIF_PARK));
	__builtin_unreachable();
}
#endif

#endif
