/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a program is written with so that the kernel's verifier can follow it. */
#ifndef LN_VERIFIER_H
#define LN_VERIFIER_H

/*
 * A global function, which the verifier proves once, for any arguments, rather than along every path that leads to it. For the
 * verifier, its pointers may be NULL.
 */
#define LN_GLOBAL __attribute__((noinline))

/* Hides a value's history from the optimiser, so that the verifier sees the bound that is checked. */
#define ln_opaque(var) asm volatile("" : "+r"(var))

/*
 * Whether 1 <= len <= max. Clang would merge the two comparisons into one of len - 1, from which the verifier up to Linux 6.18.15
 * does not learn that len is not 0.
 */
#define ln_length_fits(len, max) \
	(({ \
		 ln_opaque(len); \
		 (len) != 0; \
	 }) && \
	 ({ \
		 ln_opaque(len); \
		 (len) <= (max); \
	 }))

#endif
