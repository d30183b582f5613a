// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "internal.h"

static const uint8_t padding[LN_RPC_MAX_PAYLOAD];

bool batch_full(const struct batch *b)
{
	return b->count == BATCH_PACKETS;
}

/* batch_add adds a packet with a payload, which is not copied, padded to room bytes, and tags it. */
void batch_add(struct batch *b, struct header *h, const uint8_t *payload, uint32_t len, uint32_t room)
{
	struct outgoing *o = &b->out[b->count];
	struct msghdr *m = &b->msgs[b->count++].msg_hdr;
	unsigned int n = 0;

	h->length = (uint16_t)len;
	header_write(h, &o->head);
	if (b->tagger)
		tagger_tag(b->tagger, &o->head, payload, len);
	o->owner = b->owner;
	o->iov[n++] = (struct iovec){ &o->head, sizeof(o->head) };
	if (len)
		o->iov[n++] = (struct iovec){ (void *)(uintptr_t)payload, len };
	if (room > len)
		o->iov[n++] = (struct iovec){ (void *)(uintptr_t)padding, MIN(room - len, sizeof(padding)) };
	*m = (struct msghdr){ .msg_iov = o->iov, .msg_iovlen = n };
}

unsigned int batch_send(struct batch *b, unsigned int from, int fd)
{
	const bool one = b->count - from == 1;
	ssize_t n;

	do
		n = one ? sendmsg(fd, &b->msgs[from].msg_hdr, MSG_DONTWAIT)
			: sendmmsg(fd, b->msgs + from, b->count - from, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return 0;
	return one ? 1 : (unsigned int)n;
}
