/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Times a lambda compiled as an ordinary program: runs the methods FIRST and METHOD, the latter TIMES times; prints ns of each. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "lambda.h"

int ENTRY(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data);

int main(void)
{
	EXTRACTED_HEADERS_T *headers = calloc(1, sizeof(*headers));
	MATCH_DATA_T match = { FIRST };

	if (!headers)
		return 1;
	ENTRY(headers, &match);
	match.method = METHOD;
	for (int i = 0; i < TIMES; i++) {
		struct timespec a, b;

		clock_gettime(CLOCK_MONOTONIC, &a);
		ENTRY(headers, &match);
		clock_gettime(CLOCK_MONOTONIC, &b);
		printf("%ld\n", (b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec);
	}
	free(headers);
	return 0;
}
