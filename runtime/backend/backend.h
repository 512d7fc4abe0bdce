/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend.h: what the runtime asks of a kind of device.
 *
 * Owns: the backend vtable and the list of kernels known by name. The runtime
 * above it never learns which backend it talks to.
 */
#ifndef WEIR_RUNTIME_BACKEND_H
#define WEIR_RUNTIME_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/port/image.h>
#include <weir/weir.h>

#include "error.h"

struct weir_window;

enum { WEIR_WHY_BYTES = 160 };

/**
 * enum weir_memory - what memory is for, which decides where it lies
 * @WEIR_MEMORY_DEVICE: lanes' data and words of their own: as near to them as can be
 * @WEIR_MEMORY_HOST: what lanes and host threads both see: rings, doorbells, staging
 */
enum weir_memory {
	WEIR_MEMORY_DEVICE,
	WEIR_MEMORY_HOST,
};

/**
 * struct weir_ability - whether a backend's device can do something that controllers on PCI Express ask for
 * @has: as far as can be told without trying
 * @why: if not, the reason; a sentence's part, such as "its driver maps no registers"
 */
struct weir_ability {
	bool has;
	char why[WEIR_WHY_BYTES];
};

/**
 * struct weir_backend_properties - what the device is; as in struct weir_context_info
 *
 * A backend leaves at 0 what it does not know; @numa_node comes as -1, and as that is asked of the system by
 * the address. Of its own:
 * @shared_memory: host threads reach WEIR_MEMORY_DEVICE too
 * @host_rings: lanes ring doorbells on the host, which wakes who sleeps behind them (transport/sleeper.h)
 * @peer_memory: WEIR_MEMORY_DEVICE is what another device has, mapped (a BAR): an IOMMU that maps it is not
 * told when it goes, so that storages ask before they have controllers reach it
 * @window: that is a window of the kernel module weir_p2p, as long as the backend is open; NULL: not so
 * @copies_while_running: copies run while kernels do: one that waits for the controller for ever holds none
 * up. Where this is false, and memory is not shared, the watchdog does not look at commands
 * (runtime/recovery/watchdog.h)
 * @map_registers, @register_host, @export_memory: what the functions of these names can be expected to do
 */
struct weir_backend_properties {
	char name[128];
	uint32_t wave_lanes;
	uint32_t workers;
	uint32_t block_lanes;
	bool shared_memory;
	bool host_rings;
	bool peer_memory;
	const struct weir_window *window;
	bool copies_while_running;
	uint64_t memory_bytes;
	uint64_t memory_free_bytes;
	char pci_address[16];
	int32_t numa_node;
	bool dma_buf;
	bool peer_dma;
	enum weir_peer_writes peer_writes;
	struct weir_ability map_registers;
	struct weir_ability register_host;
	struct weir_ability export_memory;
};

struct weir_backend;

/**
 * enum weir_join - how a stream of the caller's and that of launches follow each other
 * @WEIR_JOIN_AFTER: what is launched from now on begins when all that is in the stream now has ended
 * @WEIR_JOIN_BEFORE: what is put into the stream from now on begins when all launches up to now have ended
 */
enum weir_join {
	WEIR_JOIN_AFTER,
	WEIR_JOIN_BEFORE,
};

/**
 * struct weir_move - bytes that go from one place to another; one of the two is WEIR_MEMORY_HOST
 * @to: device address
 * @from: device address
 * @bytes: how many
 */
struct weir_move {
	uint64_t to;
	uint64_t from;
	uint64_t bytes;
};

