/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The product of two square matrices of floats. Request: both, row by row, of at most 12 x 12. Reply: their product. */
#include <lambda.h>

#define MAX 12

static int side(int n)
{
	int k = 0;

	while (k < MAX && 2 * (k + 1) * (k + 1) <= n)
		k++;
	return k;
}

static void multiply(const float *a, const float *b, float *c, int k)
{
	for (int row = 0; row < k; row++)
		for (int column = 0; column < k; column++) {
			float sum = 0;

			for (int i = 0; i < k; i++)
				sum += a[row * k + i] * b[i * k + column];
			c[row * k + column] = sum;
		}
}

int matrix_float(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	float in[2 * MAX * MAX], out[MAX * MAX];
	int k = side(lambda_read(headers, in, sizeof(in)) / sizeof(in[0]));

	(void)match_data;
	multiply(in, in + k * k, out, k);
	return lambda_write(headers, out, k * k * sizeof(out[0]));
}
