// SPDX-License-Identifier: Apache-2.0
/*
 * Asks a gateway for a function: GET /system/function/NAME. The request is of HTTP/1.0, whose answer comes in one piece and ends
 * where the connection does (RFC 9112, section 6.3).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal.h"

#define MAX_ANSWER (1 << 20)
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

/* member finds the value of a key of the object that the text is. */
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
	return found; /* only of a whole object: a part may end in the middle of a value */
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

/* base64 is RFC 4648's, for the credentials (RFC 7617). out has room for 4 letters for every 3 bytes begun, and a zero. */
static void base64(const char *in, size_t n, char *out)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = 0;

		for (size_t j = 0; j < 3; j++)
			v = v << 8 | (i + j < n ? (uint8_t)in[i + j] : 0);
		for (int j = 0; j < 4; j++)
			*out++ = i + (size_t)j > n ? '=' : letters[v >> (18 - 6 * j) & 63];
	}
	*out = 0;
}

/* append_escaped writes a part of a URL, with everything escaped that RFC 3986 does not call unreserved. */
static void append_escaped(FILE *out, const char *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (; *text; text++) {
		if (strchr(plain, *text))
			fputc(*text, out);
		else
			fprintf(out, "%%%02X", (uint8_t)*text);
	}
}

/* compose makes the request. It returns NULL where there is no memory. */
static char *compose(const char *credentials, const char *name_space, const char *name, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);
	bool failed;

	if (!out)
		return NULL;
	fputs("GET /system/function/", out);
	append_escaped(out, name);
	if (name_space) {
		fputs("?namespace=", out);
		append_escaped(out, name_space);
	}
	fputs(" HTTP/1.0\r\nHost: gateway\r\n", out);
	if (credentials) {
		size_t n = strlen(credentials);
		char *letters = malloc(n / 3 * 4 + 5);

		if (!letters) {
			fclose(out);
			free(text);
			errno = ENOMEM;
			return NULL;
		}
		base64(credentials, n, letters);
		fprintf(out, "Authorization: Basic %s\r\n", letters);
		free(letters);
	}
	fputs("\r\n", out);
	failed = ferror(out);
	if (fclose(out) || failed) {
		free(text);
		return NULL;
	}
	return text;
}

static int connect_unix(const char *path, int *fd)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int err;

	if (!*path || strlen(path) >= sizeof(to.sun_path))
		return LAMBDANIC_BAD_ADDRESS;
	strcpy(to.sun_path, path);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return LAMBDANIC_SYSTEM;
	if (!connect(*fd, (const void *)&to, sizeof(to)))
		return LAMBDANIC_OK;
	err = errno;
	close(*fd);
	errno = err;
	return LAMBDANIC_SYSTEM;
}

/* exchange_bytes sends the request and reads until the gateway closes. */
static int exchange_bytes(int fd, const char *request, size_t len, char *answer)
{
	size_t got = 0;
	ssize_t n;

	while (len) {
		n = send(fd, request, len, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN ? LAMBDANIC_DEADLINE : LAMBDANIC_SYSTEM;
		request += n;
		len -= (size_t)n;
	}
	do {
		n = recv(fd, answer + got, MAX_ANSWER - got, 0);
		if (n < 0)
			return errno == EAGAIN ? LAMBDANIC_DEADLINE : LAMBDANIC_SYSTEM;
		got += (size_t)n;
	} while (n && got < MAX_ANSWER);
	answer[got] = 0;
	return n ? LAMBDANIC_GATEWAY : LAMBDANIC_OK;
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

static int ask(int fd, const char *credentials, const char *name_space, const char *name, uint32_t timeout_ms,
	       struct lambdanic_function *f)
{
	const struct timeval tv = { .tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000 };
	char *request, *answer = malloc(MAX_ANSWER + 1);
	int result = LAMBDANIC_SYSTEM;
	size_t len;

	request = compose(credentials, name_space, name, &len);
	if (request && answer && !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)))
		result = exchange_bytes(fd, request, len, answer);
	if (!result)
		result = lookup_read(answer, f);
	free(request);
	free(answer);
	return result;
}

int lambdanic_lookup(const char *gateway, const char *credentials, const char *name_space, const char *name,
		     uint32_t timeout_ms, struct lambdanic_function *function)
{
	uint32_t unused;
	int fd, err;

	if (!gateway || !name || !*name || !function)
		return LAMBDANIC_BAD_ARGUMENT;
	if (!strncmp(gateway, "unix:", 5))
		err = connect_unix(gateway + 5, &fd);
	else
		err = connect_to(gateway, 8080, SOCK_STREAM, &fd, &unused);
	if (err)
		return err;
	err = ask(fd, credentials, name_space, name, timeout_ms ? timeout_ms : 5000, function);
	close(fd);
	return err;
}
