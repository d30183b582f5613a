/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Union-find with path halving. Request: how many nodes, up to 200, in 16 bits, then edges as pairs of 16-bit nodes. Reply: for each node
 * the least one that it is connected with, 16 bits each.
 */
#include <lambda.h>

#define NODES 200
#define EDGES 340

static uint16_t find(uint16_t *parent, uint16_t x)
{
	while (parent[x] != x) {
		parent[x] = parent[parent[x]];
		x = parent[x];
	}
	return x;
}

static void unite(uint16_t *parent, uint16_t a, uint16_t b)
{
	a = find(parent, a);
	b = find(parent, b);
	if (a < b)
		parent[b] = a;
	else
		parent[a] = b;
}

int union_find(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint16_t in[1 + 2 * EDGES], parent[NODES], out[NODES];
	int words = lambda_read(headers, in, sizeof(in)) / sizeof(in[0]);

	(void)match_data;
	if (!words || in[0] > NODES)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (int i = 0; i < in[0]; i++)
		parent[i] = i;
	for (int i = 1; i + 1 < words; i += 2)
		if (in[i] < in[0] && in[i + 1] < in[0])
			unite(parent, in[i], in[i + 1]);
	for (int i = 0; i < in[0]; i++)
		out[i] = find(parent, i);
	return lambda_write(headers, out, in[0] * sizeof(out[0]));
}
