/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lambda-host runs one lambda natively: target process. It answers λ-RPC (docs/protocol.md) as the NIC program
 * does, from the same source and with the same bytes.
 *
 * Threads: each worker owns its sockets, buffers and external calls; the messages of several packets are shared,
 * under one lock; the list of revisions changes only while no worker is between receive and send (world).
 */
#ifndef HOST_H
#define HOST_H

#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>

#include "answer.h"
#include "lambda.h"
#include "place.h"

#if __has_feature(address_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum {
	MAX_LISTEN = 16,
	MAX_SERVICES = LN_MAX_SERVICES,
	MAX_SERVERS = LN_MAX_SERVERS,
	MAX_THREADS = 64,
	BATCH = 64, /* messages per system call */
	SENDS = 128, /* packets per system call, several of which can go out as one message (UDP segmentation) */
	HEADER = sizeof(struct ln_rpc),
	CALL_FRAME = 8, /* memcached's header of every datagram */
	HEAD_ROOM = 128, /* LN_PREFIX and the header of a reply that starts there */
	BUFFER = HEAD_ROOM + LN_RPC_MAX_PAYLOAD,
	DATAGRAM = HEAD_ROOM + 65536, /* the kernel may join a sender's packets into one datagram (UDP_GRO) */
};

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Who asked for what, kept apart from the lambda: replies are built from this alone. */
struct flow {
	union address peer;
	int fd; /* the socket that the request came in by */
	uint32_t room; /* bytes of payload that the reply may have */
	uint32_t once; /* 1 + the number of the record that waits for the reply; 0: none does */
	bool tagged; /* the request had the right tag, so the answer gets one, too */
	struct ln_rpc rpc; /* the request's header as it came */
};

/* A datagram, worked on in place. */
struct packet {
	struct flow flow;
	uint8_t *base; /* the payload, right behind its header */
	uint8_t *spare; /* BUFFER bytes, for what does not fit in the datagram's buffer */
	uint32_t size; /* bytes from base on that the lambda could write */
	struct ln_part part; /* what it says about its message */
	uint32_t offset; /* of the payload in the message */
	uint8_t *out; /* what to send */
	uint32_t out_len; /* 0: nothing */
	int out_fd;
	bool to_service; /* out_fd is connected */
};

typedef int lambda_entry(struct lambda_headers *headers);

/* A section of a shared library. */
struct objects {
	void *at;
	size_t size;
};

/* What the next revision may take over. */
struct state {
	struct objects kept;
	struct objects migrated;
};

struct revision {
	uint32_t number;
	int file; /* stays open, so that /proc/self/fd/N, by which the loader knows the library, is not reused */
	void *object;
	lambda_entry *entry;
	int (*refused)(void); /* whether the run was refused memory; NULL: the lambda has no heap */
	void *(*heap)(size_t *size); /* the calling thread's heap; NULL: the lambda has none */
	void *heaps[MAX_THREADS]; /* by worker, once it has run */
	lambda_entry *migrate; /* fills its state from the contents of old; NULL if the lambda has no migration */
	struct objects old;
	struct state state;
	atomic_int fault; /* the signal that last ended a run of it, or 0 */
	atomic_uint users; /* messages and calls that began with it */
	uint64_t superseded_ns;
	struct revision *prev;
	struct ln_stats stats[MAX_THREADS];
};

enum migration { MIGRATE_NOTHING, MIGRATE_AS_IS, MIGRATE_BY_CALL };

/* What a new revision is to take over. */
struct handover {
	bool keep;
	enum migration migrate;
	char saved[64]; /* file with another process's state; "": of the current revision */
};

