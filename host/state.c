// SPDX-License-Identifier: Apache-2.0
/*
 * What a revision takes over of the one before it (sdk/lambda.h): kept objects, and a migrated one, as it is or by the
 * lambda's function. The caller has compared their types; here they are only bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host.h"

static bool copy(const struct objects *to, const struct objects *from)
{
	if (!to->size || to->size != from->size)
		return false;
	memcpy(to->at, from->at, to->size);
	return true;
}

static int migrate(struct revision *rev, const struct state *old, char *why, size_t size)
{
	if (!rev->migrate || !copy(&rev->old, &old->migrated)) {
		snprintf(why, size, "it has no LAMBDA_MIGRATE() from an object of %zu bytes", old->migrated.size);
		return -1;
	}
	guard_run(&host.guard, rev->migrate, NULL);
	if (host.guard.fault) {
		snprintf(why, size, "its LAMBDA_MIGRATE() faulted, or did not end");
		return -1;
	}
	return 0;
}

static int take_over(struct revision *rev, const struct state *old, const struct handover *h, char *why, size_t size)
{
	if ((h->keep && !copy(&rev->state.kept, &old->kept)) ||
	    (h->migrate == MIGRATE_AS_IS && !copy(&rev->state.migrated, &old->migrated))) {
		snprintf(why, size, "its objects differ in size from those that it is to take over");
		return -1;
	}
	return h->migrate == MIGRATE_BY_CALL ? migrate(rev, old, why, size) : 0;
}

/* How state_save() begins a file; the objects follow. */
struct header {
	uint64_t kept;
	uint64_t migrated;
};

static int take_over_saved(struct revision *rev, const struct handover *h, char *why, size_t size)
{
	int fd = open(h->saved, O_RDONLY | O_CLOEXEC), err = -1;
	const struct header *head = MAP_FAILED;
	struct state old = { 0 };
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size >= (off_t)sizeof(*head))
		head = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (head == MAP_FAILED || head->kept > st.st_size - sizeof(*head) ||
	    head->migrated != st.st_size - sizeof(*head) - head->kept) {
		snprintf(why, size, "%s holds no state", h->saved);
	} else {
		old.kept = (struct objects){ (void *)(head + 1), head->kept };
		old.migrated = (struct objects){ (char *)(head + 1) + head->kept, head->migrated };
		err = take_over(rev, &old, h, why, size);
	}
	if (head != MAP_FAILED)
		munmap((void *)head, st.st_size);
	if (fd >= 0)
		close(fd);
	return err;
}

/* Fills a new revision's objects, from a file or from the revision before it. Returns 0, or -1 and why. */
int state_take_over(struct revision *rev, const struct state *old, const struct handover *h, char *why, size_t size)
{
	static const struct state none;

	if (h->saved[0])
		return take_over_saved(rev, h, why, size);
	return take_over(rev, old ? old : &none, h, why, size);
}

/* Writes the current revision's state into an existing file, for another process. */
int state_save(const char *path)
{
	struct objects *kept, *migrated;
	struct header head;
	int fd, err = 0;

	if (!host.current)
		return -ENOENT;
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	pthread_rwlock_wrlock(&host.world);
	kept = &host.current->state.kept;
	migrated = &host.current->state.migrated;
	head = (struct header){ kept->size, migrated->size };
	if (write(fd, &head, sizeof(head)) != sizeof(head) || write(fd, kept->at, kept->size) != (ssize_t)kept->size ||
	    write(fd, migrated->at, migrated->size) != (ssize_t)migrated->size)
		err = -EIO;
	pthread_rwlock_unlock(&host.world);
	close(fd);
	return err;
}
