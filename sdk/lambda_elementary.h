/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The elementary functions of <math.h>, in double: the same bits on the NIC and on the host. For all arguments, their error is at most
 * 0.55 units in the last place, except for pow(x, 3), which is x * x * x (1.5), tan() (2.6), and atan(), atan2() and hypot() (5):
 * testdata/library_test.c. The functions of float are those of double, rounded.
 */
#ifndef LAMBDA_ELEMENTARY_H
#define LAMBDA_ELEMENTARY_H

/*
 * c as a function of these bits. On the NIC the compiler adds the function, and the verifier proves it once; with constant arguments,
 * it is computed at compile time. A card has no floating point: the compiler refuses it as an operation without instructions.
 */
#if defined(LAMBDA_NFP)
#define LAMBDA_COMPUTED(c, constant, name, ...) __builtin_elementwise_##c
#elif defined(__bpf__)
#define LAMBDA_COMPUTED(c, constant, name, ...) \
	lambda_f64_from((constant) ? lambda_##name(__VA_ARGS__) : lambda_f64_##name(__VA_ARGS__))
#else
#define LAMBDA_COMPUTED(c, constant, name, ...) lambda_f64_from(lambda_##name(__VA_ARGS__))
#endif
#define LAMBDA_MATH static inline __attribute__((always_inline))

LAMBDA_MATH double exp(double x)
{
	return LAMBDA_COMPUTED(exp(x), __builtin_constant_p(x), exponential, lambda_f64_bits(x), 0xb8aa3b295c17f0bb,
			       0xbe87fed0691d3e88);
}

LAMBDA_MATH double exp2(double x)
{
	return LAMBDA_COMPUTED(exp2(x), __builtin_constant_p(x), exponential, lambda_f64_bits(x), 1ULL << 63, 0);
}

LAMBDA_MATH double log(double x)
{
	return LAMBDA_COMPUTED(log(x), __builtin_constant_p(x), logarithm, lambda_f64_bits(x), 0xb17217f7d1cf79ab,
			       0xc9e3b39803f2f6af, 0);
}

LAMBDA_MATH double log2(double x)
{
	return LAMBDA_COMPUTED(log2(x), __builtin_constant_p(x), logarithm, lambda_f64_bits(x), 1ULL << 63, 0, 1);
}

LAMBDA_MATH double log10(double x)
{
	return LAMBDA_COMPUTED(log10(x), __builtin_constant_p(x), logarithm, lambda_f64_bits(x), 0x9a209a84fbcff798,
			       0x8f8959ac0b7c9178, -1);
}

/* The most common powers are products, which cost less. */
LAMBDA_MATH double pow(double x, double y)
{
	if (lambda_f64_bits(y) == lambda_f64_bits(2))
		return x * x;
	if (lambda_f64_bits(y) == lambda_f64_bits(3))
		return x * x * x;
	return LAMBDA_COMPUTED(pow(x, y), __builtin_constant_p(x) && __builtin_constant_p(y), power, lambda_f64_bits(x),
			       lambda_f64_bits(y));
}

LAMBDA_MATH double sin(double x)
{
	return LAMBDA_COMPUTED(sin(x), __builtin_constant_p(x), sine, lambda_f64_bits(x), 0);
}

LAMBDA_MATH double cos(double x)
{
	return LAMBDA_COMPUTED(cos(x), __builtin_constant_p(x), sine, lambda_f64_bits(x), 1);
}

LAMBDA_MATH double tan(double x)
{
	return sin(x) / cos(x);
}

/* Horner's scheme. */
#define LAMBDA_POLYNOMIAL(x, coefficients) \
	({ \
		double _sum = 0; \
		_Pragma("clang loop unroll(full)") for (int _i = sizeof(coefficients) / sizeof(double) - 1; _i >= 0; \
							_i--) _sum = _sum * (x) + coefficients[_i]; \
		_sum; \
	})

/* By atan(x) = 2 atan(x / (1 + sqrt(1 + x^2))), twice, down to tan(pi / 16), and the series. */
static inline double atan(double x)
{
	const double series[] = { -1.0 / 3,  1.0 / 5,  -1.0 / 7,  1.0 / 9,  -1.0 / 11, 1.0 / 13,
				  -1.0 / 15, 1.0 / 17, -1.0 / 19, 1.0 / 21, -1.0 / 23 };
	double a = fabs(x), t = a > 1 ? 1 / a : a, z;

	if (x != x)
		return x;
	t /= 1 + sqrt(1 + t * t);
	t /= 1 + sqrt(1 + t * t);
	z = t * t;
	t = 4 * (t + t * (z * LAMBDA_POLYNOMIAL(z, series)));
	return copysign(a > 1 ? M_PI_2 - t : t, x);
}

static inline double atan2(double y, double x)
{
	double a;

	if (x != x || y != y)
		return NAN;
	if (isinf(x) && isinf(y))
		a = M_PI_4;
	else if (fabs(y) > fabs(x))
		a = M_PI_2 - atan(fabs(x / y));
	else
		a = y == 0 ? 0 : atan(fabs(y / x));
	return copysign(signbit(x) ? M_PI - a : a, y);
}

static inline double hypot(double x, double y)
{
	double large = fmax(fabs(x), fabs(y)), small = fmin(fabs(x), fabs(y));

	if (isinf(large) || large == 0)
		return isinf(x) || isinf(y) || x + y == x + y ? large : NAN;
	if (x != x || y != y)
		return NAN;
	small /= large;
	return large * sqrt(1 + small * small);
}

#define LAMBDA_MATH_FLOAT(name) \
	static inline float name##f(float x) \
	{ \
		return name(x); \
	}

LAMBDA_MATH_FLOAT(exp)
LAMBDA_MATH_FLOAT(exp2)
LAMBDA_MATH_FLOAT(log)
LAMBDA_MATH_FLOAT(log2)
LAMBDA_MATH_FLOAT(log10)
LAMBDA_MATH_FLOAT(sin)
LAMBDA_MATH_FLOAT(cos)
LAMBDA_MATH_FLOAT(tan)
LAMBDA_MATH_FLOAT(atan)

static inline float powf(float x, float y)
{
	return pow(x, y);
}

static inline float atan2f(float y, float x)
{
	return atan2(y, x);
}

static inline float hypotf(float x, float y)
{
	return hypot(x, y);
}

#endif
