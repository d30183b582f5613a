// SPDX-License-Identifier: Apache-2.0
/*
 * For the tests, tags by the key of each line of standard input: tags. Each line out has the result of lambdanic_open() and that of
 * lambdanic_directory_open(), and where they are 0, four packets in hexadecimal, whose sequence numbers overflow.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int try_open(const char *key)
{
	const struct lambdanic_options options = { .key = key };
	struct lambdanic *c;
	int err = lambdanic_open(&c, "127.0.0.1", &options);

	lambdanic_close(c);
	return err;
}

static int try_directory(const char *key)
{
	const struct lambdanic_options options = { .key = key };
	struct lambdanic_directory *d;
	int err = lambdanic_directory_open(&d, "127.0.0.1:1", NULL, NULL, &options);

	lambdanic_directory_close(d);
	return err;
}

static void print_packets(const char *key)
{
	static struct batch b;
	static const uint8_t payload[] = "payload";
	struct tagger t = { 0 };

	if (!tagger_read(&t, key, false))
		exit(EXIT_FAILURE);
	t.client = UINT32_MAX;
	t.sent = UINT32_MAX - 1;
	b.tagger = &t;
	for (b.count = 0; b.count < 4;) {
		struct header h = { .type = LN_TYPE_REQUEST, .count = 1 };
		const struct msghdr *m = &b.msgs[b.count].msg_hdr;

		batch_add(&b, &h, payload, sizeof(payload) - 1, 0);
		putchar(' ');
		for (size_t i = 0; i < m->msg_iovlen; i++)
			for (size_t j = 0; j < m->msg_iov[i].iov_len; j++)
				printf("%02x", ((const uint8_t *)m->msg_iov[i].iov_base)[j]);
	}
}

int main(void)
{
	size_t room = 0;
	char *line = NULL;

	while (getline(&line, &room, stdin) > 0) {
		int err = try_open(line);

		printf("%d %d", err, try_directory(line));
		if (!err)
			print_packets(line);
		putchar('\n');
	}
	free(line);
	return EXIT_SUCCESS;
}
