// SPDX-License-Identifier: Apache-2.0
/* Ikernels for an application's own sockets. A request is one packet to the daemon, and so is its reply (api/ikernel/wire.go). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal.h"
#include "ikernel.h"

#define DEFAULT_SOCKET "/run/lambdanic/default/ikernel.sock"

/* A process that becomes a daemon may close all descriptors, and open others of the same numbers. Those are not ours to use. */
static bool is_open(const struct lambdanic_ikernels *all)
{
	struct stat st;

	return !fstat(all->fd, &st) && S_ISSOCK(st.st_mode) && st.st_ino == all->inode;
}

int lambdanic_ikernels_open(struct lambdanic_ikernels **ikernels, const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct lambdanic_ikernels *all;
	struct stat st;
	int err;

	if (!ikernels)
		return LAMBDANIC_BAD_ARGUMENT;
	*ikernels = NULL;
	path = path ? path : DEFAULT_SOCKET;
	if (!*path || strlen(path) >= sizeof(to.sun_path))
		return LAMBDANIC_BAD_ARGUMENT;
	strcpy(to.sun_path, path);
	all = calloc(1, sizeof(*all));
	if (!all)
		return LAMBDANIC_SYSTEM;
	all->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (all->fd < 0) {
		free(all);
		return LAMBDANIC_SYSTEM;
	}
	all->inode = fstat(all->fd, &st) ? 0 : st.st_ino;
	if (connect(all->fd, (const void *)&to, sizeof(to))) {
		err = errno;
		lambdanic_ikernels_close(all);
		errno = err;
		return LAMBDANIC_NO_DAEMON;
	}
	*ikernels = all;
	return LAMBDANIC_OK;
}

static void free_ikernel(struct lambdanic_ikernel *k)
{
	rings_close(k->rings, k->rings_count);
	notes_close(k->notes);
	if (k->fault >= 0)
		close(k->fault);
	free(k);
}

void lambdanic_ikernels_close(struct lambdanic_ikernels *ikernels)
{
	if (!ikernels)
		return;
	while (ikernels->first) {
		struct lambdanic_ikernel *k = ikernels->first;

		ikernels->first = k->next;
		free_ikernel(k);
	}
	if (is_open(ikernels))
		close(ikernels->fd);
	free(ikernels);
}

const char *lambdanic_ikernels_error(const struct lambdanic_ikernels *ikernels, int result)
{
	if (ikernels && *ikernels->error &&
	    (result == LAMBDANIC_REFUSED || result == LAMBDANIC_NO_REGISTER || result == LAMBDANIC_FAULTED))
		return ikernels->error;
	return lambdanic_strerror(result);
}

/* Sends a request, with a descriptor unless that is negative. */
static bool ask(int fd, struct head head, const void *body, size_t len, int descriptor)
{
	struct iovec parts[2] = { { &head, sizeof(head) }, { (void *)body, len } };
	union {
		struct cmsghdr head; /* aligns the buffer */
		char room[CMSG_SPACE(sizeof(int))];
	} rights = { 0 };
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = body ? 2 : 1 };
	ssize_t n;

	if (descriptor >= 0) {
		m.msg_control = rights.room;
		m.msg_controllen = sizeof(rights.room);
		rights.head.cmsg_level = SOL_SOCKET;
		rights.head.cmsg_type = SCM_RIGHTS;
		rights.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&rights.head), &descriptor, sizeof(descriptor));
	}
	do
		n = sendmsg(fd, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n >= 0;
}

void ikernel_close_descriptors(const struct answer *a)
{
	int err = errno;

	for (size_t i = 0; i < a->descriptors_count; i++)
		close(a->descriptors[i]);
	errno = err;
}

int ikernel_bad_answer(const struct answer *a)
{
	ikernel_close_descriptors(a);
	errno = EBADMSG;
	return LAMBDANIC_NO_DAEMON;
}

/* Takes the descriptors that came with a reply. There is room for no more than those. */
static void take_descriptors(struct msghdr *m, struct answer *a)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);

	a->descriptors_count = 0;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return;
	a->descriptors_count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(*a->descriptors);
	memcpy(a->descriptors, CMSG_DATA(c), a->descriptors_count * sizeof(*a->descriptors));
}

