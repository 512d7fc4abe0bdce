/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu.h: one open device of CUDA's backend or of HIP's, whose files are these, once for each.
 *
 * What these files call the run time's things is in names.h, of which each backend has one, and which
 * the build's include path selects; so are files that define what is marked "per backend" here.
 *
 * The run time's calls are about the calling thread's current device: every function that the runtime
 * calls begins with gpu_enter().
 */
#ifndef WEIR_GPU_GPU_H
#define WEIR_GPU_GPU_H

#include "names.h"

#include "../../runtime/backend/backend.h"
#include "gate.h"

/**
 * struct gpu_backend - an open device
 * @base: what the runtime knows
 * @device: its number
 * @launches: stream of kernels and their arguments, one after the other
 * @copies: stream of everything else, so that copies do not wait for kernels
 * @ended: recorded behind the latest launch
 * @args: device memory for one launch's arguments; the stream's order keeps launches apart
 * @staging: memory of the host of the same size, where arguments wait for their launch
 * @args_bytes: size of either
 * @staged: how much of @staging is taken
 * @modules: code objects on the device, where each has its own; else NULL
 * @kernels: their kernels, the latest loaded first
 * @loaded: kernels from this one on, in the order of registration, are on the device
 * @gates: where streams wait for the host; NULL until the first does
 * @latest: name of the kernel launched last, for messages; NULL before the first
 * @name: for people
 * @units: how many multiprocessors, or compute units
 * @block_lanes: most lanes the device takes per block
 * @wave_lanes: 32 or 64
 */
struct gpu_backend {
	struct weir_backend base;
	int device;
	gpuStream_t launches;
	gpuStream_t copies;
	gpuEvent_t ended;
	void *args;
	void *staging;
	size_t args_bytes;
	size_t staged;
	struct hip_module *modules;
	struct gpu_kernel *kernels;
	const struct weir_image *loaded;
	struct weir_gates *gates;
	const char *latest;
	char name[128];
	uint32_t units;
	uint32_t block_lanes;
	uint32_t wave_lanes;
};

/**
 * struct gpu_kernel - a kernel on a device, or of all devices where the run time knows it so
 * @image: which
 * @function: what the run time launches
 * @next: one loaded earlier
 */
struct gpu_kernel {
	const struct weir_image *image;
	gpuFunction_t function;
	struct gpu_kernel *next;
};

static inline struct gpu_backend *gpu_of(struct weir_backend *backend)
{
	return (struct gpu_backend *)backend;
}

/** gpu_enter() - make the device the calling thread's current one; 0 or -EIO */
int gpu_enter(struct gpu_backend *backend);

/**
 * gpu_fail() - a sentence for what the run time said
 * @backend: the device
 * @code: what it said; not gpuSuccess
 * @format: what was tried
 *
 * A kernel that did something forbidden may spoil the device for the whole process; the
 * sentence then says that, too.
 *
 * Return: -ENOMEM if memory ran out, -ENOTSUP for what the device cannot do, else -EIO.
 */
