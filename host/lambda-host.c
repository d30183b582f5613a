// SPDX-License-Identifier: Apache-2.0
/* lambda-host: command line and start. */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

enum { NOBODY = 65534 };

struct host host = {
	.message_max = LN_RPC_MAX_PAYLOAD,
	.in_flight = 1,
	.message_timeout_ms = 5000,
	.run_limit_ns = 1000000000,
	.threads = 1,
	.first_cpu = -1,
};

static const char usage[] =
	"usage: lambda-host --workload ID --listen ADDR:PORT [--listen ...] --control SOCKET\n"
	"                   [--mode packet|stream|assemble] [--message-max BYTES] [--in-flight N]\n"
	"                   [--message-timeout MS] [--once] [--memory BYTES] [--time US]\n"
	"                   [--service PROTOCOL,MS,RETRIES,ID_AT,ID_BYTES --server ADDR:PORT ... [--shares HEX]] ...\n"
	"                   [--threads N] [--spin | --block] [--cpu FIRST] [--windows FILE] [--user UID]\n"
	"       lambda-host --check OBJECT [--memory BYTES] [--user UID]\n"
	"\n"
	"Runs one lambda natively and answers λ-RPC for it. Paths in commands on the control socket are relative\n"
	"to the socket's directory. With --check it only loads OBJECT, and ends.\n";

static unsigned long number(const char *option, const char *text, unsigned long low, unsigned long high)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || n < low || n > high)
		errx(2, "--%s: \"%s\" is not a number from %lu to %lu", option, text, low, high);
	return n;
}

/* Reads 192.0.2.1:4370 or [2001:db8::1]:4370. */
static union address address(const char *option, const char *text)
{
	char host_part[INET6_ADDRSTRLEN + 2] = "", *name = host_part;
	const char *colon = strrchr(text, ':');
	union address a = { 0 };
	uint16_t port;

	if (!colon || (size_t)(colon - text) >= sizeof(host_part))
		errx(2, "--%s: \"%s\" is not ADDR:PORT", option, text);
	port = htobe16(number(option, colon + 1, 1, 65535));
	memcpy(host_part, text, colon - text);
	if (inet_pton(AF_INET, name, &a.in.sin_addr) == 1) {
		a.in.sin_family = AF_INET;
		a.in.sin_port = port;
		return a;
	}
	if (name[0] == '[' && name[strlen(name) - 1] == ']') {
		name[strlen(name) - 1] = 0;
		name++;
	}
	if (inet_pton(AF_INET6, name, &a.in6.sin6_addr) != 1)
		errx(2, "--%s: \"%s\" is not ADDR:PORT", option, text);
	a.in6.sin6_family = AF_INET6;
	a.in6.sin6_port = port;
	return a;
}

/* Reads one of the numbers behind a service's protocol. */
static unsigned long field(char **text, unsigned long high)
{
	char *one = strsep(text, ",");

	if (!one)
		errx(2, "--service: a number is missing");
	return number("service", one, 0, high);
}

static void add_service(char *text)
{
	struct service *s = &host.services[host.service_count];
	char *protocol = strsep(&text, ",");

	if (host.service_count == MAX_SERVICES)
		errx(2, "--service: more than %d", MAX_SERVICES);
	if (!strcmp(protocol, "memcached"))
		s->protocol = LN_PROTOCOL_MEMCACHED;
	else if (!strcmp(protocol, "raw"))
		s->protocol = LN_PROTOCOL_RAW;
	else
		errx(2, "--service: \"%s\" is not memcached or raw", protocol);
	s->timeout_ms = field(&text, 60000);
	s->retries = field(&text, UINT8_MAX);
	s->id_at = field(&text, LN_RPC_MAX_PAYLOAD);
	s->id_len = field(&text, sizeof(uint64_t));
	s->first = host.server_count;
	host.service_count++;
}

/* The service that was named last. */
static struct service *last_service(const char *option)
{
	if (!host.service_count)
		errx(2, "--%s: there is no --service before it", option);
	return &host.services[host.service_count - 1];
}

