/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Logarithms, exponentials and powers in integers: the same bits on the NIC and on the host, and on the NIC faster than floating
 * point. A logarithm is right to 66 bits, since the relative error of x^y is the error of y * log(x): up to 745 times that of log(x)
 * (Muller, Elementary Functions). The series are those of Abramowitz and Stegun, 4.1.27 and 4.2.1. Nothing loops or touches memory.
 * Numbers are passed as their bit patterns, as in lambda_float.h.
 */
#ifndef LAMBDA_POWERS_H
#define LAMBDA_POWERS_H

#define LAMBDA_SIGN 0x8000000000000000ULL
#define LAMBDA_INFINITE 0x7ff0000000000000ULL
#define LAMBDA_ONE 0x3ff0000000000000ULL
#define LAMBDA_NAN 0x7ff8000000000000ULL
#define LAMBDA_FRACTION 0x000fffffffffffffULL
#define LAMBDA_INTEGERS static inline __attribute__((always_inline))

/* significand * 2^(exponent - 127), with bit 127 set unless it is 0; negative if negative is 1. */
struct lambda_long {
	unsigned __int128 significand;
	int exponent;
	uint64_t negative;
};

/* The upper half of a product. */
LAMBDA_INTEGERS uint64_t lambda_high(uint64_t a, uint64_t b)
{
	return (unsigned __int128)a * b >> 64;
}

/* The upper half of a product of 128 bits each, less at most three units. */
LAMBDA_INTEGERS unsigned __int128 lambda_high_long(unsigned __int128 a, unsigned __int128 b)
{
	uint64_t a_high = a >> 64, b_high = b >> 64;

	return (unsigned __int128)a_high * b_high + lambda_high(a_high, b) + lambda_high(a, b_high);
}

/* Shifts by less than 64 bits. */
LAMBDA_INTEGERS unsigned __int128 lambda_left(unsigned __int128 a, int by)
{
	uint64_t high = a >> 64, low = a;

	return (unsigned __int128)(high << by | low >> 1 >> (63 - by)) << 64 | low << by;
}

LAMBDA_INTEGERS unsigned __int128 lambda_right(unsigned __int128 a, int by)
{
	uint64_t high = a >> 64, low = a;

	return (unsigned __int128)(high >> by) << 64 | (low >> by | high << 1 << (63 - by));
}

/* The double nearest to significand * 2^(exponent - 62), also a subnormal or infinity. The significand has bit 62 set. */
LAMBDA_INTEGERS uint64_t lambda_rounded(uint64_t negative, uint64_t significand, int exponent)
{
	uint64_t bits = 0, lost;

	exponent += 1022;
	if (exponent >= 0x7fe)
		return negative << 63 | LAMBDA_INFINITE;
	if (exponent >= 0) {
		bits = (uint64_t)exponent << 52; /* the leading one adds to it */
	} else {
		lost = exponent < -63 ? 63 : -exponent;
		significand = significand >> lost | !!(significand & ((1ULL << lost) - 1));
	}
	bits += (significand + 0x1ff + (significand >> 10 & 1)) >> 10;
	return negative << 63 | bits;
}

/* The next 31 bits of rest / divisor, for a lesser rest. The estimate is at most one too large, as the divisor has 54 bits or more. */
LAMBDA_INTEGERS uint64_t lambda_quotient(uint64_t *rest, uint64_t divisor)
{
	uint64_t digit = (*rest << 9) / (divisor >> 22);
	uint64_t left = (*rest << 31) - digit * divisor;
	uint64_t excess = left >> 63;

	*rest = left + (divisor & -excess);
	return digit - excess;
}

/* z/3 + z^2/5 + z^3/7 ... in units of 2^-69, for z in units of 2^-68, at most 0.04. Small terms are computed with 32 bits. */
LAMBDA_INTEGERS uint64_t lambda_artanh_tail(uint64_t z)
{
#define LAMBDA_TERM(n) ((uint64_t)(((unsigned __int128)1 << 65) / (n)) + 1) /* for what is cut off, at most 2 */
	const uint64_t small[] = { (1ULL << 34) / 17, (1ULL << 34) / 19, (1ULL << 34) / 21, (1ULL << 34) / 23,
				   (1ULL << 34) / 25, (1ULL << 34) / 27, (1ULL << 34) / 29 };
	const uint64_t large[] = { LAMBDA_TERM(3),  LAMBDA_TERM(5),  LAMBDA_TERM(7), LAMBDA_TERM(9),
				   LAMBDA_TERM(11), LAMBDA_TERM(13), LAMBDA_TERM(15) };
	uint64_t sum = 0;

	_Pragma("clang loop unroll(full)") for (int i = 6; i >= 0; i--) sum = small[i] + ((z >> 32) * sum >> 36);
	sum <<= 31;
	_Pragma("clang loop unroll(full)") for (int i = 6; i >= 0; i--) sum = large[i] + (lambda_high(z, sum) >> 4);
	return lambda_high(z, sum);
#undef LAMBDA_TERM
}

