/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Micro-C has no dynamic memory; its programs include this for the habit. */
#ifndef PIF_STDLIB_H
#define PIF_STDLIB_H

#include <stddef.h>

#endif
