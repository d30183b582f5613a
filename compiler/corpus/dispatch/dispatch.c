/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A reverse Polish calculator that calls its operations by function pointers from a table. Request: numbers and operators, blanks between
 * them. Reply: the results that are left, 64 bits each; nothing if it is malformed.
 */
#include <lambda.h>

#define STACK 32

typedef int64_t operation(int64_t, int64_t);

static int64_t add(int64_t a, int64_t b)
{
	return a + b;
}

static int64_t subtract(int64_t a, int64_t b)
{
	return a - b;
}

static int64_t multiply(int64_t a, int64_t b)
{
	return a * b;
}

static int64_t divide(int64_t a, int64_t b)
{
	return b ? a / b : 0;
}

static int64_t rest(int64_t a, int64_t b)
{
	return b ? a % b : 0;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static const struct {
	char name;
	operation *run;
} operations[] = {
	{ '+', add }, { '-', subtract }, { '*', multiply }, { '/', divide }, { '%', rest }, { 'm', least },
};

static operation *find(char name)
{
	for (unsigned int i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (operations[i].name == name)
			return operations[i].run;
	return NULL;
}

/* Returns how many results are left, or -1. */
static int evaluate(const char *p, const char *end, int64_t *stack)
{
	int n = 0;

	while (p < end) {
		operation *run = find(*p);

		if (*p >= '0' && *p <= '9') {
			int64_t v = 0;

			while (p < end && *p >= '0' && *p <= '9')
				v = v * 10 + (*p++ - '0');
			if (n == STACK)
				return -1;
			stack[n++] = v;
		} else if (run) {
			if (n < 2)
				return -1;
			n--;
			stack[n - 1] = run(stack[n - 1], stack[n]);
			p++;
		} else if (*p++ != ' ') {
			return -1;
		}
	}
	return n;
}

int dispatch(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	char in[300];
	int64_t stack[STACK];
	int n = evaluate(in, in + lambda_read(headers, in, sizeof(in)), stack);

	(void)match_data;
	return lambda_write(headers, stack, n < 0 ? 0 : n * sizeof(stack[0]));
}
