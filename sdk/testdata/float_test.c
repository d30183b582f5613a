/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compares lambda_float.h with the processor's own floating point, on ROUNDS operand pairs of a fixed seed. Prints the first
 * difference of each operation; exits with 1 if there was any.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lambda_float.h"

static uint64_t state = 0x9e3779b97f4a7c15ULL;

/* Steele, Lea and Flood's SplitMix64 (OOPSLA 2014). */
static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* Any bits; or long runs of ones and zeros, and exponents at the ends of their range or near the middle. */
static uint64_t operand(int fraction, int width)
{
	uint64_t r = draw(), bits = draw(), exponents = (1ULL << (width - 1 - fraction)) - 1, exponent;
	uint64_t sign = (r >> 63) << (width - 1);

	if ((r & 3) == 0)
		return width == 64 ? bits : (uint32_t)bits;
	if (r & 4)
		bits = (~0ULL << (r >> 8 & 63)) ^ (1ULL << (r >> 16 & 63)) ^ (r & 8 ? ~0ULL >> (r >> 24 & 63) : 0);
	switch (r >> 4 & 7) {
	case 0:
		exponent = 0;
		break;
	case 1:
		exponent = exponents;
		break;
	case 2:
		exponent = exponents - (r >> 40 & 3);
		break;
	case 3:
		exponent = r >> 40 & 63;
		break;
	case 4:
		exponent = r >> 40;
		break;
	case 5:
		exponent = exponents / 2 + (r >> 40 & 63);
		break;
	default:
		exponent = exponents / 2 - 16 + (r >> 40 & 31);
	}
	return sign | (exponent & exponents) << fraction | (bits & ((1ULL << fraction) - 1));
}

static double f64(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, 8);
	return value;
}

static float f32(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, 4);
	return value;
}

static uint64_t bits64(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, 8);
	return bits;
}

static uint32_t bits32(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, 4);
	return bits;
}

static int failed;

/* If both are NaN, the result depends on the order in which the compiler passes the operands: any NaN will do. */
#define CHECK(name, ours, theirs, any_nan) \
	do { \
		static int told; \
		uint64_t _o = (ours), _t = (theirs); \
		if (_o != _t && !(any_nan) && !told++) { \
			printf("%s(%#lx, %#lx, %#lx) = %#lx, processor: %#lx\n", name, a, b, c, _o, _t); \
			failed = 1; \
		} \
	} while (0)

/* How many NaNs a product and a sum meet, including one that the product makes. */
#define NANS(x, y, z) (isnan(x) + isnan(y) + isnan(z) + (!isnan(x) && !isnan(y) && isnan((x) * (y))))

#define RELATION(x, y) ((x) == (y) ? FLOAT_EQUAL : (x) < (y) ? FLOAT_LESS : (x) > (y) ? FLOAT_GREATER : FLOAT_UNORDERED)

static uint64_t to_i64(double x)
{
	if (x != x)
		return 0;
	if (x >= 0x1p63)
		return ~0ULL >> 1;
	return x < -0x1p63 ? 1ULL << 63 : (uint64_t)(int64_t)x;
}

static uint64_t to_u64(double x)
{
	if (!(x > 0))
		return 0;
	return x >= 0x1p64 ? ~0ULL : (uint64_t)x;
}

static void check64(uint64_t a, uint64_t b, uint64_t c)
{
	volatile double x = f64(a), y = f64(b), z = f64(c);
	int two = isnan(x) && isnan(y);

	CHECK("f64_add", lambda_f64_add(a, b), bits64(x + y), two);
	CHECK("f64_sub", lambda_f64_sub(a, b), bits64(x - y), two);
	CHECK("f64_mul", lambda_f64_mul(a, b), bits64(x * y), two);
	CHECK("f64_div", lambda_f64_div(a, b), bits64(x / y), two);
	CHECK("f64_sqrt", lambda_f64_sqrt(a), bits64(__builtin_sqrt(x)), 0);
	CHECK("f64_fma", lambda_f64_fma(a, b, c), bits64(__builtin_fma(x, y, z)), isnan(x) + isnan(y) + isnan(z) > 1);
	CHECK("f64_mul_add", lambda_f64_mul_add(a, b, c), bits64(x * y + z), NANS(x, y, z) > 1);
	CHECK("f64_add_mul", lambda_f64_add_mul(a, b, c), bits64(x + y * z), NANS(y, z, x) > 1);
	CHECK("f64_rem", lambda_f64_rem(a, b), bits64(fmod(x, y)), two);
	CHECK("f64_compare", lambda_f64_compare(a, b), RELATION(x, y), 0);
	CHECK("f64_to_f32", lambda_f64_to_f32(a), bits32((float)x), 0);
	CHECK("f64_to_i64", lambda_f64_to_i64(a), to_i64(x), 0);
	CHECK("f64_to_u64", lambda_f64_to_u64(a), to_u64(x), 0);
	CHECK("f64 rint", lambda_f64_round(a, FLOAT_EVEN), bits64(__builtin_rint(x)), 0);
	CHECK("f64 floor", lambda_f64_round(a, FLOAT_DOWN), bits64(__builtin_floor(x)), 0);
	CHECK("f64 ceil", lambda_f64_round(a, FLOAT_UP), bits64(__builtin_ceil(x)), 0);
	CHECK("f64 trunc", lambda_f64_round(a, FLOAT_ZERO), bits64(__builtin_trunc(x)), 0);
	CHECK("f64 round", lambda_f64_round(a, FLOAT_AWAY), bits64(round(x)), 0);
}

