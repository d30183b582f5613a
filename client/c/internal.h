/* SPDX-License-Identifier: Apache-2.0 */
/* What the library's files have in common. */
#ifndef LAMBDANIC_INTERNAL_H
#define LAMBDANIC_INTERNAL_H

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "lambdanic.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define MS INT64_C(1000000) /* times are in nanoseconds */
#define NEVER INT64_MAX
#define DEFAULT_TIMEOUT 5000 /* of calls and questions, in ms */

int64_t now_ns(void); /* call.c */

/* packet.c: the header in host order, and how packets make up a message. */

struct header {
	uint16_t magic;
	uint8_t version, type, flags, code;
	uint16_t length;
	uint32_t workload, revision;
	uint64_t request;
	uint32_t index, count, message_len, method, deadline_us, client, sequence, grant;
	uint64_t tag;
};

enum parsed { PARSED, NOT_RPC, MALFORMED };

void header_write(const struct header *h, struct ln_rpc *wire);
enum parsed packet_parse(const void *packet, size_t len, struct header *h, const uint8_t **payload);
bool header_placement(const struct header *h, uint32_t *offset, uint32_t *size);

/* batch.c: packets on their way out. */

#define BATCH_PACKETS 64

struct outgoing {
	struct ln_rpc head;
	struct iovec iov[3]; /* header, payload, padding */
	void *owner;
};

struct batch {
	unsigned int count;
	void *owner; /* of the packets that are added next */
	struct outgoing out[BATCH_PACKETS];
	struct mmsghdr msgs[BATCH_PACKETS];
};

bool batch_full(const struct batch *b);
void batch_add(struct batch *b, struct header *h, const uint8_t *payload, uint32_t len, uint32_t room);
/* Sends from packet `from` on. Returns how many were taken; errno is of the next one, if any. */
unsigned int batch_send(struct batch *b, unsigned int from, int fd);

/* flight.c: a sequence of packets that are sent until each is confirmed, at most a window of them at once. */

#define FIRST_INTERVAL (20 * MS)
#define FIRST_WINDOW 64 /* packets */

struct slot {
	int64_t sent;
	uint32_t order; /* of its last transmission */
	uint8_t tries;
	uint8_t state;
};

struct flight {
	uint32_t count; /* packets in all */
	uint32_t base; /* every packet before it is confirmed */
	uint32_t next; /* the first packet that was never sent */
	bool once; /* never send a packet twice */
	uint32_t limit; /* packets from here on may not be sent yet */
	struct slot *ring; /* of packet i at i % len: the packets from base on */
	uint32_t len;
	struct slot single; /* the ring of a flight of one packet */
	struct slot *memory; /* of longer ones, kept for the next flight */
	uint32_t room; /* slots that memory has */

	uint32_t window;
	uint32_t threshold; /* where doubling the window per round trip ends */
	uint32_t credit; /* confirmations towards the next single step */
	uint32_t outstanding; /* sent, neither confirmed nor lost */
	uint32_t lost; /* to be sent again */

	uint32_t sends; /* transmissions so far */
	uint32_t newest; /* the latest transmission known to have arrived */
	uint32_t scanned; /* newest, when last looked for lost packets */
	uint32_t recovery; /* losses among transmissions up to here have been paid for */
	int64_t expiry; /* no outstanding packet expires before */
};

bool flight_start(struct flight *f, uint32_t count, bool once);
void flight_start_behind_first(struct flight *f); /* as if packet 0 had been sent and confirmed */
bool flight_done(const struct flight *f);
bool flight_pick(struct flight *f, int64_t now, uint32_t *index, bool *again);
bool flight_confirm(struct flight *f, uint32_t i);
uint32_t flight_limit(const struct flight *f); /* the packet before which it has to wait */
void flight_confirm_all(struct flight *f);
void flight_doubt(struct flight *f, int64_t now);
void flight_expire(struct flight *f, int64_t now);

