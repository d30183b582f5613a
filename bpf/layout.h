/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the NIC program, the lambdas, pacer and the worker agree on: constants, records, and the maps that carry them.
 * The Go side is generated from this file's BTF (internal/nic), so this is the only copy.
 */
#ifndef LN_LAYOUT_H
#define LN_LAYOUT_H

#ifndef LN_LAYOUT_NO_LOCKS /* the kernel's header is long, and a lambda's process does not need it */
#include <linux/bpf.h>
#endif
#include <linux/types.h>

/* Raise when a record below changes: a daemon adopts a pinned NIC program of its own version only. */
enum ln_version { LN_LAYOUT_VERSION = 22 };

enum ln_limit {
	LN_MAX_WORKLOADS = 65536, /* dispatch entries; the low half of a workload ID is its index */
	LN_MAX_NAMESPACES = 4096, /* the low bits of a namespace's number are its index */
	LN_MAX_NETWORKS = 65536, /* of all namespaces */
	LN_MAX_SPLIT = 8, /* revisions that share one workload's traffic */
	LN_MAX_PREV = 4, /* superseded revisions that still answer pulls */
	LN_PREFIX = 48, /* bytes before the payload that a lambda may use */
	LN_SPARE = 136, /* bytes before a service's answer: for its prefix, and so that the lambda can make it longer */
	LN_MESSAGE_WAYS = 4, /* message records per bucket */
	LN_MAX_FRAGMENTS = 65536, /* packets per message: 64 MiB and more */
	LN_MAX_CALLS = 65536, /* external calls in flight whose protocol has a request ID: its 16 bits are the index */
	LN_MAX_RAW_CALLS = 2048, /* likewise of protocol raw, in the records behind: the source port is the index */
	LN_CALL_PORT =
		61440, /* source ports of calls, above those that Linux gives to sockets: the first with a request ID */
	LN_CALL_PORTS = 2048,
	LN_RAW_PORT = LN_CALL_PORT + LN_CALL_PORTS, /* the first of protocol raw */
	LN_MAX_RETAINED = 4096, /* requests to services that are kept, to be sent again */
	LN_SENT_MAX = 1536, /* bytes of such a request, with all headers */
	LN_MAX_ADDRESSES = 8, /* of one NIC */
	LN_MAX_SERVICES = 8, /* of one lambda */
	LN_MAX_SERVERS = 32, /* of one lambda's services together */
	LN_SHARES = 512, /* that divide the keys of a service's calls among its servers */
	LN_MAX_QPS = 1024, /* the low bits of a queue pair's number are its index */
	LN_MAX_REGIONS = 1024, /* likewise of a remote key */
	LN_HIST_BUCKETS = 32, /* log2 of nanoseconds */
	LN_FAULTS = 8, /* more than the last LN_FAULT_* of rpc_wire.h, a power of two */
	LN_SAMPLE_EVERY = 64, /* runs per sampled time measurement, a power of two */
	LN_COST_SAMPLES = 64, /* over which a lambda's cost is averaged, a power of two */
	LN_ONCE_BUCKETS = 1024, /* of requests that are executed at most once, a power of two */
	LN_ONCE_WAYS = 8, /* requests per bucket */
	LN_ONCE_RUNNING_MAX = 4, /* requests per bucket that one workload may have running */
	LN_GRANTED = 8, /* messages among which grants are shared out, a power of two */
	LN_GRANT_MOST = 256, /* packets that the shortest of them may have under way */
	LN_GRANT_LEAST = 32, /* packets that the longest may have under way */
	LN_ONCE_ANSWER = 1408, /* bytes of an answer: LN_RPC_MAX_PAYLOAD */
	LN_KEPT_WORDS = 60, /* 32-bit words of metadata that a clone keeps */
	LN_LATE_BYTES = 2048, /* the longest packet that can go on later */
	LN_WAITING_MAX = 64, /* packets that wait for the host */
	LN_WAIT_SECONDS = 30, /* how long they wait at most */
	LN_COPIES_BYTES = 1 << 20, /* size of the ring for packets whose clones went first */
};

