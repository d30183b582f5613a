/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fixed point, cheaper than float and double: __fixed has 16 bits before and 16 behind the point (Q16.16), __fixed64
 * 32 and 32 (Q32.32). Both are integers, whose + - < == and unary minus apply: an addition takes one instruction, while one of floats
 * takes a call. Overflow wraps.
 */
#ifndef LAMBDA_FIXED_H
#define LAMBDA_FIXED_H

#include <stdint.h>

typedef int32_t __fixed;
typedef int64_t __fixed64;

#define FIXED_ONE (1 << 16)
#define FIXED64_ONE (1LL << 32)

/* A constant, as FIXED(3.14), rounded to the nearest. */
#define FIXED(x) ((__fixed)((x) * 65536.0 + ((x) < 0 ? -0.5 : 0.5)))
#define FIXED64(x) ((__fixed64)((x) * 4294967296.0 + ((x) < 0 ? -0.5 : 0.5)))

static inline __fixed fixed_from_int(int32_t n)
{
	return (uint32_t)n << 16;
}

static inline __fixed64 fixed64_from_int(int64_t n)
{
	return (uint64_t)n << 32;
}

/* Rounded down. */
static inline int32_t fixed_to_int(__fixed x)
{
	return x >> 16;
}

static inline int64_t fixed64_to_int(__fixed64 x)
{
	return x >> 32;
}

static inline __fixed64 fixed_widen(__fixed x)
{
	return (uint64_t)(int64_t)x << 16;
}

/* Rounded to the nearest, halves up. */
static inline __fixed fixed_narrow(__fixed64 x)
{
	return (x + (1 << 15)) >> 16;
}

/* Rounded to the nearest, halves up. */
static inline __fixed fixed_mul(__fixed x, __fixed y)
{
	return ((int64_t)x * y + (1 << 15)) >> 16;
}

/* The middle of the product's 128 bits, rounded to the nearest, halves up. */
static inline __fixed64 fixed64_mul(__fixed64 x, __fixed64 y)
{
	int64_t x1 = x >> 32, y1 = y >> 32;
	uint64_t x0 = (uint32_t)x, y0 = (uint32_t)y;
	uint64_t low = x0 * y0, cross = (uint64_t)x1 * y0 + (uint64_t)y1 * x0;

	return ((uint64_t)(x1 * y1) << 32) + cross + (low >> 32) + (low >> 31 & 1);
}

/* Rounded towards zero. y must not be 0. */
static inline __fixed fixed_div(__fixed x, __fixed y)
{
	return (int64_t)((uint64_t)(int64_t)x << 16) / y;
}

/* Rounded towards zero: first the integer, then one bit at a time, as the remainder may have all 64. y must not be 0. */
static inline __fixed64 fixed64_div(__fixed64 x, __fixed64 y)
{
	uint64_t a = x < 0 ? -(uint64_t)x : x, b = y < 0 ? -(uint64_t)y : y;
	uint64_t quotient = a / b, rest = a % b;

	for (int i = 0; i < 32; i++) {
		uint64_t carry = rest >> 63;

		rest <<= 1;
		quotient <<= 1;
		if (carry || rest >= b) {
			rest -= b;
			quotient |= 1;
		}
	}
	return (x < 0) != (y < 0) ? -quotient : quotient;
}

/* Rounded down; 0 for a negative number. */
static inline __fixed fixed_sqrt(__fixed x)
{
	uint64_t rest = x < 0 ? 0 : (uint64_t)x << 16, root = 0;

	for (uint64_t bit = 1ULL << 46; bit; bit >>= 2) {
		if (rest >= root + bit) {
			rest -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return root;
}

#endif
