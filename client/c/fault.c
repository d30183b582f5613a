// SPDX-License-Identifier: Apache-2.0
/* Faults of ikernels: a socket has a packet when there is one (api/ikernel/wire.go), which is only ever looked at. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"
#include "ikernel.h"

int ikernel_watch(struct lambdanic_ikernel *k)
{
	struct answer a;
	int err;

	if (k->fault >= 0)
		return LAMBDANIC_OK;
	err = ikernel_exchange(k->all, (struct head){ LN_IKERNEL_OPERATION_FAULT, k->number }, NULL, 0, -1, &a);
	if (err)
		return err;
	if (a.descriptors_count != 1)
		return ikernel_bad_answer(&a);
	k->fault = a.descriptors[0];
	return LAMBDANIC_OK;
}

int ikernel_look(int fd, struct lambdanic_fault *fault)
{
	struct iovec parts[2] = { { &fault->code, sizeof(fault->code) }, { fault->text, sizeof(fault->text) - 1 } };
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t n;

	*fault = (struct lambdanic_fault){ 0 };
	do
		n = recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n >= (ssize_t)sizeof(fault->code)) {
		errno = EIO;
		return LAMBDANIC_FAULTED;
	}
	if (n < 0)
		return errno == EAGAIN ? LAMBDANIC_OK : LAMBDANIC_SYSTEM;
	errno = ECONNRESET;
	return LAMBDANIC_NO_DAEMON;
}

int lambdanic_ikernel_fault(struct lambdanic_ikernel *ikernel, struct lambdanic_fault *fault)
{
	int err;

	if (!ikernel || !fault)
		return LAMBDANIC_BAD_ARGUMENT;
	err = ikernel_watch(ikernel);
	if (!err)
		err = ikernel_look(ikernel->fault, fault);
	return err == LAMBDANIC_FAULTED ? LAMBDANIC_OK : err;
}

int lambdanic_ikernel_fault_fd(struct lambdanic_ikernel *ikernel, int *fd)
{
	int err;

	if (!ikernel || !fd)
		return LAMBDANIC_BAD_ARGUMENT;
	err = ikernel_watch(ikernel);
	*fd = ikernel->fault;
	return err;
}
