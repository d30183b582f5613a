// SPDX-License-Identifier: Apache-2.0
/*
 * For the tests, rebuilds datagrams by parities: shards. Each line has messages of the ikernel parity in hexadecimal, each with an x before it, of which the first
 * is the parity. test/ikernels compares what the programs of all languages print for each line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lambdanic.h"

#define SHARDS 32

/* Reads a message. Each has memory of its own length, so that AddressSanitizer sees who reads more. */
static uint8_t *read_message(const char *hex, size_t *len)
{
	uint8_t *message;

	*len = strlen(hex) / 2;
	message = malloc(*len ? *len : 1);
	for (size_t i = 0; i < *len; i++)
		if (sscanf(hex + 2 * i, "%2" SCNx8, &message[i]) != 1)
			abort();
	return message;
}

static int rebuild(uint8_t *const *messages, const size_t *lengths, size_t n)
{
	struct lambdanic_shard shards[SHARDS], lost;
	int err = n ? 0 : LAMBDANIC_NO_SHARD;
	uint8_t *data;

	for (size_t i = 0; !err && i < n; i++)
		err = lambdanic_shard_parse(messages[i], lengths[i], &shards[i]);
	if (err)
		return err;
	data = malloc(shards[0].len ? shards[0].len : 1);
	err = lambdanic_shard_rebuild(shards, shards + 1, n - 1, data, &lost);
	if (!err) {
		printf("%" PRIu64 " %u x", lost.group, lost.index);
		for (size_t i = 0; i < lost.len; i++)
			printf("%02x", ((const uint8_t *)lost.data)[i]);
		puts("");
	}
	free(data);
	return err;
}

static void check_arguments(void)
{
	struct lambdanic_shard shard = { .count = 1, .len = 1, .data = "" };

	if (lambdanic_shard_parse(NULL, 16, &shard) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_shard_parse("", 0, NULL) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_shard_rebuild(NULL, NULL, 0, &(char){ 0 }, &shard) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_shard_rebuild(&shard, NULL, 1, &(char){ 0 }, &shard) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_shard_rebuild(&shard, NULL, 0, NULL, &shard) != LAMBDANIC_BAD_ARGUMENT ||
	    lambdanic_shard_rebuild(&shard, NULL, 0, &(char){ 0 }, NULL) != LAMBDANIC_BAD_ARGUMENT)
		puts("bad arguments are accepted");
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;

	check_arguments();
	while (getline(&line, &room, stdin) > 0) {
		uint8_t *messages[SHARDS];
		size_t lengths[SHARDS], n = 0;
		int err;

		for (char *word = strtok(line, " \n"); word && n < SHARDS; word = strtok(NULL, " \n"), n++)
			messages[n] = read_message(word + 1, &lengths[n]);
		err = rebuild(messages, lengths, n);
		if (err == LAMBDANIC_NO_SHARD)
			puts("refused");
		else if (err)
			printf("%s\n", lambdanic_strerror(err));
		while (n)
			free(messages[--n]);
	}
	free(line);
	return EXIT_SUCCESS;
}
