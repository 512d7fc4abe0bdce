/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h: what every sample does with a device: open it, run a kernel, take the time,
 * print figures.
 */
#ifndef SAMPLE_DEVICE_H
#define SAMPLE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>
#include <weir/weir.h>

#include "../../runtime/tools/options/tool_options.h"

enum { SAMPLE_ERROR_BYTES = 1024 };

enum { SAMPLE_BLOCK_LANES = 256, SAMPLE_MOST_REPEATS = 999 };

/**
 * struct sample_device - what the sample runs on
 * @backend: context name; NULL: WEIR_BACKEND, or else "auto"
 * @workers, @wave_lanes, @resident_lanes: of the cpu backend
 * @queues, @depth: queue pairs per storage
 */
struct sample_device {
	const char *backend;
	uint32_t workers;
	uint32_t wave_lanes;
	uint32_t resident_lanes;
	uint32_t queues;
	uint32_t depth;
};

/** SAMPLE_LOCATION_OPTIONS() - rows of a table of options: what the sample runs on */
#define SAMPLE_LOCATION_OPTIONS(device)                                                                      \
	{ .name = "backend",                                                                                 \
	  .value = "NAME",                                                                                   \
	  .kind = TOOL_TEXT,                                                                                 \
	  .to = &(device).backend,                                                                           \
	  .help = "auto, cpu or another of this build (default auto, or WEIR_BACKEND)" },                    \
		{ .name = "workers",                                                                         \
		  .value = "N",                                                                              \
		  .kind = TOOL_U32,                                                                          \
		  .to = &(device).workers,                                                                   \
		  .most = 1024,                                                                              \
		  .help = "cpu: worker threads (default: one per core)" },                                   \
	{                                                                                                    \
		.name = "wave", .value = "N", .kind = TOOL_U32, .to = &(device).wave_lanes, .most = 64,      \
		.help = "cpu: lanes per wave: 1, 2, 4 ... 64 (default 1)"                                    \
	}

/** SAMPLE_DEVICE_OPTIONS() - those, and its queue pairs */
#define SAMPLE_DEVICE_OPTIONS(device)                                                                        \
	SAMPLE_LOCATION_OPTIONS(device),                                                                     \
		{ .name = "queues",                                                                          \
		  .value = "N",                                                                              \
		  .kind = TOOL_U32,                                                                          \
		  .to = &(device).queues,                                                                    \
		  .most = 1024,                                                                              \
		  .help = "queue pairs per storage (default: one per worker of the device, 4 at least)" },   \
	{                                                                                                    \
		.name = "depth", .value = "N", .kind = TOOL_U32, .to = &(device).depth, .most = 4096,        \
		.help = "entries of a queue pair (default 256)"                                              \
	}

/**
 * struct sample_cache - a cache's size, and which line makes room
 * @bytes, @lines: one of the two
 * @line_bytes: size of a line; 0: 4096
 * @policy: clock if not given
 * @tier: host memory behind it; 0: none
 */
struct sample_cache {
	uint64_t bytes;
	uint64_t lines;
	uint32_t line_bytes;
	enum weir_policy policy;
	uint64_t tier;
};

#define SAMPLE_CACHE_HINT "the cache needs at least one set of 4 lines"

/** SAMPLE_CACHE_OPTIONS() - rows of a table of options; @default_text: what it is otherwise */
#define SAMPLE_CACHE_OPTIONS(cache, default_text)                                                            \
	{ .name = "cache",                                                                                   \
	  .value = "BYTES",                                                                                  \
	  .kind = TOOL_BYTES,                                                                                \
	  .to = &(cache).bytes,                                                                              \
	  .least = 1,                                                                                        \
	  .hint = SAMPLE_CACHE_HINT,                                                                         \
	  .help = "cache size, such as 64M (default: " default_text ")" },                                   \
		{ .name = "cache-lines",                                                                     \
		  .value = "N",                                                                              \
		  .kind = TOOL_U64,                                                                          \
		  .to = &(cache).lines,                                                                      \
		  .least = 1,                                                                                \
		  .hint = SAMPLE_CACHE_HINT,                                                                 \
		  .help = "instead: number of cache lines" },                                                \
		{ .name = "line",                                                                            \
		  .value = "BYTES",                                                                          \
		  .kind = TOOL_BYTES_U32,                                                                    \
		  .to = &(cache).line_bytes,                                                                 \
		  .most = 65536,                                                                             \
		  .help = "line size (default 4096)" },                                                      \
		{ .name = "tier",                                                                            \
		  .value = "BYTES",                                                                          \
		  .kind = TOOL_BYTES,                                                                        \
		  .to = &(cache).tier,                                                                       \
		  .least = 1,                                                                                \
		  .help = "host memory behind the cache, for lines that made room (built by -Dtier=true)" }, \
	{                                                                                                    \
		.name = "policy", .value = "NAME", .kind = TOOL_POLICY, .to = &(cache).policy,               \
		.help = "which cache line makes room: clock (default), lru, fifo, random, direct, sieve,\n"  \
			"frequency, user (built in by -Duser_policy)"                                        \
	}

/** sample_fail() - leave a sentence; returns @code */
int sample_fail(char *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/**
 * sample_close() - close @context with its caches and storages; NULL is fine
 * @context: the context
 * @code: how the sample ended
 * @error: its sentence; or if @code is 0, why closing failed: what is lost
 *
 * Return: @code if it is not 0, else weir_context_close()'s.
 */
int sample_close(struct weir_context *context, int code, char *error);

/** sample_pass() - leave libweir's sentence if @code is not 0; returns @code */
int sample_pass(char *error, int code);

/** sample_open() - open the device; 0 or a negative errno with weir_last_error() */
int sample_open(const struct sample_device *device, struct weir_context **context);

/** sample_is_alone() - whether one context at a time can have the device's memory: cpu:memory=FILE */
bool sample_is_alone(const struct sample_device *device);

/** sample_blocks() - blocks of SAMPLE_BLOCK_LANES for @wanted lanes, as many at most as keep the device busy
 */
int sample_blocks(struct weir_context *context, uint64_t wanted, uint32_t *blocks);

/** sample_run() - launch blocks of SAMPLE_BLOCK_LANES and wait for them */
int sample_run(struct weir_context *context, const char *kernel, uint32_t blocks, const void *args,
	       size_t bytes);

/** sample_run_lanes() - the same for @lanes, 1 at least: a block of them, or as many whole ones as they make
 */
int sample_run_lanes(struct weir_context *context, const char *kernel, uint64_t lanes, const void *args,
		     size_t bytes);

/** sample_now() - seconds on a clock that does not go back */
double sample_now(void);

/** sample_median() - of @count values, which it sorts */
double sample_median(double *values, unsigned count);

/** sample_scramble() - a cheap, even spread over 64 bits */
uint64_t sample_scramble(uint64_t value);

double sample_megabytes(uint64_t bytes);
uint64_t sample_peak_rss_bytes(void);

/** sample_set_count(), sample_set_real(), sample_set_text(), sample_set_bool() - a figure of a JSON object */
void sample_set_count(json_t *root, const char *key, uint64_t value);
void sample_set_real(json_t *root, const char *key, double value);
void sample_set_text(json_t *root, const char *key, const char *value);
void sample_set_bool(json_t *root, const char *key, bool value);

/** sample_print_json() - print it, and free it */
void sample_print_json(json_t *root);

#endif
