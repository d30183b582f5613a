/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * IEEE 754 arithmetic of single and double precision in integers, for BPF, which has no floating point. Numbers are passed as
 * their bit patterns. The compiler's soft float pass replaces float and double operations by calls of these functions.
 *
 * Rounding is to nearest, ties to even. Subnormals, infinities and signed zeros are as the standard says. Where the standard leaves
 * NaNs open, they are as in x86-64's SSE: a NaN operand comes back quiet, the first one if both are NaN; an invalid
 * operation gives the negative quiet NaN. Conversions to integers saturate, and give 0 for NaN.
 *
 * No function has a loop, touches memory or takes more than five arguments, so that the verifier proves each once, for all
 * its callers, as a global function. They avoid branches, as BPF has no conditional move: a 0 or 1 is taken from the sign of a
 * difference.
 */
#ifndef LAMBDA_FLOAT_H
#define LAMBDA_FLOAT_H

typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;

/* How a function of this file is defined. On the host, tests only. */
#ifndef LAMBDA_FLOAT
#define LAMBDA_FLOAT static inline
#endif
#define LAMBDA_FLOAT_PART static inline __attribute__((always_inline))

#define LAMBDA_RARE(condition) __builtin_expect(!!(condition), 0)

#define F32_SIGN 0x80000000U
#define F32_INF 0x7f800000U
#define F32_QUIET 0x00400000U
#define F32_INVALID 0xffc00000U /* what an invalid operation gives */

#define F64_SIGN 0x8000000000000000ULL
#define F64_INF 0x7ff0000000000000ULL
#define F64_QUIET 0x0008000000000000ULL
#define F64_INVALID 0xfff8000000000000ULL

/* How lambda_f64_round() and lambda_f32_round() round. */
enum { FLOAT_EVEN, FLOAT_DOWN, FLOAT_UP, FLOAT_ZERO, FLOAT_AWAY };

/* What comparisons give, as the bits that LLVM's predicates are made of (llvm/IR/InstrTypes.h, FCmpInst). */
enum { FLOAT_EQUAL = 1, FLOAT_GREATER = 2, FLOAT_LESS = 4, FLOAT_UNORDERED = 8 };

/*
 * An intermediate number: significand * 2^(exponent - bias - 62), with the bias of its precision. The leading one is bit 62.
 * Lower bits that do not fit are jammed into bit 0, which then says "and something more".
 */
struct lambda_float {
	int64_t exponent;
	uint64_t significand;
};

/* 1 where a < b, both below 2^63, else 0. */
LAMBDA_FLOAT_PART uint64_t float_less(uint64_t a, uint64_t b)
{
	uint64_t difference = a - b;

	asm("" : "+r"(difference)); /* else clang makes a branch */
	return difference >> 63;
}

/* The same as all ones, else 0. */
LAMBDA_FLOAT_PART uint64_t float_less_mask(uint64_t a, uint64_t b)
{
	int64_t difference = a - b;

	asm("" : "+r"(difference));
	return difference >> 63;
}

/* 1 where a is not 0, else 0. */
LAMBDA_FLOAT_PART uint64_t float_any(uint64_t a)
{
	uint64_t negated = -a;

	asm("" : "+r"(negated));
	return (a | negated) >> 63;
}

LAMBDA_FLOAT_PART uint64_t float_min(uint64_t a, uint64_t b)
{
	return b ^ ((a ^ b) & float_less_mask(a, b));
}

/* Shifts right by any distance and jams the bits that fall out. */
LAMBDA_FLOAT_PART uint64_t float_shift_jam(uint64_t a, uint64_t by)
{
	by = float_min(by, 63);
	return a >> by | float_any(a & ((1ULL << by) - 1));
}

/* Brings the leading one of a significand, which is not 0 and below 2^63, to bit 62. */
LAMBDA_FLOAT_PART struct lambda_float float_normalize(struct lambda_float n)
{
	int zeros = __builtin_clzll(n.significand) - 1;

	n.significand <<= zeros;
	n.exponent -= zeros;
	return n;
}

LAMBDA_FLOAT_PART int f64_is_nan(uint64_t a)
{
	return (a & ~F64_SIGN) > F64_INF;
}

LAMBDA_FLOAT_PART int f32_is_nan(uint32_t a)
{
	return (a & ~F32_SIGN) > F32_INF;
}

/* The result of an operation that is invalid, or one of whose operands is NaN. */
LAMBDA_FLOAT_PART uint64_t f64_nan(uint64_t a, uint64_t b)
{
	if (f64_is_nan(a))
		return a | F64_QUIET;
	return f64_is_nan(b) ? b | F64_QUIET : F64_INVALID;
}

LAMBDA_FLOAT_PART uint32_t f32_nan(uint32_t a, uint32_t b)
{
	if (f32_is_nan(a))
		return a | F32_QUIET;
	return f32_is_nan(b) ? b | F32_QUIET : F32_INVALID;
}