/**
 * struct weir_backend_ops - a backend's functions; 0 or a negative errno
 * @size: sizeof(struct weir_backend_ops)
 * @name: word before the ':' of a context name
 * @unasked: "auto" takes it, if it opens, before the cpu
 * @devices: how many there are, or -ENODEV and why none can be used. NULL: always one, and @open takes
 *           no selector but ""
 * @pci_address: of device @ordinal, as in struct weir_context_info, without opening it; "" if it has none.
 *               NULL: it is opened for a moment and asked
 * @open: a device of this kind; @selector is what follows the ':', or ""
 * @allocate: zeroed, page-aligned memory;
 *            @host is NULL where the host cannot see it, else the same address as @device
 * @release: of the same size and kind as it was allocated
 * @launch: queue a kernel behind earlier ones; @args is copied
 * @kernel_info: fill in what follows size; -ENOENT with weir_no_kernel()'s sentence
 * @synchronise: wait until every launch has ended
 * @serve: start a persistent kernel, beside all launches; @service stands for it. NULL where
 *         kernels do not run side by side.
 * @serve_end: wait until it has ended by itself, and forget it
 *
 * For files (runtime/file/), and called by any thread:
 * @examine: [@address, @address + @bytes) was not allocated by weir: 0 if it is the device's all the same,
 * and @host is as from @allocate; else -EFAULT with a sentence. NULL: only what weir allocated is
 * @stream_open: a stream of copies, beside launches and other streams. NULL, and all of stream_*, where there
 * is none
 * @stream_close: wait for it, and forget it
 * @stream_copy: queue copies; @moves is free at once
 * @stream_launch: queue a kernel whose arguments are at @args, where lanes see them, until it has ended
 * @stream_wait: until all that is in the stream has ended
 * @stream_join: order launches and a stream that the caller has from the device's own run time, without
 * waiting. NULL: there are none
 * @defer: queue a call of the host's in @stream (NULL: that of launches): @call(@of) when all before has
 * ended, on any thread, and it is short; what is queued behind waits until @resume of @gate. NULL: there is
 * no such thing
 * @resume: let go on what waits behind a @defer; forgets the gate
 * @map_registers: [@host, @host + @bytes) is the host's mapping of another PCI device's registers, whole
 * pages: let lanes store to them, at *@device. They never load from there. Until @unmap_registers; the host
 * keeps its mapping so long. -ENOTSUP with a sentence, without a context, where the device or its driver
 * cannot. NULL: it cannot
 * @unmap_registers: of the same pages; waits for the kernels that may store to them
 * @register_host: let lanes reach [@host, @host + @bytes), whole pages of ordinary memory of the process, at
 * *@device; controllers may be mapped to them, too. NULL: it cannot
 * @unregister_host: the same pages; waits for the kernels that may use them
 * @export_memory: a dma-buf of the device's memory that has [@device, @device + @bytes), which begin *@offset
 * bytes into it;
 *                 *@file is the caller's to close, and keeps the memory. NULL: it cannot
 * @peer_flush: lanes that look from now on see all that other PCI devices had written to the device's memory
 * and told the host of. NULL: the host cannot see to that
 */