/* Where a workload's requests go: bits 40..47 of its dispatch word. */
enum ln_state {
	LN_STATE_NONE = 0, /* no such lambda */
	LN_STATE_SLOT = 1, /* to the program in one slot */
	LN_STATE_SPLIT = 2, /* to one of several slots, by weight */
	LN_STATE_HOST = 3, /* to the host's stack, where a host target answers */
	LN_STATE_STAGE = 4, /* entry 0 alone: the slot of the match stage, for packets that no workload ID selects */
};

/*
 * A dispatch word: the high half of the workload ID in bits 48..63, the state, and in bits 0..23 a slot or a split index.
 * It is one aligned 64-bit word, so that one store swaps a revision, splits traffic, rolls back, or moves a workload.
 */
#define LN_DISPATCH(id, state, ref) (((__u64)((id) >> 16) << 48) | ((__u64)(state) << 40) | ((__u64)(ref) & 0xffffff))

enum ln_mode {
	LN_MODE_PACKET = 0, /* one packet is one request */
	LN_MODE_STREAM = 1, /* the lambda sees each packet of a message as it arrives */
	LN_MODE_ASSEMBLE = 2, /* the lambda sees whole messages */
	LN_MODE_STAGE = 3, /* the lambda is a match stage, on whole packets (sdk/pif); its verdicts are XDP actions */
};

/* One loaded revision of a lambda. Written before its dispatch word, then constant. One cache line. */
struct ln_slot {
	__u32 workload;
	__u32 revision;
	__u32 prev; /* slot of the revision that this one superseded, 0 for none */
	__u32 mode;
	__u32 service_base; /* first of its records in ln_services: one per server */
	__u32 service_count;
	__u32 bucket_base; /* first of its buckets in ln_messages */
	__u32 bucket_count; /* a power of two, or 0 */
	__u32 message_max; /* bytes */
	__u32 message_timeout_ms;
	__u32 namespace_id; /* the number of its namespace, whose counters include the slot's; 0: none */
	__u32 message_ways; /* records that it uses of each bucket */
	__u16 clones; /* 1: a match stage that may clone its packets */
	__u16 once; /* 1: each request is executed at most once, whether or not the client asks */
	__u16 region_base; /* the first of its records that are regions */
	__u16 region_count;
	__u8 first[LN_MAX_SERVICES]; /* each service's first server, from service_base on; 0xff: no such service */
};

/* What a namespace may have per second: entries of the arrays below. */
enum ln_rate_of {
	LN_RATE_REQUESTS = 0,
	LN_RATE_TIME = 1, /* nanoseconds that its lambdas run, on all CPUs together */
	LN_RATES = 2,
};

/* A rate. A CPU takes it in turns, of about a millisecond where it is high, so that most packets touch no memory of other CPUs. */
struct ln_rate {
	__u64 units; /* of one turn; 0: none at all */
	__u64 turn_ns; /* 0: no limit */
	__u64 burst_ns; /* how much later than they came turns can be taken; at least turn_ns */
};

/* What namespaces share by weight. */
enum ln_resource {
	LN_RESOURCE_TIME = 0, /* of each CPU: share.h */
	LN_RESOURCE_LINKS = 1, /* of the NICs, all together, for what they send: bandwidth.h */
	LN_RESOURCES = 2,
};

struct ln_quota {
	struct ln_rate rate[LN_RATES];
	/* Its virtual time in a nanosecond that it takes, times LN_PACE: the sum of all weights by its own; 0: no shares. */
	__u64 pace[LN_RESOURCES];
};

/* What a namespace's packets are tagged with: auth.h. */
struct ln_key {
	__u64 word[2]; /* its 16 bytes, as SipHash reads them */
	__u64 valid; /* 0: there is none */
};

/* What is asked of a namespace's packets. */
struct ln_keys {
	struct ln_key key[2]; /* by whether its number is odd */
	__u64 required; /* packets without a tag are refused */
	__u64 networked; /* packets from outside of its networks reach nothing */
};

