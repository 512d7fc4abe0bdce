/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recovery/watchdog_times_test.c: how long the watchdog waits for a command, and how often it starts a
 * controller again that somebody else switches off. The test is the controller, and moves the clock, by which
 * the watchdog waits, too.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "backend/error.h"
#include "recovery/watchdog.h"

enum { DEPTH = 8, DEPTH_LOG2 = 3, MOST = 5, WITHIN_S = 300, POLLS = 40, MOST_WAITS = 1000 };

#define SECOND_NS ((uint64_t)1000000000)

static atomic_ullong now_ns, step_ns; /* the clock, and how much each wait of the watchdog takes */
static atomic_uint waits;             /* of the watchdog, which has seen what there is to see in a few */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	uint64_t now = atomic_load(&now_ns);

	(void)clock;
	*time = (struct timespec){ .tv_sec = (time_t)(now / SECOND_NS), .tv_nsec = (long)(now % SECOND_NS) };
	return 0;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
	(void)condition;
	(void)until;
	pthread_mutex_unlock(mutex);
	atomic_fetch_add(&waits, 1);
	sched_yield();
	atomic_fetch_add(&now_ns, atomic_load(&step_ns));
	pthread_mutex_lock(mutex);
	return ETIMEDOUT;
}

static struct weir_queue queue;
static struct weir_slot slots[DEPTH];
static struct nvme_cqe entries[DEPTH];
static uint8_t admin_memory[WEIR_ADMIN_MEMORY_BYTES];
static atomic_uint csts, halts, commands;
static atomic_ullong asked_ns; /* when the first admin command came */
static atomic_uint given_ms;   /* for it */
static bool starts, others; /* a reset starts it; it was another storage of the process that had it reset */

static uint32_t read32(struct weir_transport *transport, uint32_t offset)
{
	(void)transport;
	assert_int_equal(offset, NVME_REGISTER_CSTS);
	return atomic_load(&csts);
}

static int admin(struct weir_transport *transport, const struct nvme_sqe *command, unsigned ms,
		 uint32_t *result)
{
	(void)transport;
	(void)command;
	(void)result;
	if (atomic_fetch_add(&commands, 1) == 0) {
		atomic_store(&asked_ns, atomic_load(&now_ns));
		atomic_store(&given_ms, ms);
	}
	return weir_fail(EIO, "no answer");
}

static int reset(struct weir_transport *transport)
{
	(void)transport;
	if (!starts)
		return weir_fail(EIO, "no reset");
	atomic_store(&csts, NVME_CSTS_READY);
	return 0;
}

static bool was_reset(struct weir_transport *transport)
{
	(void)transport;
	return others;
}

static int halt(struct weir_transport *transport)
{
	(void)transport;
	atomic_fetch_add(&halts, 1);
	return 0;
}

static void properties(struct weir_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	*out = (struct weir_backend_properties){ .shared_memory = true };
}

static const struct weir_backend_ops backend_ops = { .size = sizeof(backend_ops), .properties = properties };
static const struct weir_transport_ops ops = { .size = sizeof(ops),
					       .read32 = read32,
					       .admin = admin,
					       .reset = reset,
					       .was_reset = was_reset,
					       .halt = halt };
static struct weir_backend backend = { .ops = &backend_ops };
static struct weir_context context = { .backend = &backend, .shared_memory = true };
static struct weir_transport transport = { .ops = &ops };
static uint64_t ring_address, slot_address;
static struct weir_storage storage;

/* With @queues queue pairs, one or none. */
static void begin(uint32_t queues, uint64_t answer_ns)
{
	atomic_store(&now_ns, 5000 * SECOND_NS);
	atomic_store(&step_ns, 0);
	atomic_store(&csts, NVME_CSTS_READY);
	atomic_store(&halts, 0);
	atomic_store(&commands, 0);
	starts = others = false;
	memset(&queue, 0, sizeof(queue));
	memset(slots, 0, sizeof(slots));
	queue.slots = slot_address = WEIR_ADDR(slots);
	queue.cq = WEIR_ADDR(entries);
	ring_address = queue.cq - weir_queue_cq_offset(DEPTH);
	queue.depth = DEPTH;
	queue.depth_log2 = DEPTH_LOG2;
	storage = (struct weir_storage){ .context = &context,
					 .transport = &transport,
					 .uri = (char *)"test:",
					 .queues = WEIR_ADDR(&queue),
					 .queue_count = queues,
					 .depth = DEPTH,
					 .created = queues,
					 .answer_ns = answer_ns,
					 .rings = &ring_address,
					 .slots = &slot_address,
					 .admin = { .transport = &transport, .memory = admin_memory },
					 .enabled = true };
}

