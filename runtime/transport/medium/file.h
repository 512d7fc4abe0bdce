/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/file.h: the parts of the file medium, as they see each other.
 *
 * Owns: the structures that medium_file_*.c share. Nobody else includes it.
 */
#ifndef WEIR_MEDIUM_FILE_H
#define WEIR_MEDIUM_FILE_H

#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "medium.h"

enum {
	FILE_THREADS_MAX = 256,
	FILE_DEPTH_MAX = 16384,
	FILE_PATH_BYTES = 224, /* a description of how bytes are reached */
	FILE_REASON_BYTES = 96,
	FILE_POOL_THREADS = 32, /* at most, of one medium */
};

/* ---- target: the open file or device (medium/file_target.c, medium/file_direct.c) ---- */

/* Registered-file indices, the same on every ring. */
enum file_way {
	FILE_BUFFERED,
	FILE_DIRECT,
	FILE_SYNC, /* a thread's own, which is synced */
	FILE_WAYS,
};

/**
 * struct file_target - what was opened
 * @name: the path, as given, for messages
 * @fds: FILE_BUFFERED always; FILE_DIRECT is -1 unless O_DIRECT is in use; FILE_SYNC: -1
 * @block_device: not a regular file
 * @share: a block device that others may have open for writing, if they say so, too
 * @alone: a file that others may not, if they say so, too
 * @in_memory: its file system keeps files in memory and nowhere else
 * @on_fuse: its file system is a process's (FUSE)
 * @read_only: opened for reading
 * @block_bytes: the medium's block size
 * @logical_bytes: the device's logical block size; 1 for a regular file
 * @bytes: size at open, to the byte
 * @memory_align: what O_DIRECT wants of addresses
 * @offset_align: what O_DIRECT wants of offsets and of each segment's length
 * @reason: why the page cache or O_DIRECT is used, for people; "" if asked for
 */
struct file_target {
	const char *name;
	int fds[FILE_WAYS];
	bool block_device;
	bool share;
	bool alone;
	bool in_memory;
	bool on_fuse;
	bool read_only;
	uint32_t block_bytes;
	uint32_t logical_bytes;
	uint64_t bytes;
	uint32_t memory_align;
	uint32_t offset_align;
	char reason[FILE_REASON_BYTES];
};

/** file_target_open() - open @path through the page cache and learn its shape */
int file_target_open(const char *path, const struct weir_medium_file_options *options,
		     struct file_target *target);
void file_target_close(struct file_target *target);
/** file_target_sync() - the same file, opened once more, whose failed write-backs no other sync can take;
 * FILE_BUFFERED's where it cannot be */
int file_target_sync(const struct file_target *target);

/** file_direct_choose() - open it with O_DIRECT as well, where asked for, possible and faster */
int file_direct_choose(enum weir_direct want, struct file_target *target);

/**
 * file_measure_rate() - 4 KiB random reads per second at depth 32
 *
 * @fd: a descriptor of the file
 * @file_bytes: its size
 * @seed: decides the offsets; the same for the ways to be compared, another at
 *        each open, or the page cache would know them from the last one
 *
 * Takes a few milliseconds.
 *
 * Return: 0 if it cannot be measured.
 */
double file_measure_rate(int fd, uint64_t file_bytes, uint64_t seed);

/** file_poll_works() - whether completion polling (IORING_SETUP_IOPOLL) serves a read of @fd */
bool file_poll_works(int fd, uint32_t align);

/* ---- pool: system calls by threads, for where there is no io_uring (medium/file_pool.c) ---- */

struct file_pool;
struct file_queue;

/**
 * struct file_entry - one operation
 * @sqe: which, as io_uring has it; @sqe.fd is an enum file_way
 * @result: what a CQE of it would say
 * @next: in the list that it is in
 * @queue: where it goes back to
 */
struct file_entry {
	struct io_uring_sqe sqe;
	int result;
	struct file_entry *next;
	struct file_queue *queue;
};

