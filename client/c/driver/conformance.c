// SPDX-License-Identifier: Apache-2.0
/* The C client's driver for test/conformance: commands in, answers out, a line of JSON each. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(EXIT_FAILURE);
}

/* Reading and writing JSON */

static const char *text(json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s && *s ? s : NULL;
}

/* number reads a number, or a string with a number for which JSON's have too few bits. */
static uint64_t number(json_t *object, const char *key)
{
	const char *s = text(object, key);

	return s ? strtoull(s, NULL, 0) : (uint64_t)json_integer_value(json_object_get(object, key));
}

static int digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* bytes returns memory of exactly their size, so that the sanitizer finds reads beyond the end. */
static uint8_t *bytes(json_t *object, const char *key, size_t *len)
{
	const char *s = text(object, key);
	uint8_t *out;

	*len = s ? strlen(s) / 2 : 0;
	out = malloc(*len);
	if (!out && *len)
		fail(key, "no memory");
	for (size_t i = 0; i < *len; i++)
		out[i] = (uint8_t)(digit(s[2 * i]) << 4 | digit(s[2 * i + 1]));
	return out;
}

static json_t *hex(const void *p, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *in = p;
	char *s = malloc(2 * len + 1);
	json_t *out;

	if (!s)
		fail("hex", "no memory");
	for (size_t i = 0; i < len; i++) {
		s[2 * i] = digits[in[i] >> 4];
		s[2 * i + 1] = digits[in[i] & 15];
	}
	out = json_stringn(s, 2 * len);
	free(s);
	return out;
}

static json_t *hex64(uint64_t v)
{
	return json_sprintf("0x%016llx", (unsigned long long)v);
}

/* Packets */

static json_t *decode(json_t *command)
{
	uint32_t offset, size;
	const uint8_t *payload;
	enum parsed p;
	struct header h;
	json_t *answer;
	size_t len;
	uint8_t *packet = bytes(command, "packet", &len);

	p = packet_parse(packet, len, &h, &payload);
	if (p == PARSED && (h.type == LN_TYPE_REQUEST || h.type == LN_TYPE_RESPONSE) &&
	    !header_placement(&h, &offset, &size))
		p = MALFORMED;
	if (p == PARSED)
		answer = json_pack(
			"{s:{s:i,s:i,s:i,s:i,s:i,s:i,s:I,s:I,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o},s:o,s:I}",
			"header", "magic", h.magic, "version", h.version, "type", h.type, "flags", h.flags, "code",
			h.code, "length", h.length, "workload", (json_int_t)h.workload, "revision",
			(json_int_t)h.revision, "request", hex64(h.request), "index", (json_int_t)h.index, "count",
			(json_int_t)h.count, "message_length", (json_int_t)h.message_len, "method",
			(json_int_t)h.method, "deadline_us", (json_int_t)h.deadline_us, "client", (json_int_t)h.client,
			"sequence", (json_int_t)h.sequence, "grant", (json_int_t)h.grant, "tag", hex64(h.tag),
			"payload", hex(payload, h.length), "padding",
			(json_int_t)(len - sizeof(struct ln_rpc) - h.length));
	else
		answer = json_pack("{s:s}", "error", p == NOT_RPC ? "not λ-RPC" : "malformed");
	free(packet);
	return answer;
}

/* encode makes the packet as the client does, as an iovec for sendmsg(), and joins that. */
static json_t *encode(json_t *command)
{
	json_t *o = json_object_get(command, "header"), *answer;
	struct header h = {
		.type = (uint8_t)number(o, "type"),
		.flags = (uint8_t)number(o, "flags"),
		.code = (uint8_t)number(o, "code"),
		.workload = (uint32_t)number(o, "workload"),
		.revision = (uint32_t)number(o, "revision"),
		.request = number(o, "request"),
		.index = (uint32_t)number(o, "index"),
		.count = (uint32_t)number(o, "count"),
		.message_len = (uint32_t)number(o, "message_length"),
		.method = (uint32_t)number(o, "method"),
		.deadline_us = (uint32_t)number(o, "deadline_us"),
		.client = (uint32_t)number(o, "client"),
		.sequence = (uint32_t)number(o, "sequence"),
		.grant = (uint32_t)number(o, "grant"),
		.tag = number(o, "tag"),
	};
	static struct batch b;
	uint8_t *payload, packet[2048];
	size_t len, n = 0;

	payload = bytes(command, "payload", &len);
	b.count = 0;
	batch_add(&b, &h, payload, (uint32_t)len, (uint32_t)(len + number(command, "padding")));
	for (size_t i = 0; i < b.msgs[0].msg_hdr.msg_iovlen; i++) {
		const struct iovec *v = &b.msgs[0].msg_hdr.msg_iov[i];

		memcpy(packet + n, v->iov_base, v->iov_len);
		n += v->iov_len;
	}
	answer = json_pack("{s:o}", "packet", hex(packet, n));
	free(payload);
	return answer;
}

/* Calls */

static struct lambdanic *client;
static struct lambdanic_directory *directory;

