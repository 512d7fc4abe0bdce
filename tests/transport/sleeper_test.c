/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sleeper_test.c: threads that sleep until a doorbell rings, and workers that sleep until something is
 * posted.
 *
 * A ring that is lost shows as a sleep that lasts as long as it may, which is a minute here.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/port.h>

#include "../rig/leaks.h"
#include "backend/posted.h"
#include "transport/sleeper.h"

enum {
	ROUNDS = 20000,
	RACES = 200000,
	MOST_RACES = 10 * RACES,
	CLOCK_EVERY = 64, /* rounds, at the clock */
	PAGE = 4096,
	LINE = 64,
	WORDS = PAGE / 4
};

static const uint64_t MINUTE_NS = 60 * (uint64_t)1000000000;

/* Of three pages, so that doorbells can lie across two; nobody else's lie in them. */
static _Alignas(PAGE) u32 doorbells[3 * WORDS];

static void ring(unsigned index, u32 value)
{
	weir_mmio_store_u32(WEIR_ADDR(&doorbells[index]), value);
}

/* How often @sleeper was woken since the last call. */
static unsigned wakes(const struct weir_sleeper *sleeper)
{
	uint64_t count = 0;

	return read(sleeper->file, &count, sizeof(count)) == sizeof(count) ? (unsigned)count : 0;
}

static unsigned asleep(unsigned index)
{
	return weir_cpu_pages[(WEIR_ADDR(&doorbells[index]) >> WEIR_CPU_PAGE_LOG2) % WEIR_CPU_PAGES].asleep;
}

static void one_is_woken_once_by_its_doorbells(void **state)
{
	struct weir_sleeper sleeper;

	(void)state;
	assert_int_equal(weir_sleeper_open(&sleeper), 0);
	weir_sleeper_attach(&sleeper, &doorbells[WORDS - 2], 4 * sizeof(u32)); /* two on each page */
	ring(WORDS - 2, 1);
	assert_int_equal(wakes(&sleeper), 0); /* awake: it polls */
	for (unsigned i = WORDS - 2; i < WORDS + 2; i++) {
		weir_sleeper_begin(&sleeper);
		assert_int_equal(asleep(i), 1);
		ring(WORDS - 3, i);
		ring(WORDS + 2, i);
		assert_int_equal(wakes(&sleeper), 0);
		ring(i, i);
		ring(i, i + 1);
		assert_int_equal(wakes(&sleeper), 1);
		weir_sleeper_end(&sleeper);
		assert_int_equal(asleep(i), 0);
		ring(i, i + 2);
		assert_int_equal(wakes(&sleeper), 0);
		assert_int_equal(doorbells[i], i + 2);
	}
	weir_sleeper_close(&sleeper);
}

static void those_of_one_page_are_answer_apart(void **state)
{
	struct weir_sleeper first, second;

	(void)state;
	assert_int_equal(weir_sleeper_open(&first), 0);
	assert_int_equal(weir_sleeper_open(&second), 0);
	weir_sleeper_attach(&first, &doorbells[0], 2 * sizeof(u32));
	weir_sleeper_attach(&second, &doorbells[2], 2 * sizeof(u32));
	weir_sleeper_begin(&first);
	weir_sleeper_begin(&second);
	assert_int_equal(asleep(0), 2);
	ring(1, 1);
	assert_int_equal(wakes(&first), 1);
	assert_int_equal(wakes(&second), 0);
	weir_sleeper_end(&first);
	ring(2, 1);
	assert_int_equal(wakes(&first), 0);
	assert_int_equal(wakes(&second), 1);
	weir_sleeper_end(&second);
	weir_sleeper_close(&first);
	weir_sleeper_close(&second);
	assert_int_equal(asleep(0), 0);
}

