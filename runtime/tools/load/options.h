/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h: what the command line asks for.
 *
 * Owns: names, meanings and bounds of options, and what does not go together. Names follow
 * fio where fio has the thing. Never opens anything.
 */
#ifndef WEIR_PERF_OPTIONS_H
#define WEIR_PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perf.h"

enum { PERF_MIX = 50, PERF_MIX_LEFT_OUT = 101 }; /* percent of reads */
enum { PERF_MOST_RUNS = 99, PERF_MOST_POINTS = 64, PERF_BLOCK_LANES = 128, PERF_PLAIN_LANES = 768 };

/** enum perf_rw - --rw, in the order of perf_rw_names */
enum perf_rw { PERF_RANDREAD, PERF_READ, PERF_RANDWRITE, PERF_WRITE, PERF_RANDRW, PERF_RW };

/** enum perf_plain - --plain: where the baseline copies from */
enum perf_plain { PERF_PLAIN_AUTO, PERF_PLAIN_DEVICE, PERF_PLAIN_HOST, PERF_PLAIN_OFF };

/** enum perf_hit - --hit, in the order of perf_hit_names */
enum perf_hit { PERF_HIT_RANDOM8, PERF_HIT_WAVE256, PERF_HIT_LINE4K, PERF_HIT_NONE };

extern const char *const perf_rw_names[];
extern const char *const perf_plain_names[];
extern const char *const perf_hit_names[];

/**
 * struct perf_options - the command line; sizes in bytes
 * @uris: storages
 * @uri_count: how many
 * @rw: enum perf_rw
 * @mix: share of reads in a mixed load, in percent; @mix_given: by the command line
 * @bs: length of a request
 * @size: of the range on each storage; 0: all that follows @offset
 * @offset: where it begins
 * @stride: from one sequential place to the next; 0: @bs
 * @zipf: theta, or 0: every place as likely as any other
 * @iodepth: lanes; 0: chosen
 * @window: requests in flight per lane
 * @runtime: seconds of a run
 * @cached: size of the cache; 0: no cache
 * @tier: size of the tier in host memory behind it; 0: none
 * @tier_inclusive: which kind of tier
 * @line: length of its lines; 0: chosen
 * @policy: enum weir_policy of it
 * @hit: enum perf_hit
 * @plain: enum perf_plain
 * @plain_bytes: most that the baseline copies from
 * @plain_blocks: thread blocks of the baseline; 0: as many as the load has
 * @plain_threads: lanes of each, if there are @plain_blocks; 0: as many as the load's
 * @service: waves of a service per storage, to which raw loads leave reaping; 0: lanes help
 * @sweep: name of the option to sweep, or NULL
 * @sweep_values: what follows its colon
 * @plot: file to draw, or NULL
 */
struct perf_options {
	const char *uris[PERF_DISKS];
	uint32_t uri_count;
	const char *backend;
	uint32_t rw, mix;
	bool mix_given;
	uint64_t bs, size, offset, stride;
	double zipf;
	uint32_t iodepth, window, runs, queues, depth, workers, wave, seed;
	double runtime;
	uint64_t cached, line, tier;
	bool tier_inclusive;
	uint32_t policy;
	uint32_t hit;
	bool verify, no_latency, json, peer;
	uint32_t plain;
	uint64_t plain_bytes;
	uint32_t plain_blocks;
	uint32_t plain_threads;
	uint32_t service;
	const char *sweep;
	const char *sweep_values;
	const char *plot;
};

/** perf_options_read() - the command line; -1 to go on, else the exit status */
int perf_options_read(struct perf_options *options, int argc, char **argv);

/** perf_options_set() - one option by its name; 0, or a negative errno with a sentence */
int perf_options_set(struct perf_options *options, const char *name, char *value);

/** perf_options_check() - what does not go together whatever the storage; as above */
int perf_options_check(const struct perf_options *options);

static inline bool perf_is_random(const struct perf_options *options)
{
	return options->rw == PERF_RANDREAD || options->rw == PERF_RANDWRITE || options->rw == PERF_RANDRW;
}

/* A load that only writes is verified by reading back. */
static inline bool perf_reads_back(const struct perf_options *options)
{
	return options->verify && (options->rw == PERF_RANDWRITE || options->rw == PERF_WRITE);
}

static inline bool perf_writes(const struct perf_options *options)
{
	return options->rw >= PERF_RANDWRITE;
}

static inline bool perf_reads_any(const struct perf_options *options)
{
	return options->rw != PERF_RANDWRITE && options->rw != PERF_WRITE;
}

#endif
