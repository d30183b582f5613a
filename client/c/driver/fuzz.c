// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzzes the code that reads bytes from outside (libFuzzer). The first byte of an input chooses: a gateway's answer, or packets that
 * arrive in answer to a request, whose size is in the next four bytes.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MAX_REPLY (1 << 20)

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void fuzz_answer(const uint8_t *data, size_t size)
{
	struct lambdanic_function f = { 0 };
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = 0;
	if (lookup_read(text, &f) == LAMBDANIC_OK)
		check(memchr(f.address, 0, sizeof(f.address)) && f.address[0], "an address that does not end");
	free(text);
}

/* datagram cuts off the next packet, by its own length, in memory of exactly its size. */
static uint8_t *datagram(const uint8_t **data, size_t *size, size_t *len)
{
	uint8_t *packet;

	*len = MIN(*size, sizeof(struct ln_rpc));
	if (*len == sizeof(struct ln_rpc)) {
		size_t n = (size_t)((*data)[6] << 8 | (*data)[7]);

		*len = MIN(*size, *len + n);
	}
	packet = malloc(*len);
	memcpy(packet, *data, *len);
	*data += *len;
	*size -= *len;
	return packet;
}

static void fuzz_packets(uint32_t body_len, const uint8_t *data, size_t size)
{
	struct header h = { .type = LN_TYPE_REQUEST, .workload = 1, .request = 9, .count = 1 };
	static struct batch out;
	struct exchange x = { .max = MAX_REPLY };
	uint8_t *body = calloc(1, MAX(body_len, 1));
	int64_t now = 0;

	h.message_len = body_len;
	if (body_len > LN_RPC_MAX_PAYLOAD)
		h.count = (body_len + LN_RPC_FRAGMENT - 1) / LN_RPC_FRAGMENT;
	check(exchange_start(&x, now, NEVER, &h, body, 512, false), "no memory");
	while (size) {
		size_t len;
		uint8_t *packet = datagram(&data, &size, &len);
		const uint8_t *payload;
		struct header got;

		out.count = 0;
		exchange_poll(&x, now, &out);
		if (packet_parse(packet, len, &got, &payload) == PARSED) {
			got.request = h.request;
			exchange_receive(&x, now, &got, payload);
		}
		free(packet);
		now += 15 * MS;
	}
	out.count = 0;
	exchange_poll(&x, now, &out);
	out.count = 0;
	exchange_release(&x, &out);
	check(!x.begun || x.first.message_len <= MAX_REPLY, "a reply that is too large");
	check(!x.finished || x.result || x.begun, "finished without a response");
	check(x.up.base <= x.up.count && x.up.outstanding <= x.up.count, "a flight beyond its end");
	exchange_free(&x);
	free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t body_len;

	if (size < 5)
		return 0;
	memcpy(&body_len, data + 1, sizeof(body_len));
	if (data[0] & 1)
		fuzz_answer(data + 1, size - 1);
	else
		fuzz_packets(be32toh(body_len) % (1 << 20), data + 5, size - 5);
	return 0;
}