/* Receives the reply. */
static bool hear(int fd, struct answer *a, int *flags)
{
	struct iovec parts[2] = { { &a->head, sizeof(a->head) }, { &a->body, sizeof(a->body) } };
	union {
		struct cmsghdr head; /* aligns the buffer */
		char room[CMSG_SPACE(sizeof(a->descriptors))];
	} rights;
	struct msghdr m = {
		.msg_iov = parts,
		.msg_iovlen = 2,
		.msg_control = rights.room,
		.msg_controllen = sizeof(rights.room),
	};
	ssize_t n;

	do
		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return false;
	take_descriptors(&m, a);
	if (n < (ssize_t)sizeof(a->head)) {
		ikernel_close_descriptors(a);
		errno = n ? EBADMSG : ECONNRESET;
		return false;
	}
	a->len = (size_t)n - sizeof(a->head);
	*flags = m.msg_flags;
	return true;
}

int ikernel_exchange(struct lambdanic_ikernels *all, struct head head, const void *body, size_t len, int descriptor,
		     struct answer *a)
{
	int flags;

	if (!is_open(all)) {
		errno = EBADF;
		return LAMBDANIC_SYSTEM;
	}
	if (!ask(all->fd, head, body, len, descriptor))
		return errno == EBADF ? LAMBDANIC_SYSTEM : LAMBDANIC_NO_DAEMON;
	if (!hear(all->fd, a, &flags))
		return LAMBDANIC_NO_DAEMON;
	if (!a->head.what && !(flags & MSG_CTRUNC))
		return LAMBDANIC_OK;
	ikernel_close_descriptors(a);
	errno = a->head.what ? (int)a->head.what : EMFILE; /* the process may have no more descriptors */
	if (!a->head.what)
		return LAMBDANIC_SYSTEM;
	if (errno == EAGAIN)
		return LAMBDANIC_DIFFERS;
	snprintf(all->error, sizeof(all->error), "%.*s", (int)a->len, a->body.text);
	return a->head.what == EIO ? LAMBDANIC_FAULTED : LAMBDANIC_REFUSED;
}

int lambdanic_ikernel_create(struct lambdanic_ikernels *ikernels, const char *name, struct lambdanic_ikernel **ikernel)
{
	return lambdanic_ikernel_create_for(ikernels, name, NULL, ikernel);
}

int lambdanic_ikernel_create_for(struct lambdanic_ikernels *ikernels, const char *name, const char *name_of_namespace,
				 struct lambdanic_ikernel **ikernel)
{
	char request[LN_IKERNEL_MAX_NAME + 1 + LN_IKERNEL_MAX_NAMESPACE + 1];
	const char *of = name_of_namespace ? name_of_namespace : "";
	struct lambdanic_ikernel *k;
	struct answer a;
	size_t len;
	int err;

	if (!ikernel)
		return LAMBDANIC_BAD_ARGUMENT;
	*ikernel = NULL;
	if (!ikernels || !name || strlen(name) > LN_IKERNEL_MAX_NAME || strlen(of) > LN_IKERNEL_MAX_NAMESPACE)
		return LAMBDANIC_BAD_ARGUMENT;
	strcpy(request, name);
	len = strlen(name);
	if (*of) {
		strcpy(request + len + 1, of);
		len += 1 + strlen(of);
	}
	k = calloc(1, sizeof(*k));
	if (!k)
		return LAMBDANIC_SYSTEM;
	err = ikernel_exchange(ikernels, (struct head){ LN_IKERNEL_OPERATION_CREATE, 0 }, request, len, -1, &a);
	if (err) {
		free(k);
		return err;
	}
	k->all = ikernels;
	k->fault = -1;
	k->number = a.head.ikernel;
	k->count = MIN(a.len / LN_IKERNEL_REGISTER_LEN, LN_IKERNEL_MAX_REGISTERS);
	for (size_t i = 0; i < k->count; i++)
		memcpy(k->names[i], a.body.text + (i + 1) * LN_IKERNEL_REGISTER_LEN - LN_IKERNEL_MAX_NAME,
		       LN_IKERNEL_MAX_NAME);
	k->next = ikernels->first;
	ikernels->first = k;
	*ikernel = k;
	return LAMBDANIC_OK;
}

int lambdanic_ikernel_destroy(struct lambdanic_ikernel *ikernel)
{
	struct lambdanic_ikernel **at;
	struct answer a;
	int err;

	if (!ikernel)
		return LAMBDANIC_BAD_ARGUMENT;
	err = ikernel_exchange(ikernel->all, (struct head){ LN_IKERNEL_OPERATION_DESTROY, ikernel->number }, NULL, 0,
			       -1, &a);
	for (at = &ikernel->all->first; *at != ikernel; at = &(*at)->next)
		;
	*at = ikernel->next;
	free_ikernel(ikernel);
	return err;
}

