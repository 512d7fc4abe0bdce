/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * note.h: the file that an open context leaves (runtime/observe/publish.h), read back.
 *
 * Owns: its text, and whether it can be believed. Never what the addresses in it point to.
 */
#ifndef WEIR_STAT_NOTE_H
#define WEIR_STAT_NOTE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "observe/publish.h"

enum { NOTE_MOST_QUEUES = 1 << 16, NOTE_MOST_DEPTH = 1 << 16, NOTE_MOST_THREADS = 64 };

/** enum note_state - what a file is */
enum note_state {
	NOTE_GOOD,
	NOTE_VERSION, /* of structures that this program does not know */
	NOTE_DAMAGED,
};

/** struct note_storage - a storage as publish.h has it */
struct note_storage {
	char *uri;
	uint64_t queues;
	uint32_t count;
	uint32_t depth;
	uint64_t seen;
	uint64_t snapped;
	uint64_t copies;
	uint64_t first_ticket;
	uint64_t recovered;
	uint64_t network;
	uint32_t block_bytes;
	bool pull;
	bool service;
	uint64_t wait_ms;
	uint64_t answer_ms;
};

/** struct note_cache - a cache */
struct note_cache {
	uint64_t lines;
	uint32_t line_bytes;
	uint64_t bytes;
};

/**
 * struct note - a file, and the context that left it
 * @path: where it is
 * @was: what the file was when it was read: another one since means that the context has changed
 * @target: counters of a target, of @target_threads, @target_stride bytes apart; 0: it is none
 * @pid: of its name, which is good even if nothing else is
 */
struct note {
	char path[WEIR_PUBLISH_PATH + 32];
	struct stat was;
	enum note_state state;
	int pid;
	unsigned layout;
	unsigned abi;
	uint64_t start;
	unsigned number;
	bool shared;
	char *device;
	struct note_storage *storages;
	unsigned storage_count;
	struct note_cache *caches;
	unsigned cache_count;
	uint64_t target;
	unsigned target_threads;
	uint64_t target_stride;
};

/** note_read() - the file @path of process @pid; false: there is none that can be read. Else to be released
 */
bool note_read(const char *path, int pid, struct note *note);
/** note_changed() - the context has written it anew since, or removed it */
bool note_changed(const struct note *note);
/** note_release() - what note_read() allocated */
void note_release(struct note *note);

#endif
