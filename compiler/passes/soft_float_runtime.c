/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lambda_float.h, the elementary functions and lambda_wide.h as global functions, in the bitcode that soft_float.cpp carries. */
#define LAMBDA_FLOAT __attribute__((noinline))
#include "lambda_float.h"
#include "lambda_angles.h"
#define LAMBDA_WIDE __attribute__((noinline))
#include "lambda_wide.h"
