/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.c: an epoch as a stream of mini-batches: those ahead are posted, the first of them is assembled and
 * returned.
 *
 * Batches are a ring: the program has at most one, the others are being read. The order of launches is: reads
 * of later batches, the assembly of this one, the program's kernels; so while these run, the reads are under
 * way. Who waits for a batch has the next one assembled meanwhile.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "backend/error.h"
#include "mounted.h"
#include "base/options.h"

enum { SENTENCE_BYTES = 1024, ENOUGH = 3 /* batches to assemble one ahead */ };

static struct weir_dataset_loading *batch_at(struct weir_dataset *dataset, uint32_t ahead)
{
	return &dataset->batches[(dataset->head + ahead) % dataset->options.batches];
}

/* @batch is one of those that are being read, and not the program's. */
static bool is_ahead(const struct weir_dataset *dataset, uint32_t batch)
{
	return (batch + dataset->options.batches - dataset->head) % dataset->options.batches <
	       dataset->posted;
}

static int retire(struct weir_dataset *dataset, struct weir_dataset_loading *batch)
{
	int error = 0;

	if (batch->state == WEIR_DATASET_BATCH_ASSEMBLED)
		error = weir_dataset_batch_finish(dataset, batch);
	else if (batch->state == WEIR_DATASET_BATCH_POSTED)
		weir_dataset_batch_drop(dataset, batch);
	if (batch->state != WEIR_DATASET_BATCH_OVERDUE)
		batch->state = WEIR_DATASET_BATCH_FREE;
	return error;
}

/* Wait for reads into the memory of batches that were given up; until they end, that memory is used for
 * nothing else. */
static int end_overdue(struct weir_dataset *dataset)
{
	int error = 0;

	for (uint32_t i = 0; i < dataset->options.batches && !error; i++)
		if (dataset->batches[i].state == WEIR_DATASET_BATCH_OVERDUE)
			error = weir_dataset_batch_overdue(dataset, &dataset->batches[i]);
	return error;
}

/* Chunks on their way that no batch waits for: a batch that only waits for them. Its rows and samples may be
 * the program's still, and stay as they are. */
static int settle_chunks(struct weir_dataset *dataset)
{
	struct weir_dataset_loading *batch = &dataset->batches[0];
	int error = 0;

	for (uint32_t i = 0; i < dataset->cache.empty && !error;) {
		batch->piece_count = batch->slot_count = 0;
		for (; i < dataset->cache.empty && batch->piece_count < dataset->batch_rows; i++) {
			struct weir_dataset_slot *slot = &dataset->cache.slots[i];
			uint64_t begin, end;
			uint32_t storage;

			if (slot->state != WEIR_DATASET_SLOT_LOADING)
				continue;
			weir_dataset_chunk_range(dataset, slot->chunk, &storage, &begin, &end);
			batch->pieces[batch->piece_count] = (struct weir_dataset_piece){
				.to = batch->rows,
				.from = batch->rows,
				.events = weir_dataset_cache_events(dataset, i),
				.event_count = slot->event_count,
				.disk = storage,
				.row = batch->piece_count,
			};
			batch->piece_count++;
			batch->slots[batch->slot_count++] = i;
			slot->pins++;
		}
		if (!batch->piece_count)
			break;
		error = weir_dataset_batch_assemble(dataset, batch);
		if (!error)
			error = weir_sync(dataset->context);
		if (!error)
			/* a chunk that failed is not there: who needs it reads it */
			(void)weir_dataset_batch_finish(dataset, batch);
		else
			weir_dataset_batch_drop(dataset, batch);
		batch->state = WEIR_DATASET_BATCH_FREE;
	}
	return error;
}

/* The first error of several calls. Its sentence is kept, and has the later ones' behind it: weir_sync() says
 * only once what the program's own kernels and requests met. */
static int first_error(int error, int later, char *sentence)
{
	size_t used = error ? strlen(sentence) : 0;

	if (!later)
		return error;
	snprintf(sentence + used, SENTENCE_BYTES - used, "%s%s", used ? "; besides: " : "",
		 weir_last_error());
	return error ? error : later;
}

