// SPDX-License-Identifier: Apache-2.0
/* Maps rings and notes as libbpf does (ring_buffer__add, user_ring_buffer__new), which needs no privilege. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ikernel.h"

static void *map(int fd, size_t at, size_t len, int protect)
{
	void *memory = mmap(NULL, len, protect, MAP_SHARED, fd, (off_t)at);

	return memory == MAP_FAILED ? NULL : memory;
}

bool mapping_open(struct mapping *m, int fd, size_t size, int protect_first, int protect_second)
{
	*m = (struct mapping){ .page = (size_t)sysconf(_SC_PAGESIZE), .size = size };
	m->first = map(fd, 0, m->page, protect_first);
	if (m->first)
		m->second = map(fd, m->page, m->page + 2 * size, protect_second);
	if (!m->second) {
		mapping_close(m);
		return false;
	}
	m->bytes = (uint8_t *)m->second + m->page;
	return true;
}

void mapping_close(struct mapping *m)
{
	int err = errno;

	if (m->first)
		munmap(m->first, m->page);
	if (m->second)
		munmap(m->second, m->page + 2 * m->size);
	*m = (struct mapping){ 0 };
	errno = err;
}
