/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Greatest common divisors after Euclid, and the coefficients of Bezout, signed 64 bits. Request: pairs. Reply: for each g, x, y. */
#include <lambda.h>

#define MAX 50

struct bezout {
	int64_t g, x, y;
};

static struct bezout extended(int64_t a, int64_t b)
{
	struct bezout r;

	if (!b)
		return (struct bezout){ a, 1, 0 };
	r = extended(b, a % b);
	return (struct bezout){ r.g, r.y, r.x - a / b * r.y };
}

int gcd(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	int64_t in[MAX][2];
	struct bezout out[MAX];
	int n = lambda_read(headers, in, sizeof(in)) / sizeof(in[0]);

	(void)match_data;
	for (int i = 0; i < n; i++)
		out[i] = extended(in[i][0], in[i][1]);
	return lambda_write(headers, out, n * sizeof(out[0]));
}
