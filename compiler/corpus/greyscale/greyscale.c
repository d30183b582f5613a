/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RGBA to greyscale as the plain double loop over a whole image of 256 x 256 (fewer rows in a shorter message), by ITU-R BT.601 in
 * integers.
 */
#include <lambda.h>

#define WIDTH 256
#define HEIGHT 256

static uint8_t rgba[HEIGHT][WIDTH][4], grey[HEIGHT][WIDTH];

static void convert(uint32_t rows)
{
	for (uint32_t y = 0; y < rows; y++)
		for (uint32_t x = 0; x < WIDTH; x++)
			grey[y][x] = (77 * rgba[y][x][0] + 150 * rgba[y][x][1] + 29 * rgba[y][x][2] + 128) >> 8;
}

int greyscale(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t n = lambda_read(headers, rgba, sizeof(rgba));

	(void)match_data;
	convert((n + sizeof(rgba[0]) - 1) / sizeof(rgba[0]));
	return lambda_write(headers, grey, n / 4);
}
