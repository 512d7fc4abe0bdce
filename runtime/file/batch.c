/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch.c: requests: checked, cut into pieces, put together again when these have ended.
 *
 * A request that ends short, or fails, ended where the first of its pieces did; what later pieces brought is
 * not counted, as pread() would not have brought it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../backend/error.h"
#include "files.h"

enum { TARGETS_BACK = 8 };

static int check_place(const struct weir_files *files, const struct weir_file_io *io, size_t index)
{
	const struct weir_registration *registration = io->registration;

	if (io->operation > WEIR_FILE_WRITE)
		return weir_fail(EINVAL, "request %zu: %u is neither WEIR_FILE_READ nor WEIR_FILE_WRITE",
				 index, io->operation);
	if (registration && weir_handle_check(registration, WEIR_HANDLE_REGISTRATION, "request") != 0)
		return weir_fail(
			EINVAL,
			"request %zu: its registration was closed, or is none; weir_register() its memory",
			index);
	if (!registration || registration->context != files->context)
		return weir_fail(
			EINVAL,
			"request %zu: its memory is not registered with this context; weir_register() it",
			index);
	if (io->at > registration->bytes || io->bytes > registration->bytes - io->at)
		return weir_fail(EFAULT,
				 "request %zu: %" PRIu64 " bytes at %" PRIu64
				 " are not inside the registered memory, which has %" PRIu64,
				 index, io->bytes, io->at, registration->bytes);
	if (io->offset > INT64_MAX || io->bytes > INT64_MAX - io->offset)
		return weir_fail(EINVAL,
				 "request %zu: %" PRIu64 " bytes at %" PRIu64
				 " of a file reach past the largest offset",
				 index, io->bytes, io->offset);
	return 0;
}

static int check_target(const struct file_target *target, const struct weir_file_io *io, size_t index)
{
	int access = target->flags & O_ACCMODE;

	if (io->operation == WEIR_FILE_READ ? access == O_WRONLY : access == O_RDONLY)
		return weir_fail(EBADF, "request %zu: file descriptor %d is not open for %s", index, io->file,
				 io->operation == WEIR_FILE_READ ? "reading" : "writing");
	if (io->operation == WEIR_FILE_WRITE && (target->flags & O_APPEND))
		return weir_fail(EBADF,
				 "request %zu: file descriptor %d is open with O_APPEND, so that no write "
				 "goes to its offset",
				 index, io->file);
	return 0;
}

/* Files come in a row or in turns: looks at the last few. Those asked for twice are there twice, which does
 * no harm. */
static int find_target(struct weir_file_batch *batch, int file, size_t index, uint32_t *found)
{
	char what[40];
	int error;

	for (uint32_t i = batch->target_count; i-- > 0 && batch->target_count - i <= TARGETS_BACK;)
		if (batch->targets[i].file == file) {
			*found = i;
			return 0;
		}
	snprintf(what, sizeof(what), "request %zu: ", index);
	*found = batch->target_count;
	error = file_target_find(batch->files, file, what, &batch->targets[*found]);
	batch->target_count += !error;
	return error;
}

/* Whether the SSD may have the device's memory itself, where there is any question of it. */
static void check_reachable(struct weir_file_batch *batch, const struct weir_file_io *io,
			    struct file_target *target)
{
	if (io->registration->path == WEIR_FILE_MODULE && target->direct && !target->reaches)
		target->reaches = file_module_reaches(batch->files, target, NULL);
}

/* The same of writing, once the batch begins. @now: it may be tried, which writes. */
static void check_writable(struct weir_file_batch *batch, const struct weir_file_io *io,
			   struct file_target *target, bool now)
{
	if (target->reaches && io->registration->path == WEIR_FILE_MODULE &&
	    io->operation == WEIR_FILE_WRITE && !target->takes)
		target->takes =
			now ? file_module_takes(batch->files, target, io->registration->host + io->at,
						io->registration->address + io->at, io->offset, io->bytes)
			    : file_module_took(target);
}

static int take_io(struct weir_file_batch *batch, size_t index)
{
	struct weir_file_io *io = &batch->io[index];
	struct file_state *state = &batch->states[index];
	int error = check_place(batch->files, io, index);

	if (!error)
		error = find_target(batch, io->file, index, &state->target);
	if (!error)
		error = check_target(&batch->targets[state->target], io, index);
	if (!error)
		check_reachable(batch, io, &batch->targets[state->target]);
	state->bytes = state->left = state->end = io->bytes;
	return error;
}

