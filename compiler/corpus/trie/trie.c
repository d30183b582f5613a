/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A trie of words, whose nodes come from malloc. Request: words, each ended by a newline; then, behind an empty line, prefixes in the same
 * form. Reply: how many words have each prefix, 16 bits each.
 */
#include <lambda.h>
#include <stdlib.h>

struct node {
	struct node *next[26];
	uint16_t words;
};

static struct node *child(struct node *n, char c, int make)
{
	if (c < 'a' || c > 'z')
		return NULL;
	if (!n->next[c - 'a'] && make)
		n->next[c - 'a'] = calloc(1, sizeof(*n));
	return n->next[c - 'a'];
}

/* Follows one line from the root. Returns the node that it leads to, or NULL. */
static struct node *walk(struct node *n, const char *p, const char *end, int make)
{
	for (; n && p < end; p++) {
		if (make)
			n->words++;
		n = child(n, *p, make);
	}
	if (n && make)
		n->words++;
	return n;
}

static void drop(struct node *n)
{
	if (!n)
		return;
	for (int i = 0; i < 26; i++)
		drop(n->next[i]);
	free(n);
}

int trie(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	char in[400];
	const char *p = in, *end = in + lambda_read(headers, in, sizeof(in)), *line;
	struct node *root = calloc(1, sizeof(*root));
	uint16_t out[400];
	int n = 0, making = 1;

	(void)match_data;
	while (root && p < end) {
		for (line = p; p < end && *p != '\n'; p++)
			;
		if (line == p) {
			making = 0;
		} else {
			struct node *at = walk(root, line, p, making);

			if (!making)
				out[n++] = at ? at->words : 0;
		}
		p++;
	}
	drop(root);
	return lambda_write(headers, out, n * sizeof(out[0]));
}
