/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C client of λ-RPC (docs/protocol.md) calls lambdas over UDP. lambdanic(3) is the manual. At the end are ikernels for an
 * application's own sockets, which lambdanic-ikernel(3) describes.
 *
 * A connection belongs to one thread at a time. Different connections share nothing, so each thread has its own.
 * lambdanic_lookup() and lambdanic_strerror() may be called from any thread.
 */
#ifndef LAMBDANIC_H
#define LAMBDANIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rpc_wire.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LAMBDANIC_API __attribute__((visibility("default")))

/*
 * The result of a call: LAMBDANIC_OK, one of the negative numbers here, or a positive LN_CODE_*, the server's reason to refuse.
 */
enum lambdanic_result {
	LAMBDANIC_OK = 0,
	LAMBDANIC_DEADLINE = -1, /* no answer in time; the reply's os_error is the network's error, if any */
	LAMBDANIC_REQUEST_TOO_LARGE = -2,
	LAMBDANIC_REPLY_TOO_LARGE = -3, /* than the options' max_reply */
	LAMBDANIC_SYSTEM = -4, /* a system call failed: errno, and the reply's os_error */
	LAMBDANIC_BAD_ADDRESS = -5, /* of a server or gateway */
	LAMBDANIC_NO_FUNCTION = -6, /* the gateway knows no function of that name */
	LAMBDANIC_GATEWAY = -7, /* the gateway refused, or the address is not a gateway's */
	LAMBDANIC_BAD_ARGUMENT = -8, /* a pointer or a name is missing, or a length cannot be: nothing was sent */
	LAMBDANIC_NO_DAEMON = -9, /* the daemon of this machine cannot be reached: errno */
	LAMBDANIC_REFUSED = -10, /* the daemon refused: errno, and lambdanic_ikernels_error() */
	LAMBDANIC_DIFFERS = -11, /* a register had another value than expected: nothing was written */
	LAMBDANIC_NO_REGISTER = -12, /* the ikernel has no register of that name */
	LAMBDANIC_FULL = -13, /* there is no room for a note: deliver those before */
	LAMBDANIC_FAULTED = -14, /* the ikernel gave up: lambdanic_ikernel_fault() */
	LAMBDANIC_NO_SHARD = -15, /* the message is no shard, or nothing can be rebuilt from these shards */
	LAMBDANIC_BAD_KEY = -16, /* the options' key is no key's text */
};

struct lambdanic; /* a connection */

/* 0 in a field means its default. */
struct lambdanic_options {
	uint32_t timeout_ms; /* a call without a deadline fails after so long without progress: 5000 */
	uint32_t reply_room; /* bytes for replies of methods that were not called before: 512 */
	uint32_t max_reply; /* refuse longer replies: LN_RPC_MAX_MESSAGE */
	bool without_resend; /* send every packet once */
	bool spin; /* poll for answers instead of sleeping: takes a whole CPU */
	/*
	 * A key of the lambdas' namespace, as `lambdanic namespace key add` writes it, which is copied. All packets are tagged by
	 * it, and only answers that are tagged by it are taken. An error without a tag may be anybody's, so it ends no call: it is
	 * the result at the deadline.
	 */
	const char *key;
	bool tag_header_only; /* tags do not cover payloads: they take less time on the NIC, but payloads can be changed on the way */
};

struct lambdanic_request {
	uint32_t workload; /* which lambda */
	uint32_t method; /* its meaning is the lambda's */
	const void *body; /* must stay as it is until the call has ended */
	size_t len;
	uint64_t deadline_us; /* how long the call may take in total; 0: the options' timeout_ms applies */
	/*
	 * The expected length of the reply: so many bytes come back in one packet. 0: as earlier replies to this method. A
	 * longer reply arrives, too, in more packets.
	 */
	uint32_t reply_room;
	void *user; /* handed back in the reply */
	/*
	 * Execute the request at most once while the server remembers it: resends are answered from memory. The reply to a
	 * request of one packet then has to fit one packet, and the call is never started over: LN_CODE_STALE is final.
	 */
	bool once;
};

struct lambdanic_reply {
	int result; /* enum lambdanic_result or LN_CODE_* */
	int os_error; /* an errno, or 0. ETIMEDOUT with LN_CODE_*: the server's last word at the deadline */
	uint32_t need; /* with LN_CODE_TOO_LARGE: bytes of room that one packet would need; 0: no room is enough */
	uint8_t fault; /* with LN_CODE_LAMBDA_FAULT: LN_FAULT_*, why the lambda failed; 0: the server does not say */
	uint8_t status; /* LN_STATUS_*: the lambda's verdict. From here on, fields are valid if result is LAMBDANIC_OK */
	uint32_t revision; /* of the lambda, that answered */
	uint32_t resends; /* packets that had to be sent again */
	uint8_t *body; /* free it by lambdanic_reply_free() */
	size_t len;
	void *user; /* the request's */
};

