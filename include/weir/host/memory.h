/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/memory.h: memory of a context, for kernels and storages.
 *
 * Owns: how the host allocates, fills, reads and frees it. Part of weir.h, whose rules hold here.
 */
#ifndef WEIR_HOST_MEMORY_H
#define WEIR_HOST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <weir/devices.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_context;

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

#ifdef __cplusplus
}
#endif
#endif
