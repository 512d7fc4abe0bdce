/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device/persistent.h: a persistent kernel on the device until it is told to end.
 *
 * Owns: the word by which it says that it runs, and the word that ends it.
 */
#ifndef WEIR_RUNTIME_PERSISTENT_H
#define WEIR_RUNTIME_PERSISTENT_H

#include <stddef.h>
#include <stdint.h>

struct weir_context;

/**
 * struct weir_persistent - such a kernel
 * @started: address of a weir_shared_u32 for it to set to 1; for its arguments
 * @stop: address of a weir_shared_u32, not 0: end; for its arguments; in the device's own
 *        memory, because every wave keeps looking at it
 */
struct weir_persistent {
	uint64_t started;
	uint64_t stop;
	void *started_word; /* the host's view */
	void *service;      /* the backend's; NULL while it does not run */
};

/** struct weir_persistent_launch - its kernel, how many lanes, and whose it is, for messages */
struct weir_persistent_launch {
	const char *kernel;
	uint32_t blocks;
	uint32_t threads;
	const void *args;
	size_t args_bytes;
	const char *what;
};

/** weir_persistent_prepare() - memory for its two words */
int weir_persistent_prepare(struct weir_context *context, struct weir_persistent *persistent);
/** weir_persistent_start() - launch it and wait until it runs: a device that is full does not begin it */
int weir_persistent_start(struct weir_context *context, struct weir_persistent *persistent,
			  const struct weir_persistent_launch *launch);
/** weir_persistent_end() - end it if it runs, and free its words; fine after a prepare that failed */
void weir_persistent_end(struct weir_context *context, struct weir_persistent *persistent);

#endif
