/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fixture that does as the method says, sense or not: bits 0 to 2 are the verdict on a request or fragment, 3 to 5 on a whole
 * message; bit 6 asks for a description of what it was told, written into the payload; the others choose what it says
 * of its reply, and bit 20 that it says so on whole messages only.
 */
#include <lambda.h>

static void describe(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t *p = (uint32_t *)payload(headers, 0, 40);

	if (!p)
		return;
	p[0] = match_data->event;
	p[1] = match_data->message_len;
	p[2] = match_data->offset;
	p[3] = match_data->payload_len;
	p[4] = match_data->room;
	p[5] = match_data->window;
	p[6] = match_data->window_len;
	p[7] = match_data->repeat;
	p[8] = match_data->revision;
	p[9] = (uint32_t)match_data->request;
}

static int32_t choose_offset(MATCH_DATA_T *match_data, uint32_t choice)
{
	switch (choice & 15) {
	case 8:
		return -4;
	case 9:
		return -48;
	case 10:
		return -49;
	case 11:
		return -1000;
	case 12:
		return (int32_t)match_data->payload_len;
	case 13:
		return (int32_t)match_data->room;
	case 14:
		return 5000;
	case 15:
		return 0x7fffffff;
	}
	return (int32_t)(choice & 7);
}

static uint32_t choose_length(MATCH_DATA_T *match_data, uint32_t choice)
{
	switch (choice & 7) {
	case 1:
		return match_data->room;
	case 2:
		return match_data->room + 1;
	case 3:
		return LN_RPC_MAX_PAYLOAD + 1;
	case 4:
		return match_data->message_len;
	case 5:
		return 0;
	case 6:
		return 3000;
	case 7:
		return 0xffffffff;
	}
	return match_data->payload_len;
}

/* Behind an assembled message are the bytes of those that were there before it: each place has had others. */
static void spare(struct ln_request *req, uint32_t len)
{
#ifdef LAMBDA_ASSEMBLE
	if (req->out_off < 0 || req->out_off > LAMBDA_MESSAGE_MAX || req->out_len > LAMBDA_MESSAGE_MAX)
		return;
	if (req->out_off > (int64_t)len)
		req->out_len = 0;
	else if (req->out_len > len - req->out_off)
		req->out_len = len - req->out_off;
#else
	(void)req;
	(void)len;
#endif
}

int nonsense(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t method = match_data->method;
	uint32_t whole = match_data->event == LAMBDA_COMPLETE;

	if (method & 1 << 6)
		describe(headers, match_data);
	if (whole || !(method & 1 << 20)) {
		headers->req->out_off = choose_offset(match_data, method >> 7);
		headers->req->out_len = choose_length(match_data, method >> 11);
		headers->req->out_total = choose_length(match_data, method >> 14);
		lambda_status(headers, method >> 17 & 7);
		spare(headers->req, match_data->message_len);
	}
	return (int)(method >> (whole ? 3 : 0) & 7);
}
