/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tools/dataset_stand_ins.h: bench.c and commands.c of weir-dataset over stand-ins for the library, the
 * clock, other ways to read, and the other ranks, which have numbers of their own for everything.
 */
#ifndef WEIR_TEST_DATASET_STAND_INS_H
#define WEIR_TEST_DATASET_STAND_INS_H

#include "capture.h"

#include <errno.h>
#include <stdlib.h>

#include <weir/dataset.h>
#include <weir/weir.h>

#include "backend/error.h"
#include "tools/weir-dataset/tool.h"

enum { RANKS = 3, SAMPLES = 10, MOST_CALLS = 64 };

/* More than 32 bits hold. */
static const uint64_t large = UINT64_C(1) << 33;

/** stand_in - the library's answers, what it is asked for, and the other ranks */
static struct {
	const char *refused;
	struct weir_dataset_info info;
	struct weir_dataset_stats stats;
	struct weir_dataset_quality quality;
	struct weir_dataset_sequence_options sequences[MOST_CALLS];
	int agreed; /* upon, the latest time */
	unsigned agreements, sequence_count, quality_batch, gathers, indexed, uploaded, mounts;
	uint32_t rows;           /* of a batch, and what was asked for */
	uint64_t left, next;     /* samples of the epoch */
	uint64_t twice;          /* comes in the place of the last one; 0: none does */
	double clock, step;      /* seconds that the next question adds */
	unsigned char mine[256]; /* of the latest gather */
	size_t mine_bytes;
	int error_of; /* rank that failed, of those that gather readings; 0: none */
	struct weir_dataset_index_options index;
	char names[MOST_CALLS][32];
} stand_in;

static struct weir_dataset_communicator ranks;

static int refuse(const char *what)
{
	return stand_in.refused && !strcmp(stand_in.refused, what) ? weir_fail(EIO, "%s is refused", what)
								   : 0;
}

static int give_info(struct weir_dataset *dataset, struct weir_dataset_info *info)
{
	(void)dataset;
	*info = stand_in.info;
	return refuse("info");
}

static int give_stats(struct weir_dataset *dataset, struct weir_dataset_stats *stats)
{
	(void)dataset;
	*stats = stand_in.stats;
	return refuse("stats");
}

static int give_quality(struct weir_dataset *dataset, const struct weir_dataset_sequence_options *sequence,
			uint32_t batch, struct weir_dataset_quality *quality, uint64_t *order)
{
	(void)dataset;
	stand_in.sequences[stand_in.sequence_count++ % MOST_CALLS] = *sequence;
	stand_in.quality_batch = batch;
	*quality = stand_in.quality;
	quality->coverage += sequence->order;
	for (uint64_t i = 0; i < stand_in.info.samples; i++)
		order[i] = i;
	return refuse("quality");
}

static int begin_epoch(struct weir_dataset *dataset, const struct weir_dataset_sequence_options *sequence)
{
	(void)dataset;
	stand_in.sequences[stand_in.sequence_count++ % MOST_CALLS] = *sequence;
	stand_in.left = SAMPLES;
	stand_in.next = 0;
	return refuse("sequence");
}

/* Sample i has 100 + i bytes. */
static int read_batch(struct weir_dataset *dataset, uint32_t count, struct weir_dataset_batch *batch)
{
	static uint64_t samples[SAMPLES];
	static uint32_t lengths[SAMPLES];

	(void)dataset;
	stand_in.rows = count;
	batch->count = stand_in.left < count ? (uint32_t)stand_in.left : count;
	batch->samples = samples;
	batch->host_lengths = lengths;
	for (uint32_t i = 0; i < batch->count; i++) {
		samples[i] = stand_in.next++;
		lengths[i] = 100 + (uint32_t)samples[i];
		if (stand_in.twice && samples[i] == SAMPLES - 1)
			samples[i] = stand_in.twice;
	}
	stand_in.left -= batch->count;
	return refuse("bread");
}

static const char *order_name(uint32_t order)
{
	static const char *const names[] = { "shuffled-chunk", "chunk", "full" };

	return order < 3 ? names[order] : NULL;
}

static int give_name(struct weir_dataset *dataset, uint64_t number, char *text, size_t bytes)
{
	(void)dataset;
	(void)snprintf(text, bytes, "name-%llu", (unsigned long long)number);
	return refuse("name");
}

/* One name in five is none. */
static int find_name(struct weir_dataset *dataset, const char *name, uint64_t *number)
{
	(void)dataset;
	assert_int_equal(strncmp(name, "name-", strlen("name-")), 0);
	*number = strtoull(name + strlen("name-"), NULL, 10);
	return refuse("find") ? -EIO : *number % 5 == 3 ? -ENOENT : 0;
}

static int find_names(struct weir_dataset *dataset, const char *const *names, size_t count, uint64_t *numbers)
{
	for (size_t i = 0; i < count; i++)
		if (find_name(dataset, names[i], &numbers[i]))
			numbers[i] = UINT64_MAX;
	stand_in.info.directory_bytes = 25 * stand_in.info.samples; /* with its index */
	return refuse("find_many");
}

static int index_one(struct weir_storage *storage, const char *path,
		     const struct weir_dataset_index_options *options)
{
	(void)storage;
	(void)snprintf(stand_in.names[stand_in.indexed++ % MOST_CALLS], sizeof(stand_in.names[0]), "%s",
		       path);
	stand_in.index = *options;
	return refuse("index");
}

