/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The elementary functions of <math.h>, in double: the same bits on the NIC and on the host. They are within five units in the last
 * place of the true value; pow() is off by up to |y| + 2 |y log x| more, and sine and its kin are meant for arguments up to 2^20.
 * The functions of float are those of double, rounded.
 */
#ifndef LAMBDA_ELEMENTARY_H
#define LAMBDA_ELEMENTARY_H

/* Horner's scheme. */
#define LAMBDA_POLYNOMIAL(x, coefficients) \
	({ \
		double _sum = 0; \
		_Pragma("clang loop unroll(full)") for (int _i = sizeof(coefficients) / sizeof(double) - 1; _i >= 0; \
							_i--) _sum = _sum * (x) + coefficients[_i]; \
		_sum; \
	})

/* 2^k * exp(r), |r| <= log(2) / 2, by the series. */
static inline double exp(double x)
{
	const double series[] = {
		1,	    1,		 1.0 / 2,      1.0 / 6,	      1.0 / 24,	      1.0 / 120,       1.0 / 720,
		1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800
	};
	double k, r;

	if (!(x > -750))
		return x != x ? x : 0;
	if (x > 710)
		return HUGE_VAL;
	k = rint(x * M_LOG2E);
	r = x - k * 0x1.62e42fee00000p-1 - k * 0x1.a39ef35793c76p-33;
	return scalbn(LAMBDA_POLYNOMIAL(r, series), k);
}

/* k * log(2) + log(m), m about 1, by the series of log((1 + s) / (1 - s)). */
static inline double log(double x)
{
	const double series[] = { 2.0 / 3,  2.0 / 5,  2.0 / 7,	2.0 / 9,  2.0 / 11,
				  2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21 };
	double m, f, s, z;
	int k;

	if (!(x > 0))
		return x == 0 ? -HUGE_VAL : NAN;
	if (isinf(x))
		return x;
	m = frexp(x, &k);
	if (m < M_SQRT1_2) {
		m *= 2;
		k--;
	}
	f = m - 1;
	s = f / (2 + f);
	z = s * s;
	z *= LAMBDA_POLYNOMIAL(z, series);
	/* log(m) = 2s + s*z, and 2s = f - s*f, of which f is exact */
	return k * 0x1.62e42fee00000p-1 + (f - (s * (f - z) - k * 0x1.a39ef35793c76p-33));
}

/* Which quarter x is in, and how far from its middle, to 2^-120 of pi / 2. */
static inline double lambda_quarter(double x, int *quarter)
{
	double k = rint(x * M_2_PI);
	double r = ((x - k * 0x1.921fb54400000p+0) - k * 0x1.0b4611a600000p-34) - k * 0x1.3198a2e000000p-69;

	*quarter = (int64_t)k & 3;
	return r - k * 0x1.b839a252049c1p-104;
}

static inline double lambda_sine(double x)
{
	const double series[] = { -1.0 / 6,	   1.0 / 120,	     -1.0 / 5040,	   1.0 / 362880,
				  -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000 };
	double z = x * x;

	return x + x * (z * LAMBDA_POLYNOMIAL(z, series));
}

static inline double lambda_cosine(double x)
{
	const double series[] = { 1.0 / 24,	   -1.0 / 720,	       1.0 / 40320,	    -1.0 / 3628800,
				  1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000 };
	double z = x * x, half = z / 2, w = 1 - half;

	return w + ((1 - w) - half + z * z * LAMBDA_POLYNOMIAL(z, series));
}

static inline double lambda_sine_from(double x, int quarters)
{
	int quarter;
	double r, y;

	if (!isfinite(x))
		return NAN;
	if (x == 0)
		return quarters ? 1 : x;
	r = lambda_quarter(x, &quarter);
	quarter += quarters;
	y = quarter & 1 ? lambda_cosine(r) : lambda_sine(r);
	return quarter & 2 ? -y : y;
}

static inline double sin(double x)
{
	return lambda_sine_from(x, 0);
}

static inline double cos(double x)
{
	return lambda_sine_from(x, 1);
}

static inline double tan(double x)
{
	return sin(x) / cos(x);
}

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

/* Whole powers by squaring, others by exp() and log(). */
static inline double pow(double x, double y)
{
	double whole = trunc(y), result = 1;

	if (y == 0 || x == 1 || (x == -1 && isinf(y)))
		return 1;
	if (x != x || y != y)
		return NAN;
	if (isinf(y))
		return (fabs(x) > 1) == (y > 0) ? HUGE_VAL : 0;
	if (whole == y && fabs(y) <= 1024) {
		for (uint32_t n = fabs(y); n; n >>= 1) {
			if (n & 1)
				result *= x;
			x *= x;
		}
		return y < 0 ? 1 / result : result;
	}
	if (x < 0 && whole == y) {
		result = exp(y * log(-x));
		return fmod(y, 2) == 0 ? result : -result;
	}
	if (x == 0 || isinf(x))
		return (x == 0) == (y < 0) ? HUGE_VAL : 0;
	return exp(y * log(x));
}

static inline double exp2(double x)
{
	double k = rint(x);

	if (!(fabs(x) < 2000))
		return exp(x);
	return scalbn(exp((x - k) * M_LN2), k);
}

static inline double log2(double x)
{
	int k;
	double m = frexp(x, &k);

	if (!(x > 0) || isinf(x))
		return log(x);
	return m < M_SQRT1_2 ? k - 1 + log(2 * m) * M_LOG2E : k + log(m) * M_LOG2E;
}

static inline double log10(double x)
{
	return log(x) * M_LOG10E;
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
