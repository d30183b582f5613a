/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text by the library's functions: sums the numbers in lines "name=number" by name. Reply: "name=sum" lines in the order in which the names
 * first came.
 */
#include <lambda.h>
#include <stdlib.h>
#include <string.h>

#define NAMES 32

struct total {
	char name[16];
	long sum;
};

static struct total *find(struct total *totals, int *n, const char *name)
{
	for (int i = 0; i < *n; i++)
		if (!strcmp(totals[i].name, name))
			return &totals[i];
	if (*n == NAMES)
		return NULL;
	strcpy(totals[*n].name, name);
	totals[*n].sum = 0;
	return &totals[(*n)++];
}

static void take_line(struct total *totals, int *n, char *line)
{
	char *equals = strchr(line, '=');
	struct total *t;

	if (!equals || equals == line || equals - line > 15)
		return;
	*equals = 0;
	t = find(totals, n, line);
	if (t)
		t->sum += strtol(equals + 1, NULL, 10);
}

static char *print_number(char *to, long v)
{
	char digits[20];
	int n = 0;

	if (v < 0)
		*to++ = '-';
	do
		digits[n++] = '0' + labs(v % 10);
	while (v /= 10);
	while (n)
		*to++ = digits[--n];
	return to;
}

int text_numbers(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	char in[801], out[NAMES * 40], *to = out, *end;
	struct total totals[NAMES];
	int n = 0;

	(void)match_data;
	in[lambda_read(headers, in, sizeof(in) - 1)] = 0;
	for (char *line = in; line; line = end ? end + 1 : NULL) {
		end = strchr(line, '\n');
		if (end)
			*end = 0;
		take_line(totals, &n, line);
	}
	for (int i = 0; i < n; i++) {
		memcpy(to, totals[i].name, strlen(totals[i].name));
		to += strlen(totals[i].name);
		*to++ = '=';
		to = print_number(to, totals[i].sum);
		*to++ = '\n';
	}
	return lambda_write(headers, out, to - out);
}
