/* SPDX-License-Identifier: Apache-2.0 */
/* What ikernel.c, fault.c, rings.c and notes.c have in common. */
#ifndef LAMBDANIC_IKERNEL_H
#define LAMBDANIC_IKERNEL_H

#include <sys/types.h>

#include "lambdanic.h"
#include "ikernel_wire.h"

struct lambdanic_ikernels {
	int fd;
	ino_t inode; /* of its socket */
	struct lambdanic_ikernel *first;
	char error
		[LN_IKERNEL_MAX_PACKET]; /* why the last one of LAMBDANIC_REFUSED, LAMBDANIC_FAULTED or LAMBDANIC_NO_REGISTER failed */
};

struct lambdanic_ikernel {
	struct lambdanic_ikernels *all;
	struct lambdanic_ikernel *next;
	uint32_t number;
	int fault; /* descriptor where that is told; negative until somebody waits for it */
	size_t count; /* of registers */
	char names[LN_IKERNEL_MAX_REGISTERS][LN_IKERNEL_MAX_NAME + 1];
	struct lambdanic_ring *rings; /* NULL until they are opened */
	size_t rings_count;
	struct lambdanic_notes *notes; /* NULL until they are opened */
};

struct head {
	uint32_t what; /* of a request: its operation; of a reply: an errno */
	uint32_t ikernel;
};

struct transaction {
	uint64_t expect, write; /* a bit for each register */
	int64_t expected[LN_IKERNEL_MAX_REGISTERS], values[LN_IKERNEL_MAX_REGISTERS];
};

struct answer {
	struct head head;
	size_t len; /* of the body */
	union {
		char text[LN_IKERNEL_MAX_PACKET - LN_IKERNEL_HEADER_LEN];
		int64_t registers[LN_IKERNEL_MAX_REGISTERS];
		struct lambdanic_ring_counts counts[LN_IKERNEL_MAX_RINGS];
		uint32_t number;
	} body;
	size_t descriptors_count;
	int descriptors[LN_IKERNEL_MAX_RINGS];
};

_Static_assert(sizeof(struct head) == LN_IKERNEL_HEADER_LEN, "the header is that of the protocol");
_Static_assert(sizeof(struct transaction) == LN_IKERNEL_TRANSACTION_LEN, "so is a transaction");
_Static_assert(sizeof(struct lambdanic_ring_counts) == LN_IKERNEL_RING_COUNTS_LEN, "and the counts of a ring");
_Static_assert(sizeof(struct lambdanic_message_head) == LN_IKERNEL_RING_HEAD_LEN, "and what stands before a message");
_Static_assert((int)LAMBDANIC_MAX_REGISTERS == (int)LN_IKERNEL_MAX_REGISTERS, "and the number of registers");

/* ikernel.c: asks the daemon, with a socket unless its descriptor is negative. If it answers, the caller closes the descriptors. */
int ikernel_exchange(struct lambdanic_ikernels *all, struct head head, const void *body, size_t len, int descriptor,
		     struct answer *a);
void ikernel_close_descriptors(const struct answer *a);
/* An answer that cannot be is no daemon's. */
int ikernel_bad_answer(const struct answer *a);

/* fault.c: opens where the ikernel's fault is told. */
int ikernel_watch(struct lambdanic_ikernel *k);
/* Looks there: LAMBDANIC_FAULTED, or LAMBDANIC_OK without a fault, or LAMBDANIC_NO_DAEMON if there will be none. */
int ikernel_look(int fd, struct lambdanic_fault *fault);

/* mapping.c: memory that the kernel and the application share. */

/*
 * A map of type BPF_MAP_TYPE_RINGBUF or BPF_MAP_TYPE_USER_RINGBUF: two pages, each with a position, and behind the second one the
 * bytes, twice, so that what lies in it is in one piece. Of the two sides one may be written.
 */
struct mapping {
	void *first; /* page; NULL if it is not mapped */
	void *second; /* page, and the bytes */
	size_t page, size;
	uint8_t *bytes;
};

bool mapping_open(struct mapping *m, int fd, size_t size, int protect_first, int protect_second);
void mapping_close(struct mapping *m);

/* rings.c, notes.c: NULL is allowed. */
void rings_close(struct lambdanic_ring *rings, size_t count);
void notes_close(struct lambdanic_notes *notes);

#endif
