/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Mandelbrot set in double. Request: the corner's coordinates and the step, double each. Reply: after how many rounds each point of
 * a raster of 16 x 16 escapes.
 */
#include <lambda.h>

#define SIDE 16
#define ROUNDS 50

static int escapes(double re, double im)
{
	double x = 0, y = 0;
	int round = 0;

	while (round < ROUNDS && x * x + y * y <= 4) {
		double next = x * x - y * y + re;

		y = x * y + y * x + im;
		x = next;
		round++;
	}
	return round;
}

int mandelbrot(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	double in[3];
	uint8_t out[SIDE][SIDE];

	(void)match_data;
	if (lambda_read(headers, in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (int row = 0; row < SIDE; row++)
		for (int column = 0; column < SIDE; column++)
			out[row][column] = escapes(in[0] + column * in[2], in[1] + row * in[2]);
	return lambda_write(headers, out, sizeof(out));
}