struct lambdanic_stats {
	uint64_t calls; /* attempts */
	uint64_t restarts; /* attempts beyond a call's first */
	uint64_t sent, resent, received; /* packets */
	uint64_t duplicates; /* packets without news */
	uint64_t stray; /* packets for no call in flight: late, or forged */
	uint64_t malformed; /* packets that are not λ-RPC, or contradict themselves or their call */
};

/* Connects to HOST, HOST:PORT or [IPv6]:PORT. Nothing is sent. options may be NULL. */
LAMBDANIC_API int lambdanic_open(struct lambdanic **connection, const char *address,
				 const struct lambdanic_options *options);
/* Drops what is in flight. NULL is allowed. */
LAMBDANIC_API void lambdanic_close(struct lambdanic *connection);

/* Makes one call. Returns reply->result. */
LAMBDANIC_API int lambdanic_call(struct lambdanic *connection, const struct lambdanic_request *request,
				 struct lambdanic_reply *reply);
/* Makes n calls at once, and waits for all. Returns the first result that is not LAMBDANIC_OK; each reply has its own. */
LAMBDANIC_API int lambdanic_call_many(struct lambdanic *connection, const struct lambdanic_request *requests,
				      struct lambdanic_reply *replies, size_t n);
LAMBDANIC_API void lambdanic_reply_free(struct lambdanic_reply *reply);

/* Begins a call. It is sent by the next lambdanic_complete(), together with others. */
LAMBDANIC_API int lambdanic_submit(struct lambdanic *connection, const struct lambdanic_request *request);
/*
 * Sends what is due, and waits up to timeout_us (0: not at all) until a submitted call has ended. Returns 1 if *reply is a
 * call's answer or error, 0 if none has ended, and LAMBDANIC_SYSTEM if the socket failed.
 */
LAMBDANIC_API int lambdanic_complete(struct lambdanic *connection, struct lambdanic_reply *reply, uint64_t timeout_us);
/* Calls that were submitted and not yet returned by lambdanic_complete(). */
LAMBDANIC_API size_t lambdanic_pending(const struct lambdanic *connection);
/* For event loops: call lambdanic_complete() when the descriptor is readable, and after this time at the latest. */
LAMBDANIC_API int lambdanic_fd(const struct lambdanic *connection);
LAMBDANIC_API uint64_t lambdanic_next_us(const struct lambdanic *connection);

LAMBDANIC_API void lambdanic_get_stats(const struct lambdanic *connection, struct lambdanic_stats *stats);

/* What is wrong and what to do about it, for results and LN_CODE_*. Never NULL. */
LAMBDANIC_API const char *lambdanic_strerror(int result);
/* The same for a reply, which also knows why a lambda failed. */
LAMBDANIC_API const char *lambdanic_reply_error(const struct lambdanic_reply *reply);

struct lambdanic_function {
	uint32_t workload;
	uint32_t revision;
	char address[64]; /* for lambdanic_open() */
};

/*
 * Asks a gateway for a function. gateway is unix:PATH, HOST:PORT, [IPv6]:PORT, or the URL that `lambdanic up` prints. A TCP gateway
 * needs credentials, "USER:PASSWORD"; else they are NULL. name_space may be NULL for the default one. Gives up after timeout_ms
 * (0: 5000).
 */
LAMBDANIC_API int lambdanic_lookup(const char *gateway, const char *credentials, const char *name_space,
				   const char *name, uint32_t timeout_ms, struct lambdanic_function *function);

/*
 * Makes calls by names of functions that one gateway knows. A directory belongs to one thread at a time, and keeps a connection for
 * each function's address. It asks the gateway once for each name. If a workload ID is unknown, or the address refuses packets or is
 * silent, it asks again, and the call goes on at the function's new address. A request with `once` stays where it was sent; then the
 * next call asks, as after every LAMBDANIC_DEADLINE.
 */
struct lambdanic_directory;

LAMBDANIC_API int lambdanic_directory_open(struct lambdanic_directory **directory, const char *gateway,
					   const char *credentials, const char *name_space,
					   const struct lambdanic_options *options);
/* NULL is allowed. */
LAMBDANIC_API void lambdanic_directory_close(struct lambdanic_directory *directory);
/* Makes one call; the request's workload is ignored. Returns reply->result. */
LAMBDANIC_API int lambdanic_call_by_name(struct lambdanic_directory *directory, const char *name,
					 const struct lambdanic_request *request, struct lambdanic_reply *reply);

