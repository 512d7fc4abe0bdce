/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout.c: the storages of a cache. Arrays of the same storages, striped in the same
 * way, share their keys, so that each sees what is written through the other; where that
 * cannot be, nothing is written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "../storage/closed.h"
#include "../backend/error.h"

enum { FIRST_ROOM = 64 };

/* Keys for @lines lines from the cache's space of 2^40. */
static int take_keys(struct weir_cache *cache, uint64_t lines, uint64_t *base)
{
	if (lines > ((uint64_t)1 << WEIR_KEY_BITS) - cache->next_key)
		return weir_fail(ERANGE,
				 "array: %llu lines of %u bytes exceed what one cache can name (2^%d); use "
				 "longer lines",
				 (unsigned long long)lines, 1u << cache->line_log2, WEIR_KEY_BITS);
	*base = cache->next_key;
	cache->next_key += lines;
	return 0;
}

/* @lanes: but for what arrays may still look at. */
static void free_layout(struct weir_cache *cache, struct weir_cache_disks *disks, bool lanes)
{
	if (!lanes)
		(void)weir_memory_put(cache->context, disks->extent.disks);
	for (uint32_t i = 0; i < disks->extent.disk_count; i++)
		free(disks->members[i].uri);
	free(disks);
}

void weir_cache_layouts_free(struct weir_cache *cache, bool lanes)
{
	while (cache->disks) {
		struct weir_cache_disks *next = cache->disks->next;

		free_layout(cache, cache->disks, lanes);
		cache->disks = next;
	}
	for (unsigned i = 0; i < cache->old_extent_count; i++)
		(void)weir_memory_put(cache->context, cache->old_extents[i]);
	if (!lanes)
		(void)weir_memory_put(cache->context, cache->extents);
}

/* A longer table with the same beginning; lanes may go on with the old one. */
static int grow_extents(struct weir_cache *cache)
{
	uint32_t room = cache->extent_room ? 2 * cache->extent_room : FIRST_ROOM;
	size_t used = cache->extent_count * sizeof(struct weir_extent);
	struct weir_extent *copy = malloc(room * sizeof(*copy));
	uint64_t table = 0;
	int error = copy ? weir_memory_get(cache->context, room * sizeof(*copy), &table)
			 : weir_fail(ENOMEM, "array: no memory for %u layouts", room);

	if (!error && used)
		error = weir_copy_from_device(cache->context, copy, cache->extents, used);
	if (!error && used)
		error = weir_copy_to_device(cache->context, table, copy, used);
	/* release: the table before the length that needs it, which comes with its first new entry */
	if (!error)
		error = weir_copy_to_device(cache->context,
					    cache->lines + offsetof(struct weir_lines, extents), &table,
					    sizeof(table));
	free(copy);
	if (error) {
		(void)weir_memory_put(cache->context, table);
		return error;
	}
	if (cache->extents)
		cache->old_extents[cache->old_extent_count++] = cache->extents;
	cache->extents = table;
	cache->extent_room = room;
	return 0;
}

/* The last entry of the lanes' table, then its length. */
static int append_extent(struct weir_cache *cache, const struct weir_extent *extent)
{
	uint32_t count = cache->extent_count + 1;
	int error = cache->extent_count == cache->extent_room ? grow_extents(cache) : 0;

	if (!error)
		error = weir_copy_to_device(cache->context,
					    cache->extents + cache->extent_count * sizeof(*extent), extent,
					    sizeof(*extent));
	if (!error)
		error = weir_copy_to_device(cache->context,
					    cache->lines + offsetof(struct weir_lines, extent_count), &count,
					    sizeof(count));
	if (!error)
		cache->extent_count = count;
	return error;
}

/* The storages' device structures in a table lanes can index; and the host's copy. */
static int fill_layout(struct weir_cache *cache, struct weir_storage *const *storages,
		       struct weir_cache_disks *disks)
{
	uint32_t count = disks->extent.disk_count;
	int error = weir_memory_get(cache->context, count * sizeof(struct weir_disk), &disks->extent.disks);

	for (uint32_t i = 0; i < count && !error; i++) {
		disks->members[i].disk = storages[i]->disk;
		disks->members[i].uri = strdup(storages[i]->uri);
		error = disks->members[i].uri
				? weir_copy_to_device(cache->context,
						      disks->extent.disks + i * sizeof(struct weir_disk),
						      &storages[i]->disk, sizeof(struct weir_disk))
				: weir_fail(ENOMEM, "array: no memory");
	}
	return error;
}

