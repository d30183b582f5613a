/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A count-min sketch of four rows, after Cormode and Muthukrishnan, that counts the request's bytes in pairs. Request: pairs.
 * Reply: for each of the pairs, in order, the estimate of how often it is there.
 */
#include <lambda.h>
#include <string.h>

#define ROWS 4
#define WIDTH 64

static const uint32_t factor[ROWS] = { 0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f };

static uint32_t column(int row, uint16_t key)
{
	return (key + 1) * factor[row] >> 26;
}

int count_min(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint16_t in[700], out[700], sketch[ROWS][WIDTH];
	int n = lambda_read(headers, in, sizeof(in)) / sizeof(in[0]);

	(void)match_data;
	memset(sketch, 0, sizeof(sketch));
	for (int i = 0; i < n; i++)
		for (int row = 0; row < ROWS; row++)
			sketch[row][column(row, in[i])]++;
	for (int i = 0; i < n; i++) {
		out[i] = 0xffff;
		for (int row = 0; row < ROWS; row++)
			if (sketch[row][column(row, in[i])] < out[i])
				out[i] = sketch[row][column(row, in[i])];
	}
	return lambda_write(headers, out, n * sizeof(out[0]));
}
