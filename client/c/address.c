// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

/* split splits HOST, HOST:PORT, [IPv6]:PORT, [IPv6] or IPv6. port keeps its value where the address has no port. */
static bool split(const char *address, char host[256], char port[16])
{
	const char *end, *colon = strchr(address, ':');

	if (*address == '[') {
		end = strchr(++address, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
		colon = end[1] ? end + 1 : NULL;
	} else if (colon && strchr(colon + 1, ':')) { /* an IPv6 address alone */
		colon = NULL;
		end = address + strlen(address);
	} else {
		end = colon ? colon : address + strlen(address);
	}
	if (end == address || end - address >= 256 || (colon && (!colon[1] || strlen(colon + 1) >= 16)))
		return false;
	memcpy(host, address, (size_t)(end - address));
	host[end - address] = 0;
	if (colon)
		strcpy(port, colon + 1);
	/* getaddrinfo() accepts numbers of more than 16 bits, and truncates them to another port. */
	return !port[strspn(port, "0123456789")] && strlen(port) <= 5 && atoi(port) > 0 && atoi(port) <= UINT16_MAX;
}

/* single_of is how much of a message one packet holds: IPv6's header is 20 bytes longer. */
static uint32_t single_of(const struct sockaddr *to)
{
	const struct sockaddr_in6 *v6 = (const void *)to;

	if (to->sa_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		return LN_RPC_MAX_PAYLOAD;
	return LN_RPC_MAX_PAYLOAD - 20;
}

void bound_connect(int fd, int64_t until)
{
	const int64_t us = MAX((until - now_ns()) / 1000, 1);
	const struct timeval tv = { .tv_sec = us / 1000000, .tv_usec = us % 1000000 };

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)); /* it also bounds connect(2) (socket(7)) */
}

int connect_to(const char *address, int default_port, int type, int64_t until, int *fd, uint32_t *single)
{
	const struct addrinfo hints = { .ai_socktype = type, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *list, *a;
	char host[256], port[16];
	int err;

	snprintf(port, sizeof(port), "%d", default_port);
	if (!split(address, host, port))
		return LAMBDANIC_BAD_ADDRESS;
	err = getaddrinfo(host, port, &hints, &list);
	if (err)
		return err == EAI_SYSTEM || err == EAI_MEMORY ? LAMBDANIC_SYSTEM : LAMBDANIC_BAD_ADDRESS;
	*fd = -1;
	for (a = list; a && *fd < 0; a = a->ai_next) {
		*fd = socket(a->ai_family, type | SOCK_CLOEXEC, 0);
		if (*fd < 0)
			continue;
		if (type == SOCK_STREAM)
			bound_connect(*fd, until);
		if (connect(*fd, a->ai_addr, a->ai_addrlen)) {
			err = errno;
			close(*fd);
			errno = err;
			*fd = -1;
			continue;
		}
		*single = single_of(a->ai_addr);
	}
	freeaddrinfo(list);
	if (*fd >= 0)
		return LAMBDANIC_OK;
	return errno == EINPROGRESS ? LAMBDANIC_DEADLINE : LAMBDANIC_SYSTEM;
}
