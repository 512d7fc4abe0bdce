/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/file.c: a file or block device behind the medium's vtable.
 *
 * Owns: putting the parts together, taking requests in and calling them ended.
 * Knows nothing of operations or of what a result means.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/nvme.h>
#include <weir/weir.h>

#include "../../backend/error.h"
#include "file.h"

/* What base.path can come to say; threads may add to it as memory is registered. */
enum file_path {
	PATH_BARE,     /* no memory registered yet */
	PATH_FIXED,    /* all of it registered */
	PATH_LIMITED,  /* some not, for want of locked memory */
	PATH_UNPINNED, /* some not, for another reason */
	PATHS,
};

static struct file_medium *file_of(struct weir_medium *medium)
{
	return (struct file_medium *)medium;
}

static bool end_now(struct weir_io *io, uint16_t status)
{
	io->status = status;
	io->done(io);
	return true;
}

static bool out_of_range(const struct file_medium *file, const struct weir_io *io)
{
	return io->kind != WEIR_IO_FLUSH &&
	       (io->bytes > file->base.bytes || io->offset_bytes > file->base.bytes - io->bytes);
}

static bool file_submit(struct weir_medium *medium, struct weir_io *io)
{
	struct file_medium *file = file_of(medium);
	struct file_thread *thread = &file->threads[io->thread];

	if (thread->in_flight >= file->depth)
		return false;
	if (thread->error)
		return end_now(io, NVME_STATUS_INTERNAL_ERROR);
	if (out_of_range(file, io))
		return end_now(io, NVME_STATUS_LBA_OUT_OF_RANGE);
	if (!io->bytes && io->kind != WEIR_IO_FLUSH)
		return end_now(io, NVME_STATUS_SUCCESS);
	if (file_moves_now(file) && (io->kind == WEIR_IO_READ || io->kind == WEIR_IO_WRITE)) {
		file_request_now(file, io);
		io->done(io);
		return true;
	}
	thread->in_flight++;
	file_request_start(file, thread, io);
	return true;
}

static unsigned end_one(struct file_medium *file, struct file_thread *thread, struct weir_io *io, int result)
{
	if (!file_request_step(file, thread, io, result))
		return 0;
	thread->in_flight--; /* before done(), which may submit the next */
	io->done(io);
	return 1;
}

/* A sync has one result for all of its requests. */
static unsigned sync_end(struct file_medium *file, struct file_thread *thread, struct weir_io *io, int result)
{
	unsigned ended = 0;

	thread->syncing = NULL;
	while (io) {
		struct weir_io *next = file_request_next(io);

		ended += end_one(file, thread, io, result);
		io = next;
	}
	file_request_sync(thread);
	return ended;
}

static unsigned thread_end(struct file_medium *file, struct file_thread *thread, struct weir_io *io,
			   int result)
{
	return io == thread->syncing ? sync_end(file, thread, io, result) : end_one(file, thread, io, result);
}

/* An entry is given back first: what its result leads to may take it again. */
static unsigned queue_reap(struct file_medium *file, struct file_thread *thread, struct file_ring *ring)
{
	struct file_entry *entry = file_queue_ended(ring->queue);
	unsigned ended = 0;

	while (entry) {
		struct weir_io *io = (struct weir_io *)(uintptr_t)entry->sqe.user_data;
		struct file_entry *next = entry->next;
		int result = entry->result;

		file_queue_give(ring->queue, entry);
		ring->waiting--;
		ended += thread_end(file, thread, io, result);
		entry = next;
	}
	return ended;
}

static unsigned ring_reap(struct file_medium *file, struct file_thread *thread, struct file_ring *ring)
{
	unsigned ended = 0;
	unsigned seen = 0;
	struct io_uring_cqe *cqe;
	unsigned head;

	if (!ring->waiting)
		return 0;
	if (ring->queue)
		return queue_reap(file, thread, ring);
	io_uring_for_each_cqe(&ring->uring, head, cqe)
	{
		struct weir_io *io = (struct weir_io *)(uintptr_t)cqe->user_data;
		int result = cqe->res;

		seen++;
		ring->waiting--;
		ended += thread_end(file, thread, io, result);
	}
	if (seen)
		io_uring_cq_advance(&ring->uring, seen);
	return ended;
}

/* @io, and of a sync all of its requests. */
static unsigned abandon(struct file_thread *thread, struct weir_io *io)
{
	bool sync = io == thread->syncing;
	unsigned ended = 0;

	if (sync)
		thread->syncing = NULL;
	while (io) {
		struct weir_io *next = sync ? file_request_next(io) : NULL;

		thread->in_flight--;
		end_now(io, NVME_STATUS_INTERNAL_ERROR);
		ended++;
		io = next;
	}
	return ended;
}

