/* SPDX-License-Identifier: Apache-2.0 */
/* A connection and the calls in flight on it, for call.c, socket.c and client.c. */
#ifndef LAMBDANIC_CONNECTION_H
#define LAMBDANIC_CONNECTION_H

#include "internal.h"

#define RECEIVE_PACKETS 32
#define RECEIVE_SIZE 2048 /* longer than any packet */
#define BUCKETS 1024 /* of calls by request ID; IDs count up, so they spread evenly */
#define ROOMS 256

#define MOVED INT32_MIN /* a result of calls by name only, until they begin anew */

struct list {
	struct list *next, *prev;
};

struct call {
	struct list all; /* of the calls in flight; first, so that it is the call's address */
	struct call *in_bucket; /* the next call in its bucket */
	struct call *queued; /* the next call that is ready, done or free */
	bool ready; /* in the queue of calls to poll */
	struct exchange x;
	const void *body;
	void *user;
	struct lambdanic_reply *into; /* if the caller waits; else the reply is kept in `reply` */
	struct lambdanic_reply reply;
	uint32_t asked_room, room;
	bool idle; /* progress of the call postpones the deadline */
	int64_t started, deadline, wake;
	unsigned int attempt;
	uint32_t resends;
	int send_error;
	bool moved; /* its function is elsewhere: it ends with MOVED */
};

struct queue {
	struct call *head, **tail;
};

/* How long the replies of a method were. The table forgets: after a collision, the length is learned again. */
struct room {
	uint32_t workload, method, bytes;
};

struct lambdanic {
	int fd;
	uint32_t single; /* bytes of message that fit one packet */
	struct lambdanic_options options;
	struct tagger tagger;
	struct lambdanic_stats stats;
	uint64_t id; /* of the last request */

	struct list calls;
	struct call *buckets[BUCKETS];
	struct queue ready, done;
	struct call *spare;
	size_t waited; /* calls whose caller waits for them */
	size_t pending; /* submitted, not handed out */
	int64_t wake; /* until then, only ready calls have to be polled */

	int64_t receive_wait; /* what the socket's receive time-out is set to */
	int network_error; /* the last one, and when it came */
	int64_t network_error_at;

	struct room rooms[ROOMS];
	struct batch out;
	struct mmsghdr in[RECEIVE_PACKETS];
	struct iovec in_iov[RECEIVE_PACKETS];
	uint8_t in_buf[RECEIVE_PACKETS][RECEIVE_SIZE];
};

/* call.c: how calls begin, end, and get their turn. */

int64_t deadline_ns(uint64_t us); /* capped, so that it can be added to a time */
void enqueue(struct queue *q, struct call *k);
struct call *dequeue(struct queue *q);
void make_ready(struct lambdanic *c, struct call *k);
struct call *find_call(struct lambdanic *c, uint64_t id);
/* Begins a call. Its reply goes to *into or, if that is NULL, to the queue of done calls. */
int start_call(struct lambdanic *c, const struct lambdanic_request *r, struct lambdanic_reply *into, int64_t now);
/* Ends the calls whose caller waits, because the socket failed. */
void abandon_calls(struct lambdanic *c, int os_error);
void free_call(struct lambdanic *c, struct call *k);
/* Polls the calls for which something arrived, or whose time has come, and sends their packets. */
void poll_calls(struct lambdanic *c, int64_t now);

/*
 * client.c: does one round: sends, then waits for what comes back, until the given time at the latest. It does not wait if a call is
 * done for the caller already. *now is kept up to date, as reading the clock takes longer than most of this. Returns false if the
 * socket failed.
 */
bool step(struct lambdanic *c, int64_t *now, int64_t until);

/* socket.c: sending and receiving. */

void set_up_socket(struct lambdanic *c);
/* Sends the batch. A packet that the network does not take counts as lost; one that cannot be sent ends its call. */
void flush(struct lambdanic *c);
/* Receives what arrives until wake. *now is when the wait begins, and then when it ended. Returns false if the socket failed. */
bool receive(struct lambdanic *c, int64_t *now, int64_t wake);

#endif