struct message {
	uint8_t addr[16];
	uint16_t port;
	uint64_t request;
	uint64_t touched_ns;
	uint64_t patience_ns; /* how long it is kept after that */
	struct revision *revision; /* that began it */
	uint32_t count;
	uint32_t message_len;
	uint32_t fragment; /* bytes per packet but the last */
	uint32_t received; /* packets whose run or copy is over */
	uint32_t reply_at; /* the remembered reply, in the buffer */
	uint32_t reply_len;
	uint32_t status;
	uint32_t users; /* workers that hold it: it stays */
	bool doomed; /* the last of them forgets it */
	bool once; /* its lambda is to run at most once */
	bool released; /* if once: the client has the reply, so this message makes room first */
	uint8_t error; /* if once: the error that stands for a reply; 0: there is a reply; LN_UNANSWERED: neither */
	uint8_t fault; /* which fault, if the error is LN_CODE_LAMBDA_FAULT */
	enum ln_message_state state;
	uint64_t *arrived; /* bitmap of packets */
	uint8_t *buffer; /* mode assemble */
	bool populated; /* the buffer */
	struct message *chain;
	TAILQ_ENTRY(message) order; /* by age: free, active or done */
};

/* A request to a service as it left, kept to be sent again. */
struct sent {
	uint32_t len;
	uint8_t bytes[];
};

struct call {
	uint64_t due_ns; /* of the try that is under way */
	struct revision *revision; /* that began it */
	uint64_t deadline_ns; /* the client's; UINT64_MAX: none */
	bool waiting; /* in flight */
	uint8_t retries; /* left */
	uint32_t server;
	int fd; /* protocol raw: its own socket */
	uint64_t id; /* protocol raw: the request ID, as it is on the wire */
	struct sent *sent; /* NULL where there is no retry */
	uint64_t cookie[2];
	struct flow flow;
	TAILQ_ENTRY(call) order;
};

TAILQ_HEAD(call_list, call);

struct service {
	enum ln_protocol protocol;
	uint32_t timeout_ms; /* of one try */
	uint32_t retries;
	uint32_t id_at; /* protocol raw: where datagrams have a request ID */
	uint32_t id_len; /* 0: they have none */
	unsigned int first; /* of its servers */
	unsigned int server_count;
	uint8_t shares[LN_SHARES]; /* which server has each share of the keys, counted from the first */
};

struct server {
	union address addr;
	unsigned int service;
};

/* What brings a thread back out of the lambda. */
struct guard {
	pthread_t thread;
	pid_t tid;
	const struct flow *volatile asks; /* who asked for the last run, until its answer is sent; or NULL */
	atomic_uint_fast64_t run; /* odd while the lambda runs */
	atomic_uint_fast64_t overdue; /* the run that the watchdog wants to end */
	sigjmp_buf escape;
	int fault; /* the signal that ended the last run, or 0 */
	bool deep; /* whether a full stack caused it */
	uintptr_t stack; /* its lowest byte */
	clockid_t cpu_clock;
	uint64_t limit_ns;
	uint64_t seen; /* the last run that the watchdog saw, and when */
	uint64_t seen_ns;
	uint64_t seen_cpu_ns;
};

struct worker {
	unsigned int id;
	pthread_t thread;
	int fds[MAX_LISTEN];
	int server_fds[MAX_SERVERS]; /* of those whose protocol has a request ID; -1: no route so far */
	int raw_fd; /* epoll, for the sockets of protocol raw's calls; -1: no service has that protocol */
	uint64_t now; /* coarse clock, read once per batch */
	uint64_t wall; /* CLOCK_REALTIME, likewise: by this clock the kernel stamps datagrams */
	uint64_t waited_ns; /* how long the datagram at hand waited in the socket */
	uint32_t tick; /* for sampling */
	struct ln_request req;

	struct call *calls;
	struct call_list idle; /* the longest unused first */
	struct call_list waiting[MAX_SERVICES]; /* the first due first */
	struct call_list late; /* expired: their IDs rest until no late reply can come */

	struct guard guard;
	struct flow endless; /* of the last request whose run took too long */