static void add_server(const char *text)
{
	struct service *s = last_service("server");

	if (host.server_count == MAX_SERVERS)
		errx(2, "--server: more than %d", MAX_SERVERS);
	host.servers[host.server_count++] = (struct server){ address("server", text), s - host.services };
	s->server_count++;
}

/* Two digits for each share. */
static void set_shares(const char *text)
{
	struct service *s = last_service("shares");

	if (strlen(text) != 2 * LN_SHARES)
		errx(2, "--shares: there are %zu digits, not %d", strlen(text), 2 * LN_SHARES);
	for (int i = 0; i < LN_SHARES; i++) {
		char digits[] = { text[2 * i], text[2 * i + 1], 0 }, *rest;
		unsigned long server = strtoul(digits, &rest, 16);

		if (*rest || server >= s->server_count)
			errx(2, "--shares: \"%s\" is not a server of the service", digits);
		s->shares[i] = server;
	}
}

static enum ln_mode mode(const char *text)
{
	if (!strcmp(text, "packet"))
		return LN_MODE_PACKET;
	if (!strcmp(text, "stream"))
		return LN_MODE_STREAM;
	if (!strcmp(text, "assemble"))
		return LN_MODE_ASSEMBLE;
	errx(2, "--mode: \"%s\" is not packet, stream or assemble", text);
}

struct settings {
	const char *control;
	const char *check; /* a shared library to try */
	const char *windows; /* NULL: there will be no keys */
	unsigned int user;
};

static const struct option options[] = {
	{ "workload", required_argument, NULL, 'w' },
	{ "listen", required_argument, NULL, 'l' },
	{ "control", required_argument, NULL, 'c' },
	{ "mode", required_argument, NULL, 'm' },
	{ "message-max", required_argument, NULL, 'M' },
	{ "in-flight", required_argument, NULL, 'f' },
	{ "message-timeout", required_argument, NULL, 't' },
	{ "once", no_argument, NULL, 'o' },
	{ "service", required_argument, NULL, 's' },
	{ "server", required_argument, NULL, 'S' },
	{ "shares", required_argument, NULL, 'H' },
	{ "memory", required_argument, NULL, 'r' },
	{ "time", required_argument, NULL, 'T' },
	{ "threads", required_argument, NULL, 'n' },
	{ "spin", no_argument, NULL, 'p' },
	{ "block", no_argument, NULL, 'b' },
	{ "cpu", required_argument, NULL, 'C' },
	{ "windows", required_argument, NULL, 'W' },
	{ "user", required_argument, NULL, 'u' },
	{ "check", required_argument, NULL, 'k' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void set(int option, struct settings *settings)
{
	switch (option) {
	case 'w':
		host.workload = number("workload", optarg, 0, UINT32_MAX);
		break;
	case 'l':
		if (host.listen_count == MAX_LISTEN)
			errx(2, "--listen: more than %d", MAX_LISTEN);
		host.listen[host.listen_count++] = address("listen", optarg);
		break;
	case 'c':
		settings->control = optarg;
		break;
	case 'm':
		host.mode = mode(optarg);
		break;
	case 'M':
		host.message_max = number("message-max", optarg, 1, 90 << 20);
		break;
	case 'f':
		for (unsigned long n = number("in-flight", optarg, 1, 4096); host.in_flight < n;)
			host.in_flight *= 2;
		break;
	case 't':
		host.message_timeout_ms = number("message-timeout", optarg, 1, 600000);
		break;
	case 'o':
		host.once = true;
		break;
	case 's':
		add_service(optarg);
		break;
	case 'S':
		add_server(optarg);
		break;
	case 'H':
		set_shares(optarg);
		break;
	case 'r':
		host.memory = number("memory", optarg, 0, 1UL << 40);
		break;
	case 'T':
		host.run_limit_ns = number("time", optarg, 1, 1000000) * 1000;
		break;
	case 'n':
		host.threads = number("threads", optarg, 1, MAX_THREADS);
		break;
	case 'p':
	case 'b':
		host.spin = option == 'p';
		break;
	case 'C':
		host.first_cpu = number("cpu", optarg, 0, 4095);
		break;
	case 'W':
		settings->windows = optarg;
		break;
	case 'u':
		settings->user = number("user", optarg, 1, UINT32_MAX - 1);
		break;
	case 'k':
		settings->check = optarg;
		break;
	case 'h':
		fputs(usage, stdout);
		exit(0);
	default:
		fputs(usage, stderr);
		exit(2);
	}
}

static void read_options(int argc, char **argv, struct settings *settings)
{
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		set(option, settings);
	if (optind != argc || (!settings->check && (!host.listen_count || !settings->control))) {
		fputs(usage, stderr);
		exit(2);
	}
	if (host.mode != LN_MODE_PACKET && host.service_count)
		errx(2, "--service: external calls need --mode packet");
	for (unsigned int i = 0; i < host.service_count; i++) {
		if (!host.services[i].server_count)
			errx(2, "--service: number %u has no --server", i + 1);
	}
	if (host.mode == LN_MODE_PACKET)
		host.message_max = LN_RPC_MAX_PAYLOAD;
}

static void check(int result, const char *what)
{
	if (result < 0) {
		errno = -result;
		err(1, "%s", what);
	}
}

/* A waiting writer goes first: a deployment must not starve behind the workers' batches. */
static void make_world(void)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&host.world, &attr);
}

