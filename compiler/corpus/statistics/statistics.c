/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Mean, variance and standard deviation after Welford, least and greatest, in double. Request: floats. Reply: those five.
 */
#include <lambda.h>
#include <math.h>

#define MAX 350

int statistics(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	float in[MAX];
	double mean = 0, squares = 0, least = INFINITY, greatest = -INFINITY;
	int n = lambda_read(headers, in, sizeof(in)) / sizeof(in[0]);

	(void)match_data;
	if (!n)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (int i = 0; i < n; i++) {
		double x = in[i], d = x - mean;

		mean += d / (i + 1);
		squares += d * (x - mean);
		least = x < least ? x : least;
		greatest = x > greatest ? x : greatest;
	}
	double out[] = { mean, squares / n, sqrt(squares / n), least, greatest };

	return lambda_write(headers, out, sizeof(out));
}
