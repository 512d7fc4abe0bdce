/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dataset_program.c: a program of the host that reads a small dataset by mini-batch, most of two epochs,
 * and knows what must be in each row. What it calls is the product's (stream.c, batch.c, plan.c, cache.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/port.h>
#include <weir/status.h>

#include "dataset/mounted.h"

#include "dataset_runtime.h"
#include "explore.h"
#include "rig.h"

enum {
	MOST_SAMPLES = 20,
	FEW_SAMPLES = 12,
	BLOCK = 512,
	CHUNK = 2 * BLOCK,
	SECOND_AT = 32 * BLOCK,
	UNRECOVERED_READ = 0x281
};

#define LONG_NS ((u64)1 << 60)

/**
 * struct program - a run of it
 * @batches: given in this epoch
 * @seen: samples given in this epoch, a mask
 * @failing: batches given that have a row that cannot be read, and that no call has reported
 * @failing_samples: of such rows, a mask
 */
struct program {
	struct scenario_args *args;
	struct weir_dataset dataset;
	struct weir_dataset_storage storages[2];
	struct weir_dataset_part parts[2];
	u64 random;
	u32 batches;
	u64 seen;
	u32 failing;
	u64 failing_samples;
};

static struct program program;

void explore_dataset_program(struct scenario_args *args);

static u32 some(u32 bound)
{
	return (u32)weir_dataset_below(&program.random, bound);
}

static bool has_mode(u32 mode)
{
	return program.args->mode & mode;
}

/* Samples of storage @storage, one after the other; of some a block of their own. */
static void add_samples(struct weir_dataset_directory *directory, u32 storage, u32 count)
{
	u64 at = storage * SECOND_AT + some(BLOCK);

	program.parts[storage] = (struct weir_dataset_part){ .first = directory->count, .count = count };
	for (u32 i = 0; i < count; i++) {
		u32 length = 40 + some(150);

		if (has_mode(SCENARIO_DATASET_BLOCKS) && some(2)) {
			at = (at + BLOCK - 1) & ~(u64)(BLOCK - 1);
			length += some(2) * some(400);
		}
		directory->labels[directory->count] = some(1000);
		directory->entries[directory->count++] =
			weir_dataset_entry(storage, directory->count, at, length);
		at += length + some(2) * some(20);
	}
}

/* Runs of samples of one storage whose blocks fit into a chunk, or into half of one. */
static void add_chunks(struct weir_dataset_directory *directory)
{
	u64 begin = 0, most = CHUNK;

	for (u32 i = 0; i < directory->count; i++) {
		struct weir_dataset_entry entry = directory->entries[i];
		u64 at = weir_dataset_directory_offset(directory, i),
		    end = at + weir_dataset_entry_length(entry);

		if (i == 0 || i == program.parts[1].first ||
		    ((end + BLOCK - 1) & ~(u64)(BLOCK - 1)) > begin + most) {
			begin = at & ~(u64)(BLOCK - 1);
			most = some(2) ? CHUNK : BLOCK;
			directory->chunk_first[directory->chunks++] = i;
		}
	}
	directory->chunk_first[directory->chunks] = (u32)directory->count;
}

static void open_directory(struct weir_dataset_directory *directory, u32 storages)
{
	*directory = (struct weir_dataset_directory){ .parts = program.parts, .part_count = storages };
	directory->entries = calloc(MOST_SAMPLES, sizeof(*directory->entries));
	directory->labels = calloc(MOST_SAMPLES, sizeof(*directory->labels));
	directory->chunk_first = calloc(MOST_SAMPLES + 1, sizeof(*directory->chunk_first));
	if (!directory->entries || !directory->labels || !directory->chunk_first)
		abort();
	for (u32 i = 0; i < storages; i++) /* of a small cache: more chunks than it has slots */
		add_samples(directory, i,
			    (has_mode(SCENARIO_DATASET_SMALL) ? MOST_SAMPLES : FEW_SAMPLES) / storages);
	add_chunks(directory);
}

