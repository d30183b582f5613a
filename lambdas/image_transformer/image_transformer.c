/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RGBA to greyscale, of images up to 4096 x 4096 (the λ-NIC paper, section 6.2c). The message is the pixels, row by row,
 * four bytes each; the reply is one byte for each. Pixels are worked on as their packets arrive: each byte is touched
 * once, and a reply packet is ready when its request packet has been read.
 *
 * Grey is ITU-R BT.601 luma in integers: Y = (77 R + 150 G + 29 B + 128) >> 8. The weights sum to 256.
 */
#include <lambda.h>

enum { METHOD_TRANSFORM, METHOD_KEEP, METHOD_FETCH };

#define RESULTS 4
#define RESULT_MAX (4096 * 4096)
#define PACKET_MAX LN_RPC_MAX_PAYLOAD

/* Results that stay in memory; the handle is the ID of the request that made it. The last row is spare. */
LAMBDA_KEPT uint8_t results[RESULTS][RESULT_MAX + LAMBDA_WINDOW];
LAMBDA_KEPT uint64_t handles[RESULTS];
LAMBDA_KEPT uint32_t lengths[RESULTS];
LAMBDA_KEPT uint32_t next_result;

/* Two pixels at once: every second 16-bit lane of a 64-bit register has room for one channel's weighted sum. */
static __always_inline uint64_t grey2(uint64_t rgba2)
{
	const uint64_t lanes = 0x000000ff000000ffULL;
	uint64_t sum = (rgba2 & lanes) * 77 + ((rgba2 >> 8) & lanes) * 150 + ((rgba2 >> 16) & lanes) * 29 +
		       0x0000008000000080ULL;

	sum = (sum >> 8) & lanes;
	return (sum | sum >> 24) & 0xffff;
}

/* Turns the payload's pixels into grey in place: what is written never passes what is still to be read. */
static __always_inline int transform(EXTRACTED_HEADERS_T *headers, uint32_t bytes)
{
	uint32_t at;

	for (at = 0; at + 16 <= PACKET_MAX; at += 16) {
		const uint64_t *in;
		uint32_t *out;

		if (at + 16 > bytes)
			break;
		in = (const uint64_t *)payload(headers, at, 16);
		out = (uint32_t *)payload(headers, at / 4, 4);
		if (!in || !out)
			return -1;
		*out = grey2(in[0]) | grey2(in[1]) << 16;
	}
	for (uint32_t rest = 0; rest < 3; rest++, at += 4) {
		const uint32_t *in;
		uint8_t *out;

		if (at + 4 > bytes)
			break;
		in = (const uint32_t *)payload(headers, at, 4);
		out = payload(headers, at / 4, 1);
		if (!in || !out)
			return -1;
		*out = grey2(*in);
	}
	return 0;
}

/* Finds the result of that handle, or (if it is to be made) gives the oldest one's place away. */
static __always_inline uint32_t find(uint64_t handle, uint32_t make)
{
	for (uint32_t i = 0; i < RESULTS; i++)
		if (handles[i] == handle)
			return i;
	if (make) {
		uint32_t i = __sync_fetch_and_add(&next_result, 1) % RESULTS;
		uint64_t old = handles[i];

		if (__sync_val_compare_and_swap(&handles[i], old, handle) == old)
			return i;
	}
	return RESULTS;
}

/* Two CPUs may begin the same image at once: whoever comes second finds what the first one took. */
static __always_inline uint32_t find_or_make(uint64_t handle)
{
	uint32_t i = find(handle, 1);

	for (uint32_t j = 0; j < RESULTS; j++)
		if (handles[j] == handle)
			return j;
	return i;
}

static __always_inline int keep(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t result = find_or_make(match_data->request), grey = match_data->payload_len / 4;
	uint32_t at = match_data->offset / 4;

	if (result >= RESULTS)
		return lambda_fail(headers, LN_STATUS_FAILED);
	lengths[result] = match_data->message_len / 4;
	if (lambda_store_to(headers, results, result * sizeof(results[0]) + at, grey))
		return RETURN_FAULT;
	return RETURN_KEEP;
}

/* Answers a whole image that was kept with its handle: the request ID, most significant byte first. */
static __always_inline int answer_handle(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t *out = payload(headers, 0, 8);

	if (!out)
		return RETURN_FAULT;
	for (int i = 0; i < 8; i++)
		out[i] = match_data->request >> (56 - 8 * i);
	return lambda_reply(headers, 0, 8);
}

static __always_inline int fetch(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	const uint8_t *p = payload(headers, 0, 8);
	uint64_t handle = 0;
	uint32_t result;

	if (!p || match_data->payload_len != 8)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (int i = 0; i < 8; i++)
		handle = handle << 8 | p[i];
	result = find(handle, 0);
	if (!handle || result >= RESULTS)
		return lambda_fail(headers, LN_STATUS_NOT_FOUND);
	return lambda_reply_from(headers, match_data, results, result * sizeof(results[0]), lengths[result]);
}

int image_transformer(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t bytes = match_data->payload_len;

	if (match_data->event == LAMBDA_COMPLETE)
		return answer_handle(headers, match_data);
	if (match_data->method == METHOD_FETCH)
		return fetch(headers, match_data);
	if (match_data->method > METHOD_FETCH || bytes % 4 || match_data->offset % 4 || match_data->message_len % 4 ||
	    bytes > PACKET_MAX)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	if (transform(headers, bytes))
		return RETURN_FAULT;
	if (match_data->method == METHOD_KEEP)
		return keep(headers, match_data);
	return lambda_reply_part(headers, 0, bytes / 4, match_data->message_len / 4);
}