/* exchange.c: one attempt at a call. It does no I/O and reads no clock. */

struct exchange {
	struct header head; /* of the request's packets */
	const uint8_t *body;
	uint32_t packet_size; /* bytes of body per packet */
	uint32_t room; /* a request of one packet is padded to it */
	uint32_t max; /* bytes of reply that are acceptable */
	int64_t due; /* when the caller gives up; NEVER: after so long without progress as the header says */

	struct flight up; /* the request's packets */
	struct flight down; /* pulls of the reply; packet 0 needs no pull */
	bool pulling;
	bool acked; /* an acknowledgement came: the server keeps the message, and answers it as a whole */
	bool parted; /* a response to a later packet came: the server answers each packet */
	bool probed; /* a later packet was sent again, to provoke such a response */
	bool guessed; /* pulling because that response did not come */

	bool begun; /* the first response arrived */
	struct header first;
	uint32_t size; /* bytes per packet of the reply but the last */
	uint8_t *reply;
	bool finished;
	int result;
	uint32_t need;
	uint8_t fault;
	bool busy; /* the server did not take a packet that will be sent again */

	uint64_t reached; /* packets of request and reply that are through */
	int64_t moved; /* when the last one got through */

	uint32_t silent; /* resends of the first unacknowledged packet since the last packet arrived */
	bool asked; /* asked the directory since the last packet arrived */

	uint32_t resent, duplicates, malformed;
};

/* The request's body is cut into packets as the header says. Returns false where there is no memory. */
bool exchange_start(struct exchange *x, int64_t now, int64_t due, const struct header *head, const void *body,
		    uint32_t room, bool once);
/* Adds packets that are due to b, and says when to poll again if nothing arrives before. */
int64_t exchange_poll(struct exchange *x, int64_t now, struct batch *b);
void exchange_receive(struct exchange *x, int64_t now, const struct header *h, const uint8_t *payload);
/*
 * Says, once per silence, that it is time to ask where the function is: its place refused a packet, or has been silent for too long. A
 * packet that may be executed but once never goes elsewhere: the silent place may have executed it, and a refusal does not say of
 * which packet it is.
 */
bool exchange_asks(struct exchange *x, bool refusal);
/* Adds the acknowledgement that lets the server forget message and reply, if it keeps them. */
void exchange_release(struct exchange *x, struct batch *b);
void exchange_free(struct exchange *x);

/* address.c: HOST, HOST:PORT or [IPv6]:PORT. type is SOCK_DGRAM, or SOCK_STREAM, which may wait until the given time. */
int connect_to(const char *address, int port, int type, int64_t until, int *fd, uint32_t *single);
void bound_connect(int fd, int64_t until);

/* answer.c: what a gateway's whole answer, which ends with a zero, says of a function. */
int lookup_read(const char *answer, struct lambdanic_function *f);

/* lookup.c: questions to a gateway. */

/* Where a gateway last took a connection; len is 0 where it never has. */
struct gateway {
	struct sockaddr_storage address;
	socklen_t len;
};

/* Asks, and waits for the answer until the given time. */
int lookup(struct gateway *g, const char *address, const char *credentials, const char *name_space, const char *name,
	   int64_t until, struct lambdanic_function *f);

/* A question that is asked beside other work. */
struct inquiry {
	int fd; /* -1: it is not under way */
	char *request, *answer;
	size_t len, sent, got;
	int64_t until; /* it is given up */
};

/* Returns false where it cannot be asked. */
bool inquiry_begin(struct inquiry *q, const struct gateway *g, int64_t until, const char *credentials,
		   const char *name_space, const char *name);
struct pollfd inquiry_waits(const struct inquiry *q);
/* Never waits. Returns whether it is over, and with which result. */
bool inquiry_go_on(struct inquiry *q, int *result, struct lambdanic_function *f);
void inquiry_end(struct inquiry *q);

#endif
