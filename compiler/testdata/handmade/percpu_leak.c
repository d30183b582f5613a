/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* refused: an address */
/* A number that depends on the machine's CPUs decides whether the context's address is kept: not on one CPU, but on several. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__attribute__((section(".rodata.parts"), used)) static const struct {
	__s64 fixed;
	__u64 each;
} record[1] = { { -1, 1 } };
__attribute__((section(".data.leak"), used)) __u64 leak = 7;

SEC("xdp.frags")
int lambda(struct xdp_md *ctx)
{
	register struct xdp_md *context asm("r1") = ctx;

	asm volatile("r6 = r1\n"
		     "r1 = %[record] ll\n"
		     "r9 = %[leak] ll\n"
		     "if r1 == 0 goto 1f\n"
		     "*(u64 *)(r9 + 0) = r6\n"
		     "1:\n" ::"r"(context),
		     [record] "i"(&record), [leak] "i"(&leak)
		     : "r1", "r6", "r9", "memory");
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
