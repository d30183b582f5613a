// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzzes the code that reads bytes from outside (libFuzzer): clients' datagrams and services' answers, in all message
 * modes, with a lambda that describes nonsense as its reply. Every answer must be well formed and not longer than
 * the datagram it answers.
 *
 * Input: a byte that chooses the mode, then datagrams, each behind a byte of flags and its length in two bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host.h"

enum {
	WORKLOAD = 7,
	FLAG_FRAMED = 1,
	FLAG_OTHER_PEER = 2,
	FLAG_ANSWER = 4,
	FLAG_SIZED = 8,
	FLAG_LATER = 16,
	FLAG_RAW = 32,
	FLAG_TAGGED = 64
};

struct host host = { .workload = WORKLOAD, .in_flight = 4, .message_timeout_ms = 100, .threads = 1 };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stays in its memory, uses all of it, and describes any reply. The method is the fuzzer's to choose. */
static int lambda(struct lambda_headers *headers)
{
	struct lambda_match *match = &headers->req->match;
	uint32_t method = match->method;

	if (method & 0x10)
		memset(headers->start, 0x5a, headers->end - headers->start);
	headers->req->service = method >> 5 & 3;
	headers->req->out_off = (int32_t)method >> 16;
	headers->req->out_len = method & 0x80 ? match->payload_len : match->message_len;
	headers->req->out_total = method & 0x100 ? match->message_len : headers->req->out_len;
	headers->req->out_status = method >> 8 & 0xff;
	return method & 0x0f;
}

static struct worker worker;
static struct revision revision = { .number = 3, .file = -1, .entry = lambda };

/* The name of a file that is gone with the process. */
static const char *windows(void)
{
	static char name[32];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", memfd_create("windows", MFD_CLOEXEC));
	return name;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static uint8_t spares[SENDS][BUFFER];

	(void)argc;
	(void)argv;
	for (int i = 0; i < SENDS; i++)
		worker.packets[i].spare = spares[i];
	host.mode = LN_MODE_ASSEMBLE; /* allocates buffers, which the other modes ignore */
	host.message_max = 8192;
	host.current = &revision;
	host.service_count = 2;
	host.services[0].protocol = LN_PROTOCOL_MEMCACHED;
	host.services[0].timeout_ms = 100;
	host.services[0].server_count = 1;
	host.services[1] = (struct service){
		.protocol = LN_PROTOCOL_RAW, .timeout_ms = 100, .retries = 2, .id_at = 1, .id_len = 2
	};
	host.services[1].first = 1;
	host.services[1].server_count = 1;
	host.server_count = 2;
	host.servers[0].addr.in.sin_family = AF_INET;
	host.servers[0].addr.in.sin_addr.s_addr = htobe32(INADDR_LOOPBACK);
	host.servers[0].addr.in.sin_port = htobe16(9);
	host.servers[1] = (struct server){ host.servers[0].addr, 1 };
	host.workers = &worker;
	pthread_rwlock_init(&host.world, NULL);
	host.keys.key[1].valid = 1;
	return auth_open(windows()) || message_init() || once_init() || call_init(&worker);
}

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* No answer may be longer than its question, and its header must be right. */
static void check(const struct packet *p, uint32_t asked)
{
	struct ln_rpc rpc;

	if (!p->out_len || p->to_service)
		return;
	require(p->out_len >= HEADER);
	memcpy(&rpc, p->out, HEADER); /* a reply may start at any byte */
	require(p->out_len == HEADER + be16toh(rpc.length));
	require(p->out_len <= asked);
	require(be16toh(rpc.magic) == LN_RPC_MAGIC && rpc.version == LN_RPC_VERSION);
	require(rpc.type == LN_TYPE_RESPONSE || rpc.type == LN_TYPE_ACK || rpc.type == LN_TYPE_ERROR);
	require(rpc.request == p->flow.rpc.request);
	require(!(rpc.flags & LN_FLAG_TAG) == !p->flow.tagged);
}