/* A mover has one eventfd for all of its storages, any of which may leave while it sleeps, or come. */
static void one_file_for_several(void **state)
{
	struct weir_sleeper owner, first, second;

	(void)state;
	assert_int_equal(weir_sleeper_open(&owner), 0);
	weir_sleeper_share(&first, owner.file);
	weir_sleeper_share(&second, owner.file);
	weir_sleeper_attach(&first, &doorbells[0], sizeof(u32));
	weir_sleeper_attach(&second, &doorbells[WORDS], sizeof(u32));
	weir_sleeper_begin(&first);
	weir_sleeper_begin(&second);
	ring(0, 1);
	ring(WORDS, 1);
	assert_int_equal(wakes(&owner), 2);
	weir_sleeper_end(&second);
	weir_sleeper_begin(&second);
	weir_sleeper_close(&first); /* while it sleeps */
	assert_int_equal(asleep(0), 0);
	ring(0, 2);
	assert_int_equal(wakes(&owner), 0);
	weir_sleeper_share(&first, owner.file);
	weir_sleeper_attach(&first, &doorbells[0], sizeof(u32));
	weir_sleeper_end(&first); /* it came meanwhile, and has not begun */
	assert_int_equal(asleep(0), 0);
	ring(WORDS, 2);
	assert_int_equal(wakes(&owner), 1);
	weir_sleeper_close(&first);
	weir_sleeper_close(&second);
	assert_int_equal(asleep(WORDS), 0);
	weir_sleeper_wake(&owner);
	assert_int_equal(wakes(&owner), 1);
	weir_sleeper_close(&owner);
	assert_int_equal(owner.file, -1);
	weir_sleeper_close(&owner);
}

/** struct dialogue - each side waits for the other's word; @last: the round behind which both end */
struct dialogue {
	struct weir_sleeper sleeper;
	unsigned late;
	u32 last;
	u32 answers;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Something else that wakes a sleeper is left as it is; a ring beside it is taken. */
static void a_descriptor_wakes_it_too(void **state)
{
	struct weir_sleeper sleeper;
	uint64_t count = 1, begin = now_ns();
	int other = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	(void)state;
	assert_true(other >= 0);
	assert_int_equal(weir_sleeper_open(&sleeper), 0);
	weir_sleeper_attach(&sleeper, doorbells, sizeof(u32));
	weir_sleeper_begin(&sleeper);
	assert_int_equal(write(other, &count, sizeof(count)), sizeof(count));
	weir_sleeper_wait_for(&sleeper, other, MINUTE_NS);
	assert_int_equal(read(other, &count, sizeof(count)), sizeof(count));
	ring(0, 1);
	weir_sleeper_wait_for(&sleeper, other, MINUTE_NS);
	assert_int_equal(wakes(&sleeper), 0);
	weir_sleeper_end(&sleeper);
	assert_true(now_ns() - begin < MINUTE_NS);
	weir_sleeper_close(&sleeper);
	close(other);
}

/* Where sleeps are counted nobody sleeps. */
static struct pollfd slept_for[2];
static struct timespec slept;
static bool sleeps_are_counted;

int __real_ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask);
int __wrap_ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask);

int __wrap_ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	if (!sleeps_are_counted)
		return __real_ppoll(files, count, timeout, mask);
	assert_int_equal(count, 2);
	memcpy(slept_for, files, sizeof(slept_for));
	slept = *timeout;
	return 0;
}

/* To the nanosecond, for the thread's own file and for whatever else it sleeps for. */
static void a_sleep_is_as_long_as_was_asked(void **state)
{
	static const uint64_t times_ns[] = { 0, 1, 999999999, 1000000000, 60500000007, (uint64_t)1 << 62 };
	struct weir_sleeper sleeper;

	(void)state;
	assert_int_equal(weir_sleeper_open(&sleeper), 0);
	sleeps_are_counted = true;
	for (unsigned i = 0; i < 2 * sizeof(times_ns) / sizeof(times_ns[0]); i++) {
		uint64_t ns = times_ns[i / 2];

		if (i % 2)
			weir_sleeper_wait_for(&sleeper, STDIN_FILENO, ns);
		else
			weir_sleeper_wait(&sleeper, ns);
		assert_true((uint64_t)slept.tv_sec == ns / 1000000000);
		assert_true((uint64_t)slept.tv_nsec == ns % 1000000000);
		assert_int_equal(slept_for[0].fd, sleeper.file);
		assert_int_equal(slept_for[1].fd, i % 2 ? STDIN_FILENO : -1);
		assert_int_equal(slept_for[0].events & slept_for[1].events, POLLIN);
	}
	sleeps_are_counted = false;
	weir_sleeper_close(&sleeper);
}