/* The kernel takes no more from this ring: what it has not taken ends here. */
static unsigned ring_abandon(struct file_thread *thread, struct file_ring *ring, int error)
{
	struct io_uring_sq *sq = &ring->uring.sq;
	unsigned left = io_uring_sq_ready(&ring->uring);
	unsigned tail = sq->sqe_tail - left, ended = 0;

	thread->error = error;
	for (unsigned i = 0; i < left; i++) {
		ring->waiting--;
		ended += abandon(thread, file_ring_prepared(ring, i));
	}
	sq->sqe_head = sq->sqe_tail = tail;
	__atomic_store_n(sq->ktail, tail, __ATOMIC_RELEASE); /* the kernel never looks again */
	file_request_sync(thread);                           /* whose end is the same, by the next poll */
	return ended;
}

static unsigned ring_poll(struct file_medium *file, struct file_thread *thread, struct file_ring *ring)
{
	int error = file_ring_push(ring);

	if (error)
		return ring_abandon(thread, ring, error) + ring_reap(file, thread, ring);
	return ring_reap(file, thread, ring);
}

static unsigned file_poll(struct weir_medium *medium, unsigned number)
{
	struct file_medium *file = file_of(medium);
	struct file_thread *thread = &file->threads[number];
	unsigned ended;

	if (!thread->in_flight)
		return 0;
	ended = ring_poll(file, thread, &thread->data);
	if (thread->side.waiting)
		ended += ring_poll(file, thread, &thread->side);
	return ended;
}

/* Where all goes over one ring; completion polling has nothing to wait for. */
static int file_descriptor(const struct weir_medium *medium, unsigned number)
{
	const struct file_medium *file = (const struct file_medium *)medium;
	const struct file_ring *ring = &file->threads[number].data;

	return ring->made && !ring->polled && !ring->queue ? ring->uring.ring_fd : -1;
}

static void path_note(struct file_medium *file, const struct file_buffers *buffers)
{
	enum file_path path = PATH_FIXED;
	const char *now = __atomic_load_n(&file->base.path, __ATOMIC_RELAXED); /* a word for people */

	if (buffers->error)
		path = buffers->error == ENOMEM ? PATH_LIMITED : PATH_UNPINNED;
	else if (!buffers->count || now != file->paths[PATH_BARE])
		return; /* what another thread could not register stays said */
	/* release: the text was written at open */
	__atomic_store_n(&file->base.path, file->paths[path], __ATOMIC_RELEASE);
}

static void file_memory_changed(struct weir_medium *medium, unsigned number, const struct weir_dma_view *view)
{
	struct file_medium *file = file_of(medium);
	struct file_thread *thread = &file->threads[number];

	if (thread->error || file->pool || file_moves_now(file))
		return;
	/* Prepared entries name slots: the kernel must resolve them before they change. */
	file_ring_push(&thread->data);
	file_buffers_follow(&thread->buffers, &thread->data.uring, view);
	path_note(file, &thread->buffers);
}

static void file_close(struct weir_medium *medium)
{
	struct file_medium *file = file_of(medium);

	file_pool_destroy(file->pool);
	for (unsigned i = 0; i < file->thread_count; i++)
		file_thread_destroy(&file->threads[i]);
	file_target_close(&file->target);
	free(file->paths);
	free(file);
}

static const struct weir_medium_ops file_ops = {
	.size = sizeof(struct weir_medium_ops),
	.submit = file_submit,
	.poll = file_poll,
	.memory_changed = file_memory_changed,
	.close = file_close,
	.descriptor = file_descriptor,
};

/* ---- opening ---- */

static int options_check(const char *path, const struct weir_medium_file_options *options)
{
	uint32_t block = options->block_bytes;

	if (block && block != 512 && block != 4096)
		return weir_fail(EINVAL, "file:%s: a block size of %u bytes is not possible: use 512 or 4096",
				 path, block);
	if (!options->threads || options->threads > FILE_THREADS_MAX)
		return weir_fail(EINVAL, "file:%s: %u threads are not possible: use 1 to %d", path,
				 options->threads, FILE_THREADS_MAX);
	if (!options->depth || options->depth > FILE_DEPTH_MAX)
		return weir_fail(EINVAL, "file:%s: a depth of %u requests is not possible: use 1 to %d", path,
				 options->depth, FILE_DEPTH_MAX);
	return 0;
}

