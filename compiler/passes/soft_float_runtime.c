/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lambda_float.h as global functions, in the bitcode that soft_float.cpp carries. */
#define LAMBDA_FLOAT __attribute__((noinline))
#include "lambda_float.h"
