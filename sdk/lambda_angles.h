/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sine, cosine and tangent in integers, of any angle: the same bits on the NIC and on the host. The digits of 2/pi that count come
 * from a long table: Payne and Hanek, Radian Reduction for Trigonometric Functions, SIGNUM Newsletter 18, 1983. As in lambda_powers.h,
 * nothing loops or touches memory.
 */
#ifndef LAMBDA_ANGLES_H
#define LAMBDA_ANGLES_H

#include "lambda_powers.h"

/* significand * 2^(exponent - 63), with bit 63 set, negative if negative is 1; and the number of quarter turns. */
struct lambda_angle {
	uint64_t significand, negative;
	int exponent, quarters;
};

/* The 192 bits of 2/pi from the given one on, in three words; bit 64 is the first behind the point. */
LAMBDA_INTEGERS void lambda_two_over_pi(int from, uint64_t *first, uint64_t *second, uint64_t *third)
{
	static const uint64_t table[] = {
		0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
		0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
		0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
		0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab
	};
	uint64_t a, b, c, d;
	int shift = from & 63;

#define LAMBDA_WORDS(i) \
	case i: \
		a = table[i], b = table[i + 1], c = table[i + 2], d = table[i + 3]; \
		break;
	switch (from >> 6) { /* constants in the program, no memory */
		LAMBDA_WORDS(0)
		LAMBDA_WORDS(1)
		LAMBDA_WORDS(2)
		LAMBDA_WORDS(3)
		LAMBDA_WORDS(4)
		LAMBDA_WORDS(5)
		LAMBDA_WORDS(6)
		LAMBDA_WORDS(7)
		LAMBDA_WORDS(8)
		LAMBDA_WORDS(9)
		LAMBDA_WORDS(10)
		LAMBDA_WORDS(11)
		LAMBDA_WORDS(12)
		LAMBDA_WORDS(13)
		LAMBDA_WORDS(14)
		LAMBDA_WORDS(15)
	default:
		LAMBDA_WORDS(16)
	}
#undef LAMBDA_WORDS
	*first = a << shift | b >> 1 >> (63 - shift);
	*second = b << shift | c >> 1 >> (63 - shift);
	*third = c << shift | d >> 1 >> (63 - shift);
}

/*
 * An angle as quarters and at most half of one more. The product with 2/pi is computed without whole turns, and without the bits after
 * 128. No double is nearer to a quarter's end than 2^-62 (Muller, Elementary Functions), so that 62 bits are right.
 */
LAMBDA_INTEGERS struct lambda_angle lambda_reduced(uint64_t bits)
{
	uint64_t magnitude = bits & ~LAMBDA_SIGN, m = (bits & LAMBDA_FRACTION) | 1ULL << 52, first, second, third,
		 settle;
	int exponent = (int)(magnitude >> 52) - 0x3ff, zeros;
	struct lambda_angle angle = { m << 11, bits >> 63, exponent, 0 };
	unsigned __int128 product;

	if (magnitude <= 0x3fe921fb54442d18) /* pi / 4 */
		return angle;
	lambda_two_over_pi(exponent + 10, &first, &second, &third);
	product = ((unsigned __int128)(m * first) << 64) + (unsigned __int128)m * second + lambda_high(m, third);
	angle.quarters = ((int)(product >> 125) + 1) >> 1;
	angle.negative = (uint64_t)(product >> 125) & 1;
	product <<= 2;
	product = angle.negative ? -product : product;
	zeros = __builtin_clzll((uint64_t)(product >> 64) | 1);
	angle.significand = lambda_high(lambda_left(product, zeros) >> 64, 0xc90fdaa22168c235); /* pi / 2 */
	settle = angle.significand >> 63 ^ 1;
	angle.significand <<= settle;
	angle.exponent = -zeros - (int)settle;
	if (bits >> 63) {
		angle.negative ^= 1;
		angle.quarters = -angle.quarters;
	}
	return angle;
}

#define LAMBDA_FACTORIAL_13 6227020800ULL
#define LAMBDA_FACTORIAL_12 479001600ULL