enum ln_window_of {
	LN_WINDOW_BITS = 32, /* sequence numbers in a word; above their bits is the number of their block */
	LN_WINDOW_WORDS = 32,
	LN_WINDOW_WAYS = 8, /* clients in a set */
	LN_WINDOW_SETS = 1 << 12,
};

/* The sequence numbers that a client has used: at least the latest 993. */
struct ln_window {
	__u64 word[LN_WINDOW_WORDS];
};

/* A set of clients: window.h. Their namespaces are named by number, so that one that has the index later has windows of its own. */
struct ln_windows {
	__u32 owner[LN_WINDOW_WAYS]; /* the client's namespace */
	__u32 client[LN_WINDOW_WAYS]; /* 0: the place is free */
	__u64 heard[LN_WINDOW_WAYS]; /* when, by the clock */
	__u64 clock; /* counts the set's packets */
	struct ln_window window[LN_WINDOW_WAYS];
};

/* Shares of the CPUs' time: share.h. Waits and what a namespace can take at once are by its share. */
enum ln_share {
	LN_PACE = 1 << 8,
	LN_BUDGET = 1 << 20,
	LN_PACKET_NS = 250, /* what the NIC program takes for a packet, about, besides the lambda's run */
	LN_SAVED_NS = 1 << 21, /* what a CPU can have left of its budget */
	LN_OVERDRAWN_NS = 1 << 23, /* the budget's loan to namespaces that have not had their shares */
	LN_OVERDRAWN_LAMBDAS_NS = 1 << 22, /* and to lambdas that have not, whose namespaces have */
	LN_TURN_NS = 1 << 13, /* how much more a CPU must have left to serve a namespace that is twice as far ahead */
	LN_BEHIND_NS = 1 << 22, /* the most that a namespace or lambda can take at once after a pause */
	LN_OWED_NS = 1 << 26, /* and a namespace if the CPU refused it lately */
	LN_OWED_FOR_NS = 1 << 24, /* how long ago that may be */
	LN_AHEAD_NS = 1 << 30, /* how far its virtual time can be ahead, and so the longest wait after a long run */
	LN_TOLD_NS = 1 << 17, /* when a CPU tells the others what a namespace took on it */
	LN_HEAR_EVERY = 4, /* packets of a namespace until a CPU looks for what others told */
	LN_ELSEWHERE_NS = 1 << 22, /* how far ahead of a CPU what it took on others sets a namespace */
	LN_BYTE = 1 << 20, /* parts of a nanosecond, in which what a byte takes is told */
	LN_LINKS_TURN_NS = 1 << 15, /* what a CPU takes of the links' time at once, and tells of it */
};

/* What may be spent on packets of namespaces. */
struct ln_budget {
	__u64 share; /* of each CPU's time, as a part of LN_BUDGET */
	__u64 byte_ns; /* what a byte takes of the links' time, times LN_BYTE; 0: the links are not shared */
};

/* What namespaces took of the links' time. */
struct ln_links {
	__u64 until_ns; /* up to when CPUs took it: bpf_ktime_get_ns() */
	__u64 virtual_ns; /* up to where all namespaces may be served */
};

/* How many refusals a CPU answers: refuse.h. */
enum ln_refusals_of {
	LN_REFUSALS_NS = 1 << 20, /* a period */
	LN_REFUSALS = 256, /* answered in it */
};

/* Refusals that were answered in a period. */
struct ln_refusals {
	__u64 period; /* its number: bpf_ktime_get_ns() by LN_REFUSALS_NS */
	__u64 answered;
};

/* What a CPU has left of its budget. */
struct ln_cpu {
	__s64 left_ns; /* negative if it is overdrawn */
	__u64 filled_ns; /* when that was reckoned last: bpf_ktime_get_ns() */
	__u64 virtual_ns; /* up to where all namespaces may be served */
	__u64 timing; /* 1: the ikernel at hand is measured, and so are those that it hands its packet on to */
	__u64 inner_ns; /* what these took */
	__u64 sent; /* 1: one of these sent the packet, and was charged for it */
	__s64 links_ns; /* what is left of what the CPU took of the links' time */
	struct ln_refusals refusals; /* to packets of all namespaces */
};