static json_t *open_client(json_t *command)
{
	const struct lambdanic_options options = {
		.timeout_ms = (uint32_t)number(command, "timeout_ms"),
		.reply_room = (uint32_t)number(command, "reply_room"),
		.max_reply = (uint32_t)number(command, "max_reply"),
		.without_resend = json_is_true(json_object_get(command, "without_resend")),
		.key = text(command, "key"),
		.tag_header_only = json_is_true(json_object_get(command, "tag_header_only")),
	};
	int err = 0;

	if (text(command, "gateway"))
		err = lambdanic_directory_open(&directory, text(command, "gateway"), text(command, "credentials"),
					       text(command, "namespace"), &options);
	if (!err && text(command, "address"))
		err = lambdanic_open(&client, text(command, "address"), &options);
	if (err)
		fail("open", lambdanic_strerror(err));
	return json_object();
}

static const char *name_of(int result)
{
	switch (result) {
	case LAMBDANIC_DEADLINE:
		return "deadline exceeded";
	case LAMBDANIC_REQUEST_TOO_LARGE:
		return "request too large";
	case LAMBDANIC_REPLY_TOO_LARGE:
		return "reply too large";
	case LAMBDANIC_NO_FUNCTION:
		return "no such function";
	case LAMBDANIC_GATEWAY:
	case LAMBDANIC_SYSTEM: /* no gateway listens at the address */
		return "gateway";
	case LN_CODE_UNKNOWN_WORKLOAD:
		return "unknown workload";
	case LN_CODE_OVER_QUOTA:
		return "over quota";
	case LN_CODE_BAD_TAG:
		return "bad tag";
	case LN_CODE_MALFORMED:
		return "malformed";
	case LN_CODE_LAMBDA_FAULT:
		return "lambda fault";
	case LN_CODE_TOO_LARGE:
		return "too large";
	case LN_CODE_BUSY:
		return "busy";
	case LN_CODE_TIMEOUT:
		return "time-out";
	case LN_CODE_UNREACHABLE:
		return "unreachable";
	case LN_CODE_STALE:
		return "stale";
	case LN_CODE_DEADLINE:
		return "deadline";
	}
	return lambdanic_strerror(result);
}

static json_t *outcome(struct lambdanic_reply *r)
{
	json_t *o;

	if (r->result)
		o = json_pack("{s:s,s:I,s:s}", "error", name_of(r->result), "need", (json_int_t)r->need, "text",
			      lambdanic_reply_error(r));
	else
		o = json_pack("{s:i,s:I,s:o,s:I}", "status", r->status, "revision", (json_int_t)r->revision, "body",
			      hex(r->body, r->len), "resends", (json_int_t)r->resends);
	lambdanic_reply_free(r);
	return o;
}

static json_t *call(json_t *command)
{
	json_t *list = json_object_get(command, "calls"), *outcomes = json_array();
	const bool at_once = json_is_true(json_object_get(command, "at_once"));
	size_t n = json_array_size(list);
	struct lambdanic_request *requests = calloc(n, sizeof(*requests));
	struct lambdanic_reply *replies = calloc(n, sizeof(*replies));

	if (!requests || !replies)
		fail("call", "no memory");
	for (size_t i = 0; i < n; i++) {
		json_t *o = json_array_get(list, i);
		struct lambdanic_request *r = &requests[i];

		r->workload = (uint32_t)number(o, "workload");
		r->method = (uint32_t)number(o, "method");
		r->reply_room = (uint32_t)number(o, "reply_room");
		r->deadline_us = number(o, "deadline_us");
		r->once = json_is_true(json_object_get(o, "once"));
		r->body = bytes(o, "body", &r->len);
		if (text(o, "name"))
			lambdanic_call_by_name(directory, text(o, "name"), r, &replies[i]);
		else if (!at_once)
			lambdanic_call(client, r, &replies[i]);
	}
	if (at_once)
		lambdanic_call_many(client, requests, replies, n);
	for (size_t i = 0; i < n; i++) {
		json_array_append_new(outcomes, outcome(&replies[i]));
		free((void *)(uintptr_t)requests[i].body);
	}
	free(requests);
	free(replies);
	return json_pack("{s:o}", "outcomes", outcomes);
}

static json_t *stats(void)
{
	struct lambdanic_stats s;

	lambdanic_get_stats(client, &s);
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "calls", (json_int_t)s.calls, "restarts",
			 (json_int_t)s.restarts, "sent", (json_int_t)s.sent, "resent", (json_int_t)s.resent, "received",
			 (json_int_t)s.received, "duplicates", (json_int_t)s.duplicates, "stray", (json_int_t)s.stray,
			 "malformed", (json_int_t)s.malformed);
}

static json_t *obey(json_t *command)
{
	const char *what = text(command, "do");

	if (!what)
		fail("command", "nothing to do");
	if (!strcmp(what, "decode"))
		return decode(command);
	if (!strcmp(what, "encode"))
		return encode(command);
	if (!strcmp(what, "open"))
		return open_client(command);
	if (!strcmp(what, "call"))
		return call(command);
	if (!strcmp(what, "stats"))
		return stats();
	if (strcmp(what, "close"))
		fail(what, "unknown command");
	lambdanic_close(client);
	lambdanic_directory_close(directory);
	client = NULL;
	directory = NULL;
	return json_object();
}

int main(void)
{
	size_t room = 0;
	char *line = NULL;

	while (getline(&line, &room, stdin) > 0) {
		json_error_t why;
		json_t *answer, *command = json_loads(line, 0, &why);

		if (!command)
			fail("command", why.text);
		answer = obey(command);
		json_dumpf(answer, stdout, JSON_COMPACT);
		putchar('\n');
		fflush(stdout);
		json_decref(answer);
		json_decref(command);
	}
	free(line);
	return EXIT_SUCCESS;
}
