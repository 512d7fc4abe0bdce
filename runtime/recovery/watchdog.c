/* SPDX-License-Identifier: BSD-3-Clause */
#include "watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/core/queue/cq.h>

#include "../storage/doorbells.h"
#include "../backend/error.h"
#include "tracker.h"
#include "recover.h"

enum {
	POLL_EVERY_MS = 25,
	POLLS_PER_LIMIT = 8,
	TRACKER_EVERY_MS = 250,
	TRACKER_COPIED_EVERY_MS = 1000,
	MOST_TIMEOUT_MS = 5000,
	MOST_RESTARTS = 5, /* in RESTARTS_WITHIN_S: more often than that nobody's reset is an accident */
	RESTARTS_WITHIN_S = 300,
	ALONE = 1, /* the mask of a wave of one lane */
};

/**
 * struct weir_watchdog - a thread, and how to end it
 * @shared: the host reaches the queue pairs by itself
 * @tracker: NULL: nobody looks at commands
 * @tracker_every_ns: between two looks at commands
 * @restarts: how often the controller had lost its enable
 * @restarted_ns: when, the last times
 */
struct weir_watchdog {
	struct weir_storage *storage;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool stop;
	bool shared;
	struct weir_tracker *tracker;
	uint64_t tracker_every_ns;
	uint64_t tracker_next_ns;
	unsigned restarts;
	uint64_t restarted_ns[MOST_RESTARTS];
};

static weir_status verdict(uint32_t csts)
{
	if (csts == UINT32_MAX)
		return WEIR_E_DEVICE_GONE;
	return csts & NVME_CSTS_FATAL ? WEIR_E_DEVICE_DEAD : WEIR_OK;
}

static int mark(struct weir_watchdog *watchdog, uint64_t queue, uint32_t status)
{
	struct weir_backend *backend = watchdog->storage->context->backend;
	uint64_t address = queue + offsetof(struct weir_queue, dead);

	if (!watchdog->shared)
		return backend->ops->h2d(backend, address, &status, sizeof(status));
	/* dead.Q0: pairs with dead.Q1 in core/queue/cq.h: the controller's last access to memory came before
	 */
	weir_store_u32_release_sys(weir_at(address, weir_shared_u32, 0), status);
	return 0;
}

/*
 * Whoever shares a cache with the storage goes on, in lines that its commands had: so it must not reach
 * memory any more. Nothing more is asked of it, not even when it is closed. Return: it does not.
 */
static bool keep_from_memory(struct weir_storage *storage, weir_status status)
{
	struct weir_transport *transport = storage->transport;

	if (!transport->ops->halt)
		return status == WEIR_E_DEVICE_GONE;
	storage->created = 0;
	storage->enabled = false;
	return transport->ops->halt(transport) == 0;
}

/*
 * End the commands of a dead storage, again and again, for some may be submitted just now. Lanes do that,
 * too, and alone where the host does not reach them; but lanes come upon such a command only while they wait
 * for what it keeps from them.
 */
static void end_commands(const struct weir_watchdog *watchdog)
{
	struct weir_storage *storage = watchdog->storage;

	for (uint32_t i = 0; i < storage->queue_count && watchdog->shared; i++)
		(void)weir_cq_reap(weir_at(storage->queues, struct weir_queue, i), ALONE);
}

static void condemn(struct weir_watchdog *watchdog, uint32_t csts, weir_status status)
{
	struct weir_storage *storage = watchdog->storage;
	uint32_t word;
	char text[80];
	int error = 0;

	weir_doorbells_halt(storage);
	word = keep_from_memory(storage, status) ? status : status | WEIR_QUEUE_UNSAFE;
	storage->dead = status;
	for (uint32_t i = 0; i < storage->queue_count; i++)
		error = mark(watchdog, storage->queues + i * sizeof(struct weir_queue), word) ? -EIO : error;
	weir_status_text(status, text);
	weir_report("storage \"%s\": %s (CSTS %#x); what was under way ends with that error%s. Close it, "
		    "and open it "
		    "again once it answers",
		    storage->uri, text, csts,
		    error ? ", or at its deadline, since its queues could not be marked" : "");
}

