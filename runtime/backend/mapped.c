/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mapped.c: device memory that is not the process's own but a file's: cpu:memory=PATH.
 *
 * Owns: the mapping of that file, and which parts of it are allocated. The file is what another device's
 * memory looks like to programs, such as /sys/bus/pci/devices/ADDRESS/resource2_wc for a BAR, or a window
 * over one of the kernel module weir_p2p.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "mapped.h"

/** struct part - an allocation: [at, at + bytes) of the mapping; those of a list are in order */
struct part {
	struct part *next;
	size_t at;
	size_t bytes;
};

struct weir_mapped {
	pthread_mutex_t lock;
	struct part *parts;
	int file; /* locked: two that allocate from one file would give out the same */
	char *mapped;
	struct weir_window window; /* host is NULL where it is none */
	size_t bytes;
	size_t free_bytes;
	char path[];
};

/* What the module calls it; nobody else has any of it. */
static int map_window(struct weir_mapped *memory)
{
	int error = weir_window_take(memory->file, memory->path, &memory->window);

	if (error)
		return error;
	memory->bytes = memory->free_bytes = memory->window.bytes;
	memory->mapped = memory->window.host;
	return 0;
}

static int map_file(struct weir_mapped *memory)
{
	struct stat state;

	memory->file = open(memory->path, O_RDWR | O_CLOEXEC);
	if (memory->file < 0)
		return weir_fail(errno, "\"cpu:memory=%s\": cannot open it: %s", memory->path,
				 strerror(errno));
	if (fstat(memory->file, &state) == 0 && S_ISCHR(state.st_mode))
		return map_window(memory);
	if (fstat(memory->file, &state) != 0 || state.st_size < (off_t)WEIR_MAPPED_PAGE)
		return weir_fail(EINVAL,
				 "\"cpu:memory=%s\": it has less than a page; give a file of the size that "
				 "the device's "
				 "memory is to have, such as resource2_wc of a PCI function",
				 memory->path);
	if (flock(memory->file, LOCK_EX | LOCK_NB) != 0)
		return weir_fail(EBUSY,
				 "\"cpu:memory=%s\": another context, of this or another program, has it",
				 memory->path);
	memory->bytes = memory->free_bytes = (size_t)state.st_size & ~(WEIR_MAPPED_PAGE - 1);
	memory->mapped = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->file, 0);
	if (memory->mapped == MAP_FAILED)
		return weir_fail(errno, "\"cpu:memory=%s\": cannot map %zu bytes of it: %s", memory->path,
				 memory->bytes, strerror(errno));
	return 0;
}

int weir_mapped_open(const char *path, struct weir_mapped **out)
{
	struct weir_mapped *memory = calloc(1, sizeof(*memory) + strlen(path) + 1);
	int error;

	if (!memory)
		return weir_fail(ENOMEM, "no memory for the cpu backend");
	strcpy(memory->path, path);
	pthread_mutex_init(&memory->lock, NULL);
	memory->mapped = MAP_FAILED;
	memory->file = -1;
	error = map_file(memory);
	if (error) {
		weir_mapped_close(memory);
		return error;
	}
	*out = memory;
	return 0;
}

void weir_mapped_close(struct weir_mapped *memory)
{
	struct part *part;

	if (!memory)
		return;
	while ((part = memory->parts)) {
		memory->parts = part->next;
		free(part);
	}
	if (memory->window.host)
		weir_window_leave(&memory->window);
	else if (memory->mapped != MAP_FAILED)
		munmap(memory->mapped, memory->bytes);
	if (memory->file >= 0)
		close(memory->file);
	pthread_mutex_destroy(&memory->lock);
	free(memory);
}

/* Into the first gap that is large enough. */
static bool location(struct weir_mapped *memory, struct part *part)
{
	struct part **link = &memory->parts;

	part->at = 0;
	while (*link && (*link)->at - part->at < part->bytes) {
		part->at = (*link)->at + (*link)->bytes;
		link = &(*link)->next;
	}
	if (!*link && memory->bytes - part->at < part->bytes)
		return false;
	part->next = *link;
	*link = part;
	memory->free_bytes -= part->bytes;
	return true;
}

static size_t pages(size_t bytes)
{
	return (bytes + WEIR_MAPPED_PAGE - 1) & ~(WEIR_MAPPED_PAGE - 1);
}

int weir_mapped_take(struct weir_mapped *memory, size_t bytes, void **out)
{
	struct part *part = calloc(1, sizeof(*part));
	bool placed;

	if (!part)
		return weir_fail(ENOMEM, "no memory to note an allocation");
	part->bytes = pages(bytes);
	pthread_mutex_lock(&memory->lock);
	placed = location(memory, part);
	pthread_mutex_unlock(&memory->lock);
	if (!placed) {
		free(part);
		return weir_fail(
			ENOMEM, "cannot allocate %zu bytes: \"cpu:memory=%s\" has %zu, of which %zu are free",
			bytes, memory->path, memory->bytes, memory->free_bytes);
	}
	*out = memory->mapped + part->at;
	memset(*out, 0, part->bytes);
	return 0;
}

void weir_mapped_give(struct weir_mapped *memory, void *address)
{
	size_t at = (size_t)((char *)address - memory->mapped);
	struct part **link = &memory->parts, *part;

	pthread_mutex_lock(&memory->lock);
	while (*link && (*link)->at != at)
		link = &(*link)->next;
	part = *link;
	if (part) {
		*link = part->next;
		memory->free_bytes += part->bytes;
	}
	pthread_mutex_unlock(&memory->lock);
	free(part);
}

const struct weir_window *weir_mapped_window(const struct weir_mapped *memory)
{
	return memory->window.host ? &memory->window : NULL;
}

void weir_mapped_room(struct weir_mapped *memory, uint64_t *bytes, uint64_t *free_bytes)
{
	pthread_mutex_lock(&memory->lock);
	*bytes = memory->bytes;
	*free_bytes = memory->free_bytes;
	pthread_mutex_unlock(&memory->lock);
}
