/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protocol Buffers' wire format. Request: a message. Reply: for each field its number and its value, 64 bits each: of varints the number,
 * of fixed ones the bits, of others the length; nothing if it is malformed.
 */
#include <lambda.h>

#define FIELDS 80

struct field {
	uint64_t number, value;
};

/* Reads a number. Returns where it ends, or NULL. */
static const uint8_t *varint_at(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
	*v = 0;
	for (int shift = 0; shift < 70; shift += 7) {
		if (p == end)
			return NULL;
		*v |= (uint64_t)(*p & 0x7f) << (shift < 64 ? shift : 63);
		if (!(*p++ & 0x80))
			return p;
	}
	return NULL;
}

static const uint8_t *fixed(const uint8_t *p, const uint8_t *end, int bytes, uint64_t *v)
{
	if (end - p < bytes)
		return NULL;
	*v = 0;
	for (int i = bytes - 1; i >= 0; i--)
		*v = *v << 8 | p[i];
	return p + bytes;
}

static const uint8_t *field(const uint8_t *p, const uint8_t *end, struct field *f)
{
	uint64_t key;

	p = varint_at(p, end, &key);
	if (!p || !(key >> 3))
		return NULL;
	f->number = key >> 3;
	switch (key & 7) {
	case 0:
		return varint_at(p, end, &f->value);
	case 1:
		return fixed(p, end, 8, &f->value);
	case 2:
		p = varint_at(p, end, &f->value);
		return p && f->value <= (uint64_t)(end - p) ? p + f->value : NULL;
	case 5:
		return fixed(p, end, 4, &f->value);
	}
	return NULL;
}

int varint(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[400];
	const uint8_t *p = in, *end = in + lambda_read(headers, in, sizeof(in));
	struct field out[FIELDS];
	int n = 0;

	(void)match_data;
	while (p && p < end && n < FIELDS)
		p = field(p, end, &out[n++]);
	return lambda_write(headers, out, p ? n * sizeof(out[0]) : 0);
}