/*
 * An application's connection to the daemon of this machine. Its ikernels end with it, and so with the application. A connection and
 * its ikernels belong to one thread at a time.
 */
struct lambdanic_ikernels;
/* An ikernel serves the sockets that are attached to it, before the application does. */
struct lambdanic_ikernel;

#define LAMBDANIC_MAX_REGISTERS 16

struct lambdanic_register {
	const char *name;
	int64_t value; /* one of unsigned numbers is converted as by (int64_t) */
};

struct lambdanic_registers {
	size_t n;
	struct lambdanic_register all[LAMBDANIC_MAX_REGISTERS];
};

/* Connects to the daemon's socket; path may be NULL for /run/lambdanic/default/ikernel.sock. */
LAMBDANIC_API int lambdanic_ikernels_open(struct lambdanic_ikernels **ikernels, const char *path);
/* Ends all ikernels of the connection, and frees them. NULL is allowed. */
LAMBDANIC_API void lambdanic_ikernels_close(struct lambdanic_ikernels *ikernels);
/* What is wrong, for the result of the last call: what the daemon said, or else lambdanic_strerror(). Never NULL. */
LAMBDANIC_API const char *lambdanic_ikernels_error(const struct lambdanic_ikernels *ikernels, int result);

/* Makes an ikernel that has no socket yet. */
LAMBDANIC_API int lambdanic_ikernel_create(struct lambdanic_ikernels *ikernels, const char *name,
					   struct lambdanic_ikernel **ikernel);
/*
 * Makes one that is kept in the share and the quotas of a namespace that there is, and charged to it; NULL or "": of none. It takes UDP
 * sockets alone.
 */
LAMBDANIC_API int lambdanic_ikernel_create_for(struct lambdanic_ikernels *ikernels, const char *name,
					       const char *name_of_namespace, struct lambdanic_ikernel **ikernel);
/* Ends the ikernel and frees it, whatever the result. */
LAMBDANIC_API int lambdanic_ikernel_destroy(struct lambdanic_ikernel *ikernel);
/*
 * Has the ikernel get the datagrams to a UDP socket that is bound, before the socket does, until that is closed. threshold takes TCP sockets that are connected or
 * listen, too.
 */
LAMBDANIC_API int lambdanic_ikernel_attach(struct lambdanic_ikernel *ikernel, int socket);
/* Has the socket get its datagrams again. The ikernel keeps its registers. */
LAMBDANIC_API int lambdanic_ikernel_detach(struct lambdanic_ikernel *ikernel, int socket);

/* Why an ikernel gave up. Its sockets get all of their datagrams again; its registers and rings can still be read. */
struct lambdanic_fault {
	uint32_t code; /* 0: it has no fault */
	char text[220]; /* what the daemon says of it */
};

/* The ikernel's fault, if it has one. LAMBDANIC_NO_DAEMON: the daemon ended, and with it the ikernel. */
LAMBDANIC_API int lambdanic_ikernel_fault(struct lambdanic_ikernel *ikernel, struct lambdanic_fault *fault);
/* For event loops: call lambdanic_ikernel_fault() when the descriptor is readable. It ends with the ikernel. */
LAMBDANIC_API int lambdanic_ikernel_fault_fd(struct lambdanic_ikernel *ikernel, int *fd);

/* The value of a register among those that were read; 0 where there is none of that name. */
LAMBDANIC_API int64_t lambdanic_registers_get(const struct lambdanic_registers *registers, const char *name);
/* One register. */
LAMBDANIC_API int lambdanic_ikernel_read(struct lambdanic_ikernel *ikernel, const char *name, int64_t *value);
LAMBDANIC_API int lambdanic_ikernel_write(struct lambdanic_ikernel *ikernel, const char *name, int64_t value);
/*
 * In one step, reads all registers and writes some, if others have the values that are expected; else it is LAMBDANIC_DIFFERS. Each of
 * the three may be NULL. Names in *before are valid until the ikernel is destroyed.
 */
LAMBDANIC_API int lambdanic_ikernel_transact(struct lambdanic_ikernel *ikernel,
					     const struct lambdanic_registers *expect,
					     const struct lambdanic_registers *write,
					     struct lambdanic_registers *before);

/* An ikernel's messages to the application. A ring may be read by a thread of its own; it ends with its ikernel. */
struct lambdanic_ring;

/* What rings an ikernel gets. */
struct lambdanic_rings {
	uint32_t count; /* such as one for each CPU */
	uint32_t size; /* bytes of each: a power of two, of one page at least. What is not yet read takes its place */
	bool polled; /* the ikernel wakes nobody, which costs it time: the application uses lambdanic_ring_poll() alone */
};

