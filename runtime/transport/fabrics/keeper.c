/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keeper.c: the thread that keeps the association, one for each storage.
 *
 * Owns: the controller's phase and CSTS as the runtime sees them; admin commands; Keep Alive; how long a lost
 * controller is looked for. It may wait for the network, which a mover must not: it has the storage's mutex
 * meanwhile, and movers pass the storage by.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../../backend/error.h"
#include "../../backend/posted.h"
#include "../../base/timeout.h"
#include "paths.h"

enum {
	ADMIN_DOORBELLS = 2,
	NAP_NS = 100000000,        /* for Keep Alive and the like; all else wakes the thread */
	RESTLESS_NAP_NS = 1000000, /* while something is to be tried again before long */
	FIRST_PAUSE_MS = 100,      /* between two tries to connect */
	MOST_PAUSE_MS = 2000,
	MOST_FAILURES = 5, /* of starts in a row, by the controller's own word, where there is one path */
	MS = 1000000,
};

uint64_t nvmf_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool nvmf_stopping(const struct nvmf *nvmf)
{
	/* relaxed: whoever sees it late gives up late */
	return load_relaxed_u32(&nvmf->registers.stop) ||
	       load_relaxed_u32(&nvmf->registers.falls) != nvmf->falls_done;
}

void nvmf_keeper_wake(struct nvmf *nvmf)
{
	weir_sleeper_wake(&nvmf->sleeper);
}

/* fabrics.R2: pairs with the acquire load in transport_nvmf.c: what led to the new state is over. */
static void publish(struct nvmf *nvmf, u32 csts)
{
	store_release_u32(&nvmf->registers.csts, csts);
}

static void say(const struct nvmf *nvmf, const char *what)
{
	weir_report("storage \"%s\": %s", nvmf->uri, what);
}

/* Rings and requests are lanes' again, or their memory is somebody else's. */
static void forget(struct nvmf_queue *queue)
{
	for (u32 i = 0; i < queue->size && queue->requests; i++)
		queue->requests[i] = (struct nvmf_request){ .state = NVMF_FREE };
	queue->inflight = 0;
	queue->has_sq = queue->has_cq = false;
}

/* What was under way may still be carried out, by a controller that does not hear of the reset. */
static void hold_late(struct nvmf *nvmf)
{
	bool late = false;

	for (u32 i = 1; i < nvmf->queue_count; i++)
		late = late || nvmf_has_late(&nvmf->queues[i]);
	if (late)
		nvmf_hold_changes(nvmf, 0);
	nvmf->late_queue = 0;
}

static void reset(struct nvmf *nvmf, u32 falls)
{
	hold_late(nvmf);
	nvmf_dissociate(nvmf);
	for (unsigned i = 0; i < nvmf->keys.hosts.count; i++)
		if (nvmf_multipath_io(nvmf, i))
			(void)nvmf_multipath_end(nvmf, i);
	for (u32 i = 0; i < nvmf->queue_count; i++) {
		forget(&nvmf->queues[i]);
		store_relaxed_u32(&nvmf->doorbells[2 * i], 0); /* relaxed: fabrics.R2 orders it */
		store_relaxed_u32(&nvmf->doorbells[2 * i + 1], 0);
	}
	nvmf->enabled = nvmf->lost = nvmf->moving = nvmf->rerouted = nvmf->events_due = false;
	nvmf->event = 0;
	nvmf->lost_ns = nvmf->silent_ns = nvmf->rerouted_ns = 0;
	nvmf->resent_open = 0;
	nvmf->retry_delays = false;
	nvmf->falls_done = falls;
	store_release_u32(&nvmf->registers.connected, 0);
	publish(nvmf, 0);
}

static bool rings_usable(struct nvmf *nvmf, u32 entries)
{
	return entries >= 2 && entries <= NVMF_ADMIN_RING &&
	       weir_dma_view_find(&nvmf->view, load_relaxed_u64(&nvmf->registers.asq),
				  entries * sizeof(struct nvme_sqe)) &&
	       weir_dma_view_find(&nvmf->view, load_relaxed_u64(&nvmf->registers.acq),
				  entries * sizeof(struct nvme_cqe));
}

/* Return: as nvmf_associate(); a controller that does not get ready, or is not what lanes know, is left, and
 * another path is the next. */
