/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The product of two square matrices of doubles. Request: both, row by row, of at most 8 x 8. Reply: their product. */
#include <lambda.h>

#define MAX 8

static int side(int n)
{
	int k = 0;

	while (k < MAX && 2 * (k + 1) * (k + 1) <= n)
		k++;
	return k;
}

static void multiply(const double *a, const double *b, double *c, int k)
{
	for (int row = 0; row < k; row++)
		for (int column = 0; column < k; column++) {
			double sum = 0;

			for (int i = 0; i < k; i++)
				sum += a[row * k + i] * b[i * k + column];
			c[row * k + column] = sum;
		}
}

int matrix_double(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	double in[2 * MAX * MAX], out[MAX * MAX];
	int k = side(lambda_read(headers, in, sizeof(in)) / sizeof(in[0]));

	(void)match_data;
	multiply(in, in + k * k, out, k);
	return lambda_write(headers, out, k * k * sizeof(out[0]));
}
