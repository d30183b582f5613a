// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A fixture that tries to get out: every request starts a process, by method 1 opens a socket, by method 2 starts a thread, and is answered by the
 * errno. Methods from 3 on have a payload of struct escape_to: 3 sends a datagram there by any socket that the process has, 4 by a new one,
 * and 5 opens a socket of another kind.
 */
#include "lambda.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
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

struct escape_to {
	uint32_t result; /* an errno */
	uint8_t addr[16]; /* an IPv4 address is mapped */
	uint16_t port; /* in network order */
	uint16_t domain; /* of a socket of other kinds */
	uint16_t type;
	uint16_t protocol;
};

/* Puts the address into one of a socket's kind. */
static socklen_t address_of(const struct escape_to *to, struct sockaddr_in6 *six)
{
	struct sockaddr_in *four = (struct sockaddr_in *)six;
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	memset(six, 0, sizeof(*six));
	if (memcmp(to->addr, mapped, sizeof(mapped))) {
		six->sin6_family = AF_INET6;
		six->sin6_port = to->port;
		memcpy(&six->sin6_addr, to->addr, 16);
		return sizeof(*six);
	}
	four->sin_family = AF_INET;
	four->sin_port = to->port;
	memcpy(&four->sin_addr, to->addr + 12, 4);
	return sizeof(*four);
}

/* Sends by each socket that there is: 0 if any could, else EPERM if any was refused. */
static int send_by_any(const struct escape_to *to)
{
	struct sockaddr_in6 addr;
	socklen_t len = address_of(to, &addr);
	int result = EBADF;

	for (int fd = 0; fd < 256; fd++) {
		if (sendto(fd, "out", 3, 0, (struct sockaddr *)&addr, len) == 3)
			return 0;
		if (errno == EPERM)
			result = EPERM;
	}
	return result;
}

static int send_by_new(const struct escape_to *to)
{
	struct sockaddr_in6 addr;
	socklen_t len = address_of(to, &addr);
	int fd = socket(addr.sin6_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), result;

	if (fd < 0)
		return ENFILE;
	result = connect(fd, (struct sockaddr *)&addr, len) || send(fd, "out", 3, 0) != 3 ? errno : 0;
	close(fd);
	return result;
}

static int open_other(const struct escape_to *to)
{
	int fd = socket(to->domain, to->type, to->protocol);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

int escape(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t *p = payload(headers, 0, 4);
	pthread_t thread;
	pid_t pid;

	if (!p)
		return RETURN_FAULT;
	if (match_data->method >= 3) {
		static int (*const ways[])(const struct escape_to *) = { send_by_any, send_by_new, open_other };
		struct escape_to to;

		p = payload(headers, 0, sizeof(to));
		if (!p || match_data->method > 5)
			return RETURN_FAULT;
		memcpy(&to, p, sizeof(to));
		to.result = (uint32_t)ways[match_data->method - 3](&to);
		memcpy(p, &to.result, 4);
		return lambda_reply(headers, 0, 4);
	}
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