static void check32(uint64_t a, uint64_t b, uint64_t c)
{
	volatile float x = f32(a), y = f32(b), z = f32(c);
	int two = isnan(x) && isnan(y);

	CHECK("f32_add", lambda_f32_add(a, b), bits32(x + y), two);
	CHECK("f32_sub", lambda_f32_sub(a, b), bits32(x - y), two);
	CHECK("f32_mul", lambda_f32_mul(a, b), bits32(x * y), two);
	CHECK("f32_div", lambda_f32_div(a, b), bits32(x / y), two);
	CHECK("f32_sqrt", lambda_f32_sqrt(a), bits32(__builtin_sqrtf(x)), 0);
	CHECK("f32_fma", lambda_f32_fma(a, b, c), bits32(__builtin_fmaf(x, y, z)), isnan(x) + isnan(y) + isnan(z) > 1);
	CHECK("f32_mul_add", lambda_f32_mul_add(a, b, c), bits32(x * y + z), NANS(x, y, z) > 1);
	CHECK("f32_add_mul", lambda_f32_add_mul(a, b, c), bits32(x + y * z), NANS(y, z, x) > 1);
	CHECK("f32_compare", lambda_f32_compare(a, b), RELATION(x, y), 0);
	CHECK("f32_to_f64", lambda_f32_to_f64(a), bits64((double)x), 0);
	CHECK("f32_to_i64", lambda_f32_to_i64(a), to_i64(x), 0);
	CHECK("f32_to_u64", lambda_f32_to_u64(a), to_u64(x), 0);
	CHECK("f32 rint", lambda_f32_round(a, FLOAT_EVEN), bits32(__builtin_rintf(x)), 0);
	CHECK("f32 floor", lambda_f32_round(a, FLOAT_DOWN), bits32(__builtin_floorf(x)), 0);
	CHECK("f32 ceil", lambda_f32_round(a, FLOAT_UP), bits32(__builtin_ceilf(x)), 0);
	CHECK("f32 trunc", lambda_f32_round(a, FLOAT_ZERO), bits32(__builtin_truncf(x)), 0);
	CHECK("f32 round", lambda_f32_round(a, FLOAT_AWAY), bits32(roundf(x)), 0);
}

static void check_integer(uint64_t a)
{
	uint64_t b = 0, c = 0;
	volatile uint64_t x = a;

	CHECK("u64_to_f64", lambda_u64_to_f64(a), bits64((double)x), 0);
	CHECK("i64_to_f64", lambda_i64_to_f64(a), bits64((double)(int64_t)x), 0);
	CHECK("u64_to_f32", lambda_u64_to_f32(a), bits32((float)x), 0);
	CHECK("i64_to_f32", lambda_i64_to_f32(a), bits32((float)(int64_t)x), 0);
}

int main(int argc, char **argv)
{
	static const uint64_t edges[] = {
		0, 1, 2, 0x3fe, 0x3ff, 0x400, 0x433, 0x434, 0x43d, 0x43e, 0x43f, 0x7fe, 0x7ff
	};
	const int n = 4 * sizeof(edges) / sizeof(*edges);
	long rounds = argc > 1 ? atol(argv[1]) : 1000000;

	for (int i = 0; i < n * n; i++) {
		uint64_t v[2];

		for (int j = 0; j < 2; j++) {
			int k = j ? i / n : i % n;
			v[j] = (k & 1 ? F64_SIGN : 0) | edges[k / 4] << 52 | (k & 2 ? 0xfffffffffffffULL : 0);
		}
		check64(v[0], v[1], v[0] ^ F64_SIGN);
		check64(v[0], v[1], v[1] + 1);
		check32(v[0] >> 32, v[1] >> 32, v[0] >> 31);
	}
	for (long i = 0; i < rounds; i++) {
		uint64_t a = operand(52, 64), b = operand(52, 64), c = operand(52, 64);

		if (!(i & 7)) /* sums that cancel */
			c = bits64(-(f64(a) * f64(b))) + (draw() & 3);
		check64(a, b, c);
		check64(a, a + (draw() & 7), c);
		check_integer(draw() >> (draw() & 63));
		check_integer(a);
		a = operand(23, 32), b = operand(23, 32), c = operand(23, 32);
		if (!(i & 7))
			c = bits32(-(f32(a) * f32(b))) + (draw() & 3);
		check32(a, b, c);
		check32(a, (a ^ (draw() & 1) << 31) + (draw() & 7), c);
	}
	return failed;
}
