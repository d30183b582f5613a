/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* C's <ctype.h>, for ASCII: the locale "C". */
#ifndef LAMBDA_CTYPE_H
#define LAMBDA_CTYPE_H

static inline int isdigit(int c)
{
	return c >= '0' && c <= '9';
}

static inline int islower(int c)
{
	return c >= 'a' && c <= 'z';
}

static inline int isupper(int c)
{
	return c >= 'A' && c <= 'Z';
}

static inline int isalpha(int c)
{
	return islower(c | 0x20);
}

static inline int isalnum(int c)
{
	return isalpha(c) || isdigit(c);
}

static inline int isxdigit(int c)
{
	return isdigit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static inline int isblank(int c)
{
	return c == ' ' || c == '\t';
}

static inline int isspace(int c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline int isprint(int c)
{
	return c >= ' ' && c <= '~';
}

static inline int isgraph(int c)
{
	return c > ' ' && c <= '~';
}

static inline int ispunct(int c)
{
	return isgraph(c) && !isalnum(c);
}

static inline int iscntrl(int c)
{
	return (c >= 0 && c < ' ') || c == 127;
}

static inline int tolower(int c)
{
	return isupper(c) ? c | 0x20 : c;
}

static inline int toupper(int c)
{
	return islower(c) ? c & ~0x20 : c;
}

#endif
