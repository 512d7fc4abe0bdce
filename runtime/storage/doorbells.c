/* SPDX-License-Identifier: BSD-3-Clause */
#include "doorbells.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "../device/context.h"
#include "../backend/error.h"
#include "../base/idle.h"
#include "../recovery/tracker.h"

enum {
	SPINS = 100,   /* idle scans with a pause of the core */
	YIELDS = 1000, /* then with a yield; then with sleeps */
	WHY_BYTES = 256,
};

/**
 * struct weir_doorbells - of one storage
 * @mutex: around @pairs and @halted, and every scan
 * @words: what lanes store: two for each queue pair, SQ and CQ; 0: they ring registers
 * @pairs: two for each queue pair, as @words
 * @count: of @pairs, those in use
 * @rings: registers rung although they have a shadow
 * @halted: nothing is forwarded any more
 * @stop: the thread's
 * @registers: the host's mapping of registers that the device has mapped; NULL: it has not
 * @device: where lanes store to them; @register_bytes: how many
 * @unmapped: it has them mapped no longer
 * @why: the host forwards: why lanes do not ring themselves; "": it was asked for
 */
struct weir_doorbells {
	pthread_mutex_t mutex;
	pthread_t thread;
	bool started;
	uint64_t words;
	struct weir_forward *pairs;
	uint32_t count;
	weir_shared_u64 rings;
	bool halted;
	weir_shared_u32 stop;
	void *registers;
	uint64_t device;
	size_t register_bytes;
	bool unmapped;
	char why[WHY_BYTES];
};

/* Forward what lanes have rung. Return: how many words had changed. */
static unsigned scan(struct weir_doorbells *doorbells)
{
	unsigned changed = 0, rang = 0;

	pthread_mutex_lock(&doorbells->mutex);
	for (uint32_t i = 0; i < doorbells->count && !doorbells->halted; i++) {
		enum weir_forwarded did = weir_forward_step(&doorbells->pairs[i]);

		changed += did != WEIR_FORWARD_NOTHING;
		rang += did == WEIR_FORWARD_RANG && doorbells->pairs[i].shadow;
	}
	pthread_mutex_unlock(&doorbells->mutex);
	if (rang)
		(void)weir_add_u64_relaxed_sys(&doorbells->rings, rang); /* relaxed: read as a snapshot */
	return changed;
}

/* After @scans in a row that found nothing, the first of them at *since_ns. */
static void rest(unsigned scans, uint64_t *since_ns)
{
	uint64_t now;

	if (scans < SPINS) {
		weir_relax(0);
	} else if (scans < SPINS + YIELDS) {
		sched_yield();
		*since_ns = 0;
	} else {
		now = weir_tracker_now_ns();
		*since_ns = *since_ns ? *since_ns : now;
		nanosleep(&(struct timespec){ .tv_nsec = (long)weir_idle_pause_ns(now - *since_ns) }, NULL);
	}
}

static void *run(void *argument)
{
	struct weir_doorbells *doorbells = argument;
	uint64_t since_ns = 0;
	unsigned scans = 0;

	prctl(PR_SET_TIMERSLACK, 1000);                        /* else a sleep of a microsecond lasts fifty */
	while (!weir_load_u32_relaxed_sys(&doorbells->stop)) { /* joining orders the rest */
		if (scan(doorbells)) {
			scans = 0;
			continue;
		}
		rest(scans, &since_ns);
		if (scans < SPINS + YIELDS)
			scans++;
	}
	return NULL;
}

/* Words for @queues pairs, and a thread that forwards them. */
static int forward(struct weir_storage *storage, struct weir_doorbells *doorbells, uint32_t queues)
{
	int error = weir_memory_allocate(storage->context, 2 * sizeof(uint32_t) * (size_t)queues,
					 WEIR_MEMORY_HOST, &doorbells->words, NULL);

	if (error)
		return error;
	doorbells->pairs = calloc(2 * (size_t)queues, sizeof(*doorbells->pairs));
	if (!doorbells->pairs)
		return weir_fail(ENOMEM, "storage \"%s\": no memory for the doorbells of %u queues",
				 storage->uri, queues);
	error = pthread_create(&doorbells->thread, NULL, run, doorbells);
	if (error)
		return weir_fail(error,
				 "storage \"%s\": cannot start the thread that rings its doorbells: %s",
				 storage->uri, strerror(error));
	pthread_setname_np(doorbells->thread, "weir-doorbells");
	doorbells->started = true;
	return 0;
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + NVME_PAGE_BYTES - 1) & ~(size_t)(NVME_PAGE_BYTES - 1);
}