static int start(struct nvmf *nvmf, u32 cc)
{
	int error = nvmf->associated ? 0 : nvmf_associate(nvmf);
	bool connected = !error;

	if (!error)
		error = nvmf_enable(nvmf, cc);
	if (!error && nvmf->began)
		error = nvmf_identify_again(nvmf);
	if (error && nvmf->began) {
		nvmf_path_refuse(nvmf, connected);
		nvmf_dissociate(nvmf);
	}
	return error;
}

static void give_up(struct nvmf *nvmf)
{
	weir_report("storage \"%s\": not connected again within %llu s, and given up: %s", nvmf->uri,
		    (unsigned long long)(nvmf->keys.ctrl_loss_ms / 1000), weir_last_error());
	publish(nvmf, UINT32_MAX);
}

/* It says itself that it has failed: nothing more is tried before another reset. */
static void fail_start(struct nvmf *nvmf)
{
	nvmf->enabled = true;
	weir_report("%s", weir_last_error());
	publish(nvmf, NVME_CSTS_FATAL);
}

/* It did not come of it: when to connect next, or never. @since_ns: of the first try. */
static void try_later(struct nvmf *nvmf, uint64_t since_ns)
{
	uint64_t now = nvmf_now_ns();

	if (nvmf->failures >= MOST_FAILURES && nvmf->keys.hosts.count == 1)
		fail_start(nvmf);
	else if (now - since_ns >= nvmf->keys.ctrl_loss_ms * MS)
		give_up(nvmf);
	nvmf->again_ns = now + nvmf->pause_ns;
	nvmf->pause_ns = nvmf->pause_ns * 2 < MOST_PAUSE_MS * (uint64_t)MS ? nvmf->pause_ns * 2
									   : MOST_PAUSE_MS * (uint64_t)MS;
}

/* A target that is away just when its controller was reset is looked for as one that went away before. */
static void away_after_reset(struct nvmf *nvmf)
{
	if (!nvmf->away_ns) {
		nvmf->away_ns = nvmf_now_ns();
		nvmf->pause_ns = FIRST_PAUSE_MS * (uint64_t)MS;
		weir_report("storage \"%s\": not connected after its reset: %s; trying again for %llu s",
			    nvmf->uri, weir_last_error(),
			    (unsigned long long)(nvmf->keys.ctrl_loss_ms / 1000));
	}
	try_later(nvmf, nvmf->away_ns);
}

static void enable(struct nvmf *nvmf, u32 cc)
{
	struct nvmf_queue *admin = &nvmf->queues[0];
	u32 entries = (load_relaxed_u32(&nvmf->registers.aqa) & 0xfff) +
		      1; /* relaxed, as the others: ordered by the load of CC (fabrics.R1) */
	int error = start(nvmf, cc);

	(void)weir_dma_view_refresh(nvmf->dma, &nvmf->view);
	if (error && nvmf_stopping(nvmf))
		return; /* reset or closed meanwhile: that is no failure */
	if (error && nvmf->began) {
		away_after_reset(nvmf);
		return;
	}
	if (!error && !rings_usable(nvmf, entries))
		error = weir_fail(EINVAL, "storage \"%s\": the admin queue's rings cannot be used",
				  nvmf->uri);
	if (error) {
		fail_start(nvmf);
		return;
	}
	nvmf->silent = false;           /* of a try to connect */
	nvmf->events_due = nvmf->began; /* an association knows nothing of the last one's requests */
	nvmf->enabled = nvmf->began = true;
	nvmf->away_ns = 0;
	nvmf->failures = 0;
	if (nvmf->keys.hosts.count == 1)
		nvmf_path_set(nvmf, 0, NVME_ANA_OPTIMIZED); /* until it says otherwise */
	nvmf_ring_open(admin, load_relaxed_u64(&nvmf->registers.asq), load_relaxed_u64(&nvmf->registers.acq),
		       entries);
	admin->has_sq = true;
	store_release_u32(&nvmf->registers.connected, 1);
	publish(nvmf, NVME_CSTS_READY);
}

static void shut_down(struct nvmf *nvmf, u32 cc, u32 csts)
{
	if (nvmf_shutdown(nvmf, cc) == 0) {
		publish(nvmf, (csts & ~NVME_CSTS_SHUTDOWN_MASK) | NVME_CSTS_SHUTDOWN_DONE);
		return;
	}
	if (nvmf->associated && !nvmf_stopping(nvmf))
		weir_report("%s", weir_last_error());
	publish(nvmf, csts | NVME_CSTS_FATAL);
}

