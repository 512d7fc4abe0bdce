/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/file_request.c: the life of one request: which operation, of which
 * bytes, and what to do with a result that is not all of them.
 *
 * The file may end inside its own last block. What lies behind its end is no part of it: a
 * read gives zeros there, even if the file has grown since it was opened; a write leaves it out, so
 * that the file keeps its size. A read that comes back short before that: the file has shrunk, an
 * error, never zeros; or else the rest is asked for again.
 *
 * Linux tells an open file once that a write-back failed, and drops the pages: the next sync succeeds, and
 * what was written is lost. So a medium whose sync failed fails every later flush, until it is opened again.
 * Of two syncs at once one alone would be told: each thread has an open file of its own for them, and one of
 * them at a time; requests that come meanwhile share the next.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <weir/nvme.h>

#include "../../backend/error.h"
#include "file.h"

/* Meaning of weir_io.medium_data while a request is ours. */
enum {
	DATA_DONE,    /* bytes done so far; of a sync: struct weir_io of the same one, a list */
	DATA_NEEDED,  /* bytes that must be done: those before the end of the file; a read pads the rest */
	DATA_STAGE,   /* enum stage */
	DATA_RETRIES, /* answers "try again" in a row */
};

enum stage {
	STAGE_TRANSFER, /* READ, WRITE: bytes move */
	STAGE_PLAIN,    /* FLUSH, ZERO, DISCARD: one operation does it */
	STAGE_ZEROS,    /* ZERO where the file system cannot: zeros are written */
	STAGE_SYNC,     /* force_unit_access after STAGE_PLAIN or STAGE_ZEROS */
};

enum {
	RETRIES_MAX = 100000,
	SEGMENTS_MAX = 1024, /* IOV_MAX */
	ZEROS_BYTES = 64 << 10,
};
#define TRANSFER_MAX (1ull << 30)
#define RWF_DURABLE  0x2 /* RWF_DSYNC */

static const char zeros[ZEROS_BYTES] __attribute__((aligned(4096)));

/**
 * struct run - what the next operation covers
 * @iov: segments, or NULL for one piece of memory
 * @iov_count: segments
 * @address: that one piece
 * @bytes: its length (only without @iov)
 */
struct run {
	const struct iovec *iov;
	unsigned iov_count;
	uint64_t address;
	uint64_t bytes;
};

/* Whole segments, from byte @done of @io on, which is where one begins, that lie before the end of the file.
 */
static unsigned whole_segments(const struct weir_io *io, unsigned index)
{
	uint64_t end = io->medium_data[DATA_DONE] + io->iov[index].iov_len;
	unsigned count = 0;

	while (index + count < io->iov_count && count < SEGMENTS_MAX && end <= io->medium_data[DATA_NEEDED]) {
		count++;
		if (index + count < io->iov_count)
			end += io->iov[index + count].iov_len;
	}
	return count;
}

/* Memory from byte @done of @io on, as far as it is contiguous. */
static void run_contiguous(const struct weir_io *io, uint64_t done, unsigned *index, struct run *run)
{
	unsigned i = 0;

	while (done >= io->iov[i].iov_len)
		done -= io->iov[i++].iov_len;
	*index = i;
	run->address = (uint64_t)(uintptr_t)io->iov[i].iov_base + done;
	run->bytes = io->iov[i].iov_len - done;
	while (++i < io->iov_count) {
		if ((uint64_t)(uintptr_t)io->iov[i].iov_base != run->address + run->bytes)
			break;
		run->bytes += io->iov[i].iov_len;
	}
}

/*
 * One piece where that covers the rest, or where the rest begins inside a
 * segment; otherwise all remaining segments. Of what is written, nothing past the end of the file:
 * whole segments first, then a piece of the one in which it ends.
 */
static void run_next(const struct weir_io *io, struct run *run)
{
	uint64_t done = io->medium_data[DATA_DONE];
	uint64_t left = (io->kind == WEIR_IO_READ ? io->bytes : io->medium_data[DATA_NEEDED]) - done;
	unsigned index;

	run->iov = NULL;
	run->iov_count = 0;
	run_contiguous(io, done, &index, run);
	if (run->bytes < left && run->address == (uint64_t)(uintptr_t)io->iov[index].iov_base) {
		unsigned rest = io->iov_count - index;

		run->iov = io->iov + index;
		run->iov_count = io->kind == WEIR_IO_READ ? (rest < SEGMENTS_MAX ? rest : SEGMENTS_MAX)
							  : whole_segments(io, index);
		return;
	}
	if (run->bytes > left)
		run->bytes = left;
	if (run->bytes > TRANSFER_MAX)
		run->bytes = TRANSFER_MAX;
}

