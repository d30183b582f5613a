/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Micro-C's memories. They are only hints here: BTF carries them to what places variables, and no code depends on them. Exporting
 * needs no mark: the host reads and writes a lambda's global variables by their names.
 */
#ifndef PIF_MEMORY_H
#define PIF_MEMORY_H

#include <lambda_hints.h>

#define __lmem LAMBDA_MEMORY("lmem")
#define __ctm LAMBDA_MEMORY("ctm")
#define __cls LAMBDA_MEMORY("cls")
#define __imem LAMBDA_MEMORY("imem")
#define __emem LAMBDA_MEMORY("emem")
#define __mem LAMBDA_MEMORY("mem")
#define __gpr
#define __xread
#define __xwrite
#define __shared
#define __import
#define __export
#define __declspec(...)

#endif
