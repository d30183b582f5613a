/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * C's <stdlib.h>. Where the standard leaves a choice, such as the order in which qsort() puts equal elements, NIC and host behave
 * alike.
 */
#ifndef LAMBDA_STDLIB_H
#define LAMBDA_STDLIB_H

#include <stddef.h>
#include <stdint.h>

#include "ctype.h"
#include "lambda_heap.h" /* and the host's own <stdlib.h> */

#define malloc lambda_malloc
#define calloc lambda_calloc
#define realloc lambda_realloc
#define free lambda_free
#define qsort lambda_qsort
#define bsearch lambda_bsearch

#define abort lambda_abort

#ifdef __bpf__

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1

__attribute__((noreturn)) void __lambda_fault(void);
#else
#define __lambda_fault __builtin_trap /* the C library's abort() would end the process, and with it other requests */
#endif

/* The request ends with the error "lambda fault". */
static inline __attribute__((noreturn)) void lambda_abort(void)
{
	__lambda_fault();
}

#ifdef __bpf__

typedef struct {
	int quot, rem;
} div_t;

typedef struct {
	long quot, rem;
} ldiv_t, lldiv_t;

static inline int abs(int n)
{
	return n < 0 ? -n : n;
}

static inline long labs(long n)
{
	return n < 0 ? -n : n;
}

static inline long long llabs(long long n)
{
	return n < 0 ? -n : n;
}

static inline div_t div(int a, int b)
{
	return (div_t){ a / b, a % b };
}

static inline ldiv_t ldiv(long a, long b)
{
	return (ldiv_t){ a / b, a % b };
}

static inline lldiv_t lldiv(long long a, long long b)
{
	return (lldiv_t){ a / b, a % b };
}

static inline unsigned int lambda_digit(char c)
{
	if (isdigit(c))
		return c - '0';
	return isalpha(c) ? (c | 0x20) - 'a' + 10 : 255;
}

/* A number's magnitude and sign, as strtol() and strtoul() read them. */
static inline unsigned long lambda_strtoul(const char *s, char **end, unsigned int base, int *negative, int *overflow)
{
	const char *from = s;
	unsigned long n = 0;

	while (isspace(*s))
		s++;
	*negative = *s == '-';
	if (*s == '-' || *s == '+')
		s++;
	if ((base == 0 || base == 16) && s[0] == '0' && (s[1] | 0x20) == 'x' && isxdigit(s[2])) {
		s += 2;
		base = 16;
	} else if (base == 0) {
		base = *s == '0' ? 8 : 10;
	}
	*overflow = 0;
	for (; lambda_digit(*s) < base; s++) {
		*overflow |= n > (~0UL - lambda_digit(*s)) / base;
		n = n * base + lambda_digit(*s);
		from = s + 1;
	}
	if (end)
		*end = (char *)from;
	return n;
}

static inline long strtol(const char *s, char **end, int base)
{
	int negative, overflow;
	unsigned long n = lambda_strtoul(s, end, base, &negative, &overflow);

	if (overflow || n > __LONG_MAX__ + (unsigned long)negative)
		return negative ? -__LONG_MAX__ - 1 : __LONG_MAX__;
	return negative ? -n : n;
}

static inline unsigned long strtoul(const char *s, char **end, int base)
{
	int negative, overflow;
	unsigned long n = lambda_strtoul(s, end, base, &negative, &overflow);

	if (overflow)
		return ~0UL;
	return negative ? -n : n;
}

static inline long long strtoll(const char *s, char **end, int base)
{
	return strtol(s, end, base);
}

static inline unsigned long long strtoull(const char *s, char **end, int base)
{
	return strtoul(s, end, base);
}

static inline long atol(const char *s)
{
	return strtol(s, NULL, 10);
}

static inline int atoi(const char *s)
{
	return atol(s);
}

static inline long long atoll(const char *s)
{
	return atol(s);
}

#endif

typedef int (*lambda_compare_fn)(const void *, const void *);

static inline void lambda_swap(char *a, char *b, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		char c = a[i];

		a[i] = b[i];
		b[i] = c;
	}
}

/* Heap sort: in place, never slow, no recursion. The first pass makes the heap, the second removes its largest element. */
static inline void lambda_qsort(void *base, size_t count, size_t size, lambda_compare_fn compare)
{
	size_t from = count / 2, end = count;
	char *v = base;

	while (end > 1) {
		size_t parent, child;

		if (from > 0) {
			from--;
		} else {
			end--;
			lambda_swap(v, v + end * size, size);
		}
		for (parent = from; (child = 2 * parent + 1) < end; parent = child) {
			if (child + 1 < end && compare(v + child * size, v + (child + 1) * size) < 0)
				child++;
			if (compare(v + parent * size, v + child * size) >= 0)
				break;
			lambda_swap(v + parent * size, v + child * size, size);
		}
	}
}

static inline void *lambda_bsearch(const void *key, const void *base, size_t count, size_t size,
				   lambda_compare_fn compare)
{
	const char *v = base;
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare(key, v + middle * size);

		if (!order)
			return (void *)(v + middle * size);
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

#endif
