/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * C's <math.h>: the same bits on the NIC and on the host. The functions here are exact or correctly rounded; the elementary functions
 * are in lambda_elementary.h. Floating point sets neither errno nor exceptions.
 */
#ifndef LAMBDA_MATH_H
#define LAMBDA_MATH_H

#if defined(__bpf__) && !defined(LAMBDA_NFP)
#include <stdint.h>
/* The compiler adds them. */
__attribute__((const)) uint64_t lambda_f64_fma(uint64_t, uint64_t, uint64_t);
__attribute__((const)) uint32_t lambda_f32_fma(uint32_t, uint32_t, uint32_t);
__attribute__((const)) uint64_t lambda_f64_rem(uint64_t, uint64_t);
__attribute__((const)) uint64_t lambda_f64_logarithm(uint64_t, uint64_t, uint64_t, int);
__attribute__((const)) uint64_t lambda_f64_exponential(uint64_t, uint64_t, uint64_t);
__attribute__((const)) uint64_t lambda_f64_power(uint64_t, uint64_t);
__attribute__((const)) uint64_t lambda_f64_sine(uint64_t, int);
#else
#include "lambda_float.h"
#endif
#include "lambda_angles.h"
#include "lambda_powers.h"

typedef float float_t;
typedef double double_t;

#define HUGE_VAL __builtin_huge_val()
#define HUGE_VALF __builtin_huge_valf()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define isnormal(x) __builtin_isnormal(x)
#define signbit(x) __builtin_signbit(x)
#define isgreater(x, y) __builtin_isgreater(x, y)
#define isgreaterequal(x, y) __builtin_isgreaterequal(x, y)
#define isless(x, y) __builtin_isless(x, y)
#define islessequal(x, y) __builtin_islessequal(x, y)
#define islessgreater(x, y) __builtin_islessgreater(x, y)
#define isunordered(x, y) __builtin_isunordered(x, y)

static inline uint64_t lambda_f64_bits(double x)
{
	uint64_t bits;

	__builtin_memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static inline uint32_t lambda_f32_bits(float x)
{
	uint32_t bits;

	__builtin_memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static inline double lambda_f64_from(uint64_t bits)
{
	double x;

	__builtin_memcpy(&x, &bits, sizeof(x));
	return x;
}

static inline float lambda_f32_from(uint32_t bits)
{
	float x;

	__builtin_memcpy(&x, &bits, sizeof(x));
	return x;
}

/* Defines a function for double and for float. */
#define LAMBDA_MATH_UNARY(name, builtin) \
	static inline double name(double x) \
	{ \
		return builtin(x); \
	} \
	static inline float name##f(float x) \
	{ \
		return builtin(x); \
	}

LAMBDA_MATH_UNARY(fabs, __builtin_elementwise_abs)
LAMBDA_MATH_UNARY(sqrt, __builtin_elementwise_sqrt)
LAMBDA_MATH_UNARY(floor, __builtin_elementwise_floor)
LAMBDA_MATH_UNARY(ceil, __builtin_elementwise_ceil)
LAMBDA_MATH_UNARY(trunc, __builtin_elementwise_trunc)
LAMBDA_MATH_UNARY(round, __builtin_elementwise_round)
LAMBDA_MATH_UNARY(rint, __builtin_elementwise_rint)
LAMBDA_MATH_UNARY(nearbyint, __builtin_elementwise_rint)

static inline long lrint(double x)
{
	return rint(x);
}

static inline long lround(double x)
{
	return round(x);
}

static inline long lrintf(float x)
{
	return rintf(x);
}

static inline long lroundf(float x)
{
	return roundf(x);
}

static inline double copysign(double x, double y)
{
	return __builtin_elementwise_copysign(x, y);
}

static inline float copysignf(float x, float y)
{
	return __builtin_elementwise_copysign(x, y);
}

/* In integers on the host as well: its processor may lack fma, and lambdas are not linked with its libm. */
static inline double fma(double x, double y, double z)
{
	return lambda_f64_from(lambda_f64_fma(lambda_f64_bits(x), lambda_f64_bits(y), lambda_f64_bits(z)));
}

static inline float fmaf(float x, float y, float z)
{
	return lambda_f32_from(lambda_f32_fma(lambda_f32_bits(x), lambda_f32_bits(y), lambda_f32_bits(z)));
}

static inline double fmod(double x, double y)
{
	return lambda_f64_from(lambda_f64_rem(lambda_f64_bits(x), lambda_f64_bits(y)));
}

static inline float fmodf(float x, float y)
{
	return fmod(x, y);
}

/* If only one operand is a number, that one. */
#define LAMBDA_MATH_CHOICE(name, type, better) \
	static inline type name(type x, type y) \
	{ \
		return isnan(y) || x better y ? x : y; \
	}

LAMBDA_MATH_CHOICE(fmin, double, <)
LAMBDA_MATH_CHOICE(fminf, float, <)
LAMBDA_MATH_CHOICE(fmax, double, >)
LAMBDA_MATH_CHOICE(fmaxf, float, >)

static inline double fdim(double x, double y)
{
	return x <= y ? 0 : x - y;
}

static inline float fdimf(float x, float y)
{
	return x <= y ? 0 : x - y;
}

/* x * 2^n, rounded once: all powers but the last leave the number normal. */
static inline double scalbn(double x, int n)
{
	if (n > 1023) {
		x *= 0x1p1023;
		n -= 1023;
		if (n > 1023) {
			x *= 0x1p1023;
			n = n - 1023 > 1023 ? 1023 : n - 1023;
		}
	} else if (n < -1022) {
		x *= 0x1p-969;
		n += 969;
		if (n < -1022) {
			x *= 0x1p-969;
			n = n + 969 < -1022 ? -1022 : n + 969;
		}
	}
	return x * lambda_f64_from((uint64_t)(0x3ff + n) << 52);
}

static inline double ldexp(double x, int n)
{
	return scalbn(x, n);
}

static inline float ldexpf(float x, int n)
{
	return scalbn(x, n);
}

/* A number as a fraction in [1/2, 1) and a power of two. */
static inline double frexp(double x, int *n)
{
	uint64_t bits = lambda_f64_bits(x), exponent = bits >> 52 & 0x7ff;

	*n = 0;
	if (exponent == 0x7ff || x == 0)
		return x;
	if (!exponent) {
		bits = lambda_f64_bits(x * 0x1p64);
		exponent = bits >> 52 & 0x7ff;
		*n = -64;
	}
	*n += (int)exponent - 0x3fe;
	return lambda_f64_from((bits & ~(0x7ffULL << 52)) | 0x3feULL << 52);
}

static inline float frexpf(float x, int *n)
{
	return frexp(x, n);
}

/* A number's integer and fraction. */
static inline double modf(double x, double *whole)
{
	*whole = trunc(x);
	return copysign(isinf(x) ? 0 : x - *whole, x);
}

static inline float modff(float x, float *whole)
{
	*whole = truncf(x);
	return copysignf(isinf(x) ? 0 : x - *whole, x);
}

#include "lambda_elementary.h"

#endif
