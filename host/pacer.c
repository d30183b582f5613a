// SPDX-License-Identifier: Apache-2.0
/*
 * pacer tells clients that their external call timed out, with or without a daemon.
 *
 *	pacer PINS IFINDEX
 *
 * A NIC program acts on packets only, and a service that stays silent sends none. pacer watches the records of the calls
 * in flight. When one is past its deadline it has the program PINS/expire turn a carrier into the error packet, and sends
 * that by the interface. It must be started in the interface's network namespace, with a log as standard error. It locks
 * the log (fcntl(2)), so that there is one pacer per NIC and anybody can ask which process it is, and closes standard
 * output when it is at work. It ends when PINS/expire is no longer the program that it began with.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>

#include "layout.h"

/*
 * How often to look for new calls: while some are in flight, and while there are none. A time-out that is longer than this is
 * noticed when it is due, a shorter one at most so much later. What is idle takes 0.05 % of a CPU.
 */
#define BUSY_NS 10000000ULL
#define IDLE_NS 50000000ULL
#define SECOND_NS 1000000000ULL

#define CARRIER_SIZE 256 /* more than headers of an error packet take */
#define WORD_BITS 64

struct pacer {
	const char *pin;
	ino_t pin_inode;
	int expire; /* the program */
	int socket;
	const struct ln_call *calls;
	const uint64_t *next; /* ln_next_call */
	uint64_t seen; /* calls that began before our last look: below this number */
	int complaint; /* the last error that we wrote down */
	uint64_t open[LN_MAX_CALLS / WORD_BITS]; /* a set of indices: calls that may be in flight */
};

static void die(const char *what)
{
	fprintf(stderr, "pacer: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Says what is wrong, once for as long as it stays the same. */
static void complain(struct pacer *p, const char *what)
{
	if (p->complaint != errno)
		fprintf(stderr, "pacer: %s: %s\n", what, strerror(errno));
	p->complaint = errno;
}

static int sys_bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int open_pin(const char *dir, const char *name, char path[4096])
{
	union bpf_attr attr = {};
	int fd;

	if (snprintf(path, 4096, "%s/%s", dir, name) >= 4096) {
		errno = ENAMETOOLONG;
		die(dir);
	}
	attr.pathname = (uintptr_t)path;
	fd = sys_bpf(BPF_OBJ_GET, &attr);
	if (fd < 0)
		die(path);
	return fd;
}

static const void *map_pin(const char *dir, const char *name, size_t size)
{
	char path[4096];
	int fd = open_pin(dir, name, path);
	void *mem = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (mem == MAP_FAILED)
		die(path);
	close(fd);
	return mem;
}

/* A socket that sends whole frames by one interface and receives nothing (packet(7), protocol 0). */
static int open_interface(const char *ifindex)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_ifindex = atoi(ifindex) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)))
		die("open interface");
	return fd;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts))
		die("read the clock");
	return ts.tv_sec * SECOND_NS + ts.tv_nsec;
}

static ino_t inode(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

/* Has one call expire, unless its reply comes first. */
static void expire(struct pacer *p, uint32_t index)
{
	uint8_t carrier[CARRIER_SIZE] = {}, packet[CARRIER_SIZE];
	union bpf_attr attr = {};

	memcpy(carrier, &index, sizeof(index));
	attr.test.prog_fd = p->expire;
	attr.test.data_in = (uintptr_t)carrier;
	attr.test.data_size_in = sizeof(carrier);
	attr.test.data_out = (uintptr_t)packet;
	attr.test.data_size_out = sizeof(packet);
	if (sys_bpf(BPF_PROG_TEST_RUN, &attr))
		complain(p, "run the expire program");
	else if (attr.test.retval == XDP_TX && send(p->socket, packet, attr.test.data_size_out, MSG_DONTWAIT) < 0)
		complain(p, "send a time-out");
}

/* Whether a record's call is in flight, and when it is due. */
static bool in_flight(const struct ln_call *call, uint64_t *due)
{
	uint32_t state = __atomic_load_n(&call->state, __ATOMIC_ACQUIRE);

	*due = state == LN_CALL_WAITING ? call->deadline_ns + 1 : UINT64_MAX;
	return state;
}

/* Looks at all calls that may be in flight, and returns when to look again. */
static uint64_t pace(struct pacer *p)
{
	uint64_t next = __atomic_load_n(p->next, __ATOMIC_ACQUIRE);
	uint64_t now = now_ns(), wake = now + BUSY_NS, due;
	bool idle = next == p->seen;

	for (uint32_t w = 0; w < LN_MAX_CALLS / WORD_BITS; w++) {
		for (uint64_t left = p->open[w]; left; left &= left - 1) {
			uint32_t bit = __builtin_ctzll(left), index = w * WORD_BITS + bit;

			idle = false;
			if (!in_flight(&p->calls[index], &due))
				p->open[w] &= ~(1ULL << bit);
			else if (due <= now)
				expire(p, index);
			else if (due < wake)
				wake = due;
		}
	}
	/* New ones stay for one look at least, for a number is taken shortly before its record says so. */
	if (next - p->seen > LN_MAX_CALLS)
		p->seen = next - LN_MAX_CALLS;
	for (; p->seen != next; p->seen++) {
		uint32_t index = p->seen % LN_MAX_CALLS;

		p->open[index / WORD_BITS] |= 1ULL << (index % WORD_BITS);
		if (in_flight(&p->calls[index], &due) && due < wake)
			wake = due;
	}
	return idle ? now + IDLE_NS : wake;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = { .tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

int main(int argc, char **argv)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	static struct pacer p;
	static char pin[4096];
	uint64_t check = 0, wake;

	if (argc != 3) {
		fprintf(stderr, "usage: pacer PINS IFINDEX\n");
		return 2;
	}
	if (fcntl(STDERR_FILENO, F_SETLK, &lock))
		die("lock the log: another pacer has it");
	p.expire = open_pin(argv[1], "expire", pin);
	p.pin_inode = inode(pin);
	p.calls = map_pin(argv[1], "ln_calls", sizeof(*p.calls) * LN_MAX_CALLS);
	p.next = map_pin(argv[1], "ln_next_call", sizeof(*p.next));
	p.socket = open_interface(argv[2]);
	close(STDOUT_FILENO);
	for (;;) {
		wake = pace(&p);
		if (wake >= check) {
			if (inode(pin) != p.pin_inode)
				return 0;
			check = wake + SECOND_NS;
		}
		sleep_until(wake);
	}
}