static bool piece_aligned(const struct file_target *target, uint64_t address, uint64_t bytes)
{
	return !(address & (target->memory_align - 1)) && !(bytes & (target->offset_align - 1));
}

/* O_DIRECT where it is in use and takes this; the page cache serves the odd ones. */
static enum file_way run_way(const struct file_target *target, const struct run *run, uint64_t offset)
{
	if (target->fds[FILE_DIRECT] < 0 || (offset & (target->offset_align - 1)))
		return FILE_BUFFERED;
	if (!run->iov)
		return piece_aligned(target, run->address, run->bytes) ? FILE_DIRECT : FILE_BUFFERED;
	for (unsigned i = 0; i < run->iov_count; i++)
		if (!piece_aligned(target, (uint64_t)(uintptr_t)run->iov[i].iov_base, run->iov[i].iov_len))
			return FILE_BUFFERED;
	return FILE_DIRECT;
}

static struct file_ring *side_ring(struct file_thread *thread)
{
	return thread->side.made ? &thread->side : &thread->data;
}

static void entry_finish(struct io_uring_sqe *sqe, struct weir_io *io, enum file_way way)
{
	sqe->flags = IOSQE_FIXED_FILE;
	sqe->fd = way;
	sqe->user_data = (uint64_t)(uintptr_t)io;
}

static void prepare_vector(struct io_uring_sqe *sqe, const struct weir_io *io, const struct run *run,
			   uint64_t offset)
{
	if (io->kind == WEIR_IO_READ)
		io_uring_prep_readv(sqe, 0, run->iov, run->iov_count, offset);
	else
		io_uring_prep_writev(sqe, 0, run->iov, run->iov_count, offset);
}

static void prepare_piece(struct io_uring_sqe *sqe, const struct weir_io *io, const struct run *run,
			  uint64_t offset, int slot)
{
	void *memory = (void *)(uintptr_t)run->address;
	unsigned bytes = (unsigned)run->bytes;

	if (io->kind == WEIR_IO_READ && slot >= 0)
		io_uring_prep_read_fixed(sqe, 0, memory, bytes, offset, slot);
	else if (io->kind == WEIR_IO_READ)
		io_uring_prep_read(sqe, 0, memory, bytes, offset);
	else if (slot >= 0)
		io_uring_prep_write_fixed(sqe, 0, memory, bytes, offset, slot);
	else
		io_uring_prep_write(sqe, 0, memory, bytes, offset);
}

/* FUSE ends an asynchronous O_DIRECT write before it syncs it, whatever its flag says (Linux 6.18). */
static bool is_synced_late(const struct file_medium *file, const struct weir_io *io)
{
	return file->target.on_fuse && io->kind == WEIR_IO_WRITE && io->force_unit_access;
}

static enum file_way transfer_way(const struct file_medium *file, const struct weir_io *io,
				  const struct run *run)
{
	return is_synced_late(file, io)
		       ? FILE_BUFFERED
		       : run_way(&file->target, run, io->offset_bytes + io->medium_data[DATA_DONE]);
}

static void prepare_transfer(struct file_medium *file, struct file_thread *thread, struct weir_io *io)
{
	uint64_t offset = io->offset_bytes + io->medium_data[DATA_DONE];
	struct file_ring *ring = &thread->data;
	enum file_way way;
	struct io_uring_sqe *sqe;
	struct run run;

	run_next(io, &run);
	way = transfer_way(file, io, &run);
	if (way == FILE_BUFFERED)
		ring = side_ring(thread); /* polling is for O_DIRECT */
	sqe = file_ring_take(ring);
	if (run.iov)
		prepare_vector(sqe, io, &run, offset);
	else
		prepare_piece(sqe, io, &run, offset,
			      ring == &thread->data
				      ? file_buffers_find(&thread->buffers, run.address, run.bytes)
				      : FILE_BUFFER_NONE);
	if (io->kind == WEIR_IO_WRITE && io->force_unit_access)
		sqe->rw_flags = RWF_DURABLE;
	entry_finish(sqe, io, way);
}

static void prepare_zeros(struct file_medium *file, struct file_thread *thread, struct weir_io *io)
{
	uint64_t offset = io->offset_bytes + io->medium_data[DATA_DONE];
	uint64_t left = io->medium_data[DATA_NEEDED] - io->medium_data[DATA_DONE];
	struct run run = {
		.address = (uint64_t)(uintptr_t)zeros,
		.bytes = left < ZEROS_BYTES ? left : ZEROS_BYTES,
	};
	struct io_uring_sqe *sqe = file_ring_take(side_ring(thread));

	io_uring_prep_write(sqe, 0, zeros, (unsigned)run.bytes, offset);
	entry_finish(sqe, io, thread->side.made ? FILE_BUFFERED : run_way(&file->target, &run, offset));
}