/* Long requests are shared by the threads, in pieces that are not too short; what is less is taken by few. */
static void cut(struct weir_file_batch *batch, uint64_t bytes)
{
	uint64_t share = bytes / (2 * batch->files->thread_limit), piece = FILES_LEAST_PIECE;

	share = share < FILES_LEAST_SHARE ? FILES_LEAST_SHARE : share;
	batch->share_bytes = share < FILES_AREA_BYTES ? share : FILES_AREA_BYTES;
	while (2 * piece <= batch->share_bytes)
		piece *= 2;
	batch->piece_bytes = piece;
}

void file_batch_drop(struct weir_file_batch *batch)
{
	for (uint32_t i = 0; batch->targets && i < batch->target_count; i++)
		if (batch->targets[i].edges >= 0)
			close(batch->targets[i].edges);
	free(batch->states);
	free(batch->targets);
	if (batch->listed)
		weir_handle_retire(batch);
	else
		free(batch);
}

int file_batch_make(struct weir_files *files, struct weir_file_io *io, size_t count,
		    struct weir_file_batch **out)
{
	struct weir_file_batch *batch = calloc(1, sizeof(*batch));
	uint64_t bytes = 0;
	int error = 0;

	if (batch) {
		*batch =
			(struct weir_file_batch){ .files = files, .io = io, .count = count, .failed = count };
		batch->states = calloc(count ? count : 1, sizeof(*batch->states));
		batch->targets = calloc(count ? count : 1, sizeof(*batch->targets));
	}
	if (!batch || !batch->states || !batch->targets)
		error = weir_fail(ENOMEM, "no memory for %zu requests", count);
	for (size_t i = 0; i < count && !error; i++) {
		error = take_io(batch, i);
		bytes = io[i].bytes > UINT64_MAX - bytes ? UINT64_MAX : bytes + io[i].bytes;
	}
	if (error) {
		if (batch)
			file_batch_drop(batch);
		return error;
	}
	cut(batch, bytes);
	*out = batch;
	return 0;
}

static void skip_empty(struct weir_file_batch *batch)
{
	while (batch->next_io < batch->count && batch->next_at == batch->states[batch->next_io].bytes) {
		batch->next_io++;
		batch->next_at = 0;
	}
}

/* All requests have ended. Mutex held. */
static void end_batch(struct weir_file_batch *batch)
{
	struct weir_files *files = batch->files;

	files->running--;
	if (batch->enqueued) {
		if (batch->error && !files->failure) {
			files->failure = batch->error;
			memcpy(files->failure_sentence, batch->sentence, sizeof(files->failure_sentence));
		}
		files->backend->ops->resume(files->backend, batch->gate);
		file_batch_drop(batch);
	}
	pthread_cond_broadcast(&files->ended);
}

/* release, batch.E2: pairs with whoever looks at a single result: the data is there, and the request is not
 * touched again */
static void give_result(struct weir_file_io *io, int64_t result)
{
	if (io->report)
		__atomic_store_n(io->report, result, __ATOMIC_RELEASE); /* batch.E2 */
	__atomic_store_n(&io->result, result, __ATOMIC_RELEASE);        /* batch.E2 */
}

/* Registrations stay as long as requests are on them. Mutex held. */
static void claim(struct weir_file_batch *batch, int more)
{
	for (size_t i = 0; i < batch->count; i++)
		if (batch->io[i].bytes)
			batch->io[i].registration->under_way += (size_t)more;
}

void file_batch_defer(struct weir_file_batch *batch, int more)
{
	struct weir_files *files = batch->files;

	for (size_t i = 0; i < batch->count && more > 0; i++)
		batch->io[i].result = -EINPROGRESS;
	pthread_mutex_lock(&files->mutex);
	files->deferred += (size_t)more;
	claim(batch, more);
	pthread_mutex_unlock(&files->mutex);
}

/* No result but those of requests without bytes, which have no piece that could end them. Return: how many.
 */
