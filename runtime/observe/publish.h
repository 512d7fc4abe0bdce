/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publish.h: where the queue words of this process lie, for a tool that looks at it from outside (weir-stat).
 *
 * Owns: one small file per open context, in a folder that is the user's alone. It says addresses and
 * counts, never contents: those are read from the process as they are then, whatever its threads do.
 * Known to the tool, too, which includes this file and nothing else of the runtime.
 *
 * A file is text. Its first line is "weir-context LAYOUT", the second "abi WEIR_ABI_VERSION"; then come lines
 * of a word and what belongs to it, and "end". Names and URIs are written with '%' and two digits for control
 * characters and '%'.
 *
 * - pid PID
 * - start TIME: field 22 of /proc/PID/stat, which another process of that number has not
 * - number N: of the context in its process
 * - device NAME
 * - shared 0|1: others can read the words where they are
 * - storage URI: begins a storage; of it are:
 *   - queues ADDRESS COUNT DEPTH: struct weir_queue[COUNT]
 *   - late SEEN LOOKED COPIES TICKET: struct weir_tracker_seen[COUNT][DEPTH]; when they were looked at, in ns
 * of CLOCK_MONOTONIC; struct weir_queue[COUNT] as copied then, or 0; the first ticket
 *   - recovered ADDRESS: u64[4]: late, aborted, queues, resets
 *   - network ADDRESS: u64[WEIR_NETWORK_COUNTERS], of a storage on a network alone: connections open now,
 *     reconnects, bytes received, bytes sent, commands sent again, data digests that were wrong, moves from
 * path to path, the path in use, how many paths, the state of each: enum NVME_ANA_, 0 (not known) or
 *     WEIR_NETWORK_PATH_LOST, and the I/O commands that each carried
 *   - facts BLOCK PULL SERVICE WAIT ANSWER: bytes, 0|1, 0|1, ms, ms
 * - cache LINES LINE BYTES: struct weir_lines, bytes of a line, of all
 * - target ADDRESS COUNT STRIDE: instead of a device's storages and caches: a target of COUNT server threads;
 * of each u64[WEIR_TARGET_COUNTERS], STRIDE bytes apart: connections open now, accepted, Connect commands
 * refused, wrong PDUs, commands answered, reconnects, bytes received, bytes sent, since when the oldest
 * command is there (ms of CLOCK_MONOTONIC; 0: there is none)
 */
#ifndef WEIR_RUNTIME_PUBLISH_H
#define WEIR_RUNTIME_PUBLISH_H

#include <stddef.h>
#include <stdint.h>

/** WEIR_PUBLISH_LAYOUT - changes whenever a line above, or struct weir_tracker_seen, changes its meaning */
#define WEIR_PUBLISH_LAYOUT 4

enum {
	WEIR_TARGET_COUNTERS = 9,
	WEIR_NETWORK_PATHS = 8,
	WEIR_NETWORK_PATH_LOST = 0x10,
	WEIR_NETWORK_SCALARS = 9,
	WEIR_NETWORK_COUNTERS = WEIR_NETWORK_SCALARS + 2 * WEIR_NETWORK_PATHS,
	WEIR_PUBLISH_FOLDERS = 4,
	WEIR_PUBLISH_PATH = 192,
};

/**
 * struct weir_tracker_seen - a slot as the watchdog last looked at it
 * @since_ns: when the command of @sequence was first the controller's alone, CLOCK_MONOTONIC
 * @sequence: odd: a command; even: none yet
 */
struct weir_tracker_seen {
	uint64_t since_ns;
	uint32_t sequence;
};

struct weir_context;

/**
 * weir_publish() - write the file of @context, or write it anew
 *
 * After its storages or caches changed, and before memory of one that was closed is gone. A process
 * that cannot write it goes on without: that is no error, and nobody is told.
 */
void weir_publish(struct weir_context *context);

/** weir_publish_end() - remove the file; none is fine */
void weir_publish_end(struct weir_context *context);

/** struct weir_publication - a file of something that is no context; zeroed at first */
struct weir_publication {
	char *path;
	unsigned number;
	int publisher;
};

/** weir_publish_target() - write the file of a target, whose counters stay there until
 * weir_publish_target_end() */
void weir_publish_target(struct weir_publication *publication, uintptr_t counters, unsigned count,
			 size_t stride);
void weir_publish_target_end(struct weir_publication *publication);

/**
 * weir_publish_folder() - where files of user @uid may be
 * @index: 0: $XDG_RUNTIME_DIR/weir as @runtime_dir has it (NULL: there is none); then /run/user, /dev/shm,
 * /tmp
 *
 * Return: length of @path, 0 if there is no such place.
 */
size_t weir_publish_folder(unsigned index, unsigned uid, const char *runtime_dir,
			   char path[WEIR_PUBLISH_PATH]);

/** weir_publish_start() - field 22 of the contents of a /proc/PID/stat; 0: it is none */
uint64_t weir_publish_start(const char *stat);

#endif
