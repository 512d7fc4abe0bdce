/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.h: an open storage with what a launch of the kernel vm_storage needs, for the programs that run in the
 * guest. */
#ifndef WEIR_TESTS_VM_RIG_H
#define WEIR_TESTS_VM_RIG_H

#include <stdint.h>

#include "device/context.h" /* the runtime's */
#include "storage.h"

enum { RIG_BLOCKS = 3, RIG_THREADS = 21, RIG_LANES = RIG_BLOCKS * RIG_THREADS };

/**
 * struct rig_options - how to open it; 0: as usual
 * @transfer: bytes of the largest request, 64 KiB
 */
struct rig_options {
	uint32_t queues;
	uint32_t depth;
	uint32_t transfer;
	uint64_t timeout_ms;
};

/** struct rig - an open storage, and what a launch needs */
struct rig {
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_storage_info info;
	struct vm_storage_args args;
};

/** rig_must() - end the program with weir's sentence if @error */
void rig_must(int error);

/** rig_open() - open @uri on the context that WEIR_VM_CONTEXT names, the cpu if none, or end the program */
void rig_open(struct rig *rig, const char *uri, const struct rig_options *options);

/** rig_close() - close it */
void rig_close(struct rig *rig);

/** rig_run() - launch the kernel with rig->args on all lanes. Return: the first lane's error */
weir_status rig_run(struct rig *rig);

/** rig_run_on() - the same on the first @lanes alone, up to RIG_THREADS */
weir_status rig_run_on(struct rig *rig, uint32_t lanes);

/** rig_verdict() - what lanes found since the last call */
struct test_verdict rig_verdict(struct rig *rig);

/** rig_say() - print @status unless it is good. Return: 1 if it was printed */
int rig_say(weir_status status);

#endif
