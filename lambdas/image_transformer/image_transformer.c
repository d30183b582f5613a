/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
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

#define ABANDONED_NS 10000000000ULL /* twice the message time-out */

/*
 * Results that stay in memory. The handle is the ID of the request that made it, and says where it lies: so two CPUs that begin
 * one image agree. An image that is still arriving is never displaced.
 */
LAMBDA_KEPT uint8_t results[RESULTS][RESULT_MAX + LAMBDA_WINDOW];
LAMBDA_KEPT struct {
	uint64_t handle;
	uint64_t touched;
	uint32_t length;
	uint32_t whole;
} kept[RESULTS];

#define EVEN_LANES 0x000000ff000000ffULL /* one channel of two pixels */
#define LANES 0x00ff00ff00ff00ffULL
#define HALF 0x0080008000800080ULL

/* One channel of four pixels in four 16-bit lanes, in the order 0 2 1 3; a lane has room for the weighted sum. */
static __always_inline uint64_t channel(uint64_t rgba01, uint64_t rgba23, uint32_t shift)
{
	return (rgba01 >> shift & EVEN_LANES) | (rgba23 >> shift & EVEN_LANES) << 16;
}

/* The grey of four pixels, one byte each. */
static __always_inline uint64_t grey4(uint64_t rgba01, uint64_t rgba23)
{
	uint64_t sum = channel(rgba01, rgba23, 0) * 77 + channel(rgba01, rgba23, 8) * 150 +
		       channel(rgba01, rgba23, 16) * 29 + HALF;

	sum = sum >> 8 & LANES;
	return (sum | sum >> 24) & 0xffffffff;
}

/*
 * Turns the payload's pixels into grey in place: what is written never passes what is still to be read. Sixteen pixels at
 * a time, then one by one.
 */
static __always_inline int transform(EXTRACTED_HEADERS_T *headers, uint32_t bytes)
{
	uint32_t at;

	for (at = 0; at + 64 <= PACKET_MAX; at += 64) {
		const uint64_t *in;
		uint64_t *out;

		if (at + 64 > bytes)
			break;
		in = (const uint64_t *)payload(headers, at, 64);
		out = (uint64_t *)payload(headers, at / 4, 16);
		if (!in || !out)
			return -1;
		uint64_t low = grey4(in[0], in[1]) | grey4(in[2], in[3]) << 32;
		uint64_t high = grey4(in[4], in[5]) | grey4(in[6], in[7]) << 32;

		out[0] = low;
		out[1] = high;
	}
	for (uint32_t rest = 0; rest < 15; rest++, at += 4) {
		const uint32_t *in;
		uint8_t *out;

		if (at + 4 > bytes)
			break;
		in = (const uint32_t *)payload(headers, at, 4);
		out = payload(headers, at / 4, 1);
		if (!in || !out)
			return -1;
		*out = grey4(*in, 0);
	}
	return 0;
}

/* Takes a handle's place for a new image; 0, or -1 where another is still arriving there. */
static __always_inline int claim(uint32_t place, uint64_t handle)
{
	uint64_t old = kept[place].handle;

	if (old && !kept[place].whole && lambda_now() - kept[place].touched < ABANDONED_NS)
		return -1;
	if (__sync_val_compare_and_swap(&kept[place].handle, old, handle) != old)
		return kept[place].handle == handle ? 0 : -1;
	kept[place].whole = 0;
	return 0;
}

static __always_inline int keep(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint64_t handle = match_data->request;
	uint32_t place = handle % RESULTS, grey = match_data->payload_len / 4, at = match_data->offset / 4;

	if (!handle || (kept[place].handle != handle && claim(place, handle)))
		return lambda_fail(headers, LN_STATUS_FAILED);
	kept[place].touched = lambda_now();
	kept[place].length = match_data->message_len / 4;
	if (lambda_store_to(headers, results, place * sizeof(results[0]) + at, grey))
		return RETURN_FAULT;
	return RETURN_KEEP;
}

/* Answers a whole image that was kept with its handle, most significant byte first. */
static __always_inline int answer_handle(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t place = match_data->request % RESULTS;
	uint8_t *out = payload(headers, 0, 8);

	if (!out)
		return RETURN_FAULT;
	if (kept[place].handle != match_data->request)
		return lambda_fail(headers, LN_STATUS_FAILED);
	kept[place].whole = 1;
	for (int i = 0; i < 8; i++)
		out[i] = match_data->request >> (56 - 8 * i);
	return lambda_reply(headers, 0, 8);
}

static __always_inline int fetch(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	const uint8_t *p = payload(headers, 0, 8);
	uint64_t handle = 0;
	uint32_t place;

	if (!p || match_data->payload_len != 8)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (int i = 0; i < 8; i++)
		handle = handle << 8 | p[i];
	place = handle % RESULTS;
	if (!handle || kept[place].handle != handle || !kept[place].whole)
		return lambda_fail(headers, LN_STATUS_NOT_FOUND);
	return lambda_reply_from(headers, match_data, results, place * sizeof(results[0]), kept[place].length);
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