	struct mmsghdr in[BATCH];
	struct iovec in_iov[BATCH];
	union address in_peer[BATCH];
	union control {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct timespec))];
	} in_control[BATCH];
	uint8_t (*datagrams)[DATAGRAM];
	unsigned int in_head; /* what in[] is prepared for */
	unsigned int in_used; /* of in[], by the last call */

	struct packet packets[SENDS]; /* the first of them are to be sent */
	unsigned int sends;
};

struct host {
	uint32_t workload;
	enum ln_mode mode;
	uint32_t message_max;
	uint32_t in_flight; /* a power of two */
	uint32_t message_timeout_ms;
	bool once; /* each request is executed at most once, whether or not the client asks */
	struct ln_keys keys; /* of the lambda's namespace; changes under world */
	uint64_t run_limit_ns;
	uint64_t memory; /* of one revision's global variables; 0: unlimited */
	struct service services[MAX_SERVICES];
	unsigned int service_count;
	struct server servers[MAX_SERVERS];
	unsigned int server_count;
	union address listen[MAX_LISTEN];
	unsigned int listen_count;
	unsigned int threads;
	bool spin;
	int first_cpu; /* -1: threads are not pinned */
	struct worker *workers;
	struct guard guard; /* of the thread that serves the control socket */
	pthread_rwlock_t world; /* held for reading by a worker that works on a batch */
	struct revision *current;
	sem_t loaded; /* posted for each worker once there is a revision to run */
	atomic_bool draining;
	atomic_bool succeeded; /* another process gets the requests that we no longer begin */
};

extern struct host host;

