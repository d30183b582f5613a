// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A fixture that tries to get out: every request starts a process, or by method 1 opens a socket, and is answered by the errno. */
#include "lambda.h"

#include <errno.h>
#include <sys/socket.h>
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

	if (!p)
		return RETURN_FAULT;
	if (match_data->method == 1) {
		*(uint32_t *)p = socket(AF_INET, SOCK_DGRAM, 0) < 0 ? (uint32_t)errno : 0;
		return lambda_reply(headers, 0, 4);
	}
	pid = fork();
	if (!pid) {
		setsid();
		for (;;)
			pause();
	}
	*(uint32_t *)p = pid < 0 ? (uint32_t)errno : 0;
	return lambda_reply(headers, 0, 4);
}
