/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium.h: what stands behind a virtual NVMe controller: bytes at offsets.
 *
 * Owns: the request a controller hands to a medium and the medium's vtable.
 * A medium knows nothing of queues, PRPs or LBAs.
 */
#ifndef WEIR_MEDIUM_H
#define WEIR_MEDIUM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "../../storage/dma.h"

enum weir_io_kind {
	WEIR_IO_READ,
	WEIR_IO_WRITE,
	WEIR_IO_FLUSH,   /* everything acknowledged before is durable afterwards */
	WEIR_IO_ZERO,    /* reads back as zeros */
	WEIR_IO_DISCARD, /* contents become zeros or stay: a hint */
};

/**
 * struct weir_io - one request to a medium
 * @kind: what to do
 * @force_unit_access: a write that is durable before it completes
 * @thread: controller thread that submits and will reap it
 * @offset_bytes: first byte on the medium, a multiple of its block size
 * @bytes: length; the sum of @iov for READ and WRITE
 * @iov: memory segments (already checked against the DMA map)
 * @iov_count: segments in use
 * @status: NVMe status code (NVME_STATUS_..., 0 = success), set by the medium
 * @done: called once when it has ended, from submit() or poll() on @thread
 * @medium_data: scratch of the medium while it is in flight
 * @version: to an engine (engine/engine.h), of the first block that changes; to a volume, of what lanes gave
 * one
 * @epochs: to an engine alone: weir_engine_epochs(); both lie where other media have scratch: requests are no
 * longer
 */
struct weir_io {
	enum weir_io_kind kind;
	bool force_unit_access;
	unsigned thread;
	uint64_t offset_bytes;
	uint64_t bytes;
	struct iovec *iov;
	unsigned iov_count;
	uint16_t status;
	void (*done)(struct weir_io *io);
	union {
		uint64_t medium_data[4];
		struct {
			uint64_t version;
			uint64_t epochs;
		};
	};
};

struct weir_medium;

/**
 * struct weir_medium_ops - a medium's functions
 * @size: sizeof(struct weir_medium_ops), so that it can grow
 * @submit: start @io; it may end at once (done called inside). Returns false,
 *          with nothing started, when the medium can take no more just now:
 *          the controller offers it again after a poll().
 * @poll: push what is submitted, end what is finished; returns how many ended
 * @memory_changed: the DMA view of @thread changed (for registered buffers);
 *                  called on that thread with no request of it in submit()
 * @close: free everything; nothing is in flight any more
 * @expect: a request of this kind from this byte on, a block at least, will be
 *          submitted soon, or will not: a hint for what is fetched ahead; any
 *          thread. NULL: it would not help, and nothing is read ahead
 * @descriptor: a file descriptor that polls as readable once something submitted by @thread may have ended;
 * -1: there is none for now. NULL: never
 */
struct weir_medium_ops {
	size_t size;
	bool (*submit)(struct weir_medium *medium, struct weir_io *io);
	unsigned (*poll)(struct weir_medium *medium, unsigned thread);
	void (*memory_changed)(struct weir_medium *medium, unsigned thread, const struct weir_dma_view *view);
	void (*close)(struct weir_medium *medium);
	void (*expect)(const struct weir_medium *medium, enum weir_io_kind kind, uint64_t offset_bytes);
	int (*descriptor)(const struct weir_medium *medium, unsigned thread);
};

/**
 * struct weir_medium - what every medium begins with
 * @ops: its functions
 * @bytes: capacity as presented to the controller (a multiple of block_bytes)
 * @end_bytes: of these, those that there are: less than @bytes where the last block is not whole. What
 *             lies behind reads as zeros, and a write leaves it out
 * @block_bytes: 512 or 4096
 * @read_only: writes are refused by the controller
 * @in_memory: its bytes are memory of this process: to discard what is written again soon costs page faults
 * @memory: its bytes, where whoever may read them can, while it is open; NULL: nowhere
 * @path: how it reaches its bytes, for people: "ram", "io_uring, O_DIRECT", ...;
 *        may come to point to another text: read it with weir_medium_path()
 */
struct weir_medium {
	const struct weir_medium_ops *ops;
	uint64_t bytes;
	uint64_t end_bytes;
	uint32_t block_bytes;
	bool read_only;
	bool in_memory;
	const void *memory;
	const char *path;
};

