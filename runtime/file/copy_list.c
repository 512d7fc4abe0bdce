/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file/copy_list.c: between staging and registered memory.
 *
 * Where the backend has streams, an area's moves go into its own: many small ones as one kernel, whose list
 * of moves lies behind the staging, few or large ones as copies. Else each is copied now.
 */
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "../kernels/copy_list.h"
#include "files.h"

/* A copy engine takes some microseconds to begin, a wave of lanes for 64 KiB about as long. */
enum { MOST_BY_LANES = 128 << 10, LEAST_BY_LANES = 2, BLOCK_LANES = 256, BLOCK_WAVES = 8, MOST_BLOCKS = 24 };

static void fail_pieces(struct file_area *area, int error)
{
	area->error = error;
	snprintf(area->sentence, sizeof(area->sentence), "%s", weir_last_error());
	for (size_t i = 0; i < area->count; i++)
		if (area->pieces[i].staged || area->operation == WEIR_FILE_WRITE)
			area->pieces[i].got = error;
}

/* Of a read what came, of a write what is to go. */
static uint32_t bytes_of(const struct file_area *area, const struct file_piece *piece)
{
	if (!piece->staged)
		return 0;
	if (area->operation == WEIR_FILE_WRITE)
		return piece->bytes;
	return piece->got > 0 ? (uint32_t)piece->got : 0;
}

static int move_now(struct file_worker *worker, struct file_area *area, const struct file_piece *piece,
		    uint32_t bytes)
{
	struct weir_backend *backend = worker->files->backend;
	const struct weir_registration *registration = file_piece_io(piece)->registration;
	char *staged = area->memory + piece->position;
	uint64_t index = file_piece_offset(piece);
	bool seen = registration->host &&
		    !registration->pin; /* the host's own reads of a window take very long */

	worker->stats.copied_bytes += bytes;
	if (area->operation == WEIR_FILE_READ) {
		if (!seen)
			return backend->ops->h2d(backend, registration->address + index, staged, bytes);
		memcpy(registration->host + index, staged, bytes);
		return 0;
	}
	if (!seen)
		return backend->ops->d2h(backend, staged, registration->address + index, bytes);
	memcpy(staged, registration->host + index, bytes);
	return 0;
}

/* Behind the last one, as part of it where both sides go on. */
static void add_move(struct file_area *area, const struct file_piece *piece, uint32_t bytes)
{
	uint64_t staged = area->address + piece->position;
	uint64_t index = file_piece_io(piece)->registration->address + file_piece_offset(piece);
	bool read = area->operation == WEIR_FILE_READ;
	struct weir_move *last = area->move_count ? &area->copies[area->move_count - 1] : NULL;
	struct weir_move move = { .to = read ? index : staged,
				  .from = read ? staged : index,
				  .bytes = bytes };

	if (last && last->to + last->bytes == move.to && last->from + last->bytes == move.from)
		last->bytes += bytes;
	else
		area->copies[area->move_count++] = move;
}

/* The list of moves and the arguments lie behind the staging, where lanes see them. */
static int launch(struct file_worker *worker, struct file_area *area)
{
	struct weir_backend *backend = worker->files->backend;
	struct weir_copy_list_args args = { .copies = area->address + FILES_AREA_BYTES + sizeof(args),
					    .count = (u32)area->move_count };
	uint32_t blocks = (uint32_t)(area->move_count + BLOCK_WAVES - 1) / BLOCK_WAVES;

	_Static_assert(sizeof(struct weir_move) == sizeof(struct weir_kernel_move), "the same words");
	memcpy(area->memory + FILES_AREA_BYTES, &args, sizeof(args));
	memcpy(area->memory + FILES_AREA_BYTES + sizeof(args), area->copies,
	       area->move_count * sizeof(*area->copies));
	return backend->ops->stream_launch(backend, area->stream, "weir_copy_list",
					   blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, BLOCK_LANES,
					   area->address + FILES_AREA_BYTES);
}

static int queue_copies(struct file_worker *worker, struct file_area *area)
{
	struct weir_backend *backend = worker->files->backend;
	uint64_t bytes = 0;
	bool lanes;

	for (size_t i = 0; i < area->move_count; i++)
		bytes += area->copies[i].bytes;
	lanes = backend->ops->stream_launch && area->move_count >= LEAST_BY_LANES &&
		bytes / area->move_count <= MOST_BY_LANES;
	*(lanes ? &worker->stats.pulled_bytes : &worker->stats.copied_bytes) += bytes;
	area->busy = true;
	return lanes ? launch(worker, area)
		     : backend->ops->stream_copy(backend, area->stream, area->copies, area->move_count);
}

void file_copies_begin(struct file_worker *worker, struct file_area *area)
{
	int error = 0;

	for (size_t i = 0; i < area->count && !error; i++) {
		struct file_piece *piece = &area->pieces[i];
		uint32_t bytes = bytes_of(area, piece);

		if (bytes && file_piece_io(piece)->registration->staging == WEIR_FILE_PULL)
			add_move(area, piece, bytes);
		else if (bytes)
			error = move_now(worker, area, piece, bytes);
	}
	if (!error && area->move_count)
		error = queue_copies(worker, area);
	if (error)
		fail_pieces(area, error);
}

void file_copies_end(struct file_worker *worker, struct file_area *area)
{
	struct weir_backend *backend = worker->files->backend;
	int error;

	if (!area->busy)
		return;
	area->busy = false;
	error = backend->ops->stream_wait(backend, area->stream);
	if (error)
		fail_pieces(area, error);
}
