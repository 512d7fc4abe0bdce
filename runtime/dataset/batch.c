/* SPDX-License-Identifier: BSD-3-Clause */
/* batch.c: memory of mini-batches, and the launches that fill one. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/port.h>

#include "backend/error.h"
#include "mounted.h"

enum {
	ALIGN = 64,
	WAVES_LANES = 64,
	MOST_LANES = 512,
	MOST_WAVES = 64,
	YIELDS = 100,
	PAUSE_NS = 20000,
	SYNC_S = 1
};

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

uint64_t weir_dataset_staging_stride(const struct weir_dataset *dataset)
{
	uint64_t block = 0;

	for (uint32_t i = 0; i < dataset->storage_count; i++) {
		uint64_t bytes = UINT64_C(1) << dataset->storages[i].block_log2;

		block = bytes > block ? bytes : block;
	}
	return (dataset->info.row_bytes + 2 * block) & ~(block - 1);
}

static int allocate(struct weir_dataset *dataset, uint64_t bytes, uint64_t *address, void **host)
{
	if (dataset->options.device)
		return weir_alloc(dataset->context, bytes, address);
	return weir_alloc_host(dataset->context, bytes, address, host);
}

int weir_dataset_staging_open(struct weir_dataset *dataset, struct weir_dataset_loading *batch)
{
	void *host = NULL;

	return allocate(dataset,
			dataset->batch_rows * weir_dataset_staging_stride(dataset) +
				WEIR_DATASET_SOURCE_SLACK,
			&batch->staging, &host);
}

/* Requests that @rows samples may need: of their own blocks, or of a chunk each, and as many chunks ahead. */
static uint64_t requests_of(const struct weir_dataset *dataset, uint32_t rows)
{
	uint64_t most = UINT64_MAX, each;

	for (uint32_t i = 0; i < dataset->storage_count; i++) {
		uint64_t bytes = (uint64_t)dataset->storages[i].max_blocks << dataset->storages[i].block_log2;

		most = bytes < most ? bytes : most;
	}
	each = (weir_dataset_staging_stride(dataset) + most - 1) / most;
	if (each < dataset->cache.events_per_slot)
		each = dataset->cache.events_per_slot;
	return rows * each + 256 * (uint64_t)dataset->cache.events_per_slot;
}

/** struct control - where the parts of a batch's control memory begin */
struct control {
	uint64_t requests, pieces, events, verdict, lengths, labels, bytes;
};

static struct control layout(uint32_t rows, uint32_t requests)
{
	struct control at = { 0 };

	at.pieces = aligned(requests * sizeof(struct weir_dataset_request));
	at.events = at.pieces + aligned(rows * sizeof(struct weir_dataset_piece));
	at.verdict = at.events + aligned(requests * sizeof(struct weir_event));
	at.lengths = at.verdict + aligned(sizeof(struct weir_dataset_verdict));
	at.labels = at.lengths + aligned(rows * sizeof(uint32_t));
	at.bytes = at.labels + aligned(rows * sizeof(uint32_t));
	return at;
}

static int open_batch(struct weir_dataset *dataset, struct weir_dataset_loading *batch, uint32_t rows)
{
	struct control at = layout(rows, dataset->request_room);
	void *host = NULL;
	int error = allocate(dataset, (uint64_t)rows * dataset->info.row_bytes + WEIR_DATASET_SOURCE_SLACK,
			     &batch->rows, &batch->host_rows);

	if (!error)
		error = weir_alloc_host(dataset->context, at.bytes, &batch->control, &host);
	if (error)
		return error;
	batch->requests = (void *)((char *)host + at.requests);
	batch->pieces = (void *)((char *)host + at.pieces);
	batch->events = batch->control + at.events;
	batch->verdict = (void *)((char *)host + at.verdict);
	batch->lengths = (void *)((char *)host + at.lengths);
	batch->labels = (void *)((char *)host + at.labels);
	batch->samples = calloc(rows, sizeof(*batch->samples));
	batch->slots = calloc(rows, sizeof(*batch->slots));
	batch->dirty = calloc(rows, sizeof(*batch->dirty));
	if (!batch->samples || !batch->slots || !batch->dirty)
		return weir_fail(ENOMEM, "dataset: no memory for a batch of %u rows", rows);
	return 0;
}

