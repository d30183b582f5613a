// SPDX-License-Identifier: Apache-2.0
/*
 * liblambdanic-ikernel.so gives the sockets of an unmodified server an ikernel: LD_PRELOAD has it see bind(2). Whatever fails here, the
 * server gets what bind(2) said, and runs on. lambdanic-ikernel(3) has the environment variables.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

/*
 * One ikernel for the process and those that it forks: they have the connection in common, and so the lock has to be. It is not
 * there where nobody asks for an ikernel.
 */
static pthread_mutex_t *lock;
static struct lambdanic_ikernels *ikernels;
static struct lambdanic_ikernel *ikernel;
static bool failed; /* and said so */

static void complain(const char *what, const char *why)
{
	fprintf(stderr, "lambdanic: %s: %s: the server runs on without an ikernel\n", what, why);
}

static const char *why(int err)
{
	return err == LAMBDANIC_SYSTEM ? strerror(errno) : lambdanic_ikernels_error(ikernels, err);
}

/* The port that LAMBDANIC_PORT names; 0: any. Returns -1 if it names none. */
static long named_port(void)
{
	const char *name = getenv("LAMBDANIC_PORT");
	char *end = NULL;
	long port;

	if (!name || !*name)
		return 0;
	port = strtol(name, &end, 10);
	return *end || port < 1 || port > UINT16_MAX ? -1 : port;
}

__attribute__((constructor)) static void set_up(void)
{
	pthread_mutexattr_t shared;
	void *page;

	if (!getenv("LAMBDANIC_IKERNEL"))
		return;
	if (named_port() < 0) {
		complain("read LAMBDANIC_PORT", "it is not a port's number");
		return;
	}
	page = mmap(NULL, sizeof(*lock), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED) {
		complain("get memory", strerror(errno));
		return;
	}
	pthread_mutexattr_init(&shared);
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	/* A process that dies in an exchange leaves a reply behind, which is nobody else's. So nobody repairs the lock. */
	pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(page, &shared);
	pthread_mutexattr_destroy(&shared);
	lock = page;
}

/* The port of an address; 0 if it has none. */
static unsigned int port_of(const struct sockaddr *address, socklen_t len)
{
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = { 0 };

	memcpy(&a, address, MIN(len, sizeof(a)));
	switch (a.v4.sin_family) {
	case AF_INET:
		return ntohs(a.v4.sin_port);
	case AF_INET6:
		return ntohs(a.v6.sin6_port);
	}
	return 0;
}

static bool wanted(int fd, const struct sockaddr *address, socklen_t len)
{
	long port = named_port();
	int protocol = 0;
	socklen_t size = sizeof(protocol);

	if (!lock || getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) || protocol != IPPROTO_UDP)
		return false;
	return port_of(address, len) && (!port || port == port_of(address, len));
}

/* Writes one register: NAME=VALUE. */
static int write_register(char *assignment)
{
	char *value = strchr(assignment, '='), *end = NULL;
	long long number;

	if (!value)
		return LAMBDANIC_BAD_ARGUMENT;
	*value++ = '\0';
	errno = 0;
	number = *value == '-' ? strtoll(value, &end, 0) : (long long)strtoull(value, &end, 0);
	if (errno || end == value || *end)
		return LAMBDANIC_BAD_ARGUMENT;
	return lambdanic_ikernel_write(ikernel, assignment, number);
}

/* Writes the registers that the environment names. Returns whether it could. */
static bool write_registers(void)
{
	const char *from = getenv("LAMBDANIC_REGISTERS");
	char *all = strdup(from ? from : ""), *rest = NULL;
	int err = LAMBDANIC_OK;

	if (!all)
		err = LAMBDANIC_SYSTEM;
	else
		for (char *r = strtok_r(all, " ,", &rest); r && !err; r = strtok_r(NULL, " ,", &rest))
			err = write_register(r);
	if (err == LAMBDANIC_BAD_ARGUMENT)
		complain("read LAMBDANIC_REGISTERS", "it is not NAME=NUMBER,NAME=NUMBER");
	else if (err)
		complain("write LAMBDANIC_REGISTERS", why(err));
	free(all);
	return !err;
}

/* Makes the ikernel, once. */
static bool ready(void)
{
	const char *name = getenv("LAMBDANIC_IKERNEL");
	int err;

	if (ikernel || failed)
		return !failed;
	failed = true;
	if (!name)
		return false;
	err = lambdanic_ikernels_open(&ikernels, getenv("LAMBDANIC_IKERNEL_SOCKET"));
	if (!err)
		err = lambdanic_ikernel_create_for(ikernels, name, getenv("LAMBDANIC_NAMESPACE"), &ikernel);
	if (err)
		complain(name, why(err));
	failed = err || !write_registers();
	if (failed) {
		lambdanic_ikernels_close(ikernels);
		ikernels = NULL;
		ikernel = NULL;
	}
	return !failed;
}

static void attach(int fd)
{
	int err, locked = pthread_mutex_lock(lock);

	if (locked) {
		complain("attach a socket", "another process of the server died while it did so");
		if (locked == EOWNERDEAD)
			pthread_mutex_unlock(lock); /* now nobody gets it any more, and nobody waits for it */
		return;
	}
	if (ready()) {
		err = lambdanic_ikernel_attach(ikernel, fd);
		if (err)
			complain("attach a socket", why(err));
	}
	pthread_mutex_unlock(lock);
}

LAMBDANIC_API int bind(int fd, const struct sockaddr *address, socklen_t len)
{
	static int (*next)(int, const struct sockaddr *, socklen_t);
	int before = errno;

	if (!next) /* threads that do this at once find the same */
		*(void **)&next = dlsym(RTLD_NEXT, "bind");
	if (next(fd, address, len))
		return -1;
	if (wanted(fd, address, len))
		attach(fd);
	errno = before;
	return 0;
}