static bool may_start(const struct nvmf *nvmf)
{
	return !nvmf->away_ns || nvmf_now_ns() >= nvmf->again_ns;
}

/* See whether the host asks for something by its registers. */
static bool control(struct nvmf *nvmf)
{
	/* fabrics.R1: pairs with write_cc() in transport_nvmf.c: the registers written before */
	u32 cc = load_acquire_u32(&nvmf->registers.cc);
	u32 falls = load_acquire_u32(&nvmf->registers.falls);
	u32 csts = load_relaxed_u32(&nvmf->registers.csts); /* relaxed: its own */

	if (csts == UINT32_MAX)
		return false;
	if (falls != nvmf->falls_done)
		reset(nvmf, falls);
	else if (!nvmf->enabled && (cc & NVME_CC_ENABLE) && may_start(nvmf))
		enable(nvmf, cc);
	else if (nvmf->enabled && (cc & NVME_CC_SHUTDOWN_MASK) &&
		 !(csts & (NVME_CSTS_SHUTDOWN_MASK | NVME_CSTS_FATAL)))
		shut_down(nvmf, cc, csts);
	else
		return false;
	return true;
}

/* A write that a silent controller may still carry out must not be sent by another way yet. */
static bool holds_writes(const struct nvmf *nvmf)
{
	for (u32 i = 1; i < nvmf->queue_count; i++) {
		const struct nvmf_queue *queue = &nvmf->queues[i];

		for (u32 j = 0; j < queue->size && queue->requests; j++)
			if (queue->requests[j].state == NVMF_HELD && queue->requests[j].way != NVMF_TO_HOST)
				return true;
	}
	return false;
}

/* There is no association: connect at @again_ns. */
static void begin_again(struct nvmf *nvmf, uint64_t now, uint64_t again_ns)
{
	store_release_u32(&nvmf->registers.connected, 0);
	nvmf->lost_ns = now;
	nvmf->pause_ns = FIRST_PAUSE_MS * (uint64_t)MS;
	nvmf->again_ns = again_ns;
	nvmf->silent = nvmf->moving = false;
	nvmf->late_queue = 0;
	nvmf->hold_ns = again_ns > nvmf->hold_ns ? again_ns : nvmf->hold_ns; /* a reset may come before it */
}

static void say_lost(const struct nvmf *nvmf, uint64_t wait_ms)
{
	char held[80] = "";

	if (wait_ms)
		snprintf(held, sizeof(held), "writes that it may still carry out wait for %llu ms; ",
			 (unsigned long long)wait_ms);
	weir_report("storage \"%s\": connection lost: %s; %strying to connect again for %llu s", nvmf->uri,
		    nvmf->reason, held, (unsigned long long)(nvmf->keys.ctrl_loss_ms / 1000));
}

/* The association is over: hold what lanes wait for, and connect again. */
static void lose(struct nvmf *nvmf)
{
	uint64_t now = nvmf_now_ns(), wait_ms;

	nvmf->lost = false;
	nvmf_dissociate(nvmf);
	if (nvmf->lost_ns) /* while it was being connected again */
		return;
	nvmf_path_set(nvmf, nvmf->host, NVMF_PATH_LOST);
	wait_ms = nvmf->silent && holds_writes(nvmf) ? nvmf_notice_ms(nvmf) : 0;
	begin_again(nvmf, now, now + wait_ms * MS);
	say_lost(nvmf, wait_ms);
}

static void say_lost_other(const struct nvmf *nvmf, unsigned host, const char *why, uint64_t wait_ms)
{
	char text[WEIR_ADDRESS_BYTES + 16], when[80] = "";

	if (wait_ms)
		snprintf(when, sizeof(when), " in %llu ms, since it may still carry out writes",
			 (unsigned long long)wait_ms);
	weir_report("storage \"%s\": path %s is lost: %s; its commands go by the others%s", nvmf->uri,
		    weir_address_text(&nvmf->keys.hosts.address[host], text), why, when);
}