static int with_socket(struct lambdanic_ikernel *k, uint32_t operation, int socket)
{
	struct answer a;

	if (!k || socket < 0)
		return LAMBDANIC_BAD_ARGUMENT;
	return ikernel_exchange(k->all, (struct head){ operation, k->number }, NULL, 0, socket, &a);
}

int lambdanic_ikernel_attach(struct lambdanic_ikernel *ikernel, int socket)
{
	return with_socket(ikernel, LN_IKERNEL_OPERATION_ATTACH, socket);
}

int lambdanic_ikernel_detach(struct lambdanic_ikernel *ikernel, int socket)
{
	return with_socket(ikernel, LN_IKERNEL_OPERATION_DETACH, socket);
}

static int no_register(struct lambdanic_ikernel *k, const char *name)
{
	struct lambdanic_ikernels *all = k->all;
	int n = snprintf(all->error, sizeof(all->error), "the ikernel has no register \"%.*s\": use ",
			 LN_IKERNEL_MAX_NAME, name);

	for (size_t i = 0; i < k->count; i++)
		n += snprintf(all->error + n, sizeof(all->error) - (size_t)n, "%s%s", i ? ", " : "", k->names[i]);
	return LAMBDANIC_NO_REGISTER;
}

/* Puts values where their registers are, and says which these are. */
static int fill(struct lambdanic_ikernel *k, int64_t *words, uint64_t *mask, const struct lambdanic_registers *from)
{
	if (from && from->n > LAMBDANIC_MAX_REGISTERS)
		return LAMBDANIC_BAD_ARGUMENT;
	for (size_t i = 0; from && i < from->n; i++) {
		const struct lambdanic_register *r = &from->all[i];
		size_t at = 0;

		if (!r->name)
			return LAMBDANIC_BAD_ARGUMENT;
		while (at < k->count && strcmp(k->names[at], r->name))
			at++;
		if (at == k->count)
			return no_register(k, r->name);
		words[at] = r->value;
		*mask |= UINT64_C(1) << at;
	}
	return LAMBDANIC_OK;
}

int lambdanic_ikernel_transact(struct lambdanic_ikernel *ikernel, const struct lambdanic_registers *expect,
			       const struct lambdanic_registers *write, struct lambdanic_registers *before)
{
	struct transaction t = { 0 };
	struct answer a;
	int err;

	if (!ikernel)
		return LAMBDANIC_BAD_ARGUMENT;
	err = fill(ikernel, t.expected, &t.expect, expect);
	if (!err)
		err = fill(ikernel, t.values, &t.write, write);
	if (!err)
		err = ikernel_exchange(ikernel->all, (struct head){ LN_IKERNEL_OPERATION_TRANSACT, ikernel->number },
				       &t, sizeof(t), -1, &a);
	if (err)
		return err;
	if (a.len < ikernel->count * sizeof(*a.body.registers))
		return ikernel_bad_answer(&a);
	if (!before)
		return LAMBDANIC_OK;
	*before = (struct lambdanic_registers){ .n = ikernel->count };
	for (size_t i = 0; i < ikernel->count; i++)
		before->all[i] = (struct lambdanic_register){ ikernel->names[i], a.body.registers[i] };
	return LAMBDANIC_OK;
}

static const struct lambdanic_register *find(const struct lambdanic_registers *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (!strcmp(all->all[i].name, name))
			return &all->all[i];
	return NULL;
}

int64_t lambdanic_registers_get(const struct lambdanic_registers *registers, const char *name)
{
	const struct lambdanic_register *r = registers && name ? find(registers, name) : NULL;

	return r ? r->value : 0;
}

int lambdanic_ikernel_read(struct lambdanic_ikernel *ikernel, const char *name, int64_t *value)
{
	const struct lambdanic_register *r;
	struct lambdanic_registers all;
	int err;

	if (!ikernel || !name || !value)
		return LAMBDANIC_BAD_ARGUMENT;
	err = lambdanic_ikernel_transact(ikernel, NULL, NULL, &all);
	if (err)
		return err;
	r = find(&all, name);
	if (!r)
		return no_register(ikernel, name);
	*value = r->value;
	return LAMBDANIC_OK;
}

int lambdanic_ikernel_write(struct lambdanic_ikernel *ikernel, const char *name, int64_t value)
{
	struct lambdanic_registers one = { 1, { { name, value } } };

	return lambdanic_ikernel_transact(ikernel, NULL, &one, NULL);
}
