/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Aho and Corasick's automaton over lower-case letters. Request: words, each ended by a NUL, an empty one, the text. Reply: how
 * often each word stands in the text, 16 bits each.
 */
#include <lambda.h>
#include <string.h>

#define NODES 128
#define WORDS 16
#define LETTERS 26

struct node {
	uint8_t next[LETTERS];
	uint8_t fail;
	uint8_t word; /* the word that ends here, from 1 on; 0 for none */
	uint8_t shorter; /* the next node along the failure links that ends a word */
};

struct automaton {
	struct node node[NODES];
	int nodes, words;
};

static int letter(uint8_t c)
{
	return c >= 'a' && c <= 'z' ? c - 'a' : -1;
}

/* Adds the word at p. Returns where the next word begins, or NULL. */
static const uint8_t *add(struct automaton *a, const uint8_t *p, const uint8_t *end)
{
	int at = 0;

	for (; p < end && *p; p++) {
		int c = letter(*p);

		if (c < 0)
			return 0;
		if (!a->node[at].next[c]) {
			if (a->nodes == NODES)
				return 0;
			a->node[at].next[c] = a->nodes++;
		}
		at = a->node[at].next[c];
	}
	if (p == end || a->words == WORDS)
		return 0;
	a->node[at].word = ++a->words;
	return p + 1;
}

/* Completes the nodes' transitions, breadth first. */
static void link_failures(struct automaton *a)
{
	uint8_t queue[NODES];
	int head = 0, tail = 0;

	for (int c = 0; c < LETTERS; c++)
		if (a->node[0].next[c])
			queue[tail++] = a->node[0].next[c];
	while (head < tail) {
		struct node *n = &a->node[queue[head++]];

		n->shorter = a->node[n->fail].word ? n->fail : a->node[n->fail].shorter;
		for (int c = 0; c < LETTERS; c++) {
			if (n->next[c]) {
				a->node[n->next[c]].fail = a->node[n->fail].next[c];
				queue[tail++] = n->next[c];
			} else {
				n->next[c] = a->node[n->fail].next[c];
			}
		}
	}
}

static void run(const struct automaton *a, const uint8_t *p, const uint8_t *end, uint16_t *counts)
{
	int at = 0;

	for (; p < end; p++) {
		int c = letter(*p);

		at = c < 0 ? 0 : a->node[at].next[c];
		for (int n = at; n; n = a->node[n].shorter)
			if (a->node[n].word)
				counts[a->node[n].word - 1]++;
	}
}

int aho_corasick(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1400];
	const uint8_t *p = in, *end = in + lambda_read(headers, in, sizeof(in));
	struct automaton a;
	uint16_t counts[WORDS] = { 0 };

	(void)match_data;
	memset(&a, 0, sizeof(a));
	a.nodes = 1;
	while (p && p < end && *p)
		p = add(&a, p, end);
	if (!p || p == end)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	link_failures(&a);
	run(&a, p + 1, end, counts);
	return lambda_write(headers, counts, 2 * a.words);
}
