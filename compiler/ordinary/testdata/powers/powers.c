/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* More calls of long functions than the verifier would follow, if it followed each. Which NaN comes out is left open. */
#include <lambda.h>
#include <math.h>

#define TEN(DO, tens) \
	DO(tens##0) \
	DO(tens##1) DO(tens##2) DO(tens##3) DO(tens##4) DO(tens##5) DO(tens##6) DO(tens##7) DO(tens##8) DO(tens##9)
#define EACH(DO) TEN(DO, 1) TEN(DO, 2) TEN(DO, 3) TEN(DO, 4) TEN(DO, 5) TEN(DO, 6) TEN(DO, 7) TEN(DO, 8) TEN(DO, 9)

int powers(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	double in[2], x, y, sum = 0;

	(void)match_data;
	if (lambda_read(headers, in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	x = in[0];
	y = in[1];
#define ADD(n) sum += pow(x + n, y) * sin(sum * n) + log(x * n);
	EACH(ADD)
	sum = isnan(sum) ? log(10) + pow(2, 0.5) + sin(1e22) + exp(-1)
			 : sum; /* of constants: computed by the compiler */
	return lambda_write(headers, &sum, sizeof(sum));
}