static void prepare_plain(struct file_thread *thread, struct weir_io *io)
{
	struct io_uring_sqe *sqe = file_ring_take(side_ring(thread));
	int mode =
		io->kind == WEIR_IO_ZERO ? FALLOC_FL_ZERO_RANGE : FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	io_uring_prep_fallocate(sqe, 0, mode, (off_t)io->offset_bytes, (off_t)io->medium_data[DATA_NEEDED]);
	entry_finish(sqe, io, FILE_BUFFERED);
}

void file_request_sync(struct file_thread *thread)
{
	struct io_uring_sqe *sqe;

	if (thread->syncing || !thread->unsynced)
		return;
	thread->syncing = thread->unsynced;
	thread->unsynced = NULL;
	sqe = file_ring_take(side_ring(thread));
	io_uring_prep_fsync(sqe, 0, IORING_FSYNC_DATASYNC);
	entry_finish(sqe, thread->syncing, FILE_SYNC);
}

static void prepare_sync(struct file_thread *thread, struct weir_io *io)
{
	io->medium_data[DATA_DONE] = (uint64_t)(uintptr_t)thread->unsynced;
	thread->unsynced = io;
	file_request_sync(thread);
}

struct weir_io *file_request_next(const struct weir_io *io)
{
	return (struct weir_io *)(uintptr_t)io->medium_data[DATA_DONE];
}

static void prepare(struct file_medium *file, struct file_thread *thread, struct weir_io *io)
{
	switch ((enum stage)io->medium_data[DATA_STAGE]) {
	case STAGE_TRANSFER: prepare_transfer(file, thread, io); break;
	case STAGE_ZEROS: prepare_zeros(file, thread, io); break;
	case STAGE_PLAIN:
		if (io->kind != WEIR_IO_FLUSH)
			prepare_plain(thread, io);
		else
			prepare_sync(thread, io);
		break;
	case STAGE_SYNC: prepare_sync(thread, io); break;
	}
}

static bool is_transfer(const struct weir_io *io)
{
	return io->kind == WEIR_IO_READ || io->kind == WEIR_IO_WRITE;
}

static void request_begin(const struct file_medium *file, struct weir_io *io)
{
	io->medium_data[DATA_DONE] = 0;
	io->medium_data[DATA_NEEDED] = io->kind == WEIR_IO_FLUSH ? 0 : weir_medium_kept(&file->base, io);
	io->medium_data[DATA_STAGE] = is_transfer(io) ? STAGE_TRANSFER : STAGE_PLAIN;
	io->medium_data[DATA_RETRIES] = 0;
}

void file_request_start(struct file_medium *file, struct file_thread *thread, struct weir_io *io)
{
	request_begin(file, io);
	prepare(file, thread, io);
}

bool file_moves_now(const struct file_medium *file)
{
	return file->target.in_memory && file->target.fds[FILE_DIRECT] < 0;
}

static bool finish(struct weir_io *io, uint16_t status)
{
	io->status = status;
	return true;
}

static bool go_on(struct file_medium *file, struct file_thread *thread, struct weir_io *io)
{
	if (!file_moves_now(file) || !is_transfer(io)) /* else file_request_now() does */
		prepare(file, thread, io);
	return false;
}

/* Zeros for the part of the last block that lies past the end of the file. */
static void pad(const struct weir_io *io, uint64_t from)
{
	for (unsigned i = 0; i < io->iov_count; i++) {
		uint64_t length = io->iov[i].iov_len;

		if (from < length)
			memset((char *)io->iov[i].iov_base + from, 0, length - from);
		from -= from < length ? from : length;
	}
}

/* All of it is written; force_unit_access asks for more where a write's flag did not do it. */
static bool finish_change(struct file_medium *file, struct file_thread *thread, struct weir_io *io)
{
	if (io->force_unit_access && io->medium_data[DATA_STAGE] != STAGE_TRANSFER) {
		io->medium_data[DATA_STAGE] = STAGE_SYNC;
		return go_on(file, thread, io);
	}
	return finish(io, NVME_STATUS_SUCCESS);
}

static bool step_moved(struct file_medium *file, struct file_thread *thread, struct weir_io *io,
		       uint64_t moved)
{
	uint64_t done = io->medium_data[DATA_DONE] += moved;

	if (done < io->medium_data[DATA_NEEDED]) {
		if (!moved) /* a read: the file has shrunk; a write: it leads nowhere */
			return finish(io, file_status(io->kind, EIO));
		return go_on(file, thread, io);
	}
	if (io->kind != WEIR_IO_READ)
		return finish_change(file, thread, io);
	if (io->medium_data[DATA_NEEDED] < io->bytes)
		pad(io, io->medium_data[DATA_NEEDED]);
	return finish(io, NVME_STATUS_SUCCESS);
}

