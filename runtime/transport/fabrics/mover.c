/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mover.c: the threads between rings and sockets, which all nvmf: storages of the process share.
 *
 * Owns: how many there are: half as many as cores, so that those that poll for doorbells leave some to whom
 * they move for; which storage is whose; when a mover polls, yields and sleeps. It never waits for a storage:
 * one whose keeper is at work is passed by, and the keeper wakes the mover when it has done.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "../../backend/error.h"
#include "../../backend/posted.h"
#include "../../base/idle.h"
#include "paths.h"

enum {
	EVENTS = 64,
	MOST_MOVERS = 64,         /* that are woken, and as many that poll */
	YIELDS = 16,              /* idle rounds with commands under way, before the thread sleeps */
	BUSY_NAP_NS = 50000,      /* then, if a doorbell wakes nobody */
	WOKEN_NAP_NS = 100000000, /* but where whoever rings wakes it */
	PASSED_BY_NS = 1000000,   /* but where a storage's keeper was at work: its doorbells were not seen */
	QUEUE_BITS = 16,          /* of an event's number: the queue; above them the storage */
	PATH_SHIFT = 11,          /* in these: at which other path */
	MS = 1000000,
};

/**
 * struct nvmf_mover - a thread, and the storages that it moves for
 * @mutex: around the list of storages, and each round
 * @count: those that joined and are not forgotten; under the pool's mutex
 * @epoll: sockets of all of them, by number, and @wake's eventfd, whose number is 0
 * @wake: attached to no doorbell; each storage's ring has its file
 * @woken: of all of them: whoever rings wakes it
 */
struct nvmf_mover {
	pthread_mutex_t mutex;
	pthread_t thread;
	struct nvmf *first;
	unsigned count;
	int epoll;
	struct weir_sleeper wake;
	bool woken;
	struct shared_u32 stop;
};

/* @mutex: around all, and before a mover's own; @serial: of the last storage that came */
static struct {
	pthread_mutex_t mutex;
	struct nvmf_mover *movers[2 * MOST_MOVERS];
	u64 serial;
} pool = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static int wait_events(int epoll, struct epoll_event *events, uint64_t ns)
{
	const struct timespec timeout = { .tv_sec = (time_t)(ns / 1000000000u),
					  .tv_nsec = (long)(ns % 1000000000u) };
	int count = epoll_pwait2(epoll, events, EVENTS, &timeout, NULL);

	if (count < 0 && errno == ENOSYS) /* before Linux 5.11 */
		count = epoll_wait(epoll, events, EVENTS, (int)((ns + MS - 1) / MS));
	return count;
}

