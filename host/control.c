// SPDX-License-Identifier: Apache-2.0
/*
 * The control socket: one command per connection, a line, answered by a line that begins with "ok" or "error".
 * The socket is made with mode 0600 before privileges are dropped, so that only the user who starts the process can connect.
 *
 *	load REVISION PATH ...	let the shared library at PATH take over, and with it what the words after it name:
 *		keep		the kept objects
 *		as-is, by-call	the migrated object, as it is or by the lambda's function
 *		from=FILE	all of them from FILE, instead of the current revision
 *	keys required|optional EVEN ODD
 *				the keys of the lambda's namespace, with an even and with an odd number, each in 32
 *				hexadecimal digits or "-" for none, and whether packets have to be tagged by one of them
 *	save FILE		write the current revision's state into FILE, which exists
 *	stats			the current revision and its counters, as JSON
 *	hold			take all packets, although another process begins to listen at the address
 *	release			let the kernel choose again who takes a packet
 *	drain [WORKERS]		begin no more messages, and no call without a successor: a process with so many workers,
 *				which takes the packets of messages that we do not know. Says what is in progress
 *	quit			end the process
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "host.h"

enum { LINE = 4096, TICK_MS = 250 };

/* Leaves the socket at path alone if somebody answers there. */
int control_open(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, err;
	mode_t mask;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -EADDRINUSE;
	}
	if (errno == ECONNREFUSED)
		unlink(path);
	mask = umask(0177);
	err = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 16) ? -errno : 0;
	umask(mask);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

static bool read_handover(char *words, struct handover *h)
{
	for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
		if (!strcmp(word, "keep"))
			h->keep = true;
		else if (!strcmp(word, "as-is"))
			h->migrate = MIGRATE_AS_IS;
		else if (!strcmp(word, "by-call"))
			h->migrate = MIGRATE_BY_CALL;
		else if (sscanf(word, "from=%63s", h->saved) != 1)
			return false;
	}
	return true;
}

static void load(char *args, char *reply)
{
	char path[LINE], why[LINE - 64];
	struct handover handover = { 0 };
	bool first = !host.current;
	unsigned int number;
	int words = 0;

	if (sscanf(args, "%u %4000s%n", &number, path, &words) != 2 || !read_handover(args + words, &handover)) {
		strcpy(reply, "error load: want REVISION PATH [keep] [as-is|by-call] [from=FILE]");
		return;
	}
	if (revision_load(number, path, &handover, why, sizeof(why))) {
		snprintf(reply, LINE, "error load revision %u: %s", number, why);
		return;
	}
	for (unsigned int i = 0; first && i < host.threads; i++)
		sem_post(&host.loaded);
	snprintf(reply, LINE, "ok %u", number);
}

/* Reads a key, or "-" for none. */
static bool read_key(const char *text, struct ln_key *key)
{
	uint8_t secret[sizeof(key->word)];

	memset(key, 0, sizeof(*key));
	if (!strcmp(text, "-"))
		return true;
	if (strlen(text) != 2 * sizeof(secret) || strspn(text, "0123456789abcdef") != 2 * sizeof(secret))
		return false;
	for (unsigned int i = 0; i < sizeof(secret); i++)
		sscanf(text + 2 * i, "%2hhx", &secret[i]);
	for (int i = 0; i < 2; i++) {
		memcpy(&key->word[i], secret + i * sizeof(uint64_t), sizeof(uint64_t));
		key->word[i] = le64toh(key->word[i]);
	}
	key->valid = 1;
	explicit_bzero(secret, sizeof(secret));
	return true;
}

/* Each batch of packets is checked by the former keys or by these. */
static void set_keys(const char *args, char *reply)
{
	char required[16], even[64], odd[64];
	struct ln_keys keys = { 0 };

	if (sscanf(args, "%15s %63s %63s", required, even, odd) != 3 || !read_key(even, &keys.key[0]) ||
	    !read_key(odd, &keys.key[1]) || (strcmp(required, "required") && strcmp(required, "optional"))) {
		strcpy(reply, "error keys: want required|optional, and two keys of 32 hexadecimal digits or -");
		return;
	}
	if (!auth_ready()) {
		strcpy(reply, "error keys: start the process with --windows");
		return;
	}
	keys.required = !strcmp(required, "required");
	pthread_rwlock_wrlock(&host.world);
	host.keys = keys;
	pthread_rwlock_unlock(&host.world);
	explicit_bzero(&keys, sizeof(keys));
	explicit_bzero(even, sizeof(even));
	explicit_bzero(odd, sizeof(odd));
	strcpy(reply, "ok");
}

static void save(const char *path, char *reply)
{
	int err = state_save(path);

	if (err)
		snprintf(reply, LINE, "error save %.64s: %s", path, strerror(-err));
	else
		strcpy(reply, "ok");
}

static uint64_t total(const struct revision *rev, size_t field)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < host.threads; i++)
		sum += *(const volatile uint64_t *)((const char *)&rev->stats[i] + field);
	return sum;
}