/** weir_medium_kept() - of @io, READ, WRITE or ZERO and in range, the bytes that there are */
static inline uint64_t weir_medium_kept(const struct weir_medium *medium, const struct weir_io *io)
{
	uint64_t left = medium->end_bytes - io->offset_bytes;

	return left < io->bytes ? left : io->bytes;
}

/** weir_medium_path() - how it reaches its bytes just now; any thread; lives as long as @medium */
static inline const char *weir_medium_path(const struct weir_medium *medium)
{
	/* acquire: pairs with a medium that has found another way; its text is written */
	return __atomic_load_n(&medium->path, __ATOMIC_ACQUIRE);
}

/**
 * weir_medium_ram_open() - a medium in host memory, initially zero
 * @bytes: capacity, a multiple of @block_bytes; memory is taken as it is written. 0: that of the file
 * @block_bytes: 512 or 4096
 * @load_path: file whose bytes it starts with, or NULL. Where @bytes is 0 it ends where the file does
 */
int weir_medium_ram_open(uint64_t bytes, uint32_t block_bytes, const char *load_path,
			 struct weir_medium **out);

/**
 * struct weir_lender - who has memory that others reach, too
 * @lend: @bytes of it, whole pages, zeroed, to outlive whoever borrows it. 0; or a negative errno with a
 * sentence
 * @of: what @lend is given
 * @most: bytes that it is to be asked for
 */
struct weir_lender {
	int (*lend)(void *of, uint64_t bytes, void **memory);
	void *of;
	uint64_t most;
};

/** weir_medium_ram_open_lent() - the same in memory of @lender; NULL: in its own */
int weir_medium_ram_open_lent(uint64_t bytes, uint32_t block_bytes, const char *load_path,
			      const struct weir_lender *lender, struct weir_medium **out);

/**
 * weir_medium_sparse_open() - a medium in host memory of any size, whose contents are computed until they are
 * written
 * @bytes: capacity, a multiple of @block_bytes; memory is taken as it is written
 * @block_bytes: 512 or 4096
 *
 * Of what was never written each 8-byte word holds its own byte offset, in the host's byte order.
 */
int weir_medium_sparse_open(uint64_t bytes, uint32_t block_bytes, struct weir_medium **out);

/** weir_medium_check_shape() - -EINVAL with a sentence for a capacity or block size that a medium in memory
 * cannot have */
int weir_medium_check_shape(uint64_t bytes, uint32_t block_bytes);

/**
 * weir_medium_trace_open() - a medium in front of @behind, which notes each request in a file
 * @path: the file, made anew
 * @behind: its medium from here on, unless this fails
 *
 * Lines, in the order in which things happened: "begin NUMBER KIND OFFSET BYTES", with " fua" behind it for
 * force_unit_access; "end NUMBER STATUS"; "refused NUMBER 0" for what the medium took no more.
 */
int weir_medium_trace_open(const char *path, struct weir_medium *behind, struct weir_medium **out);

enum weir_direct {
	WEIR_DIRECT_AUTO, /* O_DIRECT if it works here and is not slower, else buffered */
	WEIR_DIRECT_ON,   /* O_DIRECT or an error */
	WEIR_DIRECT_OFF,  /* through the page cache */
};

enum weir_file_engine {
	WEIR_ENGINE_AUTO,     /* io_uring; where that is forbidden or missing, threads, which is said once on
				 stderr */
	WEIR_ENGINE_IO_URING, /* io_uring or an error */
	WEIR_ENGINE_THREADS,  /* system calls by threads */
};

/**
 * struct weir_medium_file_options - how to open a file or block device
 * @block_bytes: 512 or 4096 (0: 4096, or the device's if it is larger)
 * @read_only: open for reading only
 * @direct: see enum weir_direct
 * @threads: controller threads that will submit, each gets its own ring
 * @depth: requests in flight per thread
 * @poll: use completion polling (IORING_SETUP_IOPOLL) where the device has it
 * @engine: see enum weir_file_engine
 * @share: a block device may be open for writing elsewhere, where that asks for it, too
 * @alone: a file may not be, where that asks for it, too: one writes it, or any number read it
 */
struct weir_medium_file_options {
	uint32_t block_bytes;
	bool read_only;
	enum weir_direct direct;
	unsigned threads;
	unsigned depth;
	bool poll;
	enum weir_file_engine engine;
	bool share;
	bool alone;
};

int weir_medium_file_open(const char *path, const struct weir_medium_file_options *options,
			  struct weir_medium **out);

#endif
