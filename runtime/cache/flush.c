/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushing and dropping lines for the host: a kernel sweeps them, and notes what it could not write. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/core/cache/flush.h>

#include "cache.h"
#include "../backend/error.h"
#include "../kernels/sweep.h"

enum {
	BLOCK_LANES = 128,
	LANES_PER_WORKER = 512,
	LIST_BYTES = 768,
	SCAN_WORDS = 1 << 16,
};

/* As many lanes as there are lines, or as the device keeps busy. */
static int launch(struct weir_cache *cache, const struct weir_sweep_args *args)
{
	struct weir_backend *backend = cache->context->backend;
	struct weir_backend_properties properties = { .wave_lanes = 0 };
	uint64_t lanes = cache->sets * WEIR_WAYS, most;
	int error;

	backend->ops->properties(backend, &properties);
	most = (uint64_t)properties.workers * LANES_PER_WORKER;
	lanes = lanes < most ? lanes : most;
	error = weir_launch(cache->context, "weir_sweep", (uint32_t)((lanes + BLOCK_LANES - 1) / BLOCK_LANES),
			    lanes < BLOCK_LANES ? (uint32_t)lanes : BLOCK_LANES, args, sizeof(*args));
	/* Not weir_sync(): a fault of the kernels before is still theirs to tell. */
	return error ? error : backend->ops->synchronise(backend);
}

static int sweep(struct weir_cache *cache, uint64_t first_key, uint64_t end_key, uint32_t kind,
		 struct weir_sweep_note *note)
{
	struct weir_sweep_args args = {
		.lines = cache->lines, .first_key = first_key, .end_key = end_key, .kind = kind
	};
	int error;

	memset(note, 0, sizeof(*note));
	if (!cache->extent_count || first_key >= end_key)
		return 0;
	error = weir_memory_get(cache->context, sizeof(*note), &args.note);
	if (!error)
		error = launch(cache, &args);
	if (!error)
		error = weir_copy_from_device(cache->context, note, args.note, sizeof(*note));
	(void)weir_memory_put(cache->context, args.note);
	return error;
}

static const char *uri_of(const struct weir_cache *cache, uint32_t id)
{
	for (const struct weir_cache_disks *disks = cache->disks; disks; disks = disks->next)
		for (uint32_t i = 0; i < disks->extent.disk_count; i++)
			if (disks->members[i].disk.id == id)
				return disks->members[i].uri;
	return "?";
}

/* What a sweep could not write, as a sentence. @what: what becomes of the lines. */
static int complain(const struct weir_cache *cache, const struct weir_sweep_note *note, const char *what)
{
	uint64_t failed = weir_load_u64_relaxed_sys(&note->failed);
	char list[LIST_BYTES] = "";
	size_t used = 0;
	unsigned named = 0;

	if (!failed)
		return 0;
	for (; named < failed && named < WEIR_SWEEP_NAMED; named++) {
		const struct weir_sweep_named *line = &note->named[named], *last = named ? line - 1 : NULL;
		char text[80], entry[LIST_BYTES];
		int length;

		weir_status_text(line->status, text);
		if (last && last->disk == line->disk && last->status == line->status)
			length = snprintf(entry, sizeof(entry), ", %llu", (unsigned long long)line->lba);
		else
			length = snprintf(entry, sizeof(entry), "%sblock %llu of \"%s\" (%s)",
					  named ? ", " : "", (unsigned long long)line->lba,
					  uri_of(cache, line->disk), text);
		if (used + (size_t)length >= sizeof(list))
			break;
		memcpy(list + used, entry, (size_t)length + 1);
		used += (size_t)length;
	}
	if (failed > named)
		snprintf(list + used, sizeof(list) - used, ", and %llu more",
			 (unsigned long long)(failed - named));
	return weir_fail(EIO, "cache: %llu lines could not be written, from %s; %s",
			 (unsigned long long)failed, list, what);
}

