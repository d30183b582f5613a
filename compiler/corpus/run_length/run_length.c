/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Run-length coding. Request: 'e' and bytes, or 'd' and pairs of count and byte. Reply: the other form; no run is longer than 255. */
#include <lambda.h>

#define MAX 1400

static int encode(const uint8_t *in, int n, uint8_t *out)
{
	int at = 0;

	for (int i = 0, run; i < n; i += run) {
		for (run = 1; i + run < n && run < 255 && in[i + run] == in[i]; run++)
			;
		out[at++] = run;
		out[at++] = in[i];
	}
	return at;
}

static int decode(const uint8_t *in, int n, uint8_t *out)
{
	int at = 0;

	for (int i = 0; i + 1 < n; i += 2)
		for (int k = 0; k < in[i] && at < MAX; k++)
			out[at++] = in[i + 1];
	return at;
}

int run_length(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[701], out[MAX];
	int n = lambda_read(headers, in, sizeof(in));

	(void)match_data;
	if (!n)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	n = in[0] == 'e' ? encode(in + 1, n - 1, out) : decode(in + 1, n - 1, out);
	return lambda_write(headers, out, n);
}