static int upload_all_of(struct weir_storage *const *storages, unsigned count, const char *path,
			 const struct weir_dataset_index_options *options)
{
	(void)storages;
	(void)snprintf(stand_in.names[0], sizeof(stand_in.names[0]), "%s", path);
	stand_in.uploaded = count;
	stand_in.index = *options;
	return refuse("upload");
}

static int agree(struct weir_dataset_communicator *communicator, int error)
{
	assert_ptr_equal(communicator, &ranks);
	stand_in.agreed = error;
	stand_in.agreements++;
	return error;
}

static int open_ranks(const char *name, struct weir_dataset_communicator **out)
{
	*out = &ranks;
	return strcmp(name, "auto") ? -EINVAL : refuse("communicator");
}

#define weir_dataset_info(of, to)                      give_info(of, to) /* not the structure of that name */
#define weir_dataset_stats(of, to)                     give_stats(of, to)
#define weir_dataset_quality(of, by, batch, to, order) give_quality(of, by, batch, to, order)
#define weir_dataset_sequence(of, by)                  begin_epoch(of, by)
#define weir_dataset_bread                             read_batch
#define weir_dataset_order_name                        order_name
#define weir_dataset_name                              give_name
#define weir_dataset_find                              find_name
#define weir_dataset_find_many                         find_names
#define weir_dataset_index                             index_one
#define weir_dataset_upload                            upload_all_of
#define weir_dataset_agree                             agree
#define weir_dataset_communicator_open                 open_ranks
#include "tools/weir-dataset/bench.c"

#include "tools/weir-dataset/commands.c"

static char *operands[] = { "file:a", "file:b", NULL }, *manifests[] = { "a.weir", "b.weir" };

int tool_open(struct tool *tool, int first, bool write)
{
	(void)write;
	for (int i = first; i < tool->operand_count; i++)
		tool->manifests[tool->storage_count++] = manifests[i];
	return refuse("open");
}

bool tool_mount(struct tool *tool)
{
	tool->communicator = &ranks;
	stand_in.mounts++;
	return !refuse("mount") || tool_failed() == TOOL_OK;
}

int tool_progress(void *user, uint64_t done, uint64_t total)
{
	(void)user;
	return stand_in.refused && !strcmp(stand_in.refused, "progress") && done * 2 >= total;
}

double tool_seconds(void)
{
	stand_in.clock += stand_in.step;
	return stand_in.clock;
}

bool peer_drop_caches(void)
{
	return true;
}

static int give_peers(double seconds, struct peer_result *result)
{
	*result = (struct peer_result){ .samples = 2000, .bytes = 8e6, .cores = 0.5, .seconds = seconds };
	return refuse("peers") ? tool_failed() : TOOL_OK;
}

int peer_files(const char *folder, uint32_t threads, uint64_t seed, double seconds, enum peer_use use,
	       struct peer_result *result)
{
	(void)folder;
	(void)seed;
	(void)use;
	assert_true(threads > 0);
	return give_peers(seconds, result);
}

/* Files of @folder that have names of samples. */
int peer_names(const char *folder, uint64_t seed, char ***names, size_t *count)
{
	enum { NAMES = 10 };

	(void)seed;
	*names = calloc(NAMES, sizeof(**names));
	for (*count = 0; *names && *count < NAMES; ++*count)
		if (asprintf(&(*names)[*count], "%.*s/name-%zu", (int)strcspn(folder, "/"), folder, *count) <
		    0)
			(*names)[*count] = NULL;
	return refuse("names") ? tool_failed() : TOOL_OK;
}

int peer_packed(struct tool *tool, const char *path, uint32_t depth, uint64_t seed, double seconds,
		struct peer_result *result)
{
	(void)tool;
	(void)depth;
	(void)seed;
	assert_string_equal(path, "a");
	return give_peers(seconds, result);
}

int peer_limit(const char *path, uint64_t chunk, uint32_t depth, double seconds, struct peer_result *result)
{
	(void)chunk;
	(void)depth;
	assert_string_equal(path, "a");
	return give_peers(seconds, result);
}

/* Rank i has i + 1 times as much of everything; of a reading its seconds, too. */
static int gather(struct weir_dataset_communicator *communicator, const void *mine, size_t bytes, void **all,
		  size_t *counts)
{
	unsigned char *of = malloc(communicator->ranks * bytes);

	assert_non_null(of);
	assert_true(bytes <= sizeof(stand_in.mine));
	memcpy(stand_in.mine, mine, stand_in.mine_bytes = bytes);
	for (uint32_t rank = 0; rank < communicator->ranks; rank++) {
		memcpy(of + rank * bytes, mine, bytes);
		counts[rank] = bytes;
		if (bytes == sizeof(struct reading)) {
			struct reading *reading = (struct reading *)(void *)of + rank;

			reading->samples *= rank + 1;
			reading->bytes *= rank + 1;
			reading->processor *= rank + 1;
			reading->seconds *= rank + 1;
			if (stand_in.error_of && rank == (uint32_t)stand_in.error_of)
				reading->error = -EIO;
		} else {
			for (size_t i = 0; i < bytes / 8; i++)
				((uint64_t *)(void *)of)[rank * bytes / 8 + i] *= rank + 1;
		}
	}
	stand_in.gathers++;
	*all = of;
	if (!refuse("gather"))
		return 0;
	free(of);
	*all = NULL;
	return -EIO;
}

#endif
