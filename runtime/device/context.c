/* SPDX-License-Identifier: BSD-3-Clause */
#include "context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cache/cache.h"
#include "../storage/closed.h"
#include "../backend/error.h"
#include "../file/files.h"
#include "gpus.h"
#include "../observe/publish.h"

enum { MOST_SERVICE_WAVES = 1 << 16 };

const char *weir_version(void)
{
	return WEIR_VERSION;
}

/* "no backend ..." with the names there are. */
static int no_backend(const char *name, size_t length)
{
	const struct weir_backend_ops *ops;
	char names[128] = "\"auto\" or \"gpu\"";
	const char *there;

	for (size_t i = 0; (there = weir_backend_at(i, &ops)); i++) {
		size_t used = strlen(names);

		snprintf(names + used, sizeof(names) - used, " or \"%s\"", there);
	}
	return weir_fail(ENODEV, "no backend \"%.*s\" in this build; try %s", (int)length, name, names);
}

/* "auto": of those that may be taken unasked the first that opens, else the cpu, the first of the others. */
static int open_any(const struct weir_context_options *options, struct weir_backend **out)
{
	const struct weir_backend_ops *ops;

	for (size_t i = 0; weir_backend_at(i, &ops); i++) {
		int error = ops && ops->unasked ? ops->open("", options, out) : -ENODEV;

		if (!error)
			return 0;
		/* A device that is there and cannot be used is no silent matter. */
		if (error != -ENODEV)
			weir_report("%s; \"auto\" goes on without it", weir_last_error());
	}
	for (size_t i = 0; weir_backend_at(i, &ops); i++)
		if (ops && !ops->unasked)
			return ops->open("", options, out);
	return no_backend("auto", strlen("auto"));
}

/* What a name that is no backend's may still be. */
static int open_other(const char *name, size_t length, const struct weir_context_options *options,
		      struct weir_backend **out)
{
	bool gpu = length == 3 && !strncmp(name, "gpu", length);

	return gpu ? weir_gpu_open("gpu", name[length] ? name + length + 1 : "", options, out)
		   : no_backend(name, length);
}

/* A PCI address is looked up here; what a backend is asked for is a number of its own. */
static int open_one(const struct weir_backend_ops *ops, const char *selector,
		    const struct weir_context_options *options, struct weir_backend **out)
{
	if (ops->devices && weir_pci_meant(selector))
		return weir_gpu_open(ops->name, selector, options, out);
	return ops->open(selector, options, out);
}

/* A name must match exactly. */
static int open_backend(const char *name, const struct weir_context_options *options,
			struct weir_backend **out)
{
	const char *colon = strchr(name, ':');
	size_t length = colon ? (size_t)(colon - name) : strlen(name);
	const struct weir_backend_ops *ops;
	const char *there;

	if (!strcmp(name, "auto"))
		return open_any(options, out);
	for (size_t i = 0; (there = weir_backend_at(i, &ops)); i++)
		if (strlen(there) == length && !strncmp(there, name, length))
			return ops ? open_one(ops, colon ? colon + 1 : "", options, out) : -ENODEV;
	return open_other(name, length, options, out);
}

static void context_free(struct weir_context *context)
{
	while (context->memory)
		(void)weir_memory_put(context, context->memory->address);
	if (context->dma)
		weir_dma_map_destroy(context->dma);
	if (context->backend)
		context->backend->ops->close(context->backend);
}

static void take_properties(struct weir_context *context)
{
	struct weir_backend_properties properties = { .wave_lanes = 0 };

	context->backend->ops->properties(context->backend, &properties);
	context->shared_memory = properties.shared_memory;
	context->peer_memory = properties.peer_memory;
	context->window = properties.window;
}

int weir_context_open(const char *name, const struct weir_context_options *given, struct weir_context **out)
{
	struct weir_context_options options;
	struct weir_context *context;
	int error = weir_given(out, "weir_context_open", "out");

	if (error)
		return error;
	*out = NULL;
	if ((error = weir_given(name, "weir_context_open", "name")) != 0 ||
	    (error = weir_options_take(&options, sizeof(options), given, "context options")) != 0)
		return error;
	context = calloc(1, sizeof(*context));
	if (!context)
		return weir_fail(ENOMEM, "no memory for a context");
	context->service_waves = options.service_waves;
	if (options.service_waves > MOST_SERVICE_WAVES && options.service_waves != WEIR_SERVICE_WHERE_PULLED)
		error = weir_fail(EINVAL, "context \"%s\": service_waves is %u; it must be from 0 to %d",
				  name, options.service_waves, MOST_SERVICE_WAVES);
	if (!error)
		error = open_backend(name, &options, &context->backend);
	if (!error)
		error = weir_dma_map_create(&context->dma);
	if (!error)
		take_properties(context); /* which say what the first allocation is */
	if (!error)
		error = weir_closed_prepare(context);
	if (!error)
		error = weir_handle_add(context, WEIR_HANDLE_CONTEXT, name);
	if (error) {
		context_free(context);
		free(context);
		return error;
	}
	weir_publish(context);
	*out = context;
	return 0;
}

