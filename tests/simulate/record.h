/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record.h: all that clients ask and hear, as lines that a checker of others reads.
 *
 * Owns: a file of one seed: JSON lines, or EDN maps where its name ends in .edn, with the names of Jepsen's
 * histories. The format: docs/verification.md.
 */
#ifndef WEIR_SIMULATE_RECORD_H
#define WEIR_SIMULATE_RECORD_H

#include <stdbool.h>

#include <weir/types.h>

enum { RECORD_NO_KEY = -1, RECORD_NEMESIS = -1 };

/**
 * struct record_line - an event
 * @process: as of record_process(), or RECORD_NEMESIS
 * @type: invoke, ok, fail, info
 * @what: read, write, flush; of the nemesis lease, power
 * @key: block, or RECORD_NO_KEY
 * @unknown: the value: of a read that is invoked, or fails, and of a flush
 * @lease: of a write that is invoked; 0: not given
 * @durable: of a write that was forced
 * @outsider: a read that was answered by an engine that the map has not in any more
 */
struct record_line {
	i64 process;
	const char *type;
	const char *what;
	i64 key;
	u64 value;
	bool unknown;
	u32 lease;
	bool durable;
	bool outsider;
};

/** record_open() - 0 or a negative errno */
int record_open(const char *path);
/** record_process() - a number that no process had before */
i64 record_process(void);
/** record_add() - does nothing if no file is open */
void record_add(const struct record_line *line);
/** record_close() - 0 or a negative errno: lines that were not written */
int record_close(void);

#endif
