/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Greyscale of 256 x 256 pixels, RGBA, as the plain double loop over arrays. The method says which step to take. */
#include <lambda.h>

#define SIDE 256

enum { NOTHING, FILL, CONVERT, SUM };

static uint8_t rgba[SIDE][SIDE][4], grey[SIDE][SIDE];

static void fill(void)
{
	uint32_t x = 1;

	for (int row = 0; row < SIDE; row++)
		for (int column = 0; column < SIDE; column++)
			for (int i = 0; i < 4; i++) {
				x = x * 1664525 + 1013904223;
				rgba[row][column][i] = x >> 24;
			}
}

static void convert(void)
{
	for (int row = 0; row < SIDE; row++)
		for (int column = 0; column < SIDE; column++) {
			const uint8_t *p = rgba[row][column];

			grey[row][column] = (77 * p[0] + 150 * p[1] + 29 * p[2] + 128) >> 8;
		}
}

static uint32_t sum(void)
{
	uint32_t h = 2166136261u;

	for (int row = 0; row < SIDE; row++)
		for (int column = 0; column < SIDE; column++)
			h = (h ^ grey[row][column]) * 16777619u;
	return h;
}

int grey_loop(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t h = 0;

	if (match_data->method == FILL)
		fill();
	else if (match_data->method == CONVERT)
		convert();
	else if (match_data->method == SUM)
		h = sum();
	return lambda_write(headers, &h, sizeof(h));
}