/* Wait for the assembly of all batches, and drop them; chunks stay on their way. */
static int drop_all(struct weir_dataset *dataset)
{
	char sentence[SENTENCE_BYTES];
	int error = 0, later;

	for (uint32_t i = dataset->launched; i < dataset->posted && !error; i++)
		error = first_error(error, weir_dataset_batch_assemble(dataset, batch_at(dataset, i)),
				    sentence);
	error = first_error(error, weir_sync(dataset->context), sentence);
	for (uint32_t i = 0; i < dataset->options.batches; i++) {
		later = retire(dataset, &dataset->batches[i]);
		if (!is_ahead(dataset, i)) /* what is dropped is read again before anybody sees it */
			error = first_error(error, later, sentence);
	}
	dataset->head = dataset->posted = dataset->launched = 0;
	dataset->planned = dataset->used;
	dataset->prefetched_group = UINT64_MAX;
	return error ? weir_fail(-error, "%s", sentence) : 0;
}

int weir_dataset_drain(struct weir_dataset *dataset)
{
	char sentence[SENTENCE_BYTES];
	int error, later;

	if (!dataset->batch_rows)
		return 0;
	error = first_error(0, drop_all(dataset), sentence);
	later = end_overdue(dataset);
	if (!later)
		later = settle_chunks(dataset);
	error = first_error(error, later, sentence);
	return error ? weir_fail(-error, "%s", sentence) : 0;
}

/* The rank's share of what is left; then it begins at its first sample. */
static int divide(struct weir_dataset *dataset)
{
	int error;

	weir_dataset_share_clear(&dataset->share);
	error = weir_dataset_share_divide(&dataset->all, dataset->communicator->rank,
					  dataset->communicator->ranks, &dataset->share);
	dataset->share_count = weir_dataset_share_count(&dataset->share);
	dataset->used = dataset->planned = 0;
	dataset->prefetched_group = UINT64_MAX;
	dataset->begun = !error;
	if (!error)
		weir_dataset_cache_restart(dataset);
	return error;
}

/* In the order `full` single samples are read, unless the cache has room for all chunks. */
static void choose_way(struct weir_dataset *dataset)
{
	dataset->by_chunk = dataset->epoch.options.order != WEIR_DATASET_FULL ||
			    dataset->cache.count >= dataset->directory.chunks;
}

/* A storage that is closed may be so by its context, which has freed the memory of batches and the cache. */
static int check_open(const struct weir_dataset *dataset)
{
	struct weir_disk disk;
	int error = 0;

	for (uint32_t i = 0; !error && i < dataset->storage_count; i++)
		error = weir_storage_disk(dataset->storages[i].storage, &disk);
	return error;
}

static int begin(struct weir_dataset *dataset, const struct weir_dataset_sequence_options *given)
{
	struct weir_dataset_sequence_options options = *given;
	int error;

	if (!weir_dataset_order_name(options.order))
		return weir_fail(
			EINVAL,
			"weir_dataset_sequence: there is no order %u; the orders are enum weir_dataset_order",
			options.order);
	if (!options.buffer_chunks)
		options.buffer_chunks = dataset->default_buffer;
	error = check_open(dataset);
	if (!error)
		error = weir_dataset_drain(dataset);
	if (error)
		return error;
	dataset->begun = false;
	weir_dataset_epoch_close(&dataset->epoch);
	error = weir_dataset_epoch_open(&dataset->epoch, &options, &dataset->directory);
	if (!error)
		choose_way(dataset);
	return error;
}

int weir_dataset_sequence(struct weir_dataset *dataset, const struct weir_dataset_sequence_options *given)
{
	struct weir_dataset_sequence_options options;
	int error = weir_dataset_check(dataset, "weir_dataset_sequence");

	if (!error)
		error = weir_options_take(&options, sizeof(options), given, "weir_dataset_sequence");
	if (!error)
		error = begin(dataset, &options);
	if (error)
		return error;
	weir_dataset_share_clear(&dataset->all);
	error = weir_dataset_share_add(&dataset->all,
				       (struct weir_dataset_segment){ 0, dataset->directory.count });
	return error ? error : divide(dataset);
}