/* Sets header fields that the fuzzer would take long to guess. */
static void frame(struct ln_rpc *rpc, uint8_t flags, uint32_t len)
{
	if (len < HEADER || !(flags & FLAG_FRAMED))
		return;
	rpc->magic = htobe16(LN_RPC_MAGIC);
	rpc->version = LN_RPC_VERSION;
	rpc->workload = htobe32(WORKLOAD);
	rpc->request &= htobe64(3);
	if (!(flags & FLAG_SIZED))
		return;
	rpc->length = htobe16(len - HEADER);
	rpc->count = htobe32(1);
	rpc->index = 0;
	rpc->message_len = htobe32(len - HEADER);
}

/* Tags a request as a client does: by the odd key, with a new sequence number. */
static void sign(struct ln_rpc *rpc, uint32_t len)
{
	static uint32_t sequence;
	struct flow flow = { .tagged = true };

	rpc->flags |= LN_FLAG_TAG | LN_FLAG_ODD_KEY;
	rpc->client |= htobe32(1);
	rpc->sequence = htobe32(sequence++);
	flow.rpc = *rpc;
	auth_sign(&flow, rpc, (const uint8_t *)(rpc + 1), be16toh(rpc->length) < len ? be16toh(rpc->length) : len);
}

/* A client's datagram in a buffer of exactly its size: other packets may be right before and behind it. */
static void feed_request(struct packet *p, uint8_t flags, const uint8_t *data, uint32_t len)
{
	uint8_t *buffer = malloc(len ? len : 1);

	memcpy(buffer, data, len);
	frame((struct ln_rpc *)buffer, flags, len);
	p->base = buffer + HEADER;
	if (len >= HEADER && flags & FLAG_TAGGED)
		sign((struct ln_rpc *)buffer, len - HEADER);
	rpc_receive(&worker, p, len);
	check(p, len);
	free(buffer);
}

/* A service's datagram, which has a buffer to itself. */
static void feed_answer(struct packet *p, const uint8_t *data, uint32_t len)
{
	uint8_t *buffer = malloc(HEAD_ROOM + len + LN_RPC_MAX_PAYLOAD);

	p->base = buffer + HEAD_ROOM;
	memcpy(p->base - CALL_FRAME, data, len);
	rpc_answer(&worker, p, 0, len);
	check(p, HEADER + p->flow.room);
	free(buffer);
}

/* A datagram to the socket of the call that waits longest, with the call's request ID if it is long enough. */
static void feed_raw(struct packet *p, const uint8_t *data, uint32_t len)
{
	struct call *call = TAILQ_FIRST(&worker.waiting[1]);
	uint8_t *buffer;

	if (!call)
		return;
	buffer = malloc(HEAD_ROOM + len + LN_RPC_MAX_PAYLOAD);
	p->base = buffer + HEAD_ROOM;
	memcpy(p->base, data, len);
	if (len >= 3)
		memcpy(p->base + 1, &call->id, 2);
	rpc_answer_raw(&worker, p, call, len);
	check(p, HEADER + p->flow.room);
	free(buffer);
}

static void feed(uint8_t flags, const uint8_t *data, uint32_t len)
{
	struct packet p = { .spare = malloc(BUFFER), .flow.fd = -1 };

	p.flow.peer.in.sin_family = AF_INET;
	p.flow.peer.in.sin_port = flags & FLAG_OTHER_PEER ? 1 : 2;
	if (flags & FLAG_RAW)
		feed_raw(&p, data, len);
	else if (flags & FLAG_ANSWER)
		feed_answer(&p, data, len);
	else
		feed_request(&p, flags, data, len);
	free(p.spare);
}

static void expire(void)
{
	const struct call *call;

	while ((call = call_overdue(&worker))) {
		struct packet *p = server_spare(&worker);

		rpc_abandon(&worker, p, call, LN_CODE_TIMEOUT);
		server_send(&worker, p);
	}
}

/* Each input starts from nothing in progress. */
static void reset(void)
{
	for (uint32_t try = 0; try <= host.services[1].retries; try++) {
		worker.now += 10000000000ULL;
		expire();
	}
	message_expire(worker.now);
	worker.sends = 0;
	require(!message_active() && !call_active() && !atomic_load(&revision.users));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t len;

	if (!size)
		return 0;
	host.mode = *data % 3;
	for (data++, size--; size >= 3; data += len, size -= len) {
		uint8_t flags = data[0];

		len = data[1] | data[2] << 8;
		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		if (flags & FLAG_LATER)
			worker.now += 60000000;
		feed(flags, data, len);
	}
	reset();
	return 0;
}
