// SPDX-License-Identifier: Apache-2.0
/* Rebuilds datagrams that were lost, from what the ikernel parity posts of the others. */
#include <string.h>

#include "internal.h"

/* What stands before the bytes, in the machine's order (ikernels/parity/parity.bpf.c). */
struct parity_head {
	uint64_t group;
	uint16_t index, count;
	uint32_t length;
};

_Static_assert(sizeof(struct parity_head) == 16, "the head has no gaps");

int lambdanic_shard_parse(const void *message, size_t len, struct lambdanic_shard *shard)
{
	struct parity_head head;

	if (!message || !shard)
		return LAMBDANIC_BAD_ARGUMENT;
	if (len < sizeof(head))
		return LAMBDANIC_NO_SHARD;
	memcpy(&head, message, sizeof(head));
	if (!head.count && head.length != len - sizeof(head))
		return LAMBDANIC_NO_SHARD;
	*shard = (struct lambdanic_shard){
		.group = head.group,
		.index = head.index,
		.count = head.count,
		.length = head.length,
		.data = (const uint8_t *)message + sizeof(head),
		.len = len - sizeof(head),
	};
	return LAMBDANIC_OK;
}

/* Finds the one datagram of the parity's group that is not among others. */
static int find_missing(const struct lambdanic_shard *parity, const struct lambdanic_shard *others, size_t n,
			uint16_t *missing)
{
	uint8_t has[UINT16_MAX + 1] = { 0 };

	if (!parity->count || n != parity->count - 1U)
		return LAMBDANIC_NO_SHARD;
	for (size_t i = 0; i < n; i++) {
		const struct lambdanic_shard *o = &others[i];

		if (o->group != parity->group || o->count || o->index >= parity->count || has[o->index]++)
			return LAMBDANIC_NO_SHARD;
	}
	*missing = (uint16_t)((const uint8_t *)memchr(has, 0, sizeof(has)) - has);
	return LAMBDANIC_OK;
}

int lambdanic_shard_rebuild(const struct lambdanic_shard *parity, const struct lambdanic_shard *others, size_t n,
			    void *data, struct lambdanic_shard *lost)
{
	uint32_t length;
	uint16_t missing;
	uint8_t *to = data;
	int err;

	if (!parity || (n && !others) || (parity->len && !data) || !lost)
		return LAMBDANIC_BAD_ARGUMENT;
	err = find_missing(parity, others, n, &missing);
	if (err)
		return err;
	length = parity->length;
	for (size_t i = 0; i < n; i++) {
		if (others[i].len > parity->len)
			return LAMBDANIC_NO_SHARD;
		length ^= (uint32_t)others[i].len;
	}
	if (length > parity->len)
		return LAMBDANIC_NO_SHARD;
	if (parity->len)
		memcpy(to, parity->data, parity->len);
	for (size_t i = 0; i < n; i++) {
		const uint8_t *from = others[i].data;

		for (size_t j = 0; j < others[i].len; j++)
			to[j] ^= from[j];
	}
	*lost = (struct lambdanic_shard){
		.group = parity->group, .index = missing, .length = length, .data = data, .len = length
	};
	return LAMBDANIC_OK;
}