/* What CPUs tell each other of a namespace. */
struct ln_turns {
	__u64 until_ns[LN_RATES]; /* up to when its turns were taken: bpf_ktime_get_ns() */
	__u64 spent_ns; /* what it took of its share, less what each CPU did not tell yet */
	__u64 links_ns; /* up to where it was served by the links: what was sent for it, times its pace */
	__u64 apart[4]; /* so that what CPUs write of one namespace is in few lines of the cache that others read */
};

/* What a CPU has left of its turns. Time is charged when it was spent, so it can be negative. */
struct ln_allowance {
	__s64 left[LN_RATES];
	__u64 virtual_ns; /* up to where it was served: all that it took, times its pace */
	__u64 lambdas_ns; /* up to where all its lambdas may be served */
	__u64 refused_ns; /* when it was last refused for want of its share */
	__u64 untold_ns; /* what it took here, which other CPUs do not know yet */
	__u64 known_ns; /* of what all CPUs told, what is in its virtual time */
	__u64 packets; /* that came here while it had a share */
	__u64 unsent_ns; /* of the links' time for what it sent from here, what is not in its virtual time of them yet */
	__u64 rest; /* of that, less than a nanosecond, times LN_BYTE */
	struct ln_refusals refusals;
};

/* What a lambda's run takes on a CPU: the mean of the last samples, each of LN_COST_SAMPLES times that mean at most. */
struct ln_cost {
	__u64 sum_ns; /* of count samples, which stand for the last ones */
	__u64 count; /* LN_COST_SAMPLES at most */
	__u64 virtual_ns; /* up to where the lambda was served: all that it took */
};

struct ln_split {
	__u32 count;
	__u32 total; /* sum of the weights */
	struct {
		__u32 slot;
		__u32 weight;
	} to[LN_MAX_SPLIT];
};

enum ln_protocol {
	LN_PROTOCOL_MEMCACHED = 1, /* an 8-byte frame header with a request ID leads every datagram */
	LN_PROTOCOL_RAW = 2, /* the lambda writes whole datagrams; each call has a source port to itself */
};

/*
 * The NIC's own addresses, as in struct ln_flow. User space changes them while packets arrive: it completes an address before
 * count includes it, and overwrites a removed address with the last one before it lowers count.
 */
struct ln_addresses {
	__u32 count;
	__be32 own4; /* sources of external calls across address families */
	__u64 own6[2];
	__u64 all[LN_MAX_ADDRESSES][2]; /* packets to these are ours */
};

/* One server of an external service that a lambda may call. Addresses as on the wire; IPv4 in the first four bytes. */
struct ln_service {
	__u8 addr[16];
	__be16 port;
	__u8 ipv6;
	__u8 protocol;
	__u32 timeout_ms; /* of one try */
	__u8 retries;
	__u8 id_len; /* protocol raw: bytes of the request ID, 0 for none */
	__u16 id_at; /* offset of the request ID in requests and answers */
	__u8 shares[LN_SHARES]; /* of the service, in its first server's record: the server of each share of the keys */
};

/* The share that a call's key falls into: its bits, mixed as MurmurHash3's fmix64() does. */
static inline __attribute__((always_inline)) __u32 ln_share(__u64 key)
{
	key = (key ^ key >> 33) * 0xff51afd7ed558ccdULL;
	key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ULL;
	return (key ^ key >> 33) % LN_SHARES;
}

/* Keys of ln_networks: a kind, and the ID of a virtual network of that kind. */
enum ln_network {
	LN_NETWORK_VLAN = 1 << 24,
	LN_NETWORK_VXLAN = 2 << 24,
};

/* The headers around a packet that came by VXLAN over IPv4 (RFC 7348): tunnel.h. */
struct ln_tunnel {
	__u64 eth; /* the outer Ethernet addresses, as in struct ln_flow */
	__u32 eth_rest;
	__be32 vni; /* in the first 24 bits; 0: the packet came without */
	__be32 peer_addr;
	__be32 own_addr;
	__be16 peer_port;
	__u16 pad;
	__u32 pad2;
};