/*
 * log2(x) of a positive number: k + 2/ln(2) * artanh(s), s = (m - 1) / (m + 1), where x = 2^k * m, 3/4 <= m < 3/2. It is 0 only
 * if x is 1. Flags are computed without branches: the verifier would follow both values of a flag that a branch set up to its
 * use.
 */
LAMBDA_INTEGERS struct lambda_long lambda_log2_long(uint64_t magnitude)
{
	const unsigned __int128 factor = (unsigned __int128)0xb8aa3b295c17f0bb << 64 |
					 0xbe87fed0691d3e88; /* 1 / (2 ln 2) */
	uint64_t normal = ((magnitude >> 52) + 0x7ff) >> 11;
	uint64_t m = (magnitude & LAMBDA_FRACTION) | normal << 52, rest, divisor, first, second, below;
	int zeros = __builtin_clzll(m) - 11, k = (int)(magnitude >> 52) - 0x3fe - (int)normal - zeros, shift;
	struct lambda_long result;
	unsigned __int128 quotient, part;

	m <<= zeros;
	below = m >> 51 & 1;
	k += (int)below;
	m <<= below ^ 1; /* in units of 2^-53 */
	rest = ((m - (1ULL << 53)) ^ -below) + below;
	divisor = m + (1ULL << 53);
	shift = __builtin_clzll(rest | 1) - 11; /* 1 or more */
	rest <<= shift;
	first = lambda_quotient(&rest, divisor);
	second = lambda_quotient(&rest, divisor);
	/* s * 2^shift, in units of 2^-128 */
	quotient = (unsigned __int128)(first << 31 | second) << 66;
	quotient |= (unsigned __int128)lambda_quotient(&rest, divisor) << 35;
	part = lambda_high_long(quotient, factor);
	rest = lambda_right(quotient >> 62, shift); /* s, in units of 2^-66 */
	part += (unsigned __int128)(uint64_t)(part >> 64) * lambda_artanh_tail(lambda_high(rest, rest)) >> 5;

	result.negative = below;
	result.significand = part;
	result.exponent = 1 - shift;
	if (k) {
		below ^= (uint64_t)(unsigned int)k >> 31;
		part = lambda_right(part >> 10, shift); /* in units of 2^-116 */
		result.negative = (unsigned int)k >> 31;
		result.significand = (unsigned __int128)(uint64_t)(k < 0 ? -k : k) << 116;
		result.significand += below ? -part : part;
		result.exponent = 11;
	}
	zeros = __builtin_clzll((uint64_t)(result.significand >> 64) | 1);
	result.significand = lambda_left(result.significand, zeros);
	result.exponent -= zeros;
	return result;
}

/* log2(x) * factor * 2^exponent; factor is in units of 2^-128, and at least 1/2. */
LAMBDA_INTEGERS uint64_t lambda_logarithm(uint64_t x, uint64_t high, uint64_t low, int exponent)
{
	uint64_t top, settle;
	struct lambda_long y;

	if (x - 1 >= LAMBDA_INFINITE - 1) {
		if (!(x << 1))
			return LAMBDA_SIGN | LAMBDA_INFINITE;
		return x == LAMBDA_INFINITE ? x : LAMBDA_NAN;
	}
	if (x == LAMBDA_ONE)
		return 0;
	y = lambda_log2_long(x);
	y.significand = lambda_high_long(y.significand, (unsigned __int128)high << 64 | low);
	settle = (uint64_t)(y.significand >> 127) ^ 1;
	y.significand <<= settle;
	top = y.significand >> 64;
	top = top >> 1 | (top & 1) | !!(uint64_t)y.significand;
	return lambda_rounded(y.negative, top, y.exponent + exponent - (int)settle);
}

/* e^w in units of 2^-63, for w in units of 2^-66, below ln(2) / 4. Small terms are computed with 32 bits. */
LAMBDA_INTEGERS uint64_t lambda_exp_series(uint64_t w)
{
	const uint64_t small[] = { 1U << 31,
				   (1U << 31) / 9,
				   (1U << 31) / (9 * 10),
				   (1U << 31) / (9 * 10 * 11),
				   (1U << 31) / (9 * 10 * 11 * 12),
				   (1U << 31) / (9 * 10 * 11 * 12 * 13) };
	const uint64_t large[] = { 1ULL << 63,	      1ULL << 63,	  (1ULL << 63) / 2,   (1ULL << 63) / 6,
				   (1ULL << 63) / 24, (1ULL << 63) / 120, (1ULL << 63) / 720, (1ULL << 63) / 5040 };
	uint64_t sum = 0;

	_Pragma("clang loop unroll(full)") for (int i = 5; i >= 0; i--) sum = small[i] + ((w >> 32) * sum >> 34);
	sum = sum * ((1ULL << 47) / 40320) >> 15;
	_Pragma("clang loop unroll(full)") for (int i = 7; i >= 0; i--) sum = large[i] + (lambda_high(w, sum) >> 2);
	return sum;
}

