/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p_fuzz.h: the parts of the fuzzer: calls in p2p_fuzz.c, queue pairs that are as they should be in
 * p2p_fuzz_queue.c. */
#ifndef WEIR_TESTS_VM_P2P_FUZZ_H
#define WEIR_TESTS_VM_P2P_FUZZ_H

#include <stddef.h>

#include "p2p_rig.h"

enum { PROCESSES = 3, THINGS = 8, MAPS = 8 };

/* A process's open files. */
enum { CONTROL, RANGES, QUEUES, FILES };

/* What is counted besides the calls, whose rows are their numbers. */
enum {
	ROW_OTHER = 32,
	ROW_ADDRESS,
	ROW_MAP,
	ROW_DOORBELLS,
	ROW_MOVE,
	ROW_READ,
	ROW_TOUCH,
	ROW_CREATE,
	ROW_DELETE,
	ROW_COMMAND,
	ROW_REVOKE,
	ROWS
};

/** struct thing - a range or an import, which may be there still */
struct thing {
	unsigned file;
	uint32_t handle;
};

/** struct map - a mapping; @memory: NULL if there is none */
struct map {
	void *memory;
	size_t bytes;
};

/** struct queue - a queue pair that the controller has, if @created; in a range of its own */
struct queue {
	struct weir_p2p_queue call;
	uint8_t *memory;
	uint8_t *doorbells;
	uint64_t bus;
	uint32_t range;
	bool created;
	unsigned tail, head, phase;
};

/** struct fuzzer - one process; @pair: the last queue pair it got; @first_qid: not the driver's */
struct fuzzer {
	uint64_t state;
	const char *path;
	struct weir_p2p_function gpu;
	struct weir_p2p_function ssd;
	int files[FILES];
	int disk;
	int fake;
	int controller;
	unsigned number;
	unsigned first_qid;
	unsigned children;
	bool child;
	struct thing pair;
	struct thing things[THINGS];
	struct map maps[MAPS];
	struct queue queue;
};

/** fuzz_any() - a random number */
uint64_t fuzz_any(struct fuzzer *fuzzer);

/** fuzz_one_in() - true so often */
bool fuzz_one_in(struct fuzzer *fuzzer, uint64_t count);

/** fuzz_report() - count; if it has not @worked, by errno; return: @worked */
bool fuzz_report(unsigned row, bool worked);

/** fuzz_guarded() - run what may end with SIGBUS; return: whether it did not */
bool fuzz_guarded(void (*run)(void *), void *argument);

/** fuzz_queue_controller() - the device file of a disk's controller, and which queues are free */
int fuzz_queue_controller(struct fuzzer *fuzzer, const char *disk);

/** fuzz_queue() - one step of making a queue pair, using it, and ending it in any way */
void fuzz_queue(struct fuzzer *fuzzer);

/** fuzz_queue_forget() - its file is about to be closed, with or without it */
void fuzz_queue_forget(struct fuzzer *fuzzer);

#endif