/* Sleep, unless it is over. */
static bool goes_on(struct weir_watchdog *watchdog)
{
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += POLL_EVERY_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&watchdog->mutex);
	while (!watchdog->stop && pthread_cond_timedwait(&watchdog->changed, &watchdog->mutex, &until) == 0)
		;
	stop = watchdog->stop;
	pthread_mutex_unlock(&watchdog->mutex);
	return !stop;
}

static uint32_t read_csts(const struct weir_watchdog *watchdog)
{
	struct weir_transport *transport = watchdog->storage->transport;

	return transport->ops->read32(transport, NVME_REGISTER_CSTS);
}

static struct weir_recovery recovery_of(struct weir_watchdog *watchdog)
{
	uint64_t answer_ns = watchdog->storage->answer_ns;
	uint64_t limit_ms = answer_ns ? answer_ns / 1000000 + 1 : MOST_TIMEOUT_MS;

	return (struct weir_recovery){ .storage = watchdog->storage,
				       .tracker = watchdog->tracker,
				       .shared = watchdog->shared,
				       .timeout_ms = limit_ms < MOST_TIMEOUT_MS ? (unsigned)limit_ms
										: MOST_TIMEOUT_MS };
}

/* What no recovery helped. */
static void lose(struct weir_watchdog *watchdog)
{
	uint32_t csts = read_csts(watchdog);
	weir_status status = verdict(csts);

	condemn(watchdog, csts, status == WEIR_OK ? WEIR_E_DEVICE_DEAD : status);
}

/* Note one more. Return: there were more than can be accidents. */
static bool too_often(struct weir_watchdog *watchdog)
{
	uint64_t now = weir_tracker_now_ns(),
		 *oldest = &watchdog->restarted_ns[watchdog->restarts % MOST_RESTARTS];

	if (watchdog->restarts >= MOST_RESTARTS && now - *oldest < (uint64_t)RESTARTS_WITHIN_S * 1000000000) {
		weir_report("storage \"%s\": somebody else resets its controller, or switches it off, "
			    "again and again: "
			    "more than %d times within %d s; it is not started again",
			    watchdog->storage->uri, MOST_RESTARTS, RESTARTS_WITHIN_S);
		return true;
	}
	*oldest = now;
	watchdog->restarts++;
	return false;
}

/* It is no longer enabled, though nobody here said so. Return: the storage lives. */
static bool enable(struct weir_watchdog *watchdog, uint32_t csts)
{
	struct weir_recovery recovery = recovery_of(watchdog);
	struct weir_transport *transport = watchdog->storage->transport;
	bool by_another_storage = transport->ops->was_reset && transport->ops->was_reset(transport);

	if ((by_another_storage || !too_often(watchdog)) && weir_recover_enable(&recovery, csts) == 0)
		return true;
	lose(watchdog);
	return false;
}

/* All ones are also what a function reads as while it is being reset: the transport waits until that is over.
 */
static bool is_there_after_all(struct weir_watchdog *watchdog)
{
	struct weir_transport *transport = watchdog->storage->transport;

	return transport->ops->restart && transport->ops->restart(transport) == 0 &&
	       read_csts(watchdog) != UINT32_MAX;
}

/* Return: the storage lives. */
static bool check_controller(struct weir_watchdog *watchdog)
{
	uint32_t csts = read_csts(watchdog);
	weir_status status = verdict(csts);

	if (status == WEIR_E_DEVICE_GONE && is_there_after_all(watchdog))
		return enable(watchdog, csts);
	if (status == WEIR_OK && !(csts & NVME_CSTS_READY))
		return enable(watchdog, csts);
	if (status != WEIR_OK)
		condemn(watchdog, csts, status);
	return status == WEIR_OK;
}