struct weir_backend_ops {
	size_t size;
	const char *name;
	bool unasked;
	int (*devices)(uint32_t *count);
	int (*pci_address)(uint32_t ordinal, char *text, size_t bytes);
	int (*open)(const char *selector, const struct weir_context_options *options,
		    struct weir_backend **out);
	void (*close)(struct weir_backend *backend);
	int (*allocate)(struct weir_backend *backend, size_t bytes, enum weir_memory kind, void **host,
			uint64_t *device);
	void (*release)(struct weir_backend *backend, uint64_t device, size_t bytes, enum weir_memory kind);
	int (*h2d)(struct weir_backend *backend, uint64_t device, const void *host, size_t bytes);
	int (*d2h)(struct weir_backend *backend, void *host, uint64_t device, size_t bytes);
	int (*launch)(struct weir_backend *backend, const char *kernel, uint32_t blocks, uint32_t threads,
		      const void *args, size_t args_bytes);
	int (*kernel_info)(struct weir_backend *backend, const char *kernel, struct weir_kernel_info *info);
	int (*synchronise)(struct weir_backend *backend);
	int (*serve)(struct weir_backend *backend, const char *kernel, uint32_t blocks, uint32_t threads,
		     const void *args, size_t args_bytes, void **service);
	void (*serve_end)(struct weir_backend *backend, void *service);
	void (*properties)(struct weir_backend *backend, struct weir_backend_properties *out);
	int (*examine)(struct weir_backend *backend, uint64_t address, uint64_t bytes, void **host);
	int (*stream_open)(struct weir_backend *backend, void **stream);
	void (*stream_close)(struct weir_backend *backend, void *stream);
	int (*stream_copy)(struct weir_backend *backend, void *stream, const struct weir_move *moves,
			   size_t count);
	int (*stream_launch)(struct weir_backend *backend, void *stream, const char *kernel, uint32_t blocks,
			     uint32_t threads, uint64_t args);
	int (*stream_wait)(struct weir_backend *backend, void *stream);
	int (*stream_join)(struct weir_backend *backend, void *stream, enum weir_join join);
	int (*defer)(struct weir_backend *backend, void *stream, void (*call)(void *of), void *of,
		     void **gate);
	void (*resume)(struct weir_backend *backend, void *gate);
	int (*peer_flush)(struct weir_backend *backend);
	int (*map_registers)(struct weir_backend *backend, void *host, size_t bytes, uint64_t *device);
	void (*unmap_registers)(struct weir_backend *backend, void *host, size_t bytes);
	int (*register_host)(struct weir_backend *backend, void *host, size_t bytes, uint64_t *device);
	void (*unregister_host)(struct weir_backend *backend, void *host, size_t bytes);
	int (*export_memory)(struct weir_backend *backend, uint64_t device, size_t bytes, int *file,
			     uint64_t *offset);
};

/** struct weir_backend - what every backend's object begins with */
struct weir_backend {
	const struct weir_backend_ops *ops;
};

/** weir_backends - those built in, NULL-terminated, the preferred one first; made by the build */
extern const struct weir_backend_ops *const weir_backends[];

/** weir_modules - names of those that are modules, NULL-terminated; made by the build */
extern const char *const weir_modules[];

/**
 * weir_backend_module - what a module has to define: its functions
 *
 * The module NAME is weir-backend-NAME.so, in the folder that WEIR_BACKENDS names, or else beside
 * libweir or in a folder weir there. All are loaded when one is first asked for. In the folder that
 * WEIR_BACKENDS names there may be others than this build's.
 */
extern __attribute__((visibility("default"))) const struct weir_backend_ops *const weir_backend_module;

/**
 * weir_backend_at() - the backends of this build: those built in, then the modules
 * @index: from 0
 * @ops: set to its functions, or to NULL, with a sentence of weir_fail() that says why it cannot be used
 *
 * Return: its name, or NULL behind the last.
 */
const char *weir_backend_at(size_t index, const struct weir_backend_ops **ops);

/** weir_image_next() - @backend's first image, or the one registered before @after; NULL behind the last */
WEIR_MODULE_API const struct weir_image *weir_image_next(const char *backend, const struct weir_image *after);

/** weir_image_find() - @backend's image of kernel @kernel; NULL if none was linked in */
WEIR_MODULE_API const struct weir_image *weir_image_find(const char *backend, const char *kernel);

/**
 * struct weir_launch_check - a launch, and what its kernel takes
 * @backend: name, for messages
 * @kernel: name
 * @known: there is such a kernel
 * @takes_bytes: size of the arguments it was built with
 * @given_bytes: size of those it is launched with
 * @blocks: blocks of the grid
 * @threads: lanes per block
 * @most_threads: of these, what the kernel was built for
 */
struct weir_launch_check {
	const char *backend;
	const char *kernel;
	bool known;
	size_t takes_bytes;
	size_t given_bytes;
	uint32_t blocks;
	uint32_t threads;
	uint32_t most_threads;
};

/** weir_no_kernel() - -ENOENT with a sentence: nothing called @kernel was linked in */
WEIR_MODULE_API int weir_no_kernel(const char *backend, const char *kernel);

/** weir_launch_check() - 0, or -ENOENT or -EINVAL with a sentence; the same for every backend */
WEIR_MODULE_API int weir_launch_check(const struct weir_launch_check *launch);

#endif
