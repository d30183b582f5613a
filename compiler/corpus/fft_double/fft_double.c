/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fast Fourier transform of complex doubles, in place after Cooley and Tukey. Request: up to 64 of them, a power of two. Reply:
 * their transform.
 */
#include <lambda.h>

#define MAX 64

struct complex {
	double re, im;
};

/* The powers of exp(-2 pi i / MAX). */
static const struct complex root[MAX / 2] = {
	{ 0x1.0000000000000p+0, -0x0.0p+0 },
	{ 0x1.fd88da3d12526p-1, -0x1.917a6bc29b42cp-4 },
	{ 0x1.f6297cff75cb0p-1, -0x1.8f8b83c69a60ap-3 },
	{ 0x1.e9f4156c62ddap-1, -0x1.294062ed59f05p-2 },
	{ 0x1.d906bcf328d46p-1, -0x1.87de2a6aea963p-2 },
	{ 0x1.c38b2f180bdb1p-1, -0x1.e2b5d3806f63bp-2 },
	{ 0x1.a9b66290ea1a3p-1, -0x1.1c73b39ae68c8p-1 },
	{ 0x1.8bc806b151741p-1, -0x1.44cf325091dd6p-1 },
	{ 0x1.6a09e667f3bcdp-1, -0x1.6a09e667f3bccp-1 },
	{ 0x1.44cf325091dd6p-1, -0x1.8bc806b151741p-1 },
	{ 0x1.1c73b39ae68c9p-1, -0x1.a9b66290ea1a3p-1 },
	{ 0x1.e2b5d3806f63ep-2, -0x1.c38b2f180bdb0p-1 },
	{ 0x1.87de2a6aea964p-2, -0x1.d906bcf328d46p-1 },
	{ 0x1.294062ed59f05p-2, -0x1.e9f4156c62ddbp-1 },
	{ 0x1.8f8b83c69a60dp-3, -0x1.f6297cff75cb0p-1 },
	{ 0x1.917a6bc29b438p-4, -0x1.fd88da3d12525p-1 },
	{ 0x1.1a62633145c07p-54, -0x1.0000000000000p+0 },
	{ -0x1.917a6bc29b42fp-4, -0x1.fd88da3d12526p-1 },
	{ -0x1.8f8b83c69a608p-3, -0x1.f6297cff75cb0p-1 },
	{ -0x1.294062ed59f02p-2, -0x1.e9f4156c62ddbp-1 },
	{ -0x1.87de2a6aea962p-2, -0x1.d906bcf328d46p-1 },
	{ -0x1.e2b5d3806f63cp-2, -0x1.c38b2f180bdb1p-1 },
	{ -0x1.1c73b39ae68c6p-1, -0x1.a9b66290ea1a5p-1 },
	{ -0x1.44cf325091dd5p-1, -0x1.8bc806b151742p-1 },
	{ -0x1.6a09e667f3bccp-1, -0x1.6a09e667f3bcdp-1 },
	{ -0x1.8bc806b151741p-1, -0x1.44cf325091dd6p-1 },
	{ -0x1.a9b66290ea1a4p-1, -0x1.1c73b39ae68c8p-1 },
	{ -0x1.c38b2f180bdb0p-1, -0x1.e2b5d3806f63fp-2 },
	{ -0x1.d906bcf328d46p-1, -0x1.87de2a6aea965p-2 },
	{ -0x1.e9f4156c62ddap-1, -0x1.294062ed59f06p-2 },
	{ -0x1.f6297cff75cb0p-1, -0x1.8f8b83c69a617p-3 },
	{ -0x1.fd88da3d12525p-1, -0x1.917a6bc29b43cp-4 },
};

static struct complex multiply(struct complex a, struct complex b)
{
	return (struct complex){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

static void reverse_bits(struct complex *x, int n)
{
	for (int i = 1, j = 0; i < n; i++) {
		int bit = n >> 1;

		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		if (i < j) {
			struct complex t = x[i];

			x[i] = x[j];
			x[j] = t;
		}
	}
}

static void transform(struct complex *x, int n)
{
	reverse_bits(x, n);
	for (int half = 1; half < n; half *= 2)
		for (int at = 0; at < n; at += 2 * half)
			for (int k = 0; k < half; k++) {
				struct complex a = x[at + k],
					       b = multiply(x[at + k + half], root[k * (MAX / 2 / half)]);

				x[at + k] = (struct complex){ a.re + b.re, a.im + b.im };
				x[at + k + half] = (struct complex){ a.re - b.re, a.im - b.im };
			}
}

int fft_double(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	struct complex x[MAX];
	int n = lambda_read(headers, x, sizeof(x)) / sizeof(x[0]);

	(void)match_data;
	if (!n || n & (n - 1))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	transform(x, n);
	return lambda_write(headers, x, n * sizeof(x[0]));
}
