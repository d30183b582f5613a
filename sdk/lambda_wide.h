/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Division of unsigned 128-bit integers by 64-bit divisions, for BPF, whose compiler lacks it, and for processes, which do not link
 * the compiler's library. A number is passed as its two halves. As in lambda_float.h, no function has a loop, touches memory or
 * takes more than five arguments.
 */
#ifndef LAMBDA_WIDE_H
#define LAMBDA_WIDE_H

/* How the functions that the compiler's arithmetic pass calls are defined. */
#ifndef LAMBDA_WIDE
#define LAMBDA_WIDE static inline
#endif
#define LAMBDA_WIDE_PART static inline __attribute__((always_inline))

/*
 * The next digit of 32 bits of (high << 32 | next) / divisor. high is less than the divisor, whose bit 63 is set. The estimate by
 * the divisor's upper half is at most two too large (Knuth, The Art of Computer Programming, 4.3.1, theorem B).
 */
LAMBDA_WIDE_PART __UINT64_TYPE__ wide_digit(__UINT64_TYPE__ high, __UINT64_TYPE__ next, __UINT64_TYPE__ divisor)
{
	__UINT64_TYPE__ top = divisor >> 32, bottom = divisor & 0xffffffff;
	__UINT64_TYPE__ digit = high / top, rest = high % top;

	for (int i = 0; i < 2; i++) { /* unrolled */
		if (rest >> 32 || (digit <= 0x100000000 && digit * bottom <= (rest << 32 | next)))
			break;
		digit--;
		rest += top;
	}
	return digit;
}

/* high:low / divisor; high is less than the divisor. */
LAMBDA_WIDE_PART __UINT64_TYPE__ wide_divide(__UINT64_TYPE__ high, __UINT64_TYPE__ low, __UINT64_TYPE__ divisor)
{
	int shift = __builtin_clzll(divisor);
	__UINT64_TYPE__ first, second;

	divisor <<= shift;
	high = high << shift | low >> 1 >> (63 - shift);
	low <<= shift;
	first = wide_digit(high, low >> 32, divisor);
	high = (high << 32 | low >> 32) - first * divisor;
	second = wide_digit(high, low & 0xffffffff, divisor);
	return (first << 32) + second;
}

/* The lower half of a / b. A division by zero behaves as the processor's 64-bit division. */
LAMBDA_WIDE __UINT64_TYPE__ lambda_u128_div_low(__UINT64_TYPE__ a_high, __UINT64_TYPE__ a_low, __UINT64_TYPE__ b_high,
						__UINT64_TYPE__ b_low)
{
	int shift;
	__UINT64_TYPE__ quotient;
	unsigned __int128 rest;

	if (!b_high) {
#ifdef __bpf__
		if (!b_low)
			return 0;
#endif
		return wide_divide(a_high < b_low ? a_high : a_high % b_low, a_low, b_low);
	}
	/* The divisor's leading 64 bits give a quotient that is at most one too large: one less is never too large. */
	shift = __builtin_clzll(b_high);
	quotient = wide_divide(a_high >> 1, a_high << 63 | a_low >> 1, b_high << shift | b_low >> 1 >> (63 - shift));
	quotient >>= 63 - shift;
	quotient -= !!quotient;
	rest = ((unsigned __int128)a_high << 64 | a_low) - (unsigned __int128)quotient * b_low -
	       ((unsigned __int128)(quotient * b_high) << 64);
	return quotient + (rest >= ((unsigned __int128)b_high << 64 | b_low));
}

/* The upper half of a / b. */
LAMBDA_WIDE __UINT64_TYPE__ lambda_u128_div_high(__UINT64_TYPE__ a_high, __UINT64_TYPE__ b_high, __UINT64_TYPE__ b_low)
{
	return b_high ? 0 : a_high / b_low;
}

#endif