/* Of the oldest command of all. Return: the storage lives. */
static bool check_commands(struct weir_watchdog *watchdog)
{
	struct weir_storage *storage = watchdog->storage;
	struct weir_recovery recovery = recovery_of(watchdog);
	uint64_t now = weir_tracker_now_ns();
	struct weir_tracked_command oldest;

	if (!watchdog->tracker || now < watchdog->tracker_next_ns)
		return true;
	watchdog->tracker_next_ns = now + watchdog->tracker_every_ns;
	if (weir_tracker_poll(watchdog->tracker, &oldest) || !storage->answer_ns ||
	    oldest.age_ns <= storage->answer_ns)
		return true;
	if (weir_recover(&recovery, &oldest) == 0)
		return true;
	lose(watchdog);
	return false;
}

/*
 * A device's lanes would still store to the registers, whoever has the controller next: what is under way is
 * ended, and the device's mapping with it. This waits for kernels; requests that have ended do not keep them.
 */
static void take_registers_back(struct weir_watchdog *watchdog)
{
	struct weir_storage *storage = watchdog->storage;

	if (!weir_doorbells_mapped(storage))
		return;
	if (storage->dead == WEIR_OK)
		condemn(watchdog, read_csts(watchdog), WEIR_E_DEVICE_GONE);
	weir_doorbells_unmap(storage);
}

/* Sleep; then let the system have the controller, if it wants it: one that has failed, too. */
static bool next_poll(struct weir_watchdog *watchdog)
{
	struct weir_transport *transport = watchdog->storage->transport;

	if (!goes_on(watchdog))
		return false;
	if (transport->ops->wanted && transport->ops->wanted(transport))
		take_registers_back(watchdog);
	if (transport->ops->give_way)
		transport->ops->give_way(transport);
	return true;
}

static void *watch(void *argument)
{
	struct weir_watchdog *watchdog = argument;

	bool lives = true;

	while (next_poll(watchdog)) {
		lives = lives && watchdog->storage->dead == WEIR_OK && check_controller(watchdog) &&
			check_commands(watchdog);
		if (!lives)
			end_commands(watchdog);
	}
	return NULL;
}

/*
 * How often to look at commands: often enough for the limit, and seldom where it means copies. Where these
 * wait for kernels, never: a kernel that waits for the controller would keep this thread from looking at
 * that.
 */
static int prepare_polls(struct weir_watchdog *watchdog, bool alongside, uint64_t first_ticket)
{
	uint64_t most_ns =
		(watchdog->shared ? TRACKER_EVERY_MS : TRACKER_COPIED_EVERY_MS) * (uint64_t)1000000;
	uint64_t every_ns = watchdog->storage->answer_ns / POLLS_PER_LIMIT;

	watchdog->tracker_every_ns = every_ns && every_ns < most_ns ? every_ns : most_ns;
	/* For ages alone no queue pair is copied. */
	if (!watchdog->shared && (!watchdog->storage->answer_ns || !alongside))
		return 0;
	return weir_tracker_open(watchdog->storage, watchdog->shared, first_ticket, &watchdog->tracker);
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

int weir_watchdog_start(struct weir_storage *storage, uint64_t first_ticket)
{
	struct weir_backend *backend = storage->context->backend;
	struct weir_backend_properties properties = { .wave_lanes = 0 };
	struct weir_watchdog *watchdog;
	int error;

	if (storage->transport->device_controller.on)
		return 0;
	watchdog = calloc(1, sizeof(*watchdog));
	if (!watchdog)
		return weir_fail(ENOMEM, "storage \"%s\": no memory for its watchdog", storage->uri);
	backend->ops->properties(backend, &properties);
	watchdog->storage = storage;
	watchdog->shared = properties.shared_memory;
	error = -prepare_polls(watchdog, properties.copies_while_running, first_ticket);
	if (!error)
		error = start_thread(watchdog);
	if (error) {
		weir_tracker_close(watchdog->tracker);
		free(watchdog);
		return weir_fail(error, "storage \"%s\": cannot start its watchdog: %s", storage->uri,
				 strerror(error));
	}
	storage->watchdog = watchdog;
	return 0;
}

const struct weir_tracker *weir_watchdog_tracker(const struct weir_storage *storage)
{
	return storage->watchdog ? storage->watchdog->tracker : NULL;
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
	weir_tracker_close(watchdog->tracker);
	free(watchdog);
	storage->watchdog = NULL;
}
