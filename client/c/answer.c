// SPDX-License-Identifier: Apache-2.0
/* Reads a gateway's answer to GET /system/function/NAME: an HTTP head, and a function in JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MAX_DEPTH 64

/* A value in a JSON text: where it starts and ends. */
struct span {
	const char *at, *end;
};

static const char *skip_space(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* skip_string returns what follows a string, NULL where there is none. */
static const char *skip_string(const char *p)
{
	if (*p++ != '"')
		return NULL;
	for (; *p && *p != '"'; p++)
		if (*p == '\\' && !*++p)
			return NULL;
	return *p ? p + 1 : NULL;
}

/* skip_value returns what follows a value (RFC 8259), NULL where the text ends too early. */
static const char *skip_value(const char *p)
{
	unsigned int depth = 0;

	do {
		p = skip_space(p);
		if (*p == '"') {
			p = skip_string(p);
			if (!p)
				return NULL;
		} else if (*p == '{' || *p == '[') {
			if (++depth > MAX_DEPTH)
				return NULL;
			p++;
		} else if (*p == '}' || *p == ']') {
			if (!depth--)
				return NULL;
			p++;
		} else if (*p == ',' || *p == ':') {
			if (!depth)
				return NULL;
			p++;
		} else {
			size_t n = strcspn(p, " \t\r\n,:]}[{\"");

			if (!n)
				return NULL;
			p += n;
		}
	} while (depth);
	return p;
}

/* member finds the value of a key in a text that is a JSON object. */
static bool member(const char *p, const char *key, struct span *value)
{
	size_t n = strlen(key);
	bool found = false;

	p = skip_space(p);
	if (*p++ != '{')
		return false;
	for (p = skip_space(p); *p != '}'; p = skip_space(p)) {
		const char *name = p;
		bool same;

		p = skip_string(p);
		if (!p)
			return false;
		same = (size_t)(p - name) == n + 2 && !memcmp(name + 1, key, n);
		p = skip_space(p);
		if (*p++ != ':')
			return false;
		p = skip_space(p);
		name = p;
		p = skip_value(p);
		if (!p)
			return false;
		if (same)
			*value = (struct span){ name, p };
		found = found || same;
		p = skip_space(p);
		if (*p == ',')
			p = skip_space(p + 1);
		else if (*p != '}')
			return false;
	}
	return found; /* only of a whole object: a truncated one may end in the middle of a value */
}

static bool member_u32(const char *text, const char *key, uint32_t *v)
{
	unsigned long long n;
	struct span s;
	char *end;

	if (!member(text, key, &s) || *s.at < '0' || *s.at > '9')
		return false;
	n = strtoull(s.at, &end, 10);
	*v = (uint32_t)n;
	return end == s.end && n <= UINT32_MAX;
}

static bool read_function(const char *text, struct lambdanic_function *f)
{
	struct span s;
	size_t n;

	if (!member_u32(text, "workload", &f->workload) || !member_u32(text, "revision", &f->revision) ||
	    !member(text, "endpoint", &s))
		return false;
	n = (size_t)(s.end - s.at) - 2; /* without the quotes; an address has nothing that would be escaped */
	if (*s.at != '"' || !n || n >= sizeof(f->address) || memchr(s.at, '\\', n))
		return false;
	memcpy(f->address, s.at + 1, n);
	f->address[n] = 0;
	return true;
}

int lookup_read(const char *answer, struct lambdanic_function *f)
{
	const char *body = strstr(answer, "\r\n\r\n");
	int minor, status;

	if (sscanf(answer, "HTTP/1.%1d %3d", &minor, &status) != 2 || !body)
		return LAMBDANIC_GATEWAY;
	if (status == 404)
		return LAMBDANIC_NO_FUNCTION;
	if (status != 200 || !read_function(body + 4, f))
		return LAMBDANIC_GATEWAY;
	return LAMBDANIC_OK;
}
