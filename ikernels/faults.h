/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Faults. An ikernel that finds what cannot be, such as memory of its own that is not there, calls ik_fault. The first fault stays. The socket gets the message
 * of which it is, and all messages from then on; the daemon is woken, detaches the sockets, and tells the application.
 *
 * An ikernel's own faults are an enum, whose names become what the application is told: behind FAULT_, "impossible fields".
 *
 *	enum ik_own_fault {
 *		DESERIALIZE_FAULT_IMPOSSIBLE_FIELDS = IK_FAULT_OWN,
 *	};
 *
 *	const enum ik_own_fault *ik_own_fault_ __attribute__((unused));
 */
#ifndef IK_FAULTS_H
#define IK_FAULTS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

volatile __u32 ik_faulted; /* the first fault; 0: none */

/* What wakes the daemon. The ikernels of a node have it in common. */
struct ik_fault_event {
	__u32 ikernel; /* its number */
	__u32 code;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536); /* whole pages of any machine. An ikernel has one fault, in 16 bytes */
} ik_faults SEC(".maps");

/*
 * Faults, and returns IK_PASS. Not between ik_begin and ik_end. Where there is no room for the event, the daemon finds the fault when the application next
 * asks for something.
 */
static __noinline enum ik_verdict ik_fault(__u32 code)
{
	struct ik_fault_event *event;
	struct ik_scratch *scratch;
	__u32 zero = 0;

	scratch = bpf_map_lookup_elem(&ik_scratchpads, &zero);
	if (scratch)
		scratch->faulted = 1;
	if (__sync_val_compare_and_swap(&ik_faulted, 0, code))
		return IK_PASS;
	event = bpf_ringbuf_reserve(&ik_faults, sizeof(*event), 0);
	if (!event)
		return IK_PASS;
	event->ikernel = ik_number;
	event->code = code;
	bpf_ringbuf_submit(event, 0);
	return IK_PASS;
}

const enum ik_fault_code *ik_fault_code_ __attribute__((unused));
const struct ik_fault_event *ik_fault_event_ __attribute__((unused));

#endif
