// SPDX-License-Identifier: Apache-2.0
/*
 * A server of sensors: average PORT. Each sends integers of four bytes, big-endian, by UDP. The server prints those above 100. To a
 * datagram of one byte it answers with the average of all.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include "lambdanic.h"

int main(int argc, char **argv)
{
	struct sockaddr_in6 own = { .sin6_family = AF_INET6 }, peer;
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	struct lambdanic_ikernels *ikernels;
	struct lambdanic_ikernel *k;

	own.sin6_port = htons((uint16_t)atoi(argc > 1 ? argv[1] : "5683"));
	if (fd < 0 || bind(fd, (const void *)&own, sizeof(own))) {
		perror("listen");
		return EXIT_FAILURE;
	}
	if (lambdanic_ikernels_open(&ikernels, getenv("LAMBDANIC_IKERNEL_SOCKET")) ||
	    lambdanic_ikernel_create(ikernels, "threshold", &k) || lambdanic_ikernel_write(k, "limit", 100) ||
	    lambdanic_ikernel_attach(k, fd)) {
		fputs("there is no ikernel: is the daemon running?\n", stderr);
		return EXIT_FAILURE;
	}
	puts("ready");
	for (;;) {
		socklen_t len = sizeof(peer);
		char text[64];
		uint32_t number;
		ssize_t n;

		fflush(stdout);
		n = recvfrom(fd, &number, sizeof(number), 0, (void *)&peer, &len);
		if (n == sizeof(number)) {
			printf("alert %d\n", (int32_t)ntohl(number));
		} else if (n == 1) {
			struct lambdanic_registers r;
			int64_t sum, count;

			lambdanic_ikernel_transact(k, NULL, NULL, &r);
			sum = lambdanic_registers_get(&r, "sum");
			count = lambdanic_registers_get(&r, "count");
			n = snprintf(text, sizeof(text), "average %.1f of %lld",
				     count ? (double)sum / (double)count : 0, (long long)count);
			sendto(fd, text, (size_t)n, 0, (void *)&peer, len);
		}
	}
}
