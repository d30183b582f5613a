/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The SDK's replacement of the C library, as on the NIC (compiled with -D__bpf__), under names that the C library does not
 * have. library_test.c compares the two.
 */
#define LAMBDA_FLOAT
#include "lambda_float.h"
#include "lambda_angles.h"
#include <ctype.h>
#include <fixed.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void __lambda_fault(void)
{
	__builtin_trap();
}

#define OURS(result, name, parameters, ...) \
	result ours_##name parameters \
	{ \
		return name(__VA_ARGS__); \
	}

OURS(int, memcmp, (const void *a, const void *b, size_t n), a, b, n)
OURS(void *, memchr, (const void *s, int c, size_t n), s, c, n)
OURS(size_t, strlen, (const char *s), s)
OURS(size_t, strnlen, (const char *s, size_t n), s, n)
OURS(int, strcmp, (const char *a, const char *b), a, b)
OURS(int, strncmp, (const char *a, const char *b, size_t n), a, b, n)
OURS(char *, strcpy, (char *a, const char *b), a, b)
OURS(char *, strncpy, (char *a, const char *b, size_t n), a, b, n)
OURS(char *, strcat, (char *a, const char *b), a, b)
OURS(char *, strncat, (char *a, const char *b, size_t n), a, b, n)
OURS(char *, strchr, (const char *s, int c), s, c)
OURS(char *, strrchr, (const char *s, int c), s, c)
OURS(size_t, strspn, (const char *a, const char *b), a, b)
OURS(size_t, strcspn, (const char *a, const char *b), a, b)
OURS(char *, strpbrk, (const char *a, const char *b), a, b)
OURS(char *, strtok_r, (char *a, const char *b, char **c), a, b, c)
OURS(char *, strstr, (const char *a, const char *b), a, b)
OURS(long, strtol, (const char *s, char **end, int base), s, end, base)
OURS(unsigned long, strtoul, (const char *s, char **end, int base), s, end, base)
OURS(int, atoi, (const char *s), s)
OURS(double, scalbn, (double x, int n), x, n)
OURS(double, frexp, (double x, int *n), x, n)
OURS(double, modf, (double x, double *whole), x, whole)
OURS(double, fmin, (double x, double y), x, y)
OURS(double, fmax, (double x, double y), x, y)
OURS(double, fdim, (double x, double y), x, y)
OURS(double, exp, (double x), x)
OURS(double, exp2, (double x), x)
OURS(double, log, (double x), x)
OURS(double, log2, (double x), x)
OURS(double, log10, (double x), x)
OURS(double, sin, (double x), x)
OURS(double, cos, (double x), x)
OURS(double, tan, (double x), x)
OURS(double, atan, (double x), x)
OURS(double, atan2, (double y, double x), y, x)
OURS(double, pow, (double x, double y), x, y)
OURS(double, hypot, (double x, double y), x, y)
OURS(int64_t, fixed64_mul, (int64_t x, int64_t y), x, y)
OURS(int64_t, fixed64_div, (int64_t x, int64_t y), x, y)
OURS(int, fixed_mul, (int x, int y), x, y)
OURS(int, fixed_div, (int x, int y), x, y)
OURS(int, fixed_sqrt, (int x), x)

int ours_ctype(int c)
{
	return !!isalnum(c) | !!isalpha(c) << 1 | !!isblank(c) << 2 | !!iscntrl(c) << 3 | !!isdigit(c) << 4 |
	       !!isgraph(c) << 5 | !!islower(c) << 6 | !!isprint(c) << 7 | !!ispunct(c) << 8 | !!isspace(c) << 9 |
	       !!isupper(c) << 10 | !!isxdigit(c) << 11 | toupper(c) << 12 | tolower(c) << 20;
}

void ours_qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	qsort(base, count, size, compare);
}

void *ours_malloc(size_t size)
{
	return malloc(size);
}

void *ours_realloc(void *p, size_t size)
{
	return realloc(p, size);
}

void *ours_calloc(size_t count, size_t size)
{
	return calloc(count, size);
}

void ours_free(void *p)
{
	free(p);
}

void ours_begin(void)
{
	lambda_heap.used = 0;
}