/* What epoll said of the connection. */
static void take_events(struct nvmf_queue *queue)
{
	struct nvmf_connection *connection = &queue->connection;
	/* relaxed: a bit that is missed now is there the next time */
	u32 bits = load_relaxed_u32(&queue->events) ? exchange_u32(&queue->events, 0) : 0;

	if (bits & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		connection->ending = true;
	if (bits & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		connection->readable = true;
	if (bits & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		connection->writable = true;
}

/* Of one without a mover, whose epoll is its own. */
static void poll_own(struct nvmf *nvmf, uint64_t ns)
{
	struct epoll_event events[EVENTS];
	int count = wait_events(nvmf->epoll, events, ns);

	for (int i = 0; i < count; i++) {
		struct nvmf_queue *queue = events[i].data.ptr;

		if (queue)
			(void)fetch_or_u32(&queue->events, events[i].events);
		else
			weir_sleeper_drain(&nvmf->sleeper);
	}
}

/* Has epoll said something that nobody has taken? */
static bool has_events(const struct nvmf *nvmf)
{
	for (u32 i = 0; i < nvmf->queue_count; i++)
		if (load_relaxed_u32(&nvmf->queues[i].events)) /* relaxed: or the next time */
			return true;
	return false;
}

void nvmf_poll(struct nvmf *nvmf, uint64_t ns)
{
	if (nvmf->mover)
		weir_sleeper_wait(&nvmf->sleeper, has_events(nvmf) ? 0 : ns);
	else
		poll_own(nvmf, ns);
	nvmf->waited = true;
	for (u32 i = 0; i < nvmf->queue_count; i++)
		take_events(&nvmf->queues[i]);
}

int nvmf_watch(struct nvmf_queue *queue, int file, uint32_t events)
{
	struct nvmf *nvmf = queue->nvmf;
	struct epoll_event event = { .events = events | EPOLLET, .data.ptr = queue };

	if (nvmf->mover)
		event.data.u64 = nvmf->serial << QUEUE_BITS | nvmf->number << PATH_SHIFT | queue->id;
	if (epoll_ctl(nvmf->mover ? nvmf->mover->epoll : nvmf->epoll, EPOLL_CTL_ADD, file, &event) == 0)
		return 0;
	return weir_fail(errno, "storage \"%s\": cannot wait for its connections: %s", nvmf->uri,
			 strerror(errno));
}

/* By the other paths what was given to them. */
static bool move_others(struct nvmf *nvmf)
{
	bool any = false;

	for (unsigned host = 0; host < nvmf->keys.hosts.count; host++) {
		struct nvmf *io = nvmf_multipath_io(nvmf, host);

		for (u32 i = 1; io && i < io->queue_count && !io->lost; i++) {
			if (!io->queues[i].connection.open)
				continue;
			take_events(&io->queues[i]);
			any = nvmf_send(&io->queues[i]) || any;
			any = nvmf_receive(&io->queues[i]) || any;
		}
	}
	return any;
}

bool nvmf_move(struct nvmf *nvmf, bool admin)
{
	bool any = false;

	for (u32 i = 0; i < nvmf->queue_count && !nvmf->lost; i++) {
		struct nvmf_queue *queue = &nvmf->queues[i];

		if (!queue->connection.open)
			continue;
		take_events(queue);
		if (i || admin)
			any = nvmf_ring_fetch(queue) || any;
		any = nvmf_send(queue) || any;
		any = nvmf_receive(queue) || any;
	}
	return move_others(nvmf) || any;
}

static u32 under_way(const struct nvmf *nvmf)
{
	u32 count = 0;

	for (u32 i = 0; i < nvmf->queue_count; i++)
		count += nvmf->queues[i].inflight;
	return count;
}

/** struct round - what a round over a mover's storages found: something moved, somebody was passed by; if
 * nothing moved of one that polls: something is under way */
struct round {
	bool any;
	bool busy;
	bool passed_by;
};

/* @any: something has come of it, so that there may be more for its keeper to do than before. */
static bool wants_keeper(const struct nvmf *nvmf, bool any)
{
	return nvmf->lost || nvmf_multipath_any_lost(nvmf) ||
	       (any && (nvmf->event || nvmf->events_due || nvmf->moving || nvmf->rerouted));
}

static void move_one(struct nvmf *nvmf, struct round *round)
{
	bool any = false;

	if (pthread_mutex_trylock(&nvmf->mutex) != 0) {
		round->passed_by = true;
		if (has_events(nvmf)) /* who has the mutex may wait for what epoll said to the mover alone */
			nvmf_keeper_wake(nvmf);
		return;
	}
	if (nvmf->enabled && (nvmf->associated || nvmf_multipath_any(nvmf))) {
		any = nvmf_move(nvmf, false);
		round->any = round->any || any;
		round->busy = round->busy || (!any && !nvmf->woken && under_way(nvmf));
		if (wants_keeper(nvmf, any))
			nvmf_keeper_wake(nvmf);
	}
	pthread_mutex_unlock(&nvmf->mutex);
}

static bool rung(const struct nvmf *nvmf)
{
	for (u32 i = 1; i < nvmf->queue_count; i++)
		if (nvmf_ring_rung(&nvmf->queues[i]))
			return true;
	return false;
}

static struct nvmf *find(const struct nvmf_mover *mover, u64 serial)
{
	struct nvmf *nvmf = mover->first;

	while (nvmf && nvmf->serial != serial)
		nvmf = nvmf->next;
	return nvmf;
}

/* At another path: who has its queues may not be a mover. */
static struct nvmf_queue *queue_of(struct nvmf *nvmf, u32 place)
{
	u32 number = place >> PATH_SHIFT;
	struct nvmf *of = number ? nvmf->paths[number - 1].io : nvmf;

	if (number && !nvmf_multipath_io(nvmf, number - 1))
		nvmf_keeper_wake(of);
	return &of->queues[place & ((1u << PATH_SHIFT) - 1)];
}

/* Of a storage that has left: nothing. */
static void note_event(struct nvmf_mover *mover, const struct epoll_event *event)
{
	struct nvmf *nvmf = find(mover, event->data.u64 >> QUEUE_BITS);

	if (nvmf)
		(void)fetch_or_u32(&queue_of(nvmf, event->data.u64 & ((1u << QUEUE_BITS) - 1))->events,
				   event->events);
	else if (!event->data.u64)
		weir_sleeper_drain(&mover->wake);
}

static void wait_for_events(struct nvmf_mover *mover, uint64_t ns)
{
	struct epoll_event events[EVENTS];
	int count = wait_events(mover->epoll, events, ns);

	pthread_mutex_lock(&mover->mutex);
	for (int i = 0; i < count; i++)
		note_event(mover, &events[i]);
	pthread_mutex_unlock(&mover->mutex);
}

static void move_all(struct nvmf_mover *mover, struct round *round)
{
	pthread_mutex_lock(&mover->mutex);
	for (struct nvmf *nvmf = mover->first; nvmf; nvmf = nvmf->next)
		move_one(nvmf, round);
	pthread_mutex_unlock(&mover->mutex);
}

/* Has a doorbell been rung since the last round? *@passed_by: one that could not be asked. */
static bool any_rung(struct nvmf_mover *mover, bool *passed_by)
{
	bool any = false;

	pthread_mutex_lock(&mover->mutex);
	for (struct nvmf *nvmf = mover->first; nvmf && !any; nvmf = nvmf->next) {
		if (pthread_mutex_trylock(&nvmf->mutex) != 0) {
			*passed_by = true;
			continue;
		}
		any = nvmf->enabled && nvmf->associated && !nvmf->lost && rung(nvmf);
		pthread_mutex_unlock(&nvmf->mutex);
	}
	pthread_mutex_unlock(&mover->mutex);
	return any;
}

static void for_each_ring(struct nvmf_mover *mover, void (*call)(struct weir_sleeper *sleeper))
{
	pthread_mutex_lock(&mover->mutex);
	for (struct nvmf *nvmf = mover->first; nvmf; nvmf = nvmf->next)
		call(&nvmf->ring);
	pthread_mutex_unlock(&mover->mutex);
}

/* Whoever rings wakes the thread: doorbells that were rung before it sleeps are seen before. */
static void sleep_woken(struct nvmf_mover *mover, bool passed_by)
{
	bool any;

	for_each_ring(mover, weir_sleeper_begin);
	any = any_rung(mover, &passed_by);
	wait_for_events(mover, any ? 0 : passed_by ? PASSED_BY_NS : WOKEN_NAP_NS);
	for_each_ring(mover, weir_sleeper_end);
}

/* Nobody wakes it: poll ever less often. */
static void sleep_polling(struct nvmf_mover *mover, const struct round *round, unsigned *idle,
			  uint64_t *since_ns)
{
	uint64_t now;

	if (round->busy) {
		if ((*idle)++ < YIELDS)
			sched_yield();
		wait_for_events(mover, *idle < YIELDS ? 0 : BUSY_NAP_NS);
		return;
	}
	now = nvmf_now_ns();
	*since_ns = *since_ns ? *since_ns : now;
	wait_for_events(mover, weir_idle_pause_ns(now - *since_ns));
}

static void *run(void *argument)
{
	struct nvmf_mover *mover = argument;
	uint64_t since_ns = 0;
	unsigned idle = 0;

	prctl(PR_SET_TIMERSLACK, 1000);           /* else a sleep of a microsecond lasts fifty */
	while (!load_relaxed_u32(&mover->stop)) { /* relaxed: joining orders the rest */
		struct round round = { .any = false };

		move_all(mover, &round);
		if (round.any) {
			idle = 0, since_ns = 0;
			weir_posted();
			if (mover->woken) /* those it moves for may have to share its core */
				sched_yield();
			wait_for_events(mover, 0);
		} else if (mover->woken) {
			sleep_woken(mover, round.passed_by);
		} else {
			sleep_polling(mover, &round, &idle, &since_ns);
		}
	}
	return NULL;
}

static unsigned most_movers(void)
{
	cpu_set_t set;
	unsigned cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
	unsigned most = cores / 2;

	return !most ? 1 : most < MOST_MOVERS ? most : MOST_MOVERS;
}

static void destroy(struct nvmf_mover *mover)
{
	weir_sleeper_close(&mover->wake);
	if (mover->epoll >= 0)
		(void)close(mover->epoll);
	pthread_mutex_destroy(&mover->mutex);
	free(mover);
}

static int start(struct nvmf_mover *mover)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 0 };
	int error = weir_sleeper_open(&mover->wake);

	if (error)
		return error;
	mover->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (mover->epoll < 0 || epoll_ctl(mover->epoll, EPOLL_CTL_ADD, mover->wake.file, &event) != 0)
		return weir_fail(errno, "cannot make what a mover thread waits on: %s", strerror(errno));
	error = pthread_create(&mover->thread, NULL, run, mover);
	if (error)
		return weir_fail(error, "cannot start a mover thread: %s", strerror(error));
	pthread_setname_np(mover->thread, "weir-mover");
	return 0;
}

static int create(bool woken, struct nvmf_mover **out)
{
	struct nvmf_mover *mover = calloc(1, sizeof(*mover));
	int error;

	if (!mover)
		return weir_fail(ENOMEM, "no memory for a mover thread");
	*mover = (struct nvmf_mover){ .epoll = -1, .wake.file = -1, .woken = woken };
	pthread_mutex_init(&mover->mutex, NULL);
	error = start(mover);
	if (error)
		destroy(mover);
	else
		*out = mover;
	return error;
}

/* Of those that are woken, or those that are not, the one with the fewest storages, or a place for another.
 */
static struct nvmf_mover **choose(bool woken)
{
	struct nvmf_mover **best = NULL, **place = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < 2 * MOST_MOVERS; i++) {
		struct nvmf_mover **at = &pool.movers[i];

		if (!*at) {
			place = place ? place : at;
		} else if ((*at)->woken == woken) {
			count++;
			best = best && (*best)->count <= (*at)->count ? best : at;
		}
	}
	return count < most_movers() ? place : best;
}

