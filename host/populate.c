// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that a lambda works on is taken before its run: the kernel gives a page on its first touch, whose time would count as the
 * lambda's, and for some hundred megabytes that is longer than most limits.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "host.h"

/* Of memory that is not to be had the lambda learns as it would else, on its first touch. MADV_POPULATE_WRITE is as old as Linux 5.14. */
void populate(void *at, size_t size)
{
	uintptr_t page = sysconf(_SC_PAGESIZE), begin = (uintptr_t)at & -page;
	uintptr_t end = ((uintptr_t)at + size + page - 1) & -page;

	(void)madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}
