/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Dijkstra's shortest paths from node 0. Request: how many nodes, up to 40, in 16 bits, then edges: from, to, length, 16 bits each. Reply:
 * each node's distance, 32 bits, -1 if there is no path.
 */
#include <lambda.h>

#define NODES 40
#define EDGES 230
#define FAR 0xffffffffu

struct edge {
	uint16_t from, to, length;
};

struct request {
	uint16_t nodes;
	struct edge edge[EDGES];
};

static int nearest(const uint32_t *distance, const uint8_t *done, int n)
{
	int best = -1;

	for (int i = 0; i < n; i++)
		if (!done[i] && distance[i] != FAR && (best < 0 || distance[i] < distance[best]))
			best = i;
	return best;
}

static void relax(uint32_t *distance, const struct request *r, int edges, int from)
{
	for (int i = 0; i < edges; i++) {
		const struct edge *e = &r->edge[i];

		if (e->from == from && e->to < r->nodes && distance[from] + e->length < distance[e->to])
			distance[e->to] = distance[from] + e->length;
	}
}

int dijkstra(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	struct request in;
	uint32_t distance[NODES];
	uint8_t done[NODES] = { 0 };
	int n = lambda_read(headers, &in, sizeof(in)), edges = (n - 2) / 6, at;

	(void)match_data;
	if (n < 2 || in.nodes > NODES || !in.nodes)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (int i = 0; i < in.nodes; i++)
		distance[i] = i ? FAR : 0;
	while ((at = nearest(distance, done, in.nodes)) >= 0) {
		done[at] = 1;
		relax(distance, &in, edges, at);
	}
	return lambda_write(headers, distance, in.nodes * sizeof(distance[0]));
}