static size_t begin_results(struct weir_file_batch *batch)
{
	size_t empty = 0;

	for (size_t i = 0; i < batch->count; i++) {
		if (!batch->enqueued) /* else done when it was enqueued: from then on somebody may look */
			batch->io[i].result = -EINPROGRESS;
		if (batch->io[i].bytes)
			continue;
		give_result(&batch->io[i], 0);
		empty++;
	}
	/* release, batch.E0: pairs with batch.E1 in wait.c: results of requests that are counted as ended are
	 * seen */
	atomic_store_explicit(&batch->ended, empty, memory_order_release);
	skip_empty(batch);
	return empty;
}

/* For the threads to see. Mutex held. */
static void queue(struct weir_file_batch *batch)
{
	struct weir_file_batch **last = &batch->files->first;

	while (*last)
		last = &(*last)->next;
	*last = batch;
	pthread_cond_broadcast(&batch->files->work);
}

void file_batch_begin(struct weir_file_batch *batch)
{
	struct weir_files *files = batch->files;

	for (size_t i = 0; i < batch->count; i++)
		check_writable(batch, &batch->io[i], &batch->targets[batch->states[i].target],
			       !batch->enqueued);
	if (batch->own) { /* nobody else ever looks at it */
		(void)begin_results(batch);
		return;
	}
	pthread_mutex_lock(&files->mutex);
	files->running++;
	if (!batch->enqueued)
		claim(batch, 1);
	if (begin_results(batch) == batch->count)
		end_batch(batch);
	else
		queue(batch);
	pthread_mutex_unlock(&files->mutex);
}

/* O_DIRECT takes whole blocks: up to the next one, whole ones, or what is left behind them. */
static uint64_t aligned_part(uint64_t offset, uint64_t left, bool *edge)
{
	uint64_t head = (FILES_ALIGN - offset % FILES_ALIGN) % FILES_ALIGN;

	*edge = head || left < FILES_ALIGN;
	if (head)
		return left < head ? left : head;
	return left < FILES_ALIGN ? left : left - left % FILES_ALIGN;
}

/* The next piece of a batch, without a position. */
static struct file_piece next_piece(const struct weir_file_batch *batch)
{
	const struct weir_file_io *io = &batch->io[batch->next_io];
	const struct file_target *target = &batch->targets[batch->states[batch->next_io].target];
	struct file_piece piece = { .io = batch->next_io, .at = batch->next_at };
	uint64_t offset = io->offset + piece.at, left = io->bytes - piece.at;
	uint64_t most =
		batch->piece_bytes - offset % batch->piece_bytes; /* so that what follows is aligned */
	bool reaches = io->operation == WEIR_FILE_READ ? target->reaches : target->takes;
	bool placed = io->registration->path == WEIR_FILE_DIRECT ||
		      (io->registration->path == WEIR_FILE_MODULE && reaches);
	bool edge = false;

	left = left < most ? left : most;
	if (target->direct && (io->operation == WEIR_FILE_WRITE || placed))
		left = aligned_part(offset, left, &edge);
	piece.bytes = (uint32_t)left;
	piece.edge = edge && io->operation == WEIR_FILE_WRITE;
	piece.staged = !placed;
	if (placed && target->direct)
		piece.staged = edge || ((uintptr_t)io->registration->host + io->at + piece.at) % FILES_ALIGN;
	return piece;
}

/* Where in the area: O_DIRECT wants whole blocks, a device that address and place agree. False: no room. */
static bool place_piece(struct file_area *area, const struct weir_file_batch *batch, struct file_piece *piece)
{
	const struct weir_file_io *io = &batch->io[piece->io];
	bool direct = batch->targets[batch->states[piece->io].target].direct && !piece->edge;
	uint32_t skew = direct ? (uint32_t)((io->offset + piece->at) % FILES_ALIGN)
			       : (uint32_t)((io->registration->address + io->at + piece->at) % 64);
	uint32_t begin = direct ? (area->used + FILES_ALIGN - 1) / FILES_ALIGN * FILES_ALIGN
				: (area->used + 63) / 64 * 64;
	uint32_t room = skew + piece->bytes;

	if (direct)
		room = (room + FILES_ALIGN - 1) / FILES_ALIGN * FILES_ALIGN;
	if (begin + room > FILES_AREA_BYTES)
		return false;
	piece->position = begin + skew;
	piece->skew = direct ? skew : 0;
	area->used = begin + room;
	return true;
}