static int check_bread(struct weir_dataset *dataset, uint32_t count, const struct weir_dataset_batch *batch,
		       const char *call)
{
	int error = weir_dataset_check(dataset, call);

	if (!error && (!batch || !count))
		error = weir_fail(EINVAL, "%s: it needs a count of rows and a batch to fill in", call);
	if (!error)
		error = weir_result_check(batch, call); /* before a batch is taken */
	if (!error && !dataset->begun)
		error = weir_fail(EINVAL,
				  "%s: no epoch has begun; call weir_dataset_sequence() or "
				  "weir_dataset_resume() before",
				  call);
	if (!error)
		error = check_open(dataset);
	if (!error)
		error = end_overdue(dataset);
	if (!error && dataset->batch_rows != count) {
		error = weir_dataset_drain(dataset);
		if (!error)
			error = weir_dataset_batches_open(dataset, count);
	}
	return error;
}

/* Post batches while there is a free one. */
static int post_ahead(struct weir_dataset *dataset)
{
	int error = 0;

	while (!error && dataset->posted < dataset->options.batches &&
	       dataset->planned < dataset->share_count) {
		struct weir_dataset_loading *batch = batch_at(dataset, dataset->posted);
		uint64_t left = dataset->share_count - dataset->planned;

		if (batch->state != WEIR_DATASET_BATCH_FREE)
			break; /* the program's */
		error = weir_dataset_batch_post(
			dataset, batch, left < dataset->batch_rows ? (uint32_t)left : dataset->batch_rows);
		dataset->posted += !error;
	}
	return error;
}

static int give(const struct weir_dataset *dataset, const struct weir_dataset_loading *batch,
		struct weir_dataset_batch *to)
{
	uint64_t control = batch->control;
	struct weir_dataset_batch result = {
		.size = sizeof(result),
		.count = batch->count,
		.row_bytes = dataset->info.row_bytes,
		.rows = batch->rows,
		.lengths = control + (uint64_t)((char *)batch->lengths - (char *)batch->requests),
		.labels = control + (uint64_t)((char *)batch->labels - (char *)batch->requests),
		.host_rows = batch->host_rows,
		.host_lengths = batch->lengths,
		.host_labels = batch->labels,
		.samples = batch->samples,
		.slot = (uint32_t)(batch - dataset->batches),
	};

	return weir_result_give(to, &result, sizeof(result), "weir_dataset_bread");
}

/* Launch the reads of what is ahead, and the assembly of the next @count batches. Return: the first of them;
 * NULL at the end of the epoch, or on @error. */
static struct weir_dataset_loading *launch_ahead(struct weir_dataset *dataset, uint32_t count, int *error)
{
	*error = post_ahead(dataset);
	while (!*error && dataset->launched < count && dataset->launched < dataset->posted) {
		*error = weir_dataset_batch_assemble(dataset, batch_at(dataset, dataset->launched));
		dataset->launched += !*error;
	}
	return *error || !dataset->posted ? NULL : batch_at(dataset, 0);
}

/* The first batch is the program's from now on. */
static void take(struct weir_dataset *dataset, const struct weir_dataset_loading *batch)
{
	dataset->head = (dataset->head + 1) % dataset->options.batches;
	dataset->posted--;
	dataset->launched--;
	dataset->used += batch->count;
	dataset->stats.batches++;
	dataset->stats.samples += batch->count;
}

static int give_none(struct weir_dataset_batch *to)
{
	struct weir_dataset_batch none = { .size = sizeof(none), .slot = UINT32_MAX };

	return weir_result_give(to, &none, sizeof(none), "weir_dataset_bread");
}

/* @batch failed: the next call reads it again. */
static int step_back(struct weir_dataset *dataset, struct weir_dataset_loading *batch, int error)
{
	char sentence[SENTENCE_BYTES];

	error = first_error(0, error, sentence);
	dataset->used = batch->first;
	dataset->stats.batches--; /* it is not returned */
	dataset->stats.samples -= batch->count;
	error = first_error(error, drop_all(dataset), sentence);
	if (!dataset->late) /* else it would wait for the same reads */
		(void)settle_chunks(dataset);
	return weir_fail(-error, "%s", sentence);
}

/* Batches that are the program's are free again; the kernels that use them have ended, or are waited for. */
static int retire_given(struct weir_dataset *dataset)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < dataset->options.batches; i++) {
		if (is_ahead(dataset, i))
			continue;
		if (dataset->batches[i].state == WEIR_DATASET_BATCH_ASSEMBLED)
			error = weir_sync(dataset->context); /* it was enqueued */
		if (!error && dataset->batches[i].state >= WEIR_DATASET_BATCH_ASSEMBLED)
			error = retire(dataset, &dataset->batches[i]);
	}
	return error;
}