/* Who asked, kept apart from the lambda: replies are built from this alone. */
struct ln_flow {
	__u64 eth; /* the Ethernet addresses as they came, in two words: byte by byte they would cost more */
	__u32 eth_rest;
	__be32 flow_label; /* IPv6: the first word of the header */
	__be16 vlan_proto[2]; /* outer first; 0: untagged. Those of a tunnel are before its IP header */
	__be16 vlan_tci[2];
	__u8 peer_addr[16];
	__u8 own_addr[16];
	__be16 peer_port;
	__be16 own_port;
	__u8 ipv6;
	__u8 tos;
	__u16 room; /* bytes of λ-RPC payload that the reply may have */
	__u32 once; /* 1 + the number of the record in ln_onces that waits for the reply; 0: none does */
	__u32 signer; /* the index of the namespace whose key tags the answer; 0: it has no tag */
	__u32 payer; /* of the namespace that pays for what is sent; 0: none does */
	__u32 prepaid; /* 1: the answer was charged before */
	struct ln_tunnel tunnel;
	__u64 rpc[8]; /* the request's λ-RPC header as it came */
};

/* Why a lambda runs; LAMBDA_REQUEST and so on in sdk/lambda.h. */
enum lambda_event {
	LAMBDA_EVENT_REQUEST = 0,
	LAMBDA_EVENT_FRAGMENT = 1,
	LAMBDA_EVENT_COMPLETE = 2,
	LAMBDA_EVENT_REPLY = 3,
};

/* What a lambda sees of its request: the MATCH_DATA_T of sdk/lambda.h. */
struct lambda_match {
	__u32 event; /* enum lambda_event */
	__u32 workload;
	__u32 revision;
	__u32 method;
	__u64 request;
	__u32 message_len; /* bytes in the request's whole message */
	__u32 offset; /* where this payload starts in it */
	__u32 payload_len; /* bytes of message in this packet */
	__u32 room; /* bytes that a reply may have in this packet */
	__u32 window; /* the first byte of the reply that the client wants in this packet */
	__u32 window_len; /* bytes of it per packet; 0: as many as there is room for */
	__u32 repeat; /* 1: this packet ran before and its answer may have been lost */
	__u32 record; /* message modes: the index of this message among the lambda's records */
	__u64 cookie[2]; /* the lambda's own, carried over an external call */
};

/* The hand-over between the NIC program and a lambda, one per CPU. The NIC program never trusts what comes back in it. */
struct ln_request {
	struct lambda_match match;
	__u32 payload_off; /* of the payload in the packet */
	__u32 step; /* enum ln_step: what the prologue has to do in mode assemble */
	__s32 out_off; /* reply: relative to payload_off */
	__u32 out_len;
	__u32 out_total; /* bytes of the whole reply */
	__u32 out_status;
	__u32 service;
	__u32 pad;
	__u64 key; /* of a call: chooses the server */
};

enum ln_step {
	LN_STEP_RUN = 0, /* run the author's function */
	LN_STEP_COPY = 1, /* assemble: copy this packet into the message */
	LN_STEP_PULL = 2, /* assemble: copy a window of the reply out */
};

/* What a lambda's program returns to the NIC program: the values of RETURN_* in sdk/lambda.h, and these. */
enum ln_verdict {
	LN_VERDICT_DROP = 0,
	LN_VERDICT_FORWARD = 1,
	LN_VERDICT_CALL = 2,
	LN_VERDICT_KEEP = 3,
	LN_VERDICT_FAULT = 4, /* the lambda's own fault; LN_VERDICT_OF() gives those of other faults */
	LN_VERDICT_EMPTY = 255, /* no program in the slot */
};

/* What a run returns that a fault ended: LN_FAULT_* of rpc_wire.h, the first of which is the lambda's own. */
#define LN_VERDICT_OF(fault) (LN_VERDICT_FAULT - 1 + (fault))

/* The fault of a run that was not answered. Whatever else a lambda returns is its own fault. */
static inline __attribute__((always_inline)) __u32 ln_fault_of(__u32 verdict)
{
	__u32 fault = verdict - LN_VERDICT_OF(0);

	return fault && fault < LN_FAULTS ? fault : 1;
}

