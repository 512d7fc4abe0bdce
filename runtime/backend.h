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

#include <weir/weir.h>

enum weir_memory {
	WEIR_MEMORY_DEVICE, /* for lanes */
	WEIR_MEMORY_RING,   /* for lanes and a controller in host threads */
};

/**
 * struct weir_backend_properties - what the device is
 * @name: for people
 * @wave_lanes: wave width
 * @workers: groups of lanes that run at the same instant
 */
struct weir_backend_properties {
	char name[128];
	uint32_t wave_lanes;
	uint32_t workers;
};

struct weir_backend;

/**
 * struct weir_backend_ops - a backend's functions; 0 or a negative errno
 * @size: sizeof(struct weir_backend_ops)
 * @name: word before the ':' of a context name
 * @open: a device of this kind; @selector is what follows the ':', or ""
 * @allocate: zeroed, page-aligned memory; @host is NULL where the host cannot see it
 * @launch: queue a kernel behind earlier ones; @args is copied
 * @synchronise: wait until every launch has ended
 */
struct weir_backend_ops {
	size_t size;
	const char *name;
	int (*open)(const char *selector, const struct weir_context_options *options,
		    struct weir_backend **out);
	void (*close)(struct weir_backend *backend);
	int (*allocate)(struct weir_backend *backend, size_t bytes, enum weir_memory kind, void **host,
			uint64_t *device);
	void (*release)(struct weir_backend *backend, uint64_t device, size_t bytes);
	int (*copy_in)(struct weir_backend *backend, uint64_t device, const void *host, size_t bytes);
	int (*copy_out)(struct weir_backend *backend, void *host, uint64_t device, size_t bytes);
	int (*launch)(struct weir_backend *backend, const char *kernel, uint32_t blocks, uint32_t threads,
		      const void *args, size_t args_bytes);
	int (*synchronise)(struct weir_backend *backend);
	void (*properties)(struct weir_backend *backend, struct weir_backend_properties *out);
};

/** struct weir_backend - what every backend's object begins with */
struct weir_backend {
	const struct weir_backend_ops *ops;
};

/** weir_backends - those built in, NULL-terminated, the preferred one first */
extern const struct weir_backend_ops *const weir_backends[];

extern const struct weir_backend_ops weir_backend_cpu;

#endif