/* What weir_dataset_mount() does, of a storage without a manifest. */
static void open_dataset(void)
{
	struct weir_dataset *dataset = &program.dataset;
	const struct weir_disk *disk = weir_at(program.args->disk, struct weir_disk, 0);
	u32 slots = has_mode(SCENARIO_DATASET_SMALL | SCENARIO_DATASET_BLOCKS) ? 2 + some(2) : MOST_SAMPLES;

	dataset->options = (struct weir_dataset_mount_options){
		.chunk_bytes = CHUNK,
		.cache_bytes = (u64)slots * CHUNK,
		.row_bytes = has_mode(SCENARIO_DATASET_BLOCKS) ? 528 : 144,
		.batches = 2 + some(3),
	};
	dataset->info.row_bytes = dataset->options.row_bytes;
	dataset->alone = (struct weir_dataset_communicator){ .size = sizeof(dataset->alone), .ranks = 1 };
	dataset->communicator = &dataset->alone;
	dataset->storages = program.storages;
	dataset->storage_count = program.args->disks;
	for (u32 i = 0; i < 2; i++)
		program.storages[i] = (struct weir_dataset_storage){ .block_log2 = 9, .max_blocks = 1 };
	dataset->disks = program.args->disk;
	dataset->most_queues = disk->queue_count;
	dataset->wave_lanes = 1;
	open_directory(&dataset->directory, program.args->disks);
	explore_expect("a cache", (u64)weir_dataset_cache_open(dataset), 0);
	explore_expect("batches", (u64)weir_dataset_batches_open(dataset, 2 + some(DATASET_ROWS - 1)), 0);
}

/* Names for reports, and what must hold of events at each store. */
static void watch_dataset(void)
{
	struct weir_dataset *dataset = &program.dataset;
	const struct weir_dataset_cache *cache = &dataset->cache;
	size_t rows = (size_t)dataset->batch_rows * dataset->info.row_bytes;

	watch((void *)(uintptr_t)cache->events, (size_t)cache->count * cache->events_per_slot * 8, 8,
	      WATCH_EVENT, "event of chunks[%u]", 8);
	watch((void *)(uintptr_t)cache->memory, (size_t)cache->count * CHUNK, CHUNK, WATCH_DATA, "slot[%u]",
	      CHUNK);
	for (u32 i = 0; i < dataset->options.batches; i++) {
		struct weir_dataset_loading *batch = &dataset->batches[i];

		watch((void *)(uintptr_t)batch->events, (size_t)dataset->request_room * 8, 8, WATCH_EVENT,
		      "event of a batch[%u]", 8);
		watch((void *)(uintptr_t)batch->rows, rows, dataset->info.row_bytes, WATCH_DATA, "row[%u]",
		      dataset->info.row_bytes);
	}
}

/* The block that cannot be read is one of bytes @begin to @end - 1. */
static bool is_bad(u64 begin, u64 end)
{
	u64 bad = rig.bad_lba * BLOCK;

	return rig.bad_lba != ~(u64)0 && bad < end && begin < bad + BLOCK;
}

static bool chunk_is_bad(u64 chunk)
{
	uint64_t begin, end;
	uint32_t storage;

	weir_dataset_chunk_range(&program.dataset, chunk, &storage, &begin, &end);
	return is_bad(begin, end);
}

/* What is read for row @row of a batch cannot be read. */
static bool row_is_bad(const struct weir_dataset_loading *batch, u32 row)
{
	const struct weir_dataset_cache *cache = &program.dataset.cache;
	const struct weir_dataset_directory *directory = &program.dataset.directory;
	const struct weir_dataset_piece *piece = &batch->pieces[row];
	u64 at = weir_dataset_directory_offset(directory, batch->samples[row]),
	    cached = (u64)cache->count * cache->events_per_slot * sizeof(struct weir_event);

	explore_expect("row of a piece", piece->row, row);
	if (piece->event_count == 0)
		return false;
	if (piece->events - cache->events < cached)
		return chunk_is_bad(weir_dataset_directory_chunk(directory, batch->samples[row]));
	return is_bad(at, at + (batch->lengths[row] < program.dataset.info.row_bytes
					? batch->lengths[row]
					: program.dataset.info.row_bytes));
}

