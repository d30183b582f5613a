// SPDX-License-Identifier: Apache-2.0
/* What the files of pacer share. */
#ifndef PACER_H
#define PACER_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>

#include "layout.h"

/*
 * How often to look for waiting calls and packets: while there are some, and while there are none. A time-out that is longer
 * than this is noticed when it is due, a shorter one at most so much later. An idle pacer takes 0.05 % of a CPU.
 */
#define BUSY_NS 10000000ULL
#define IDLE_NS 50000000ULL

#define WORD_BITS 64
#define RECORDS (LN_MAX_CALLS + LN_MAX_RAW_CALLS)

/* Packets that go on later (late.c). */
struct late {
	int program; /* PINS/ln_later */
	int hand_over; /* PINS/ln_hand_over */
	int waiting; /* the map */
	int copies; /* the ring */
	uint64_t *consumed; /* bytes of the ring, ever */
	const uint64_t *produced;
	const uint8_t *ring; /* mapped twice, one behind the other */
	uint64_t look; /* when to look after waiting packets */
};

struct pacer {
	const char *pin;
	ino_t pin_inode;
	int expire; /* the program */
	int socket;
	uint32_t ifindex;
	const struct ln_call *calls;
	const uint64_t *log; /* ln_call_log */
	const uint64_t *next; /* ln_next_call */
	uint64_t seen; /* calls that began before our last look: below this number */
	int complaint; /* the last error that we wrote down */
	uint64_t open[RECORDS / WORD_BITS]; /* a set of indices: calls that may be in flight */
	struct late late;
};

__attribute__((noreturn)) void die(const char *what);

/* Logs an error, once for as long as it stays the same. */
void complain(struct pacer *p, const char *what);

int sys_bpf(int cmd, union bpf_attr *attr);

/* Opens what is pinned under that name, and leaves its path in path. */
int open_pin(const char *dir, const char *name, char path[4096]);

uint64_t now_ns(void); /* CLOCK_MONOTONIC */

void send_frame(struct pacer *p, uint32_t ifindex, const void *frame, size_t size);

void late_open(struct pacer *p, const char *dir);

/* Has packets go on, and returns when to look again. */
uint64_t late_pace(struct pacer *p);

#endif