/* The significand and exponent of a finite number; those of subnormals are not normalized. */
LAMBDA_FLOAT_PART struct lambda_float f64_unpack(uint64_t a)
{
	uint64_t exponent = a >> 52 & 0x7ff;
	uint64_t normal = (exponent + 0x7ff) >> 11;
	uint64_t fraction = a & 0xfffffffffffffULL;

	return (struct lambda_float){ exponent + (normal ^ 1), (fraction | normal << 52) << 10 };
}

LAMBDA_FLOAT_PART struct lambda_float f32_unpack(uint32_t a)
{
	uint64_t exponent = a >> 23 & 0xff;
	uint64_t normal = (exponent + 0xff) >> 8;
	uint64_t fraction = a & 0x7fffff;

	return (struct lambda_float){ exponent + (normal ^ 1), (fraction | normal << 23) << 39 };
}

/* The significand of a normal number, its leading one at bit 31. */
LAMBDA_FLOAT_PART uint64_t f32_leading(uint32_t a)
{
	return a << 8 | 1U << 31; /* replaces the lowest bit of the exponent */
}

/*
 * Rounds. A number that is not normalized must have the lowest exponent, 1. The leading one adds to the exponent, as does
 * the carry of a fraction that rounds up to the next power of two. So the largest numbers round to infinity.
 */
LAMBDA_FLOAT_PART uint64_t f64_pack(uint64_t sign, struct lambda_float n)
{
	if (LAMBDA_RARE((uint64_t)n.exponent - 1 >= 0x7fe)) {
		if (n.exponent > 0)
			return sign | F64_INF;
		n.significand = float_shift_jam(n.significand, 1 - n.exponent);
		n.exponent = 1;
	}
	n.significand += 0x1ff + (n.significand >> 10 & 1);
	return sign | (((uint64_t)n.exponent - 1) << 52) + (n.significand >> 10);
}

LAMBDA_FLOAT_PART uint32_t f32_pack(uint64_t sign, struct lambda_float n)
{
	if (LAMBDA_RARE((uint64_t)n.exponent - 1 >= 0xfe)) {
		if (n.exponent > 0)
			return sign | F32_INF;
		n.significand = float_shift_jam(n.significand, 1 - n.exponent);
		n.exponent = 1;
	}
	n.significand += 0x3fffffffffULL + (n.significand >> 39 & 1);
	return sign | (((uint64_t)n.exponent - 1) << 23) + (n.significand >> 39);
}

/*
 * Adds the smaller number or, if negative is 1, subtracts it. One jammed bit is enough: if numbers are so far apart that
 * bits are jammed, their difference loses at most its leading one.
 */
LAMBDA_FLOAT_PART struct lambda_float float_sum(struct lambda_float a, struct lambda_float b, uint64_t negative)
{
	uint64_t carry;

	b.significand = float_shift_jam(b.significand, a.exponent - b.exponent);
	a.significand += (b.significand ^ -negative) + negative;
	carry = a.significand >> 63;
	a.significand = a.significand >> carry | (a.significand & carry);
	a.exponent += carry;
	if (a.significand >> 62 || !a.significand)
		return a;
	return float_normalize(a);
}

/* The sign of a difference that is exactly 0 is positive; of a sum of equal signs, theirs. */
LAMBDA_FLOAT_PART uint64_t f64_sum(uint64_t a, uint64_t b)
{
	uint64_t swap = (a ^ b) & float_less_mask(a & ~F64_SIGN, b & ~F64_SIGN);
	uint64_t large = a ^ swap, small = b ^ swap;
	struct lambda_float sum;

	if (LAMBDA_RARE((large & F64_INF) == F64_INF)) {
		if (f64_is_nan(large) || (large ^ small) == F64_SIGN)
			return f64_nan(a, b);
		return large;
	}
	sum = float_sum(f64_unpack(large), f64_unpack(small), (a ^ b) >> 63);
	if (!sum.significand)
		return a & b & F64_SIGN;
	return f64_pack(large & F64_SIGN, sum);
}

/* The sum of large and small where one of them is not normal. */
LAMBDA_FLOAT_PART uint32_t f32_sum_rare(uint32_t a, uint32_t b, uint32_t large, uint32_t small)
{
	struct lambda_float sum;

	if ((large & F32_INF) == F32_INF) {
		if (f32_is_nan(large) || (large ^ small) == F32_SIGN)
			return f32_nan(a, b);
		return large;
	}
	sum = float_sum(f32_unpack(large), f32_unpack(small), (a ^ b) >> 31);
	if (!sum.significand)
		return a & b & F32_SIGN;
	return f32_pack(large & F32_SIGN, sum);
}

/*
 * The significands begin at bit 61, to leave room for a carry. With 38 bits below their last, no bit that matters falls out: a
 * number that is farther away is too small to change how the larger one is rounded.
 */