static void paths_write(struct file_medium *file)
{
	static const char *const memory[PATHS] = {
		[PATH_BARE] = "",
		[PATH_FIXED] = ", fixed buffers",
		[PATH_LIMITED] = ", plain buffers (locked-memory limit reached: raise ulimit -l)",
		[PATH_UNPINNED] = ", plain buffers (some memory cannot be registered)",
	};

	const char *way = file_moves_now(file) ? "system calls"
			  : file->pool         ? "pread/pwrite threads"
					       : "io_uring";

	for (int i = 0; i < PATHS; i++)
		snprintf(file->paths[i], FILE_PATH_BYTES, "%s%s%s, %s%s%s", way, file->reason,
			 file->polled ? " polled" : "",
			 file->target.fds[FILE_DIRECT] >= 0 ? "O_DIRECT" : "page cache", file->target.reason,
			 memory[i]);
}

static int rings_create(struct file_medium *file)
{
	int error = 0;

	for (unsigned i = 0; !error && i < file->thread_count; i++)
		error = file_thread_create(file, &file->threads[i]);
	return error;
}

static int pool_create(struct file_medium *file)
{
	int error = file_pool_create(file->depth * file->thread_count, file->target.fds, &file->pool);

	file->polled = false;
	for (unsigned i = 0; i < file->thread_count; i++)
		file_thread_destroy(&file->threads[i]);
	if (!error)
		error = rings_create(file);
	if (!error)
		return 0;
	return weir_fail(-error,
			 "file:%s: threads for its requests cannot be started (%s): ask for a smaller depth, "
			 "or raise the "
			 "limit on processes (ulimit -u)",
			 file->target.name, strerror(-error));
}

static int engine_choose(struct file_medium *file, enum weir_file_engine engine)
{
	int error = engine == WEIR_ENGINE_THREADS ? 0 : rings_create(file);

	if (!error && engine != WEIR_ENGINE_THREADS)
		return 0;
	if (error)
		file_ring_fail(file->target.name, error);
	if (error && (engine == WEIR_ENGINE_IO_URING || !file_ring_forbidden(error)))
		return error;
	if (error) {
		file->reason = " (io_uring is forbidden or missing)";
		weir_report("%s. Up to %d threads read and write it instead, at a lower rate",
			    weir_last_error(), FILE_POOL_THREADS);
	}
	return pool_create(file);
}

static int file_set_up(struct file_medium *file, const struct weir_medium_file_options *options)
{
	struct file_target *target = &file->target;
	int error = file_direct_choose(options->direct, target);

	file->polled = !error && options->poll && options->engine != WEIR_ENGINE_THREADS &&
		       target->fds[FILE_DIRECT] >= 0 &&
		       file_poll_works(target->fds[FILE_DIRECT], target->offset_align);
	if (!error)
		error = engine_choose(file, options->engine);
	if (error)
		return error;
	paths_write(file);
	file->base.ops = &file_ops;
	file->base.block_bytes = target->block_bytes;
	file->base.read_only = target->read_only;
	file->base.path = file->paths[PATH_BARE];
	file->base.bytes = target->bytes / target->block_bytes * target->block_bytes;
	file->base.end_bytes = file->base.bytes;
	if (!target->block_device && target->bytes % target->block_bytes) {
		file->base.bytes += target->block_bytes;
		file->base.end_bytes = target->bytes;
	}
	return 0;
}

static struct file_medium *file_alloc(const struct weir_medium_file_options *options)
{
	size_t bytes = sizeof(struct file_medium) + options->threads * sizeof(struct file_thread);
	struct file_medium *file = aligned_alloc(64, (bytes + 63) / 64 * 64);

	if (!file)
		return NULL;
	memset(file, 0, bytes);
	file->depth = options->depth;
	file->thread_count = options->threads;
	file->reason = "";
	file->target.fds[FILE_BUFFERED] = file->target.fds[FILE_DIRECT] = file->target.fds[FILE_SYNC] = -1;
	file->paths = calloc(PATHS, sizeof(*file->paths));
	if (file->paths)
		return file;
	free(file);
	return NULL;
}

int weir_medium_file_open(const char *path, const struct weir_medium_file_options *options,
			  struct weir_medium **out)
{
	int error = options_check(path, options);
	struct file_medium *file;

	if (error)
		return error;
	file = file_alloc(options);
	if (!file)
		return weir_fail(ENOMEM, "file:%s: no memory for %u threads", path, options->threads);
	error = file_target_open(path, options, &file->target);
	if (!error)
		error = file_set_up(file, options);
	if (error) {
		file_close(&file->base);
		return error;
	}
	file->target.name = NULL; /* the caller's, and no longer needed */
	*out = &file->base;
	return 0;
}
