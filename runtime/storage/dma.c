/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dma.c: the map of memory that controllers may touch, and the views of it.
 *
 * Owns: one sorted array of regions behind a mutex. Never touches the memory
 * the regions name.
 */
#include "dma.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/error.h"

struct weir_dma_map {
	pthread_mutex_t lock;
	struct weir_dma_region *regions; /* sorted by address, never overlapping */
	size_t count;
	size_t room;
	uint64_t next_id;
	struct weir_dma_mapper *mappers;
	uint64_t generation; /* written under the lock, read by anyone; 0 is never used */
};

int weir_dma_map_create(struct weir_dma_map **out)
{
	struct weir_dma_map *map = calloc(1, sizeof(*map));

	if (!map)
		return weir_fail(ENOMEM, "no memory for a DMA map");
	pthread_mutex_init(&map->lock, NULL);
	map->generation = 1;
	map->next_id = 1;
	*out = map;
	return 0;
}

void weir_dma_map_destroy(struct weir_dma_map *map)
{
	if (!map)
		return;
	pthread_mutex_destroy(&map->lock);
	free(map->regions);
	free(map);
}

/* The number of regions that begin at or before @address. */
static size_t regions_up_to(const struct weir_dma_region *regions, size_t count, uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (regions[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool holds(const struct weir_dma_region *region, uint64_t address, uint64_t bytes)
{
	uint64_t offset = address - region->address;

	return address >= region->address && offset < region->bytes && bytes <= region->bytes - offset;
}

/*
 * dma.G1: pairs with the load in weir_dma_view_refresh(). Relaxed is enough: the
 * lock carries the regions, and a command that relies on this change reaches
 * its controller through a doorbell (doorbell.D1), which orders this store before it.
 */
static void changed(struct weir_dma_map *map)
{
	__atomic_store_n(&map->generation, map->generation + 1, __ATOMIC_RELAXED);
}

static int grow(struct weir_dma_map *map)
{
	size_t room = map->room ? 2 * map->room : 16;
	struct weir_dma_region *regions;

	if (map->count < map->room)
		return 0;
	regions = realloc(map->regions, room * sizeof(*regions));
	if (!regions)
		return weir_fail(ENOMEM, "no memory for a DMA map of %zu regions", room);
	map->regions = regions;
	map->room = room;
	return 0;
}

static int map_by(struct weir_dma_mapper *mapper, const struct weir_dma_region *region)
{
	return region->peer && !mapper->peers
		       ? 0
		       : mapper->map(mapper, region->address, region->bytes, region->host);
}

static void unmap_by(struct weir_dma_mapper *mapper, const struct weir_dma_region *region)
{
	if (!region->peer || mapper->peers)
		mapper->unmap(mapper, region->address, region->bytes);
}

/* By all mappers before @end, which is NULL for all. */
static void unmap(struct weir_dma_map *map, const struct weir_dma_mapper *end,
		  const struct weir_dma_region *region)
{
	for (struct weir_dma_mapper *mapper = map->mappers; mapper != end; mapper = mapper->next)
		unmap_by(mapper, region);
}

/* By all mappers or by none. */
static int map_region(struct weir_dma_map *map, const struct weir_dma_region *region)
{
	for (struct weir_dma_mapper *mapper = map->mappers; mapper; mapper = mapper->next) {
		int error = map_by(mapper, region);

		if (error) {
			unmap(map, mapper, region);
			return error;
		}
	}
	return 0;
}

/** enum kind - of a region that is added */
enum kind {
	OWN,    /* this process's memory, once */
	PEER,   /* another device's */
	SHARED, /* this process's memory, once for each map that follows */
};

static int add_locked(struct weir_dma_map *map, uint64_t address, uint64_t bytes, enum kind kind, void *host)
{
	struct weir_dma_region region = { address, bytes, 0, kind == PEER, 1, host };
	size_t at = regions_up_to(map->regions, map->count, address);
	const struct weir_dma_region *before = at ? &map->regions[at - 1] : NULL;
	const struct weir_dma_region *after = at < map->count ? &map->regions[at] : NULL;
	int error;

	if (kind == SHARED && before && before->address == address && before->bytes == bytes) {
		map->regions[at - 1].shares++;
		return 0;
	}
	if ((before && address - before->address < before->bytes) ||
	    (after && after->address - address < bytes))
		return weir_fail(EEXIST, "DMA region 0x%" PRIx64 "+0x%" PRIx64 " overlaps one already added",
				 address, bytes);
	error = grow(map);
	if (!error)
		error = map_region(map, &region);
	if (error)
		return error;
	memmove(&map->regions[at + 1], &map->regions[at], (map->count - at) * sizeof(*map->regions));
	region.id = map->next_id++;
	map->regions[at] = region;
	map->count++;
	changed(map);
	return 0;
}

static int add(struct weir_dma_map *map, uint64_t start, size_t bytes, enum kind kind, void *host)
{
	int error;

	if (!bytes || start + (bytes - 1) < start)
		return weir_fail(EINVAL, "DMA region 0x%" PRIx64 "+0x%zx is empty or wraps", start, bytes);
	pthread_mutex_lock(&map->lock);
	error = add_locked(map, start, bytes, kind, host);
	pthread_mutex_unlock(&map->lock);
	return error;
}

int weir_dma_map_add(struct weir_dma_map *map, void *address, size_t bytes)
{
	return add(map, (uintptr_t)address, bytes, OWN, address);
}

int weir_dma_map_add_peer(struct weir_dma_map *map, void *address, size_t bytes)
{
	return add(map, (uintptr_t)address, bytes, PEER, address);
}

int weir_dma_map_add_device(struct weir_dma_map *map, uint64_t address, size_t bytes, void *host)
{
	return add(map, address, bytes, PEER, host);
}

int weir_dma_map_share(struct weir_dma_map *map, void *address, size_t bytes, void *host)
{
	return add(map, (uintptr_t)address, bytes, SHARED, host);
}

static int remove_locked(struct weir_dma_map *map, uint64_t address)
{
	size_t at = regions_up_to(map->regions, map->count, address);

	if (!at || map->regions[at - 1].address != address)
		return weir_fail(ENOENT, "no DMA region begins at 0x%" PRIx64, address);
	if (--map->regions[at - 1].shares)
		return 0;
	unmap(map, NULL, &map->regions[at - 1]);
	memmove(&map->regions[at - 1], &map->regions[at], (map->count - at) * sizeof(*map->regions));
	map->count--;
	changed(map);
	return 0;
}

int weir_dma_map_remove(struct weir_dma_map *map, void *address)
{
	int error;

	pthread_mutex_lock(&map->lock);
	error = remove_locked(map, (uint64_t)(uintptr_t)address);
	pthread_mutex_unlock(&map->lock);
	return error;
}

static void unmap_first(struct weir_dma_map *map, struct weir_dma_mapper *mapper, size_t count)
{
	for (size_t i = count; i > 0; i--)
		unmap_by(mapper, &map->regions[i - 1]);
}

static int follow_locked(struct weir_dma_map *map, struct weir_dma_mapper *mapper)
{
	for (size_t i = 0; i < map->count; i++) {
		int error = map_by(mapper, &map->regions[i]);

		if (error) {
			unmap_first(map, mapper, i);
			return error;
		}
	}
	mapper->next = map->mappers;
	map->mappers = mapper;
	return 0;
}

int weir_dma_map_follow(struct weir_dma_map *map, struct weir_dma_mapper *mapper)
{
	int error;

	pthread_mutex_lock(&map->lock);
	error = follow_locked(map, mapper);
	pthread_mutex_unlock(&map->lock);
	return error;
}

void weir_dma_map_unfollow(struct weir_dma_map *map, struct weir_dma_mapper *mapper)
{
	struct weir_dma_mapper **link = &map->mappers;

	pthread_mutex_lock(&map->lock);
	while (*link && *link != mapper)
		link = &(*link)->next;
	if (*link) {
		*link = mapper->next;
		unmap_first(map, mapper, map->count);
	}
	pthread_mutex_unlock(&map->lock);
}

/* A view that cannot be brought up to date forbids everything until it can. */
static void view_copy(struct weir_dma_map *map, struct weir_dma_view *view)
{
	struct weir_dma_region *regions = malloc((map->count + 1) * sizeof(*regions));

	free(view->regions);
	view->regions = regions;
	view->count = 0;
	view->last = 0;
	if (!regions)
		return;
	for (size_t i = 0; i < map->count; i++)
		if ((uintptr_t)map->regions[i].host == map->regions[i].address)
			regions[view->count++] = map->regions[i];
	view->generation = map->generation;
}

bool weir_dma_view_refresh(struct weir_dma_map *map, struct weir_dma_view *view)
{
	/* dma.G1: pairs with changed(); relaxed, as there */
	if (__atomic_load_n(&map->generation, __ATOMIC_RELAXED) == view->generation)
		return false;
	pthread_mutex_lock(&map->lock);
	view_copy(map, view);
	pthread_mutex_unlock(&map->lock);
	return true;
}

void weir_dma_view_release(struct weir_dma_view *view)
{
	free(view->regions);
	memset(view, 0, sizeof(*view));
}

const struct weir_dma_region *weir_dma_view_find(struct weir_dma_view *view, uint64_t address, uint64_t bytes)
{
	size_t at;

	if (view->last < view->count && holds(&view->regions[view->last], address, bytes))
		return &view->regions[view->last];
	at = regions_up_to(view->regions, view->count, address);
	if (!at || !holds(&view->regions[at - 1], address, bytes))
		return NULL;
	view->last = at - 1;
	return &view->regions[view->last];
}
