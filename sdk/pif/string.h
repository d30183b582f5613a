/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PIF_STRING_H
#define PIF_STRING_H

#define memcpy(to, from, n) __builtin_memcpy(to, from, n)
#define memmove(to, from, n) __builtin_memmove(to, from, n)
#define memset(to, c, n) __builtin_memset(to, c, n)

#endif
