/* SPDX-License-Identifier: BSD-3-Clause */
/* opencl.h: one open device, for the backend's own files. */
#ifndef WEIR_OPENCL_OPENCL_H
#define WEIR_OPENCL_OPENCL_H

#include <pthread.h>
#include <stdint.h>

#include "../../runtime/backend/backend.h"
#include "judge.h"

enum { OPENCL_NAME_BYTES = 128, OPENCL_OPTIONS_BYTES = 512 };

struct opencl_program;
struct opencl_kernel;

/**
 * struct opencl_device - one of this machine, of whatever platform, and what all contexts on it share
 * @id: the ICD loader's
 * @number: N of opencl:N
 * @name: for people
 * @platform: its platform's name
 * @identity: hash of all that what its compiler makes depends on: platform, device, driver
 * @record: what it says of itself
 * @memory_mutex: held while shared memory is allocated or freed
 * @mutex: over the rest
 * @context: the implementation's, of this device alone; made once, for the life of the process
 * @programs: those built so far
 */
struct opencl_device {
	cl_device_id id;
	unsigned number;
	char name[OPENCL_NAME_BYTES];
	char platform[OPENCL_NAME_BYTES];
	uint64_t identity;
	struct opencl_record record;
	pthread_mutex_t memory_mutex;
	pthread_mutex_t mutex;
	cl_context context;
	struct opencl_program *programs;
};

/**
 * struct opencl_block - an allocation
 * @whole: what clSVMAlloc() gave, or where @buffer is mapped
 * @buffer: host memory that lanes see, too (OPENCL_MEMORY_COARSE); else NULL
 * @address: the page in it that was handed out
 * @bytes: from there
 */
struct opencl_block {
	void *whole;
	cl_mem buffer;
	uint64_t address;
	size_t bytes;
};

/**
 * struct opencl_backend - an open device
 * @base: what the runtime knows
 * @device: what it is
 * @memory: how it shares memory
 * @lanes: of a wave
 * @queue: kernels, one after the other
 * @copies: copies, beside kernels; NULL where the host needs none (OPENCL_MEMORY_FINE)
 * @options: for its compiler
 * @kernels: those launched so far
 * @mutex: over @blocks and @block_count: a watchdog copies while another thread allocates
 * @blocks: allocations
 * @block_count: how many
 * @blocks_changed: counts changes of @blocks: kernels are told of those they may reach
 * @args: memory for arguments of launches that may not have ended; a slot for each
 * @args_host: the same as the host has it; @args itself where the host sees that
 * @args_bytes: size of each
 * @args_used: what has been given to launches since the queue was last empty
 * @latest: name of the kernel launched last, for messages; NULL before the first
 */
struct opencl_backend {
	struct weir_backend base;
	struct opencl_device *device;
	enum opencl_memory memory;
	unsigned lanes;
	cl_command_queue queue;
	cl_command_queue copies;
	char options[OPENCL_OPTIONS_BYTES];
	struct opencl_kernel *kernels;
	pthread_mutex_t mutex;
	struct opencl_block *blocks;
	size_t block_count;
	uint64_t blocks_changed;
	char *args;
	char *args_host;
	size_t args_bytes;
	size_t args_used;
	const char *latest;
};

static inline struct opencl_backend *opencl_of(struct weir_backend *backend)
{
	return (struct opencl_backend *)backend;
}

/**
 * opencl_fail() - a sentence for what the implementation said
 * @code: what it said; not CL_SUCCESS
 * @format: what was tried
 *
 * Return: -ENOMEM if memory ran out, else -EIO.
 */
int opencl_fail(cl_int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* device.c */
/** opencl_device_count() - how many there are, of all platforms, usable or not */
unsigned opencl_device_count(void);
/**
 * opencl_device_choose() - the device that is meant, if it can be used
 * @selector: "" (the first that will do), a number, or a part of its or its platform's name
 * @device: set to it
 * @memory: set to how it shares memory
 */
int opencl_device_choose(const char *selector, struct opencl_device **device, enum opencl_memory *memory);
/** opencl_grouped() - a block is a work-group; else each lane is a work-group of its own */
bool opencl_grouped(const struct opencl_backend *backend);
/** opencl_pci_address() - entry of the vtable: as cl_khr_pci_bus_info has it, or NVIDIA's extension */
int opencl_pci_address(uint32_t ordinal, char *text, size_t bytes);
/** opencl_properties() - entry of the vtable */
void opencl_properties(struct weir_backend *base, struct weir_backend_properties *out);

/** opencl_map(), opencl_unmap() - entries of the vtable: of device registers, and of host pages */
int opencl_map(struct weir_backend *base, void *host, size_t bytes, uint64_t *device);
void opencl_unmap(struct weir_backend *base, void *host, size_t bytes);

/* args.c */
/**
 * opencl_args_put() - arguments into memory that lanes see, for the kernel that is launched next
 * @backend: whose queue
 * @args: of @bytes
 * @slot: set to where they are, or will be when that kernel begins
 */
int opencl_args_put(struct opencl_backend *backend, const void *args, size_t bytes, void **slot);
/** opencl_args_end() - free the memory for them */
void opencl_args_end(struct opencl_backend *backend);

/* memory.c: entries of the vtable, and what launches need */
/** opencl_memory_shared() - memory of lanes that are no allocation of anybody's; NULL if there is none */
void *opencl_memory_shared(struct opencl_backend *backend, size_t bytes, cl_uint align);
/** opencl_memory_unshare() - free it */
void opencl_memory_unshare(struct opencl_backend *backend, void *memory);
int opencl_allocate(struct weir_backend *base, size_t bytes, enum weir_memory kind, void **host,
		    uint64_t *device);
void opencl_release(struct weir_backend *base, uint64_t device, size_t bytes, enum weir_memory kind);
int opencl_h2d(struct weir_backend *base, uint64_t device, const void *host, size_t bytes);
int opencl_d2h(struct weir_backend *base, void *host, uint64_t device, size_t bytes);
/** opencl_memory_notify() - tell a kernel which allocations it may reach by addresses in others, if it does
 * not know */
cl_int opencl_memory_notify(struct opencl_backend *backend, struct opencl_kernel *kernel);
/** opencl_memory_end() - free all there is */
void opencl_memory_end(struct opencl_backend *backend);

/* program.c */
/**
 * struct opencl_kernel - a kernel ready to be launched
 * @image: which
 * @kernel: the implementation's
 * @block_lanes: most that a block may have
 * @blocks_reported: opencl_backend.blocks_changed when it was told of allocations last
 * @next: another
 */
struct opencl_kernel {
	const struct weir_image *image;
	cl_kernel kernel;
	uint32_t block_lanes;
	uint64_t blocks_reported;
	struct opencl_kernel *next;
};

/** opencl_kernel_get() - the kernel of an image; its file is built, or taken from the cache on disk, if need
 * be */
int opencl_kernel_get(struct opencl_backend *backend, const struct weir_image *image,
		      struct opencl_kernel **out);
/** opencl_kernels_end() - forget all of them */
void opencl_kernels_end(struct opencl_backend *backend);

#endif
