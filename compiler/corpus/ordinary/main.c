/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs a program on the requests on its input, each after its length, and writes the verdict, length and reply of each. */
#include <stdio.h>
#include <stdlib.h>
#include "lambda.h"

int ENTRY(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data);

int main(void)
{
	EXTRACTED_HEADERS_T *headers = calloc(1, sizeof(*headers));
	MATCH_DATA_T match = { 0 };

	while (headers && fread(&headers->payload_len, 4, 1, stdin) == 1) {
		int32_t answer[2];

		if (headers->payload_len > sizeof(headers->payload) ||
		    fread(headers->payload, 1, headers->payload_len, stdin) != headers->payload_len)
			return 1;
		headers->out_len = 0;
		answer[0] = ENTRY(headers, &match);
		answer[1] = headers->out_len;
		fwrite(answer, sizeof(answer), 1, stdout);
		fwrite(headers->out, 1, headers->out_len, stdout);
	}
	free(headers);
	return 0;
}
