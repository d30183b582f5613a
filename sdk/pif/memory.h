/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Micro-C's memories. They are hints here: BTF carries them to whoever places objects, and no code depends on them. Objects are
 * exported as they are: the host reads and writes a lambda's globals by their names.
 */
#ifndef PIF_MEMORY_H
#define PIF_MEMORY_H

#ifdef __bpf__
#pragma clang diagnostic ignored "-Wignored-attributes" /* in casts, where the hint says nothing */
#define PIF_MEMORY(name) __attribute__((btf_decl_tag("memory:" name)))
#else
#define PIF_MEMORY(name)
#endif

#define __lmem PIF_MEMORY("lmem")
#define __ctm PIF_MEMORY("ctm")
#define __cls PIF_MEMORY("cls")
#define __imem PIF_MEMORY("imem")
#define __emem PIF_MEMORY("emem")
#define __mem PIF_MEMORY("mem")
#define __gpr
#define __xread
#define __xwrite
#define __shared
#define __import
#define __export
#define __declspec(...)

#endif