/* The host's mapping of the registers, for lanes that do not run on the host. The doorbells begin at a page
 * of their own. */
static int map(struct weir_storage *storage, struct weir_doorbells *doorbells, uint32_t queues)
{
	struct weir_transport *transport = storage->transport;
	struct weir_backend *backend = storage->context->backend;
	size_t pairs = transport->last_queue ? transport->last_queue : queues;
	size_t bytes = whole_pages(2 * (pairs + 1) * transport->doorbell_bytes);
	void *registers;
	int error;

	if (transport->ops->adopt &&
	    !transport->last_queue) /* another driver's: where its doorbells are is known pair by pair */
		return weir_fail(ENOTSUP, "the doorbells are another driver's, pair by pair");
	if (!backend->ops->map_registers)
		return weir_fail(ENOTSUP, "backend \"%s\" cannot map device registers", backend->ops->name);
	registers = (void *)(uintptr_t)transport->ops->doorbell(transport, 0);
	error = backend->ops->map_registers(backend, registers, bytes, &doorbells->device);
	if (error)
		return error;
	doorbells->registers = registers;
	doorbells->register_bytes = bytes;
	transport->keep_addresses = true; /* a driver may forget them later than we do */
	return 0;
}

/* Nobody asked for the thread: once per process it is said why there is one. */
static void notify(const struct weir_storage *storage, struct weir_doorbells *doorbells)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	snprintf(doorbells->why, sizeof(doorbells->why), "%s", weir_last_error());
	if (!atomic_flag_test_and_set(&said))
		weir_report("storage \"%s\": a host thread rings its doorbells: %s (doorbell=host asks for "
			    "that)",
			    storage->uri, doorbells->why);
}

/* What lanes of a device other than the host can do; @doorbells->why becomes why not. */
static int choose(struct weir_storage *storage, struct weir_doorbells *doorbells, uint32_t queues)
{
	enum weir_doorbell asked = storage->transport->doorbell;

	if (asked != WEIR_DOORBELL_HOST && map(storage, doorbells, queues) == 0)
		return 0;
	if (asked == WEIR_DOORBELL_LANES) {
		snprintf(doorbells->why, sizeof(doorbells->why), "%s", weir_last_error());
		return weir_fail(ENOTSUP,
				 "storage \"%s\": doorbell=lanes, but %s; leave it out, and a host thread "
				 "rings for the lanes",
				 storage->uri, doorbells->why);
	}
	if (asked == WEIR_DOORBELL_AUTO)
		notify(storage, doorbells);
	return forward(storage, doorbells, queues);
}

/* Lanes of the host ring where the transport says, and of any device at memory of the transport's, unless
 * otherwise asked for. */
static bool needs_nothing(const struct weir_storage *storage)
{
	const struct weir_transport *transport = storage->transport;
	struct weir_backend *backend = storage->context->backend;
	struct weir_backend_properties properties = { .wave_lanes = 0 };

	if (transport->doorbell == WEIR_DOORBELL_HOST || !transport->registers)
		return transport->doorbell != WEIR_DOORBELL_HOST;
	backend->ops->properties(backend, &properties);
	return properties.shared_memory && properties.map_registers.has;
}

int weir_doorbells_locate(struct weir_storage *storage, uint32_t queues)
{
	struct weir_doorbells *doorbells;

	if (needs_nothing(storage))
		return 0;
	doorbells = calloc(1, sizeof(*doorbells));
	if (!doorbells)
		return weir_fail(ENOMEM, "storage \"%s\": no memory for its doorbells", storage->uri);
	pthread_mutex_init(&doorbells->mutex, NULL);
	storage->forwarder = doorbells;
	if (!storage->transport->registers)
		return forward(storage, doorbells, queues);
	return choose(storage, doorbells, queues);
}

/* The transport's own. */
static uint64_t doorbell(const struct weir_storage *storage, unsigned index)
{
	struct weir_transport *transport = storage->transport;

	return transport->registers ? transport->ops->doorbell(transport, index)
				    : storage->doorbells + index * transport->doorbell_bytes;
}

