/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A binary search tree, whose nodes come from malloc, walked by recursion. Request: 16-bit numbers. Reply: each once, in order, with how
 * often it is there.
 */
#include <lambda.h>
#include <stdlib.h>

#define MAX 120

struct node {
	struct node *left, *right;
	uint16_t key, count;
};

static void insert(struct node **at, uint16_t key)
{
	while (*at && (*at)->key != key)
		at = key < (*at)->key ? &(*at)->left : &(*at)->right;
	if (!*at)
		*at = calloc(1, sizeof(**at));
	if (!*at)
		return;
	(*at)->key = key;
	(*at)->count++;
}

static uint16_t *list(const struct node *n, uint16_t *out)
{
	if (!n)
		return out;
	out = list(n->left, out);
	*out++ = n->key;
	*out++ = n->count;
	return list(n->right, out);
}

static void drop(struct node *n)
{
	if (!n)
		return;
	drop(n->left);
	drop(n->right);
	free(n);
}

int binary_tree(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint16_t in[MAX], out[2 * MAX];
	struct node *root = NULL;
	int n = lambda_read(headers, in, sizeof(in)) / sizeof(in[0]);

	(void)match_data;
	for (int i = 0; i < n; i++)
		insert(&root, in[i]);
	n = (uint8_t *)list(root, out) - (uint8_t *)out;
	drop(root);
	return lambda_write(headers, out, n);
}