static void stats(char *reply)
{
	static const struct {
		const char *name;
		size_t at;
	} fields[] = {
		{ "requests", offsetof(struct ln_stats, requests) },
		{ "replies", offsetof(struct ln_stats, replies) },
		{ "errors", offsetof(struct ln_stats, errors) },
		{ "drops", offsetof(struct ln_stats, drops) },
		{ "calls", offsetof(struct ln_stats, calls) },
		{ "faults", offsetof(struct ln_stats, faults) },
		{ "late", offsetof(struct ln_stats, late) },
		{ "bad_tags", offsetof(struct ln_stats, bad_tags) },
		{ "replayed", offsetof(struct ln_stats, replayed) },
		{ "bytes_in", offsetof(struct ln_stats, bytes_in) },
		{ "bytes_out", offsetof(struct ln_stats, bytes_out) },
		{ "samples", offsetof(struct ln_stats, samples) },
		{ "sampled_ns", offsetof(struct ln_stats, sampled_ns) },
	};
	const struct revision *rev = host.current;
	int n;

	if (!rev) {
		strcpy(reply, "error stats: no revision is loaded");
		return;
	}
	n = snprintf(reply, LINE, "ok {\"workload\":%u,\"revision\":%u,\"stats\":{", host.workload, rev->number);
	for (unsigned int i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		n += snprintf(reply + n, LINE - n, "\"%s\":%lu,", fields[i].name, total(rev, fields[i].at));
	n += snprintf(reply + n, LINE - n, "\"faults_by\":{");
	for (unsigned int i = 1; i < LN_FAULTS; i++)
		n += snprintf(reply + n, LINE - n, "%s\"%u\":%lu", i > 1 ? "," : "", i,
			      total(rev, offsetof(struct ln_stats, faults_by) + i * sizeof(uint64_t)));
	n += snprintf(reply + n, LINE - n, "},\"histogram\":[");
	for (unsigned int i = 0; i < LN_HIST_BUCKETS; i++)
		n += snprintf(reply + n, LINE - n, "%s%lu", i ? "," : "",
			      total(rev, offsetof(struct ln_stats, hist) + i * sizeof(uint64_t)));
	snprintf(reply + n, LINE - n, "]},\"fault\":\"%s\"}", rev->fault ? guard_reason(rev->fault) : "");
}

static void drain(const char *workers, char *reply)
{
	unsigned int n;

	if (sscanf(workers, "%u", &n) == 1 && n && n <= MAX_THREADS && !atomic_load(&host.draining)) {
		atomic_store(&host.succeeded, true);
		atomic_store(&host.draining, true);
		if (steer_on(n))
			warn("steer packets to the next process");
	}
	atomic_store(&host.draining, true);
	snprintf(reply, LINE, "ok %u messages %u calls", message_active(), call_active());
}

static void hold(char *reply)
{
	int err = steer_here();

	if (err)
		snprintf(reply, LINE, "error hold: %s", strerror(-err));
	else
		strcpy(reply, "ok");
}

static bool command(char *line, char *reply)
{
	line[strcspn(line, "\r\n")] = 0;
	if (!strncmp(line, "load ", 5)) {
		load(line + 5, reply);
	} else if (!strncmp(line, "keys ", 5)) {
		set_keys(line + 5, reply);
	} else if (!strncmp(line, "save ", 5)) {
		save(line + 5, reply);
	} else if (!strcmp(line, "stats")) {
		stats(reply);
	} else if (!strcmp(line, "hold")) {
		hold(reply);
	} else if (!strcmp(line, "release")) {
		steer_away();
		strcpy(reply, "ok");
	} else if (!strncmp(line, "drain", 5)) {
		drain(line + 5, reply);
	} else if (!strcmp(line, "quit")) {
		strcpy(reply, "ok");
		return false;
	} else {
		strcpy(reply, "error unknown command: want load, keys, save, stats, hold, release, drain or quit");
	}
	return true;
}

/* Serves one connection; false when the process is to end. Does not wait for a peer that does not write its line. */
static bool converse(int fd)
{
	static const struct timeval patience = { .tv_sec = 1 };
	char line[LINE], reply[LINE] = "";
	bool go_on = true;
	size_t len = 0;
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (len < sizeof(line) - 1 && !memchr(line, '\n', len)) {
		n = read(fd, line + len, sizeof(line) - 1 - len);
		/* The watchdog's signal may come late, and a read with a time-out is never restarted (signal(7)). */
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return true;
		len += n;
	}
	line[len] = 0;
	go_on = command(line, reply);
	n = strlen(reply);
	reply[n] = '\n';
	(void)!send(fd, reply, n + 1, MSG_NOSIGNAL);
	explicit_bzero(line, sizeof(line)); /* it may have had keys */
	return go_on;
}

/* Serves commands, and between them forgets what timed out, until one says quit. */
int control_serve(int fd)
{
	struct pollfd poll_fd = { fd, POLLIN, 0 };
	bool go_on = true;
	int conn;

	while (go_on) {
		if (poll(&poll_fd, 1, TICK_MS) > 0) {
			conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
			if (conn >= 0) {
				go_on = converse(conn);
				close(conn);
			}
		}
		if (host.mode != LN_MODE_PACKET)
			message_expire(clock_coarse());
		revision_retire(clock_coarse());
	}
	return 0;
}
