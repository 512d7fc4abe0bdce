/* SPDX-License-Identifier: BSD-3-Clause */
#include "device_controller.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../device/context.h"
#include "../backend/error.h"
#include "../kernels/controller_timed.h"
#include "../device/persistent.h"
#include "../transport/virtual/fault.h"

enum { BLOCK_LANES = 128, MOST_REST = 1023 };

struct weir_device_controller {
	struct weir_persistent persistent;
	uint64_t queues;
	uint64_t medium;
	uint64_t rate; /* the rest: of a controller with timing or faults */
	uint64_t later;
	uint64_t entries;
	uint64_t groups;
	uint64_t faults;
};

static bool timed(const struct weir_device_controller_options *options)
{
	return options->latency_us || options->iops || options->fault_count;
}

int weir_device_controller_doorbells(struct weir_storage *storage, uint32_t queues)
{
	const struct weir_backend_ops *ops = storage->context->backend->ops;

	if (!ops->serve)
		return weir_fail(
			ENOTSUP,
			"storage \"%s\": on=device needs a device that runs kernels side by side, which %s "
			"does not; leave it out",
			storage->uri, ops->name);
	return weir_memory_get(storage->context, (queues + 1) * 2 * sizeof(uint32_t), &storage->doorbells);
}

/* The queue pairs as the controller sees them. */
static int describe_queues(struct weir_storage *storage, uint32_t count,
			   struct weir_device_controller *device_controller)
{
	struct weir_context *context = storage->context;
	size_t bytes = count * sizeof(struct weir_controller_queue);
	struct weir_controller_queue *queues = aligned_alloc(sizeof(*queues), bytes);
	int error =
		queues ? weir_memory_get(context, bytes, &device_controller->queues)
		       : weir_fail(ENOMEM, "storage \"%s\": no memory for %u queues", storage->uri, count);

	for (uint32_t i = 0; !error && i < count; i++) {
		struct weir_queue queue;

		error = weir_copy_from_device(context, &queue, storage->queues + i * sizeof(queue),
					      sizeof(queue));
		queues[i] = (struct weir_controller_queue){
			.sq = queue.sq,
			.cq = queue.cq,
			.doorbells = queue.sq_doorbell,
			.depth_log2 = queue.depth_log2,
			.id = queue.id,
			.later = device_controller->later
					 ? device_controller->later + i * sizeof(struct weir_controller_later)
					 : 0,
		};
		weir_store_u64_relaxed_sys(&queues[i].head,
					   (uint32_t)(weir_load_u64_relaxed_sys(&queue.reap) >> 1));
	}
	if (!error)
		error = weir_copy_to_device(context, device_controller->queues, queues, bytes);
	free(queues);
	return error;
}

/*
 * Where completions wait. Tickets begin at a multiple of twice the depth, so entries that
 * are zero are filled for none of their first turn.
 */
static int describe_later(struct weir_storage *storage, uint32_t count, uint32_t rows,
			  struct weir_device_controller *device_controller)
{
	struct weir_context *context = storage->context;
	uint64_t entries = storage->depth * sizeof(struct weir_controller_entry),
		 groups = rows * sizeof(uint32_t);
	int error = weir_memory_get(context, count * sizeof(struct weir_controller_later),
				    &device_controller->later);

	if (!error)
		error = weir_memory_get(context, count * entries, &device_controller->entries);
	if (!error && rows)
		error = weir_memory_get(context, count * groups, &device_controller->groups);
	for (uint32_t i = 0; !error && i < count; i++) {
		struct weir_controller_later later = { .entries = device_controller->entries + i * entries,
						       .groups = device_controller->groups + i * groups };
		struct weir_queue queue;

		error = weir_copy_from_device(context, &queue, storage->queues + i * sizeof(queue),
					      sizeof(queue));
		later.posted = (uint32_t)(weir_load_u64_relaxed_sys(&queue.reap) >> 1);
		weir_store_u32_relaxed_sys(&later.oldest, later.posted);
		weir_store_u32_relaxed_sys(&later.next, later.posted);
		if (!error)
			error = weir_copy_to_device(context, device_controller->later + i * sizeof(later),
						    &later, sizeof(later));
	}
	return error;
}

static int describe_faults(struct weir_storage *storage, const struct weir_device_controller_options *options,
			   struct weir_device_controller *device_controller)
{
	size_t bytes = options->fault_count * sizeof(struct weir_fault_row);
	int error = weir_memory_get(storage->context, bytes, &device_controller->faults);

	for (uint32_t i = 0; !error && i < options->fault_count; i++) {
		struct weir_fault_row row = weir_virtual_fault_row(&options->faults[i]);

		error = weir_copy_to_device(storage->context, device_controller->faults + i * sizeof(row),
					    &row, sizeof(row));
	}
	return error;
}