int weir_dataset_bread(struct weir_dataset *dataset, uint32_t count, struct weir_dataset_batch *to)
{
	struct weir_dataset_loading *batch;
	int error = check_bread(dataset, count, to, "weir_dataset_bread");

	if (error)
		return error;
	dataset->late = false;
	error = retire_given(dataset);
	if (error)
		return error;
	batch = launch_ahead(dataset, dataset->options.batches < ENOUGH ? 1 : 2, &error);
	if (!batch)
		return error ? error : give_none(to);
	take(dataset, batch);
	error = dataset->launched ? weir_dataset_batch_started(dataset, batch_at(dataset, 0))
				  : weir_sync(dataset->context);
	if (!error)
		error = weir_dataset_batch_finish(dataset, batch);
	return error ? step_back(dataset, batch, error) : give(dataset, batch, to);
}

/* The batch before the last one: what used it has ended once the last one's assembly runs. */
static int retire_enqueued(struct weir_dataset *dataset)
{
	uint32_t batches = dataset->options.batches;
	struct weir_dataset_loading *last = &dataset->batches[(dataset->head + batches - 1) % batches];
	struct weir_dataset_loading *before = &dataset->batches[(dataset->head + batches - 2) % batches];
	int error = 0;

	if (batches < ENOUGH || last->state < WEIR_DATASET_BATCH_ASSEMBLED)
		error = weir_sync(dataset->context);
	else if (last->state == WEIR_DATASET_BATCH_ASSEMBLED && before->state >= WEIR_DATASET_BATCH_ASSEMBLED)
		error = weir_dataset_batch_started(dataset, last);
	for (uint32_t i = 0; i < batches && !error; i++)
		if (!is_ahead(dataset, i) && dataset->batches[i].state >= WEIR_DATASET_BATCH_ASSEMBLED &&
		    (batches < ENOUGH || &dataset->batches[i] != last))
			error = retire(dataset, &dataset->batches[i]);
	return error;
}

int weir_dataset_bread_enqueue(struct weir_dataset *dataset, uint32_t count, struct weir_dataset_batch *to)
{
	struct weir_dataset_loading *batch;
	int error = check_bread(dataset, count, to, "weir_dataset_bread_enqueue");

	if (!error)
		error = retire_enqueued(dataset);
	if (error)
		return error;
	batch = launch_ahead(dataset, 1, &error);
	if (!batch && !error)
		error = retire_given(dataset); /* it is over once its last batch has not failed */
	if (!batch)
		return error ? error : give_none(to);
	take(dataset, batch);
	return give(dataset, batch, to);
}

int weir_dataset_release(struct weir_dataset *dataset, const struct weir_dataset_batch *given)
{
	int error = weir_dataset_check(dataset, "weir_dataset_release");

	if (error)
		return error;
	if (!given || given->slot >= dataset->options.batches)
		return weir_fail(EINVAL, "weir_dataset_release: it is no batch of this dataset");
	if (dataset->batches[given->slot].state == WEIR_DATASET_BATCH_RETURNED)
		dataset->batches[given->slot].state = WEIR_DATASET_BATCH_FREE;
	return 0; /* one that was enqueued is free once the launches behind it have begun */
}

/* All ranks' shares behind what each has used, in rank order. */
static int left_of(struct weir_dataset *dataset, struct weir_dataset_share *left)
{
	uint32_t ranks = dataset->communicator->ranks;
	struct weir_dataset_parts parts;
	int error =
		weir_dataset_gather(dataset->communicator, &dataset->used, sizeof(dataset->used), 0, &parts);

	for (uint32_t rank = 0; rank < ranks && !error; rank++) {
		struct weir_dataset_share share = { 0 };

		error = weir_dataset_share_divide(&dataset->all, rank, ranks, &share);
		if (!error)
			error = weir_dataset_share_cut(&share, ((uint64_t *)parts.all)[rank],
						       weir_dataset_share_count(&share), left);
		weir_dataset_share_clear(&share);
	}
	free(parts.all);
	return error;
}

/* What a position counts in: the samples, and for all orders but the full one the chunks that are shuffled.
 */
