// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A fixture that speaks memcached's binary protocol, in ordinary C: gets the key that is its payload (method 0), sets it to what
 * stands behind a zero byte (method 1), or deletes it (method 2). Answers with the value.
 */
#include <memcached.h>

#define VALUE_MAX 1000

static int answer(EXTRACTED_HEADERS_T *headers)
{
	uint8_t in[LAMBDA_WINDOW];
	uint32_t value, value_len;
	int status = memcached_answer(in, lambda_read(headers, in, sizeof(in)), &value, &value_len);

	if (status < 0)
		return lambda_fail(headers, LN_STATUS_FAILED);
	if (status != MEMCACHED_OK)
		lambda_status(headers, status == MEMCACHED_NOT_FOUND ? LN_STATUS_NOT_FOUND : LN_STATUS_SERVICE_ERROR);
	return lambda_write(headers, in + value, value_len);
}

int binary(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[LAMBDA_WINDOW], out[MEMCACHED_HEADER + 8 + MEMCACHED_KEY_MAX + VALUE_MAX];
	uint32_t len, key_len = 0;

	if (match_data->event == LAMBDA_REPLY)
		return answer(headers);
	len = lambda_read(headers, in, sizeof(in));
	while (key_len < len && in[key_len])
		key_len++;
	if (!key_len || key_len > MEMCACHED_KEY_MAX || len - key_len > VALUE_MAX)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	if (match_data->method == 1)
		len = memcached_set(out, in, key_len, in + key_len + 1, len - key_len - 1);
	else if (match_data->method == 2)
		len = memcached_delete(out, in, key_len);
	else
		len = memcached_get(out, in, key_len);
	return lambda_call_with(headers, SERVICE(cache), out, len, in[0]);
}