/* Another path that carried commands is lost: those without an answer go by the rest. */
static void lose_other(struct nvmf *nvmf, unsigned host, uint64_t now)
{
	const struct nvmf *io = nvmf_multipath_io(nvmf, host);
	char why[NVMF_REASON_BYTES];
	bool silent, unanswered = io->silent;
	uint64_t wait_ms;

	snprintf(why, sizeof(why), "%s", io->lost ? io->reason : "its admin queue's connection ended");
	silent = nvmf_multipath_end(nvmf, host) == NVMF_SILENT;
	wait_ms = silent       ? nvmf_notice_ms(nvmf)
		  : unanswered ? nvmf->keys.keep_alive_ms + nvmf_notice_ms(nvmf)
			       : 0;
	wait_ms = holds_writes(nvmf) ? wait_ms : 0;
	nvmf_path_set(nvmf, host, NVMF_PATH_LOST);
	nvmf_hold_until(nvmf, now + wait_ms * MS);
	say_lost_other(nvmf, host, silent ? "no answer to Keep Alive" : why, wait_ms);
}

static void say_connected(struct nvmf *nvmf, unsigned before)
{
	char text[WEIR_ADDRESS_BYTES + 16];

	count_u64(&nvmf->counters.reconnects, 1);
	if (nvmf->keys.hosts.count == 1)
		nvmf_path_set(nvmf, 0, NVME_ANA_OPTIMIZED); /* until it says otherwise */
	if (nvmf->host != before)
		count_u64(&nvmf->counters.moves, 1);
	weir_report("storage \"%s\": connected again, to %s", nvmf->uri,
		    weir_address_text(&nvmf->keys.hosts.address[nvmf->host], text));
}

static void connect_again(struct nvmf *nvmf)
{
	/* relaxed: its own */
	unsigned before = (unsigned)load_relaxed_u64(&nvmf->counters.path);
	int error = nvmf_associate_again(nvmf);

	nvmf->lost = error ? false : nvmf->lost;
	if (!error) {
		nvmf->lost_ns = 0;
		nvmf->failures = 0;
		nvmf->silent = false; /* of a try to connect */
		say_connected(nvmf, before);
		store_release_u32(&nvmf->registers.connected, 1);
		return;
	}
	if (nvmf_stopping(nvmf))
		return;
	try_later(nvmf, nvmf->lost_ns);
}

/* Threads that were not here for long see what has come before they say that nothing did. */
static bool is_silent(struct nvmf *nvmf, uint64_t now)
{
	struct nvmf_queue *admin = &nvmf->queues[0];

	if (!nvmf->silent_ns || now - nvmf->silent_ns <= nvmf->keys.keep_alive_ms * MS)
		return false;
	admin->connection.readable = true; /* it may be */
	(void)nvmf_receive(admin);
	return nvmf->silent_ns && !nvmf->lost;
}

void nvmf_keep_alive(struct nvmf *nvmf, uint64_t now)
{
	const struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_KEEP_ALIVE };
	uint64_t limit = nvmf->keys.keep_alive_ms * MS;

	if (!limit || !nvmf->associated || nvmf->lost)
		return;
	if (is_silent(nvmf, now)) {
		nvmf->silent = true;
		nvmf_lose(nvmf, "no answer to Keep Alive for %llu ms",
			  (unsigned long long)nvmf->keys.keep_alive_ms);
		return;
	}
	if (now < nvmf->alive_ns || nvmf->silent_ns || !nvmf_room(&nvmf->queues[0]))
		return;
	nvmf->silent_ns = now;
	nvmf->alive_ns = now + limit / 2;
	nvmf_command_start(&nvmf->queues[0], NVMF_KEEP_ALIVE, &sqe, NULL, 0, NVMF_NO_DATA);
}

static bool any_sent(const struct nvmf *nvmf)
{
	for (u32 i = 0; i < nvmf->queue_count; i++) {
		const struct nvmf_queue *queue = &nvmf->queues[i];

		for (u32 j = 0; j < queue->size && queue->requests; j++)
			if (queue->requests[j].state == NVMF_SENT && queue->requests[j].carrier == queue)
				return true;
	}
	return false;
}

/* Another path is better: take nothing new, let this one end what it has, and go over. */
static void move_path(struct nvmf *nvmf, uint64_t now)
{
	nvmf->moving = true;
	if (any_sent(nvmf))
		return;
	say(nvmf, "moves to a better path");
	nvmf_dissociate(nvmf);
	begin_again(nvmf, now, now);
}

/* Which way commands go. */
static void choose_path(struct nvmf *nvmf, uint64_t now)
{
	if (nvmf_path_is_better(nvmf)) {
		move_path(nvmf, now);
		return;
	}
	nvmf->moving = false;
	if (!nvmf->rerouted || now < nvmf->retry_ns)
		return;
	nvmf->rerouted = false;
	nvmf_send_again(nvmf);
}

