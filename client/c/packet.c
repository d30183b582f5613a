// SPDX-License-Identifier: Apache-2.0
#include <endian.h>
#include <string.h>

#include "internal.h"

void header_write(const struct header *h, struct ln_rpc *wire)
{
	*wire = (struct ln_rpc){
		.magic = htobe16(LN_RPC_MAGIC),
		.version = LN_RPC_VERSION,
		.type = h->type,
		.flags = h->flags,
		.code = h->code,
		.length = htobe16(h->length),
		.workload = htobe32(h->workload),
		.revision = htobe32(h->revision),
		.request = htobe64(h->request),
		.index = htobe32(h->index),
		.count = htobe32(h->count),
		.message_len = htobe32(h->message_len),
		.method = htobe32(h->method),
		.deadline_us = htobe32(h->deadline_us),
		.client = htobe32(h->client),
		.sequence = htobe32(h->sequence),
		.grant = htobe32(h->grant),
		.tag = htobe64(h->tag),
	};
}

static void header_read(const struct ln_rpc *wire, struct header *h)
{
	*h = (struct header){
		.magic = be16toh(wire->magic),
		.version = wire->version,
		.type = wire->type,
		.flags = wire->flags,
		.code = wire->code,
		.length = be16toh(wire->length),
		.workload = be32toh(wire->workload),
		.revision = be32toh(wire->revision),
		.request = be64toh(wire->request),
		.index = be32toh(wire->index),
		.count = be32toh(wire->count),
		.message_len = be32toh(wire->message_len),
		.method = be32toh(wire->method),
		.deadline_us = be32toh(wire->deadline_us),
		.client = be32toh(wire->client),
		.sequence = be32toh(wire->sequence),
		.grant = be32toh(wire->grant),
		.tag = be64toh(wire->tag),
	};
}

/* packet_parse splits a datagram into header and message bytes, and leaves the padding out. */
enum parsed packet_parse(const void *packet, size_t len, struct header *h, const uint8_t **payload)
{
	struct ln_rpc wire;

	if (len < sizeof(wire))
		return NOT_RPC;
	memcpy(&wire, packet, sizeof(wire));
	header_read(&wire, h);
	if (h->magic != LN_RPC_MAGIC || h->version != LN_RPC_VERSION)
		return NOT_RPC;
	if (h->type < LN_TYPE_REQUEST || h->type > LN_TYPE_ERROR || h->length > len - sizeof(wire))
		return MALFORMED;
	*payload = (const uint8_t *)packet + sizeof(wire);
	return PARSED;
}

/*
 * header_placement says where the bytes of a packet stand in its message: at offset, in a message whose packets but the last
 * carry size bytes each. It returns false where index, count and lengths are inconsistent.
 */
bool header_placement(const struct header *h, uint32_t *offset, uint32_t *size)
{
	uint64_t n = h->length, total = h->message_len, at, each;

	if (h->index >= h->count || n > total)
		return false;
	if (h->count == 1) {
		*offset = 0;
		*size = h->length;
		return n == total;
	}
	if (n == 0)
		return false;
	if (h->index < h->count - 1) {
		each = n;
		at = h->index * n;
	} else {
		at = total - n;
		each = at / (h->count - 1);
		if (each * (h->count - 1) != at || n > each)
			return false;
	}
	if ((total + each - 1) / each != h->count)
		return false;
	*offset = (uint32_t)at;
	*size = (uint32_t)each;
	return true;
}