/* What stands before a message in a ring. */
struct lambdanic_message_head {
	uint64_t time_ns; /* when it was posted, on CLOCK_MONOTONIC */
	uint8_t from[16], to[16]; /* the addresses of its datagram: lambdanic_message_from(), lambdanic_message_to() */
	uint16_t from_port, to_port; /* in network order */
	uint8_t is_ipv6, reserved[3];
};

/* What an ikernel sends of a datagram. It is in the ring, and valid until that is read, polled or released the next time. */
struct lambdanic_message {
	const void *data;
	size_t len;
	const struct lambdanic_message_head *head;
};

struct lambdanic_ring_counts {
	uint64_t posted;
	uint64_t refused; /* the ring was full, or the message longer than it */
};

/* Has the ikernel send messages by rings, once. ring has room for rings->count of them. If it fails, destroy the ikernel. */
LAMBDANIC_API int lambdanic_rings_open(struct lambdanic_ikernel *ikernel, const struct lambdanic_rings *rings,
				       struct lambdanic_ring **ring);
/* Counts the messages of the first n rings; 0 for those that are not there. */
LAMBDANIC_API int lambdanic_rings_count(struct lambdanic_ikernel *ikernel, struct lambdanic_ring_counts *counts,
					size_t n);

/* Releases the last message. Returns 1 if *message is the next one, and 0 if there is none yet. */
LAMBDANIC_API int lambdanic_ring_poll(struct lambdanic_ring *ring, struct lambdanic_message *message);
/*
 * The same, but waits up to timeout_ms, or if that is negative for ever. LAMBDANIC_FAULTED: no message is left, and none will come.
 * LAMBDANIC_NO_DAEMON: the daemon ended. LAMBDANIC_SYSTEM: poll(2) failed; errno is EINTR after a signal.
 */
LAMBDANIC_API int lambdanic_ring_read(struct lambdanic_ring *ring, struct lambdanic_message *message, int timeout_ms);
/* Gives the last message's place to the ikernel. lambdanic_ring_poll() and lambdanic_ring_read() do so, too. */
LAMBDANIC_API void lambdanic_ring_release(struct lambdanic_ring *ring);
/* For event loops: call lambdanic_ring_poll() until it returns 0, when the descriptor is readable. */
LAMBDANIC_API int lambdanic_ring_fd(const struct lambdanic_ring *ring);

/* The address of a message's sender, as for sendto(2), or that at which it came. Returns its length. */
LAMBDANIC_API socklen_t lambdanic_message_from(const struct lambdanic_message *message, struct sockaddr_storage *from);
LAMBDANIC_API socklen_t lambdanic_message_to(const struct lambdanic_message *message, struct sockaddr_storage *to);

/* What an application says to an ikernel that takes notes. They end with it. */
struct lambdanic_notes;

/* Lets the application write notes, once. */
LAMBDANIC_API int lambdanic_notes_open(struct lambdanic_ikernel *ikernel, struct lambdanic_notes **notes);
/*
 * Where to write the next note, of len bytes, until lambdanic_notes_deliver(). LAMBDANIC_FULL: there is no room until those before are
 * delivered.
 */
LAMBDANIC_API int lambdanic_notes_reserve(struct lambdanic_notes *notes, size_t len, void **note);
/* Has the ikernel get all notes that are written, in order, before it returns. delivered is how many, or NULL. */
LAMBDANIC_API int lambdanic_notes_deliver(struct lambdanic_notes *notes, uint32_t *delivered);

/* A copy of a datagram by the ikernel parity, or the parity of a group of them. */
struct lambdanic_shard {
	uint64_t group;
	uint16_t index; /* of the datagram in its group */
	uint16_t count; /* 0: this is a datagram; or else it is the parity of so many */
	uint32_t length; /* of the datagram; of a parity, what the lengths of all XOR to */
	const void *data;
	size_t len; /* of data */
};

/* Reads what parity posts to a ring: a message's data and length. The shard has its data where the message has it. */
LAMBDANIC_API int lambdanic_shard_parse(const void *message, size_t len, struct lambdanic_shard *shard);
/*
 * Makes the datagram that is missing of a group from its parity and all n others, in any order. data has room for parity->len bytes, and is the lost shard's from
 * then on.
 */
LAMBDANIC_API int lambdanic_shard_rebuild(const struct lambdanic_shard *parity, const struct lambdanic_shard *others,
					  size_t n, void *data, struct lambdanic_shard *lost);

#ifdef __cplusplus
}
#endif

#endif
