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

/* tag.c: packets get tags, and answers are checked. */

struct tagger {
	uint64_t k0, k1; /* the key's secret */
	uint8_t flags; /* of every packet */
	uint32_t client; /* where the connection's identities begin */
	uint64_t
		sent; /* packets: the low half is the sequence number; with each overflow, the client gets another identity */
};

/* Reads a key's text. Returns false if it is none. */
bool tagger_read(struct tagger *t, const char *key, bool header_only);
/* Takes another client's identity, at random. Returns false if the system has none. */
bool tagger_identify(struct tagger *t);
void tagger_tag(struct tagger *t, struct ln_rpc *header, const uint8_t *payload, size_t len);
/* Says whether a packet with this header is tagged as the requests are. */
bool tagger_accepts(const struct tagger *t, const struct header *h, const void *packet);

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
	struct tagger *tagger; /* NULL: packets have no tags */
	struct outgoing out[BATCH_PACKETS];
	struct mmsghdr msgs[BATCH_PACKETS];
};

bool batch_full(const struct batch *b);
void batch_add(struct batch *b, struct header *h, const uint8_t *payload, uint32_t len, uint32_t room);
/* Sends from packet `from` on. Returns how many were taken; errno is the next one's, if any. */
unsigned int batch_send(struct batch *b, unsigned int from, int fd);

/* flight.c: packets that are sent until each is confirmed, at most a window of them at once. */

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
void flight_start_behind_first(struct flight *f); /* as if packet 0 were sent and confirmed */
bool flight_done(const struct flight *f);
bool flight_pick(struct flight *f, int64_t now, uint32_t *index, bool *again);
bool flight_confirm(struct flight *f, uint32_t i);
uint32_t flight_limit(const struct flight *f); /* the first packet that has to wait */
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
	struct flight down; /* pulls, from packet 0 of the reply, which comes without a pull */
	bool pulling;
	bool acked; /* an acknowledgement came: the server keeps the message, and answers it as a whole */
	bool parted; /* a response to a later packet came: the server answers each packet */
	bool probed; /* a later packet was sent again, to get such a response */
	bool guessed; /* pulling because no such response came */

	bool begun; /* the first response arrived */
	struct header first;
	uint32_t size; /* bytes per packet of the reply but the last */
	uint8_t *reply;
	bool finished;
	int result;
	uint32_t need;
	uint8_t fault;
	int told; /* LN_CODE_*: why the server refused a packet that will be sent again; 0: it did not say so */

	uint64_t reached; /* packets of request and reply that are through */
	int64_t moved; /* when the last one got through */

	uint32_t silent; /* resends of the first unconfirmed packet, since the last packet arrived */
	bool asked; /* asked where the function is, since then */

	uint32_t resent, duplicates, malformed;
};

/* The request's body is cut into packets as the header says. Returns false without memory. */
bool exchange_start(struct exchange *x, int64_t now, int64_t due, const struct header *head, const void *body,
		    uint32_t room, bool once);
/* Adds packets that are due to b, and says when to poll again if nothing arrives before. */
int64_t exchange_poll(struct exchange *x, int64_t now, struct batch *b);
void exchange_receive(struct exchange *x, int64_t now, const struct header *h, const uint8_t *payload);
/*
 * Takes in a packet that is not tagged as it should be. It may be anybody's, so it changes nothing. But an error may be the server's,
 * which does not know the key.
 */
void exchange_distrust(struct exchange *x, const struct header *h);
/*
 * Says, once per silence, that it is time to ask where the function is: its address refused a packet, or was silent for too long. A
 * request that may be executed only once never goes elsewhere: the silent address may have executed it, and a refusal does not name
 * its packet.
 */
bool exchange_asks(struct exchange *x, bool refusal);
/* Adds the acknowledgement that lets the server forget message and reply, if it may keep any. */
void exchange_release(struct exchange *x, struct batch *b);
void exchange_free(struct exchange *x);

/* address.c: address is HOST, HOST:PORT or [IPv6]:PORT, type SOCK_DGRAM, or SOCK_STREAM, which may wait until the given time. */
int connect_to(const char *address, int port, int type, int64_t until, int *fd, uint32_t *single);
void bound_connect(int fd, int64_t until);

/* answer.c: reads a function from a gateway's whole answer, which ends with a zero. */
int lookup_read(const char *answer, struct lambdanic_function *f);

/* lookup.c: questions to a gateway. */

/* Where a gateway last accepted a connection; len is 0 if it never has. */
struct gateway {
	struct sockaddr_storage address;
	socklen_t len;
};

/* Asks, and waits for the answer until the given time. */
int lookup(struct gateway *g, const char *address, const char *credentials, const char *name_space, const char *name,
	   int64_t until, struct lambdanic_function *f);

/* A question that is asked beside other work. */
struct inquiry {
	int fd; /* -1: not under way */
	char *request, *answer;
	size_t len, sent, got;
	int64_t until; /* when it is given up */
};

/* Returns false if it cannot be asked. */
bool inquiry_begin(struct inquiry *q, const struct gateway *g, int64_t until, const char *credentials,
		   const char *name_space, const char *name);
struct pollfd inquiry_waits(const struct inquiry *q);
/* Never waits. Returns whether it is over, and with which result. */
bool inquiry_go_on(struct inquiry *q, int *result, struct lambdanic_function *f);
void inquiry_end(struct inquiry *q);

#endif