int gpu_fail(const struct gpu_backend *backend, gpuError_t code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * enum gpu_held - what may be freed only when all kernels of the device have ended
 */
enum gpu_held {
	GPU_DEVICE_MEMORY,
	GPU_HOST_MEMORY,
	GPU_SIGNAL_MEMORY,
	GPU_MODULE,
	/* Host pages of somebody else's; their addresses are not used again until it is let go of. */
	GPU_REGISTERED,
};

/* memory.c */
/** gpu_memory() - of the device, or of the host and seen by all devices; not cleared */
gpuError_t gpu_memory(struct gpu_backend *backend, enum gpu_held kind, size_t bytes, void **memory);
/**
 * gpu_take_kept() - such memory that was let go of and is not freed yet, of just so many whole pages; NULL:
 * there is none
 */
void *gpu_take_kept(const struct gpu_backend *backend, enum gpu_held kind, size_t bytes);
/** gpu_let_go() - free memory or a module, at once or when the last persistent kernel has ended; NULL-safe */
void gpu_let_go(struct gpu_backend *backend, enum gpu_held kind, void *what, size_t bytes);
/**
 * gpu_service_begins() - a persistent kernel is about to start: from here on nothing is freed that waits
 * for it
 */
void gpu_service_begins(void);
/** gpu_service_ended() - one has ended; with the last one goes what was kept meanwhile */
void gpu_service_ended(void);

/* Per backend: device.c */
/**
 * gpu_no_device() - -ENODEV, with why the run time has no device to show; gpuSuccess: it counts none. In
 * hip: driver.c
 */
int gpu_no_device(gpuError_t code);
/**
 * gpu_device_examine() - what the backend needs of a device, and what it tells of it; 0 or a negative errno
 */
int gpu_device_examine(struct gpu_backend *backend);
/** gpu_is_lost() - the device is of no more use to this process */
bool gpu_is_lost(const struct gpu_backend *backend);
/** gpu_copies_stream() - one whose copies do not lie behind a kernel, on the current device */
gpuError_t gpu_copies_stream(gpuStream_t *stream);
/** gpu_service_stream() - one for a persistent kernel */
gpuError_t gpu_service_stream(const struct gpu_backend *backend, gpuStream_t *stream);
/** gpu_launch_limit() - 0, or -EINVAL: a grid of more than the device takes */
int gpu_launch_limit(const struct gpu_backend *backend, const char *name, uint32_t blocks, uint32_t threads);
/** gpu_peers() - how other devices get on with its memory */
void gpu_peers(struct gpu_backend *backend, struct weir_backend_properties *out);

/* Per backend: kernels.c */
/** gpu_kernels_load() - put all kernels that were registered on the device; 0, -ENOMEM, -ENOTSUP or -EIO */
int gpu_kernels_load(struct gpu_backend *backend);
/** gpu_kernel_find() - NULL if no kernel of that name was loaded */
const struct gpu_kernel *gpu_kernel_find(const struct gpu_backend *backend, const char *name);
/** gpu_kernels_unload() - all of them that are this context's alone */
void gpu_kernels_unload(struct gpu_backend *backend);
/** gpu_kernel_start() - put it into a stream; @args: in the device's memory */
gpuError_t gpu_kernel_start(const struct gpu_kernel *kernel, uint32_t blocks, uint32_t threads, void *args,
			    gpuStream_t stream);
/** gpu_kernel_measure() - registers and local bytes of a lane */
gpuError_t gpu_kernel_measure(const struct gpu_kernel *kernel, struct weir_kernel_info *info);

/* Per backend: staging.c */
/** gpu_staging_begin() - memory of the host where arguments wait, so that their owner may change them, @bytes
 * of it */
gpuError_t gpu_staging_begin(struct gpu_backend *backend, size_t bytes);
/** gpu_staging_end() - no more */
void gpu_staging_end(struct gpu_backend *backend);
/** gpu_stage() - have @args wait for their launch's turn; *@args becomes where */
gpuError_t gpu_stage(struct gpu_backend *backend, size_t bytes, const void **args);

/* Per backend: memory.c */
/** gpu_memory_make() - new memory of @kind, whole pages, not cleared */
gpuError_t gpu_memory_make(struct gpu_backend *backend, enum gpu_held kind, size_t bytes, void **memory);
/**
 * gpu_host_memory() - cleared memory of the host that all devices see under its own address; 0, or a
 * sentence why not
 */
int gpu_host_memory(struct gpu_backend *backend, size_t bytes, void **host);
/** gpu_free() - at once, which may wait for kernels */
void gpu_free(enum gpu_held kind, void *what, size_t bytes);
/** gpu_frees_at_once() - was it freed, since that does not wait for kernels? */
bool gpu_frees_at_once(struct gpu_backend *backend, enum gpu_held kind, void *what);
/** gpu_queue_copy() - in the stream of copies; @in: into the device's memory */
gpuError_t gpu_queue_copy(struct gpu_backend *backend, void *to, const void *from, size_t bytes, bool in);

/* Per backend: gates.c */
/** gpu_gates_make() - the places where the device's streams wait; 0, -ENOMEM or -ENOTSUP */
int gpu_gates_make(struct gpu_backend *backend);
/** gpu_gates_end() - none waits any more */
void gpu_gates_end(struct gpu_backend *backend);
/** gpu_gate_call() - have the stream call weir_gate_reached() */
gpuError_t gpu_gate_call(gpuStream_t stream, struct weir_gate *gate);
/**
 * gpu_gate_queue() - have the stream wait until @word is WEIR_GATE_OPEN and write WEIR_GATE_FREE; false: it
 * cannot wait
 */
bool gpu_gate_queue(struct gpu_backend *backend, gpuStream_t stream, uint32_t *word);

/* Entries of the vtable: memory.c, properties.c, streams.c */
int gpu_allocate(struct weir_backend *base, size_t bytes, enum weir_memory kind, void **host,
		 uint64_t *device);
void gpu_release(struct weir_backend *base, uint64_t device, size_t bytes, enum weir_memory kind);
int gpu_h2d(struct weir_backend *base, uint64_t device, const void *host, size_t bytes);
int gpu_d2h(struct weir_backend *base, void *host, uint64_t device, size_t bytes);
void gpu_properties(struct weir_backend *base, struct weir_backend_properties *out);
int gpu_pci_address(uint32_t ordinal, char *text, size_t bytes);
int gpu_stream_open(struct weir_backend *base, void **stream);
void gpu_stream_close(struct weir_backend *base, void *stream);
int gpu_stream_copy(struct weir_backend *base, void *stream, const struct weir_move *moves, size_t count);
int gpu_stream_launch(struct weir_backend *base, void *stream, const char *name, uint32_t blocks,
		      uint32_t threads, uint64_t args);
int gpu_stream_wait(struct weir_backend *base, void *stream);
int gpu_stream_join(struct weir_backend *base, void *stream, enum weir_join join);
int gpu_defer(struct weir_backend *base, void *stream, void (*call)(void *of), void *of, void **gate);
void gpu_resume(struct weir_backend *base, void *gate);

/* The same, where a backend has them (GPU_OWN_OPS) */
int gpu_examine(struct weir_backend *base, uint64_t address, uint64_t bytes, void **host);
int gpu_peer_flush(struct weir_backend *base);

/* controllers.c; gpu_unregister() is of registers, too */
int gpu_map_registers(struct weir_backend *base, void *host, size_t bytes, uint64_t *device);
int gpu_register_host(struct weir_backend *base, void *host, size_t bytes, uint64_t *device);
void gpu_unregister(struct weir_backend *base, void *host, size_t bytes);
/* Per backend: controllers.c there */
int gpu_export_memory(struct weir_backend *base, uint64_t device, size_t bytes, int *file, uint64_t *offset);
/** gpu_no_registers() - -ENOTSUP, with why the device maps no registers */
int gpu_no_registers(const struct gpu_backend *backend, gpuError_t code);
/** gpu_abilities() - which of these the device and its driver can be expected to do */
void gpu_abilities(struct gpu_backend *backend, struct weir_backend_properties *out);

#endif