/* (x - sin(x)) / x in units of 2^-66, for z = x^2 in units of 2^-64. Small terms are computed with 32 bits. */
LAMBDA_INTEGERS uint64_t lambda_sine_tail(uint64_t z)
{
#define LAMBDA_TERM(n) ((uint64_t)(((unsigned __int128)1 << 66) / (n)))
	const uint64_t small[] = { 1U << 31, (1U << 31) / (14 * 15), (1U << 31) / (14 * 15 * 16 * 17),
				   (1U << 31) / (14 * 15 * 16 * 17 * 18 * 19) };
	const uint64_t large[] = { LAMBDA_TERM(6), LAMBDA_TERM(120), LAMBDA_TERM(5040), LAMBDA_TERM(362880),
				   LAMBDA_TERM(39916800) };
	uint64_t sum = 0;

	_Pragma("clang loop unroll(full)") for (int i = 3; i >= 0; i--) sum = small[i] - ((z >> 32) * sum >> 32);
	sum = sum * (uint64_t)(((unsigned __int128)1 << 65) / LAMBDA_FACTORIAL_13) >> 30;
	_Pragma("clang loop unroll(full)") for (int i = 4; i >= 0; i--) sum = large[i] - lambda_high(z, sum);
	return lambda_high(z, sum);
#undef LAMBDA_TERM
}

/* 1 - cos(x), z = x^2, in units of 2^-64. */
LAMBDA_INTEGERS uint64_t lambda_cosine_tail(uint64_t z)
{
#define LAMBDA_TERM(n) ((uint64_t)(((unsigned __int128)1 << 64) / (n)))
	const uint64_t small[] = { 1U << 31, (1U << 31) / (13 * 14), (1U << 31) / (13 * 14 * 15 * 16),
				   (1U << 31) / (13 * 14 * 15 * 16 * 17 * 18) };
	const uint64_t large[] = { LAMBDA_TERM(2), LAMBDA_TERM(24), LAMBDA_TERM(720), LAMBDA_TERM(40320),
				   LAMBDA_TERM(3628800) };
	uint64_t sum = 0;

	_Pragma("clang loop unroll(full)") for (int i = 3; i >= 0; i--) sum = small[i] - ((z >> 32) * sum >> 32);
	sum = sum * ((1ULL << 61) / LAMBDA_FACTORIAL_12) >> 28;
	_Pragma("clang loop unroll(full)") for (int i = 4; i >= 0; i--) sum = large[i] - lambda_high(z, sum);
	return lambda_high(z, sum);
#undef LAMBDA_TERM
}

/* The sine of an angle that many quarters further on. */
LAMBDA_INTEGERS uint64_t lambda_sine(uint64_t x, int quarters)
{
	uint64_t magnitude = x & ~LAMBDA_SIGN, z, tail, settle;
	struct lambda_angle angle;

	if (magnitude >= LAMBDA_INFINITE)
		return LAMBDA_NAN;
	if (magnitude < 0x3e4ULL << 52) /* 2^-27: the next term is too small */
		return quarters ? LAMBDA_ONE : x;
	angle = lambda_reduced(x);
	angle.quarters += quarters;
	z = angle.significand >> (-1 - angle.exponent);
	z = lambda_high(z, z);
	if (angle.quarters & 1) {
		tail = lambda_cosine_tail(z);
		tail = tail ? -tail : ~0ULL; /* nearly 1 is rounded to 1 */
		return lambda_rounded(angle.quarters >> 1 & 1, tail >> 1 | (tail & 1), -1);
	}
	tail = angle.significand - (lambda_high(angle.significand, lambda_sine_tail(z)) >> 2);
	settle = tail >> 63 ^ 1;
	tail <<= settle;
	return lambda_rounded(angle.negative ^ (angle.quarters >> 1 & 1), tail >> 1 | (tail & 1),
			      angle.exponent - (int)settle);
}

#ifdef LAMBDA_FLOAT
LAMBDA_FLOAT uint64_t lambda_f64_sine(uint64_t x, int quarters)
{
	return lambda_sine(x, quarters);
}
#endif

#endif