int weir_dataset_batches_open(struct weir_dataset *dataset, uint32_t rows)
{
	uint64_t requests = requests_of(dataset, rows);
	int error = 0;

	if (requests > UINT32_MAX)
		return weir_fail(EINVAL,
				 "dataset: a batch of %u rows may take %llu commands, and 2^32 - 1 are the "
				 "most; take fewer rows at a time",
				 rows, (unsigned long long)requests);
	weir_dataset_batches_close(dataset);
	dataset->batch_rows = rows;
	dataset->request_room = (uint32_t)requests;
	for (uint32_t i = 0; i < dataset->options.batches && !error; i++)
		error = open_batch(dataset, &dataset->batches[i], rows);
	if (error)
		weir_dataset_batches_close(dataset);
	return error;
}

void weir_dataset_batches_close(struct weir_dataset *dataset)
{
	for (uint32_t i = 0; i < dataset->options.batches; i++) {
		struct weir_dataset_loading *batch = &dataset->batches[i];

		weir_free(dataset->context, batch->rows);
		weir_free(dataset->context, batch->staging);
		weir_free(dataset->context, batch->control);
		free(batch->samples);
		free(batch->slots);
		free(batch->dirty);
		memset(batch, 0, sizeof(*batch));
	}
	dataset->batch_rows = 0;
	dataset->head = dataset->posted = 0;
}

/* As few blocks of lanes as have one each for @count things, up to a limit; but two waves for each queue
 * pair, so that all of these have something to do, and lanes copy what comes from all of them. */
static int launch(struct weir_dataset *dataset, const char *kernel, uint32_t count, const void *args,
		  size_t bytes)
{
	uint32_t most = dataset->wave_lanes == 1 ? MOST_WAVES : MOST_LANES;
	uint32_t lanes = count < most ? count : most, waves = 2 * dataset->most_queues;

	waves = count < waves ? count : waves;
	if (lanes < waves * dataset->wave_lanes)
		lanes = waves * dataset->wave_lanes;
	return weir_launch(dataset->context, kernel, (lanes + WAVES_LANES - 1) / WAVES_LANES, WAVES_LANES,
			   args, bytes);
}

static void unpin(struct weir_dataset *dataset, struct weir_dataset_loading *batch)
{
	for (uint32_t i = 0; i < batch->slot_count; i++)
		dataset->cache.slots[batch->slots[i]].pins--;
}

/* Anything may be in the rows: zeros that were planned were not filled in, or a read comes behind them. */
static void forget_rows(const struct weir_dataset *dataset, struct weir_dataset_loading *batch)
{
	for (uint32_t row = 0; row < dataset->batch_rows; row++)
		batch->dirty[row] = dataset->info.row_bytes;
}

/* None of the reads that were planned for @batch is submitted: their slots are empty, and the next plan
 * begins where this one did. */
static void take_back(struct weir_dataset *dataset, struct weir_dataset_loading *batch,
		      const struct weir_dataset_stats *before)
{
	uint64_t evictions = dataset->stats.evictions;

	unpin(dataset, batch);
	for (uint32_t i = 0; i < batch->request_count; i++) {
		uint32_t slot = weir_dataset_cache_slot_of(dataset, batch->requests[i].event);

		if (slot != UINT32_MAX)
			weir_dataset_cache_ready(dataset, slot, false);
	}
	forget_rows(dataset, batch);
	batch->slot_count = batch->piece_count = batch->request_count = 0;
	dataset->stats = *before;
	dataset->stats.evictions = evictions;
	dataset->planned = batch->first;
	dataset->prefetched_group = UINT64_MAX;
}

int weir_dataset_batch_post(struct weir_dataset *dataset, struct weir_dataset_loading *batch, uint32_t count)
{
	struct weir_dataset_post_args args = { .disks = dataset->disks };
	struct weir_dataset_stats before = dataset->stats;
	int error = weir_dataset_plan(dataset, batch, count);

	args.requests = batch->control;
	args.count = batch->request_count;
	if (!error && args.count)
		error = launch(dataset, "weir_dataset_post", batch->request_count, &args, sizeof(args));
	if (error)
		take_back(dataset, batch, &before);
	batch->state = error ? WEIR_DATASET_BATCH_FREE : WEIR_DATASET_BATCH_POSTED;
	return error;
}

