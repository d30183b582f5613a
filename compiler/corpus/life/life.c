/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Conway's Game of Life on a torus of 32 x 32. Request: generations in one byte, up to 20, then 32 rows of 32 bits. Reply: the
 * rows after so many.
 */
#include <lambda.h>
#include <string.h>

#define SIDE 32

struct world {
	uint8_t cell[SIDE][SIDE];
};

static int neighbours(const struct world *w, int row, int column)
{
	int n = 0;

	for (int dr = -1; dr <= 1; dr++)
		for (int dc = -1; dc <= 1; dc++)
			if (dr || dc)
				n += w->cell[(row + dr + SIDE) % SIDE][(column + dc + SIDE) % SIDE];
	return n;
}

static void advance(struct world *to, const struct world *from)
{
	for (int row = 0; row < SIDE; row++)
		for (int column = 0; column < SIDE; column++) {
			int n = neighbours(from, row, column);

			to->cell[row][column] = n == 3 || (n == 2 && from->cell[row][column]);
		}
}

int life(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1 + 4 * SIDE];
	uint32_t rows[SIDE];
	struct world worlds[2];
	int n;

	(void)match_data;
	if (lambda_read(headers, in, sizeof(in)) != sizeof(in) || in[0] > 20)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	memcpy(rows, in + 1, sizeof(rows));
	for (int row = 0; row < SIDE; row++)
		for (int column = 0; column < SIDE; column++)
			worlds[0].cell[row][column] = rows[row] >> column & 1;
	for (n = 0; n < in[0]; n++)
		advance(&worlds[(n + 1) % 2], &worlds[n % 2]);
	memset(rows, 0, sizeof(rows));
	for (int row = 0; row < SIDE; row++)
		for (int column = 0; column < SIDE; column++)
			rows[row] |= (uint32_t)worlds[n % 2].cell[row][column] << column;
	return lambda_write(headers, rows, sizeof(rows));
}
