// SPDX-License-Identifier: Apache-2.0
/*
 * Revisions of the lambda: shared libraries, loaded beside each other. A new one takes over between two batches,
 * with the state as it then is. The old ones finish what they began and still answer pulls, then they are
 * unloaded.
 */
#include <stdio.h>

#include "host.h"

/* A superseded revision answers pulls at least this long. */
#define LINGER_NS 10000000000ULL

/* Loads a revision and lets it take over. Returns 0, or -1 and why. */
int revision_load(uint32_t number, const char *path, const struct handover *h, char *why, size_t size)
{
	struct revision *rev, *old = host.current;
	int err;

	if (old && old->number == number)
		return 0;
	if (old && revision_find(number)) {
		snprintf(why, size, "revision %u was superseded: give it a new number", number);
		return -1;
	}
	rev = object_open(number, path, why, size);
	if (!rev)
		return -1;
	object_populate(rev);
	pthread_rwlock_wrlock(&host.world);
	err = state_take_over(rev, old ? &old->state : NULL, h, why, size);
	if (!err) {
		if (old)
			old->superseded_ns = clock_coarse();
		rev->prev = old;
		host.current = rev;
	}
	pthread_rwlock_unlock(&host.world);
	if (err)
		object_close(rev);
	return err;
}

/* The revision of that number, while it still answers pulls. */
struct revision *revision_find(uint32_t number)
{
	struct revision *rev = host.current;

	for (int i = 0; rev && i <= LN_MAX_PREV; i++, rev = rev->prev) {
		if (rev->number == number)
			return rev;
	}
	return NULL;
}

/* Unloads the superseded revisions that nothing needs any more. */
void revision_retire(uint64_t now)
{
	struct revision **at, *rev;
	int age = 0;

	if (!host.current || !host.current->prev)
		return;
	pthread_rwlock_wrlock(&host.world);
	at = &host.current->prev;
	while ((rev = *at)) {
		age++;
		if (atomic_load(&rev->users) || (age <= LN_MAX_PREV && now - rev->superseded_ns < LINGER_NS)) {
			at = &rev->prev;
			continue;
		}
		*at = rev->prev;
		object_close(rev);
	}
	pthread_rwlock_unlock(&host.world);
}