uint64_t weir_doorbells_at(const struct weir_storage *storage, uint32_t index, unsigned which)
{
	const struct weir_doorbells *doorbells = storage->forwarder;
	unsigned number = 2 * weir_queue_id(storage, index) + which;

	if (!doorbells)
		return doorbell(storage, number);
	if (doorbells->registers)
		return doorbells->device + (uint64_t)number * storage->transport->doorbell_bytes;
	return doorbells->words + sizeof(uint32_t) * (2 * (uint64_t)index + which);
}

void weir_doorbells_add(struct weir_storage *storage, uint32_t index)
{
	struct weir_doorbells *doorbells = storage->forwarder;
	uint64_t id = weir_queue_id(storage, index);

	if (!doorbells || doorbells->registers)
		return;
	pthread_mutex_lock(&doorbells->mutex);
	for (unsigned which = 0; which < 2; which++)
		doorbells->pairs[2 * index + which] = (struct weir_forward){
			.word = weir_doorbells_at(storage, index, which),
			.doorbell = doorbell(storage, (unsigned)(2 * id + which)),
			.shadow = storage->shadow_memory
					  ? storage->shadow_memory +
						    (2 * id + which) * storage->transport->doorbell_bytes
					  : 0,
		};
	doorbells->count = 2 * index + 2;
	pthread_mutex_unlock(&doorbells->mutex);
}

bool weir_doorbells_forwarded(const struct weir_storage *storage)
{
	return storage->forwarder && !storage->forwarder->registers;
}

void weir_doorbells_begin(struct weir_storage *storage, uint32_t index)
{
	struct weir_doorbells *doorbells = storage->forwarder;

	if (!weir_doorbells_forwarded(storage))
		return;
	pthread_mutex_lock(&doorbells->mutex);
	weir_forward_begin(&doorbells->pairs[2 * index]);
	weir_forward_begin(&doorbells->pairs[2 * index + 1]);
	pthread_mutex_unlock(&doorbells->mutex);
}

void weir_doorbells_settle(struct weir_storage *storage)
{
	if (weir_doorbells_forwarded(storage))
		(void)scan(storage->forwarder);
}

void weir_doorbells_halt(struct weir_storage *storage)
{
	struct weir_doorbells *doorbells = storage->forwarder;

	if (!doorbells)
		return;
	pthread_mutex_lock(&doorbells->mutex);
	doorbells->halted = true;
	pthread_mutex_unlock(&doorbells->mutex);
}

bool weir_doorbells_mapped(const struct weir_storage *storage)
{
	return storage->forwarder && storage->forwarder->registers && !storage->forwarder->unmapped;
}

void weir_doorbells_unmap(struct weir_storage *storage)
{
	struct weir_doorbells *doorbells = storage->forwarder;
	struct weir_backend *backend = storage->context->backend;

	if (!weir_doorbells_mapped(storage))
		return;
	doorbells->unmapped = true;
	backend->ops->unmap_registers(backend, doorbells->registers, doorbells->register_bytes);
}

uint64_t weir_doorbells_rings(const struct weir_storage *storage)
{
	/* relaxed: a snapshot */
	return storage->forwarder ? weir_load_u64_relaxed_sys(&storage->forwarder->rings) : 0;
}

void weir_doorbells_end(struct weir_storage *storage)
{
	struct weir_doorbells *doorbells = storage->forwarder;

	if (!doorbells)
		return;
	weir_doorbells_unmap(storage);
	storage->forwarder = NULL;
	if (doorbells->started) {
		weir_store_u32_relaxed_sys(&doorbells->stop, 1); /* joining orders the rest */
		pthread_join(doorbells->thread, NULL);
	}
	(void)weir_memory_put(storage->context, doorbells->words);
	pthread_mutex_destroy(&doorbells->mutex);
	free(doorbells->pairs);
	free(doorbells);
}

const char *weir_doorbells_path(const struct weir_storage *storage)
{
	if (!storage->forwarder)
		return "";
	return storage->forwarder->registers ? ", doorbells rung by lanes"
					     : ", doorbells rung by a host thread";
}

const char *weir_doorbells_why(const struct weir_storage *storage)
{
	return storage->forwarder ? storage->forwarder->why : "";
}