LAMBDA_FLOAT_PART uint32_t f32_sum(uint32_t a, uint32_t b)
{
	uint32_t swap = (a ^ b) & float_less_mask(a & ~F32_SIGN, b & ~F32_SIGN);
	uint32_t large = a ^ swap, small = b ^ swap;
	uint64_t distance, carry, negative = (int64_t)((uint64_t)(a ^ b) << 32) >> 63;
	struct lambda_float sum = { large >> 23 & 0xff, f32_leading(large) << 30 };

	distance = sum.exponent - (small >> 23 & 0xff);
	if (LAMBDA_RARE(sum.exponent == 0xff || (uint64_t)sum.exponent == distance))
		return f32_sum_rare(a, b, large, small);
	if (distance > 38)
		distance = 38;
	sum.significand += ((f32_leading(small) << 30 >> distance) ^ negative) - negative;
	carry = sum.significand >> 62;
	sum.significand <<= carry ^ 1;
	sum.exponent += carry;
	if (!(sum.significand >> 62)) {
		if (!sum.significand)
			return 0;
		sum = float_normalize(sum);
	}
	return f32_pack(large & F32_SIGN, sum);
}

LAMBDA_FLOAT uint64_t lambda_f64_add(uint64_t a, uint64_t b)
{
	return f64_sum(a, b);
}

LAMBDA_FLOAT uint32_t lambda_f32_add(uint32_t a, uint32_t b)
{
	return f32_sum(a, b);
}

/* A NaN keeps its sign when it is subtracted. */
LAMBDA_FLOAT uint64_t lambda_f64_sub(uint64_t a, uint64_t b)
{
	return f64_sum(a, f64_is_nan(b) ? b : b ^ F64_SIGN);
}

LAMBDA_FLOAT uint32_t lambda_f32_sub(uint32_t a, uint32_t b)
{
	return f32_sum(a, f32_is_nan(b) ? b : b ^ F32_SIGN);
}

/* The upper and lower halves of a product. */
struct lambda_wide {
	uint64_t high, low;
};

LAMBDA_FLOAT_PART struct lambda_wide float_multiply(uint64_t a, uint64_t b)
{
	uint64_t a1 = a >> 32, a0 = (uint32_t)a, b1 = b >> 32, b0 = (uint32_t)b;
	uint64_t low = a0 * b0;
	uint64_t middle = a1 * b0 + (low >> 32);
	uint64_t other = a0 * b1 + (uint32_t)middle;

	return (struct lambda_wide){ a1 * b1 + (middle >> 32) + (other >> 32), other << 32 | (uint32_t)low };
}

/* Moves a leading one that is bit 61 to bit 62. */
LAMBDA_FLOAT_PART struct lambda_float float_settle(struct lambda_float n)
{
	uint64_t low = n.significand >> 62 ^ 1;

	n.significand <<= low;
	n.exponent -= low;
	return n;
}

/* 1 where neither is 0, infinite or NaN. */
LAMBDA_FLOAT_PART int f64_usual(uint64_t a, uint64_t b)
{
	return (a >> 52 & 0x7ff) - 1 < 0x7fe && (b >> 52 & 0x7ff) - 1 < 0x7fe;
}

LAMBDA_FLOAT_PART int f32_usual(uint32_t a, uint32_t b)
{
	return (a >> 23 & 0xff) - 1 < 0xfe && (b >> 23 & 0xff) - 1 < 0xfe;
}

LAMBDA_FLOAT_PART uint64_t f64_product(uint64_t a, uint64_t b)
{
	uint64_t sign = (a ^ b) & F64_SIGN, a_magnitude = a & ~F64_SIGN, b_magnitude = b & ~F64_SIGN;
	struct lambda_float x = f64_unpack(a), y = f64_unpack(b);
	struct lambda_wide product;

	if (LAMBDA_RARE(!f64_usual(a, b))) {
		if (a_magnitude >= F64_INF || b_magnitude >= F64_INF) {
			if (a_magnitude > F64_INF || b_magnitude > F64_INF || !a_magnitude || !b_magnitude)
				return f64_nan(a, b);
			return sign | F64_INF;
		}
		if (a_magnitude < b_magnitude) { /* of two subnormals the product is 0 */
			struct lambda_float swap = x;

			x = y;
			y = swap;
		}
		if (!y.significand || !(x.significand >> 62))
			return sign;
		y = float_normalize(y);
	}
	product = float_multiply(x.significand, y.significand << 1);
	x.exponent += y.exponent - 0x3fe;
	x.significand = product.high | float_any(product.low);
	return f64_pack(sign, float_settle(x));
}

/* The product where one of the factors is not normal. */
LAMBDA_FLOAT_PART uint32_t f32_product_rare(uint32_t a, uint32_t b)
{
	uint32_t sign = (a ^ b) & F32_SIGN, a_magnitude = a & ~F32_SIGN, b_magnitude = b & ~F32_SIGN;
	struct lambda_float x = f32_unpack(a), y = f32_unpack(b);

	if (a_magnitude >= F32_INF || b_magnitude >= F32_INF) {
		if (a_magnitude > F32_INF || b_magnitude > F32_INF || !a_magnitude || !b_magnitude)
			return f32_nan(a, b);
		return sign | F32_INF;
	}
	if (a_magnitude < b_magnitude) { /* of two subnormals the product is 0 */
		struct lambda_float swap = x;

		x = y;
		y = swap;
	}
	if (!y.significand || !(x.significand >> 62))
		return sign;
	y = float_normalize(y);
	x.exponent += y.exponent - 0x7e;
	x.significand = (x.significand >> 31) * (y.significand >> 32); /* 24 bits each, so nothing is lost */
	return f32_pack(sign, float_settle(x));
}