/* A backend that says neither lacks it. */
static void take_ability(const struct weir_ability *ability, uint32_t *has, char why[WEIR_WHY_BYTES])
{
	*has = ability->has;
	if (!ability->has)
		snprintf(why, WEIR_WHY_BYTES, "%s",
			 ability->why[0] ? ability->why : "its backend does not know how");
}

int weir_context_info(struct weir_context *context, struct weir_context_info *info)
{
	struct weir_backend_properties properties = { .numa_node = -1 };
	struct weir_context_info filled = { .size = sizeof(filled) };
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_context_info");

	if (error || (error = weir_given(info, "weir_context_info", "info")) != 0)
		return error;
	context->backend->ops->properties(context->backend, &properties);
	memcpy(filled.name, properties.name, sizeof(filled.name));
	memcpy(filled.pci_address, properties.pci_address, sizeof(filled.pci_address));
	filled.wave_lanes = properties.wave_lanes;
	filled.workers = properties.workers;
	filled.block_lanes = properties.block_lanes;
	filled.memory_bytes = properties.memory_bytes;
	filled.memory_free_bytes = properties.memory_free_bytes;
	filled.numa_node = properties.numa_node;
	if (filled.numa_node < 0 && *filled.pci_address)
		filled.numa_node = weir_pci_numa_node(filled.pci_address);
	filled.dma_buf = properties.dma_buf;
	filled.peer_dma = properties.peer_dma;
	filled.peer_writes = properties.peer_writes;
	take_ability(&properties.map_registers, &filled.map_registers, filled.map_registers_why);
	take_ability(&properties.register_host, &filled.register_host, filled.register_host_why);
	take_ability(&properties.export_memory, &filled.export_memory, filled.export_memory_why);
	return weir_result_give(info, &filled, sizeof(filled), "weir_context_info");
}

int weir_no_kernel(const char *backend, const char *kernel)
{
	return weir_fail(
		ENOENT,
		"no kernel \"%s\" for the %s backend is linked into this program: compile its file for that "
		"(docs/devices.md)%s",
		kernel, backend, strcmp(backend, "cpu") ? ", or open the device \"cpu\"" : "");
}

int weir_launch_check(const struct weir_launch_check *launch)
{
	if (!launch->known)
		return weir_no_kernel(launch->backend, launch->kernel);
	if (launch->takes_bytes != launch->given_bytes)
		return weir_fail(EINVAL,
				 "kernel \"%s\" takes %zu bytes of arguments, not %zu; rebuild both sides",
				 launch->kernel, launch->takes_bytes, launch->given_bytes);
	if (launch->blocks == 0 || launch->threads == 0)
		return weir_fail(EINVAL,
				 "kernel \"%s\" launched with %u blocks of %u lanes; both must be 1 at least",
				 launch->kernel, launch->blocks, launch->threads);
	if (launch->threads > launch->most_threads)
		return weir_fail(
			EINVAL, "kernel \"%s\" launched with %u lanes per block; it was built for %u at most",
			launch->kernel, launch->threads, launch->most_threads);
	return 0;
}

int weir_launch(struct weir_context *context, const char *kernel, uint32_t blocks, uint32_t threads,
		const void *args, size_t args_bytes)
{
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_launch");

	if (error || (error = weir_given(kernel, "weir_launch", "kernel")) != 0 ||
	    (args_bytes && (error = weir_given(args, "weir_launch", "args")) != 0))
		return error;
	return context->backend->ops->launch(context->backend, kernel, blocks, threads, args, args_bytes);
}

