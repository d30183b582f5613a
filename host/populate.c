// SPDX-License-Identifier: Apache-2.0
/*
 * Allocates the memory that a lambda works on before its run. Otherwise the kernel would give each page on its first touch, in the
 * lambda's time. For some hundred megabytes, that takes longer than most limits.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "host.h"

/* If memory is missing, the lambda still learns that on its first touch. MADV_POPULATE_WRITE is as old as Linux 5.14. */
void populate(void *at, size_t size)
{
	uintptr_t page = sysconf(_SC_PAGESIZE), begin = (uintptr_t)at & -page;
	uintptr_t end = ((uintptr_t)at + size + page - 1) & -page;

	(void)madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}