/* What a match stage returns to the NIC program besides XDP actions. */
enum ln_stage_verdict {
	LN_STAGE_WAIT = 64, /* nothing was written: run the packet once more, later */
};

/* The hand-over between the NIC program, which never trusts what comes back in it, and a match stage that clones. One per CPU. */
struct ln_pass {
	__u32 instance; /* 0: a packet, 1: a clone */
	__u32 clone; /* out: 1: clone the packet as it leaves */
	__u32 shape; /* out: a digest of which fields are kept */
	__u32 pad;
	__u32 kept[LN_KEPT_WORDS]; /* out, for the clone: metadata */
};

/* A match stage's packet that goes on later: it waits for the host, or its clone went first. */
struct ln_late {
	struct ln_flow flow; /* as it came */
	struct ln_pass pass; /* the hand-over for its next run */
	__u64 key; /* in ln_waiting */
	__u64 until; /* bpf_ktime_get_ns(), CLOCK_MONOTONIC: when the wait times out */
	__u32 workload;
	__u32 came; /* bytes that came, from the IP header on */
	__u32 came_l3; /* bytes of that header */
	__u32 verdict; /* LN_STAGE_WAIT, or what the stage returned */
	__u32 size; /* of the packet */
	__u32 pad;
	__u8 bytes[LN_LATE_BYTES];
};

enum ln_message_state {
	LN_MESSAGE_FREE = 0,
	LN_MESSAGE_PARTIAL = 1, /* packets are missing */
	LN_MESSAGE_RUNNING = 2, /* one CPU runs the lambda on it */
	LN_MESSAGE_DONE = 3, /* answered; the reply is remembered */
};

enum ln_remembered { LN_UNANSWERED = 255 };

struct ln_message {
	__u8 peer_addr[16];
	__u64 request;
	__u64 expires_ns; /* coarse clock; each packet of the message postpones it */
	__u32 workload;
	__u32 slot; /* the revision that began it */
	__u32 count;
	__u32 message_len;
	__u32 fragment; /* bytes per packet but the last; 0: only the last was seen so far */
	__u32 received;
	__u32 reply_len;
	__be16 peer_port;
	__u8 state; /* enum ln_message_state */
	__u8 status; /* of the remembered reply */
	__u32 users; /* CPUs that work on one of its packets now: until they leave, no other message gets the record */
	__u32 revision; /* in that slot; another revision may have the slot by the time that the client goes on */
	__u32 timeout_ms; /* that revision's */
	__u8 once; /* its lambda is to run at most once */
	__u8 released; /* if once: the client has the reply, so this record makes room first */
	__u8 error; /* if once: the error that stands for a reply; 0: there is a reply; LN_UNANSWERED: neither */
	__u8 fault; /* which fault, if the error is LN_CODE_LAMBDA_FAULT */
};

#ifndef LN_LAYOUT_NO_LOCKS
/* A set of records under one lock, and for each a bitmap of the packets that arrived. */
struct ln_bucket {
	struct bpf_spin_lock lock;
	__u32 pad;
	struct ln_message way[LN_MESSAGE_WAYS];
	__u64 arrived[LN_MESSAGE_WAYS][LN_MAX_FRAGMENTS / 64];
};
#endif

/* How long a request that is executed at most once is remembered after its last packet. */
#define LN_ONCE_NS 10000000000ULL

/* A message, which has a time-out of its own, is remembered at least so long: two of a client's longest resend intervals. */
#define LN_ONCE_HOLD_NS 1000000000ULL

/* The coarse clock may be behind by a tick, at 100 Hz. */
#define LN_TICK_NS 10000000ULL

enum ln_once_state {
	LN_ONCE_FREE = 0,
	LN_ONCE_RUNNING = 1, /* not answered yet: the lambda runs, or waits for an external service */
	LN_ONCE_DONE = 2, /* answered */
	LN_ONCE_RELEASED = 3, /* answered, and the client has the answer; or there will be none */
};

