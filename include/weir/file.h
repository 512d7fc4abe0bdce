/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.h: ordinary files into and out of memory of the device, by offset and length.
 *
 * A piece of memory is registered once. Where the host can see it (memory of the cpu, pinned memory, a window
 * of the kernel module) the registration has a pointer for it that pread(), io_uring and ibv_reg_mr() take,
 * and the calls below do just that; where it cannot, they go through staging in pinned memory, several parts
 * at a time. Which it is, and why, the registration says. Needs no privilege, no kernel module and nothing of
 * the file system.
 *
 * Host only; the rules of <weir/weir.h> hold, but that several threads may read, write and wait with one
 * context at the same time (more than 64 take turns); registering, and all else, is for one of them at a
 * time.
 */
#ifndef WEIR_FILE_H
#define WEIR_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_registration;
struct weir_file_batch;

/**
 * enum weir_file_path - how bytes get from a file to registered memory, and back
 * @WEIR_FILE_AUTO: in options: the first of these that can be had
 * @WEIR_FILE_MODULE: the SSD reads and writes the device's memory itself, through a window that the kernel
 * module made, as far as the file is open with O_DIRECT, blocks and places are aligned, and its SSD turned
 * out to reach that memory (weir_file_route()); else as one of the last two. Over NFS and NVMe/TCP it is the
 * kernel's client: a processor copies between that memory and the network's buffers, and nothing is staged
 * @WEIR_FILE_DIRECT: the host sees the memory: the file is read into its place
 * @WEIR_FILE_PULL: through pinned staging, from which lanes fetch small blocks and copy engines large ones,
 *                  while the next ones are read
 * @WEIR_FILE_BOUNCE: through staging, with a copy that the host waits for
 */
enum weir_file_path {
	WEIR_FILE_AUTO,
	WEIR_FILE_MODULE,
	WEIR_FILE_DIRECT,
	WEIR_FILE_PULL,
	WEIR_FILE_BOUNCE,
};

/** weir_file_path_name() - "module", "direct" and so on; NULL if there is no path @path */
WEIR_API const char *weir_file_path_name(enum weir_file_path path);

/**
 * struct weir_register_options - how to register memory
 * @size: sizeof the structure
 * @path: WEIR_FILE_AUTO, or the only one to be taken
 */
struct weir_register_options {
	size_t size;
	enum weir_file_path path;
};

/**
 * weir_register() - make memory of a context's device known to the calls below
 * @context: the context
 * @address: weir_alloc()'s, weir_alloc_host()'s or some place in between; or memory that the program got from
 * the device's own run time, or, on the cpu, any memory of the process
 * @bytes: its length, of any size
 * @options: NULL for the defaults
 * @out: the registration
 *
 * The memory stays the caller's, who frees it after weir_deregister(); weir_free() refuses to before.
 * Registrations may overlap. weir_context_close() deregisters what is left.
 *
 * Return: 0; -EINVAL; -EFAULT: it is no such memory, or ends before @bytes; -ENOTSUP: @options asks for a
 * path that there is not here, and the sentence says why; -ENOMEM.
 */
WEIR_API int weir_register(struct weir_context *context, uint64_t address, uint64_t bytes,
			   const struct weir_register_options *options, struct weir_registration **out);

/**
 * weir_deregister() - forget a registration; NULL is fine
 *
 * Return: 0; -EBUSY: requests on it have not ended, and it stays; -EINVAL: it is not registered, or is no
 * more.
 */
WEIR_API int weir_deregister(struct weir_registration *registration);

/**
 * struct weir_registration_info - what a registration is
 * @size: sizeof the structure
 * @address: where it begins, for lanes
 * @bytes: its length
 * @host: the same bytes for the host, for pread(), io_uring, ibv_reg_mr(); NULL where the host does not see
 *them, or would have to flush what came there
 * @path: enum weir_file_path
 * @reason: why this path, one clause
 */
struct weir_registration_info {
	size_t size;
	uint64_t address;
	uint64_t bytes;
	void *host;
	uint32_t path;
	char reason[256];
};

/** weir_registration_info() - describe a registration */
WEIR_API int weir_registration_info(struct weir_registration *registration,
				    struct weir_registration_info *info);

/**
 * weir_file_read() - pread() into registered memory
 * @registration: the memory
 * @file: a descriptor open for reading, of a file or a block device, with O_DIRECT or without
 * @bytes: how many; any number, any alignment
 * @offset: in the file
 * @at: first byte within the registered memory
 *
 * Not ordered with running kernels, as weir_copy_to_device() is not. weir_file_write() likewise, pwrite():
 * with O_DIRECT, edges that are not aligned go through the page cache. Of the memory that a read was asked to
 * fill, what lies behind the end of the file may have been written to.
 *
 * Return: bytes read, fewer than asked for only at the end of the file or before a failure; -EINVAL, -EBADF,
 * -EFAULT (not inside the registered memory), or what the system says, with a sentence.
 */
WEIR_API ssize_t weir_file_read(struct weir_registration *registration, int file, size_t bytes, off_t offset,
				size_t at);
WEIR_API ssize_t weir_file_write(struct weir_registration *registration, int file, size_t bytes, off_t offset,
				 size_t at);

/**
 * weir_file_attach() - a descriptor stays what it is, until weir_file_detach()
 * @context: the context
 * @file: the descriptor; the program does not close it before, nor change its flags
 *
 * For others each call asks the system anew what they are, which takes two or three system calls. With this
 * one an aligned read of one piece is a single system call.
 *
 * Return: 0; what is no descriptor, or has no offsets: as weir_file_read(); -EEXIST: it is attached; -ENOMEM.
 */
