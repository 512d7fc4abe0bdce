/* SPDX-License-Identifier: BSD-3-Clause */
#include "publish.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../cache/cache.h"
#include "../device/context.h"
#include "../recovery/tracker.h"
#include "../recovery/watchdog.h"

/* One for the process: of the numbers, and of whoever writes. */
static pthread_mutex_t writer = PTHREAD_MUTEX_INITIALIZER;
static unsigned next_number = 1;

static uint64_t own_start(void)
{
	char text[1024];
	int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? 0 : read(file, text, sizeof(text) - 1);

	if (file >= 0)
		(void)close(file);
	text[length > 0 ? length : 0] = '\0';
	return weir_publish_start(text);
}

/* A folder that nobody else may look into; made if it is not there. */
static bool is_private(const char *path)
{
	struct stat found;

	(void)mkdir(path, 0700);
	return lstat(path, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid() &&
	       !(found.st_mode & 077) && access(path, W_OK | X_OK) == 0;
}

/* What follows the word, with nothing in it that would end the line. */
static void put_text(FILE *out, const char *word, const char *text)
{
	fprintf(out, "%s ", word);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		fprintf(out, *c < ' ' || *c == 0x7f || *c == '%' ? "%%%02x" : "%c", *c);
	fputc('\n', out);
}

static unsigned long long wide(uint64_t value)
{
	return value;
}

static void put_storage(FILE *out, const struct weir_storage *storage)
{
	const struct weir_tracker *tracker = weir_watchdog_tracker(storage);
	struct weir_tracker_slots locations = { .seen = 0 };

	if (tracker)
		weir_tracker_slots(tracker, &locations);
	put_text(out, "storage", storage->uri);
	fprintf(out, "queues %#llx %u %u\n", wide(storage->queues), storage->queue_count, storage->depth);
	fprintf(out, "late %#llx %#llx %#llx %llu\n", wide(locations.seen), wide(locations.polled),
		wide(locations.copies), wide(locations.first_ticket));
	fprintf(out, "recovered %#llx\n", wide((uintptr_t)&storage->recovered));
	if (storage->transport->network)
		fprintf(out, "network %#llx\n", wide(storage->transport->network));
	fprintf(out, "facts %u %d %d %llu %llu\n", 1u << storage->disk.block_log2, storage->pull,
		storage->service != NULL, wide(storage->disk.timeout_ns / 1000000),
		wide(storage->answer_ns / 1000000));
}

static void put_head(FILE *out, unsigned number)
{
	fprintf(out, "weir-context %d\nabi %d\n", WEIR_PUBLISH_LAYOUT, WEIR_ABI_VERSION);
	fprintf(out, "pid %d\nstart %llu\nnumber %u\n", (int)getpid(), wide(own_start()), number);
}

static void put_context(FILE *out, const struct weir_context *context)
{
	struct weir_backend_properties properties = { .wave_lanes = 0 };

	context->backend->ops->properties(context->backend, &properties);
	put_head(out, context->number);
	put_text(out, "device", properties.name);
	fprintf(out, "shared %d\n", properties.shared_memory);
	for (const struct weir_storage *storage = context->open; storage; storage = storage->next)
		put_storage(out, storage);
	for (const struct weir_cache *cache = context->open_caches; cache; cache = cache->next)
		fprintf(out, "cache %#llx %u %llu\n", wide(cache->lines), 1u << cache->line_log2,
			wide(cache->bytes));
	fprintf(out, "end\n");
}

/* The whole file or none: under a name of its own until it is complete. */
static bool write_file(const char *path, const char *text, size_t length)
{
	char begun[WEIR_PUBLISH_PATH + 32];
	const char *name = strrchr(path, '/') + 1;
	bool good;
	int file;

	snprintf(begun, sizeof(begun), "%.*s.%s", (int)(name - path), path, name);
	file = open(begun, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file < 0)
		return false;
	good = write(file, text, length) == (ssize_t)length;
	good = close(file) == 0 && good;
	good = good && rename(begun, path) == 0;
	if (!good)
		(void)unlink(begun);
	return good;
}

/* In the first folder that can be had; afterwards it stays there. */
static void place_file(char **published, unsigned number, const char *text, size_t length)
{
	char folder[WEIR_PUBLISH_PATH], path[WEIR_PUBLISH_PATH + 24];

	for (unsigned i = 0; i < WEIR_PUBLISH_FOLDERS && !*published; i++) {
		if (!weir_publish_folder(i, geteuid(), getenv("XDG_RUNTIME_DIR"), folder) ||
		    !is_private(folder))
			continue;
		snprintf(path, sizeof(path), "%s/%d-%u", folder, (int)getpid(), number);
		if (write_file(path, text, length))
			*published = strdup(path);
	}
}

/* A process that was forked has its parent's contexts, and no file: its words are not the parent's. */
static bool forked(const struct weir_context *context)
{
	return context->number && context->publisher != getpid();
}

static void publish(struct weir_context *context)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out;

	if (!context->number) {
		context->number = next_number++;
		context->publisher = getpid();
	}
	out = open_memstream(&text, &length);
	if (!out)
		return;
	put_context(out, context);
	if (fclose(out) == 0 && context->published && !write_file(context->published, text, length))
		(void)unlink(context->published); /* better none than one that is wrong */
	else if (text && !context->published)
		place_file(&context->published, context->number, text, length);
	free(text);
}

void weir_publish(struct weir_context *context)
{
	pthread_mutex_lock(&writer);
	if (!forked(context))
		publish(context);
	pthread_mutex_unlock(&writer);
}

void weir_publish_end(struct weir_context *context)
{
	pthread_mutex_lock(&writer);
	if (context->published && !forked(context))
		(void)unlink(context->published);
	pthread_mutex_unlock(&writer);
	free(context->published);
	context->published = NULL;
}

void weir_publish_target(struct weir_publication *publication, uintptr_t counters, unsigned count,
			 size_t stride)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return;
	pthread_mutex_lock(&writer);
	publication->number = next_number++;
	publication->publisher = getpid();
	put_head(out, publication->number);
	fprintf(out, "device target\nshared 1\ntarget %#llx %u %zu\nend\n", wide(counters), count, stride);
	if (fclose(out) == 0)
		place_file(&publication->path, publication->number, text, length);
	pthread_mutex_unlock(&writer);
	free(text);
}

void weir_publish_target_end(struct weir_publication *publication)
{
	if (publication->path && publication->publisher == getpid())
		(void)unlink(publication->path);
	free(publication->path);
	publication->path = NULL;
}
