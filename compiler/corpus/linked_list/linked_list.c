/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Linked lists in a static pool: a round of Josephus. Request: how many stand in the circle, up to 300, and which of them each time
 * goes, 16 bits each. Reply: the order in which they go, 16 bits each, the last one too.
 */
#include <lambda.h>

#define MAX 300

struct person {
	uint16_t number;
	struct person *next;
};

static struct person circle[MAX];

static struct person *make_circle(int n)
{
	for (int i = 0; i < n; i++)
		circle[i] = (struct person){ i + 1, &circle[(i + 1) % n] };
	return &circle[n - 1];
}

int linked_list(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint16_t in[2], out[MAX];
	struct person *before;
	int gone = 0;

	(void)match_data;
	if (lambda_read(headers, in, sizeof(in)) != sizeof(in) || !in[0] || in[0] > MAX || !in[1] || in[1] > 20)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (before = make_circle(in[0]); gone < in[0]; before->next = before->next->next) {
		for (int i = 1; i < in[1]; i++)
			before = before->next;
		out[gone++] = before->next->number;
	}
	return lambda_write(headers, out, gone * sizeof(out[0]));
}
