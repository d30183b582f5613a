/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A priority queue as a binary heap. Request: 32-bit signed integers to put in, where 0 takes the least one out. Reply: what was taken
 * out, nothing where there was nothing.
 */
#include <lambda.h>

#define MAX 350

struct queue {
	int32_t item[MAX];
	int n;
};

static void put(struct queue *q, int32_t x)
{
	int at = q->n++;

	for (; at > 0 && q->item[(at - 1) / 2] > x; at = (at - 1) / 2)
		q->item[at] = q->item[(at - 1) / 2];
	q->item[at] = x;
}

static int32_t take(struct queue *q)
{
	int32_t least = q->item[0], last = q->item[--q->n];
	int at = 0;

	for (int child = 1; child < q->n; child = 2 * at + 1) {
		if (child + 1 < q->n && q->item[child + 1] < q->item[child])
			child++;
		if (last <= q->item[child])
			break;
		q->item[at] = q->item[child];
		at = child;
	}
	q->item[at] = last;
	return least;
}

int priority_queue(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	int32_t in[MAX], out[MAX];
	struct queue q = { .n = 0 };
	int n = lambda_read(headers, in, sizeof(in)) / sizeof(in[0]), taken = 0;

	(void)match_data;
	for (int i = 0; i < n; i++) {
		if (in[i])
			put(&q, in[i]);
		else if (q.n)
			out[taken++] = take(&q);
	}
	return lambda_write(headers, out, taken * sizeof(out[0]));
}