static uint64_t counted_in(const struct weir_dataset *dataset, uint32_t order)
{
	const struct weir_dataset_directory *directory = &dataset->directory;

	if (order == WEIR_DATASET_FULL)
		return dataset->id;
	return weir_mix_u64(dataset->id ^
			    XXH3_64bits(directory->chunk_first,
					(directory->chunks + 1) * sizeof(*directory->chunk_first)));
}

int weir_dataset_position(struct weir_dataset *dataset, char *text, size_t bytes)
{
	struct weir_dataset_share left = { 0 };
	int error = weir_dataset_check(dataset, "weir_dataset_position"), used;

	if (error)
		return error;
	if (!text || !dataset->begun)
		error = weir_fail(EINVAL,
				  "weir_dataset_position: no epoch has begun, or there is no room for text");
	error = weir_dataset_agree(dataset->communicator, error); /* else this rank would be waited for */
	if (error)
		return error;
	error = left_of(dataset, &left);
	used = snprintf(text, bytes,
			"weir-dataset-1 id=%016llx seed=%llu epoch=%llu order=%u buffer=%u left=",
			(unsigned long long)counted_in(dataset, dataset->epoch.options.order),
			(unsigned long long)dataset->epoch.options.seed,
			(unsigned long long)dataset->epoch.options.epoch, dataset->epoch.options.order,
			dataset->epoch.options.buffer_chunks);
	for (size_t i = 0; i < left.count && used >= 0 && (size_t)used < bytes; i++)
		used += snprintf(text + used, bytes - (size_t)used, "%s%llu-%llu", i ? "," : "",
				 (unsigned long long)left.segments[i].begin,
				 (unsigned long long)left.segments[i].end);
	weir_dataset_share_clear(&left);
	if (!error && (used < 0 || (size_t)used >= bytes))
		error = weir_fail(ENOSPC, "weir_dataset_position: %zu bytes are too few for the text", bytes);
	return weir_dataset_agree(dataset->communicator, error);
}

/* "a-b,c-d" */
static int read_left(const struct weir_dataset *dataset, const char *text, struct weir_dataset_share *left)
{
	uint64_t last = 0; /* they ascend, as the ranks' shares do */

	while (*text) {
		struct weir_dataset_segment segment;
		int length = 0, error;
		unsigned long long begin, end;

		if (sscanf(text, "%llu-%llu%n", &begin, &end, &length) != 2 || begin < last || begin >= end ||
		    end > dataset->directory.count)
			return weir_fail(
				EINVAL,
				"weir_dataset_resume: '%.40s' is no range of positions of this dataset",
				text);
		segment = (struct weir_dataset_segment){ begin, end };
		error = weir_dataset_share_add(left, segment);
		if (error)
			return error;
		last = end;
		text += length;
		text += *text == ',';
	}
	return 0;
}

static int resume(struct weir_dataset *dataset, const char *text)
{
	struct weir_dataset_sequence_options options = { .size = sizeof(options) };
	unsigned long long id, seed, number;
	int error, at = 0;

	if (!text ||
	    sscanf(text, "weir-dataset-1 id=%llx seed=%llu epoch=%llu order=%u buffer=%u left=%n", &id, &seed,
		   &number, &options.order, &options.buffer_chunks, &at) != 5 ||
	    !at || !options.buffer_chunks)
		return weir_fail(EINVAL, "weir_dataset_resume: '%.60s' is no text of weir_dataset_position()",
				 text ? text : "(null)");
	if (id != counted_in(dataset, options.order))
		return weir_fail(ESTALE,
				 "weir_dataset_resume: the position is of dataset %016llx, and this is "
				 "%016llx: other samples, or other chunks of them, by chunk_bytes or by the "
				 "blocks of storages",
				 id, (unsigned long long)counted_in(dataset, options.order));
	options.seed = seed;
	options.epoch = number;
	error = begin(dataset, &options);
	if (error)
		return error;
	weir_dataset_share_clear(&dataset->all);
	error = read_left(dataset, text + at, &dataset->all);
	return error ? error : divide(dataset);
}

int weir_dataset_resume(struct weir_dataset *dataset, const char *text)
{
	int error = weir_dataset_check(dataset, "weir_dataset_resume");

	if (error)
		return error;
	error = weir_dataset_agree(dataset->communicator, resume(dataset, text));
	if (error)
		dataset->begun = false;
	return error;
}