int weir_launch_on(struct weir_context *context, void *stream, const char *kernel, uint32_t blocks,
		   uint32_t threads, const void *args, size_t args_bytes)
{
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_launch_on");
	const struct weir_backend_ops *ops;

	if (error || !stream)
		return error ? error : weir_launch(context, kernel, blocks, threads, args, args_bytes);
	ops = context->backend->ops;
	if (!ops->stream_join)
		return weir_fail(
			ENOTSUP,
			"kernel \"%s\": %s has no streams but that of weir_launch(); give NULL for it",
			kernel ? kernel : "", ops->name);
	error = ops->stream_join(context->backend, stream, WEIR_JOIN_AFTER);
	if (!error)
		error = weir_launch(context, kernel, blocks, threads, args, args_bytes);
	return error ? error : ops->stream_join(context->backend, stream, WEIR_JOIN_BEFORE);
}

int weir_kernel_info(struct weir_context *context, const char *name, struct weir_kernel_info *info)
{
	struct weir_kernel_info filled = { .size = sizeof(filled) };
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_kernel_info");

	if (error || (error = weir_given(name, "weir_kernel_info", "name")) != 0 ||
	    (error = weir_given(info, "weir_kernel_info", "info")) != 0)
		return error;
	error = context->backend->ops->kernel_info(context->backend, name, &filled);
	return error ? error : weir_result_give(info, &filled, sizeof(filled), "weir_kernel_info");
}

/* What a lane calls storage number @id. A fault may be older than its storage's end. */
static const char *uri_of(const struct weir_context *context, uint32_t id)
{
	for (const struct weir_storage *storage = context->open; storage; storage = storage->next)
		if (storage->disk.id == id)
			return storage->uri;
	return "(closed since)";
}

/* The first fault as a sentence, and room for the next. */
static int take_fault(struct weir_context *context)
{
	struct weir_backend *backend = context->backend;
	struct weir_fault fault, none;
	char text[80];
	int error = backend->ops->d2h(backend, &fault, context->fault, sizeof(fault));

	if (error || weir_load_u32_acquire_sys(&fault.claimed) == 0) /* fault.F1: pairs with fault.F0 */
		return error;
	memset(&none, 0, sizeof(none));
	error = backend->ops->h2d(backend, context->fault, &none, sizeof(none));
	if (error)
		return error;
	weir_status_text(fault.status, text);
	if (fault.source == WEIR_FAULT_INDEX)
		return weir_fail(EIO, "lane %llu asked for array element %llu, but the array has %llu: %s",
				 (unsigned long long)fault.thread, (unsigned long long)fault.position,
				 (unsigned long long)fault.limit, text);
	if (fault.source == WEIR_FAULT_WIDTH)
		return weir_fail(EIO,
				 "lane %llu used an accessor of %llu bytes on an array whose elements have "
				 "%llu: %s; use the one of that "
				 "size, or open the array with .element_bytes = %llu",
				 (unsigned long long)fault.thread, (unsigned long long)fault.position,
				 (unsigned long long)fault.limit, text, (unsigned long long)fault.position);
	if (fault.source == WEIR_FAULT_WRITE)
		return weir_fail(EIO,
				 "lane %llu needed block %llu of storage \"%s\" (%llu blocks) written back, "
				 "which failed: %s",
				 (unsigned long long)fault.thread, (unsigned long long)fault.position,
				 uri_of(context, fault.disk), (unsigned long long)fault.limit, text);
	return weir_fail(EIO, "lane %llu could not get block %llu of storage \"%s\" (%llu blocks): %s",
			 (unsigned long long)fault.thread, (unsigned long long)fault.position,
			 uri_of(context, fault.disk), (unsigned long long)fault.limit, text);
}

int weir_sync(struct weir_context *context)
{
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_sync");

	if (!error)
		error = context->backend->ops->synchronise(context->backend);
	if (!error)
		error = take_fault(context);
	return error ? error : weir_files_failure(context);
}

/* Everything in it, the last made first: caches before storages, so that dirty lines find theirs. */
static void close_children(struct weir_context *context, struct weir_losses *losses)
{
	while (context->open_caches)
		weir_losses_add(losses, weir_cache_shut(context->open_caches));
	while (context->open)
		weir_losses_add(losses, weir_storage_shut(context->open));
}

int weir_context_close(struct weir_context *context)
{
	struct weir_losses losses = { .error = 0 };
	int error = context ? weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_context_close") : 0;

	if (!context || error)
		return error;
	error = context->backend->ops->synchronise(context->backend);
	weir_losses_add(&losses, error ? error : take_fault(context));
	weir_losses_add(&losses, weir_files_close(context));
	close_children(context, &losses);
	weir_publish_end(context);
	context_free(context);
	weir_handle_retire(context);
	return weir_losses_end(&losses);
}
