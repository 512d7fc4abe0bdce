/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache.c: the sample cache: chunks in memory, of which the one that is needed last makes room.
 *
 * The future is known: of each chunk the epoch says when it is used, and if that is past, the next epoch
 * does. The V bits of a chunk's entries are set while it is here (DLFS, section III-C).
 */
#include <errno.h>
#include <stdlib.h>

#include "backend/error.h"
#include "mounted.h"

static int allocate(struct weir_dataset *dataset, uint64_t bytes, uint64_t *address, void **host)
{
	if (dataset->options.device)
		return weir_alloc(dataset->context, bytes, address);
	return weir_alloc_host(dataset->context, bytes, address, host);
}

static uint32_t events_per_slot(const struct weir_dataset *dataset)
{
	uint64_t most = UINT64_MAX;

	for (uint32_t i = 0; i < dataset->storage_count; i++) {
		uint64_t bytes = (uint64_t)dataset->storages[i].max_blocks << dataset->storages[i].block_log2;

		most = bytes < most ? bytes : most;
	}
	return (uint32_t)((dataset->options.chunk_bytes + most - 1) / most);
}

int weir_dataset_cache_open(struct weir_dataset *dataset)
{
	struct weir_dataset_cache *cache = &dataset->cache;
	uint64_t count = dataset->options.cache_bytes / dataset->options.chunk_bytes;
	int error;

	if (count > dataset->directory.chunks)
		count = dataset->directory.chunks ? dataset->directory.chunks : 1;
	cache->count = (uint32_t)count;
	cache->events_per_slot = events_per_slot(dataset);
	cache->slots = calloc(count, sizeof(*cache->slots));
	cache->slot_of = calloc(dataset->directory.chunks + 1, sizeof(*cache->slot_of));
	if (!cache->slots || !cache->slot_of)
		return weir_fail(ENOMEM, "dataset: no memory for the lists of a cache of %llu chunks",
				 (unsigned long long)count);
	error = allocate(dataset, count * dataset->options.chunk_bytes + WEIR_DATASET_SOURCE_SLACK,
			 &cache->memory, &cache->host);
	if (!error)
		error = weir_alloc(dataset->context,
				   count * cache->events_per_slot * sizeof(struct weir_event),
				   &cache->events);
	return error;
}

void weir_dataset_cache_close(struct weir_dataset *dataset)
{
	struct weir_dataset_cache *cache = &dataset->cache;

	weir_free(dataset->context, cache->memory);
	weir_free(dataset->context, cache->events);
	free(cache->slots);
	free(cache->slot_of);
}

uint64_t weir_dataset_cache_address(const struct weir_dataset *dataset, uint32_t slot)
{
	return dataset->cache.memory + (uint64_t)slot * dataset->options.chunk_bytes;
}

uint64_t weir_dataset_cache_events(const struct weir_dataset *dataset, uint32_t slot)
{
	return dataset->cache.events +
	       (uint64_t)slot * dataset->cache.events_per_slot * sizeof(struct weir_event);
}

uint32_t weir_dataset_cache_slot_of(const struct weir_dataset *dataset, uint64_t event)
{
	const struct weir_dataset_cache *cache = &dataset->cache;
	uint64_t slot = (event - cache->events) / sizeof(struct weir_event) / cache->events_per_slot;

	return event >= cache->events && slot < cache->count ? (uint32_t)slot : UINT32_MAX;
}

uint32_t weir_dataset_cache_loading(const struct weir_dataset *dataset)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < dataset->cache.empty; i++)
		count += dataset->cache.slots[i].state == WEIR_DATASET_SLOT_LOADING;
	return count;
}

uint32_t weir_dataset_cache_get(struct weir_dataset *dataset, uint64_t chunk)
{
	uint32_t slot = dataset->cache.slot_of[chunk];

	if (!slot)
		return UINT32_MAX;
	dataset->cache.slots[slot - 1].pins++;
	return slot - 1;
}

static void mark(struct weir_dataset *dataset, uint64_t chunk, uint64_t cached)
{
	struct weir_dataset_directory *directory = &dataset->directory;

	for (uint32_t i = directory->chunk_first[chunk]; i < directory->chunk_first[chunk + 1]; i++)
		directory->entries[i].where = (directory->entries[i].where & ~(uint64_t)1) | cached;
}