/* Commands name files relative to the control socket, in a directory that only root and we may search. */
static void enter_directory(const char *control)
{
	const char *slash = strrchr(control, '/');
	char *dir;

	if (!slash)
		return;
	dir = strndup(control, slash - control + 1);
	if (!dir || chdir(dir))
		err(1, "%s", dir);
	free(dir);
}

/*
 * Loads a shared library in the way a serving process would. A library that crashes the dynamic linker then costs only this process.
 * Opens the library as root.
 */
static int try_object(const struct settings *settings)
{
	int file = open(settings->check, O_RDONLY | O_CLOEXEC);
	char why[4096], path[32];

	check(file < 0 ? -errno : 0, settings->check);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	check(privilege_drop(settings->user), "privileges");
	check(filter_install(), "system call filter");
	if (!object_open(0, path, why, sizeof(why)))
		errx(1, "%s", why);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct settings settings = { .user = NOBODY };
	int control;

	/* Closes what the caller of `up` had open: the filter lets a lambda read. */
	if (close_range(STDERR_FILENO + 1, ~0U, 0))
		err(1, "close inherited descriptors");
	read_options(argc, argv, &settings);
	if (settings.check)
		return try_object(&settings);
	signal(SIGPIPE, SIG_IGN);
	make_world();
	host.workers = aligned_alloc(64, host.threads * ((sizeof(*host.workers) + 63) & ~63UL));
	if (!host.workers)
		err(1, "workers");
	memset(host.workers, 0, host.threads * sizeof(*host.workers));
	check(message_init(), "message records");
	check(once_init(), "records of requests");
	if (settings.windows)
		check(auth_open(settings.windows), settings.windows);
	for (unsigned int i = 0; i < host.threads; i++) {
		host.workers[i].id = i;
		check(call_init(&host.workers[i]), "call records");
		check(server_open(&host.workers[i]), "listen");
	}
	control = control_open(settings.control);
	check(control, settings.control);
	enter_directory(settings.control);
	check(privilege_drop(settings.user), "privileges");
	check(guard_init(), "watchdog");
	sem_init(&host.loaded, 0, 0);
	for (unsigned int i = 0; i < host.threads; i++)
		check(server_start(&host.workers[i]), "thread");
	check(filter_install(), "system call filter");
	control_serve(control);
	/* Not exit(): the workers still run. */
	unlink(settings.control);
	_exit(0);
}
