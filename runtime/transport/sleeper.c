/* SPDX-License-Identifier: BSD-3-Clause */
#include "sleeper.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <weir/port.h>

#include "../backend/error.h"

enum { SECOND_NS = 1000000000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* around the list, and whoever wakes by it */
static struct weir_sleeper *sleepers;

struct weir_cpu_page weir_cpu_pages[WEIR_CPU_PAGES];

/* Of the pages that its doorbells lie in: so many more threads. */
static void count(const struct weir_sleeper *sleeper, u32 sleepers, u32 asleep)
{
	uintptr_t number = sleeper->first >> WEIR_CPU_PAGE_LOG2;

	for (; number <= (sleeper->end - 1) >> WEIR_CPU_PAGE_LOG2; number++) {
		struct weir_cpu_page *page = &weir_cpu_pages[number % WEIR_CPU_PAGES];

		__atomic_fetch_add(&page->sleepers, sleepers, __ATOMIC_RELAXED);
		__atomic_fetch_add(&page->asleep, asleep, __ATOMIC_RELAXED);
	}
}

int weir_sleeper_open(struct weir_sleeper *sleeper)
{
	*sleeper = (struct weir_sleeper){ .file = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .owned = true };
	return sleeper->file >= 0 ? 0
				  : weir_fail(errno, "no eventfd for a thread that serves doorbells: %s",
					      strerror(errno));
}

void weir_sleeper_share(struct weir_sleeper *sleeper, int file)
{
	*sleeper = (struct weir_sleeper){ .file = file };
}

void weir_sleeper_attach(struct weir_sleeper *sleeper, const volatile void *doorbells, size_t bytes)
{
	sleeper->first = (uintptr_t)doorbells;
	sleeper->end = (uintptr_t)doorbells + bytes;
	pthread_mutex_lock(&mutex);
	sleeper->next = sleepers;
	sleepers = sleeper;
	pthread_mutex_unlock(&mutex);
	count(sleeper, 1, 0);
}

static void detach(const struct weir_sleeper *sleeper)
{
	struct weir_sleeper **at = &sleepers;

	pthread_mutex_lock(&mutex);
	while (*at != sleeper)
		at = &(*at)->next;
	*at = sleeper->next;
	pthread_mutex_unlock(&mutex);
}

void weir_sleeper_close(struct weir_sleeper *sleeper)
{
	weir_sleeper_end(sleeper);
	if (sleeper->end) {
		count(sleeper, (u32)-1, 0);
		detach(sleeper);
	}
	if (sleeper->owned && sleeper->file >= 0)
		close(sleeper->file);
	*sleeper = (struct weir_sleeper){ .file = -1 };
}

void weir_sleeper_begin(struct weir_sleeper *sleeper)
{
	if (!sleeper->end)
		return;
	sleeper->begun = true;
	__atomic_store_n(&sleeper->asleep, 1, __ATOMIC_RELAXED);
	count(sleeper, 0, 1);
	weir_cpu_fence(); /* sleeper.W1: pairs with sleeper.W0: who sleeps before the doorbells */
}

void weir_sleeper_end(struct weir_sleeper *sleeper)
{
	if (!sleeper->begun)
		return;
	sleeper->begun = false;
	__atomic_store_n(&sleeper->asleep, 0, __ATOMIC_RELAXED);
	count(sleeper, 0, (u32)-1);
}

void weir_sleeper_wait(struct weir_sleeper *sleeper, uint64_t ns)
{
	weir_sleeper_wait_for(sleeper, -1, ns);
}

void weir_sleeper_wait_for(struct weir_sleeper *sleeper, int descriptor, uint64_t ns)
{
	struct pollfd files[] = { { .fd = sleeper->file, .events = POLLIN },
				  { .fd = descriptor, .events = POLLIN } };
	struct timespec timeout = { .tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS) };

	if (ppoll(files, 2, &timeout, NULL) > 0 && files[0].revents)
		weir_sleeper_drain(sleeper);
}

void weir_sleeper_drain(const struct weir_sleeper *sleeper)
{
	uint64_t ignored;

	(void)!read(sleeper->file, &ignored, sizeof(ignored));
}

void weir_sleeper_wake(const struct weir_sleeper *sleeper)
{
	const uint64_t one = 1;

	(void)!write(sleeper->file, &one, sizeof(one)); /* full: it wakes anyway */
}

/* The caller has rung at @address. Of those that sleep, each is woken once. */
void weir_cpu_wake(u64 address)
{
	pthread_mutex_lock(&mutex);
	for (struct weir_sleeper *sleeper = sleepers; sleeper; sleeper = sleeper->next)
		if (address >= sleeper->first && address < sleeper->end &&
		    __atomic_exchange_n(&sleeper->asleep, 0, __ATOMIC_RELAXED))
			weir_sleeper_wake(sleeper);
	pthread_mutex_unlock(&mutex);
}
