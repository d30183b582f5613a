// SPDX-License-Identifier: Apache-2.0
/* A revision's shared library: how it is loaded, and where in it the state is that the next revision may take over. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host.h"

/*
 * What we read of an ELF file. The loader has accepted the file, but not checked its section headers.
 */
struct elf {
	const uint8_t *data;
	size_t size;
};

static const void *elf_at(const struct elf *elf, uint64_t off, uint64_t len)
{
	return off > elf->size || len > elf->size - off ? NULL : elf->data + off;
}

/* Finds a section by its name. The linker's __start_ symbols exist only where code refers to them. */
static void find_section(const struct elf *elf, const char *name, uint64_t *addr, size_t *size)
{
	const ElfW(Ehdr) *eh = elf_at(elf, 0, sizeof(*eh));
	const ElfW(Shdr) * sh, *strings;
	const char *text;

	*addr = *size = 0;
	if (!eh || eh->e_shentsize != sizeof(*sh) || eh->e_shstrndx >= eh->e_shnum || eh->e_shoff % sizeof(uint64_t))
		return;
	sh = elf_at(elf, eh->e_shoff, eh->e_shnum * sizeof(*sh));
	if (!sh)
		return;
	strings = &sh[eh->e_shstrndx];
	for (int i = 0; i < eh->e_shnum; i++) {
		if (sh[i].sh_name >= strings->sh_size)
			continue;
		text = elf_at(elf, strings->sh_offset + sh[i].sh_name, strlen(name) + 1);
		if (text && !memcmp(text, name, strlen(name) + 1)) {
			*addr = sh[i].sh_addr;
			*size = sh[i].sh_size;
			return;
		}
	}
}

/* Bytes that the library's variables will take. */
static uint64_t writable(const struct elf *elf)
{
	const ElfW(Ehdr) *eh = elf_at(elf, 0, sizeof(*eh));
	const ElfW(Phdr) * ph;
	uint64_t sum = 0;

	if (!eh || eh->e_phentsize != sizeof(*ph) || eh->e_phoff % sizeof(uint64_t))
		return 0;
	ph = elf_at(elf, eh->e_phoff, eh->e_phnum * sizeof(*ph));
	for (int i = 0; ph && i < eh->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD && ph[i].p_flags & PF_W)
			sum += ph[i].p_memsz;
	}
	return sum;
}

/*
 * Whether the library may write [addr, addr + size) of its memory, so that a wrong header harms nobody but its
 * author.
 */
struct range {
	const struct link_map *map;
	uint64_t addr;
	size_t size;
};

static int is_writable(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct range *range = arg;

	(void)size;
	if (info->dlpi_addr != range->map->l_addr)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_W && range->addr >= ph->p_vaddr &&
		    range->size <= ph->p_memsz && range->addr - ph->p_vaddr <= ph->p_memsz - range->size)
			return 1;
	}
	return 0;
}

static int find_objects(const struct revision *rev, const struct elf *elf, const char *name, struct objects *found)
{
	struct range range = { 0 };

	find_section(elf, name, &range.addr, &range.size);
	if (!range.size)
		return 0;
	if (dlinfo(rev->object, RTLD_DI_LINKMAP, &range.map) || dl_iterate_phdr(is_writable, &range) != 1)
		return -EINVAL;
	found->at = (void *)(range.map->l_addr + range.addr);
	found->size = range.size;
	return 0;
}

static int populate_writable(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct link_map *map = arg;

	(void)size;
	if (info->dlpi_addr != map->l_addr)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_W)
			populate((void *)(info->dlpi_addr + ph->p_vaddr), ph->p_memsz);
	}
	return 1;
}

/* Gives the library's variables their memory. */
void object_populate(const struct revision *rev)
{
	struct link_map *map;

	if (!dlinfo(rev->object, RTLD_DI_LINKMAP, &map))
		dl_iterate_phdr(populate_writable, map);
}

void object_close(struct revision *rev)
{
	for (int i = 0; i < MAX_THREADS; i++)
		free(rev->heaps[i]);
	if (rev->object)
		dlclose(rev->object);
	if (rev->file >= 0)
		close(rev->file);
	free(rev);
}

static int load_object(struct revision *rev, const struct elf *elf, char *why, size_t size)
{
	char name[64];

	if (host.memory && writable(elf) > host.memory) {
		snprintf(why, size, "its variables take %llu bytes, more than limits.memory of %llu",
			 (unsigned long long)writable(elf), (unsigned long long)host.memory);
		return -1;
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d", rev->file);
	rev->object = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!rev->object) {
		snprintf(why, size, "%s", dlerror());
		return -1;
	}
	rev->entry = (lambda_entry *)dlsym(rev->object, "lambda_host_run");
	if (!rev->entry) {
		snprintf(why, size, "no symbol lambda_host_run: build it with the SDK for the host");
		return -1;
	}
	rev->refused = (int (*)(void))dlsym(rev->object, "lambda_host_refused");
	rev->heap = (void *(*)(size_t *))dlsym(rev->object, "lambda_host_heap");
	rev->migrate = (lambda_entry *)dlsym(rev->object, "lambda_host_migrate");
	if (find_objects(rev, elf, "lambda_keep", &rev->state.kept) ||
	    find_objects(rev, elf, "lambda_migrate", &rev->state.migrated) ||
	    find_objects(rev, elf, "lambda_migrate_old", &rev->old)) {
		snprintf(why, size, "a section of objects lies outside its variables");
		return -1;
	}
	return 0;
}

struct revision *object_open(uint32_t number, const char *path, char *why, size_t size)
{
	struct revision *rev = calloc(1, sizeof(*rev));
	struct elf elf = { 0 };
	struct stat st;
	int err = -1;

	if (!rev) {
		snprintf(why, size, "out of memory");
		return NULL;
	}
	rev->number = number;
	rev->file = open(path, O_RDONLY | O_CLOEXEC);
	if (rev->file < 0 || fstat(rev->file, &st)) {
		snprintf(why, size, "%s: %s", path, strerror(errno));
		goto out;
	}
	elf.size = st.st_size;
	elf.data = mmap(NULL, elf.size, PROT_READ, MAP_PRIVATE, rev->file, 0);
	if (elf.data == MAP_FAILED) {
		snprintf(why, size, "%s: %s", path, strerror(errno));
		goto out;
	}
	err = load_object(rev, &elf, why, size);
	munmap((void *)elf.data, elf.size);
out:
	if (!err)
		return rev;
	object_close(rev);
	return NULL;
}
