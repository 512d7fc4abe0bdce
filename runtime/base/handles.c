/* SPDX-License-Identifier: BSD-3-Clause */
#include "handles.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../backend/error.h"

enum { BUCKETS = 256, MOST_CLOSED = 256, NAME_BYTES = 96 };

/** struct entry - an object, open or closed */
struct entry {
	struct entry *next;
	void *object;
	enum weir_handle_kind kind;
	bool closed;
	char name[NAME_BYTES];
};

/** struct kind - how sentences call it */
struct kind {
	const char *name;
	const char *maker;
};

static const struct kind kinds[WEIR_HANDLE_KINDS] = {
	[WEIR_HANDLE_CONTEXT] = { "context", "weir_context_open()" },
	[WEIR_HANDLE_STORAGE] = { "storage", "weir_storage_open()" },
	[WEIR_HANDLE_CACHE] = { "cache", "weir_cache_create()" },
	[WEIR_HANDLE_REGISTRATION] = { "registration", "weir_register()" },
	[WEIR_HANDLE_BATCH] = { "batch", "weir_file_submit()" },
	[WEIR_HANDLE_POOL] = { "pool", "weir_pool_create()" },
	[WEIR_HANDLE_GPUS] = { "list of GPUs", "weir_gpus_open()" },
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct entry *buckets[BUCKETS];
static void *closed[MOST_CLOSED]; /* a ring: the objects closed last */
static size_t closed_count;

static struct entry **bucket_of(const void *object)
{
	uint64_t address = (uintptr_t)object;

	return &buckets[(address * 0x9e3779b97f4a7c15u) >> 56];
}

/* The link to the entry of @object, or to NULL. Mutex held. */
static struct entry **find(const void *object)
{
	struct entry **link = bucket_of(object);

	while (*link && (*link)->object != object)
		link = &(*link)->next;
	return link;
}

int weir_handle_add(void *object, enum weir_handle_kind kind, const char *name)
{
	struct entry *entry = calloc(1, sizeof(*entry)), **bucket = bucket_of(object);

	if (!entry)
		return weir_fail(ENOMEM, "no memory to note a %s", kinds[kind].name);
	entry->object = object;
	entry->kind = kind;
	snprintf(entry->name, sizeof(entry->name), "%s", name);
	pthread_mutex_lock(&mutex);
	entry->next = *bucket;
	*bucket = entry;
	pthread_mutex_unlock(&mutex);
	return 0;
}

/* What is wrong with a handle whose entry is @entry, if it has one. Mutex held. */
static int refuse(const struct entry *entry, enum weir_handle_kind kind, const char *call)
{
	const char *space = entry && *entry->name ? " " : "";

	if (!entry)
		return weir_fail(EINVAL,
				 "%s: there is no such %s; it was closed, or never opened: give one from %s",
				 call, kinds[kind].name, kinds[kind].maker);
	if (entry->kind != kind)
		return weir_fail(EINVAL, "%s: needs a %s and was given a %s%s%s", call, kinds[kind].name,
				 kinds[entry->kind].name, space, entry->name);
	return weir_fail(EINVAL, "%s: the %s%s%s is closed already; give one from %s that is open", call,
			 kinds[kind].name, space, entry->name, kinds[kind].maker);
}

int weir_handle_check(const void *handle, enum weir_handle_kind kind, const char *call)
{
	const struct entry *entry;
	int error = 0;

	if (!handle)
		return weir_fail(EINVAL, "%s: NULL is no %s; give one from %s", call, kinds[kind].name,
				 kinds[kind].maker);
	pthread_mutex_lock(&mutex);
	entry = *find(handle);
	if (!entry || entry->kind != kind || entry->closed)
		error = refuse(entry, kind, call);
	pthread_mutex_unlock(&mutex);
	return error;
}

/* The object that was closed longest ago goes. Mutex held. */
static void drop(void *object)
{
	struct entry **link = find(object), *entry = *link;

	if (!entry)
		return;
	*link = entry->next;
	free(entry->object);
	free(entry);
}

void weir_handle_retire(void *object)
{
	struct entry *entry;

	pthread_mutex_lock(&mutex);
	entry = *find(object);
	if (entry && !entry->closed) {
		size_t location = closed_count++ % MOST_CLOSED;

		entry->closed = true;
		drop(closed[location]);
		closed[location] = object;
	}
	pthread_mutex_unlock(&mutex);
}

int weir_given(const void *pointer, const char *call, const char *name)
{
	return pointer ? 0 : weir_fail(EINVAL, "%s: NULL was given for %s", call, name);
}