LAMBDA_FLOAT_PART uint32_t f32_product(uint32_t a, uint32_t b)
{
	uint64_t a_exponent = a >> 23 & 0xff, b_exponent = b >> 23 & 0xff, carry;
	struct lambda_float product = { a_exponent + b_exponent - 0x7f, f32_leading(a) * f32_leading(b) };

	if (LAMBDA_RARE(a_exponent - 1 >= 0xfe || b_exponent - 1 >= 0xfe))
		return f32_product_rare(a, b);
	carry = product.significand >> 63;
	product.significand >>= carry; /* its lower 16 bits are 0 */
	product.exponent += carry;
	return f32_pack((a ^ b) & F32_SIGN, product);
}

LAMBDA_FLOAT uint64_t lambda_f64_mul(uint64_t a, uint64_t b)
{
	return f64_product(a, b);
}

LAMBDA_FLOAT uint32_t lambda_f32_mul(uint32_t a, uint32_t b)
{
	return f32_product(a, b);
}

/*
 * A product and a sum, each rounded, in one call: on processors that guard returns against speculation, a call costs half as much
 * as either operation. The order of the operands decides which NaN comes back.
 */
LAMBDA_FLOAT uint64_t lambda_f64_mul_add(uint64_t a, uint64_t b, uint64_t c)
{
	return f64_sum(f64_product(a, b), c);
}

LAMBDA_FLOAT uint64_t lambda_f64_add_mul(uint64_t c, uint64_t a, uint64_t b)
{
	return f64_sum(c, f64_product(a, b));
}

LAMBDA_FLOAT uint32_t lambda_f32_mul_add(uint32_t a, uint32_t b, uint32_t c)
{
	return f32_sum(f32_product(a, b), c);
}

LAMBDA_FLOAT uint32_t lambda_f32_add_mul(uint32_t c, uint32_t a, uint32_t b)
{
	return f32_sum(c, f32_product(a, b));
}

/*
 * One digit of up to 28 bits of rest / divisor, rest being less than the divisor, whose leading one is bit 52. The estimate by the
 * divisor's upper 32 bits is at most one too large, as it errs by less than 2^-31 of at most 2^28.
 */
LAMBDA_FLOAT_PART uint64_t float_digit(uint64_t *rest, uint64_t divisor, int bits)
{
	uint64_t digit = (*rest << (bits - 21)) / (divisor >> 21);
	uint64_t left = (*rest << bits) - digit * divisor;
	uint64_t excess = left >> 63;

	*rest = left + (divisor & -excess);
	return digit - excess;
}

/* If the divisor has the greater significand, the dividend is doubled, so that the quotient begins with 1. */
LAMBDA_FLOAT uint64_t lambda_f64_div(uint64_t a, uint64_t b)
{
	uint64_t sign = (a ^ b) & F64_SIGN, a_magnitude = a & ~F64_SIGN, b_magnitude = b & ~F64_SIGN;
	struct lambda_float x = f64_unpack(a), y = f64_unpack(b);
	uint64_t less, rest, quotient;

	if (LAMBDA_RARE(!f64_usual(a, b))) {
		if (a_magnitude > F64_INF || b_magnitude > F64_INF ||
		    (a_magnitude == b_magnitude && (!a_magnitude || a_magnitude == F64_INF)))
			return f64_nan(a, b);
		if (a_magnitude == F64_INF || !b_magnitude)
			return sign | F64_INF;
		if (!a_magnitude || b_magnitude == F64_INF)
			return sign;
		x = float_normalize(x);
		y = float_normalize(y);
	}
	less = float_less(x.significand, y.significand);
	x.exponent -= y.exponent + less - 0x3ff;
	y.significand >>= 10;
	rest = (x.significand >> 10 << less) - y.significand;
	quotient = 1ULL << 56;
	quotient |= float_digit(&rest, y.significand, 28) << 28;
	quotient |= float_digit(&rest, y.significand, 28);
	x.significand = quotient << 6 | float_any(rest);
	return f64_pack(sign, x);
}