static void add(struct nvmf_mover *mover, struct nvmf *nvmf)
{
	size_t words = 2 * ((size_t)nvmf->queue_count - 1);

	nvmf->serial = ++pool.serial;
	nvmf->mover = mover;
	weir_sleeper_share(&nvmf->ring, mover->wake.file);
	if (mover->woken && words)
		weir_sleeper_attach(&nvmf->ring, nvmf->doorbells + 2, words * sizeof(*nvmf->doorbells));
	pthread_mutex_lock(&mover->mutex);
	nvmf->next = mover->first;
	mover->first = nvmf;
	mover->count++;
	pthread_mutex_unlock(&mover->mutex);
}

int nvmf_mover_join(struct nvmf *nvmf)
{
	struct nvmf_mover **at;
	int error = 0;

	pthread_mutex_lock(&pool.mutex);
	at = choose(nvmf->woken);
	if (!*at)
		error = create(nvmf->woken, at);
	if (!error)
		add(*at, nvmf);
	pthread_mutex_unlock(&pool.mutex);
	return error;
}

void nvmf_mover_leave(struct nvmf *nvmf)
{
	struct nvmf_mover *mover = nvmf->mover;
	struct nvmf **at;

	if (!mover)
		return;
	pthread_mutex_lock(&mover->mutex);
	for (at = &mover->first; *at && *at != nvmf; at = &(*at)->next)
		;
	if (*at) {
		*at = nvmf->next;
		weir_sleeper_close(&nvmf->ring);
	}
	pthread_mutex_unlock(&mover->mutex);
}

void nvmf_mover_forget(struct nvmf *nvmf)
{
	struct nvmf_mover *mover = nvmf->mover;

	if (!mover)
		return;
	nvmf_mover_leave(nvmf);
	nvmf->mover = NULL;
	pthread_mutex_lock(&pool.mutex);
	if (--mover->count == 0) {
		for (unsigned i = 0; i < 2 * MOST_MOVERS; i++)
			if (pool.movers[i] == mover)
				pool.movers[i] = NULL;
		store_relaxed_u32(&mover->stop, 1); /* joining orders the rest */
		weir_sleeper_wake(&mover->wake);
		pthread_join(mover->thread, NULL);
		destroy(mover);
	}
	pthread_mutex_unlock(&pool.mutex);
}

void nvmf_mover_wake(const struct nvmf *nvmf)
{
	if (nvmf->mover)
		weir_sleeper_wake(&nvmf->mover->wake);
}
