/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The elementary functions. Which NaN comes out is left open. */
#include <lambda.h>
#include <math.h>

int elementary(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	double in[2], x, y;

	(void)match_data;
	if (lambda_read(headers, in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	x = in[0];
	y = in[1];

	double out[] = { exp(x),  exp2(x),     log(x),	  log2(x),     log10(x),   sin(x),  cos(x),    tan(x),
			 atan(x), atan2(y, x), pow(x, y), hypot(x, y), fmod(x, y), sinf(x), powf(x, y) };

	for (int i = 0; i < (int)(sizeof(out) / sizeof(out[0])); i++)
		out[i] = isnan(out[i]) ? 0 : out[i];
	return lambda_write(headers, out, sizeof(out));
}