static void note_sample(u64 number)
{
	explore_expect("number of a sample", number < program.dataset.directory.count, 1);
	explore_expect("a sample that comes a second time", (program.seen >> number) & 1, 0);
	program.seen |= (u64)1 << number;
}

/* What must be in the rows of @given. */
static struct dataset_launch expected(const struct weir_dataset_batch *given)
{
	const struct weir_dataset_directory *directory = &program.dataset.directory;
	const struct weir_dataset_loading *batch = &program.dataset.batches[given->slot];
	struct dataset_launch launch = { .kind = DATASET_CHECK };
	bool failing = false;

	launch.args.check = (struct dataset_check_args){ .rows = given->rows,
							 .lengths = given->lengths,
							 .labels = given->labels,
							 .count = given->count,
							 .row_bytes = given->row_bytes };
	for (u32 i = 0; i < given->count; i++) {
		u64 number = given->samples[i];

		note_sample(number);
		launch.args.check.row[i] = (struct dataset_row){
			.offset = weir_dataset_directory_offset(directory, number),
			.length = weir_dataset_entry_length(directory->entries[number]),
			.label = directory->labels[number],
			.failed = has_mode(SCENARIO_DATASET_ENQUEUE) && row_is_bad(batch, i),
		};
		if (launch.args.check.row[i].failed)
			failing = true, program.failing_samples |= (u64)1 << number;
	}
	program.failing += failing;
	return launch;
}

/* A wait ended at its deadline; from now on all reads end, the one that it was for, too. */
static void check_late(weir_status status)
{
	explore_expect("status of a sample whose read was late, or found no slot",
		       status == WEIR_E_TIMEOUT || status == WEIR_E_QUEUE_FULL, 1);
	rig.lost_lba = ~(u64)0;
	rig.disk->timeout_ns = LONG_NS;
}

/* A call says that a sample could not be read: so it is. Or a launch was refused, before anything. */
static void check_failure(int error)
{
	unsigned long long number = 0;
	unsigned status = 0;

	if (has_mode(SCENARIO_DATASET_REFUSED) && error == -ENOMEM)
		return;
	explore_expect("status of a call of a dataset", (u64)(i64)error, (u64)(i64)-EIO);
	explore_expect("numbers in its sentence",
		       (u64)sscanf(weir_last_error(), DATASET_FAILED, &number, &status), 2);
	if (has_mode(SCENARIO_DATASET_LATE)) {
		check_late(status);
		return;
	}
	explore_expect("NVMe status of the sample that failed", weir_status_nvme(status), UNRECOVERED_READ);
	explore_expect("a sample that failed, and whose chunk is in order",
		       chunk_is_bad(weir_dataset_directory_chunk(&program.dataset.directory, number)), 1);
	if (has_mode(SCENARIO_DATASET_ENQUEUE)) {
		explore_expect("a batch that failed", program.failing > 0, 1);
		explore_expect("a row that failed", (program.failing_samples >> number) & 1, 1);
		program.failing--;
	} else {
		rig.bad_lba = ~(u64)0; /* the same batch again */
	}
}

/* The rows are there: the host looks at them, or a kernel does that is launched. Return: it was the last. */
static bool use_batch(const struct weir_dataset_batch *given)
{
	struct dataset_launch launch;

	if (!given->count)
		return true;
	launch = expected(given);
	if (has_mode(SCENARIO_DATASET_ENQUEUE) || some(2))
		dataset_launch(&launch);
	else
		for (u32 i = 0; i < given->count; i++)
			dataset_check_row(&launch.args.check, i);
	if (!has_mode(SCENARIO_DATASET_ENQUEUE)) {
		explore_expect("a sync", (u64)weir_sync(NULL), 0);
		if (some(2))
			explore_expect("a release", (u64)weir_dataset_release(&program.dataset, given), 0);
	}
	program.batches++;
	explore_progress();
	return false;
}