static int make_layout(struct weir_cache *cache, const struct weir_layout_request *request,
		       struct weir_cache_disks **out)
{
	struct weir_cache_disks *disks =
		calloc(1, sizeof(*disks) + request->count * sizeof(disks->members[0]));
	int error;

	if (!disks)
		return weir_fail(ENOMEM, "array: no memory");
	disks->extent.disk_count = request->count;
	disks->extent.unit_log2 = request->unit_log2;
	disks->extent.lines = request->lines;
	error = take_keys(cache, request->lines, &disks->extent.key_base);
	if (!error)
		error = fill_layout(cache, request->storages, disks);
	if (!error)
		error = append_extent(cache, &disks->extent);
	if (error) {
		free_layout(cache, disks, false);
		return error;
	}
	disks->next = cache->disks;
	cache->disks = disks;
	*out = disks;
	return 0;
}

static bool same_layout(const struct weir_cache_disks *disks, struct weir_storage *const *storages,
			unsigned count, uint32_t unit_log2)
{
	bool same = disks->extent.disk_count == count && (count == 1 || disks->extent.unit_log2 == unit_log2);

	for (unsigned i = 0; i < count && same; i++)
		same = disks->members[i].disk.id == storages[i]->disk.id;
	return same;
}

/* A storage that both have, or NULL. */
static const char *common_member(const struct weir_cache_disks *a, const struct weir_cache_disks *b)
{
	for (uint32_t i = 0; i < a->extent.disk_count; i++)
		for (uint32_t j = 0; j < b->extent.disk_count; j++)
			if (a->members[i].disk.id == b->members[j].disk.id)
				return a->members[i].uri;
	return NULL;
}

/* Two layouts of one storage have lines of their own, which do not know of each other. */
static int check_apart(const struct weir_cache *cache, const struct weir_cache_disks *disks)
{
	for (const struct weir_cache_disks *other = cache->disks; other; other = other->next) {
		bool apart = other != disks && !other->closed && (other->written || disks->written);
		const char *uri = apart ? common_member(disks, other) : NULL;

		if (uri)
			return weir_fail(EBUSY,
					 "storage \"%s\" is in this cache with two layouts (alone, or "
					 "striped differently) and "
					 "written to: one would not see what is written through the other; "
					 "use one layout, "
					 "or another cache after a flush",
					 uri);
	}
	return 0;
}

static struct weir_cache_disks *find_layout(const struct weir_cache *cache,
					    struct weir_storage *const *storages, unsigned count,
					    uint32_t unit_log2)
{
	struct weir_cache_disks *disks = cache->disks;

	while (disks && (disks->closed || !same_layout(disks, storages, count, unit_log2)))
		disks = disks->next;
	return disks;
}

static bool has_member(const struct weir_cache_disks *disks, uint32_t id)
{
	for (uint32_t i = 0; i < disks->extent.disk_count; i++)
		if (disks->members[i].disk.id == id)
			return true;
	return false;
}

int weir_cache_leave_storage(struct weir_cache *cache, const struct weir_storage *storage)
{
	struct weir_losses losses = { .error = 0 };

	for (struct weir_cache_disks *disks = cache->disks; disks; disks = disks->next) {
		if (disks->closed || !has_member(disks, storage->disk.id))
			continue;
		weir_losses_add(&losses, weir_cache_settle(cache, disks));
		weir_closed_layout(cache, disks, &storage->disk);
		cache->context->late_lines |= disks->late;
	}
	return weir_losses_end(&losses);
}

void weir_cache_forget_storage(struct weir_cache *cache, const struct weir_storage *storage)
{
	for (struct weir_cache_disks *disks = cache->disks; disks; disks = disks->next)
		if (disks->late && has_member(disks, storage->disk.id))
			weir_cache_forget(cache, disks);
}

int weir_cache_layout(struct weir_cache *cache, const struct weir_layout_request *request,
		      struct weir_cache_disks **out)
{
	struct weir_cache_disks *disks =
		find_layout(cache, request->storages, request->count, request->unit_log2);
	bool before = disks && disks->written, made = !disks;
	int error = made ? make_layout(cache, request, &disks) : 0;

	if (error)
		return error;
	disks->written |= request->written;
	error = check_apart(cache, disks);
	if (error && made) { /* its keys are spent, and nobody's */
		cache->disks = disks->next;
		free_layout(cache, disks, false);
	} else if (error) {
		disks->written = before;
	} else {
		cache->written |= request->written;
		*out = disks;
	}
	return error;
}
