/* SPDX-License-Identifier: BSD-3-Clause */
#include "resident.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "context.h"
#include "error.h"
#include "kernels/controller.h"

enum { BLOCK_LANES = 128, START_SECONDS = 10 };

struct weir_resident {
	void *service;
	weir_shared_u32 *started; /* in memory that the host sees, too */
	uint64_t started_address;
	uint64_t stop; /* in the device's: every wave keeps looking at it */
	uint64_t queues;
	uint64_t medium;
};

int weir_resident_doorbells(struct weir_storage *storage, uint32_t queues)
{
	const struct weir_backend_ops *ops = storage->context->backend->ops;

	if (!ops->serve)
		return weir_fail(ENOTSUP,
				 "storage \"%s\": on=device needs a device that runs kernels side by side, which %s "
				 "does not; leave it out",
				 storage->uri, ops->name);
	return weir_alloc(storage->context, (queues + 1) * 2 * sizeof(uint32_t), &storage->doorbells);
}

/* The queue pairs as the controller sees them. */
static int describe_queues(struct weir_storage *storage, uint32_t count, uint64_t *address)
{
	struct weir_context *context = storage->context;
	size_t bytes = count * sizeof(struct weir_controller_queue);
	struct weir_controller_queue *queues = calloc(count, sizeof(*queues));
	int error = queues ? weir_alloc(context, bytes, address) :
			     weir_fail(ENOMEM, "storage \"%s\": no memory for %u queues", storage->uri, count);

	for (uint32_t i = 0; !error && i < count; i++) {
		struct weir_queue queue;

		error = weir_copy_out(context, &queue, storage->queues + i * sizeof(queue), sizeof(queue));
		queues[i] = (struct weir_controller_queue){
			.sq = queue.sq, .cq = queue.cq, .sq_doorbell = queue.sq_doorbell,
			.cq_doorbell = queue.cq_doorbell, .depth = queue.depth, .depth_log2 = queue.depth_log2,
			.id = queue.id, .head = (uint32_t)(weir_load_u64_relaxed_sys(&queue.reap) >> 1),
		};
	}
	if (!error)
		error = weir_copy_in(context, *address, queues, bytes);
	free(queues);
	return error;
}

static int allocate(struct weir_storage *storage, struct weir_resident *resident, uint32_t count)
{
	struct weir_context *context = storage->context;
	const struct weir_resident_options *options = &storage->transport->resident;
	uint64_t bytes = storage->space.blocks << storage->space.block_log2;
	void *host;
	int error = weir_memory_allocate(context, sizeof(weir_shared_u32), WEIR_MEMORY_RING, &resident->started_address,
					 &host);

	if (error)
		return error;
	resident->started = host;
	error = weir_alloc(context, sizeof(weir_shared_u32), &resident->stop);
	if (!error && options->data)
		error = weir_memory_allocate(context, bytes,
					     options->host_medium ? WEIR_MEMORY_RING : WEIR_MEMORY_DEVICE,
					     &resident->medium, NULL);
	return error ? error : describe_queues(storage, count, &resident->queues);
}

/* A device that is full does not begin; better to say so than to wait for ever. */
static int wait_started(struct weir_storage *storage, struct weir_resident *resident)
{
	for (unsigned i = 0; i < START_SECONDS * 1000; i++) {
		if (weir_load_u32_acquire_sys(resident->started))
			return 0;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return weir_fail(ETIMEDOUT,
			 "storage \"%s\": its controller did not begin within %d s; is the device full of other kernels?",
			 storage->uri, START_SECONDS);
}

int weir_resident_start(struct weir_storage *storage, uint32_t queues)
{
	struct weir_backend *backend = storage->context->backend;
	const struct weir_resident_options *options = &storage->transport->resident;
	struct weir_backend_properties properties = { .numa_node = -1 };
	struct weir_resident *resident = calloc(1, sizeof(*resident));
	struct weir_controller_args args;
	uint32_t waves_per_block, blocks;
	int error;

	if (!resident)
		return weir_fail(ENOMEM, "storage \"%s\": no memory", storage->uri);
	storage->resident = resident;
	error = allocate(storage, resident, queues);
	if (error)
		return error;
	backend->ops->properties(backend, &properties);
	waves_per_block = BLOCK_LANES / properties.wave_lanes;
	blocks = (options->waves + waves_per_block - 1) / waves_per_block;
	args = (struct weir_controller_args){
		.queues = resident->queues, .medium = resident->medium,
		.started = resident->started_address, .stop = resident->stop, .blocks = storage->space.blocks,
		.queue_count = queues, .block_log2 = storage->space.block_log2, .no_data = !options->data,
	};
	error = backend->ops->serve(backend, "weir_controller", blocks, waves_per_block * properties.wave_lanes, &args,
				    sizeof(args), &resident->service);
	return error ? error : wait_started(storage, resident);
}

void weir_resident_stop(struct weir_storage *storage)
{
	struct weir_resident *resident = storage->resident;
	struct weir_backend *backend = storage->context->backend;

	if (!resident)
		return;
	if (resident->service) {
		uint32_t stop = 1;

		(void)weir_copy_in(storage->context, resident->stop, &stop, sizeof(stop));
		backend->ops->serve_end(backend, resident->service);
	}
	(void)weir_free(storage->context, resident->queues);
	(void)weir_free(storage->context, resident->medium);
	(void)weir_free(storage->context, resident->stop);
	(void)weir_free(storage->context, resident->started_address);
	free(resident);
	storage->resident = NULL;
}
