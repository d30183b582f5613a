/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* C's <string.h> for the NIC, where there is no C library. The host uses its own. */
#ifndef __bpf__
#include_next <string.h>
#else
#ifndef LAMBDA_STRING_H
#define LAMBDA_STRING_H

#include <stddef.h>

/* The compiler's passes expand these three, inline or as loops on words. */
static inline void *memcpy(void *to, const void *from, size_t n)
{
	return __builtin_memcpy(to, from, n);
}

static inline void *memmove(void *to, const void *from, size_t n)
{
	return __builtin_memmove(to, from, n);
}

static inline void *memset(void *to, int value, size_t n)
{
	return __builtin_memset(to, value, n);
}

/* Compares words as big-endian numbers. */
static inline int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *p = a, *q = b;
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		unsigned long x, y;

		__builtin_memcpy(&x, p + i, 8);
		__builtin_memcpy(&y, q + i, 8);
		if (x != y)
			return __builtin_bswap64(x) < __builtin_bswap64(y) ? -1 : 1;
	}
	for (; i < n; i++)
		if (p[i] != q[i])
			return p[i] - q[i];
	return 0;
}

static inline void *memchr(const void *s, int c, size_t n)
{
	const unsigned char *p = s;

	for (size_t i = 0; i < n; i++)
		if (p[i] == (unsigned char)c)
			return (void *)(p + i);
	return NULL;
}

static inline size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static inline size_t strnlen(const char *s, size_t max)
{
	size_t n = 0;

	while (n < max && s[n])
		n++;
	return n;
}

static inline int strncmp(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char x = a[i], y = b[i];

		if (x != y)
			return x - y;
		if (!x)
			break;
	}
	return 0;
}

static inline int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, (size_t)-1);
}

static inline char *strncpy(char *to, const char *from, size_t n)
{
	size_t i = 0;

	for (; i < n && from[i]; i++)
		to[i] = from[i];
	for (; i < n; i++)
		to[i] = 0;
	return to;
}

static inline char *stpcpy(char *to, const char *from)
{
	while ((*to = *from++))
		to++;
	return to;
}

static inline char *strcpy(char *to, const char *from)
{
	stpcpy(to, from);
	return to;
}

static inline char *strcat(char *to, const char *from)
{
	strcpy(to + strlen(to), from);
	return to;
}

static inline char *strncat(char *to, const char *from, size_t n)
{
	char *end = to + strlen(to);
	size_t i = 0;

	for (; i < n && from[i]; i++)
		end[i] = from[i];
	end[i] = 0;
	return to;
}

static inline char *strchr(const char *s, int c)
{
	for (;; s++) {
		if (*s == (char)c)
			return (char *)s;
		if (!*s)
			return NULL;
	}
}

static inline char *strrchr(const char *s, int c)
{
	const char *last = NULL;

	for (;; s++) {
		if (*s == (char)c)
			last = s;
		if (!*s)
			return (char *)last;
	}
}

/* How many characters at the start of s are (or, where among is 0, are not) in set. */
static inline size_t lambda_span(const char *s, const char *set, int among)
{
	size_t n = 0;

	while (s[n] && !!strchr(set, s[n]) == among)
		n++;
	return n;
}

static inline size_t strspn(const char *s, const char *set)
{
	return lambda_span(s, set, 1);
}

static inline size_t strcspn(const char *s, const char *set)
{
	return lambda_span(s, set, 0);
}

static inline char *strpbrk(const char *s, const char *set)
{
	s += strcspn(s, set);
	return *s ? (char *)s : NULL;
}

static inline char *strtok_r(char *s, const char *separators, char **rest)
{
	char *token = s ? s : *rest;

	token += strspn(token, separators);
	*rest = token + strcspn(token, separators);
	if (*token && **rest)
		*(*rest)++ = 0;
	return *rest == token ? NULL : token;
}

static inline char *strstr(const char *s, const char *part)
{
	size_t n = strlen(part);

	for (; strncmp(s, part, n); s++)
		if (!*s)
			return NULL;
	return (char *)s;
}

#endif
#endif
