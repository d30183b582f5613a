// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A fixture that tries to run outside of its calls: every request starts a process, and is answered by fork's errno. */
#include "lambda.h"

#include <errno.h>
#include <unistd.h>

#ifdef FIXTURE_CONSTRUCTOR
__attribute__((constructor)) static void hang(void)
{
	for (volatile int forever = 1; forever;)
		;
}
#endif

int escape(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t *p = payload(headers, 0, 4);
	pid_t pid;

	(void)match_data;
	if (!p)
		return RETURN_FAULT;
	pid = fork();
	if (!pid) {
		setsid();
		for (;;)
			pause();
	}
	*(uint32_t *)p = pid < 0 ? (uint32_t)errno : 0;
	return lambda_reply(headers, 0, 4);
}