static int allocate_timed(struct weir_storage *storage, struct weir_device_controller *device_controller,
			  uint32_t count)
{
	const struct weir_device_controller_options *options = &storage->transport->device_controller;
	int error = weir_memory_get(storage->context, sizeof(weir_shared_u64), &device_controller->rate);

	if (!error)
		error = describe_later(storage, count, options->fault_count, device_controller);
	if (!error && options->fault_count)
		error = describe_faults(storage, options, device_controller);
	return error;
}

static int allocate(struct weir_storage *storage, struct weir_device_controller *device_controller,
		    uint32_t count)
{
	struct weir_context *context = storage->context;
	const struct weir_device_controller_options *options = &storage->transport->device_controller;
	uint64_t bytes = storage->space.blocks << storage->space.block_log2;
	int error = weir_persistent_prepare(context, &device_controller->persistent);

	if (!error && options->data)
		error = weir_memory_allocate(context, bytes,
					     options->host_medium ? WEIR_MEMORY_HOST : WEIR_MEMORY_DEVICE,
					     &device_controller->medium, NULL);
	if (!error && timed(options))
		error = allocate_timed(storage, device_controller, count);
	return error ? error : describe_queues(storage, count, device_controller);
}

/* Blocks, and lanes of each: small ones all over the device, or large ones that fill a multiprocessor. */
static int shape(struct weir_storage *storage, uint32_t *blocks, uint32_t *lanes)
{
	struct weir_backend *backend = storage->context->backend;
	struct weir_device_controller_options *options = &storage->transport->device_controller;
	struct weir_backend_properties properties = { .numa_node = -1 };
	uint32_t waves;

	backend->ops->properties(backend, &properties);
	if (options->groups > properties.workers)
		return weir_fail(EINVAL, "storage \"%s\": groups=%u, but %s runs %u at the same time",
				 storage->uri, options->groups, properties.name, properties.workers);
	waves = (options->groups ? WEIR_CONTROLLER_BLOCK_LANES : BLOCK_LANES) / properties.wave_lanes;
	*blocks = options->groups ? options->groups : (options->waves + waves - 1) / waves;
	*lanes = waves * properties.wave_lanes;
	options->waves = *blocks * waves;
	return 0;
}

/* How waves share the queues: the more there are for each, the less one takes, and the longer it rests. */
static void share(const struct weir_device_controller_options *options, uint32_t queues,
		  struct weir_controller_args *args)
{
	uint32_t ratio = options->waves / queues;

	args->claim = options->claim ? options->claim : ~0u;
	args->claim_bytes = options->claim ? ~0ull : WEIR_CONTROLLER_CLAIM_BYTES;
	args->share_log2 = ratio >= 4 ? 2 : ratio >= 2;
	args->rest = ratio > MOST_REST ? MOST_REST : ratio ? ratio - 1 : 0;
}

int weir_device_controller_start(struct weir_storage *storage, uint32_t queues)
{
	const struct weir_device_controller_options *options = &storage->transport->device_controller;
	struct weir_device_controller *device_controller = calloc(1, sizeof(*device_controller));
	struct weir_controller_args args;
	uint32_t blocks = 0, lanes = 0;
	int error;

	if (!device_controller)
		return weir_fail(ENOMEM, "storage \"%s\": no memory", storage->uri);
	storage->device_controller = device_controller;
	error = allocate(storage, device_controller, queues);
	if (!error)
		error = shape(storage, &blocks, &lanes);
	if (error)
		return error;
	args = (struct weir_controller_args){
		.queues = device_controller->queues,
		.medium = device_controller->medium,
		.rate = device_controller->rate,
		.faults = device_controller->faults,
		.started = device_controller->persistent.started,
		.stop = device_controller->persistent.stop,
		.blocks = storage->space.blocks,
		.latency_ns = options->latency_us * 1000,
		.iops = options->iops,
		.queue_count = queues,
		.block_log2 = storage->space.block_log2,
		.no_data = !options->data,
		.fault_count = options->fault_count,
	};
	share(options, queues, &args);
	return weir_persistent_start(
		storage->context, &device_controller->persistent,
		&(struct weir_persistent_launch){ .kernel = timed(options) ? "weir_controller_timed"
									   : "weir_controller",
						  .blocks = blocks,
						  .threads = lanes,
						  .args = &args,
						  .args_bytes = sizeof(args),
						  .what = storage->uri });
}

void weir_device_controller_stop(struct weir_storage *storage)
{
	struct weir_device_controller *device_controller = storage->device_controller;

	if (!device_controller)
		return;
	weir_persistent_end(storage->context, &device_controller->persistent);
	(void)weir_memory_put(storage->context, device_controller->queues);
	(void)weir_memory_put(storage->context, device_controller->faults);
	(void)weir_memory_put(storage->context, device_controller->groups);
	(void)weir_memory_put(storage->context, device_controller->entries);
	(void)weir_memory_put(storage->context, device_controller->later);
	(void)weir_memory_put(storage->context, device_controller->rate);
	(void)weir_memory_put(storage->context, device_controller->medium);
	free(device_controller);
	storage->device_controller = NULL;
}
