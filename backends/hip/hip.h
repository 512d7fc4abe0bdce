/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hip.h: one open device, for the backend's own files.
 *
 * The run time's calls are about the calling thread's current device: every function
 * that the runtime calls begins with hip_enter().
 */
#ifndef WEIR_HIP_HIP_H
#define WEIR_HIP_HIP_H

/* The run time, or what stands for it (tests/backends/hip/on_cuda.h). */
#ifndef WEIR_HIP_HEADER
#define WEIR_HIP_HEADER <hip/hip_runtime_api.h>
#endif
#include WEIR_HIP_HEADER

#include "../../runtime/backend.h"
#include "../gate.h"

/* The build's option that says which devices kernels are compiled for. */
#ifndef HIP_ARCH_OPTION
#define HIP_ARCH_OPTION "hip_arch"
#endif

/**
 * struct hip_backend - an open device
 * @base: what the runtime knows
 * @device: its number
 * @launches: stream of kernels and their arguments, one after the other
 * @copies: stream of everything else, so that copies do not wait for kernels
 * @ended: recorded behind the latest launch
 * @args: device memory for one launch's arguments; the stream's order keeps launches apart
 * @staging: pinned memory of the same size; arguments wait there until their launch's turn
 * @args_bytes: size of either
 * @staged: how much of @staging is taken
 * @modules: code objects on the device
 * @kernels: their kernels, the latest loaded first
 * @loaded: kernels from this one on, in the order of registration, are among @kernels
 * @gates: where streams wait for the host; NULL until the first does
 * @latest: name of the kernel launched last, for messages; NULL before the first
 * @name: for people
 * @architecture: what its code is called, such as "gfx90a:sramecc+:xnack-"
 * @compute_units: how many
 * @block_lanes: most lanes the device takes per block
 * @wave_lanes: 32 or 64
 */
struct hip_backend {
	struct weir_backend base;
	int device;
	hipStream_t launches;
	hipStream_t copies;
	hipEvent_t ended;
	void *args;
	void *staging;
	size_t args_bytes;
	size_t staged;
	struct hip_module *modules;
	struct hip_kernel *kernels;
	const struct weir_image *loaded;
	struct weir_gates *gates;
	const char *latest;
	char name[128];
	char architecture[64];
	uint32_t compute_units;
	uint32_t block_lanes;
	uint32_t wave_lanes;
};

/**
 * struct hip_kernel - a kernel on a device
 * @image: which
 * @function: what the run time launches
 * @next: one loaded earlier
 */
struct hip_kernel {
	const struct weir_image *image;
	hipFunction_t function;
	struct hip_kernel *next;
};

static inline struct hip_backend *hip_of(struct weir_backend *backend)
{
	return (struct hip_backend *)backend;
}

/** hip_enter() - make the device the calling thread's current one; 0 or -EIO */
int hip_enter(struct hip_backend *backend);

/**
 * hip_fail() - a sentence for what the run time said
 * @code: what it said; not hipSuccess
 * @format: what was tried
 *
 * Return: -ENOMEM if memory ran out, -ENOTSUP for what the device cannot do, else -EIO.
 */
int hip_fail(hipError_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* driver.c, or that of tests/backends/hip/on_cuda */
/** hip_no_device() - -ENODEV, with why the run time has no device to show */
int hip_no_device(hipError_t code);

/* kernels.c */
/** hip_kernels_load() - put all kernels that were registered on the device; 0, -ENOMEM or -EIO */
int hip_kernels_load(struct hip_backend *backend);
/** hip_kernel_find() - NULL if no kernel of that name was linked in */
const struct hip_kernel *hip_kernel_find(const struct hip_backend *backend, const char *name);
/** hip_kernels_unload() - all of them */
void hip_kernels_unload(struct hip_backend *backend);

/* clock.c, or clock_assumed.c where the run time cannot tell */
/** hip_clock_khz() - rate of the device's constant-rate counter; 0: not known, so the port's own is right */
uint32_t hip_clock_khz(const struct hip_backend *backend);

/**
 * enum hip_held - what the run time frees only when all kernels of the device have ended
 */
enum hip_held {
	HIP_DEVICE_MEMORY,
	HIP_HOST_MEMORY,
	HIP_SIGNAL_MEMORY,
	HIP_MODULE,
	HIP_REGISTERED, /* host pages of somebody else's; their addresses are not used again until it is let go of */
};

/* memory.c */
/** hip_memory() - of the device, or of the host and seen by all devices; not cleared */
hipError_t hip_memory(struct hip_backend *backend, enum hip_held kind, size_t bytes, void **memory);
/** hip_let_go() - free memory or a module, at once or when the last kernel that stays has ended; NULL-safe */
void hip_let_go(struct hip_backend *backend, enum hip_held kind, void *what, size_t bytes);
/** hip_service_begins() - a kernel that stays is about to start: from here on nothing is freed */
void hip_service_begins(void);
/** hip_service_ended() - one has ended; with the last one goes what was kept meanwhile */
void hip_service_ended(void);

/* Entries of the vtable: memory.c, properties.c, streams.c */
int hip_allocate(struct weir_backend *base, size_t bytes, enum weir_memory kind, void **host, uint64_t *device);
void hip_release(struct weir_backend *base, uint64_t device, size_t bytes, enum weir_memory kind);
int hip_copy_in(struct weir_backend *base, uint64_t device, const void *host, size_t bytes);
int hip_copy_out(struct weir_backend *base, void *host, uint64_t device, size_t bytes);
void hip_properties(struct weir_backend *base, struct weir_backend_properties *out);
int hip_pci_address(uint32_t ordinal, char *text, size_t bytes);
int hip_stream_open(struct weir_backend *base, void **stream);
void hip_stream_close(struct weir_backend *base, void *stream);
int hip_stream_copy(struct weir_backend *base, void *stream, const struct weir_move *moves, size_t count);
int hip_stream_launch(struct weir_backend *base, void *stream, const char *name, uint32_t blocks, uint32_t threads,
		      uint64_t args);
int hip_stream_wait(struct weir_backend *base, void *stream);
int hip_stream_join(struct weir_backend *base, void *stream, enum weir_join join);
/* controllers.c; hip_unregister() is of registers, too */
int hip_map_registers(struct weir_backend *base, void *host, size_t bytes, uint64_t *device);
int hip_register_host(struct weir_backend *base, void *host, size_t bytes, uint64_t *device);
void hip_unregister(struct weir_backend *base, void *host, size_t bytes);
int hip_export_memory(struct weir_backend *base, uint64_t device, size_t bytes, int *file, uint64_t *offset);
/** hip_abilities() - which of these the device and its driver can be expected to do */
void hip_abilities(struct hip_backend *backend, struct weir_backend_properties *out);
int hip_defer(struct weir_backend *base, void *stream, void (*call)(void *of), void *of, void **gate);
void hip_resume(struct weir_backend *base, void *gate);
/** hip_gates_end() - none waits any more */
void hip_gates_end(struct hip_backend *backend);

#endif
