/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where an author wants a global object to be. They are hints: BTF carries them to whoever places objects, and no result depends on
 * them. `lambdanic build --report` says of each what became of it.
 */
#ifndef LAMBDA_HINTS_H
#define LAMBDA_HINTS_H

#ifdef __bpf__
#pragma clang diagnostic ignored "-Wignored-attributes" /* in casts, where the hint says nothing */
#define LAMBDA_MEMORY(name) __attribute__((btf_decl_tag("memory:" name)))
#else
#define LAMBDA_MEMORY(name)
#endif

#define __hot LAMBDA_MEMORY("hot") /* used by most requests: first where room is short */
#define __read_mostly LAMBDA_MEMORY("read_mostly") /* rarely written: away from what is written often */

#endif