WEIR_API int weir_file_attach(struct weir_context *context, int file);

/** weir_file_detach() - no more; nothing on it is under way. Return: 0; -ENOENT: it was not attached. */
WEIR_API int weir_file_detach(struct weir_context *context, int file);

/**
 * struct weir_file_route - how requests of a file go to registered memory
 * @size: sizeof the structure
 * @path: enum weir_file_path that aligned blocks take
 * @reason: why, one clause; where a self-test says so, with its numbers
 */
struct weir_file_route {
	size_t size;
	uint32_t path;
	char reason[256];
};

/**
 * weir_file_route() - how requests of a file go to registered memory, and why
 * @registration: the memory
 * @file: an open file
 *
 * Where that is WEIR_FILE_MODULE, it has been tried: a buffer of the device's was filled by the device, a
 * block of a file of this file system read into it by the SSD, read back by the device, and it was what the
 * host reads there. @route->reason names who read it: the SSD, "the NFS client", "the NVMe/TCP host" and so
 * on, and says where a processor copied. The first request tries it, if this call has not; a file system
 * whose SSD fails is not tried again by this context, and the process's standard error has been told. Writes
 * go the same way once one was tried: what the first of them wrote of up to 64 KiB was then in the file;
 * until that is known, as where the file may not be read, or has had these very bytes, they go by staging.
 */
WEIR_API int weir_file_route(struct weir_registration *registration, int file, struct weir_file_route *route);

/** enum weir_file_operation - what a request does */
enum weir_file_operation {
	WEIR_FILE_READ,
	WEIR_FILE_WRITE,
};

/**
 * struct weir_file_io - one of many requests
 * @registration: the memory, of the context that the request is given to
 * @file: the descriptor
 * @operation: enum weir_file_operation
 * @at: first byte within the registered memory
 * @offset: in the file
 * @bytes: how many
 * @result: set: as weir_file_read() returns it; -EINPROGRESS while it is under way
 * @report: NULL, or where the result is also written to when it is there
 */
struct weir_file_io {
	struct weir_registration *registration;
	int file;
	uint32_t operation;
	uint64_t at;
	uint64_t offset;
	uint64_t bytes;
	int64_t result;
	int64_t *report;
};

/**
 * weir_file_batch() - many requests, in any order and at the same time; wait for all
 * @context: the context
 * @io: the requests; none may write where another reads or writes
 * @count: how many; 0 is fine
 *
 * Return: 0 if none failed (one that ended short did not); else what the first that failed has as its result.
 * -EINVAL and the like if one of them cannot be: then none was begun.
 */
WEIR_API int weir_file_batch(struct weir_context *context, struct weir_file_io *io, size_t count);

/**
 * weir_file_submit() - begin many requests, and do not wait
 * @context: the context
 * @io: the requests; they, their files and their memory stay until weir_file_wait() has returned
 * @count: how many
 * @out: what to wait for
 */
WEIR_API int weir_file_submit(struct weir_context *context, struct weir_file_io *io, size_t count,
			      struct weir_file_batch **out);

/** weir_file_ended() - how many of a batch's requests have ended; their results are there. SIZE_MAX, with a
 * sentence: it is no batch */
WEIR_API size_t weir_file_ended(const struct weir_file_batch *batch);

/**
 * weir_file_wait() - wait for all of a batch, and forget it
 *
 * weir_context_close() waits for batches that are left, and returns their failures.
 *
 * Return: as weir_file_batch(); -EINVAL: it was waited for already, or is none.
 */
WEIR_API int weir_file_wait(struct weir_file_batch *batch);

/**
 * weir_file_enqueue() - requests in the order of a stream
 * @context: the context
 * @stream: NULL: that of weir_launch(); else one of the device's own run time
 * @io: the requests; they, their files and their memory stay until the stream has passed them
 * @count: how many
 *
 * They begin when all that is in the stream has ended, and what is put into it afterwards begins when they
 * have ended. Returns at once; no thread of the run time waits meanwhile. What failed is in the results;
 * weir_sync() also returns the first failure, whatever the stream. A write does not try the way to a file
 * system (weir_file_route()): it goes by staging until one that is not enqueued has tried it.
 *
 * Return: 0; -ENOTSUP where the backend cannot have a stream wait for the host; else as weir_file_submit().
 */
WEIR_API int weir_file_enqueue(struct weir_context *context, void *stream, struct weir_file_io *io,
			       size_t count);

/**
 * struct weir_file_stats - what a context's file requests did
 * @size: sizeof the structure
 * @read_bytes: bytes read from files
 * @written_bytes: bytes written to files
 * @direct_bytes: of both, those that the host's system calls moved from or to their place
 * @pulled_bytes: those that lanes moved
 * @copied_bytes: those that were copied by the device's copy engines, or by the host
 * @edges: unaligned ends of requests with O_DIRECT that went through the page cache
 * @threads: host threads that move data, the caller among them
 * @uring: not 0: by io_uring; 0: by pread() and pwrite(), since io_uring is not to be had here
 * @module_bytes: of @direct_bytes, those that SSDs, or the kernel's clients of storage in a network, moved
 * from or to the device's own memory, by the kernel module
 */
struct weir_file_stats {
	size_t size;
	uint64_t read_bytes;
	uint64_t written_bytes;
	uint64_t direct_bytes;
	uint64_t pulled_bytes;
	uint64_t copied_bytes;
	uint64_t edges;
	uint32_t threads;
	uint32_t uring;
	uint64_t module_bytes;
};

/** weir_file_stats() - read the counters; exact when nothing is under way */
WEIR_API int weir_file_stats(struct weir_context *context, struct weir_file_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