LAMBDA_FLOAT uint32_t lambda_f32_div(uint32_t a, uint32_t b)
{
	uint32_t sign = (a ^ b) & F32_SIGN, a_magnitude = a & ~F32_SIGN, b_magnitude = b & ~F32_SIGN;
	struct lambda_float x = f32_unpack(a), y = f32_unpack(b);
	uint64_t less, dividend, quotient;

	if (LAMBDA_RARE(!f32_usual(a, b))) {
		if (a_magnitude > F32_INF || b_magnitude > F32_INF ||
		    (a_magnitude == b_magnitude && (!a_magnitude || a_magnitude == F32_INF)))
			return f32_nan(a, b);
		if (a_magnitude == F32_INF || !b_magnitude)
			return sign | F32_INF;
		if (!a_magnitude || b_magnitude == F32_INF)
			return sign;
		x = float_normalize(x);
		y = float_normalize(y);
	}
	less = float_less(x.significand, y.significand);
	x.exponent -= y.exponent + less - 0x7f;
	dividend = x.significand >> 1 << less;
	y.significand >>= 39;
	quotient = dividend / y.significand;
	x.significand = quotient << 24 | float_any(dividend - quotient * y.significand);
	return f32_pack(sign, x);
}

/* The remainder of a * b by a divisor whose leading one is bit 52; both factors are less. */
LAMBDA_FLOAT_PART uint64_t float_multiply_modulo(uint64_t a, uint64_t b, uint64_t divisor)
{
	struct lambda_wide product = float_multiply(a, b);
	uint64_t rest = product.high << 11 | product.low >> 53, low = product.low & ((1ULL << 53) - 1);

	float_digit(&rest, divisor, 28);
	float_digit(&rest, divisor, 25);
	rest += low - (divisor & -(float_less(low, divisor) ^ 1));
	return rest - (divisor & -(float_less(rest, divisor) ^ 1));
}

/*
 * The exact remainder of the division that is rounded towards zero, as in fmod(). If the exponents are far apart, at most 2098, it is
 * the remainder of the significand times 2^distance, a power that is made by squaring.
 */
LAMBDA_FLOAT uint64_t lambda_f64_rem(uint64_t a, uint64_t b)
{
	uint64_t sign = a & F64_SIGN, a_magnitude = a & ~F64_SIGN, b_magnitude = b & ~F64_SIGN;
	uint64_t distance, divisor, rest, power;
	struct lambda_float x, y;

	if (LAMBDA_RARE(a_magnitude >= F64_INF || b_magnitude > F64_INF || !b_magnitude))
		return f64_nan(a, b);
	if (a_magnitude < b_magnitude)
		return a;
	x = float_normalize(f64_unpack(a));
	y = float_normalize(f64_unpack(b));
	distance = x.exponent - y.exponent;
	divisor = y.significand >> 10;
	rest = x.significand >> 10;
	rest -= divisor & -(float_less(rest, divisor) ^ 1);
	if (distance <= 11) {
		rest = (rest << distance) % divisor;
	} else {
		power = 1ULL << (distance >> 6);
#pragma clang loop unroll(full)
		for (int bit = 5; bit >= 0; bit--) {
			power = float_multiply_modulo(power, power, divisor) << (distance >> bit & 1);
			power -= divisor & -(float_less(power, divisor) ^ 1);
		}
		rest = float_multiply_modulo(rest, power, divisor);
	}
	if (!rest)
		return sign;
	y.significand = rest << 10;
	return f64_pack(sign, float_normalize(y));
}

/*
 * The square root, rounded down, of a number in [2^54, 2^56): a linear estimate with an error below 3.2 %, then Heron's method,
 * which squares the error: below 2^-10, 2^-22, 2^-46. It errs upwards.
 */
LAMBDA_FLOAT_PART uint64_t float_root(uint64_t a)
{
	uint64_t root = 11 * ((a >> 32) + (1 << 23));

	root = (root + a / root) >> 1;
	root = (root + a / root) >> 1;
	root = (root + a / root) >> 1;
	return root - float_less(a, root * root);
}

LAMBDA_FLOAT uint64_t lambda_f64_sqrt(uint64_t a)
{
	struct lambda_float x = f64_unpack(a);
	uint64_t odd, radicand, root, rest, digit;

	if (LAMBDA_RARE(a - 1 >= F64_INF - 1)) {
		if (!(a << 1) || a == F64_INF)
			return a;
		if (a >> 63 || f64_is_nan(a))
			return f64_nan(a, a);
	}
	if (LAMBDA_RARE(!(x.significand >> 62)))
		x = float_normalize(x);
	/*
	 * Zimmermann, Karatsuba Square Root (INRIA RR-3805, 1999): from the root of the upper half and its remainder, one
	 * division gives the other half of the digits.
	 */
	odd = (x.exponent + 1) & 1;
	radicand = x.significand >> 8 << odd;
	root = float_root(radicand);
	rest = (radicand - root * root) << 27;
	digit = rest / (2 * root);
	rest = ((rest - digit * 2 * root) << 27) - digit * digit;
	root = (root << 27) + digit;
	if (rest >> 63)
		rest += 2 * root-- - 1;
	x.exponent = (x.exponent - odd + 0x3ff) >> 1;
	x.significand = root << 8 | float_any(rest);
	return f64_pack(0, x);
}

