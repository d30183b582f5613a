/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Everything that C does with float and double, on three operands of each. Which NaN comes out is left open. */
#include <lambda.h>
#include <math.h>
#include <string.h>

#define MOST 160

struct pair {
	float x, y;
};

struct complex {
	double re, im;
};

static uint64_t out[MOST];

static void give(uint32_t *n, double x)
{
	uint64_t bits;

	memcpy(&bits, &x, 8);
	out[(*n)++ % MOST] = x != x ? 0x7ff8000000000000 : bits;
}

static struct complex multiply(struct complex a, struct complex b)
{
	return (struct complex){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

static struct pair turn(struct pair p, float by)
{
	return (struct pair){ -p.y * by, p.x / by };
}

#define TRUTHS(a, b) \
	((a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | (a > b) << 4 | (a >= b) << 5 | !(a < b) << 6 | \
	 isunordered(a, b) << 7 | islessgreater(a, b) << 8 | !!isnan(a) << 9 | !!isinf(a) << 10 | \
	 !!isfinite(a) << 11 | !!isnormal(a) << 12 | !!signbit(a) << 13 | !!a << 14 | (a < 1) << 15 | \
	 (a >= -2.5f) << 16)

#define INTEGERS(a) \
	do { \
		out[n++] = (int8_t)a; \
		out[n++] = (uint8_t)a; \
		out[n++] = (int16_t)a; \
		out[n++] = (uint16_t)a; \
		out[n++] = (int32_t)a; \
		out[n++] = (uint32_t)a; \
		out[n++] = (int64_t)a; \
		out[n++] = (uint64_t)a; \
		out[n++] = (_Bool)a; \
	} while (0)

int numbers(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	struct {
		double d[3];
		float f[3];
		int32_t i;
	} in;
	uint32_t n = 0;
	double a, b, c, sum = 0, list[8];
	float x, y, z, most = -INFINITY;
	int power;

	(void)match_data;
	if (lambda_read(headers, &in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	a = in.d[0], b = in.d[1], c = in.d[2], x = in.f[0], y = in.f[1], z = in.f[2];
	give(&n, a + b), give(&n, a - b), give(&n, a * b), give(&n, a / b), give(&n, -a), give(&n, a * b + c);
	give(&n, x + y), give(&n, x - y), give(&n, x * y), give(&n, x / y), give(&n, -x), give(&n, x * y + z);
	give(&n, a + x), give(&n, (float)a), give(&n, x * 0.1), give(&n, a / 3), give(&n, 1 / x),
		give(&n, (float)(a * x));
	give(&n, fmod(a, b)), give(&n, fmodf(x, y)), give(&n, fma(a, b, c)), give(&n, fmaf(x, y, z));
	give(&n, sqrt(a)), give(&n, sqrtf(x)), give(&n, fabs(a)), give(&n, fabsf(x)), give(&n, copysign(a, b));
	give(&n, floor(a)), give(&n, ceil(a)), give(&n, trunc(a)), give(&n, round(a)), give(&n, rint(a));
	give(&n, floorf(x)), give(&n, ceilf(x)), give(&n, truncf(x)), give(&n, roundf(x)), give(&n, rintf(x));
	give(&n, fmin(a, b)), give(&n, fmax(a, b)), give(&n, fminf(x, y)), give(&n, fmaxf(x, y)), give(&n, fdim(a, b));
	give(&n, ldexp(a, in.i % 2200)), give(&n, frexp(b, &power)), give(&n, isfinite(b) ? power : 0),
		give(&n, modf(c, &a));
	give(&n, a), give(&n, in.i), give(&n, (float)in.i), give(&n, (uint32_t)in.i), give(&n, (int8_t)in.i);
	give(&n, in.i * 0x100000001ll), give(&n, (float)(in.i * 0x100000001ll)), give(&n, in.i * 0x100000001ull);
	give(&n, (float)(in.i * 0x100000001ull)), give(&n, in.i > 0 ? a : x), give(&n, in.i & 1);
	a = in.d[0];
	out[n++] = TRUTHS(a, b);
	out[n++] = TRUTHS(x, y);
	INTEGERS(a);
	INTEGERS(b);
	INTEGERS(x);

	struct complex p = { a, b }, q = { c, x };
	struct pair r = { x, y };

	for (int i = 0; i < (in.i & 7); i++) {
		p = multiply(p, q);
		r = turn(r, z);
		list[i] = p.re + r.y;
		most = list[i] > most ? list[i] : most;
	}
	for (int i = 0; i < (in.i & 7); i++)
		sum += list[i] * 0.5f;
	give(&n, p.re), give(&n, p.im), give(&n, r.x), give(&n, r.y), give(&n, sum), give(&n, most);
	return lambda_write(headers, out, n * 8);
}
