/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.c: the reads of a mini-batch and the pieces of its rows (DLFS's prep stage).
 *
 * A sample comes one of three ways: from the chunk that it lies in (small samples, and the other samples of
 * the chunk follow soon), straight into its row (it begins at a block, and its row has room for whole
 * blocks), or through the batch's staging.
 */
#include <string.h>

#include "backend/error.h"
#include "mounted.h"

enum { FEW = 4 };

static uint64_t block_bytes(const struct weir_dataset *dataset, uint32_t storage)
{
	return UINT64_C(1) << dataset->storages[storage].block_log2;
}

void weir_dataset_chunk_range(const struct weir_dataset *dataset, uint64_t chunk, uint32_t *storage,
			      uint64_t *begin, uint64_t *end)
{
	const struct weir_dataset_directory *directory = &dataset->directory;
	uint64_t first = directory->chunk_first[chunk], last = directory->chunk_first[chunk + 1] - 1, block;

	*storage = weir_dataset_entry_storage(directory->entries[first]);
	block = block_bytes(dataset, *storage);
	*begin = weir_dataset_directory_offset(directory, first) & ~(block - 1);
	*end = weir_dataset_directory_offset(directory, last) +
	       weir_dataset_entry_length(directory->entries[last]);
	*end = (*end + block - 1) & ~(block - 1);
}

/* Read commands for bytes @begin to @end of a storage, both at blocks, each with one of the events. Return:
 * how many. */
static uint32_t add_requests(struct weir_dataset *dataset, struct weir_dataset_loading *batch,
			     uint32_t storage, uint64_t begin, uint64_t end, uint64_t buffer, uint64_t events)
{
	const struct weir_dataset_storage *of = &dataset->storages[storage];
	uint64_t most = (uint64_t)of->max_blocks << of->block_log2;
	uint32_t count = 0;

	for (uint64_t at = begin; at < end; at += most, count++) {
		uint64_t bytes = end - at < most ? end - at : most;

		batch->requests[batch->request_count++] = (struct weir_dataset_request){
			.lba = at >> of->block_log2,
			.blocks = (uint32_t)(bytes >> of->block_log2),
			.buffer = buffer + (at - begin),
			.event = events + count * sizeof(struct weir_event),
			.disk = storage,
		};
	}
	dataset->stats.reads += count;
	dataset->stats.read_bytes += end - begin;
	return count;
}

/* Begin to read @chunk. Return: its slot, without a pin; UINT32_MAX: no slot, or no room for its requests. */
static uint32_t load_chunk(struct weir_dataset *dataset, struct weir_dataset_loading *batch, uint64_t chunk)
{
	uint64_t begin, end;
	uint32_t storage, slot;

	if (batch->request_count + dataset->cache.events_per_slot > dataset->request_room)
		return UINT32_MAX;
	slot = weir_dataset_cache_reserve(dataset, chunk, weir_dataset_cache_use(dataset, chunk));
	if (slot == UINT32_MAX)
		return slot;
	weir_dataset_chunk_range(dataset, chunk, &storage, &begin, &end);
	dataset->cache.slots[slot].event_count =
		add_requests(dataset, batch, storage, begin, end, weir_dataset_cache_address(dataset, slot),
			     weir_dataset_cache_events(dataset, slot));
	return slot;
}

/*
 * Chunks that are longer than a slot have one sample, which goes another way. So do the few samples of a
 * chunk whose mean is a quarter of a chunk or more, unless all chunks stay: a read of each is long enough,
 * and needs no copy.
 */
static bool cacheable(const struct weir_dataset *dataset, uint64_t chunk)
{
	uint64_t begin, end,
		samples = dataset->directory.chunk_first[chunk + 1] - dataset->directory.chunk_first[chunk];
	uint32_t storage;
	bool few;

	weir_dataset_chunk_range(dataset, chunk, &storage, &begin, &end);
	few = dataset->cache.count < dataset->directory.chunks &&
	      end - begin >= samples * (dataset->options.chunk_bytes / FEW);
	return end - begin <= dataset->options.chunk_bytes && end > begin && !few;
}

/* A sample finds no room for its chunk. */
static void count_cache_full(struct weir_dataset *dataset)
{
	if (!dataset->reported_full)
		weir_report("dataset: batches under way need all %u chunks of the cache, so samples of other "
			    "chunks are read one by one, which is slower; mount it with more cache_bytes, or "
			    "have fewer batches, rows or buffer_chunks",
			    dataset->cache.count);
	dataset->reported_full = true;
	dataset->stats.cache_full_samples++;
}

static bool piece_from_chunk(struct weir_dataset *dataset, struct weir_dataset_loading *batch,
			     uint64_t number, struct weir_dataset_piece *piece)
{
	uint64_t chunk = weir_dataset_directory_chunk(&dataset->directory, number), begin, end;
	uint32_t storage, slot = weir_dataset_cache_get(dataset, chunk);

	if (slot != UINT32_MAX) {
		dataset->stats.cache_hits++;
	} else {
		if (!cacheable(dataset, chunk))
			return false;
		slot = load_chunk(dataset, batch, chunk);
		if (slot == UINT32_MAX) {
			count_cache_full(dataset);
			return false;
		}
		dataset->cache.slots[slot].pins++;
	}
	batch->slots[batch->slot_count++] = slot;
	weir_dataset_chunk_range(dataset, chunk, &storage, &begin, &end);
	piece->from = weir_dataset_cache_address(dataset, slot) +
		      (weir_dataset_directory_offset(&dataset->directory, number) - begin);
	piece->events = weir_dataset_cache_events(dataset, slot);
	piece->event_count = dataset->cache.slots[slot].state == WEIR_DATASET_SLOT_LOADING
				     ? dataset->cache.slots[slot].event_count
				     : 0;
	return true;
}

/* The sample's own blocks, into its row or into staging. */
static int piece_from_blocks(struct weir_dataset *dataset, struct weir_dataset_loading *batch,
			     uint64_t number, uint32_t row, struct weir_dataset_piece *piece)
{
	uint32_t storage = weir_dataset_entry_storage(dataset->directory.entries[number]);
	uint64_t block = block_bytes(dataset, storage),
		 offset = weir_dataset_directory_offset(&dataset->directory, number);
	uint64_t begin = offset & ~(block - 1), end = (offset + piece->bytes + block - 1) & ~(block - 1),
		 buffer = piece->to;

	piece->events = batch->events + batch->event_count * sizeof(struct weir_event);
	if (begin != offset || end - begin > dataset->info.row_bytes) {
		int error = batch->staging ? 0 : weir_dataset_staging_open(dataset, batch);

		if (error)
			return error;
		buffer = batch->staging + row * weir_dataset_staging_stride(dataset);
		piece->from = buffer + (offset - begin);
	} else {
		dataset->stats.direct_samples++;
		if (end - begin > batch->dirty[row])
			batch->dirty[row] = (uint32_t)(end - begin);
		piece->from = 0;
	}
	piece->event_count = add_requests(dataset, batch, storage, begin, end, buffer, piece->events);
	batch->event_count += piece->event_count;
	return 0;
}

static int plan_row(struct weir_dataset *dataset, struct weir_dataset_loading *batch, uint32_t row)
{
	uint64_t number = batch->samples[row];
	uint32_t length = weir_dataset_entry_length(dataset->directory.entries[number]);
	uint32_t bytes = length < dataset->info.row_bytes ? length : dataset->info.row_bytes;
	struct weir_dataset_piece *piece = &batch->pieces[batch->piece_count++];
	int error = 0;

	batch->lengths[row] = length;
	batch->labels[row] =
		dataset->directory.labels ? dataset->directory.labels[number] : WEIR_DATASET_NO_LABEL;
	*piece = (struct weir_dataset_piece){ .to = batch->rows + (uint64_t)row * dataset->info.row_bytes,
					      .bytes = bytes,
					      .row = row,
					      .disk = weir_dataset_entry_storage(
						      dataset->directory.entries[number]) };
	if (bytes && (!dataset->by_chunk || !piece_from_chunk(dataset, batch, number, piece)))
		error = piece_from_blocks(dataset, batch, number, row, piece);
	piece->fill_at = bytes;
	piece->fill = batch->dirty[row] > bytes ? batch->dirty[row] - bytes : 0;
	batch->dirty[row] = bytes;
	if (piece->from)
		dataset->stats.copied_bytes += bytes;
	else
		piece->bytes = 0; /* it is there once the events are done */
	return error;
}

/*
 * Chunks of the next group, as many as the part of this group that is planned, and a third more: so reads go
 * on evenly, and the last of them have a quarter of this group's time to end. Never at the cost of a chunk
 * that is used before.
 */
static void prefetch(struct weir_dataset *dataset, struct weir_dataset_loading *batch)
{
	struct weir_dataset_epoch *epoch = &dataset->epoch;
	uint64_t position, group, done, size, target, chunk;

	if (!epoch->group_first || dataset->planned >= dataset->share_count)
		return; /* nothing is behind it */
	position = weir_dataset_share_at(&dataset->share, dataset->planned);
	group = weir_dataset_epoch_group(epoch, position);
	if (group + 1 >= epoch->groups || !weir_dataset_cache_ahead(dataset, group + 1))
		return; /* this rank's share has none of it: nobody would wait for these reads */
	if (dataset->prefetched_group != group + 1) {
		dataset->prefetched_group = group + 1;
		dataset->prefetched_chunks = 0;
	}
	done = position - epoch->group_first[group];
	size = epoch->group_first[group + 1] - epoch->group_first[group];
	target = size ? (done * epoch->options.buffer_chunks * 4 / 3 + size - 1) / size : 0;
	while (dataset->prefetched_chunks < target) {
		chunk = weir_dataset_epoch_chunk(epoch, group + 1, dataset->prefetched_chunks);
		if (chunk == UINT64_MAX)
			return;
		if (!dataset->cache.slot_of[chunk] && cacheable(dataset, chunk) &&
		    load_chunk(dataset, batch, chunk) == UINT32_MAX)
			return;
		dataset->prefetched_chunks++;
	}
}

/* Which samples. Each one's entry and label are somewhere else in memory: they are on their way before they
 * are used. */
static void draw(struct weir_dataset *dataset, struct weir_dataset_loading *batch)
{
	const struct weir_dataset_directory *directory = &dataset->directory;

	for (uint32_t row = 0; row < batch->count; row++) {
		uint64_t position = weir_dataset_share_at(&dataset->share, batch->first + row);
		uint64_t number = weir_dataset_epoch_at(&dataset->epoch, position);

		batch->samples[row] = number;
		__builtin_prefetch(&directory->entries[number]);
		if (directory->labels)
			__builtin_prefetch(&directory->labels[number]);
	}
}

int weir_dataset_plan(struct weir_dataset *dataset, struct weir_dataset_loading *batch, uint32_t count)
{
	int error = 0;

	batch->request_count = batch->piece_count = batch->event_count = batch->slot_count = 0;
	batch->count = count;
	batch->first = dataset->planned;
	if (dataset->epoch.group_first)
		dataset->now =
			dataset->epoch.options.epoch * dataset->epoch.groups +
			weir_dataset_epoch_group(&dataset->epoch,
						 weir_dataset_share_at(&dataset->share, dataset->planned));
	draw(dataset, batch);
	for (uint32_t row = 0; row < count && !error; row++)
		error = plan_row(dataset, batch, row);
	dataset->planned += count;
	if (!error && dataset->by_chunk)
		prefetch(dataset, batch);
	return error;
}
