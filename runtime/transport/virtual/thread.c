/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/thread.c: host threads that poll a controller.
 *
 * Owns: how an idle thread waits. A doorbell is a plain store that wakes
 * nobody, so it looks ever less often, but at least every 50 microseconds; with
 * commands in flight it only yields.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "../../backend/error.h"
#include "parts.h"

enum {
	SPINS = 100,   /* idle polls with a pause */
	YIELDS = 1000, /* then with a yield */
	SLEEP_NS_MAX = 50 * 1000,
	SLEEP_NS_STEP = 500, /* then with sleeps, each longer than the last by this */
};

static void sleep_ns(long ns)
{
	struct timespec duration = { .tv_nsec = ns };

	nanosleep(&duration, NULL);
}

static void back_off(unsigned idle, bool busy)
{
	long ns = ((long)idle - SPINS - YIELDS) * SLEEP_NS_STEP;

	if (idle < SPINS)
		relax_core();
	else if (busy || idle < SPINS + YIELDS)
		sched_yield();
	else
		sleep_ns(ns < SLEEP_NS_MAX ? ns + 1 : SLEEP_NS_MAX);
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

	prctl(PR_SET_TIMERSLACK, 1000); /* else a sleep of 50 us lasts 100 */
	while (!load_relaxed_u32(&controller->stop)) {
		if (weir_virtual_poll(controller, host->index)) {
			idle = 0;
			continue;
		}
		back_off(idle, weir_virtual_busy(controller, host->index));
		if (idle < SPINS + YIELDS + SLEEP_NS_MAX / SLEEP_NS_STEP)
			idle++;
	}
	settle(&controller->threads[host->index]);
	return NULL;
}

static int start_one(struct weir_virtual *controller, u32 index)
{
	struct virtual_host_thread *host = &controller->hosts[index];
	char name[16];
	int error;

	host->controller = controller;
	host->index = index;
	error = pthread_create(&host->handle, NULL, run, host);
	if (error)
		return weir_fail(error, "cannot start controller thread %u: %s", index, strerror(error));
	snprintf(name, sizeof(name), "weir-virt-%u", index % 10000);
	pthread_setname_np(host->handle, name);
	return 0;
}

static void join(struct weir_virtual *controller, u32 count)
{
	store_relaxed_u32(&controller->stop, 1); /* joining orders the rest */
	for (u32 i = 0; i < count; i++)
		if (!controller->hosts[i].joined)
			pthread_join(controller->hosts[i].handle, NULL);
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
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
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
