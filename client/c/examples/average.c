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

int main(int argc, char **argv)
{
	struct sockaddr_in6 own = { .sin6_family = AF_INET6 }, peer;
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	int64_t sum = 0, count = 0;

	own.sin6_port = htons((uint16_t)atoi(argc > 1 ? argv[1] : "5683"));
	if (fd < 0 || bind(fd, (const void *)&own, sizeof(own))) {
		perror("listen");
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
			int32_t value = (int32_t)ntohl(number);

			sum += value;
			count++;
			if (value > 100)
				printf("alert %d\n", value);
		} else if (n == 1) {
			n = snprintf(text, sizeof(text), "average %.1f of %lld",
				     count ? (double)sum / (double)count : 0, (long long)count);
			sendto(fd, text, (size_t)n, 0, (void *)&peer, len);
		}
	}
}
