// SPDX-License-Identifier: Apache-2.0
/* Notes of an application to its ikernel. api/ikernel/wire.go says where they are written. */
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ikernel.h"

struct lambdanic_notes {
	struct lambdanic_ikernel *ikernel;
	struct mapping memory;
	const uint64_t *read; /* up to where the ikernel has got notes */
	uint64_t *written; /* up to where there are some, which the application writes */
	uint64_t mask;
	uint64_t at; /* what *written becomes when they are delivered */
};

/* The application maps it, and then needs no descriptor any more. */
static struct lambdanic_notes *open_notes(struct lambdanic_ikernel *k, const struct answer *a)
{
	struct lambdanic_notes *n = calloc(1, sizeof(*n));

	if (!n || !mapping_open(&n->memory, a->descriptors[0], a->body.number, PROT_READ, PROT_READ | PROT_WRITE)) {
		free(n);
		return NULL;
	}
	n->ikernel = k;
	n->read = n->memory.first;
	n->written = n->memory.second;
	n->mask = n->memory.size - 1;
	n->at = *n->written;
	return n;
}

void notes_close(struct lambdanic_notes *notes)
{
	if (!notes)
		return;
	mapping_close(&notes->memory);
	free(notes);
}

int lambdanic_notes_open(struct lambdanic_ikernel *ikernel, struct lambdanic_notes **notes)
{
	struct answer a;
	int err;

	if (!ikernel || !notes)
		return LAMBDANIC_BAD_ARGUMENT;
	*notes = NULL;
	err = ikernel_exchange(ikernel->all, (struct head){ LN_IKERNEL_OPERATION_NOTES, ikernel->number }, NULL, 0, -1,
			       &a);
	if (err)
		return err;
	if (a.descriptors_count != 1 || a.len != sizeof(a.body.number))
		return ikernel_bad_answer(&a);
	*notes = ikernel->notes = open_notes(ikernel, &a);
	ikernel_close_descriptors(&a);
	return *notes ? LAMBDANIC_OK : LAMBDANIC_SYSTEM;
}

int lambdanic_notes_reserve(struct lambdanic_notes *notes, size_t len, void **note)
{
	const uint64_t head = len;
	uint64_t next;
	uint8_t *to;

	if (!notes || !note || len > notes->memory.size - BPF_RINGBUF_HDR_SZ)
		return LAMBDANIC_BAD_ARGUMENT;
	next = notes->at + ((BPF_RINGBUF_HDR_SZ + len + 7) & ~UINT64_C(7));
	if (next - __atomic_load_n(notes->read, __ATOMIC_ACQUIRE) > notes->memory.size)
		return LAMBDANIC_FULL;
	to = notes->memory.bytes + (notes->at & notes->mask);
	memcpy(to, &head, sizeof(head));
	*note = to + BPF_RINGBUF_HDR_SZ;
	notes->at = next;
	return LAMBDANIC_OK;
}

int lambdanic_notes_deliver(struct lambdanic_notes *notes, uint32_t *delivered)
{
	struct answer a;
	int err;

	if (!notes)
		return LAMBDANIC_BAD_ARGUMENT;
	__atomic_store_n(notes->written, notes->at, __ATOMIC_RELEASE);
	err = ikernel_exchange(notes->ikernel->all,
			       (struct head){ LN_IKERNEL_OPERATION_DELIVER, notes->ikernel->number }, NULL, 0, -1, &a);
	if (err)
		return err;
	if (a.len != sizeof(a.body.number))
		return ikernel_bad_answer(&a);
	if (delivered)
		*delivered = a.body.number;
	return LAMBDANIC_OK;
}
