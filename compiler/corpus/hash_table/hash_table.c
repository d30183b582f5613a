/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hash table with open addressing, which removes as well. Request: operations of eight bytes: a letter (s: set, g: get, d: delete), a blank,
 * a 16-bit key, a 32-bit value. Reply: for each get the value, 0 if there is none.
 */
#include <lambda.h>

#define OPERATIONS 175
#define SLOTS 256

enum { FREE, USED, REMOVED };

struct operation {
	char what, blank;
	uint16_t key;
	uint32_t value;
};

struct slot {
	uint8_t state;
	uint16_t key;
	uint32_t value;
};

/* The key's slot, or the free slot for it. */
static struct slot *find(struct slot *table, uint16_t key)
{
	struct slot *reuse = NULL;
	uint32_t at = key * 40503u >> 4;

	for (int i = 0; i < SLOTS; i++) {
		struct slot *s = &table[(at + i) % SLOTS];

		if (s->state == FREE)
			return reuse ? reuse : s;
		if (s->state == USED && s->key == key)
			return s;
		if (s->state == REMOVED && !reuse)
			reuse = s;
	}
	return reuse;
}

int hash_table(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	struct slot table[SLOTS] = { { 0 } };
	struct operation in[OPERATIONS];
	uint32_t out[OPERATIONS];
	int n = lambda_read(headers, in, sizeof(in)) / sizeof(in[0]), answers = 0;

	(void)match_data;
	for (int i = 0; i < n; i++) {
		struct slot *s = find(table, in[i].key);

		switch (in[i].what) {
		case 's':
			*s = (struct slot){ USED, in[i].key, in[i].value };
			break;
		case 'g':
			out[answers++] = s->state == USED ? s->value : 0;
			break;
		case 'd':
			if (s->state == USED)
				s->state = REMOVED;
			break;
		}
	}
	return lambda_write(headers, out, answers * sizeof(out[0]));
}
