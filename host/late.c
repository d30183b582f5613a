// SPDX-License-Identifier: Apache-2.0
/*
 * How pacer has a match stage's packets go on (bpf/stage/late.h): packets that wait for the host every BUSY_NS and after the daemon
 * wrote for the host, and packets whose clones went first at once.
 */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pacer.h"

#define HEAD offsetof(struct ln_late, bytes)
#define FRAME_SIZE 4096 /* more than LN_LATE_BYTES and the headroom that a stage can use */
#define COPIES_AT_ONCE 256 /* between looks at the clock */

/* Runs a program on a packet as if the interface had received it. */
static int run(struct pacer *p, int program, const void *packet, uint32_t size, union bpf_attr *attr)
{
	struct xdp_md context = { .data_end = size, .ingress_ifindex = p->ifindex };

	attr->test.prog_fd = program;
	attr->test.data_in = (uintptr_t)packet;
	attr->test.data_size_in = size;
	attr->test.ctx_in = (uintptr_t)&context;
	attr->test.ctx_size_in = sizeof(context);
	return sys_bpf(BPF_PROG_TEST_RUN, attr);
}

/* Gives a packet to the host's stack as one that the interface received. */
static void hand_over(struct pacer *p, const void *frame, uint32_t size)
{
	union bpf_attr attr = {};

	attr.test.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
	attr.test.repeat = 1;
	if (run(p, p->late.hand_over, frame, size, &attr))
		complain(p, "hand a packet to the host");
}

/* Has one packet go on. */
static void go_on(struct pacer *p, const struct ln_late *late)
{
	struct {
		uint32_t ifindex; /* of the interface that it leaves by */
		uint8_t frame[FRAME_SIZE];
	} out;
	union bpf_attr attr = {};
	uint32_t size;

	attr.test.data_out = (uintptr_t)&out;
	attr.test.data_size_out = sizeof(out);
	if (run(p, p->late.program, late, HEAD + late->size, &attr)) {
		complain(p, "run the program that has packets go on");
		return;
	}
	size = attr.test.data_size_out - sizeof(out.ifindex);
	if (attr.test.retval == XDP_TX || attr.test.retval == XDP_REDIRECT)
		send_frame(p, out.ifindex, out.frame, size);
	else if (attr.test.retval == XDP_PASS)
		hand_over(p, out.frame, size);
}

/* Has each waiting packet go on; it waits again if its lambda says so. Returns how many there were. */
static uint32_t look_after_waiting(struct pacer *p)
{
	uint64_t keys[LN_WAITING_MAX], *last = NULL;
	union bpf_attr attr = {};
	struct ln_late late;
	uint32_t n = 0;

	attr.map_fd = p->late.waiting;
	for (; n < LN_WAITING_MAX; last = &keys[n++]) {
		attr.key = (uintptr_t)last;
		attr.next_key = (uintptr_t)&keys[n];
		if (sys_bpf(BPF_MAP_GET_NEXT_KEY, &attr))
			break;
	}
	for (uint32_t i = 0; i < n; i++) {
		attr = (union bpf_attr){ .map_fd = p->late.waiting };
		attr.key = (uintptr_t)&keys[i];
		attr.value = (uintptr_t)&late;
		if (!sys_bpf(BPF_MAP_LOOKUP_ELEM, &attr))
			go_on(p, &late);
	}
	return n;
}

/* Sends packets whose clones went first. The ring is as in Documentation/bpf/ringbuf.rst. Returns true if there are more. */
static bool send_copies(struct pacer *p)
{
	uint64_t at = *p->late.consumed;

	for (int i = 0; i < COPIES_AT_ONCE; i++) {
		const uint8_t *record = p->late.ring + at % LN_COPIES_BYTES;
		uint32_t len;

		if (at == __atomic_load_n(p->late.produced, __ATOMIC_ACQUIRE))
			return false;
		len = __atomic_load_n((const uint32_t *)record, __ATOMIC_ACQUIRE);
		if (len & BPF_RINGBUF_BUSY_BIT)
			return true;
		if (!(len & BPF_RINGBUF_DISCARD_BIT))
			go_on(p, (const struct ln_late *)(record + BPF_RINGBUF_HDR_SZ));
		len &= ~BPF_RINGBUF_DISCARD_BIT;
		at += (BPF_RINGBUF_HDR_SZ + len + 7) & ~7U;
		__atomic_store_n(p->late.consumed, at, __ATOMIC_RELEASE);
	}
	return true;
}

uint64_t late_pace(struct pacer *p)
{
	bool more = send_copies(p);
	uint64_t now = now_ns();

	if (now >= p->late.look)
		p->late.look = now + (look_after_waiting(p) ? BUSY_NS : IDLE_NS);
	return more ? now : p->late.look;
}

void late_open(struct pacer *p, const char *dir)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char path[4096];
	uint8_t *ring;

	p->late.program = open_pin(dir, "ln_later", path);
	p->late.hand_over = open_pin(dir, "ln_hand_over", path);
	p->late.waiting = open_pin(dir, "ln_waiting", path);
	p->late.copies = open_pin(dir, "ln_copies", path);
	p->late.consumed = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, p->late.copies, 0);
	ring = mmap(NULL, page + 2 * LN_COPIES_BYTES, PROT_READ, MAP_SHARED, p->late.copies, page);
	if (p->late.consumed == MAP_FAILED || ring == MAP_FAILED)
		die(path);
	p->late.produced = (const uint64_t *)ring;
	p->late.ring = ring + page;
}