void weir_dataset_cache_ready(struct weir_dataset *dataset, uint32_t slot, bool good)
{
	struct weir_dataset_slot *at = &dataset->cache.slots[slot];

	if (at->state != WEIR_DATASET_SLOT_LOADING)
		return;
	at->state = good ? WEIR_DATASET_SLOT_READY : WEIR_DATASET_SLOT_EMPTY;
	if (good)
		mark(dataset, at->chunk, 1);
	else
		dataset->cache.slot_of[at->chunk] = 0;
}

bool weir_dataset_cache_ahead(const struct weir_dataset *dataset, uint64_t group)
{
	uint64_t begin = dataset->epoch.group_first[group], end = dataset->epoch.group_first[group + 1],
		 before = 0;

	for (size_t i = 0; i < dataset->share.count; i++) {
		struct weir_dataset_segment segment = dataset->share.segments[i];
		uint64_t count = segment.end - segment.begin,
			 skip = dataset->planned > before ? dataset->planned - before : 0;

		if (skip < count && segment.begin + skip < end && begin < segment.end)
			return true;
		before += count;
	}
	return false;
}

uint64_t weir_dataset_cache_use(struct weir_dataset *dataset, uint64_t chunk)
{
	const struct weir_dataset_epoch *epoch = &dataset->epoch;
	uint64_t group;

	if (!epoch->group_first)
		return 0;
	group = weir_dataset_epoch_use(epoch, &epoch->chunked, chunk);
	if (weir_dataset_cache_ahead(dataset, group))
		return epoch->options.epoch * epoch->groups + group;
	group = weir_dataset_epoch_use(epoch, &epoch->next, chunk);
	return (epoch->options.epoch + 1) * epoch->groups + group;
}

/* A use that is past becomes the next one. */
static uint64_t use_of(struct weir_dataset *dataset, struct weir_dataset_slot *slot)
{
	if (slot->use < dataset->now)
		slot->use = weir_dataset_cache_use(dataset, slot->chunk);
	return slot->use;
}

/* The slot whose chunk is needed last, of those that nobody needs now; one that is ahead of its time takes
 * none that is needed before. */
static uint32_t victim(struct weir_dataset *dataset, uint64_t use)
{
	struct weir_dataset_cache *cache = &dataset->cache;
	uint64_t last = 0;
	uint32_t found = UINT32_MAX;

	if (cache->empty < cache->count)
		return cache->empty++;
	for (uint32_t i = 0; i < cache->count; i++) {
		struct weir_dataset_slot *slot = &cache->slots[i];

		if (slot->pins || slot->state == WEIR_DATASET_SLOT_LOADING)
			continue;
		if (slot->state == WEIR_DATASET_SLOT_EMPTY)
			return i;
		if (found == UINT32_MAX || use_of(dataset, slot) > last) {
			last = use_of(dataset, slot);
			found = i;
		}
	}
	return use > dataset->now && last <= use ? UINT32_MAX : found;
}

void weir_dataset_cache_restart(struct weir_dataset *dataset)
{
	for (uint32_t i = 0; i < dataset->cache.empty; i++)
		if (dataset->cache.slots[i].state == WEIR_DATASET_SLOT_READY)
			dataset->cache.slots[i].use =
				weir_dataset_cache_use(dataset, dataset->cache.slots[i].chunk);
}

uint32_t weir_dataset_cache_reserve(struct weir_dataset *dataset, uint64_t chunk, uint64_t use)
{
	struct weir_dataset_cache *cache = &dataset->cache;
	uint32_t slot = victim(dataset, use);
	struct weir_dataset_slot *at;

	if (slot == UINT32_MAX)
		return slot;
	at = &cache->slots[slot];
	if (at->state == WEIR_DATASET_SLOT_READY) {
		mark(dataset, at->chunk, 0);
		cache->slot_of[at->chunk] = 0;
		dataset->stats.evictions++;
	}
	*at = (struct weir_dataset_slot){ .chunk = chunk, .use = use, .state = WEIR_DATASET_SLOT_LOADING };
	cache->slot_of[chunk] = slot + 1;
	dataset->stats.chunk_loads++;
	return slot;
}
