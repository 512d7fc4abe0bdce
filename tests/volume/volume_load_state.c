/* SPDX-License-Identifier: BSD-3-Clause */
/* volume_load_state.c: values of blocks, counts and latencies in a shared file. */
#include "volume_load.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = LOAD_BLOCK / sizeof(uint64_t) };

struct load_state *load_state_open(const char *path, uint64_t blocks)
{
	int file = open(path, blocks ? O_RDWR | O_CREAT : O_RDWR, 0600);
	size_t bytes = sizeof(struct load_state) + blocks * sizeof(struct load_block);
	struct load_state *state;
	struct stat is;

	if (file < 0)
		return NULL;
	if (fstat(file, &is) != 0 || (blocks && ftruncate(file, (off_t)bytes) != 0))
		is.st_size = 0, bytes = 0;
	else if (!blocks)
		bytes = (size_t)is.st_size;
	state = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
	close(file);
	if (state == MAP_FAILED)
		return NULL;
	if (blocks)
		state->blocks = blocks;
	return state;
}

void load_state_print(const struct load_state *state)
{
	printf("acknowledged %" PRIu64 " reads %" PRIu64 " flushes %" PRIu64 " wrong %" PRIu64
	       " write-errors %" PRIu64 " read-errors %" PRIu64 " verified %" PRIu64 "\n",
	       state->acknowledged, state->reads, state->flushes, state->wrong, state->write_errors,
	       state->read_errors, state->verified);
	fflush(stdout);
}

static uint64_t word_of(uint64_t name, unsigned index)
{
	return index ? (name + index) * 0x9e3779b97f4a7c15ull : name;
}

/* Its first word is its name: so each of the others belongs to this value of this block alone. */
void load_fill(void *block, uint64_t vba, uint32_t value)
{
	uint64_t name = vba << 32 | value, *words = block;

	for (unsigned i = 0; i < WORDS; i++)
		words[i] = value ? word_of(name, i) : 0;
}

int64_t load_value(const void *block, uint64_t vba)
{
	const uint64_t *words = block;
	uint32_t value = (uint32_t)words[0];
	uint64_t expected[WORDS];

	load_fill(expected, vba, value);
	return memcmp(expected, block, LOAD_BLOCK) == 0 ? (int64_t)value : -1;
}

/* ---- latencies ---- */

static unsigned bucket_of(uint64_t us)
{
	unsigned power = 63 - (unsigned)__builtin_clzll(us | 1);

	if (power < LOAD_BUCKETS_LOG2)
		return (unsigned)us;
	return (power - LOAD_BUCKETS_LOG2 + 1) << LOAD_BUCKETS_LOG2 |
	       ((unsigned)(us >> (power - LOAD_BUCKETS_LOG2)) & ((1 << LOAD_BUCKETS_LOG2) - 1));
}

void load_latency_add(struct load_latency *latency, uint64_t us)
{
	unsigned bucket = bucket_of(us);

	latency->buckets[bucket < LOAD_BUCKETS ? bucket : LOAD_BUCKETS - 1]++;
	latency->count++;
	if (us > latency->most_us)
		latency->most_us = us;
}

static uint64_t bucket_end(unsigned bucket)
{
	unsigned power = bucket >> LOAD_BUCKETS_LOG2, part = bucket & ((1 << LOAD_BUCKETS_LOG2) - 1);

	return power ? (uint64_t)((1u << LOAD_BUCKETS_LOG2) + part + 1) << (power - 1) : part + 1;
}

static uint64_t percentile(const struct load_latency *latency, unsigned percent)
{
	uint64_t seen = 0;
	unsigned at = 0;

	for (; at < LOAD_BUCKETS - 1; at++) {
		seen += latency->buckets[at];
		if (seen * 100 >= latency->count * percent)
			break;
	}
	return bucket_end(at);
}

void load_latency_print(struct load_latency *latency, const char *what)
{
	printf("%s %" PRIu64 " p50-us %" PRIu64 " p99-us %" PRIu64 " most-us %" PRIu64 "\n", what,
	       latency->count, latency->count ? percentile(latency, 50) : 0,
	       latency->count ? percentile(latency, 99) : 0, latency->most_us);
	fflush(stdout);
	memset(latency, 0, sizeof(*latency));
}
