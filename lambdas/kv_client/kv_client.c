/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A key-value client: GET and SET against memcached (the λ-NIC paper, section 6.2b). The request becomes memcached's own
 * packet, memcached's reply becomes the client's.
 *
 * GET: the request is the key, the reply "KEY=VALUE". SET: the request is one byte with the key's length, the key, and the
 * value; the reply is "STORED".
 */
#include <lambda.h>
#include <text.h>

enum { METHOD_GET, METHOD_SET };

#define KEY_MAX 250 /* memcached's own limit */
#define VALUE_MAX 1024

/* "get KEY\r\n", around the key where it stands. */
static int send_get(EXTRACTED_HEADERS_T *headers, uint32_t len)
{
	uint64_t key;

	/* memcached ends a key at white space and control characters: one within it could smuggle in a command. */
	if (!len || len > KEY_MAX || lambda_token(headers, 0) < len)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	key = lambda_hash(headers, 0, len);
	if (!lambda_put(headers, len, 2) || lambda_put_text(headers, len, "\r\n") ||
	    lambda_put_text(headers, -4, "get "))
		return RETURN_FAULT;
	return lambda_call_key(headers, SERVICE(memcached), -4, len + 6, key);
}

/* "set KEY 0 0 LENGTH\r\nVALUE\r\n": the command is built backwards from the value, which stays where it is. */
static int send_set(EXTRACTED_HEADERS_T *headers, uint32_t len)
{
	const uint8_t *head = payload(headers, 0, 1);
	uint32_t key_len = head ? *head : 0;
	uint32_t value = 1 + key_len, value_len = len - value;
	uint64_t key;
	int32_t at;

	if (!key_len || key_len > KEY_MAX || len < value || value_len > VALUE_MAX || lambda_token(headers, 1) < key_len)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	key = lambda_hash(headers, 1, key_len);
	/* Room in front: what stands between key and value is longer than the key's length byte. */
	at = (int32_t)value - 2 - (value_len > 999 ? 4 : value_len > 99 ? 3 : value_len > 9 ? 2 : 1) - 5;
	at = (int32_t)lambda_forget(headers, at) - (int32_t)key_len;
	if (lambda_move(headers, at, 1, key_len) || lambda_put_text(headers, value - 2, "\r\n"))
		return RETURN_FAULT;
	if (lambda_put_text(headers, lambda_put_number(headers, value - 2, value_len) - 5, " 0 0 "))
		return RETURN_FAULT;
	if (lambda_put_text(headers, at - 4, "set ") || !lambda_put(headers, len, 2) ||
	    lambda_put_text(headers, len, "\r\n"))
		return RETURN_FAULT;
	return lambda_call_key(headers, SERVICE(memcached), at - 4, len + 2 - (at - 4), key);
}

/* "VALUE KEY FLAGS BYTES\r\nDATA\r\nEND\r\n" becomes "KEY=DATA": the key moves up to the data. */
static int answer_value(EXTRACTED_HEADERS_T *headers, uint32_t len)
{
	uint32_t key = sizeof("VALUE ") - 1, key_len = lambda_token(headers, key);
	uint32_t flags = key + key_len + 1, size = flags + lambda_token(headers, flags) + 1, bytes = 0;
	uint32_t data = size + lambda_number(headers, size, &bytes) + 2, at = data - 1 - key_len;

	if (key_len > KEY_MAX || data > len || bytes > len || data + bytes + sizeof("\r\nEND\r\n") - 1 != len)
		return lambda_fail(headers, LN_STATUS_FAILED);
	if (lambda_move(headers, at, key, key_len) || lambda_put_text(headers, data - 1, "="))
		return RETURN_FAULT;
	return lambda_reply(headers, at, key_len + 1 + bytes);
}

static int answer(EXTRACTED_HEADERS_T *headers, uint32_t len)
{
	if (lambda_has_text(headers, 0, "VALUE "))
		return answer_value(headers, len);
	if (lambda_has_text(headers, 0, "END\r\n"))
		return lambda_fail(headers, LN_STATUS_NOT_FOUND);
	/* What is left is one line. ERROR, CLIENT_ERROR and SERVER_ERROR reach the client in memcached's own words. */
	if (!lambda_has_text(headers, 0, "STORED\r\n"))
		lambda_status(headers, LN_STATUS_SERVICE_ERROR);
	return lambda_reply(headers, 0, len < 2 ? 0 : len - 2);
}

int kv_client(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	if (match_data->event == LAMBDA_REPLY)
		return answer(headers, match_data->payload_len);
	if (match_data->method == METHOD_SET)
		return send_set(headers, match_data->payload_len);
	if (match_data->method == METHOD_GET)
		return send_get(headers, match_data->payload_len);
	return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
}
