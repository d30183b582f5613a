/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fast Fourier transform of complex floats, in place after Cooley and Tukey. Request: up to 128 of them, a power of two. Reply:
 * their transform.
 */
#include <lambda.h>

#define MAX 128

struct complex {
	float re, im;
};

/* The powers of exp(-2 pi i / MAX). */
static const struct complex root[MAX / 2] = {
	{ 0x1.0000000000000p+0f, -0x0.0p+0f },
	{ 0x1.ff621e0000000p-1f, -0x1.91f6600000000p-5f },
	{ 0x1.fd88da0000000p-1f, -0x1.917a6c0000000p-4f },
	{ 0x1.fa75580000000p-1f, -0x1.2c81060000000p-3f },
	{ 0x1.f6297c0000000p-1f, -0x1.8f8b840000000p-3f },
	{ 0x1.f0a7f00000000p-1f, -0x1.f19f980000000p-3f },
	{ 0x1.e9f4160000000p-1f, -0x1.2940620000000p-2f },
	{ 0x1.e212100000000p-1f, -0x1.58f9a80000000p-2f },
	{ 0x1.d906bc0000000p-1f, -0x1.87de2a0000000p-2f },
	{ 0x1.ced7b00000000p-1f, -0x1.b5d1000000000p-2f },
	{ 0x1.c38b300000000p-1f, -0x1.e2b5d40000000p-2f },
	{ 0x1.b728340000000p-1f, -0x1.07387a0000000p-1f },
	{ 0x1.a9b6620000000p-1f, -0x1.1c73b40000000p-1f },
	{ 0x1.9b3e040000000p-1f, -0x1.30ff800000000p-1f },
	{ 0x1.8bc8060000000p-1f, -0x1.44cf320000000p-1f },
	{ 0x1.7b5df20000000p-1f, -0x1.57d6940000000p-1f },
	{ 0x1.6a09e60000000p-1f, -0x1.6a09e60000000p-1f },
	{ 0x1.57d6940000000p-1f, -0x1.7b5df20000000p-1f },
	{ 0x1.44cf320000000p-1f, -0x1.8bc8060000000p-1f },
	{ 0x1.30ff800000000p-1f, -0x1.9b3e040000000p-1f },
	{ 0x1.1c73b40000000p-1f, -0x1.a9b6620000000p-1f },
	{ 0x1.07387a0000000p-1f, -0x1.b728340000000p-1f },
	{ 0x1.e2b5d40000000p-2f, -0x1.c38b300000000p-1f },
	{ 0x1.b5d1000000000p-2f, -0x1.ced7b00000000p-1f },
	{ 0x1.87de2a0000000p-2f, -0x1.d906bc0000000p-1f },
	{ 0x1.58f9a80000000p-2f, -0x1.e212100000000p-1f },
	{ 0x1.2940620000000p-2f, -0x1.e9f4160000000p-1f },
	{ 0x1.f19f980000000p-3f, -0x1.f0a7f00000000p-1f },
	{ 0x1.8f8b840000000p-3f, -0x1.f6297c0000000p-1f },
	{ 0x1.2c81060000000p-3f, -0x1.fa75580000000p-1f },
	{ 0x1.917a6c0000000p-4f, -0x1.fd88da0000000p-1f },
	{ 0x1.91f6600000000p-5f, -0x1.ff621e0000000p-1f },
	{ 0x1.1a62640000000p-54f, -0x1.0000000000000p+0f },
	{ -0x1.91f6600000000p-5f, -0x1.ff621e0000000p-1f },
	{ -0x1.917a6c0000000p-4f, -0x1.fd88da0000000p-1f },
	{ -0x1.2c81060000000p-3f, -0x1.fa75580000000p-1f },
	{ -0x1.8f8b840000000p-3f, -0x1.f6297c0000000p-1f },
	{ -0x1.f19f980000000p-3f, -0x1.f0a7f00000000p-1f },
	{ -0x1.2940620000000p-2f, -0x1.e9f4160000000p-1f },
	{ -0x1.58f9a80000000p-2f, -0x1.e212100000000p-1f },
	{ -0x1.87de2a0000000p-2f, -0x1.d906bc0000000p-1f },
	{ -0x1.b5d1000000000p-2f, -0x1.ced7b00000000p-1f },
	{ -0x1.e2b5d40000000p-2f, -0x1.c38b300000000p-1f },
	{ -0x1.07387a0000000p-1f, -0x1.b728340000000p-1f },
	{ -0x1.1c73b40000000p-1f, -0x1.a9b6620000000p-1f },
	{ -0x1.30ff800000000p-1f, -0x1.9b3e040000000p-1f },
	{ -0x1.44cf320000000p-1f, -0x1.8bc8060000000p-1f },
	{ -0x1.57d6940000000p-1f, -0x1.7b5df20000000p-1f },
	{ -0x1.6a09e60000000p-1f, -0x1.6a09e60000000p-1f },
	{ -0x1.7b5df20000000p-1f, -0x1.57d6940000000p-1f },
	{ -0x1.8bc8060000000p-1f, -0x1.44cf320000000p-1f },
	{ -0x1.9b3e040000000p-1f, -0x1.30ff800000000p-1f },
	{ -0x1.a9b6620000000p-1f, -0x1.1c73b40000000p-1f },
	{ -0x1.b728340000000p-1f, -0x1.07387a0000000p-1f },
	{ -0x1.c38b300000000p-1f, -0x1.e2b5d40000000p-2f },
	{ -0x1.ced7b00000000p-1f, -0x1.b5d1000000000p-2f },
	{ -0x1.d906bc0000000p-1f, -0x1.87de2a0000000p-2f },
	{ -0x1.e212100000000p-1f, -0x1.58f9a80000000p-2f },
	{ -0x1.e9f4160000000p-1f, -0x1.2940620000000p-2f },
	{ -0x1.f0a7f00000000p-1f, -0x1.f19f980000000p-3f },
	{ -0x1.f6297c0000000p-1f, -0x1.8f8b840000000p-3f },
	{ -0x1.fa75580000000p-1f, -0x1.2c81060000000p-3f },
	{ -0x1.fd88da0000000p-1f, -0x1.917a6c0000000p-4f },
	{ -0x1.ff621e0000000p-1f, -0x1.91f6600000000p-5f },
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

int fft_float(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	struct complex x[MAX];
	int n = lambda_read(headers, x, sizeof(x)) / sizeof(x[0]);

	(void)match_data;
	if (!n || n & (n - 1))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	transform(x, n);
	return lambda_write(headers, x, n * sizeof(x[0]));
}