/* @not_yet for so many waits of the watchdog at most, however long each takes. */
#define watchdog_has(not_yet, most)                                                                          \
	do {                                                                                                 \
		unsigned begun_ = atomic_load(&waits), were_ = begun_;                                       \
		for (; (not_yet); were_ = atomic_load(&waits)) {                                             \
			if (were_ - begun_ > (most))                                                         \
				fail_msg("the watchdog does nothing about it");                              \
			sched_yield();                                                                       \
		}                                                                                            \
	} while (0)

/* A command that gets no answer is recovered from when its time is over: not before, and a poll or two later
 * at most. Each step has as long, but five seconds at most. */
static void test_a_command_has_its_time(void **state)
{
	static const struct {
		uint64_t answer_ms;
		unsigned step_ms;
	} rows[] = { { 400, 401 },   { 2000, 2001 },  { 4999, 5000 },
		     { 5000, 5000 }, { 60000, 5000 }, { 86400000, 5000 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t answer_ns = rows[i].answer_ms * 1000000, step = answer_ns / POLLS, waited;

		begin(1, answer_ns);
		weir_store_u32_relaxed_sys(&slots[0].sequence, 1);
		weir_store_u64_relaxed_sys(&queue.tail, 1);
		weir_store_u64_relaxed_sys(&queue.committed, 1);
		atomic_store(&step_ns, step);
		waited = atomic_load(&now_ns);
		assert_int_equal(weir_watchdog_start(&storage, 0), 0);
		watchdog_has(!atomic_load(&halts), 4 * POLLS);
		weir_watchdog_stop(&storage);
		assert_int_equal(storage.dead, WEIR_E_DEVICE_DEAD);
		waited = atomic_load(&asked_ns) - waited;
		/* It is polled eight times at least in that time, or every 250 ms. */
		assert_in_range(waited, answer_ns, answer_ns + 3 * step + answer_ns / 8);
		assert_int_equal(atomic_load(&given_ms), rows[i].step_ms);
		assert_int_equal(weir_load_u64_relaxed_sys(&storage.recovered.late), 1);
	}
}

/* It is switched off, @apart_s after the last time. */
static void switch_off(unsigned apart_s)
{
	atomic_fetch_add(&now_ns, apart_s * SECOND_NS);
	atomic_store(&csts, 0);
}

static void started(unsigned times)
{
	watchdog_has(weir_load_u64_relaxed_sys(&storage.recovered.resets) < times, MOST_WAITS);
	assert_int_equal(weir_load_u64_relaxed_sys(&storage.recovered.resets), times);
}

static void end(bool lives)
{
	weir_watchdog_stop(&storage);
	assert_int_equal(storage.dead, lives ? WEIR_OK : WEIR_E_DEVICE_DEAD);
	assert_int_equal(atomic_load(&halts), !lives);
}

/* Accidents that are far enough apart are accidents, however many there have been. */
static void test_accidents_that_are_far_apart(void **state)
{
	(void)state;
	begin(0, 0);
	starts = true;
	assert_int_equal(weir_watchdog_start(&storage, 0), 0);
	for (unsigned times = 1; times <= 4 * MOST; times++) {
		switch_off(WITHIN_S / MOST + 1);
		started(times);
	}
	end(true);
}

/* More than five within five minutes are none, also where others lie further back. */
static void test_accidents_that_are_none(void **state)
{
	(void)state;
	for (unsigned before = 0; before < 2 * MOST; before += MOST - 1) {
		begin(0, 0);
		starts = true;
		assert_int_equal(weir_watchdog_start(&storage, 0), 0);
		for (unsigned times = 1; times <= before; times++) {
			switch_off(WITHIN_S + 1);
			started(times);
		}
		atomic_fetch_add(&now_ns, WITHIN_S * SECOND_NS);
		for (unsigned times = 1; times <= MOST; times++) {
			switch_off(WITHIN_S / MOST - 1);
			started(before + times);
		}
		switch_off(WITHIN_S / MOST - 1);
		watchdog_has(!atomic_load(&halts), MOST_WAITS);
		end(false);
		assert_int_equal(weir_load_u64_relaxed_sys(&storage.recovered.resets), before + MOST);
	}
}

/* What other storages of the process have reset is no accident of this one's, and does not count. */
static void test_resets_of_other_storages(void **state)
{
	(void)state;
	begin(0, 0);
	starts = others = true;
	assert_int_equal(weir_watchdog_start(&storage, 0), 0);
	for (unsigned times = 1; times <= 4 * MOST; times++) {
		switch_off(0);
		started(times);
	}
	end(true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_command_has_its_time),
		cmocka_unit_test(test_accidents_that_are_far_apart),
		cmocka_unit_test(test_accidents_that_are_none),
		cmocka_unit_test(test_resets_of_other_storages),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("watchdog_times", tests, NULL, NULL);
}
