/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/storage.h: the host side of a storage: open it by URI, read and write it, count what it did, close
 * it.
 *
 * Owns: options, the keys of URIs, counters. Part of weir.h, whose rules hold here.
 */
#ifndef WEIR_HOST_STORAGE_H
#define WEIR_HOST_STORAGE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/devices.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_context;
struct weir_storage;
struct weir_disk;

/**
 * struct weir_storage_options - how to open a storage
 * @size: sizeof the structure
 * @queues: queue pairs; 0: one per worker of the device, 4 at least
 * @depth: entries per queue, a power of two from 2 to 4096; 0: 256
 * @max_transfer_bytes: most a single command moves, a power of two from 4096 on;
 *                      0: 64 KiB. A queue pair costs depth x (160 + transfer / 512) bytes.
 * @read_only: refuse writes
 * @timeout_us: what a lane waits for a command by default; 0: 30 s, or if that is more twice
 * command_timeout_us and 15 s: long enough that a command which got no answer is ended and tried again
 * @first_ticket: tests only: ticket the queues start with, a multiple of 2 x depth
 * @command_timeout_us: what the controller may take for a command; 0: 30 s. After that the command is
 *                      aborted, else its queue pair created anew, else the controller reset
 *                      (docs/hardware.md). The key timeout_ms of a URI goes before it
 * @retries: plus 1: how often a command is submitted again that the controller says is worth another try, up
 * to 100: so 1 means never; 0: 4. docs/guide/blocks.md says which, and where
 */
struct weir_storage_options {
	size_t size;
	uint32_t queues;
	uint32_t depth;
	uint32_t max_transfer_bytes;
	uint32_t read_only;
	uint64_t timeout_us;
	uint64_t first_ticket;
	uint64_t command_timeout_us;
	uint32_t retries;
};

/**
 * weir_storage_open() - open a storage by its URI
 * @context: the context whose lanes will use it
 * @uri: where the data is:
 *       `virt:SIZE`   memory behind a virtual controller; ?block=512|4096 &load=FILE, what it
 *                     begins with; `virt:?load=FILE` is as large as the file, to the byte
 *                     &content=zeros|address: what it holds before it is written: zeros, or in each
 *                     8-byte word the word's own byte offset; the latter at any size up to 2^60 bytes, since
 *                     only what is written takes memory
 *                     ?on=device &data=on|off &medium=device|host: a controller made of lanes; it
 *                     believes buffer addresses, so a wrong one is the device's error.
 *                     &waves=N in small blocks all over the device (256 if not given), or
 *                     &groups=N blocks that each fill a multiprocessor; &claim=N commands that a
 *                     wave takes at once (as many as have 32 KiB if not given)
 *       `file:PATH`   a file or block device through io_uring; ?block=512|4096
 *                     &direct=auto|on|off &poll=0|1 &ro=0|1
 *                     &engine=auto|io_uring|threads: who reads and writes it. auto: where io_uring is
 * forbidden or missing, up to 32 threads by system calls, which is said once on stderr &share=off|on: a block
 * device may be open for writing elsewhere, where that says share=on, too (docs/guide/writing.md)
 *       `nvme:ADDRESS` an NVMe controller bound to vfio-pci (docs/hardware.md), such as nvme:0000:65:00.0;
 *                     ?nsid=N &queues=N &ro=0|1 &mover=... &shadow=auto|on|off &vfio=auto|group|iommufd.
 * Where the controller has another namespace than 1, what is written to is named by nsid. ?driver=kernel
 * &in_use=refuse|allow: one that keeps the kernel's driver; device memory has to be a window of weir_p2p
 * (docs/kernel.md) all of them   &timeout_ms=N what the controller may take for a command; 0: any time virt:,
 * file:  &threads=N|auto &lat_us=N &iops=N &mdts=BYTES; auto: one for each core but two, at most 16 and one
 * for each queue &shadow=off|on: the controller offers shadow doorbells (docs/hardware.md) &trace=FILE: each
 * request of the controller to what is behind it, noted when it begins and when it ends, in that order; not
 * with on=device &fault=KIND:KEY=VALUE...,... what the controller does wrong, for tests: a table of rows such
 * as late:us=500:every=7 or status:code=0x281:op=read:lba=10-19:count=1; kinds and keys in
 * runtime/transport/virtual/fault.h any of them:  &retries=N instead of what @options says, 0 to 100 The
 * first '?' ends what precedes the keys. In a path and in a value %3F stands for '?', %26 for '&', %2C for
 * ',' (which separates URIs in lists) and %25 for '%'; any other '%' is refused, and every other character
 *       stands for itself. virt: holds 127T at most.
 * @options: NULL for the defaults
 * @out: the storage
 *
 * Return: 0; -EINVAL for a URI or options that cannot be; what the file says.
 */
