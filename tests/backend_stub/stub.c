/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A backend whose device runs nothing: every entry of the vtable counts its calls, and memory is the
 * heap's. It uses what docs/porting.md names for modules outside the tree, and nothing else of weir.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "stub.h"

#ifndef STUB_VTABLE_BYTES
#define STUB_VTABLE_BYTES sizeof(struct weir_backend_ops)
#endif

#ifndef STUB_UNASKED
#define STUB_UNASKED false
#endif

enum { PAGE_BYTES = 4096, BLOCK_LANES = 64 };

extern __attribute__((visibility("default"))) struct stub_calls weir_stub_calls;
struct stub_calls weir_stub_calls;

static const struct weir_backend_ops stub_ops;
const struct weir_backend_ops *const weir_backend_module = &stub_ops;

static int stub_devices(uint32_t *count)
{
	weir_stub_calls.devices++;
	if (weir_stub_calls.lacks)
		return weir_fail(ENODEV, "the stub has no device");
	*count = 2;
	return 0;
}

static int stub_open(const char *selector, const struct weir_context_options *options,
		     struct weir_backend **out)
{
	(void)options;
	weir_stub_calls.open++;
	if (*selector && strcmp(selector, "0") && strcmp(selector, "1"))
		return weir_fail(ENODEV, "there is no stub:%s; stub:0 and stub:1 there are", selector);
	*out = malloc(sizeof(**out));
	if (!*out)
		return weir_fail(ENOMEM, "no memory for the stub backend");
	(*out)->ops = &stub_ops;
	return 0;
}

static void stub_close(struct weir_backend *backend)
{
	weir_stub_calls.close++;
	free(backend);
}

/* The device's own memory is kept from the host, as on a card. */
static int stub_allocate(struct weir_backend *backend, size_t bytes, enum weir_memory kind, void **host,
			 uint64_t *device)
{
	void *memory = aligned_alloc(PAGE_BYTES, bytes);

	(void)backend;
	weir_stub_calls.allocate++;
	if (!memory)
		return weir_fail(ENOMEM, "cannot allocate %zu bytes on the stub", bytes);
	memset(memory, 0, bytes);
	*device = (uint64_t)(uintptr_t)memory;
	*host = kind == WEIR_MEMORY_HOST ? memory : NULL;
	return 0;
}

static void stub_release(struct weir_backend *backend, uint64_t device, size_t bytes, enum weir_memory kind)
{
	(void)backend;
	(void)bytes;
	(void)kind;
	weir_stub_calls.release++;
	free((void *)(uintptr_t)device);
}

static int stub_h2d(struct weir_backend *backend, uint64_t device, const void *host, size_t bytes)
{
	(void)backend;
	weir_stub_calls.h2d++;
	memcpy((void *)(uintptr_t)device, host, bytes);
	return 0;
}

static int stub_d2h(struct weir_backend *backend, void *host, uint64_t device, size_t bytes)
{
	(void)backend;
	weir_stub_calls.d2h++;
	memcpy(host, (const void *)(uintptr_t)device, bytes);
	return 0;
}

static int stub_launch(struct weir_backend *backend, const char *kernel, uint32_t blocks, uint32_t threads,
		       const void *args, size_t bytes)
{
	const struct weir_image *image = weir_image_find("stub", kernel);

	(void)backend;
	(void)args;
	weir_stub_calls.launch++;
	return weir_launch_check(
		&(struct weir_launch_check){ .backend = "stub",
					     .kernel = kernel,
					     .known = image,
					     .takes_bytes = image ? image->args_bytes : 0,
					     .given_bytes = bytes,
					     .blocks = blocks,
					     .threads = threads,
					     .most_threads = image ? image->block_lanes : 0 });
}

static int stub_kernel_info(struct weir_backend *backend, const char *kernel, struct weir_kernel_info *info)
{
	const struct weir_image *image = weir_image_find("stub", kernel);

	(void)backend;
	weir_stub_calls.kernel_info++;
	if (!image)
		return weir_no_kernel("stub", kernel);
	info->block_lanes = image->block_lanes;
	return 0;
}

static int stub_synchronise(struct weir_backend *backend)
{
	(void)backend;
	weir_stub_calls.synchronise++;
	return 0;
}

/* It would, if it knew a kernel. */
static int stub_serve(struct weir_backend *backend, const char *kernel, uint32_t blocks, uint32_t threads,
		      const void *args, size_t bytes, void **service)
{
	(void)backend;
	(void)blocks;
	(void)threads;
	(void)args;
	(void)bytes;
	(void)service;
	weir_stub_calls.serve++;
	return weir_no_kernel("stub", kernel);
}

/* Never called: no kernel was started. */
static void stub_serve_end(struct weir_backend *backend, void *service)
{
	(void)backend;
	(void)service;
	abort();
}

static void stub_properties(struct weir_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	weir_stub_calls.properties++;
	snprintf(out->name, sizeof(out->name), "stub (runs nothing)");
	out->wave_lanes = 1;
	out->workers = 1;
	out->block_lanes = BLOCK_LANES;
}

static const struct weir_backend_ops stub_ops = {
	.size = STUB_VTABLE_BYTES,
	.name = "stub",
	.unasked = STUB_UNASKED,
	.devices = stub_devices,
	.open = stub_open,
	.close = stub_close,
	.allocate = stub_allocate,
	.release = stub_release,
	.h2d = stub_h2d,
	.d2h = stub_d2h,
	.launch = stub_launch,
	.kernel_info = stub_kernel_info,
	.synchronise = stub_synchronise,
	.serve = stub_serve,
	.serve_end = stub_serve_end,
	.properties = stub_properties,
};
