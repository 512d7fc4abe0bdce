/* SPDX-License-Identifier: BSD-3-Clause */
#include "scarce.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../runtime/device/context.h"

enum { MOST_KEPT = 1 << 14 };

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *memory);

/* struct kept - what was given, and to whom */
static struct kept {
	const void *what;
	size_t where;
} kept[MOST_KEPT];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* struct code - of a library */
static struct code {
	uintptr_t begin, end;
} libraries[2];

static size_t kept_count, calls, fail_at;
static bool on, later, alone;
static _Thread_local bool here;

/* Where the code of libweir and libweir-dataset is. */
static int find_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *name = strrchr(info->dlpi_name, '/');
	bool dataset = name && strncmp(name, "/libweir-dataset.so", 19) == 0;
	struct code *to = &libraries[dataset];

	(void)size;
	(void)unused;
	if (!dataset && (!name || strncmp(name, "/libweir.so", 11) != 0))
		return 0;
	to->begin = info->dlpi_addr;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t end = to->begin + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && end > to->end)
			to->end = end;
	}
	return 0;
}

void scarce_begin(size_t nth, bool and_later)
{
	if (!libraries[0].begin)
		dl_iterate_phdr(find_library, NULL);
	pthread_mutex_lock(&mutex);
	calls = 0;
	fail_at = nth;
	later = and_later;
	on = true;
	pthread_mutex_unlock(&mutex);
}

void scarce_alone(void)
{
	alone = here = true;
}

size_t scarce_end(void)
{
	size_t were;

	pthread_mutex_lock(&mutex);
	on = false;
	were = calls;
	pthread_mutex_unlock(&mutex);
	return were;
}

size_t scarce_blocks(const struct weir_context *context)
{
	size_t count = 0;

	for (const struct weir_memory_block *block = context->memory; block; block = block->next)
		count++;
	return count;
}

size_t scarce_kept(size_t *where)
{
	size_t count;

	pthread_mutex_lock(&mutex);
	count = kept_count;
	for (size_t i = 0; i < MOST_KEPT; i++)
		if (kept[i].what)
			*where = kept[i].where;
	pthread_mutex_unlock(&mutex);
	return count;
}

/* Which of the libraries @caller is of, or NULL. */
static const struct code *of_library(const void *caller)
{
	for (unsigned i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
		if ((uintptr_t)caller >= libraries[i].begin && (uintptr_t)caller < libraries[i].end)
			return &libraries[i];
	return NULL;
}

/* The library asks. Return: it must go without. */
static bool refuse(const void *caller)
{
	bool fails;

	if (!of_library(caller) || (alone && !here))
		return false;
	pthread_mutex_lock(&mutex);
	calls += on;
	fails = on && fail_at && (later ? calls >= fail_at : calls == fail_at);
	pthread_mutex_unlock(&mutex);
	return fails;
}

/* It was given. What is already there when counting begins is not known, nor is it when it is given back. */
static void keep(const void *what, const void *caller)
{
	const struct code *library = of_library(caller);

	if (!what || what == MAP_FAILED || !library)
		return;
	pthread_mutex_lock(&mutex);
	for (size_t i = (uintptr_t)what / 16 % MOST_KEPT, tries = 0; tries < MOST_KEPT;
	     i = (i + 1) % MOST_KEPT, tries++)
		if (!kept[i].what) {
			kept[i] = (struct kept){ what, (uintptr_t)caller - library->begin };
			kept_count++;
			break;
		}
	pthread_mutex_unlock(&mutex);
}

/* Given back: by whomever. */
static void give_back(const void *what)
{
	if (!what || !libraries[0].begin)
		return;
	pthread_mutex_lock(&mutex);
	for (size_t i = 0, at = (uintptr_t)what / 16 % MOST_KEPT; kept_count && i < MOST_KEPT;
	     i++, at = (at + 1) % MOST_KEPT)
		if (kept[at].what == what) {
			kept[at].what = NULL;
			kept_count--;
			break;
		}
	pthread_mutex_unlock(&mutex);
}

#define CALLER     __builtin_return_address(0)
#define NEXT(name) (__extension__(__typeof__(&(name))) dlsym(RTLD_NEXT, #name))

void *malloc(size_t bytes)
{
	void *memory = refuse(CALLER) ? NULL : __libc_malloc(bytes);

	if (!memory)
		errno = ENOMEM;
	keep(memory, CALLER);
	return memory;
}

void *calloc(size_t count, size_t bytes)
{
	void *memory = refuse(CALLER) ? NULL : __libc_calloc(count, bytes);

	if (!memory)
		errno = ENOMEM;
	keep(memory, CALLER);
	return memory;
}

void *realloc(void *old, size_t bytes)
{
	void *memory = refuse(CALLER) ? NULL : __libc_realloc(old, bytes);

	if (!memory) {
		errno = ENOMEM;
		return NULL;
	}
	give_back(old);
	keep(memory, CALLER);
	return memory;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	void *memory = refuse(CALLER) ? NULL : __libc_memalign(alignment, bytes);

	if (!memory)
		errno = ENOMEM;
	keep(memory, CALLER);
	return memory;
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
	void *given = refuse(CALLER) ? NULL : __libc_memalign(alignment, bytes);

	if (!given)
		return ENOMEM;
	keep(given, CALLER);
	*memory = given;
	return 0;
}

char *strdup(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = refuse(CALLER) ? NULL : __libc_malloc(bytes);

	keep(copy, CALLER);
	return copy ? memcpy(copy, text, bytes) : NULL;
}

void free(void *memory)
{
	give_back(memory);
	__libc_free(memory);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
	void *memory = MAP_FAILED;

	if (refuse(CALLER))
		errno = ENOMEM;
	else
		memory = NEXT(mmap)(address, bytes, protection, flags, file, offset);
	if (!(flags & MAP_FIXED))
		keep(memory, CALLER);
	return memory;
}

/* Threads of the library get the time to touch what is no longer there. */
int munmap(void *address, size_t bytes)
{
	int error;

	give_back(address);
	error = NEXT(munmap)(address, bytes);
	if (on && of_library(CALLER))
		usleep(100);
	return error;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
		   void *argument)
{
	return refuse(CALLER) ? EAGAIN : NEXT(pthread_create)(thread, attributes, start, argument);
}

int eventfd(unsigned count, int flags)
{
	if (!refuse(CALLER))
		return NEXT(eventfd)(count, flags);
	errno = EMFILE;
	return -1;
}

FILE *open_memstream(char **text, size_t *length)
{
	return refuse(CALLER) ? NULL : NEXT(open_memstream)(text, length);
}

struct io_uring;
struct io_uring_params;
int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
int io_uring_queue_init_params(unsigned entries, struct io_uring *ring, struct io_uring_params *params);

int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
	return refuse(CALLER) ? -ENOMEM : NEXT(io_uring_queue_init)(entries, ring, flags);
}

int io_uring_queue_init_params(unsigned entries, struct io_uring *ring, struct io_uring_params *params)
{
	return refuse(CALLER) ? -ENOMEM : NEXT(io_uring_queue_init_params)(entries, ring, params);
}
