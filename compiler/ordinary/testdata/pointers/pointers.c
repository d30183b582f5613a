/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls through pointers, from tables, variables, structures and parameters. Request: a number, and one that may become a pointer. */
#include <lambda.h>

typedef int32_t (*operation)(int32_t, int32_t);

static int32_t add(int32_t a, int32_t b)
{
	return a + b;
}

static int32_t subtract(int32_t a, int32_t b)
{
	return a - b;
}

static int32_t multiply(int32_t a, int32_t b)
{
	return a * b;
}

static void increment(int32_t *p)
{
	++*p;
}

static double half(double x)
{
	return x / 2;
}

static double square(double x)
{
	return x * x;
}

static const struct {
	char name;
	operation run;
} table[] = { { '+', add }, { '-', subtract }, { '*', multiply }, { '0', NULL } };

static int32_t apply(operation run, int32_t a, int32_t b)
{
	return run ? run(a, b) : -1;
}

int pointers(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	operation current = multiply;
	void (*change)(int32_t *) = increment;
	struct {
		int32_t n;
		uint32_t forged;
	} in;
	int32_t r;

	(void)match_data;
	if (lambda_read(headers, &in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	r = in.n;
	for (int i = 0; i < 12; i++) {
		double (*real)(double) = (i + in.n) & 2 ? half : square;

		r = r * 3 + apply(table[(in.n + i) & 3].run, r, i);
		if (in.n & 1)
			current = table[i % 3].run;
		if (in.forged)
			current = (operation)(uint64_t)in.forged;
		r ^= current(r, i);
		change(&r);
		r += real(i);
		r += table[i & 3].run == add;
	}
	return lambda_write(headers, &r, sizeof(r));
}
