/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir.h: the host side. Open a context on a device, storages by URI, queues and
 * caches; launch kernels by name.
 *
 * Every call returns 0 or a negative errno; weir_last_error() then has one
 * sentence that says what failed, where, why and what to do. Objects are opaque
 * handles. A context and its objects belong to one thread at a time; different
 * contexts are independent.
 *
 * Objects may be closed in any order. A close waits for the kernels launched so far, and
 * closes what depends on the object first: a context its caches, then its storages,
 * registrations and memory; a cache its Share Table; a storage has its dirty lines written
 * back by the caches that have any. It returns 0, or a negative errno with a sentence that
 * names what could not be written and is lost; the object is closed in any case. NULL is
 * fine there. Everywhere else a handle that is NULL, closed, closed by its context, or of
 * another kind is refused with -EINVAL, and so is NULL for any parameter that is not said to take it
 * (the address of a closed object may be a new one's after 256 more were closed).
 * A lane whose kernel arguments have an array, a writer or a disk of a closed storage or
 * cache gets WEIR_E_CLOSED.
 *
 * Option structures begin with their size, so that they can grow: make them with
 * WEIR_OPTIONS() and leave what you do not care about zero. Structures that calls
 * fill in begin with their size too; set it before the call.
 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <stddef.h>
#include <stdint.h>

#include <weir/devices.h>
#include <weir/options.h>
#include <weir/policies.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_context;
struct weir_storage;
struct weir_cache;
struct weir_disk;
struct weir_array;
struct weir_writer;

/** weir_version() - "0.1.0" */
WEIR_API const char *weir_version(void);

/**
 * weir_last_error() - why the calling thread's latest failing call failed
 *
 * Return: one sentence, "" if nothing failed yet; valid until the next failure.
 */
WEIR_API const char *weir_last_error(void);

/**
 * WEIR_SERVICE_WHERE_PULLED - a service for storages whose data the lanes must pull themselves
 *
 * Only on devices that run kernels side by side; where its kernel cannot be started there is none,
 * which is said once on stderr. A block is pulled by the lanes that reap it;
 * where lanes part ways (a graph search), few lanes of a wave are left for it and take long,
 * while waves of a service are always whole. The price: a kernel stays until the storage is
 * closed, so a wait for the whole device, by others in this process, would not end before.
 */
#define WEIR_SERVICE_WHERE_PULLED UINT32_MAX

/**
 * struct weir_context_options - how to open a context
 * @size: sizeof the structure
 * @workers: cpu: worker threads; 0: one per core the process may use
 * @wave_lanes: cpu: lanes per wave, a power of two up to 64; 0: 1
 * @resident_lanes: cpu: lanes a worker keeps started at once; 0: 1024
 * @stack_bytes: cpu: stack per lane; 0: 64 KiB
 * @service_waves: waves of a service per storage, which reaps completions for all lanes;
 *                 on the cpu one thread, whatever the number; 0: no service, whoever
 *                 waits helps; WEIR_SERVICE_WHERE_PULLED. A kernel built with
 *                 WEIR_SERVICE_ONLY needs one.
 *
 * What is marked "cpu:" is left aside by other devices; weir_context_info() tells what
 * there is.
 */
struct weir_context_options {
	size_t size;
	uint32_t workers;
	uint32_t wave_lanes;
	uint32_t resident_lanes;
	uint32_t stack_bytes;
	uint32_t service_waves;
};

/**
 * weir_context_open() - open a device
 * @name: one of
 *        `auto`           the best that is there
 *        `cpu`            or another backend of this build, its first device
 *        `BACKEND:N`      its device N, as it counts them
 *        `BACKEND:PCI`    its device at a PCI address, such as 0000:41:00.0 or, in domain 0, 41:00.0
 *        `cpu:memory=FILE` the cpu, with device memory that is all of FILE, mapped: for bring-up, the BAR of
 * a GPU
 *                         (/sys/bus/pci/devices/ADDRESS/resource2_wc), a window of weir_p2p over it
 *                         (/dev/weir_p2p/ADDRESS-2, docs/kernel.md) or any other file
 *        `gpu`, `gpu:N`   number N, 0 if not given, by PCI address, of the GPUs that any backend of this
 * build can use `gpu:PCI`        the GPU at that address, by whichever backend has it
 * @options: NULL for the defaults
 * @out: the context
 *
 * Return: 0; -ENODEV for an unknown name, or a device that is not there or that no backend can use; -EINVAL
 * for options out of range or a malformed address.
 */
WEIR_API int weir_context_open(const char *name, const struct weir_context_options *options,
			       struct weir_context **out);

/**
 * weir_context_close() - wait for every launch, close all that was opened with the context, then free it;
 * NULL is fine
 *
 * Caches are destroyed first, as by weir_cache_destroy(), then storages are closed, as by
 * weir_storage_close(), and the memory of weir_alloc() is freed. Requests for files end first.
 *
 * Return: 0; -EINVAL for a handle that is not an open context; else the first of these errors, with the
 * sentences of all: a fault that no weir_sync() has returned, a request for files that nobody has waited for
 * and that failed, and what closing caches and storages returned: -EIO names what is lost. The context is
 * closed in any case.
 */
WEIR_API int weir_context_close(struct weir_context *context);

/**
 * enum weir_peer_writes - what it takes before a lane may read what another PCI device wrote
 * @WEIR_PEER_WRITES_UNKNOWN: nothing is known
 * @WEIR_PEER_WRITES_FLUSHED: the host has to flush such writes; no lane can
 * @WEIR_PEER_WRITES_ORDERED: a lane that has seen the completion sees the data, too
 * @WEIR_PEER_WRITES_ORDERED_ALL: likewise lanes of other devices that look into this one's memory
 *
 * "Wrote" is: into the device's memory, by PCI transactions from an SSD, a network card
 * and the like. Fences of lanes are needed as ever (weir_fence_from_controller()).
 */
enum weir_peer_writes {
	WEIR_PEER_WRITES_UNKNOWN,
	WEIR_PEER_WRITES_FLUSHED,
	WEIR_PEER_WRITES_ORDERED,
	WEIR_PEER_WRITES_ORDERED_ALL,
};

/**
 * struct weir_context_info - what a context runs on
 * @size: sizeof the structure
 * @name: device, for people
 * @wave_lanes: wave width
 * @workers: groups of lanes that run at the same instant
 * @block_lanes: most lanes a block may have; a kernel may be built for fewer
 * @memory_bytes: memory of the device; 0: not known
 * @memory_free_bytes: of it, free at this moment; 0: not known
 * @pci_address: "0000:65:00.0" (domain:bus:device.function), "" for what is no PCI device
 * @numa_node: node of the host that is nearest; -1: none or not known
 * @dma_buf: its memory can be handed to other drivers as a dma-buf
 * @peer_dma: other PCI devices can read and write its memory directly
 * @peer_writes: enum weir_peer_writes
 * @map_registers: its lanes can store to registers of other PCI devices, such as doorbells; as far as its
 * backend can tell without trying
 * @register_host: its lanes can use pages of the host that others allocated
 * @export_memory: its memory can be had as a dma-buf, of any part
 * @map_registers_why: if not, the reason; "" if so. @register_host_why, @export_memory_why too
 */
struct weir_context_info {
	size_t size;
	char name[128];
	uint32_t wave_lanes;
	uint32_t workers;
	uint32_t block_lanes;
	uint64_t memory_bytes;
	uint64_t memory_free_bytes;
	char pci_address[16];
	int32_t numa_node;
	uint32_t dma_buf;
	uint32_t peer_dma;
	uint32_t peer_writes;
	uint32_t map_registers;
	uint32_t register_host;
	uint32_t export_memory;
	char map_registers_why[160];
	char register_host_why[160];
	char export_memory_why[160];
};

/** weir_context_info() - describe a context */
WEIR_API int weir_context_info(struct weir_context *context, struct weir_context_info *info);

/**
 * weir_alloc() - zeroed memory of the device, that lanes and storages can use
 * @context: the context
 * @bytes: size, rounded up to 4 KiB
 * @address: device address, 4 KiB aligned
 *
 * Every buffer, event and control structure of a kernel comes from here. Where a
 * storage's controller cannot reach it by itself, lanes move the data
 * (weir_storage_info.path begins with "pull").
 */
WEIR_API int weir_alloc(struct weir_context *context, size_t bytes, uint64_t *address);

/**
 * weir_alloc_host() - zeroed memory of the host that lanes see, too
 * @context: the context
 * @bytes: size, rounded up to 4 KiB
 * @address: device address, 4 KiB aligned
 * @host: the same bytes, for the host
 *
 * Where the device has memory of its own, this is pinned memory of the host: lanes reach
 * it over the bus. Storages can read and write it. Host and lanes take turns by weir_sync(),
 * or use words of scope `sys` (<weir/port.h>).
 */
WEIR_API int weir_alloc_host(struct weir_context *context, size_t bytes, uint64_t *address, void **host);

/**
 * weir_free() - free memory from any of the calls above; 0 is fine
 *
 * Return: 0; -EINVAL: no allocation begins there, or it is freed already; -EBUSY, and it is not freed: a
 * command of an open storage still has it, one that has not ended, or that no lane has waited for; it is
 * registered (weir_deregister()); or it is memory of a storage, a cache or the context.
 */
WEIR_API int weir_free(struct weir_context *context, uint64_t address);

/** weir_copy_to_device() - host to device memory; not ordered with running kernels */
WEIR_API int weir_copy_to_device(struct weir_context *context, uint64_t address, const void *from,
				 size_t bytes);

/** weir_copy_from_device() - device to host memory; not ordered with running kernels */
WEIR_API int weir_copy_from_device(struct weir_context *context, void *to, uint64_t address, size_t bytes);

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
 * struct weir_cache_options - a cache between arrays and storages
 * @size: sizeof the structure
 * @bytes: device memory for lines and their bookkeeping together
 * @lines: instead of @bytes: number of lines, rounded up to a multiple of 4
 * @line_bytes: 512 to 65536, a power of two, not below the block size of its
 *              storages; 0: 4096
 * @policy: which line of a full set makes room; docs/cache-policies.md compares them
 * @policy_parameter: what a policy of the user's makes of it; others take 0 only
 * @tier_bytes: host memory for a second tier of lines behind the first (docs/cache.md), a multiple of
 *              @line_bytes, rounded down to whole sets of 4 lines; best a multiple of the first one's lines.
 * 0: none. Its bookkeeping, 8 bytes per line, is device memory, beside @bytes
 * @tier_inclusive: 0: a line is in one tier or the other; 1: a line that goes up leaves a copy, so that
 *                  it need not be copied when it comes down again
 * @invalidate_on_flush: 1: weir_cache_flush() and weir_array_flush() also drop the lines that they cover, so
 * that what other devices have written to their storages meanwhile is read from there; caches are not
 * coherent with each other
 */
struct weir_cache_options {
	size_t size;
	uint64_t bytes;
	uint64_t lines;
	uint32_t line_bytes;
	enum weir_policy policy;
	uint64_t policy_parameter;
	uint64_t tier_bytes;
	uint32_t tier_inclusive;
	uint32_t invalidate_on_flush;
};

/** weir_policy_name() - "clock" and so on; NULL if there is no policy @policy */
WEIR_API const char *weir_policy_name(enum weir_policy policy);

/**
 * weir_policy_of_name() - the policy that is called @name
 * @name: one of weir_policy_name()
 * @policy: receives it
 *
 * Return: 0; -EINVAL, and the sentence lists the names there are.
 */
WEIR_API int weir_policy_of_name(const char *name, enum weir_policy *policy);

/**
 * weir_user_policy_built() - this program has kernels with a policy of the user's
 *
 * WEIR_KERNEL() calls it before main() where WEIR_USER_POLICY is defined (core/cache/policy.h).
 */
WEIR_API void weir_user_policy_built(void);

/**
 * weir_cache_create() - make a cache
 *
 * Return: 0; -EINVAL if not even one set of 4 lines fits, for a policy that this program has not, or a tier
 * that cannot be; -ENOMEM.
 */
WEIR_API int weir_cache_create(struct weir_context *context, const struct weir_cache_options *options,
			       struct weir_cache **out);

/**
 * weir_cache_destroy() - write back what is dirty, then free a cache; its arrays are void; NULL is fine
 *
 * Waits for the kernels launched so far. Closing its storages makes what was written durable. Lines of
 * storages that are closed were written back when those were. Lanes that use an array or a writer of it get
 * WEIR_E_CLOSED.
 *
 * Return: 0; -EINVAL for a handle that is not an open cache; -EIO with a sentence that counts and names the
 * blocks that could not be written and are lost, or for a device that failed. The cache is gone in any case.
 */
WEIR_API int weir_cache_destroy(struct weir_cache *cache);

/**
 * weir_cache_flush() - write back every line that is dirty
 * @cache: the cache
 * @durable: not 0: also tell the storages to make it durable (NVMe Flush)
 *
 * Waits for the kernels launched so far. Storage then holds what they wrote.
 *
 * Return: 0; -EIO with a sentence that counts and names the blocks that could not be written. They
 * stay dirty, and the next flush tries them again. -EINVAL for a handle that is not an open cache.
 */
WEIR_API int weir_cache_flush(struct weir_cache *cache, int durable);

/**
 * struct weir_cache_stats - what a cache did since it was made
 * @size: sizeof the structure
 * @lines: lines it has
 * @line_bytes: size of one
 * @bytes: device memory it takes, bookkeeping included
 * @misses: lines fetched from storage
 * @evictions: lines that made room for another
 * @retracted: fetches put off because no queue slot was free
 * @writebacks: write-backs begun
 * @write_errors: failed ones that somebody was told of
 * @dirty: lines that storage does not have yet; counted anew by each call, if the cache has a writer
 * @tier_lines: lines that its tier in host memory has; 0: it has none, and the rest is 0, too
 * @tier_hits: lines that came from there instead of storage
 * @tier_stored: of @evictions: were copied there
 * @tier_kept: of @evictions: were there still
 * @tier_dropped: of @evictions: found no place at once, and are on storage only
 */
struct weir_cache_stats {
	size_t size;
	uint64_t lines;
	uint64_t line_bytes;
	uint64_t bytes;
	uint64_t misses;
	uint64_t evictions;
	uint64_t retracted;
	uint64_t writebacks;
	uint64_t write_errors;
	uint64_t dirty;
	uint64_t tier_lines;
	uint64_t tier_hits;
	uint64_t tier_stored;
	uint64_t tier_kept;
	uint64_t tier_dropped;
};

/** weir_cache_stats() - read the counters; exact when no kernel runs */
WEIR_API int weir_cache_stats(struct weir_cache *cache, struct weir_cache_stats *stats);

/**
 * struct weir_share_options - a Share Table
 * @size: sizeof the structure
 * @entries: lines that can be in shared buffers at once, rounded up to a multiple of 4; 0: 1024.
 *           48 bytes of device memory each. A request that finds its bucket of 4 full is not
 *           shared, so give a few times as many as will be held.
 */
struct weir_share_options {
	size_t size;
	uint64_t entries;
};

/**
 * weir_share_create() - let lanes share buffers with lines of a cache (<weir/share.h>; AGILE, section 3.4.1)
 * @cache: the cache; no kernel that uses it may be running
 * @options: NULL for the defaults
 *
 * From the next launch on its arrays look for lines in shared buffers, too. It goes with the cache.
 *
 * Return: 0; -EEXIST; -EINVAL; -ENOMEM.
 */
WEIR_API int weir_share_create(struct weir_cache *cache, const struct weir_share_options *options);

/**
 * weir_share_destroy() - free a cache's Share Table; weir_cache_destroy() does so, too; without one it does
 * nothing
 *
 * Return: 0; -EINVAL for a handle that is not an open cache; -EBUSY: lanes hold lines still: their buffers
 * are as they are, but what was changed in them did not reach the cache. The sentence names one of them. The
 * table is gone in any case.
 */
WEIR_API int weir_share_destroy(struct weir_cache *cache);

/**
 * struct weir_share_stats - what a Share Table did since it was made
 * @size: sizeof the structure
 * @entries: lines it has room for
 * @held: lines in buffers that lanes hold
 * @changed: of these, changed ones
 * @registered: buffers that lines were brought to
 * @joined: requests that were given the pointer of another's buffer
 * @unshared: requests that got a copy for want of room
 * @declined: requests that got a copy because the policy said so
 * @propagated: changed buffers that went to the cache
 */
struct weir_share_stats {
	size_t size;
	uint64_t entries;
	uint64_t held;
	uint64_t changed;
	uint64_t registered;
	uint64_t joined;
	uint64_t unshared;
	uint64_t declined;
	uint64_t propagated;
};

/** weir_share_stats() - read the counters; exact when no kernel runs; -ENOENT without a table */
WEIR_API int weir_share_stats(struct weir_cache *cache, struct weir_share_stats *stats);

/**
 * struct weir_array_options - an array on storage
 * @size: sizeof the structure
 * @element_bytes: 1, 2, 4, 8, 16 or a multiple of 8
 * @first_byte: where element 0 lies; a multiple of min(element_bytes, 8), of 16 for 16
 * @count: elements; 0: as many as fit
 * @stripe_bytes: with several storages: bytes on one before the next one's turn, a
 *                power of two, at least a line; 0: 64 KiB
 */
struct weir_array_options {
	size_t size;
	uint32_t element_bytes;
	uint64_t first_byte;
	uint64_t count;
	uint64_t stripe_bytes;
};

/**
 * weir_array_open() - elements of one or several storages, read through a cache
 * @cache: the cache; arrays of the same storages, striped alike, share their lines in it
 * @storages: @storage_count storages; several are striped round-robin, each named once
 * @storage_count: 1 to 64
 * @options: what is in it
 * @array: struct weir_array of <weir/abi.h>, to put into kernel arguments
 *
 * Return: 0; -ERANGE if the elements do not fit the storage; -EBUSY if one of the storages
 * is written to through this cache with another layout; -EINVAL, also for a cache or a storage that is not
 * open.
 */
WEIR_API int weir_array_open(struct weir_cache *cache, struct weir_storage *const *storages,
			     unsigned storage_count, const struct weir_array_options *options,
			     struct weir_array *array);

/**
 * weir_writer_open() - the same, for lanes that write to it, too
 * @cache: the cache
 * @storages: as for weir_array_open(), none of them read-only
 * @storage_count: 1 to 64
 * @options: what is in it
 * @writer: struct weir_writer of <weir/abi.h>, to put into kernel arguments
 *
 * What lanes write (<weir/writer.h>) is seen at once through every array of the same storages and
 * stripe in this cache, and is on storage after a flush or weir_cache_destroy().
 *
 * Return: as weir_array_open(); -EROFS.
 */
WEIR_API int weir_writer_open(struct weir_cache *cache, struct weir_storage *const *storages,
			      unsigned storage_count, const struct weir_array_options *options,
			      struct weir_writer *writer);

/**
 * weir_array_flush() - write back the dirty lines of a range
 * @cache: the array's cache
 * @array: the array, or the one of a writer
 * @first: first element
 * @count: elements
 * @durable: not 0: also tell the array's storages to make it durable (NVMe Flush)
 *
 * Like weir_cache_flush(). Whole lines: what lies beside the range may be written, too.
 *
 * Return: as weir_cache_flush(); -EINVAL for an array of another cache, or of a storage that is closed;
 * -ERANGE.
 */
WEIR_API int weir_array_flush(struct weir_cache *cache, const struct weir_array *array, uint64_t first,
			      uint64_t count, int durable);

/**
 * weir_array_invalidate() - forget the lines of a range, so that they are read from storage again
 * @cache: the array's cache
 * @array: the array, or the one of a writer
 * @first: first element
 * @count: elements
 *
 * Drops what is dirty, too, unwritten, along with whatever else is in the same lines: flush
 * before if it is to stay. For storage that something else has written to.
 *
 * Return: 0; -EBUSY if a command on a line does not end; -EINVAL for an array of another cache, or of a
 * storage that is closed; -ERANGE.
 */
WEIR_API int weir_array_invalidate(struct weir_cache *cache, const struct weir_array *array, uint64_t first,
				   uint64_t count);

/**
 * weir_launch() - start a kernel by its name
 * @context: where
 * @kernel: name given to WEIR_KERNEL()
 * @blocks: blocks of the grid
 * @threads: lanes per block
 * @args: the kernel's argument structure; copied
 * @args_bytes: its size, which must be what the kernel was built with
 *
 * Launches of a context run one after the other. Returns at once. Arrays, writers and disks in @args whose
 * storage or cache is closed give lanes WEIR_E_CLOSED; memory that was freed is not checked.
 */
WEIR_API int weir_launch(struct weir_context *context, const char *kernel, uint32_t blocks, uint32_t threads,
			 const void *args, size_t args_bytes);

/**
 * weir_launch_on() - weir_launch() in the order of a stream of the caller's
 * @context: where
 * @stream: of the device's own run time, and of the context's device; NULL: that of weir_launch()
 * @kernel: name given to WEIR_KERNEL()
 * @blocks: blocks of the grid
 * @threads: lanes per block
 * @args: the kernel's argument structure; copied
 * @args_bytes: its size
 *
 * The kernel begins when all that was put into @stream before has ended, and what is put into it afterwards
 * begins when the kernel has ended. The host does not wait. Launches of a context run one after the other
 * still, whatever their streams; weir_sync() and everything that "waits for the kernels launched so far"
 * waits for this one, too. The stream may be destroyed at any time.
 *
 * Return: as weir_launch(); -ENOTSUP where the device has no streams but that of weir_launch(), as the cpu.
 */
WEIR_API int weir_launch_on(struct weir_context *context, void *stream, const char *kernel, uint32_t blocks,
			    uint32_t threads, const void *args, size_t args_bytes);

/**
 * struct weir_kernel_info - what a lane of a kernel takes
 * @size: sizeof the structure
 * @registers: registers per lane; 0 where the device has no such notion
 * @local_bytes: bytes per lane that did not fit into registers; 0 likewise
 * @block_lanes: most lanes a block of it may have
 */
struct weir_kernel_info {
	size_t size;
	uint32_t registers;
	uint32_t local_bytes;
	uint32_t block_lanes;
};

/**
 * weir_kernel_info() - describe a kernel as it was built for a context's device
 * @context: where
 * @name: name given to WEIR_KERNEL()
 * @info: filled in
 *
 * Return: 0; -ENOENT if there is no such kernel; -EINVAL.
 */
WEIR_API int weir_kernel_info(struct weir_context *context, const char *name, struct weir_kernel_info *info);

/**
 * weir_sync() - wait for every launch
 *
 * Return: 0; -EIO with the first fault any lane met, which is then cleared.
 */
WEIR_API int weir_sync(struct weir_context *context);

/**
 * struct weir_stats - what a storage did since it was opened
 * @size: sizeof the structure
 * @commands: commands completed
 * @failed: of these, with an error status
 * @rogue: completions that belonged to no command
 * @bytes_read: bytes the controller moved to memory
 * @bytes_written: bytes it took from memory
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

/**
 * struct weir_chain_options - what the lock chain watches
 * @size: sizeof the structure
 * @lanes: lanes of the largest launch; a record each, 192 bytes
 * @retry_limit: failed tries in a row, nothing else tried or freed between them, that
 *            make a wait; 0: 2
 * @own_wave: not 0: also report a lane that waits for a lane of its own wave, which
 *            hangs where waves run in lockstep
 */
struct weir_chain_options {
	size_t size;
	uint64_t lanes;
	uint32_t retry_limit;
	uint32_t own_wave;
};

/**
 * weir_chain_create() - make the table in which lanes note their locks
 * @context: the context
 * @options: how many lanes, and what to report
 * @chain: struct weir_chain of <weir/abi.h>, to put into kernel arguments; weir_free() it
 *
 * Only kernels built with WEIR_LOCK_CHAIN use it (<weir/lock.h>).
 *
 * Return: 0; -EINVAL for options out of range; -ENOMEM.
 */
WEIR_API int weir_chain_create(struct weir_context *context, const struct weir_chain_options *options,
			       uint64_t *chain);

/**
 * weir_chain_report() - what went wrong with locks since the last report, which clears it
 * @context: the context
 * @chain: from weir_chain_create()
 * @names: text of each lock name the kernel uses, by its number
 * @name_count: of these; other names, and NULL ones, are told as numbers
 *
 * No kernel may be running. The sentence is weir_last_error()'s.
 *
 * Return: 0 if nothing did; -EDEADLK: lanes waited for each other; -ERANGE: a lane had
 * no record; -EOWNERDEAD: a lane ended and kept a lock; -ENODATA: no lane recorded
 * anything, so nothing is known.
 */
WEIR_API int weir_chain_report(struct weir_context *context, uint64_t chain, const char *const *names,
			       size_t name_count);

/** weir_parse_bytes() - "64M" to bytes (K, M, G, T: powers of 1024); -EINVAL */
WEIR_API int weir_parse_bytes(const char *text, uint64_t *bytes);

/**
 * weir_status_text() - a device status for people
 * @status: weir_status
 * @text: at least 80 bytes; NULL: nothing is done
 */
WEIR_API void weir_status_text(uint32_t status, char text[80]);

#ifdef __cplusplus
}
#endif
#endif
