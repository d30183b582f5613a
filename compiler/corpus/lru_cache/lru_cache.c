/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A cache of eight entries that forgets what was least recently used: a doubly linked list by pointers. Request: 16-bit keys. Reply: h
 * or m for each, hit or miss.
 */
#include <lambda.h>

#define MAX 700
#define ENTRIES 8

struct entry {
	struct entry *newer, *older;
	int32_t key;
};

struct cache {
	struct entry ends; /* newer is the oldest entry, older the newest: a ring */
	struct entry entry[ENTRIES];
	int used;
};

static void unlink_entry(struct entry *e)
{
	e->newer->older = e->older;
	e->older->newer = e->newer;
}

static void make_newest(struct cache *c, struct entry *e)
{
	e->newer = &c->ends;
	e->older = c->ends.older;
	e->older->newer = e;
	c->ends.older = e;
}

static int lookup(struct cache *c, uint16_t key)
{
	struct entry *e;

	for (e = c->ends.older; e != &c->ends; e = e->older) {
		if (e->key == key) {
			unlink_entry(e);
			make_newest(c, e);
			return 1;
		}
	}
	if (c->used < ENTRIES) {
		e = &c->entry[c->used++];
	} else {
		e = c->ends.newer;
		unlink_entry(e);
	}
	e->key = key;
	make_newest(c, e);
	return 0;
}

int lru_cache(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint16_t in[MAX];
	char out[MAX];
	struct cache c = { .used = 0 };
	int n = lambda_read(headers, in, sizeof(in)) / sizeof(in[0]);

	(void)match_data;
	c.ends.newer = c.ends.older = &c.ends;
	for (int i = 0; i < n; i++)
		out[i] = lookup(&c, in[i]) ? 'h' : 'm';
	return lambda_write(headers, out, n);
}