LAMBDA_FLOAT uint32_t lambda_f32_sqrt(uint32_t a)
{
	struct lambda_float x = f32_unpack(a);
	uint64_t odd, radicand, root;

	if (LAMBDA_RARE(a - 1 >= F32_INF - 1)) {
		if (!(a << 1) || a == F32_INF)
			return a;
		if (a >> 31 || f32_is_nan(a))
			return f32_nan(a, a);
	}
	if (LAMBDA_RARE(!(x.significand >> 62)))
		x = float_normalize(x);
	odd = (x.exponent + 1) & 1;
	radicand = x.significand >> 8 << odd;
	root = float_root(radicand);
	x.exponent = (x.exponent - odd + 0x7f) >> 1;
	x.significand = root << 35 | float_any(radicand - root * root);
	return f32_pack(0, x);
}

/* Shifts 128 bits right by any distance and jams what falls out. */
LAMBDA_FLOAT_PART struct lambda_wide float_shift_jam_wide(struct lambda_wide a, uint64_t by)
{
	if (by >= 64)
		return (struct lambda_wide){ 0, float_shift_jam(a.high, by - 64) | float_any(a.low) };
	if (!by)
		return a;
	return (struct lambda_wide){ a.high >> by, a.high << (64 - by) | float_shift_jam(a.low, by) };
}

/* Brings the leading one of 128 bits, not 0, to bit 126 and jams the lower half. */
LAMBDA_FLOAT_PART struct lambda_float float_normalize_wide(int64_t exponent, struct lambda_wide a)
{
	int zeros;

	if (a.high >> 63)
		return (struct lambda_float){ exponent + 1, a.high >> 1 | float_any((a.high & 1) | a.low) };
	if (!a.high) {
		exponent -= 63;
		a.high = a.low >> 1;
		a.low <<= 63;
	}
	zeros = a.high ? __builtin_clzll(a.high) - 1 : 63;
	if (zeros) {
		a.high = a.high << zeros | a.low >> (64 - zeros);
		a.low <<= zeros;
	}
	return (struct lambda_float){ exponent - zeros, a.high | float_any(a.low) };
}

/* The result of a * b + c where one of them is infinite or NaN. */
LAMBDA_FLOAT_PART uint64_t f64_fma_special(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t a_magnitude = a & ~F64_SIGN, b_magnitude = b & ~F64_SIGN, c_magnitude = c & ~F64_SIGN;
	uint64_t sign = (a ^ b) & F64_SIGN;

	if (a_magnitude > F64_INF || b_magnitude > F64_INF)
		return f64_nan(a, b);
	if (c_magnitude > F64_INF)
		return c | F64_QUIET;
	if (a_magnitude == F64_INF || b_magnitude == F64_INF) {
		if (!a_magnitude || !b_magnitude || (c_magnitude == F64_INF && (c & F64_SIGN) != sign))
			return F64_INVALID;
		return sign | F64_INF;
	}
	return c;
}

/* a * b + c, rounded once. */
LAMBDA_FLOAT uint64_t lambda_f64_fma(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t sign = (a ^ b) & F64_SIGN, negative = (sign ^ c) >> 63;
	struct lambda_float x = f64_unpack(a), y = f64_unpack(b), z = f64_unpack(c), sum;
	struct lambda_wide product, addend;
	int64_t exponent;

	if (LAMBDA_RARE((a & F64_INF) == F64_INF || (b & F64_INF) == F64_INF || (c & F64_INF) == F64_INF))
		return f64_fma_special(a, b, c);
	if (LAMBDA_RARE(!x.significand || !y.significand))
		return c << 1 ? c : sign & c;
	x = float_normalize(x);
	y = float_normalize(y);
	product = float_multiply(x.significand, y.significand << 1);
	exponent = x.exponent + y.exponent - 0x3fe;
	if (!(product.high >> 62)) {
		product.high = product.high << 1 | product.low >> 63;
		product.low <<= 1;
		exponent--;
	}
	if (!z.significand)
		return f64_pack(sign, float_normalize_wide(exponent, product));
	z = float_normalize(z);
	addend = (struct lambda_wide){ z.significand, 0 };
	if (exponent < z.exponent || (exponent == z.exponent && product.high < addend.high)) {
		struct lambda_wide swap = product;

		product = addend;
		addend = float_shift_jam_wide(swap, z.exponent - exponent);
		exponent = z.exponent;
		sign = c & F64_SIGN;
	} else {
		addend = float_shift_jam_wide(addend, exponent - z.exponent);
	}
	if (negative) {
		product.high -= addend.high + (product.low < addend.low);
		product.low -= addend.low;
	} else {
		product.low += addend.low;
		product.high += addend.high + (product.low < addend.low);
	}
	if (!(product.high | product.low))
		return 0;
	sum = float_normalize_wide(exponent, product);
	return f64_pack(sign, sum);
}