/* NVMe Flush of the storages of @disks that answered. */
static int make_durable(struct weir_cache *cache, const struct weir_cache_disks *disks,
			const struct weir_sweep_note *note)
{
	struct weir_sweep sweep = { .note = WEIR_ADDR(note) };
	struct weir_losses losses = { .error = 0 };

	for (uint32_t i = 0; i < disks->extent.disk_count; i++)
		if (!weir_sweep_expired(sweep, disks->members[i].disk.id))
			weir_losses_add(&losses, weir_disk_flush(cache->context, &disks->members[i].disk,
								 disks->members[i].uri));
	return weir_losses_end(&losses);
}

/* What was written back is dropped, so that it is read from storage from here on. */
static int invalidate(struct weir_cache *cache, uint64_t first_key, uint64_t end_key)
{
	struct weir_sweep_note note;
	int error = sweep(cache, first_key, end_key, WEIR_SWEEP_DROP, &note);
	uint64_t kept = weir_load_u64_relaxed_sys(&note.failed);

	if (error || !kept)
		return error;
	return weir_fail(
		EBUSY,
		"cache: %llu lines are still being read or written, and stay: their storage does not answer",
		(unsigned long long)kept);
}

/* @only: of this layout, or NULL for all. Lines that were not written are told rather than that a storage
 * took no Flush. */
static int flush(struct weir_cache *cache, uint64_t first_key, uint64_t end_key, int durable,
		 const struct weir_cache_disks *only)
{
	struct weir_losses losses = { .error = 0 };
	struct weir_sweep_note note;
	int error = sweep(cache, first_key, end_key, WEIR_SWEEP_FLUSH, &note), unflushed;

	for (const struct weir_cache_disks *disks = cache->disks; disks && durable && !error;
	     disks = disks->next)
		if (disks->written && !disks->closed && (!only || disks == only))
			weir_losses_add(&losses, make_durable(cache, disks, &note));
	unflushed = weir_losses_end(&losses);
	if (!error)
		error = complain(cache, &note, "they stay dirty, and the next flush tries again");
	if (!error && !unflushed && cache->invalidates)
		error = invalidate(cache, first_key, end_key);
	return error ? error : unflushed;
}

int weir_cache_flush(struct weir_cache *cache, int durable)
{
	int error = weir_handle_check(cache, WEIR_HANDLE_CACHE, "weir_cache_flush");

	return error ? error : flush(cache, 1, cache->next_key, durable, NULL);
}

/** struct range - keys of an array's elements, and the layout they belong to */
struct range {
	const struct weir_cache_disks *disks;
	uint64_t first_key, end_key;
};

/* Elements [@first, @first + @count) of @array as keys; a sentence if there are none such in @cache. */
static int range_of(const struct weir_cache *cache, const struct weir_array *array, uint64_t first,
		    uint64_t count, const char *what, struct range *range)
{
	uint64_t begin;
	int error = weir_handle_check(cache, WEIR_HANDLE_CACHE, what);

	if (error || (error = weir_given(array, what, "array")) != 0)
		return error;
	begin = array->first_byte + first * array->element_bytes;
	*range = (struct range){ .disks = cache->disks };
	while (range->disks && range->disks->extent.key_base != array->extent.key_base)
		range->disks = range->disks->next;
	if (!range->disks || array->lines != cache->lines)
		return weir_fail(EINVAL, "%s: the array is not one of this cache", what);
	if (range->disks->closed)
		return weir_fail(EINVAL,
				 "%s: storage \"%s\" of the array, or another of its stripe, is closed", what,
				 range->disks->members[0].uri);
	if (first > array->count || count > array->count - first)
		return weir_fail(ERANGE, "%s: elements %llu to %llu of an array of %llu", what,
				 (unsigned long long)first, (unsigned long long)(first + count),
				 (unsigned long long)array->count);
	range->first_key = array->extent.key_base + (begin >> cache->line_log2);
	range->end_key = count ? array->extent.key_base + 1 +
					 ((begin + count * array->element_bytes - 1) >> cache->line_log2)
			       : 0;
	return 0;
}

