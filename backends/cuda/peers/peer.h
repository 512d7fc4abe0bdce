/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h: what the peers have in common: random reads of a file by host threads,
 * counted over a time, several times.
 *
 * The peers are programs to compare weir with: they use nothing of it.
 */
#ifndef WEIR_CUDA_PEER_H
#define WEIR_CUDA_PEER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { PEER_MOST_THREADS = 1024, PEER_MOST_RUNS = 99, PEER_ERROR_BYTES = 256, PEER_CANNOT_BE_HAD = 3 };

/**
 * struct peer_load - what is asked for on the command line
 * @path: the file
 * @threads: host threads, one read in flight each
 * @seconds: of a run
 * @runs: of which the median counts
 * @block_bytes: length of a read; places are multiples of it
 * @seed: of the random places
 * @direct: O_DIRECT
 * @no_copy: peer-pread-copy: leave the copy to the GPU out
 * @json: print one JSON object
 * @blocks: reads fit this many places (peer_open())
 */
struct peer_load {
	const char *path;
	uint32_t threads;
	uint32_t seconds;
	uint32_t runs;
	uint64_t block_bytes;
	uint64_t seed;
	bool direct;
	bool no_copy;
	bool json;
	uint64_t blocks;
};

/**
 * struct peer_reader - one thread's part of a run
 * @load: the same for all
 * @file: descriptor of this thread
 * @own: what the peer keeps per thread
 * @state: of the random places
 * @reads: done so far
 * @error: "" or what went wrong, which ends the thread
 */
struct peer_reader {
	const struct peer_load *load;
	int file;
	void *own;
	uint64_t state;
	uint64_t reads;
	char error[PEER_ERROR_BYTES];
	const volatile bool *stop; /* only ever becomes true; seen a little late is fine */
	const struct peer *peer;
	pthread_t thread;
};

/**
 * struct peer - how a peer reads
 * @name: of the program
 * @begin: make @own of a reader, in its thread; 0, or @error is set
 * @read: read one block from @offset into GPU memory; 0, or @error is set
 * @end: undo @begin, also after it failed half way
 */
struct peer {
	const char *name;
	int (*begin)(struct peer_reader *reader);
	int (*read)(struct peer_reader *reader, uint64_t offset);
	void (*end)(struct peer_reader *reader);
};

/** peer_parse() - take the command line; -1 to go on, else the exit status */
int peer_parse(const struct peer *peer, int argc, char **argv, struct peer_load *load);
/** peer_open() - open the file as the load says and learn its size; a descriptor, or -1 with a sentence
 * printed */
int peer_open(const struct peer *peer, struct peer_load *load);
/** peer_fail() - note printf-like @format as the reader's error; -1 */
int peer_fail(struct peer_reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));
/**
 * peer_measure() - all runs, and the figures on standard output
 * @how: how the reads were done, for people
 *
 * Text ends with the line "operations/s N". Return: the exit status.
 */
int peer_measure(const struct peer *peer, struct peer_load *load, int file, const char *how);

#endif