/* A piece that is too long for what is left of an empty area becomes shorter. */
static bool fit_piece(struct file_area *area, const struct weir_file_batch *batch, struct file_piece *piece)
{
	if (!piece->staged)
		return true;
	if (place_piece(area, batch, piece))
		return true;
	if (area->count)
		return false;
	piece->bytes /= 2; /* half an area has room for its edges */
	piece->bytes -= piece->bytes % FILES_ALIGN;
	return place_piece(area, batch, piece);
}

/* Pieces of a batch, as long as they do the same. Mutex held, but for a caller's own. */
static void take_pieces(struct weir_file_batch *batch, struct file_area *area)
{
	uint64_t bytes = 0;

	area->operation = batch->io[batch->next_io].operation;
	while (batch->next_io < batch->count && area->count < FILES_MOST_PIECES &&
	       bytes < batch->share_bytes && batch->io[batch->next_io].operation == area->operation) {
		struct file_piece piece = next_piece(batch);

		if (!fit_piece(area, batch, &piece))
			break;
		piece.batch = batch;
		area->pieces[area->count++] = piece;
		batch->next_at += piece.bytes;
		bytes += piece.bytes;
		skip_empty(batch);
	}
}

/* From the queue, as long as something of @until is left there. Mutex held. */
static bool take_queued(struct weir_files *files, const struct weir_file_batch *until, struct file_area *area)
{
	struct weir_file_batch *batch = files->first;

	if (!batch || (until && until->next_io == until->count))
		return false;
	take_pieces(batch, area);
	if (batch->next_io == batch->count)
		files->first = batch->next;
	return true;
}

bool file_batch_take(struct weir_files *files, struct weir_file_batch *until, struct file_area *area)
{
	bool took;

	area->count = area->used = 0;
	area->move_count = 0;
	area->error = 0;
	if (until && until->own) {
		took = until->next_io < until->count;
		if (took)
			take_pieces(until, area);
		return took;
	}
	pthread_mutex_lock(&files->mutex);
	took = take_queued(files, until, area);
	pthread_mutex_unlock(&files->mutex);
	return took;
}

/* The sentence of the earliest request that failed is the batch's. Mutex held. */
static void note_failure(struct weir_file_batch *batch, const struct file_piece *piece,
			 const struct file_area *area)
{
	const struct weir_file_io *io = &batch->io[piece->io];

	if (piece->io >= batch->failed)
		return;
	batch->failed = piece->io;
	batch->error = (int)piece->got;
	if (area->error)
		memcpy(batch->sentence, area->sentence, sizeof(batch->sentence));
	else
		snprintf(batch->sentence, sizeof(batch->sentence),
			 "request %zu: cannot %s %" PRIu64 " bytes at %" PRIu64 " of file descriptor %d: %s",
			 piece->io, io->operation == WEIR_FILE_READ ? "read" : "write", io->bytes, io->offset,
			 io->file, strerror((int)-piece->got));
}

/* Return: the request has ended. Mutex held. */
static bool end_piece(const struct file_piece *piece, const struct file_area *area)
{
	struct weir_file_batch *batch = piece->batch;
	struct file_state *state = &batch->states[piece->io];
	uint64_t end = piece->at + (piece->got > 0 ? (uint64_t)piece->got : 0);

	if (piece->got < (int64_t)piece->bytes && end < state->end) {
		state->end = end;
		state->error = piece->got < 0 ? (int)piece->got : 0;
	}
	if (piece->got < 0 && piece->at == 0)
		note_failure(batch, piece, area);
	state->left -= piece->bytes;
	if (state->left)
		return false;
	if (!batch->own)
		batch->io[piece->io].registration->under_way--;
	give_result(&batch->io[piece->io], state->end == 0 ? state->error : (int64_t)state->end);
	return true;
}

static void end_pieces(struct file_area *area)
{
	for (size_t i = 0; i < area->count; i++) {
		struct weir_file_batch *batch = area->pieces[i].batch;

		if (!end_piece(&area->pieces[i], area))
			continue;
		/* release, batch.E0: as above */
		if (atomic_fetch_add_explicit(&batch->ended, 1, memory_order_release) + 1 == batch->count &&
		    !batch->own)
			end_batch(batch);
	}
}

/* An area has pieces of one batch. */
void file_batch_report(struct weir_files *files, struct file_area *area)
{
	bool own = area->pieces[0].batch->own;

	if (!own)
		pthread_mutex_lock(&files->mutex);
	end_pieces(area);
	if (!own)
		pthread_mutex_unlock(&files->mutex);
	area->count = 0;
}