/* A request of one packet that is executed at most once, and what its answer's header says. */
struct ln_once {
	__u8 peer_addr[16];
	__u64 request;
	__u64 expires_ns; /* coarse clock */
	__u32 workload;
	__u32 owner; /* stands for workload and address */
	__u32 revision;
	__u32 message_len;
	__be16 peer_port;
	__u16 length;
	__u8 state; /* enum ln_once_state */
	__u8 type;
	__u8 code;
	__u8 users; /* CPUs that copy the answer now */
};

#ifndef LN_LAYOUT_NO_LOCKS
struct ln_once_bucket {
	struct bpf_spin_lock lock;
	__u32 pad;
	struct ln_once way[LN_ONCE_WAYS];
	__u8 answer[LN_ONCE_WAYS][LN_ONCE_ANSWER];
};
#endif

/* After so long without an acknowledgement, a message no longer counts among those that share the grants. */
#define LN_GRANT_LATELY_NS 20000000ULL

/* Messages that are being received (grant.h). */
struct ln_grants {
	struct ln_granted {
		__u64 seen_ns; /* coarse clock, of the last acknowledgement */
		__u32 message; /* 1 + the number of its record */
		__u32 left; /* packets that have not arrived */
	} message[LN_GRANTED];
};

/* An external call in flight. */
struct ln_call {
	__u64 state; /* 0 free; else the call's number << 16 | tries that failed << 8 | enum ln_call_state */
	__u64 began_ns; /* bpf_ktime_get_ns(), CLOCK_MONOTONIC */
	__u32 timeout_ms; /* of one try */
	__u32 retries;
	__u64 id; /* protocol raw: the request ID, as it is on the wire */
	__u64 deadline_ns; /* when the client gives up; ~0: it did not say */
	__u32 slot;
	__u32 service;
	__be16 port; /* its source port */
	__u16 pad;
	__u32 pad2;
	__u64 cookie[2];
	struct ln_flow flow;
};

enum ln_call_state { LN_CALL_WRITING = 1, LN_CALL_WAITING = 2 };

#define LN_CALL_STATE(state) ((state) & 0xff)
#define LN_CALL_FAILED(state) ((state) >> 8 & 0xff)
#define LN_CALL_NUMBER(state) ((state) >> 16)
#define LN_CALL_ONE_FAILED (1ULL << 8)

/* When the try that is under way ends. */
#define LN_CALL_TRY_DUE(call, state) \
	((call)->began_ns + (LN_CALL_FAILED(state) + 1) * ((call)->timeout_ms * 1000000ULL))
#define LN_CALL_DUE(call, state) \
	(LN_CALL_TRY_DUE(call, state) < (call)->deadline_ns ? LN_CALL_TRY_DUE(call, state) : (call)->deadline_ns)

/* An entry of ln_call_log: which record a call has, LN_CALL_NONE where there was no free one. */
#define LN_CALL_LOGGED(number, index) ((__u64)(number) << 20 | (index))
#define LN_CALL_NONE 0xfffff

/* A request to a service as it left, kept to be sent again. */
struct ln_sent {
	__u64 number; /* of the call */
	__u32 ifindex; /* the interface that it left by */
	__u32 len;
	__u8 frame[LN_SENT_MAX];
};

enum ln_qp_state {
	LN_QP_NONE = 0,
	LN_QP_READY = 1,
	LN_QP_ERROR = 2, /* it refused a message, and takes no more */
};

/* The message that a queue pair is receiving. */
enum ln_qp_message { LN_QP_IDLE = 0, LN_QP_SEND = 1, LN_QP_WRITE = 2 };

/*
 * A queue pair's responder. The host writes the record, state last. From then on packets change the fields below claim, and may set
 * LN_QP_ERROR. Only the CPU that set claim to 1 changes the record.
 */
struct ln_qp {
	__u32 state; /* enum ln_qp_state */
	__u32 qpn; /* all bits: the number of an earlier queue pair in this record does not match */
	__u32 peer_qpn;
	__u32 workload; /* whose regions it may write to */
	__u8 peer_addr[16];
	__u8 service; /* LN_ROCE_SERVICE_* */
	__u8 trust; /* 1: do not check ICRCs */
	__u16 mtu;
	__u32 receive; /* the key of the region that SENDs go to; 0: none */

