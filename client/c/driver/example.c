// SPDX-License-Identifier: Apache-2.0
/*
 * Calls a lambda by its name: example GATEWAY NAME [TEXT]. GATEWAY is unix:/run/lambdanic/default/lambdanic.sock or the like.
 * Built against an installed library by: cc example.c $(pkg-config --cflags --libs lambdanic)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lambdanic.h"

int main(int argc, char **argv)
{
	struct lambdanic_request request = { .deadline_us = 1000000 };
	struct lambdanic_directory *directory;
	struct lambdanic_reply reply = { 0 };
	int err;

	if (argc < 3) {
		fprintf(stderr, "usage: %s GATEWAY NAME [TEXT]\n", argv[0]);
		return EXIT_FAILURE;
	}
	if (argc > 3) {
		request.body = argv[3];
		request.len = strlen(argv[3]);
	}
	err = lambdanic_directory_open(&directory, argv[1], getenv("LAMBDANIC_CREDENTIALS"), NULL, NULL);
	if (!err)
		err = lambdanic_call_by_name(directory, argv[2], &request, &reply);
	if (err)
		fprintf(stderr, "%s: %s\n", argv[2], lambdanic_strerror(err));
	else
		fwrite(reply.body, 1, reply.len, stdout);
	if (!err && reply.status)
		fprintf(stderr, "%s answered with status %d\n", argv[2], reply.status);
	err = err ? err : reply.status;
	lambdanic_reply_free(&reply);
	lambdanic_directory_close(directory);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