LAMBDA_FLOAT_PART uint32_t f32_fma_special(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t a_magnitude = a & ~F32_SIGN, b_magnitude = b & ~F32_SIGN, c_magnitude = c & ~F32_SIGN;
	uint32_t sign = (a ^ b) & F32_SIGN;

	if (a_magnitude > F32_INF || b_magnitude > F32_INF)
		return f32_nan(a, b);
	if (c_magnitude > F32_INF)
		return c | F32_QUIET;
	if (a_magnitude == F32_INF || b_magnitude == F32_INF) {
		if (!a_magnitude || !b_magnitude || (c_magnitude == F32_INF && (c & F32_SIGN) != sign))
			return F32_INVALID;
		return sign | F32_INF;
	}
	return c;
}

/* The product has 48 bits, so that 64 hold all of the sum that rounding needs. */
LAMBDA_FLOAT uint32_t lambda_f32_fma(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t sign = (a ^ b) & F32_SIGN, negative = (sign ^ c) >> 31;
	struct lambda_float x = f32_unpack(a), y = f32_unpack(b), z = f32_unpack(c), sum;

	if (LAMBDA_RARE((a & F32_INF) == F32_INF || (b & F32_INF) == F32_INF || (c & F32_INF) == F32_INF))
		return f32_fma_special(a, b, c);
	if (LAMBDA_RARE(!x.significand || !y.significand))
		return c << 1 ? c : sign & c;
	x = float_normalize(x);
	y = float_normalize(y);
	x.exponent += y.exponent - 0x7e;
	x.significand = (x.significand >> 31) * (y.significand >> 32);
	x = float_settle(x);
	if (!z.significand)
		return f32_pack(sign, x);
	z = float_normalize(z);
	if (x.exponent < z.exponent || (x.exponent == z.exponent && x.significand < z.significand)) {
		sign = c & F32_SIGN;
		sum = float_sum(z, x, negative);
	} else {
		sum = float_sum(x, z, negative);
	}
	if (!sum.significand)
		return 0;
	return f32_pack(sign, sum);
}

/* How a compares with b. */
LAMBDA_FLOAT uint32_t lambda_f64_compare(uint64_t a, uint64_t b)
{
	uint64_t a_sign = -(a >> 63), b_sign = -(b >> 63);
	int64_t x = ((a & ~F64_SIGN) ^ a_sign) - a_sign, y = ((b & ~F64_SIGN) ^ b_sign) - b_sign;

	if (LAMBDA_RARE(f64_is_nan(a) || f64_is_nan(b)))
		return FLOAT_UNORDERED;
	if (x == y)
		return FLOAT_EQUAL;
	return x < y ? FLOAT_LESS : FLOAT_GREATER;
}

LAMBDA_FLOAT uint32_t lambda_f32_compare(uint32_t a, uint32_t b)
{
	uint32_t a_sign = -(a >> 31), b_sign = -(b >> 31);
	int32_t x = ((a & ~F32_SIGN) ^ a_sign) - a_sign, y = ((b & ~F32_SIGN) ^ b_sign) - b_sign;

	if (LAMBDA_RARE(f32_is_nan(a) || f32_is_nan(b)))
		return FLOAT_UNORDERED;
	if (x == y)
		return FLOAT_EQUAL;
	return x < y ? FLOAT_LESS : FLOAT_GREATER;
}

LAMBDA_FLOAT uint64_t lambda_f32_to_f64(uint32_t a)
{
	uint64_t sign = (uint64_t)(a & F32_SIGN) << 32, magnitude = a & ~F32_SIGN;
	int zeros;

	if (LAMBDA_RARE(magnitude >= F32_INF))
		return sign | F64_INF | (magnitude << 29 & ~F64_INF) | (magnitude > F32_INF ? F64_QUIET : 0);
	if (LAMBDA_RARE(magnitude < 1 << 23)) {
		if (!magnitude)
			return sign;
		zeros = __builtin_clzll(magnitude) - 40;
		return sign | ((0x380ULL - zeros) << 52) + (magnitude << zeros << 29);
	}
	return sign | (magnitude << 29) + (0x380ULL << 52);
}

LAMBDA_FLOAT uint32_t lambda_f64_to_f32(uint64_t a)
{
	uint64_t sign = a >> 32 & F32_SIGN, magnitude = a & ~F64_SIGN;
	struct lambda_float x = f64_unpack(a);

	if (LAMBDA_RARE(magnitude >= F64_INF))
		return sign | F32_INF | (magnitude > F64_INF ? F32_QUIET | (magnitude >> 29 & 0x3fffff) : 0);
	x.exponent -= 0x380;
	return f32_pack(sign, x);
}

/* Rounds to an integer, in the given way. Below 1 the result is 0 or 1; above 1, a carry into the exponent is right. */
LAMBDA_FLOAT uint64_t lambda_f64_round(uint64_t a, uint32_t way)
{
	uint64_t sign = a & F64_SIGN, magnitude = a & ~F64_SIGN, exponent = magnitude >> 52, one, mask, shift;

	if (exponent >= 0x433)
		return magnitude > F64_INF ? a | F64_QUIET : a;
	if (exponent < 0x3ff) {
		one = (way == FLOAT_EVEN && magnitude > 0x3feULL << 52) || (way == FLOAT_AWAY && exponent == 0x3fe) ||
		      (way == FLOAT_DOWN && sign && magnitude) || (way == FLOAT_UP && !sign && magnitude);
		return sign | (one ? 0x3ffULL << 52 : 0);
	}
	shift = 0x433 - exponent;
	mask = (1ULL << shift) - 1;
	if (way == FLOAT_EVEN)
		a += (mask >> 1) + (a >> shift & 1);
	else if (way == FLOAT_AWAY)
		a += (mask >> 1) + 1;
	else if (way == (sign ? FLOAT_DOWN : FLOAT_UP))
		a += mask;
	return a & ~mask;
}