	__u32 claim;
	__u32 psn; /* of the packet that comes next */
	__u32 msn; /* messages that are complete */
	__u32 message; /* enum ln_qp_message */
	__u32 naked; /* 1: the peer was told that packets are missing */
	__u32 key; /* of the region that the message goes to; 0: the message has no bytes */
	__u32 at; /* where in it the next bytes go */
	__u32 left; /* bytes that are still to come; of a SEND: how many may */
	__u32 ipv6; /* the peer's family; written by the host, too */
	__u32 pad;
	__u64 packets; /* taken in */
	__u64 bytes;
	__u64 messages;
	__u64 repeated; /* packets that had arrived before */
	__u64 naks; /* sent */
	__u64 dropped; /* packets */
};

/* Memory of one revision of a lambda that peers write to: one of its message records. */
struct ln_region {
	__u32 key; /* 0: none. Written last; revoking stores 0 */
	__u32 slot;
	__u32 workload;
	__u32 revision;
	__u64 base; /* its address, for peers; also the ID by which the lambda knows what is in it */
	__u32 length;
	__u32 record;
	__u32 method; /* for messages without immediate data */
	__u32 claim; /* 1: a CPU runs the lambda on it */

	__u32 answered; /* 1: the lambda answered the last message */
	__u16 code; /* LN_CODE_*: why it did not; 0: it did */
	__u16 fault; /* LN_FAULT_*, likewise */
	__u32 reply_len;
	__u32 status;
	__u32 extent; /* end of the bytes that WRITEs brought since the lambda last ran */
	__u32 pad;
	__u64 request; /* ID of the λ-RPC that ran the lambda */
	__u64 peer; /* who sent that λ-RPC */
	__u64 runs;
};

/* Per slot and CPU; the first line is what every request touches. */
struct ln_stats {
	__u64 requests; /* begun: of a message, the first packet counts */
	__u64 replies; /* likewise */
	__u64 bytes_in;
	__u64 bytes_out;
	__u64 errors; /* answered with an error packet */
	__u64 drops;
	__u64 calls; /* external calls sent */
	__u64 faults;
	__u64 samples;
	__u64 sampled_ns;
	__u64 late; /* not answered: the client's deadline was over */
	__u64 over_quota; /* packets refused because its namespace may do no more at present */
	__u64 over_share; /* packets refused because the CPU had no time left, and its namespace had its share */
	__u64 over_bandwidth; /* because what NICs may send was spent, and its namespace had its share */
	__u64 bad_tags; /* packets refused because their tag is missing or wrong */
	__u64 replayed; /* packets dropped because their client's sequence number had been used, or is too old to tell */
	__u64 faults_by[LN_FAULTS]; /* of faults: each LN_FAULT_* */
	__u64 hist[LN_HIST_BUCKETS]; /* of the sampled runs: [2^i, 2^(i+1)) ns */
};

/* Of the whole NIC, per CPU: index into ln_counters. */
enum ln_counter {
	LN_COUNT_PASSED = 0, /* λ-RPC packets handed to the host */
	LN_COUNT_UNKNOWN, /* no such workload */
	LN_COUNT_MALFORMED,
	LN_COUNT_CHECKSUM, /* wrong UDP checksum */
	LN_COUNT_BUSY, /* no free message or call record, or no room to wait */
	LN_COUNT_STRAY, /* replies that no call waits for */
	LN_COUNT_FORGED, /* replies to a call that are not from its server, or without its request ID */
	LN_COUNT_RETRIES, /* external calls sent again */
	LN_COUNT_TIMEOUTS, /* external calls, and waits for the host, that expired */
	LN_COUNT_ASTRAY, /* packets that a match stage sent where its spec does not allow */
	LN_COUNT_COPIES, /* packets that were cloned, then lost: pacer was slow, or they were too long */
	LN_COUNT_NETWORK, /* λ-RPC packets whose network is not that of their workload */
	LN_COUNT_ALIEN, /* RDMA packets that do not come from their queue pair's peer */
	LN_COUNT_MAX,
};

#endif