WEIR_API int weir_storage_open(struct weir_context *context, const char *uri,
			       const struct weir_storage_options *options, struct weir_storage **out);

/**
 * weir_storage_close() - write back its dirty lines, flush, delete the queues, free; NULL is fine
 *
 * Waits for the kernels launched so far. Caches that have lines of it write back the dirty ones, and forget
 * all of them. Of a stripe that is all of its lines: the stripe's arrays are void, its other storages stay
 * open. Arrays, writers and disks of it in kernel arguments are void; lanes that use one get WEIR_E_CLOSED.
 * Lines that lanes hold in buffers of a Share Table are not written; weir_share_destroy() or
 * weir_cache_destroy() says so.
 *
 * Return: 0; -EINVAL for a handle that is not an open storage; -EIO with a sentence that counts and names the
 * blocks that could not be written and are lost, or says that the controller failed before it made durable
 * what was written. It is closed in any case.
 */
WEIR_API int weir_storage_close(struct weir_storage *storage);

/**
 * struct weir_storage_info - what a storage is
 * @size: sizeof the structure
 * @bytes: size, to the byte. Where it is no multiple of @block_bytes, the last block is read with zeros
 *         behind the end, and of what is written to it only that before the end is kept: a file keeps its
 * size
 * @block_bytes: 512 or 4096
 * @max_transfer_bytes: most a single command moves
 * @queues: queue pairs in use
 * @depth: entries of each
 * @queue_bytes: memory of one queue pair, its staging included
 * @read_only: writes are refused
 * @path: how blocks travel, for people, such as "direct, io_uring O_DIRECT"
 */
struct weir_storage_info {
	size_t size;
	uint64_t bytes;
	uint32_t block_bytes;
	uint32_t max_transfer_bytes;
	uint32_t queues;
	uint32_t depth;
	uint64_t queue_bytes;
	uint32_t read_only;
	char path[128];
};

/** weir_storage_info() - describe a storage; -EINVAL for one that is not open */
WEIR_API int weir_storage_info(struct weir_storage *storage, struct weir_storage_info *info);

/**
 * weir_storage_disk() - the device's view of a storage, to put into kernel arguments
 * @storage: the storage
 * @disk: struct weir_disk of <weir/abi.h>
 */
WEIR_API int weir_storage_disk(struct weir_storage *storage, struct weir_disk *disk);

/**
 * weir_storage_write() - write host memory to a storage, through its queues
 * @storage: the storage
 * @offset: first byte, a multiple of the block size
 * @data: bytes
 * @bytes: length, a multiple of the block size, or up to the storage's end (weir_storage_info.bytes)
 *
 * For set-up and tests; no kernel may be running. weir_storage_read() likewise; it may ask for all of the
 * last block, of which zeros come from behind the end, where a write is refused.
 */
WEIR_API int weir_storage_write(struct weir_storage *storage, uint64_t offset, const void *data,
				size_t bytes);
WEIR_API int weir_storage_read(struct weir_storage *storage, uint64_t offset, void *data, size_t bytes);

/** weir_storage_flush() - make every write completed so far durable; no kernel may be running */
WEIR_API int weir_storage_flush(struct weir_storage *storage);

/**
 * struct weir_stats - what a storage did since it was opened
 * @size: sizeof the structure
 * @commands: commands completed
 * @failed: of these, with an error status
 * @rogue: completions that belonged to no command
 * @bytes_read: bytes the controller moved to memory
 * @bytes_written: bytes it took from memory; of a replicated volume whose lanes choose engines once for each
 * replica
 * @direct: commands served by the direct path
 * @pull: commands served by the pull path
 * @late: commands that the controller did not answer in time, each the oldest then
 * @aborted: of these, ended by Abort
 * @queues_replaced: by a new queue pair, which ended all commands of the old one
 * @resets: by a reset of the controller, which ended all commands
 * @retried: of @commands: submitted again because the controller said so
 * @rings: doorbells of I/O queues that were rung in spite of shadow doorbells (docs/hardware.md); 0 without
 * them
 */
struct weir_stats {
	size_t size;
	uint64_t commands;
	uint64_t failed;
	uint64_t rogue;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t direct;
	uint64_t pull;
	uint64_t late;
	uint64_t aborted;
	uint64_t queues_replaced;
	uint64_t resets;
	uint64_t retried;
	uint64_t rings;
};

/** weir_stats() - read a storage's counters; exact when no kernel runs */
WEIR_API int weir_stats(struct weir_storage *storage, struct weir_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
