/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where an author wants a global variable to be. These are hints: BTF carries them to what places variables, and no result depends on
 * them. `lambdanic build --report` says what became of each.
 */
#ifndef LAMBDA_HINTS_H
#define LAMBDA_HINTS_H

#ifdef __bpf__
#pragma clang diagnostic ignored "-Wignored-attributes" /* in casts, where the hint says nothing */
#define LAMBDA_MEMORY(name) __attribute__((btf_decl_tag("memory:" name)))
#else
#define LAMBDA_MEMORY(name)
#endif

#define __hot LAMBDA_MEMORY("hot") /* used by most requests: placed first if room is short */
#define __read_mostly LAMBDA_MEMORY("read_mostly") /* rarely written: placed away from what is written often */

#endif