LAMBDA_FLOAT uint32_t lambda_f32_round(uint32_t a, uint32_t way)
{
	uint32_t sign = a & F32_SIGN, magnitude = a & ~F32_SIGN, exponent = magnitude >> 23, one, mask, shift;

	if (exponent >= 0x96)
		return magnitude > F32_INF ? a | F32_QUIET : a;
	if (exponent < 0x7f) {
		one = (way == FLOAT_EVEN && magnitude > 0x7e << 23) || (way == FLOAT_AWAY && exponent == 0x7e) ||
		      (way == FLOAT_DOWN && sign && magnitude) || (way == FLOAT_UP && !sign && magnitude);
		return sign | (one ? 0x7f << 23 : 0);
	}
	shift = 0x96 - exponent;
	mask = (1U << shift) - 1;
	if (way == FLOAT_EVEN)
		a += (mask >> 1) + (a >> shift & 1);
	else if (way == FLOAT_AWAY)
		a += (mask >> 1) + 1;
	else if (way == (sign ? FLOAT_DOWN : FLOAT_UP))
		a += mask;
	return a & ~mask;
}

/* Narrower integers are those of 64 bits, limited to their range by the caller. */
LAMBDA_FLOAT uint64_t lambda_f64_to_i64(uint64_t a)
{
	uint64_t negative = -(a >> 63), exponent = a >> 52 & 0x7ff;

	if (LAMBDA_RARE(exponent >= 0x3ff + 63)) {
		if (f64_is_nan(a))
			return 0;
		return negative ? 1ULL << 63 : ~0ULL >> 1;
	}
	if (exponent < 0x3ff)
		return 0;
	return (f64_unpack(a).significand >> (0x3ff + 62 - exponent) ^ negative) - negative;
}

LAMBDA_FLOAT uint64_t lambda_f64_to_u64(uint64_t a)
{
	uint64_t exponent = a >> 52;

	if (exponent < 0x3ff)
		return 0;
	if (LAMBDA_RARE(exponent >= 0x3ff + 64))
		return a > F64_INF ? 0 : ~0ULL; /* NaN and negative numbers: 0 */
	return f64_unpack(a).significand << 1 >> (0x3ff + 63 - exponent);
}

LAMBDA_FLOAT uint64_t lambda_f32_to_i64(uint32_t a)
{
	uint64_t negative = -(uint64_t)(a >> 31), exponent = a >> 23 & 0xff;

	if (LAMBDA_RARE(exponent >= 0x7f + 63)) {
		if (f32_is_nan(a))
			return 0;
		return negative ? 1ULL << 63 : ~0ULL >> 1;
	}
	if (exponent < 0x7f)
		return 0;
	return (f32_unpack(a).significand >> (0x7f + 62 - exponent) ^ negative) - negative;
}

LAMBDA_FLOAT uint64_t lambda_f32_to_u64(uint32_t a)
{
	uint64_t exponent = a >> 23;

	if (exponent < 0x7f)
		return 0;
	if (LAMBDA_RARE(exponent >= 0x7f + 64))
		return a > F32_INF ? 0 : ~0ULL;
	return f32_unpack(a).significand << 1 >> (0x7f + 63 - exponent);
}

/* An integer as a number with the bias of the given precision. */
LAMBDA_FLOAT_PART struct lambda_float float_from(uint64_t a, uint64_t bias)
{
	uint64_t carry = a >> 63;

	return float_normalize((struct lambda_float){ bias + 62 + carry, a >> carry | (a & carry) });
}

LAMBDA_FLOAT uint64_t lambda_u64_to_f64(uint64_t a)
{
	return a ? f64_pack(0, float_from(a, 0x3ff)) : 0;
}

LAMBDA_FLOAT uint64_t lambda_i64_to_f64(uint64_t a)
{
	uint64_t negative = -(a >> 63);

	return a ? f64_pack(a & F64_SIGN, float_from((a ^ negative) - negative, 0x3ff)) : 0;
}

LAMBDA_FLOAT uint32_t lambda_u64_to_f32(uint64_t a)
{
	return a ? f32_pack(0, float_from(a, 0x7f)) : 0;
}

LAMBDA_FLOAT uint32_t lambda_i64_to_f32(uint64_t a)
{
	uint64_t negative = -(a >> 63);

	return a ? f32_pack(a >> 32 & F32_SIGN, float_from((a ^ negative) - negative, 0x7f)) : 0;
}

#endif