/* A call has waited for all batches: it has reported one that failed, if there was one. */
static void check_drained(int error)
{
	if (error)
		check_failure(error);
	else
		explore_expect("batches that failed and that no call has reported", program.failing, 0);
	program.seen = program.batches = program.failing = 0;
	program.failing_samples = 0;
}

/* What failed may do so once more. */
static bool fails_again(void)
{
	return has_mode(SCENARIO_DATASET_REFUSED | SCENARIO_DATASET_LATE);
}

static void read_epoch(u32 epoch, u32 most)
{
	struct weir_dataset_sequence_options options = {
		.size = sizeof(options),
		.seed = program.args->choice,
		.epoch = epoch,
		.order = has_mode(SCENARIO_DATASET_BLOCKS) ? WEIR_DATASET_FULL : (u32)some(2),
		.buffer_chunks = 1 + some(2),
	};
	struct weir_dataset_batch given = { .size = sizeof(given) };
	bool last = false;
	int error, calls = 0;

	do {
		error = weir_dataset_sequence(&program.dataset, &options);
		check_drained(error);
	} while (error && (fails_again() || !calls++));
	explore_expect("an epoch", (u64)(i64)error, 0);
	while (!last && program.batches < most) {
		error = has_mode(SCENARIO_DATASET_ENQUEUE)
				? weir_dataset_bread_enqueue(&program.dataset, program.dataset.batch_rows,
							     &given)
				: weir_dataset_bread(&program.dataset, program.dataset.batch_rows, &given);
		if (error)
			check_failure(error);
		else
			last = use_batch(&given);
	}
	if (last)
		explore_expect("samples of an epoch", program.seen,
			       ((u64)1 << program.dataset.directory.count) - 1);
}

static u64 pins_of(const struct weir_dataset_cache *cache)
{
	u64 pins = 0;

	for (u32 i = 0; i < cache->count; i++)
		pins += cache->slots[i].pins;
	return pins;
}

static void close_dataset(void)
{
	struct weir_dataset *dataset = &program.dataset;
	int error;

	do {
		error = weir_dataset_drain(dataset);
		check_drained(error);
	} while (error && fails_again());
	explore_expect("chunks that are still on their way", weir_dataset_cache_loading(dataset), 0);
	explore_expect("pins of chunks that no batch needs", pins_of(&dataset->cache), 0);
	weir_dataset_batches_close(dataset);
	weir_dataset_cache_close(dataset);
	weir_dataset_epoch_close(&dataset->epoch);
	weir_dataset_share_clear(&dataset->all);
	weir_dataset_share_clear(&dataset->share);
	free(dataset->directory.entries);
	free(dataset->directory.labels);
	free(dataset->directory.chunk_first);
}

static bool refuse_some(void)
{
	return some(4) == 0;
}

void explore_dataset_program(struct scenario_args *args)
{
	struct dataset_launch end = { .kind = DATASET_END };
	u32 whole; /* the epoch that is read to its end; of the other one what is ahead is dropped */

	memset(&program, 0, sizeof(program));
	program.args = args;
	program.random = args->choice;
	dataset_runtime = (struct dataset_runtime){
		.stream = weir_at(args->stream, struct dataset_stream, 0),
		.threads = (u32)weir_threads(),
	};
	if (has_mode(SCENARIO_DATASET_REFUSED))
		dataset_runtime.refuse = refuse_some;
	open_dataset();
	watch_dataset();
	whole = some(2);
	read_epoch(0, whole == 0 ? MOST_SAMPLES : 1 + some(3));
	read_epoch(1, whole == 1 ? MOST_SAMPLES : 1 + some(3));
	close_dataset();
	dataset_launch(&end);
}
