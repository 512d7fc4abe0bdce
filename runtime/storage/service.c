/* SPDX-License-Identifier: BSD-3-Clause */
#include "service.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weir/core/queue/cq.h>

#include "../device/context.h"
#include "../backend/error.h"
#include "../kernels/service.h"
#include "../device/persistent.h"

enum { BLOCK_LANES = 128, PULLING_WAVES = 16 };

/** struct weir_service - a kernel or a thread */
struct weir_service {
	struct weir_persistent persistent;
	pthread_t thread;
	bool threaded;
	weir_shared_u32 stop; /* the thread's */
	struct weir_storage *storage;
	uint32_t queue_count;
};

/* The host's own wave of one lane. */
static void *reap(void *argument)
{
	struct weir_service *service = argument;

	while (!weir_load_u32_relaxed_sys(&service->stop)) { /* joining orders the rest */
		u32 reaped = 0;

		for (u32 q = 0; q < service->queue_count; q++)
			reaped += weir_cq_reap(weir_at(service->storage->queues, struct weir_queue, q), 1);
		if (!reaped)
			weir_relax(0);
	}
	return NULL;
}

static int start_thread(struct weir_service *service)
{
	int error = pthread_create(&service->thread, NULL, reap, service);

	if (error)
		return weir_fail(error, "cannot start a service thread: %s", strerror(error));
	service->threaded = true;
	pthread_setname_np(service->thread, "weir-service");
	return 0;
}

static int start_kernel(struct weir_service *service, uint32_t waves, uint32_t lanes_per_wave)
{
	struct weir_context *context = service->storage->context;
	uint32_t per_block = BLOCK_LANES / lanes_per_wave;
	int error = weir_persistent_prepare(context, &service->persistent);
	struct weir_service_args args = { .queues = service->storage->queues,
					  .started = service->persistent.started,
					  .stop = service->persistent.stop,
					  .queue_count = service->queue_count };

	return error ? error
		     : weir_persistent_start(context, &service->persistent,
					     &(struct weir_persistent_launch){
						     .kernel = "weir_service",
						     .threads = BLOCK_LANES,
						     .blocks = (waves + per_block - 1) / per_block,
						     .args = &args,
						     .args_bytes = sizeof(args),
						     .what = service->storage->uri });
}

/* Only wanted if it can be had: whoever waits helps. Said once, for it may cost speed. */
static int do_without(struct weir_storage *storage)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		weir_report("storage \"%s\" has no service: %s; lanes that wait reap by themselves",
			    storage->uri, weir_last_error());
	weir_service_stop(storage);
	return 0;
}

int weir_service_start(struct weir_storage *storage)
{
	struct weir_backend *backend = storage->context->backend;
	struct weir_backend_properties properties = { .wave_lanes = 0 };
	uint32_t waves = storage->context->service_waves;
	bool wanted = waves != WEIR_SERVICE_WHERE_PULLED;
	struct weir_service *service;
	int error;

	if (!wanted)
		waves = storage->pull && backend->ops->serve ? PULLING_WAVES : 0;
	if (!waves)
		return 0;
	service = calloc(1, sizeof(*service));
	if (!service)
		return weir_fail(ENOMEM, "no memory for a service");
	service->storage = storage;
	service->queue_count = storage->queue_count;
	storage->service = service;
	backend->ops->properties(backend, &properties);
	if (backend->ops->serve) {
		error = start_kernel(service, waves, properties.wave_lanes);
		return error && !wanted ? do_without(storage) : error;
	}
	if (properties.shared_memory)
		return start_thread(service);
	return weir_fail(
		ENOTSUP,
		"service_waves=%u: %s neither runs kernels side by side nor shows the host its queues; "
		"leave it 0",
		waves, properties.name);
}

void weir_service_stop(struct weir_storage *storage)
{
	struct weir_service *service = storage->service;

	if (!service)
		return;
	if (service->threaded) {
		weir_store_u32_relaxed_sys(&service->stop, 1);
		pthread_join(service->thread, NULL);
	} else {
		weir_persistent_end(storage->context, &service->persistent);
	}
	free(service);
	storage->service = NULL;
}