/* 2^(y * factor), negative if negative is 1. The exponent's fraction is some quarters and less than one more. */
LAMBDA_INTEGERS uint64_t lambda_power_of_two(uint64_t y, struct lambda_long factor, uint64_t negative)
{
	int exponent = (int)(y >> 52 & 0x7ff) - 0x3ff + factor.exponent, half, quarters;
	uint64_t significand = (y & LAMBDA_FRACTION) << 11 | 1ULL << 63, down = y >> 63 ^ factor.negative, root;
	unsigned __int128 power = (unsigned __int128)significand * (uint64_t)(factor.significand >> 64) +
				  lambda_high(significand, factor.significand);

	if (exponent > 10)
		return negative << 63 | (down ? 0 : LAMBDA_INFINITE);
	if (exponent < -55)
		return negative << 63 | LAMBDA_ONE;
	half = (11 - exponent) >> 1;
	power = lambda_right(lambda_right(power, half), 11 - exponent - half); /* in units of 2^-115 */
	power = down ? -power : power;
	quarters = (int)(power >> 113) & 3;
	root = quarters & 1 ? 0x9837f0518db8a970 : 1ULL << 63; /* 2^(quarters / 4) */
	if (quarters & 2)
		root = quarters & 1 ? 0xd744fccad69d6af4 : 0xb504f333f9de6484;
	significand = lambda_exp_series(lambda_high((uint64_t)(power >> 49), 0xb17217f7d1cf79ab));
	return lambda_rounded(negative, lambda_high(significand, root), (int)((__int128)power >> 115));
}

/* 2^(x * factor), factor in units of 2^-127 and from 1 to 2. */
LAMBDA_INTEGERS uint64_t lambda_exponential(uint64_t x, uint64_t high, uint64_t low)
{
	struct lambda_long factor = { (unsigned __int128)high << 64 | low, 0, 0 };

	return x << 1 > LAMBDA_INFINITE << 1 ? LAMBDA_NAN : lambda_power_of_two(x, factor, 0);
}

/* 0 where a number has a fraction, 1 where it is odd, 2 where it is even. */
LAMBDA_INTEGERS int lambda_parity(uint64_t magnitude)
{
	int below = 1075 - (int)(magnitude >> 52); /* how many bits are below its unit */
	uint64_t significand = (magnitude & LAMBDA_FRACTION) | 1ULL << 52;

	if (below < 0)
		return 2;
	if (below > 52 || significand & ((1ULL << below) - 1))
		return 0;
	return significand >> below & 1 ? 1 : 2;
}

/* x^y where x is 0 or infinite, or y is infinite. */
LAMBDA_INTEGERS uint64_t lambda_power_limit(uint64_t x, uint64_t y, uint64_t negative)
{
	uint64_t magnitude = x & ~LAMBDA_SIGN, up = y >> 63 ^ (magnitude > LAMBDA_ONE);

	if (y << 1 == LAMBDA_INFINITE << 1 && magnitude == LAMBDA_ONE)
		return LAMBDA_ONE;
	return (y << 1 == LAMBDA_INFINITE << 1 ? 0 : negative << 63) | (up ? LAMBDA_INFINITE : 0);
}

/* x^y. */
LAMBDA_INTEGERS uint64_t lambda_power(uint64_t x, uint64_t y)
{
	uint64_t magnitude = x & ~LAMBDA_SIGN, negative = 0;

	if (!(y << 1) || x == LAMBDA_ONE)
		return LAMBDA_ONE;
	if (magnitude > LAMBDA_INFINITE || y << 1 > LAMBDA_INFINITE << 1)
		return LAMBDA_NAN;
	if (x >> 63) {
		int parity = lambda_parity(y & ~LAMBDA_SIGN);

		if (!parity && magnitude - 1 < LAMBDA_INFINITE - 1)
			return LAMBDA_NAN;
		negative = parity & 1;
	}
	if (magnitude - 1 >= LAMBDA_INFINITE - 1 || y << 1 == LAMBDA_INFINITE << 1)
		return lambda_power_limit(x, y, negative);
	if (magnitude == LAMBDA_ONE)
		return negative << 63 | LAMBDA_ONE;
	return lambda_power_of_two(y, lambda_log2_long(magnitude), negative);
}

/* The functions that programs on the NIC call, if LAMBDA_FLOAT says how to define them. */
#ifdef LAMBDA_FLOAT
LAMBDA_FLOAT uint64_t lambda_f64_logarithm(uint64_t x, uint64_t high, uint64_t low, int exponent)
{
	return lambda_logarithm(x, high, low, exponent);
}

LAMBDA_FLOAT uint64_t lambda_f64_exponential(uint64_t x, uint64_t high, uint64_t low)
{
	return lambda_exponential(x, high, low);
}

LAMBDA_FLOAT uint64_t lambda_f64_power(uint64_t x, uint64_t y)
{
	return lambda_power(x, y);
}
#endif

#endif
