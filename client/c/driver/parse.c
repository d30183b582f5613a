// SPDX-License-Identifier: Apache-2.0
/*
 * Parses packets for the tests: one in hexadecimal per line of standard input. It answers each by a line of JSON, which says
 * why the packet is refused, or what it contains and how the header would be written back.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static size_t unhex(const char *text, uint8_t *out)
{
	size_t n = 0;
	unsigned int byte;

	for (; sscanf(text, "%2x", &byte) == 1; text += 2)
		out[n++] = (uint8_t)byte;
	return n;
}

static void print_hex(const char *name, const void *p, size_t n)
{
	printf(", \"%s\": \"", name);
	for (size_t i = 0; i < n; i++)
		printf("%02x", ((const uint8_t *)p)[i]);
	printf("\"");
}

static void print(const struct header *h, const uint8_t *payload, size_t padding)
{
	struct ln_rpc again;

	header_write(h, &again);
	printf("{\"header\": {\"magic\": %u, \"version\": %u, \"type\": %u, \"flags\": %u, \"code\": %u, \"length\": "
	       "%u, "
	       "\"workload\": %" PRIu32 ", \"revision\": %" PRIu32 ", \"request\": \"0x%016" PRIx64
	       "\", \"index\": %" PRIu32 ", \"count\": %" PRIu32 ", \"message_length\": %" PRIu32
	       ", \"method\": %" PRIu32 ", \"deadline_us\": %" PRIu32 ", \"client\": %" PRIu32
	       ", \"sequence\": %" PRIu32 ", \"grant\": %" PRIu32 ", \"tag\": \"0x%016" PRIx64 "\"}, \"padding\": %zu",
	       h->magic, h->version, h->type, h->flags, h->code, h->length, h->workload, h->revision, h->request,
	       h->index, h->count, h->message_len, h->method, h->deadline_us, h->client, h->sequence, h->grant, h->tag,
	       padding);
	print_hex("payload", payload, h->length);
	print_hex("again", &again, sizeof(again));
	printf("}\n");
}

int main(void)
{
	size_t room = 0;
	char *line = NULL;
	ssize_t len;

	while ((len = getline(&line, &room, stdin)) >= 0) {
		uint8_t *packet = malloc((size_t)len / 2 + 1), *exact;
		size_t n = unhex(line, packet);
		uint32_t offset, size;
		const uint8_t *payload;
		struct header h;
		enum parsed p;

		exact = malloc(n); /* so that a read beyond its end is found */
		if (!exact && n)
			return EXIT_FAILURE;
		if (n)
			memcpy(exact, packet, n);
		p = packet_parse(exact, n, &h, &payload);
		if (p == PARSED && (h.type == LN_TYPE_REQUEST || h.type == LN_TYPE_RESPONSE) &&
		    !header_placement(&h, &offset, &size))
			p = MALFORMED;
		if (p == PARSED)
			print(&h, payload, n - sizeof(struct ln_rpc) - h.length);
		else
			printf("{\"error\": \"%s\"}\n", p == NOT_RPC ? "not λ-RPC" : "malformed");
		free(exact);
		free(packet);
	}
	free(line);
	return EXIT_SUCCESS;
}