static inline uint64_t clock_coarse(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static inline socklen_t address_len(const union address *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof(a->in6) : sizeof(a->in);
}

/* Whether the request is to be executed at most once. */
static inline bool wants_once(const struct flow *flow)
{
	return host.once || flow->rpc.flags & LN_FLAG_ONCE;
}

/* rpc.c */
void rpc_receive(struct worker *w, struct packet *p, uint32_t len);
void rpc_answer(struct worker *w, struct packet *p, unsigned int server, uint32_t len);
void rpc_answer_raw(struct worker *w, struct packet *p, struct call *call, uint32_t len);
void rpc_abandon(struct worker *w, struct packet *p, const struct call *call, uint8_t code);

/* auth.c */
enum authenticity { AUTH_GENUINE, AUTH_BAD_TAG, AUTH_REPLAYED };

int auth_open(const char *path);
bool auth_ready(void);
enum authenticity auth_check(struct packet *p);
void auth_sign(const struct flow *flow, struct ln_rpc *rpc, const uint8_t *payload, uint32_t len);

/* reply.c */
struct ln_stats *reply_stats(struct worker *w, struct revision *rev);
void reply_last(const struct flow *flow);
void reply_error(struct packet *p, uint8_t code, uint32_t needed);
void reply_refuse(struct worker *w, struct packet *p, struct revision *rev, uint8_t code, uint32_t needed);
void reply_send(struct worker *w, struct packet *p, struct revision *rev, uint8_t *at, const struct ln_answer *a);
void reply_again(struct packet *p, const struct ln_answer *a);
bool reply_number(const struct packet *p, uint32_t window, uint32_t step, bool part, struct ln_answer *a);
void reply_acknowledge(const struct worker *w, struct packet *p, struct message *m);
void reply_conclude(struct worker *w, struct packet *p, struct revision *rev, int verdict);

/* run.c */
void run_describe(struct worker *w, const struct packet *p, const struct revision *rev, uint32_t event);
int run_whole(struct worker *w, const struct packet *p, struct revision *rev, struct lambda_headers *headers);
int run_packet(struct worker *w, struct packet *p, struct revision *rev);

/* message.c */
enum arrival {
	ARRIVAL_NEW, /* only this worker is to take the packet in */
	ARRIVAL_AGAIN, /* seen before, the message is not whole yet */
	ARRIVAL_RUNNING, /* another worker runs the lambda on the whole message, or the client has its reply */
	ARRIVAL_DONE, /* answered, and remembered */
	ARRIVAL_BUSY,
	ARRIVAL_MALFORMED, /* contradicts the message's other packets */
	ARRIVAL_TOO_LARGE, /* it would begin a message that is longer than the lambda takes */
};

int message_init(void);
enum arrival message_arrive(const struct packet *p, uint64_t now, struct message **found);
struct message *message_find(const struct packet *p, uint64_t now);
void message_finish(const struct packet *p);
bool message_take(struct message *m);
void message_untake(struct message *m, uint32_t index);
uint64_t message_bitmap(const struct message *m, uint32_t index);
uint32_t message_grant(const struct message *m, uint32_t index, uint64_t bitmap, uint64_t now);
void message_done(struct message *m);
void message_release(struct message *m);
void message_forget(struct message *m);
void message_expire(uint64_t now);
uint32_t message_index(const struct message *m);
unsigned int message_active(void);
unsigned int message_requests(uint32_t *requests, unsigned int most);

/* mode.c */
void mode_single(struct worker *w, struct packet *p, struct revision *rev);
void mode_stream(struct worker *w, struct packet *p, struct message *m, enum arrival arrival);
void mode_assemble(struct worker *w, struct packet *p, struct message *m, enum arrival arrival);
void mode_pull(struct worker *w, struct packet *p);

/* once.c */
enum once_arrival {
	ONCE_NEW, /* to be run; the packet's flow names its record from now on */
	ONCE_UNDERWAY, /* to be dropped: the answer comes by itself, or the client has it */
	ONCE_ANSWERED, /* the answer is in the packet */
	ONCE_TOO_LARGE, /* the answer does not fit into it */
	ONCE_FULL,
};

int once_init(void);
enum once_arrival once_arrive(uint64_t now, struct packet *p, struct ln_answer *a);
void once_settle(const struct flow *flow, const uint8_t *at, const struct ln_answer *a);
void once_release(const struct worker *w, const struct flow *flow, bool running);

/* call.c */
int call_init(struct worker *w);
int call_begin(struct worker *w, struct packet *p, struct revision *rev, uint8_t *at);
const struct call *call_receive(struct worker *w, const struct packet *p, unsigned int server, uint32_t len,
				bool *whole);
bool call_receive_raw(struct worker *w, const struct packet *p, struct call *call, uint32_t len);
const struct call *call_overdue(struct worker *w);
uint64_t call_next_due(struct worker *w);
unsigned int call_active(void);

/* server.c */
int server_open(struct worker *w);
int server_start(struct worker *w);
struct packet *server_spare(struct worker *w);
void server_send(struct worker *w, struct packet *p);

/* steer.c */
int steer_here(void);
int steer_on(unsigned int threads);
void steer_away(void);

/* revision.c */
int revision_load(uint32_t number, const char *path, const struct handover *h, char *why, size_t size);
struct revision *revision_find(uint32_t number);
void revision_retire(uint64_t now);

/* object.c */
struct revision *object_open(uint32_t number, const char *path, char *why, size_t size);
void object_populate(const struct revision *rev);
void object_close(struct revision *rev);

/* populate.c */
void populate(void *at, size_t size);

/* state.c */
int state_take_over(struct revision *rev, const struct state *old, const struct handover *h, char *why, size_t size);
int state_save(const char *path);

/* guard.c */
int guard_init(void);
int guard_thread(struct guard *g, uint64_t limit_ns);
const char *guard_reason(int fault);
unsigned int guard_cause(const struct guard *g);
int guard_run(struct guard *g, lambda_entry *entry, struct lambda_headers *headers);

/* control.c */
int control_open(const char *path);
int control_serve(int fd);

/* privilege.c */
int privilege_drop(unsigned int uid);

/* filter.c */
int filter_install(void);

#endif
