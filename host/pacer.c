// SPDX-License-Identifier: Apache-2.0
/*
 * pacer acts where no packet comes on which the NIC program could act, with or without a daemon.
 *
 *	pacer PINS IFINDEX
 *
 * A silent service sends no packet. So pacer watches the records of the calls in flight. When a call is past its deadline, pacer has
 * the program PINS/ln_expire turn a carrier into the repeated request or the error packet, and sends that by the interface.
 * Nor does a packet come for a match stage's packets that wait for the host, or whose clones went first: pacer has them go on (late.c).
 *
 * pacer must be started in the interface's network namespace, with a log as standard error. It locks the log (fcntl(2)), so that
 * there is one pacer per NIC and anybody can find its process, and closes standard output once it is at work. SIGUSR1 tells it
 * that the host wrote something that packets may wait for. It ends when PINS/ln_expire is no longer the program that it began with.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pacer.h"

#define SECOND_NS 1000000000ULL

#define CARRIER_SIZE 256 /* more than the headers of an error packet */
#define PACKET_SIZE 2048 /* more than a request to a service, with the index before it */

void die(const char *what)
{
	fprintf(stderr, "pacer: %s: %s\n", what, strerror(errno));
	exit(1);
}

void complain(struct pacer *p, const char *what)
{
	if (p->complaint != errno)
		fprintf(stderr, "pacer: %s: %s\n", what, strerror(errno));
	p->complaint = errno;
}

int sys_bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

int open_pin(const char *dir, const char *name, char path[4096])
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

void send_frame(struct pacer *p, uint32_t ifindex, const void *frame, size_t size)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = ifindex };

	if (sendto(p->socket, frame, size, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to)) < 0)
		complain(p, "send a packet");
}

uint64_t now_ns(void)
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

/* Has one call be sent again or expire, unless its reply comes first. */
static void expire(struct pacer *p, uint32_t index)
{
	uint8_t carrier[CARRIER_SIZE] = {}, packet[PACKET_SIZE];
	union bpf_attr attr = {};
	uint32_t ifindex;

	memcpy(carrier, &index, sizeof(index));
	attr.test.prog_fd = p->expire;
	attr.test.data_in = (uintptr_t)carrier;
	attr.test.data_size_in = sizeof(carrier);
	attr.test.data_out = (uintptr_t)packet;
	attr.test.data_size_out = sizeof(packet);
	if (sys_bpf(BPF_PROG_TEST_RUN, &attr)) {
		complain(p, "run the expire program");
	} else if (attr.test.retval == XDP_TX) {
		send_frame(p, p->ifindex, packet, attr.test.data_size_out);
	} else if (attr.test.retval == XDP_REDIRECT) {
		memcpy(&ifindex, packet, sizeof(ifindex));
		send_frame(p, ifindex, packet + sizeof(ifindex), attr.test.data_size_out - sizeof(ifindex));
	}
}

/* Whether a record's call is in flight, and when it is due. */
static bool in_flight(const struct ln_call *call, uint64_t *due)
{
	uint64_t state = __atomic_load_n(&call->state, __ATOMIC_ACQUIRE);

	*due = LN_CALL_STATE(state) == LN_CALL_WAITING ? LN_CALL_DUE(call, state) + 1 : UINT64_MAX;
	return state;
}

/* Adds the calls that began since our last look to the open ones. */
static void look_for_new(struct pacer *p, uint64_t next)
{
	if (next - p->seen > LN_MAX_CALLS)
		p->seen = next - LN_MAX_CALLS;
	for (; p->seen != next; p->seen++) {
		uint64_t entry = __atomic_load_n(&p->log[p->seen % LN_MAX_CALLS], __ATOMIC_ACQUIRE);
		uint32_t index = entry & LN_CALL_NONE;

		if (entry < LN_CALL_LOGGED(p->seen, 0))
			return; /* the call has its number, but no record yet */
		if (index < RECORDS)
			p->open[index / WORD_BITS] |= 1ULL << (index % WORD_BITS);
	}
}

/* Looks at all calls that may be in flight, and returns when to look again. */
static uint64_t pace(struct pacer *p)
{
	uint64_t next = __atomic_load_n(p->next, __ATOMIC_ACQUIRE);
	uint64_t now = now_ns(), wake = now + BUSY_NS, due;
	bool idle = next == p->seen;

	look_for_new(p, next);
	for (uint32_t w = 0; w < RECORDS / WORD_BITS; w++) {
		for (uint64_t left = p->open[w]; left; left &= left - 1) {
			uint32_t bit = __builtin_ctzll(left), index = w * WORD_BITS + bit;
			const struct ln_call *call = &p->calls[index];
			bool open = in_flight(call, &due);

			idle = false;
			if (open && due <= now) {
				expire(p, index);
				open = in_flight(call, &due);
			}
			if (!open)
				p->open[w] &= ~(1ULL << bit);
			else if (due > now && due < wake)
				wake = due;
		}
	}
	return idle ? now + IDLE_NS : wake;
}

static void nothing(int signal)
{
	(void)signal;
}

/* Blocks the signal except while sleep_until() sleeps. */
static void hold_signal(void)
{
	struct sigaction action = { .sa_handler = nothing };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &set, NULL) || sigaction(SIGUSR1, &action, NULL))
		die("hold the signal back");
}

/* Sleeps until that time, the signal, or a packet whose clone went first. */
static void sleep_until(struct pacer *p, uint64_t ns)
{
	uint64_t now = now_ns(), left = ns > now ? ns - now : 0;
	struct timespec ts = { .tv_sec = left / SECOND_NS, .tv_nsec = left % SECOND_NS };
	struct pollfd copies = { .fd = p->late.copies, .events = POLLIN };
	sigset_t none;

	sigemptyset(&none);
	if (ppoll(&copies, 1, &ts, &none) < 0 && errno == EINTR)
		p->late.look = 0;
}

int main(int argc, char **argv)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	static struct pacer p;
	static char pin[4096];
	uint64_t check = 0, wake, look;

	if (close_range(STDERR_FILENO + 1, ~0U, 0)) /* what the caller of `up` had open */
		die("close inherited descriptors");
	if (argc != 3) {
		fprintf(stderr, "usage: pacer PINS IFINDEX\n");
		return 2;
	}
	hold_signal();
	if (fcntl(STDERR_FILENO, F_SETLK, &lock))
		die("lock the log: another pacer has it");
	p.expire = open_pin(argv[1], "ln_expire", pin);
	p.pin_inode = inode(pin);
	memset(p.open, 0xff, sizeof(p.open)); /* an earlier pacer may have watched any of them */
	p.calls = map_pin(argv[1], "ln_calls", sizeof(*p.calls) * RECORDS);
	p.log = map_pin(argv[1], "ln_call_log", sizeof(*p.log) * LN_MAX_CALLS);
	p.next = map_pin(argv[1], "ln_next_call", sizeof(*p.next));
	p.ifindex = atoi(argv[2]);
	p.socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC,
			  0); /* it sends whole frames, and receives nothing (packet(7)) */
	if (p.socket < 0)
		die("open a packet socket");
	late_open(&p, argv[1]);
	close(STDOUT_FILENO);
	for (;;) {
		wake = pace(&p);
		look = late_pace(&p);
		if (look < wake)
			wake = look;
		if (wake >= check) {
			if (inode(pin) != p.pin_inode)
				return 0;
			check = wake + SECOND_NS;
		}
		sleep_until(&p, wake);
	}
}