/**
 * struct file_queue - what one controller thread has with a pool
 * @pool: who carries it out
 * @free: entries not in use
 * @prepared: filled, and not yet pushed, in order
 * @prepared_end: where the next one goes
 * @ended: carried out; shared with the pool's threads, the latest first
 * @sync: descriptor of FILE_SYNC
 * @entries: all of them
 */
struct file_queue {
	struct file_pool *pool;
	int sync;
	struct file_entry *free;
	struct file_entry *prepared;
	struct file_entry **prepared_end;
	struct file_entry *ended;
	struct file_entry entries[];
};

/** file_pool_create() - start threads for up to @depth operations at once; a negative errno, silently */
int file_pool_create(unsigned depth, const int fds[FILE_WAYS], struct file_pool **out);
/** file_pool_destroy() - end them; nothing is in flight; NULL is fine */
void file_pool_destroy(struct file_pool *pool);
/** file_queue_create() - a queue of @depth entries, which free() frees; a negative errno, silently */
int file_queue_create(struct file_pool *pool, unsigned depth, int sync, struct file_queue **out);
/** file_queue_take() - an entry to fill; there are as many as requests are let in */
struct io_uring_sqe *file_queue_take(struct file_queue *queue);
/** file_queue_give() - an entry that has ended, back */
void file_queue_give(struct file_queue *queue, struct file_entry *entry);
/** file_queue_push() - have the pool carry out what was taken */
void file_queue_push(struct file_queue *queue);
/** file_queue_ended() - a list of entries that have ended since the last call, or NULL */
struct file_entry *file_queue_ended(struct file_queue *queue);

/* ---- ring: io_uring, pushed and reaped without waiting (medium/file_ring.c) ---- */

/**
 * struct file_ring - one io_uring, or a queue of a pool in its place
 * @uring: liburing's half
 * @queue: the pool's; NULL: @uring is in use
 * @made: @uring is to be torn down
 * @polled: completions come only by asking the kernel (IORING_SETUP_IOPOLL)
 * @waiting: requests handed to it and not yet reaped
 */
struct file_ring {
	struct io_uring uring;
	struct file_queue *queue;
	bool made;
	bool polled;
	unsigned waiting;
};

/**
 * file_ring_create() - set up a ring, files registered; threads may use it in turn
 *
 * Return: 0 or a negative errno, silently: see file_ring_fail().
 */
int file_ring_create(struct file_ring *ring, unsigned depth, bool polled, const int fds[FILE_WAYS]);
/** file_ring_create_by() - the same, of @pool; @sync: descriptor of FILE_SYNC */
int file_ring_create_by(struct file_pool *pool, struct file_ring *ring, unsigned depth, int sync);
void file_ring_destroy(struct file_ring *ring);
/** file_ring_take() - an entry to fill: a ring has at least as many as requests are let in */
struct io_uring_sqe *file_ring_take(struct file_ring *ring);
/** file_ring_forbidden() - whether @error of file_ring_create() is that there may be no io_uring, whatever
 * its size */
bool file_ring_forbidden(int error);
/** file_ring_prepared() - request of the @index-th entry not yet submitted */
struct weir_io *file_ring_prepared(const struct file_ring *ring, unsigned index);
/** file_ring_push() - submit what is prepared and let the kernel post what has ended */
int file_ring_push(struct file_ring *ring);
/** file_ring_fail() - the sentence for a failed file_ring_create(); returns @error (negative) */
int file_ring_fail(const char *name, int error);

/* ---- buffers: memory the ring knows beforehand (medium/file_buffers.c) ---- */

enum { FILE_BUFFER_NONE = -1 };

/** struct file_buffer - one registered piece of a DMA region; @slot < 0: it could not be */
struct file_buffer {
	uint64_t address;
	uint64_t bytes;
	uint64_t id; /* of the DMA region */
	int slot;
};

