/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/file_buffers.c: memory a ring knows beforehand, so that a request into
 * it needs no page look-up.
 *
 * Owns: one ring's table of registered buffers. What cannot be registered (the
 * locked-memory limit, device memory) is remembered as such and not tried again
 * until its region changes; requests then name plain addresses.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"

enum { BUFFER_SLOTS = 1024 };
#define BUFFER_BYTES_MAX (1ull << 30) /* the kernel's limit for one */

/* The table itself, empty. Kernels before 5.19 lack the sparse call. */
static int buffers_table(struct io_uring *uring)
{
	struct iovec *none;
	int error = io_uring_register_buffers_sparse(uring, BUFFER_SLOTS);

	if (error != -EINVAL)
		return error;
	none = calloc(BUFFER_SLOTS, sizeof(*none));
	if (!none)
		return -ENOMEM;
	error = io_uring_register_buffers(uring, none, BUFFER_SLOTS);
	free(none);
	return error;
}

static int buffers_prepare(struct file_buffers *buffers, struct io_uring *uring)
{
	int error;

	if (buffers->free_slots)
		return 0;
	error = buffers_table(uring);
	if (error)
		return error;
	buffers->free_slots = malloc(BUFFER_SLOTS * sizeof(*buffers->free_slots));
	if (!buffers->free_slots)
		return -ENOMEM;
	for (int slot = 0; slot < BUFFER_SLOTS; slot++)
		buffers->free_slots[slot] = BUFFER_SLOTS - 1 - slot;
	buffers->free_count = BUFFER_SLOTS;
	return 0;
}

static int buffer_update(struct io_uring *uring, int slot, uint64_t address, uint64_t bytes)
{
	struct iovec memory = { (void *)(uintptr_t)address, bytes };
	uint64_t tag = 0;
	int done = io_uring_register_buffers_update_tag(uring, (unsigned)slot, &memory, (__u64 *)&tag, 1);

	return done < 0 ? done : 0;
}

/* Gives @item a slot, or notes why it has none. */
static void buffer_register(struct file_buffers *buffers, struct io_uring *uring, struct file_buffer *item)
{
	int error = buffers_prepare(buffers, uring);

	item->slot = FILE_BUFFER_NONE;
	if (!error && !buffers->free_count)
		error = -ENOSPC;
	if (!error) {
		int slot = buffers->free_slots[buffers->free_count - 1];

		error = buffer_update(uring, slot, item->address, item->bytes);
		if (!error) {
			item->slot = slot;
			buffers->free_count--;
		}
	}
	if (error && !buffers->error)
		buffers->error = -error;
}

static void buffer_unregister(struct file_buffers *buffers, struct io_uring *uring, struct file_buffer *item)
{
	if (item->slot < 0)
		return;
	/* A slot that would not let go is left out of use. */
	if (!buffer_update(uring, item->slot, 0, 0))
		buffers->free_slots[buffers->free_count++] = item->slot;
	item->slot = FILE_BUFFER_NONE;
}

static size_t view_pieces(const struct weir_dma_view *view)
{
	size_t pieces = 0;

	for (size_t i = 0; i < view->count; i++)
		pieces += (view->regions[i].bytes + BUFFER_BYTES_MAX - 1) / BUFFER_BYTES_MAX;
	return pieces;
}

static void view_split(const struct weir_dma_view *view, struct file_buffer *pieces)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct weir_dma_region *region = &view->regions[i];

		for (uint64_t at = 0; at < region->bytes; at += BUFFER_BYTES_MAX, pieces++) {
			uint64_t rest = region->bytes - at;

			pieces->address = region->address + at;
			pieces->bytes = rest < BUFFER_BYTES_MAX ? rest : BUFFER_BYTES_MAX;
			pieces->id = region->id;
			pieces->slot = FILE_BUFFER_NONE;
		}
	}
}

static bool buffer_same(const struct file_buffer *a, const struct file_buffer *b)
{
	return a->address == b->address && a->bytes == b->bytes && a->id == b->id;
}

/* The item that begins at @address or the nearest before it; count if there is none. */
static size_t buffers_at(const struct file_buffers *buffers, uint64_t address)
{
	size_t low = 0;
	size_t high = buffers->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (buffers->items[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : buffers->count;
}

/* Moves the slots of unchanged pieces over and marks the others of @pieces as new. */
static void buffers_inherit(struct file_buffers *buffers, struct file_buffer *pieces, size_t count,
			    bool *fresh)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = buffers_at(buffers, pieces[i].address);

		fresh[i] = at == buffers->count || !buffer_same(&buffers->items[at], &pieces[i]);
		if (fresh[i])
			continue;
		pieces[i].slot = buffers->items[at].slot;
		buffers->items[at].slot = FILE_BUFFER_NONE;
	}
}

static bool buffers_complete(const struct file_buffers *buffers)
{
	for (size_t i = 0; i < buffers->count; i++)
		if (buffers->items[i].slot < 0)
			return false;
	return true;
}

void file_buffers_follow(struct file_buffers *buffers, struct io_uring *uring,
			 const struct weir_dma_view *view)
{
	size_t count = view_pieces(view);
	struct file_buffer *pieces = malloc((count + 1) * sizeof(*pieces));
	bool *fresh = malloc((count + 1) * sizeof(*fresh));

	if (pieces && fresh) {
		view_split(view, pieces);
		buffers_inherit(buffers, pieces, count, fresh);
	} else {
		count = 0; /* nothing is registered then: slower, never wrong */
		buffers->error = ENOMEM;
	}
	for (size_t i = 0; i < buffers->count; i++)
		buffer_unregister(buffers, uring, &buffers->items[i]);
	free(buffers->items);
	buffers->items = pieces;
	buffers->count = count;
	buffers->last = 0;
	for (size_t i = 0; i < count; i++)
		if (fresh[i])
			buffer_register(buffers, uring, &pieces[i]);
	if (count && buffers_complete(buffers))
		buffers->error = 0;
	free(fresh);
}

void file_buffers_release(struct file_buffers *buffers)
{
	free(buffers->items);
	free(buffers->free_slots);
	memset(buffers, 0, sizeof(*buffers));
}

static bool buffer_holds(const struct file_buffer *item, uint64_t address, uint64_t bytes)
{
	return address >= item->address && bytes <= item->bytes &&
	       address - item->address <= item->bytes - bytes;
}

int file_buffers_find(struct file_buffers *buffers, uint64_t address, uint64_t bytes)
{
	size_t at = buffers->last;

	if (!buffers->count)
		return FILE_BUFFER_NONE;
	if (!buffer_holds(&buffers->items[at], address, bytes)) {
		at = buffers_at(buffers, address);
		if (at == buffers->count || !buffer_holds(&buffers->items[at], address, bytes))
			return FILE_BUFFER_NONE;
		buffers->last = at;
	}
	return buffers->items[at].slot;
}
