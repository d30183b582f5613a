/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memcached's binary protocol (memcached's doc/protocol-binary.txt), for services of protocol memcached: make requests in the
 * lambda's own memory and send them by lambda_call_with(); read answers by lambda_read(). The text protocol needs only <text.h>.
 */
#ifndef LAMBDA_MEMCACHED_H
#define LAMBDA_MEMCACHED_H

#include "lambda.h"
#include "string.h"

enum {
	MEMCACHED_GET = 0,
	MEMCACHED_SET = 1,
	MEMCACHED_DELETE = 4,
};

enum {
	MEMCACHED_OK = 0,
	MEMCACHED_NOT_FOUND = 1,
};

#define MEMCACHED_HEADER 24 /* bytes before everything else */
#define MEMCACHED_KEY_MAX 250

/* The header of requests and answers, big-endian. */
struct memcached_header {
	uint8_t magic; /* 0x80 in a request, 0x81 in an answer */
	uint8_t opcode;
	uint16_t key_len;
	uint8_t extras_len; /* what stands between header and key */
	uint8_t type;
	uint16_t status; /* of an answer */
	uint32_t body_len; /* extras, key and value */
	uint32_t opaque; /* comes back unchanged */
	uint64_t cas;
};

/* Writes a request's header and key to to; returns how many bytes that is. */
static inline uint32_t memcached_begin(uint8_t *to, uint8_t opcode, uint8_t extras_len, const void *key,
				       uint32_t key_len, uint32_t value_len)
{
	struct memcached_header header = {
		.magic = 0x80,
		.opcode = opcode,
		.key_len = __builtin_bswap16((uint16_t)key_len),
		.extras_len = extras_len,
		.body_len = __builtin_bswap32(extras_len + key_len + value_len),
	};

	memcpy(to, &header, sizeof(header));
	memset(to + sizeof(header), 0, extras_len);
	memcpy(to + sizeof(header) + extras_len, key, key_len);
	return (uint32_t)sizeof(header) + extras_len + key_len;
}

/* Writes a get, or a delete, to to, which has room for MEMCACHED_HEADER + key_len bytes; returns how many it wrote. */
static inline uint32_t memcached_get(uint8_t *to, const void *key, uint32_t key_len)
{
	return memcached_begin(to, MEMCACHED_GET, 0, key, key_len, 0);
}

static inline uint32_t memcached_delete(uint8_t *to, const void *key, uint32_t key_len)
{
	return memcached_begin(to, MEMCACHED_DELETE, 0, key, key_len, 0);
}

/* Writes a set with flags 0 that never expires, MEMCACHED_HEADER + 8 + key_len + value_len bytes; returns how many. */
static inline uint32_t memcached_set(uint8_t *to, const void *key, uint32_t key_len, const void *value,
				     uint32_t value_len)
{
	uint32_t at = memcached_begin(to, MEMCACHED_SET, 8, key, key_len, value_len);

	memcpy(to + at, value, value_len);
	return at + value_len;
}

/*
 * Reads an answer of len bytes: its status, or -1 if it is not an answer. Sets where the value or an error's text begins, and
 * its length.
 */
static inline int memcached_answer(const uint8_t *from, uint32_t len, uint32_t *value, uint32_t *value_len)
{
	struct memcached_header header;
	uint32_t body_len, before;

	if (len < sizeof(header))
		return -1;
	memcpy(&header, from, sizeof(header));
	body_len = __builtin_bswap32(header.body_len);
	before = header.extras_len + __builtin_bswap16(header.key_len);
	if (header.magic != 0x81 || body_len != len - sizeof(header) || before > body_len)
		return -1;
	*value = (uint32_t)sizeof(header) + before;
	*value_len = body_len - before;
	return __builtin_bswap16(header.status);
}

#endif