/* The controller's events. */
static void hear(struct nvmf *nvmf)
{
	u32 state = NVMF_PATH_UNKNOWN;

	if (nvmf->events_due)
		(void)nvmf_events_begin(nvmf); /* a failure loses the connection */
	else if (nvmf_events_take(nvmf, nvmf->controller.nsid, &state) == 0 && state != NVMF_PATH_UNKNOWN)
		nvmf_path_set(nvmf, nvmf->host, state);
}

/* What time brings. True: the controller is to be worked with. */
static bool care(struct nvmf *nvmf)
{
	uint64_t now = nvmf_now_ns();

	/* relaxed: its own; all ones have that bit, too */
	if (!nvmf->enabled || (load_relaxed_u32(&nvmf->registers.csts) & NVME_CSTS_FATAL))
		return false;
	nvmf_keep_alive(nvmf, now);
	if (nvmf->associated && !nvmf->lost && (nvmf->events_due || nvmf->event))
		hear(nvmf);
	for (unsigned i = 0; i < nvmf->keys.hosts.count; i++)
		if (nvmf_multipath_lost(nvmf, i))
			lose_other(nvmf, i, now);
	if (nvmf->lost)
		lose(nvmf);
	else if (nvmf->associated)
		choose_path(nvmf, now);
	if (nvmf->lost_ns && now >= nvmf->again_ns)
		connect_again(nvmf);
	return nvmf->associated;
}

/* What its next deadline allows: those of Keep Alive are a matter of halves. */
static uint64_t nap_ns(const struct nvmf *nvmf)
{
	uint64_t alive_ns = nvmf->keys.keep_alive_ms * MS / 8;

	if (!nvmf->associated || nvmf->moving || nvmf->rerouted)
		return RESTLESS_NAP_NS;
	return alive_ns && alive_ns < NAP_NS ? alive_ns : NAP_NS;
}

/* Return: how long it may sleep; 0: not at all. */
static uint64_t step(struct nvmf *nvmf)
{
	uint64_t ns;
	bool any;

	pthread_mutex_lock(&nvmf->mutex);
	any = control(nvmf);
	any = (care(nvmf) && nvmf_move(nvmf, true)) || any;
	any = nvmf->waited || any; /* what woke it then may have been for control() */
	nvmf->waited = false;
	ns = any || nvmf_ring_rung(&nvmf->queues[0]) ? 0 : nap_ns(nvmf);
	pthread_mutex_unlock(&nvmf->mutex);
	if (any) {
		weir_posted();
		nvmf_mover_wake(nvmf); /* which passed by, and does not know what came meanwhile */
	}
	return ns;
}

static void *run(void *argument)
{
	struct nvmf *nvmf = argument;

	while (!load_relaxed_u32(&nvmf->registers.stop)) { /* relaxed: joining orders the rest */
		uint64_t ns;

		weir_sleeper_begin(&nvmf->sleeper);
		ns = step(nvmf);
		if (ns)
			weir_sleeper_wait(&nvmf->sleeper, ns);
		weir_sleeper_end(&nvmf->sleeper);
	}
	return NULL;
}

int nvmf_keeper_start(struct nvmf *nvmf)
{
	int error;

	/* Of the admin queue the host rings, whoever rings the others. */
	weir_sleeper_attach(&nvmf->sleeper, nvmf->doorbells, ADMIN_DOORBELLS * sizeof(*nvmf->doorbells));
	error = pthread_create(&nvmf->keeper, NULL, run, nvmf);
	if (error)
		return weir_fail(error,
				 "storage \"%s\": cannot start the thread that keeps its connections: %s",
				 nvmf->uri, strerror(error));
	pthread_setname_np(nvmf->keeper, "weir-keeper");
	nvmf->started = true;
	return 0;
}

int nvmf_keeper_stop(struct nvmf *nvmf, unsigned ms)
{
	struct timespec until;

	nvmf_mover_leave(nvmf);
	if (!nvmf->started || nvmf->joined)
		return 0;
	until = weir_timeout_to_join(ms);
	store_relaxed_u32(&nvmf->registers.stop, 1); /* joining orders the rest */
	nvmf_keeper_wake(nvmf);
	nvmf->joined = pthread_timedjoin_np(nvmf->keeper, NULL, &until) == 0;
	return nvmf->joined ? 0 : -ETIMEDOUT;
}
