/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/launch.h: kernels by their names: launch them, wait for them, ask what a lane of one takes.
 *
 * Owns: launches, streams of the caller's, the wait for all. Part of weir.h, whose rules hold here.
 */
#ifndef WEIR_HOST_LAUNCH_H
#define WEIR_HOST_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include <weir/devices.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_context;

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

#ifdef __cplusplus
}
#endif
#endif
