// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A fixture that tries to get out: every request starts a process, by method 1 opens a socket, by method 2 starts a thread, and is answered by the errno. */
#include "lambda.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef FIXTURE_CONSTRUCTOR
__attribute__((constructor)) static void hang(void)
{
	for (volatile int forever = 1; forever;)
		;
}
#endif

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int escape(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t *p = payload(headers, 0, 4);
	pthread_t thread;
	pid_t pid;

	if (!p)
		return RETURN_FAULT;
	if (match_data->method == 1) {
		*(uint32_t *)p = socket(AF_INET, SOCK_DGRAM, 0) < 0 ? (uint32_t)errno : 0;
		return lambda_reply(headers, 0, 4);
	}
	if (match_data->method == 2) {
		*(uint32_t *)p = (uint32_t)pthread_create(&thread, NULL, wait_for_ever, NULL);
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
