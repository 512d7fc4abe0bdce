/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda.h: one open device, for the backend's own files.
 *
 * The run time's calls are about the calling thread's current device: every function
 * that the runtime calls begins with cuda_enter().
 */
#ifndef WEIR_CUDA_CUDA_H
#define WEIR_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#include "../../runtime/backend.h"

/**
 * struct cuda_backend - an open device
 * @base: what the runtime knows
 * @device: its number
 * @launches: stream of kernels and their arguments, one after the other
 * @copies: stream of everything else, so that copies do not wait for kernels
 * @ended: recorded behind the latest launch
 * @args: device memory for one launch's arguments; the stream's order keeps launches apart
 * @args_bytes: its size
 * @loaded: kernels from this one on, in the order of registration, are in device memory
 * @latest: name of the kernel launched last, for messages; NULL before the first
 * @name: for people
 * @multiprocessors: how many
 * @block_lanes: most lanes the device takes per block
 * @gates: where streams wait for the host (streams.c); NULL until one has to
 */
struct cuda_backend {
	struct weir_backend base;
	int device;
	cudaStream_t launches;
	cudaStream_t copies;
	cudaEvent_t ended;
	void *args;
	size_t args_bytes;
	const struct weir_image *loaded;
	const char *latest;
	char name[128];
	uint32_t multiprocessors;
	uint32_t block_lanes;
	struct cuda_gates *gates;
};

/**
 * struct cuda_kernel - a kernel that the run time knows, for all devices and as long as the process lives
 * @image: which
 * @entry: what the run time launches
 * @next: one loaded earlier
 */
struct cuda_kernel {
	const struct weir_image *image;
	const void *entry;
	struct cuda_kernel *next;
};

static inline struct cuda_backend *cuda_of(struct weir_backend *backend)
{
	return (struct cuda_backend *)backend;
}

/** cuda_enter() - make the device the calling thread's current one; 0 or -EIO */
int cuda_enter(struct cuda_backend *backend);

/** cuda_device_memory() - of the device, without waiting for kernels that stay */
cudaError_t cuda_device_memory(struct cuda_backend *backend, size_t bytes, void **memory);
/** cuda_device_release() - the same; NULL-safe */
void cuda_device_release(struct cuda_backend *backend, void *memory);

/**
 * cuda_fail() - a sentence for what the run time said
 * @backend: the device, or NULL while there is none
 * @code: what it said; not cudaSuccess
 * @format: what was tried
 *
 * A kernel that did something forbidden spoils the device for the whole process; the
 * sentence then says that, too.
 *
 * Return: -ENOMEM if memory ran out, -ENOTSUP for what the device cannot do, else -EIO.
 */
int cuda_fail(struct cuda_backend *backend, cudaError_t code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** cuda_driver_entry() - a function of the driver's, as of its version @version; NULL if it has none. Nothing is linked to it. */
void *cuda_driver_entry(const char *name, unsigned version);

/* kernels.c */
/** cuda_kernels_load() - put all kernels that were registered on the device; 0, -ENOMEM, -ENOTSUP or -EIO */
int cuda_kernels_load(struct cuda_backend *backend);
/** cuda_kernel_find() - NULL if no kernel of that name was loaded */
const struct cuda_kernel *cuda_kernel_find(const char *name);

/* memory.c: entries of the vtable */
int cuda_allocate(struct weir_backend *base, size_t bytes, enum weir_memory kind, void **host, uint64_t *device);
void cuda_release(struct weir_backend *base, uint64_t device, size_t bytes, enum weir_memory kind);
/** cuda_service_begins() - a kernel that stays is about to start: from here on no memory is unpinned */
void cuda_service_begins(void);
/** cuda_service_ended() - one has ended; with the last one goes what was kept pinned meanwhile */
void cuda_service_ended(void);
int cuda_copy_in(struct weir_backend *base, uint64_t device, const void *host, size_t bytes);
int cuda_copy_out(struct weir_backend *base, void *host, uint64_t device, size_t bytes);

/** cuda_unregister_when_free() - host pages that were registered: at once, or behind the last kernel that stays */
void cuda_unregister_when_free(void *host);

/* controllers.c: entries of the vtable; cuda_unregister() is of registers, too */
int cuda_map_registers(struct weir_backend *base, void *host, size_t bytes, uint64_t *device);
int cuda_register_host(struct weir_backend *base, void *host, size_t bytes, uint64_t *device);
void cuda_unregister(struct weir_backend *base, void *host, size_t bytes);
int cuda_export_memory(struct weir_backend *base, uint64_t device, size_t bytes, int *file, uint64_t *offset);
/** cuda_abilities() - which of these the device and its driver can be expected to do */
void cuda_abilities(struct cuda_backend *backend, struct weir_backend_properties *out);

/* streams.c: entries of the vtable */
int cuda_stream_open(struct weir_backend *base, void **stream);
void cuda_stream_close(struct weir_backend *base, void *stream);
int cuda_stream_copy(struct weir_backend *base, void *stream, const struct weir_move *moves, size_t count);
int cuda_stream_launch(struct weir_backend *base, void *stream, const char *kernel, uint32_t blocks, uint32_t threads,
		       uint64_t args);
int cuda_stream_wait(struct weir_backend *base, void *stream);
int cuda_stream_join(struct weir_backend *base, void *stream, enum weir_join join);
int cuda_examine(struct weir_backend *base, uint64_t address, uint64_t bytes, void **host);
int cuda_defer(struct weir_backend *base, void *stream, void (*call)(void *of), void *of, void **gate);
void cuda_resume(struct weir_backend *base, void *gate);
/** cuda_gates_end() - no stream waits any more */
void cuda_gates_end(struct cuda_backend *backend);

/* properties.c */
void cuda_properties(struct weir_backend *base, struct weir_backend_properties *out);
int cuda_peer_flush(struct weir_backend *base);
/** cuda_pci_address() - as struct weir_backend_ops has it */
int cuda_pci_address(uint32_t ordinal, char *text, size_t bytes);

#endif
