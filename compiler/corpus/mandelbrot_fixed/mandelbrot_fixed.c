/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Mandelbrot set in fixed point of 28 binary digits, with signed 64-bit products. Request: the corner and the step, 32 bits
 * each. Reply: after how many rounds each point of a raster of 16 x 16 escapes.
 */
#include <lambda.h>

#define SIDE 16
#define ROUNDS 40
#define DIGITS 28

static int escapes(int64_t re, int64_t im)
{
	int64_t x = 0, y = 0;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		int64_t xx = x * x >> DIGITS, yy = y * y >> DIGITS;

		if (xx + yy > 4ll << DIGITS)
			break;
		y = (2 * x * y >> DIGITS) + im;
		x = xx - yy + re;
	}
	return round;
}

int mandelbrot_fixed(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	int32_t in[3];
	uint8_t out[SIDE][SIDE];

	(void)match_data;
	if (lambda_read(headers, in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (int row = 0; row < SIDE; row++)
		for (int column = 0; column < SIDE; column++)
			out[row][column] = escapes(in[0] + (int64_t)column * in[2], in[1] + (int64_t)row * in[2]);
	return lambda_write(headers, out, sizeof(out));
}
