// SPDX-License-Identifier: Apache-2.0
/*
 * Which process gets a packet while one replaces another. Both listen at the address, and the kernel would choose by a hash of
 * the client. Instead a program of the sockets' group (socket(7), SO_ATTACH_REUSEPORT_CBPF) chooses a socket by its number in the
 * group. Our sockets have the first numbers, as we were there first. An invalid number leaves the choice to the hash.
 */
#include <errno.h>
#include <linux/filter.h>

#include "host.h"

enum { REQUEST_LOW = 20 }; /* where the lower half of the request ID stands in a packet (docs/protocol.md) */

static int attach(struct sock_filter *code, unsigned int len)
{
	struct sock_fprog program = { .len = len, .filter = code };

	for (unsigned int i = 0; i < host.listen_count; i++) {
		if (setsockopt(host.workers[0].fds[i], SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)))
			return -errno;
	}
	return 0;
}

/* Chooses one of count sockets, by CPU: all workers of a process share its messages. */
static struct sock_filter *choose(struct sock_filter *at, unsigned int first, unsigned int count)
{
	*at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_CPU);
	*at++ = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, count);
	*at++ = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, first);
	*at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
	return at;
}

/* Every packet comes to us, although others begin to listen. */
int steer_here(void)
{
	struct sock_filter code[4], *end = choose(code, 0, host.threads);

	return attach(code, end - code);
}

/*
 * Packets of messages in progress stay ours; all others go to the process with so many workers that follows us. Half a request ID
 * tells messages apart well enough: another client's packet that it sends here by mistake is lost, and is sent again.
 */
int steer_on(unsigned int threads)
{
	static struct sock_filter code[BPF_MAXINSNS];
	uint32_t requests[(BPF_MAXINSNS - 9) / 2];
	unsigned int n = message_requests(requests, sizeof(requests) / sizeof(requests[0]));
	struct sock_filter *at = code, *ours = code + 1 + 2 * n + 4;

	*at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, REQUEST_LOW);
	for (unsigned int i = 0; i < n; i++) {
		*at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, requests[i], 0, 1);
		*at = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, ours - at - 1);
		at++;
	}
	at = choose(at, host.threads, threads);
	at = choose(at, 0, host.threads);
	return attach(code, at - code);
}

/* The kernel's hash chooses again. */
void steer_away(void)
{
	int unused = 0;

	for (unsigned int i = 0; i < host.listen_count; i++)
		(void)setsockopt(host.workers[0].fds[i], SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &unused, sizeof(unused));
}