/* Its own file ends with it; another's does not. */
static void files_of_sleepers(void **state)
{
	struct weir_sleeper own, shares;
	unsigned files = test_files();

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(weir_sleeper_open(&own), 0);
		assert_int_equal(test_files(), files + 1);
		weir_sleeper_share(&shares, own.file);
		weir_sleeper_attach(&shares, doorbells, sizeof(u32));
		weir_sleeper_close(&shares);
		weir_sleeper_close(&shares); /* nothing is left to be closed */
		assert_int_equal(test_files(), files + 1);
		weir_sleeper_wake(&own);
		assert_int_equal(wakes(&own), 1);
		weir_sleeper_close(&own);
		assert_int_equal(own.file, -1);
		assert_int_equal(test_files(), files);
	}
}

static bool rung(u32 value)
{
	return __atomic_load_n(&doorbells[0], __ATOMIC_ACQUIRE) == value;
}

static bool is_late(const struct dialogue *dialogue)
{
	return __atomic_load_n(&dialogue->late, __ATOMIC_RELAXED);
}

static u32 last_of(const struct dialogue *dialogue)
{
	return __atomic_load_n(&dialogue->last, __ATOMIC_ACQUIRE);
}

static void *serve(void *argument)
{
	struct dialogue *dialogue = argument;

	for (u32 i = 1; i <= last_of(dialogue) && !is_late(dialogue); i++) {
		uint64_t begin = now_ns();

		while (!rung(i)) {
			weir_sleeper_begin(&dialogue->sleeper);
			if (!rung(i))
				weir_sleeper_wait(&dialogue->sleeper, MINUTE_NS);
			weir_sleeper_end(&dialogue->sleeper);
			if (now_ns() - begin >= MINUTE_NS)
				__atomic_store_n(&dialogue->late, 1, __ATOMIC_RELAXED);
		}
		__atomic_store_n(&dialogue->answers, i, __ATOMIC_RELEASE);
		weir_posted();
	}
	return NULL;
}

/* The other thread's store and its look at who sleeps, against ours: in each round either of us may be about
 * to sleep. Where each of us gets a processor now and then only, a minute's rounds are enough. */
static void no_ring_and_no_post_is_lost(void **state)
{
	struct dialogue dialogue = { .last = ROUNDS };
	uint64_t first = now_ns();
	pthread_t thread;
	unsigned late = 0;

	(void)state;
	doorbells[0] = 0;
	assert_int_equal(weir_sleeper_open(&dialogue.sleeper), 0);
	weir_sleeper_attach(&dialogue.sleeper, doorbells, sizeof(u32));
	assert_int_equal(pthread_create(&thread, NULL, serve, &dialogue), 0);
	for (u32 i = 1; i <= dialogue.last && !late && !is_late(&dialogue); i++) {
		uint64_t begin = now_ns();

		if (begin - first > MINUTE_NS) /* the other one waits for the ring, and has not gone beyond */
			__atomic_store_n(&dialogue.last, i, __ATOMIC_RELEASE);
		ring(0, i);
		while (__atomic_load_n(&dialogue.answers, __ATOMIC_ACQUIRE) != i && !late) {
			u32 number = weir_posted_begin();

			if (__atomic_load_n(&dialogue.answers, __ATOMIC_ACQUIRE) != i)
				weir_posted_wait(number, MINUTE_NS);
			weir_posted_end();
			late += now_ns() - begin >= MINUTE_NS;
		}
	}
	pthread_join(thread, NULL);
	weir_sleeper_close(&dialogue.sleeper);
	assert_int_equal(late, 0);
	assert_int_equal(dialogue.late, 0);
	assert_int_equal(dialogue.answers, dialogue.last);
}

/** struct race - two threads that begin each round together: one calls, the other is about to sleep */
struct race {
	struct weir_sleeper sleeper;
	u32 ready[2];
	_Alignas(LINE) u32 answer; /* a line of its own: its store takes a while */
	_Alignas(LINE) u32 over;
	unsigned lost;
};

