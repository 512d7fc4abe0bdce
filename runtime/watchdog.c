/* SPDX-License-Identifier: BSD-3-Clause */
#include "watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "error.h"

enum { LOOK_EVERY_MS = 25 };

/** struct weir_watchdog - a thread, and how to end it */
struct weir_watchdog {
	struct weir_storage *storage;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool stop;
	bool shared; /* the host reaches the queue pairs by itself */
};

static weir_status verdict(uint32_t csts)
{
	if (csts == UINT32_MAX)
		return WEIR_E_DEVICE_GONE;
	return csts & NVME_CSTS_FATAL ? WEIR_E_DEVICE_DEAD : WEIR_OK;
}

/* Relaxed: a flag that only ever rises (weir_disk_dead()). */
static int mark(struct weir_watchdog *watchdog, uint64_t queue, weir_status status)
{
	struct weir_backend *backend = watchdog->storage->context->backend;
	uint64_t address = queue + offsetof(struct weir_queue, dead);

	if (!watchdog->shared)
		return backend->ops->copy_in(backend, address, &status, sizeof(status));
	weir_store_u32_relaxed_sys(weir_at(address, weir_shared_u32, 0), status);
	return 0;
}

static void condemn(struct weir_watchdog *watchdog, uint32_t csts, weir_status status)
{
	struct weir_storage *storage = watchdog->storage;
	char text[80];
	int error = 0;

	for (uint32_t i = 0; i < storage->queue_count; i++)
		error = mark(watchdog, storage->queues + i * sizeof(struct weir_queue), status) ? -EIO : error;
	weir_status_text(status, text);
	fprintf(stderr, "weir: storage \"%s\": %s (CSTS %#x); what was under way ends with that error%s. Close it, and open it "
			"again once it answers\n", storage->uri, text, csts,
		error ? ", or at its deadline, since its queues could not be marked" : "");
}

/* Sleep, unless it is over. */
static bool goes_on(struct weir_watchdog *watchdog)
{
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_EVERY_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&watchdog->mutex);
	while (!watchdog->stop && pthread_cond_timedwait(&watchdog->changed, &watchdog->mutex, &until) == 0)
		;
	stop = watchdog->stop;
	pthread_mutex_unlock(&watchdog->mutex);
	return !stop;
}

static void *watch(void *argument)
{
	struct weir_watchdog *watchdog = argument;
	struct weir_transport *transport = watchdog->storage->transport;

	while (goes_on(watchdog)) {
		uint32_t csts = transport->ops->read32(transport, NVME_REGISTER_CSTS);
		weir_status status = verdict(csts);

		if (status == WEIR_OK)
			continue;
		condemn(watchdog, csts, status);
		break;
	}
	return NULL;
}

static int start_thread(struct weir_watchdog *watchdog)
{
	pthread_condattr_t monotonic;
	int error;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&watchdog->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&watchdog->mutex, NULL);
	error = pthread_create(&watchdog->thread, NULL, watch, watchdog);
	if (!error)
		pthread_setname_np(watchdog->thread, "weir-watchdog");
	return error;
}

int weir_watchdog_start(struct weir_storage *storage)
{
	struct weir_backend *backend = storage->context->backend;
	struct weir_backend_properties properties = { .wave_lanes = 0 };
	struct weir_watchdog *watchdog;
	int error;

	if (storage->transport->resident.on)
		return 0;
	watchdog = calloc(1, sizeof(*watchdog));
	if (!watchdog)
		return weir_fail(ENOMEM, "storage \"%s\": no memory for its watchdog", storage->uri);
	backend->ops->properties(backend, &properties);
	watchdog->storage = storage;
	watchdog->shared = properties.shared_memory;
	error = start_thread(watchdog);
	if (error) {
		free(watchdog);
		return weir_fail(error, "storage \"%s\": cannot start its watchdog: %s", storage->uri, strerror(error));
	}
	storage->watchdog = watchdog;
	return 0;
}

void weir_watchdog_stop(struct weir_storage *storage)
{
	struct weir_watchdog *watchdog = storage->watchdog;

	if (!watchdog)
		return;
	pthread_mutex_lock(&watchdog->mutex);
	watchdog->stop = true;
	pthread_cond_signal(&watchdog->changed);
	pthread_mutex_unlock(&watchdog->mutex);
	pthread_join(watchdog->thread, NULL);
	pthread_cond_destroy(&watchdog->changed);
	pthread_mutex_destroy(&watchdog->mutex);
	free(watchdog);
	storage->watchdog = NULL;
}
