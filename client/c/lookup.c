// SPDX-License-Identifier: Apache-2.0
/*
 * Asks a gateway for a function: GET /system/function/NAME. The request is HTTP/1.0, whose answer comes in one piece and ends
 * where the connection does (RFC 9112, section 6.3).
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal.h"

#define MAX_ANSWER (1 << 20)

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

/* append_escaped writes a component of a URL, and escapes everything that RFC 3986 does not call unreserved. */
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

static int connect_unix(const char *path, int64_t until, int *fd)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int err;

	if (!*path || strlen(path) >= sizeof(to.sun_path))
		return LAMBDANIC_BAD_ADDRESS;
	strcpy(to.sun_path, path);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return LAMBDANIC_SYSTEM;
	bound_connect(*fd, until);
	if (!connect(*fd, (const void *)&to, sizeof(to)))
		return LAMBDANIC_OK;
	err = errno;
	close(*fd);
	errno = err;
	return err == EAGAIN ? LAMBDANIC_DEADLINE : LAMBDANIC_SYSTEM;
}

/* begin takes fd over. */
static bool begin(struct inquiry *q, int fd, int64_t until, const char *credentials, const char *name_space,
		  const char *name)
{
	q->fd = fd;
	q->until = until;
	q->sent = q->got = 0;
	q->request = compose(credentials, name_space, name, &q->len);
	q->answer = malloc(MAX_ANSWER + 1);
	if (q->request && q->answer)
		return true;
	inquiry_end(q);
	errno = ENOMEM;
	return false;
}

bool inquiry_begin(struct inquiry *q, const struct gateway *g, int64_t until, const char *credentials,
		   const char *name_space, const char *name)
{
	const struct sockaddr *to = (const void *)&g->address;
	int fd;

	if (!g->len)
		return false;
	fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	if (connect(fd, to, g->len) && errno != EINPROGRESS) {
		close(fd);
		return false;
	}
	return begin(q, fd, until, credentials, name_space, name);
}

void inquiry_end(struct inquiry *q)
{
	const int err = errno;

	if (q->fd < 0)
		return;
	close(q->fd);
	free(q->request);
	free(q->answer);
	q->fd = -1;
	errno = err;
}

struct pollfd inquiry_waits(const struct inquiry *q)
{
	return (struct pollfd){ .fd = q->fd, .events = q->sent < q->len ? POLLOUT : POLLIN };
}

/* failed says whether a failed system call ends the question, and with which result. */
static bool failed(const struct inquiry *q, int *result)
{
	if (errno != EAGAIN && errno != EINTR) {
		*result = LAMBDANIC_SYSTEM;
		return true;
	}
	*result = LAMBDANIC_DEADLINE;
	return now_ns() >= q->until;
}

bool inquiry_go_on(struct inquiry *q, int *result, struct lambdanic_function *f)
{
	ssize_t n = 1;

	while (q->sent < q->len) {
		n = send(q->fd, q->request + q->sent, q->len - q->sent, MSG_NOSIGNAL);
		if (n < 0)
			return failed(q, result);
		q->sent += (size_t)n;
	}
	while (n && q->got < MAX_ANSWER) {
		n = recv(q->fd, q->answer + q->got, MAX_ANSWER - q->got, 0);
		if (n < 0)
			return failed(q, result);
		q->got += (size_t)n;
	}
	q->answer[q->got] = 0;
	*result = n ? LAMBDANIC_GATEWAY : lookup_read(q->answer, f);
	return true;
}

static int ask(struct inquiry *q, struct lambdanic_function *f)
{
	int result;

	while (!inquiry_go_on(q, &result, f)) {
		struct pollfd waits = inquiry_waits(q);
		int64_t left = MAX(q->until - now_ns(), 0);

		poll(&waits, 1, (int)MIN(left / MS + 1, INT32_MAX));
	}
	return result;
}

/* Connects to unix:PATH, HOST:PORT, or the host in a URL. */
static int connect_gateway(const char *address, int64_t until, int *fd)
{
	char host[NI_MAXHOST + sizeof("[]:65535")];
	uint32_t unused;
	size_t len;

	if (!strncmp(address, "unix:", 5))
		return connect_unix(address + 5, until, fd);
	if (strstr(address, "://")) {
		if (strncasecmp(address, "http://", 7))
			return LAMBDANIC_BAD_ARGUMENT; /* a gateway speaks HTTP */
		address += 7;
		len = strcspn(address, "/");
		if (len >= sizeof(host))
			return LAMBDANIC_BAD_ARGUMENT;
		memcpy(host, address, len);
		host[len] = 0;
		address = host;
	}
	return connect_to(address, 8080, SOCK_STREAM, until, fd, &unused);
}

int lookup(struct gateway *g, const char *address, const char *credentials, const char *name_space, const char *name,
	   int64_t until, struct lambdanic_function *f)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	struct inquiry q = { .fd = -1 };
	int fd, err;

	err = connect_gateway(address, until, &fd);
	if (err)
		return err;
	if (!begin(&q, fd, until, credentials, name_space, name))
		return LAMBDANIC_SYSTEM;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (!getpeername(fd, (void *)&peer, &len))
		*g = (struct gateway){ peer, len };
	err = ask(&q, f);
	inquiry_end(&q);
	return err;
}

int lambdanic_lookup(const char *gateway, const char *credentials, const char *name_space, const char *name,
		     uint32_t timeout_ms, struct lambdanic_function *function)
{
	struct gateway unused;

	if (!gateway || !name || !*name || !function)
		return LAMBDANIC_BAD_ARGUMENT;
	return lookup(&unused, gateway, credentials, name_space, name,
		      now_ns() + (timeout_ms ? timeout_ms : DEFAULT_TIMEOUT) * MS, function);
}
