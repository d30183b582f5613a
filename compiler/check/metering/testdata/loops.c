/* SPDX-License-Identifier: Apache-2.0 */
/* Metered by hand as the compiler's passes do it, with costs that are too low. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__u64 budget, zero;
} lambda_fuel SEC(".data.fuel");

__u64 inner, outer;

#define CHARGE(slot, spent) \
	asm volatile goto("r0 = *(u64 *)%0; r0 += -1; *(u64 *)%0 = r0; if r0 s< 0 goto %l[" #spent "]; " \
			  "may_goto %l[" #spent "]" ::"m"(slot) \
			  : "r0", "memory" \
			  : spent)

SEC("xdp.frags")
int lambda(struct xdp_md *ctx)
{
	volatile __u64 slot;

	asm volatile("r0 = %1 ll; r0 = *(u64 *)(r0 + 0); *(u64 *)%0 = r0"
		     : "=m"(slot)
		     : "i"(&lambda_fuel)
		     : "r0", "memory");
	for (;;) {
		CHARGE(slot, spent);
		outer++;
		for (__u32 i = 0; i < bpf_get_prandom_u32() % 64; i++) {
			CHARGE(slot, spent);
			inner++;
		}
	}
spent:
	return 2;
}

char LICENSE[] SEC("license") = "GPL";
