/* SPDX-License-Identifier: BSD-3-Clause */
/* tool.h: the commands of weir-dataset, and what their options say. */
#ifndef WEIR_TOOLS_DATASET_H
#define WEIR_TOOLS_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/dataset.h>

#include "tool_options.h"

enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_MOST_STORAGES = 256 };

/** enum tool_part - what bench measures; ranks measure the orders alone */
enum tool_part { TOOL_ORDERS = 1, TOOL_LOOKUP = 2, TOOL_PEERS = 4 };

/** struct tool - the command line, and what is open */
struct tool {
	const char *context_name, *format, *manifest, *as, *plot, *peers;
	uint64_t samples, least_bytes, most_bytes, classes, seed, cache_bytes;
	uint32_t chunk_bytes, row_bytes, batch, order, buffer_chunks, threads, depth, lookup, batches, runs,
		parts;
	double seconds, ramp; /* of a run; of its beginning, which does not count */
	bool checks, all_orders, no_drop, json;
	char **operands;
	int operand_count;
	struct weir_context *context;
	struct weir_storage *storages[TOOL_MOST_STORAGES];
	char *manifests[TOOL_MOST_STORAGES];
	unsigned storage_count;
	struct weir_dataset *dataset;
	struct weir_dataset_communicator *communicator;
};

int tool_make(struct tool *tool);
int tool_index(struct tool *tool);
int tool_upload(struct tool *tool);
int tool_info(struct tool *tool);
int tool_verify(struct tool *tool);
int tool_order(struct tool *tool);
int tool_bench(struct tool *tool);

/** tool_open() - the context, and operands from number @first on as storages. Return: 0, or a negative errno
 * with a sentence in weir_last_error() */
int tool_open(struct tool *tool, int first, bool write);
/** tool_mount() - tool_open() of all operands, and the dataset, on all ranks or none; false after a sentence
 */
bool tool_mount(struct tool *tool);
/** tool_close() - all that is open. Return: exit status */
int tool_close(struct tool *tool);
/** tool_progress() - a weir_dataset_progress: shown on a terminal; not 0 once the user has asked to stop */
int tool_progress(void *user, uint64_t done, uint64_t total);
double tool_seconds(void);

/** struct peer_result - samples and bytes per second of one way to read, cores used, and the time it took */
struct peer_result {
	double samples, bytes, cores, seconds;
};

/** enum peer_use - of a file: open, pread and close; or open and close alone, with the page cache and what
 * the kernel knows of names dropped before, or as it is */
enum peer_use { PEER_READ, PEER_OPEN, PEER_OPEN_CACHED };

/** peer_files() - every file below @folder in random order, by @threads */
int peer_files(const char *folder, uint32_t threads, uint64_t seed, double seconds, enum peer_use use,
	       struct peer_result *result);
/** peer_names() - the paths of these files, of malloc(), in the random order in which peer_files() has them
 */
int peer_names(const char *folder, uint64_t seed, char ***names, size_t *count);
/** peer_packed() - random reads of the mounted samples from the packed file @path, O_DIRECT, io_uring at
 * @depth */
int peer_packed(struct tool *tool, const char *path, uint32_t depth, uint64_t seed, double seconds,
		struct peer_result *result);
/** peer_limit() - chunks of the file in order, likewise: what the storage can do */
int peer_limit(const char *path, uint64_t chunk, uint32_t depth, double seconds, struct peer_result *result);
/** peer_drop_caches() - the page cache forgets; false where that is not allowed */
bool peer_drop_caches(void);

#endif