int weir_dataset_batch_assemble(struct weir_dataset *dataset, struct weir_dataset_loading *batch)
{
	uint64_t begin = batch->control;
	struct weir_dataset_assemble_args args = { .disks = dataset->disks, .count = batch->piece_count };
	int error;

	args.pieces = begin + (uint64_t)((char *)batch->pieces - (char *)batch->requests);
	args.verdict = begin + (uint64_t)((char *)batch->verdict - (char *)batch->requests);
	memset(batch->verdict, 0, sizeof(*batch->verdict));
	error = launch(dataset, "weir_dataset_assemble", batch->piece_count, &args, sizeof(args));
	if (!error)
		batch->state = WEIR_DATASET_BATCH_ASSEMBLED;
	return error;
}

int weir_dataset_batch_started(struct weir_dataset *dataset, const struct weir_dataset_loading *batch)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS }, now, begin;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (unsigned tries = 0;; tries++) { /* dataset.D1: pairs with dataset.D0 (load.k.c) */
		if (weir_load_u32_acquire_sys(&batch->verdict->started))
			return 0;
		if (tries < YIELDS) {
			sched_yield();
			continue;
		}
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - begin.tv_sec > SYNC_S)
			return weir_sync(dataset->context); /* it has the reason, if there is one */
	}
}

/* A read into slot @slot had not ended when the lanes that waited for it gave up. */
static bool is_under_way(const struct weir_dataset *dataset, const struct weir_dataset_loading *batch,
			 uint32_t slot)
{
	uint64_t events = weir_dataset_cache_events(dataset, slot);

	for (uint32_t i = 0; i < batch->piece_count; i++)
		if (batch->pieces[i].under_way && batch->pieces[i].events == events)
			return true;
	return false;
}

/* Of the pieces those stay that wait for reads into the batch's own memory. */
static void keep_overdue(struct weir_dataset *dataset, struct weir_dataset_loading *batch,
			 uint32_t state_of_others)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < batch->piece_count; i++) {
		struct weir_dataset_piece piece = batch->pieces[i];

		dataset->late |= piece.under_way;
		if (!piece.under_way || weir_dataset_cache_slot_of(dataset, piece.events) != UINT32_MAX)
			continue;
		piece.bytes = piece.fill = piece.under_way = 0;
		batch->pieces[kept++] = piece;
	}
	batch->state = kept ? WEIR_DATASET_BATCH_OVERDUE : state_of_others;
	if (!kept)
		return;
	batch->piece_count = kept;
	forget_rows(dataset, batch);
}

int weir_dataset_batch_finish(struct weir_dataset *dataset, struct weir_dataset_loading *batch)
{
	/* relaxed: the kernel has ended */
	uint64_t failure = weir_load_u64_relaxed_sys(&batch->verdict->failure);

	unpin(dataset, batch);
	for (uint32_t i = 0; i < batch->slot_count; i++)
		if (!failure || !is_under_way(dataset, batch, batch->slots[i]))
			weir_dataset_cache_ready(dataset, batch->slots[i], failure == 0);
	batch->slot_count = 0;
	batch->state = WEIR_DATASET_BATCH_RETURNED;
	if (!failure)
		return 0;
	keep_overdue(dataset, batch, WEIR_DATASET_BATCH_RETURNED);
	return weir_dataset_sample_failed(dataset, batch->samples[(uint32_t)failure - 1],
					  (uint32_t)(failure >> 32));
}

void weir_dataset_batch_drop(struct weir_dataset *dataset, struct weir_dataset_loading *batch)
{
	unpin(dataset, batch);
	batch->slot_count = 0;
	forget_rows(dataset, batch);
	for (uint32_t i = 0; i < batch->piece_count; i++)
		batch->pieces[i].under_way = batch->pieces[i].event_count != 0;
	keep_overdue(dataset, batch, WEIR_DATASET_BATCH_FREE);
}

int weir_dataset_batch_overdue(struct weir_dataset *dataset, struct weir_dataset_loading *batch)
{
	int error = weir_dataset_batch_assemble(dataset, batch);

	if (!error)
		error = weir_sync(dataset->context);
	if (error) {
		batch->state = WEIR_DATASET_BATCH_OVERDUE;
		return error;
	}
	error = weir_dataset_batch_finish(dataset, batch);
	if (batch->state == WEIR_DATASET_BATCH_OVERDUE)
		return error;
	batch->state = WEIR_DATASET_BATCH_FREE;
	return 0; /* how they ended no longer matters */
}
