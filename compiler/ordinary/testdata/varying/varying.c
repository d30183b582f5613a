/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Arrays of variable length and alloca(), in all places that C allows. */
#include <lambda.h>
#include <string.h>

struct node {
	uint32_t value;
	struct node *next;
};

static uint32_t recurrence(int n)
{
	uint32_t a[n];

	a[0] = 5;
	for (int i = 1; i < n; i++)
		a[i] = a[i - 1] * 3 + i;
	return a[n - 1];
}

/* The array of each round goes with the round: all of them together would be too much. */
static uint32_t rounds(uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 1; i <= 20 * n; i++) {
		uint16_t a[i % n + 1][i % 7 + 1];

		if (i % 5 == 4)
			continue;
		for (uint32_t y = 0; y <= i % n; y++)
			for (uint32_t x = 0; x <= i % 7; x++)
				a[y][x] = x * y + i;
		sum = sum * 31 + a[i % n][i % 7] + sizeof(a);
	}
	return sum;
}

/* What alloca() gives stays until the function returns. */
static uint32_t list(uint32_t n)
{
	struct node *first = NULL;
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct node *node = __builtin_alloca(sizeof(*node));

		node->value = i * i + 1;
		node->next = first;
		first = node;
	}
	for (; first; first = first->next)
		sum = sum * 3 + first->value;
	return sum;
}

static uint32_t middle(const uint32_t *from, uint32_t n)
{
	uint32_t sorted[n];

	memcpy(sorted, from, sizeof(sorted));
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t k = i; k && sorted[k] < sorted[k - 1]; k--) {
			uint32_t t = sorted[k];

			sorted[k] = sorted[k - 1];
			sorted[k - 1] = t;
		}
	return sorted[n / 2];
}

static uint32_t middles(uint32_t n)
{
	uint32_t a[n], sum = 0;

	for (uint32_t i = 0; i < n; i++)
		a[i] = i * 2654435761U >> 20;
	for (uint32_t i = 0; i < 30; i++) {
		sum += middle(a, n);
		a[i % n] ^= sum;
	}
	return sum;
}

/* Two in a scope, which a goto leaves. */
static uint32_t scopes(uint32_t n)
{
	uint32_t round = 0, sum = 0;

again: {
	uint32_t a[n + round];
	uint8_t b[3 * n];

	memset(b, round, sizeof(b));
	for (uint32_t i = 0; i < n + round; i++)
		a[i] = b[i % sizeof(b)] + i;
	sum += a[n + round - 1];
	if (++round < 500 / n)
		goto again;
}
	return sum;
}

int varying(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t in[2], out;

	if (lambda_read(headers, in, sizeof(in)) != sizeof(in) || !in[1])
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	switch (in[0]) {
	case 0:
		out = recurrence(in[1]);
		break;
	case 1:
		out = rounds(in[1]);
		break;
	case 2:
		out = list(in[1]);
		break;
	case 3:
		out = middles(in[1]);
		break;
	default:
		out = scopes(in[1]);
	}
	return lambda_write(headers, &out, sizeof(out));
}