int weir_array_flush(struct weir_cache *cache, const struct weir_array *array, uint64_t first, uint64_t count,
		     int durable)
{
	struct range range;
	int error = range_of(cache, array, first, count, "weir_array_flush", &range);

	return error ? error : flush(cache, range.first_key, range.end_key, durable, range.disks);
}

int weir_array_invalidate(struct weir_cache *cache, const struct weir_array *array, uint64_t first,
			  uint64_t count)
{
	struct weir_sweep_note note;
	struct range range;
	int error = range_of(cache, array, first, count, "weir_array_invalidate", &range);

	if (!error)
		error = sweep(cache, range.first_key, range.end_key, WEIR_SWEEP_DROP, &note);
	if (!error && weir_load_u64_relaxed_sys(&note.failed))
		return weir_fail(EBUSY,
				 "weir_array_invalidate: %llu lines are still being read or written: their "
				 "storage does not answer",
				 (unsigned long long)weir_load_u64_relaxed_sys(&note.failed));
	return error;
}

int weir_cache_drain(struct weir_cache *cache, bool *quiet)
{
	struct weir_sweep_note note;
	int error = sweep(cache, 1, cache->next_key, WEIR_SWEEP_DRAIN, &note);

	*quiet = !error && !weir_load_u64_relaxed_sys(&note.late);
	return error ? error : complain(cache, &note, "they are lost");
}

int weir_cache_settle(struct weir_cache *cache, struct weir_cache_disks *disks)
{
	uint64_t first = disks->extent.key_base, end = first + disks->extent.lines;
	struct weir_sweep_note note, dropped;
	int error = sweep(cache, first, end, WEIR_SWEEP_DRAIN, &note);

	/* A storage that does not answer keeps lines until it is closed: it is not waited for once more. */
	disks->late = error || weir_load_u64_relaxed_sys(&note.late);
	if (!disks->late)
		error = sweep(cache, first, end, WEIR_SWEEP_DROP, &dropped);
	return error ? error : complain(cache, &note, "they are lost, since the storage is closed");
}

void weir_cache_forget(struct weir_cache *cache, struct weir_cache_disks *disks)
{
	uint64_t first = disks->extent.key_base;
	struct weir_sweep_note dropped;

	disks->late = sweep(cache, first, first + disks->extent.lines, WEIR_SWEEP_DROP, &dropped) != 0;
}

/* @count of the lines' words at @at: where the host shares them each by itself, since a service may go on
 * beside us. */
static int poll(const struct weir_cache *cache, uint64_t *words, uint64_t at, uint64_t count)
{
	if (!cache->context->shared_memory)
		return weir_copy_from_device(cache->context, words, at, count * sizeof(*words));
	for (uint64_t i = 0; i < count; i++)
		words[i] =
			weir_load_u64_relaxed_sys(weir_at(at, weir_shared_u64, i)); /* relaxed: a snapshot */
	return 0;
}

int weir_cache_dirty(struct weir_cache *cache, uint64_t *dirty)
{
	uint64_t left = cache->written ? cache->sets * WEIR_WAYS : 0, at = cache->words;
	uint64_t *words = left ? malloc(SCAN_WORDS * sizeof(*words)) : NULL;
	int error = left && !words ? weir_fail(ENOMEM, "weir_cache_stats: no memory") : 0;

	*dirty = 0;
	while (left && !error) {
		uint64_t count = left < SCAN_WORDS ? left : SCAN_WORDS;

		error = poll(cache, words, at, count);
		for (uint64_t i = 0; i < count && !error; i++)
			*dirty += weir_line_dirty(words[i]) ||
				  (weir_line_readable(words[i]) && weir_line_under_way(words[i]));
		at += count * sizeof(*words);
		left -= count;
	}
	free(words);
	return error;
}
