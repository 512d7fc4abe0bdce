/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/thread.c: host threads that poll a controller.
 *
 * Owns: how an idle thread waits. A GPU's doorbell is a plain store that wakes
 * nobody, so the thread polls ever less often, but at least every 50 microseconds; with
 * commands in flight it only yields. Where the host rings it is woken (transport/sleeper.h).
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "../../backend/error.h"
#include "../../backend/posted.h"
#include "../../base/idle.h"
#include "../../base/timeout.h"
#include "parts.h"

enum {
	SPINS = 100,               /* idle polls with a pause */
	YIELDS = 1000,             /* then with a yield; then with sleeps, but while something is under way */
	BUSY_YIELDS = 10 * YIELDS, /* then also with sleeps: it is late, or held back by a fault */
	MANY = 4,                  /* commands in a medium */
	WOKEN_SLEEP_NS =
		2000 * 1000, /* of one that is woken; registers and other threads' messages wake nobody */
};

static void sleep_ns(u64 ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
}

/* Doorbells that were rung before the thread sleeps are served before. Later ones wake it, and so does
 * @descriptor. */
static void sleep_until_rung(struct virtual_host_thread *host, int descriptor, u64 most_ns)
{
	weir_sleeper_begin(&host->sleeper);
	if (!weir_virtual_poll(host->controller, host->index))
		weir_sleeper_wait_for(&host->sleeper, descriptor, most_ns);
	weir_sleeper_end(&host->sleeper);
}

/*
 * Much is under way in a medium that wakes its thread: who sleeps until the first of it ends is late for one
 * of many. Of few commands each is waited for, and to be woken takes as long as a fast SSD.
 * Return: its descriptor, or -1.
 */
static int medium_wakes(const struct virtual_host_thread *host)
{
	const struct weir_medium *medium = host->controller->options.medium;

	if (host->controller->threads[host->index].in_medium < MANY || !host->controller->options.woken ||
	    !medium->ops->descriptor)
		return -1;
	return medium->ops->descriptor(medium, host->index);
}

/* 0: there is something that cannot go on yet, and nothing wakes for it. */
static u64 wait_ns(const struct virtual_host_thread *host)
{
	u64 ns = weir_virtual_wait_ns(host->controller, host->index);

	return ns < WOKEN_SLEEP_NS ? ns : WOKEN_SLEEP_NS;
}

/* After @idle polls in a row that found nothing, the first that is followed by a sleep at *since_ns. */
static void back_off(struct virtual_host_thread *host, unsigned idle, bool busy, u64 *since_ns)
{
	int descriptor = idle < SPINS ? -1 : medium_wakes(host);
	u64 ns = descriptor < 0 ? 0 : wait_ns(host);

	if (idle == SPINS + YIELDS)
		*since_ns = weir_cpu_clock_ns();
	if (idle < SPINS) {
		relax_core();
	} else if (ns) {
		sleep_until_rung(host, descriptor, ns);
	} else if (idle < SPINS + (busy ? BUSY_YIELDS : YIELDS)) {
		sched_yield();
	} else {
		ns = weir_idle_pause_ns(weir_cpu_clock_ns() - *since_ns);
		if (host->controller->options.woken)
			sleep_until_rung(host, -1, busy ? ns : WOKEN_SLEEP_NS);
		else
			sleep_ns(ns);
	}
}

/* Leave nothing with the medium: it may know its requests by the thread that submitted them. */
static void settle(struct virtual_thread *thread)
{
	struct weir_medium *medium = thread->controller->options.medium;

	while (thread->in_medium)
		if (!medium->ops->poll(medium, thread->index))
			sched_yield();
}

static void *run(void *argument)
{
	struct virtual_host_thread *host = argument;
	struct weir_virtual *controller = host->controller;
	unsigned idle = 0;
	u64 since_ns = 0;

	prctl(PR_SET_TIMERSLACK, 1000); /* else a sleep of a microsecond lasts fifty */
	while (!load_relaxed_u32(&controller->stop)) {
		if (weir_virtual_poll(controller, host->index)) {
			idle = 0;
			weir_posted_more();
			continue;
		}
		if (idle == 0)
			weir_posted();
		back_off(host, idle, weir_virtual_busy(controller, host->index), &since_ns);
		if (idle < SPINS + BUSY_YIELDS)
			idle++;
	}
	settle(&controller->threads[host->index]);
	return NULL;
}

static int open_sleeper(struct virtual_host_thread *host)
{
	struct weir_virtual *controller = host->controller;
	int error = weir_sleeper_open(&host->sleeper);

	if (!error)
		weir_sleeper_attach(&host->sleeper, weir_virtual_doorbells(controller),
				    weir_virtual_doorbell_bytes(controller->options.max_queue_pairs));
	return error;
}

static int start_one(struct weir_virtual *controller, u32 index)
{
	struct virtual_host_thread *host = &controller->hosts[index];
	char name[16];
	int error;

	host->controller = controller;
	host->index = index;
	host->sleeper.file = -1;
	error = controller->options.woken ? open_sleeper(host) : 0;
	if (error)
		return error;
	error = pthread_create(&host->handle, NULL, run, host);
	if (error) {
		weir_sleeper_close(&host->sleeper);
		return weir_fail(error, "cannot start controller thread %u: %s", index, strerror(error));
	}
	snprintf(name, sizeof(name), "weir-virt-%u", index % 10000);
	pthread_setname_np(host->handle, name);
	return 0;
}

static void join(struct weir_virtual *controller, u32 count)
{
	store_relaxed_u32(&controller->stop, 1); /* joining orders the rest */
	for (u32 i = 0; i < count; i++) {
		if (!controller->hosts[i].joined)
			pthread_join(controller->hosts[i].handle, NULL);
		weir_sleeper_close(&controller->hosts[i].sleeper);
	}
	free(controller->hosts);
	controller->hosts = NULL;
}

int weir_virtual_start(struct weir_virtual *controller)
{
	u32 threads = controller->options.threads;

	if (controller->hosts)
		return weir_fail(EBUSY, "the controller's threads already run");
	controller->hosts = calloc(threads, sizeof(*controller->hosts));
	if (!controller->hosts)
		return weir_fail(ENOMEM, "no memory for %u controller threads", threads);
	store_relaxed_u32(&controller->stop, 0);
	for (u32 i = 0; i < threads; i++) {
		int error = start_one(controller, i);

		if (error) {
			join(controller, i);
			return error;
		}
	}
	return 0;
}

int weir_virtual_halt(struct weir_virtual *controller, unsigned ms)
{
	struct timespec until;
	bool all = true;

	if (!controller->hosts)
		return 0;
	until = weir_timeout_to_join(ms);
	store_relaxed_u32(&controller->stop, 1); /* joining orders the rest */
	for (u32 i = 0; i < controller->options.threads; i++) {
		struct virtual_host_thread *host = &controller->hosts[i];

		host->joined = host->joined || pthread_timedjoin_np(host->handle, NULL, &until) == 0;
		all = all && host->joined;
	}
	return all ? 0 : -ETIMEDOUT;
}

void weir_virtual_stop(struct weir_virtual *controller)
{
	if (controller->hosts)
		join(controller, controller->options.threads);
}