/* Until the other one is here, too. Return: it was soon, so both have a processor. */
static bool meet(struct race *race, unsigned self, u32 number)
{
	unsigned i = 0;

	__atomic_store_n(&race->ready[self], number, __ATOMIC_SEQ_CST);
	for (; __atomic_load_n(&race->ready[!self], __ATOMIC_SEQ_CST) < number; i++)
		if (i > 1000)
			sched_yield();
	return i <= 1000;
}

/* So that it is not always the same one who is first. */
static void hesitate(u32 steps)
{
	for (volatile u32 i = 0; i < steps % 32; i++)
		;
}

static void *call(void *argument)
{
	struct race *race = argument;

	for (u32 i = 1; !race->over; i++) {
		(void)meet(race, 0, 4 * i);
		hesitate(i);
		ring(0, i);
		(void)meet(race, 0, 4 * i + 1);
		(void)meet(race, 0, 4 * i + 2);
		hesitate(i);
		__atomic_store_n(&race->answer, i, __ATOMIC_RELEASE);
		weir_posted();
		(void)meet(race, 0, 4 * i + 3);
	}
	return NULL;
}

/* Either the one sees the doorbell or the answer, or the other sees that it sleeps. */
static void one_of_two_sees_the_other(void **state)
{
	struct race race = { .lost = 0 };
	unsigned rings = 0, posts = 0; /* on a busy machine rounds that are none do not count */
	uint64_t first = now_ns();
	pthread_t thread;

	(void)state;
	doorbells[0] = 0;
	assert_int_equal(weir_sleeper_open(&race.sleeper), 0);
	weir_sleeper_attach(&race.sleeper, doorbells, sizeof(u32));
	assert_int_equal(pthread_create(&thread, NULL, call, &race), 0);
	for (u32 i = 1; !race.over; i++) {
		u32 number, again;
		bool seen;

		rings += meet(&race, 1, 4 * i);
		hesitate(i / 32);
		weir_sleeper_begin(&race.sleeper);
		seen = rung(i);
		(void)meet(&race, 1, 4 * i + 1);
		race.lost += !seen && !wakes(&race.sleeper);
		weir_sleeper_end(&race.sleeper);
		(void)wakes(&race.sleeper);
		posts += meet(&race, 1, 4 * i + 2);
		race.over = (rings >= RACES && posts >= RACES) || i == MOST_RACES ||
			    (i % CLOCK_EVERY == 0 && now_ns() - first > MINUTE_NS);
		hesitate(i / 32);
		number = weir_posted_begin();
		seen = __atomic_load_n(&race.answer, __ATOMIC_ACQUIRE) == i;
		(void)meet(&race, 1, 4 * i + 3);
		weir_posted_end();
		again = weir_posted_begin();
		weir_posted_end();
		race.lost += !seen && again == number;
	}
	pthread_join(thread, NULL);
	weir_sleeper_close(&race.sleeper);
	assert_int_equal(race.lost, 0);
}

static void nothing_is_waited_for_that_was_posted(void **state)
{
	uint64_t begin = now_ns();
	u32 number = weir_posted_begin();

	(void)state;
	weir_posted();
	weir_posted_wait(number, MINUTE_NS);
	weir_posted_end();
	assert_true(now_ns() - begin < MINUTE_NS);
	number = weir_posted_begin();
	weir_posted_end();
	weir_posted(); /* nobody is there to be woken */
	assert_int_equal(weir_posted_begin(), number);
	weir_posted_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_is_woken_once_by_its_doorbells),
		cmocka_unit_test(those_of_one_page_are_answer_apart),
		cmocka_unit_test(one_file_for_several),
		cmocka_unit_test(a_descriptor_wakes_it_too),
		cmocka_unit_test(a_sleep_is_as_long_as_was_asked),
		cmocka_unit_test(files_of_sleepers),
		cmocka_unit_test(no_ring_and_no_post_is_lost),
		cmocka_unit_test(one_of_two_sees_the_other),
		cmocka_unit_test(nothing_is_waited_for_that_was_posted),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("sleeper", tests, NULL, NULL);
}
