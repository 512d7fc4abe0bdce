/* SPDX-License-Identifier: BSD-3-Clause */
#include "note.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/abi.h>

/* What '%' and two digits stood for, in place. */
static char *take_text(const char *from)
{
	char *text = strdup(from), *to = text;
	unsigned code;

	for (; text && *from; from++)
		if (*from == '%' && sscanf(from, "%%%2x", &code) == 1 && from[1] && from[2]) {
			*to++ = (char)code;
			from += 2;
		} else {
			*to++ = *from;
		}
	if (text)
		*to = '\0';
	return text;
}

static bool add_storage(struct note *note, const char *uri)
{
	struct note_storage *grown = realloc(note->storages, (note->storage_count + 1) * sizeof(*grown));

	if (!grown)
		return false;
	note->storages = grown;
	grown[note->storage_count] = (struct note_storage){ .uri = take_text(uri) };
	return grown[note->storage_count++].uri != NULL;
}

static bool add_cache(struct note *note, const char *rest)
{
	struct note_cache *grown = realloc(note->caches, (note->cache_count + 1) * sizeof(*grown));
	struct note_cache *cache;

	if (!grown)
		return false;
	note->caches = grown;
	cache = &grown[note->cache_count++];
	return sscanf(rest, "%" SCNx64 " %" SCNu32 " %" SCNu64, &cache->lines, &cache->line_bytes,
		      &cache->bytes) == 3;
}

static bool take_queues(struct note_storage *storage, const char *rest)
{
	return sscanf(rest, "%" SCNx64 " %" SCNu32 " %" SCNu32, &storage->queues, &storage->count,
		      &storage->depth) == 3 &&
	       storage->count <= NOTE_MOST_QUEUES && storage->depth >= 2 &&
	       storage->depth <= NOTE_MOST_DEPTH && !(storage->depth & (storage->depth - 1));
}

static bool take_facts(struct note_storage *storage, const char *rest)
{
	unsigned pull, service;
	int found = sscanf(rest, "%" SCNu32 " %u %u %" SCNu64 " %" SCNu64, &storage->block_bytes, &pull,
			   &service, &storage->wait_ms, &storage->answer_ms);

	storage->pull = found == 5 && pull;
	storage->service = found == 5 && service;
	return found == 5;
}

/* A line of the storage that was begun last. */
static bool take_of_storage(struct note *note, const char *word, const char *rest)
{
	struct note_storage *storage = note->storage_count ? &note->storages[note->storage_count - 1] : NULL;

	if (!storage)
		return false;
	if (!strcmp(word, "queues"))
		return take_queues(storage, rest);
	if (!strcmp(word, "facts"))
		return take_facts(storage, rest);
	if (!strcmp(word, "recovered"))
		return sscanf(rest, "%" SCNx64, &storage->recovered) == 1;
	if (!strcmp(word, "network"))
		return sscanf(rest, "%" SCNx64, &storage->network) == 1;
	return !strcmp(word, "late") &&
	       sscanf(rest, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNu64, &storage->seen, &storage->snapped,
		      &storage->copies, &storage->first_ticket) == 4;
}

static bool take_line(struct note *note, const char *word, const char *rest)
{
	unsigned flag;

	if (!strcmp(word, "pid"))
		return atoi(rest) == note->pid;
	if (!strcmp(word, "start"))
		return sscanf(rest, "%" SCNu64, &note->start) == 1;
	if (!strcmp(word, "number"))
		return sscanf(rest, "%u", &note->number) == 1;
	if (!strcmp(word, "device"))
		return !note->device && (note->device = take_text(rest)) != NULL;
	if (!strcmp(word, "shared") && sscanf(rest, "%u", &flag) == 1) {
		note->shared = flag != 0;
		return true;
	}
	if (!strcmp(word, "target"))
		return sscanf(rest, "%" SCNx64 " %u %" SCNu64, &note->target, &note->target_threads,
			      &note->target_stride) == 3 &&
		       note->target_threads <= NOTE_MOST_THREADS;
	if (!strcmp(word, "storage"))
		return add_storage(note, rest);
	return !strcmp(word, "cache") ? add_cache(note, rest) : take_of_storage(note, word, rest);
}

/* A storage without its queues' line would be one of depth 0. */
static bool is_complete(const struct note *note)
{
	for (unsigned i = 0; i < note->storage_count; i++)
		if (!note->storages[i].depth)
			return false;
	return note->device && note->start;
}

/* The lines behind the first two. */
static enum note_state take_lines(FILE *file, struct note *note)
{
	char *line = NULL, *rest;
	size_t room = 0;
	ssize_t length;
	bool good = true, ended = false;

	while (good && !ended && (length = getline(&line, &room, file)) > 0) {
		line[length - 1] = '\0'; /* the end of the line, or of a damaged file */
		rest = strchr(line, ' ');
		if (rest)
			*rest++ = '\0';
		ended = !strcmp(line, "end");
		good = ended || (rest && take_line(note, line, rest));
	}
	free(line);
	return good && ended && is_complete(note) ? NOTE_GOOD : NOTE_DAMAGED;
}

static enum note_state take(FILE *file, struct note *note)
{
	if (fscanf(file, "weir-context %u\nabi %u\n", &note->layout, &note->abi) != 2)
		return NOTE_DAMAGED;
	if (note->layout != WEIR_PUBLISH_LAYOUT || note->abi != WEIR_ABI_VERSION)
		return NOTE_VERSION;
	return take_lines(file, note);
}

bool note_read(const char *path, int pid, struct note *note)
{
	int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "r");

	*note = (struct note){ .pid = pid };
	snprintf(note->path, sizeof(note->path), "%s", path);
	if (!file) {
		if (descriptor >= 0)
			(void)close(descriptor);
		return false;
	}
	if (fstat(descriptor, &note->was) != 0 || !S_ISREG(note->was.st_mode)) {
		(void)fclose(file);
		return false;
	}
	note->state = take(file, note);
	(void)fclose(file);
	return true;
}

bool note_changed(const struct note *note)
{
	struct stat now;

	return stat(note->path, &now) != 0 || now.st_ino != note->was.st_ino ||
	       now.st_mtim.tv_sec != note->was.st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != note->was.st_mtim.tv_nsec;
}

void note_release(struct note *note)
{
	for (unsigned i = 0; i < note->storage_count; i++)
		free(note->storages[i].uri);
	free(note->storages);
	free(note->caches);
	free(note->device);
}
