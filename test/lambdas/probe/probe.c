/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fixture for every message mode: the method says what to do. PROBE_REVISION tells builds apart by their answers, and PROBE_WIDE
 * changes the layout of what is kept.
 */
#include <lambda.h>

#ifndef PROBE_REVISION
#define PROBE_REVISION 1
#endif

enum { ECHO, STAMP, STATUS, FAULT, DROP, COUNT, PREFIX, TOO_LONG, TAKE, CALL, OUTSIDE };

static uint8_t table[64];

#ifdef PROBE_WIDE
LAMBDA_KEPT uint64_t count;
#else
LAMBDA_KEPT uint32_t count;
#endif

/* Counts runs; one that is repeated because its answer may have been lost counts once. */
static uint32_t counted(MATCH_DATA_T *match_data)
{
	return match_data->repeat ? (uint32_t)count : (uint32_t)__sync_fetch_and_add(&count, 1) + 1;
}

/* Stamps both ends of the bytes with the revision and with how many requests any has run on, so that a reply of two revisions shows. */
static int stamp(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data, uint32_t len)
{
	uint32_t *head = (uint32_t *)payload(headers, 0, 8), *tail = (uint32_t *)payload(headers, (int32_t)len - 4, 4);

	if (len < 12 || !head || !tail)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	head[0] = PROBE_REVISION;
	head[1] = counted(match_data);
	*tail = PROBE_REVISION;
	return 0;
}

int probe(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t len = match_data->payload_len;
	uint8_t *p;

	if (match_data->event == LAMBDA_COMPLETE || match_data->method == COUNT) {
		p = payload(headers, 0, 8);
		if (!p)
			return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
		*(uint32_t *)p = PROBE_REVISION;
		*(uint32_t *)(p + 4) = counted(match_data);
		return lambda_reply(headers, 0, 8);
	}
	switch (match_data->method) {
	case STAMP:
		if (stamp(headers, match_data, len))
			return RETURN_FORWARD;
		/* fall through */
	case ECHO:
		if (match_data->event == LAMBDA_FRAGMENT)
			return lambda_reply_part(headers, 0, len, match_data->message_len);
		return lambda_reply(headers, 0, len);
	case STATUS:
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	case FAULT:
		return RETURN_FAULT;
	case OUTSIDE:
		return table[match_data->request | 1 << 30]++;
	case DROP:
		return RETURN_DROP;
	case PREFIX:
		p = payload(headers, -4, 4);
		if (!p)
			return RETURN_FAULT;
		__builtin_memcpy(p, "pre:", 4);
		return lambda_reply(headers, -4, len + 4);
	case TOO_LONG:
		return lambda_reply(headers, 0, LN_RPC_MAX_PAYLOAD + 1);
	case CALL:
		return lambda_call(headers, 0, 0, len);
	}
	return RETURN_KEEP;
}