/**
 * struct file_buffers - a thread's registered memory
 * @items: sorted by address
 * @count: items in use
 * @last: item of the latest hit
 * @free_slots: stack of unused slots of the kernel's table, NULL until it is made
 * @free_count: slots on it
 * @error: why something is not registered (positive errno), 0 if all is
 */
struct file_buffers {
	struct file_buffer *items;
	size_t count;
	size_t last;
	int *free_slots;
	size_t free_count;
	int error;
};

/** file_buffers_follow() - register what @view has and unregister what it has no longer */
void file_buffers_follow(struct file_buffers *buffers, struct io_uring *uring,
			 const struct weir_dma_view *view);
void file_buffers_release(struct file_buffers *buffers);
/** file_buffers_find() - slot that holds all of it, or FILE_BUFFER_NONE */
int file_buffers_find(struct file_buffers *buffers, uint64_t address, uint64_t bytes);

/* ---- the medium and its threads (medium/file.c, medium/file_thread.c) ---- */

/**
 * struct file_thread - what one controller thread uses, and no other meanwhile
 * @data: ring of reads and writes
 * @side: ring of all else, made only if @data is a polled one
 * @buffers: memory registered with @data
 * @in_flight: requests started and not ended
 * @sync: what is synced; @owns_sync: and closed
 * @syncing: requests that the sync under way is of, in a list; NULL: there is none
 * @unsynced: those of the next one
 * @error: negative errno once the rings are beyond use
 */
struct file_thread {
	struct file_ring data;
	struct file_ring side;
	struct file_buffers buffers;
	unsigned in_flight;
	int sync;
	bool owns_sync;
	struct weir_io *syncing;
	struct weir_io *unsynced;
	int error;
} __attribute__((aligned(64)));

/**
 * struct file_medium - a file behind the medium's vtable
 * @base: must be first
 * @target: the open file
 * @depth: requests in flight per thread
 * @polled: the data rings poll
 * @pool: carries out all rings' entries; NULL: io_uring does
 * @reason: why there is a pool, for people; "" if asked for, or none
 * @paths: base.path is one of these, by enum file_path
 * @lost: a sync failed, which Linux says once: what was written before may be lost; all threads
 * @thread_count: entries in @threads
 */
struct file_medium {
	struct weir_medium base;
	struct file_target target;
	unsigned depth;
	bool polled;
	struct file_pool *pool;
	const char *reason;
	char (*paths)[FILE_PATH_BYTES];
	bool lost;
	unsigned thread_count;
	struct file_thread threads[];
};

/** file_thread_create() - the rings of one controller thread; a negative errno, silently */
int file_thread_create(struct file_medium *file, struct file_thread *thread);
/** file_thread_destroy() - nothing of it is in flight; fine on one never created */
void file_thread_destroy(struct file_thread *thread);

/* ---- requests (medium/file_request.c, medium/file_status.c) ---- */

/**
 * file_moves_now() - whether reads and writes are system calls of their own, ended at once
 *
 * A file system in memory has nothing to wait for, and io_uring does not know: it hands
 * each request to a thread of its own, which costs several times the copy.
 */
bool file_moves_now(const struct file_medium *file);
/** file_request_now() - carry out @io, a READ or WRITE, where file_moves_now() */
void file_request_now(struct file_medium *file, struct weir_io *io);
/** file_request_start() - prepare the first entry of @io on a ring of @thread */
void file_request_start(struct file_medium *file, struct file_thread *thread, struct weir_io *io);
/** file_request_next() - of the requests of one sync, behind @io; NULL: none */
struct weir_io *file_request_next(const struct weir_io *io);
/** file_request_sync() - begin the next sync, if none is under way and one is wanted */
void file_request_sync(struct file_thread *thread);
/** file_request_step() - go on after a result; true when @io has ended, its status set */
bool file_request_step(struct file_medium *file, struct file_thread *thread, struct weir_io *io, int result);

/**
 * file_status() - NVMe status for what the kernel answered
 * @kind: the request
 * @error: positive errno value
 */
uint16_t file_status(enum weir_io_kind kind, int error);

#endif
