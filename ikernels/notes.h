/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Notes, which an application writes in place for its ikernel. An ikernel that takes notes includes this file after ikernel.h, and defines ik_note. It gets
 * them in order, one at a time, when the application delivers them (Notes.Deliver): not on the way of a datagram.
 */
#ifndef IK_NOTES_H
#define IK_NOTES_H

#include "ikernel.h"

struct {
	__uint(type, BPF_MAP_TYPE_USER_RINGBUF);
	__uint(max_entries, IK_NOTES_MEMORY);
} ik_notes SEC(".maps");

/* What the ikernel does with a note. */
static __always_inline void ik_note(const struct bpf_dynptr *note);

/* Copies bytes of a note that begin at off; not 0 if it is too short. */
static __always_inline long ik_read_note(const struct bpf_dynptr *note, __u32 off, void *to, __u32 len)
{
	return bpf_dynptr_read(to, len, note, off, 0);
}

static long ik_take_note(struct bpf_dynptr *note, void *unused)
{
	ik_note(note);
	return 0;
}

/* Returns how many notes the ikernel got, or an errno below 0. Run by the daemon, and attached nowhere. */
SEC("syscall")
int ik_deliver(void *unused)
{
	return bpf_user_ringbuf_drain(&ik_notes, ik_take_note, NULL, 0);
}

#endif