/* ECANCELED: the kernel gave it up because the host thread that submitted it ended. */
static bool is_passing(int error)
{
	return error == EAGAIN || error == EINTR || error == ECANCELED;
}

/* Whether a failed step of @io is all that is ever said of writes that were acknowledged before: a sync, or a
 * durable write of the file that is synced, which is the page cache's. */
static bool was_sync(const struct file_medium *file, const struct weir_io *io, int error)
{
	enum stage stage = (enum stage)io->medium_data[DATA_STAGE];
	struct run run;

	if (stage != STAGE_TRANSFER)
		return stage == STAGE_SYNC || io->kind == WEIR_IO_FLUSH;
	if (io->kind != WEIR_IO_WRITE || !io->force_unit_access || error != EIO)
		return false;
	run_next(io, &run);
	return transfer_way(file, io, &run) == FILE_BUFFERED;
}

static void note_loss(struct file_medium *file, int error)
{
	/* relaxed: a flush that was not submitted after this one ended may miss it */
	if (!__atomic_exchange_n(&file->lost, true, __ATOMIC_RELAXED))
		weir_report("a file could not be made durable (%s); what was written to it since its last "
			    "flush may "
			    "be lost, and its flushes fail until it is opened again",
			    strerror(error));
}

/* A sync that succeeded. */
static bool finish_sync(const struct file_medium *file, struct weir_io *io)
{
	bool lost = __atomic_load_n(&file->lost, __ATOMIC_RELAXED); /* relaxed: as note_loss() */

	return finish(io, file_status(io->kind, lost ? EIO : 0));
}

static bool step_failed(struct file_medium *file, struct file_thread *thread, struct weir_io *io, int error)
{
	bool plain = io->medium_data[DATA_STAGE] == STAGE_PLAIN;

	if (is_passing(error) && io->medium_data[DATA_RETRIES]++ < RETRIES_MAX)
		return go_on(file, thread, io);
	if (plain && io->kind == WEIR_IO_DISCARD && error == EOPNOTSUPP)
		return finish(io, NVME_STATUS_SUCCESS);
	if (plain && io->kind == WEIR_IO_ZERO && error == EOPNOTSUPP) {
		io->medium_data[DATA_STAGE] = STAGE_ZEROS;
		return go_on(file, thread, io);
	}
	if (was_sync(file, io, error))
		note_loss(file, error);
	return finish(io, file_status(io->kind, error));
}

bool file_request_step(struct file_medium *file, struct file_thread *thread, struct weir_io *io, int result)
{
	if (result < 0)
		return step_failed(file, thread, io, -result);
	io->medium_data[DATA_RETRIES] = 0;
	switch ((enum stage)io->medium_data[DATA_STAGE]) {
	case STAGE_TRANSFER:
	case STAGE_ZEROS: return step_moved(file, thread, io, (uint64_t)result);
	case STAGE_PLAIN:
		if (io->kind == WEIR_IO_ZERO)
			return finish_change(file, thread, io);
		if (io->kind == WEIR_IO_FLUSH)
			return finish_sync(file, io);
		break;
	case STAGE_SYNC: return finish_sync(file, io);
	}
	return finish(io, NVME_STATUS_SUCCESS);
}

static ssize_t move(const struct weir_io *io, int fd, const struct iovec *iov, unsigned count, off_t offset)
{
	if (io->kind == WEIR_IO_WRITE)
		return pwritev2(fd, iov, (int)count, offset, io->force_unit_access ? RWF_DURABLE : 0);
	return count == 1 ? pread(fd, iov->iov_base, iov->iov_len, offset)
			  : preadv(fd, iov, (int)count, offset);
}

/* What the system call returned, or a negative errno. */
static int move_next(const struct file_medium *file, const struct weir_io *io)
{
	uint64_t offset = io->offset_bytes + io->medium_data[DATA_DONE];
	struct iovec piece;
	struct run run;
	ssize_t moved;

	run_next(io, &run);
	piece = (struct iovec){ (void *)(uintptr_t)run.address, run.bytes };
	moved = move(io, file->target.fds[FILE_BUFFERED], run.iov ? run.iov : &piece,
		     run.iov ? run.iov_count : 1, (off_t)offset);
	return moved < 0 ? -errno : (int)moved;
}

void file_request_now(struct file_medium *file, struct weir_io *io)
{
	request_begin(file, io);
	while (!file_request_step(file, NULL, io, move_next(file, io)))
		;
}
