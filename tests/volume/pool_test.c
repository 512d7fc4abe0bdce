/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of buffers: lanes take and give back, the host adds memory. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/disk.h>
#include <weir/status.h>

#include "../rig/context.h"
#include "pool.h"

enum { LANES = 64, ROUNDS = 60, MIB = 1 << 20, PAGE = 1 << WEIR_POOL_PAGE_LOG2 };

/** struct outcome - sums over lanes, and the pool afterwards */
struct outcome {
	uint64_t got, refused, wrong, statuses;
	struct weir_pool_stats stats;
};

/** struct fixture - a context with a pool, and what lanes are given */
struct fixture {
	struct weir_context *context;
	struct weir_buffer_pool *pool;
	struct test_pool_args args;
	unsigned lanes;
};

static void must(int error)
{
	if (error)
		fail_msg("%s", weir_last_error());
}

static void open_pool(struct fixture *fixture, uint32_t width, unsigned lanes, uint64_t bytes, uint64_t most)
{
	struct weir_context_options options = { .size = sizeof(options), .wave_lanes = width };
	struct weir_pool_options pool = { .size = sizeof(pool), .bytes = bytes, .most_bytes = most };

	*fixture = (struct fixture){ .lanes = lanes };
	must(weir_context_open(test_context_name(), test_on_cpu() ? &options : NULL, &fixture->context));
	must(weir_pool_create(fixture->context, &pool, &fixture->pool));
	fixture->args.pool = weir_pool_address(fixture->pool);
	must(weir_alloc(fixture->context, lanes * 32, &fixture->args.results));
	must(weir_alloc(fixture->context, lanes * sizeof(weir_addr), &fixture->args.held));
}

static struct outcome ended(struct fixture *fixture)
{
	struct outcome outcome = { .stats = { .size = sizeof(outcome.stats) } };
	uint64_t results[LANES][4];

	must(weir_sync(fixture->context));
	must(weir_copy_from_device(fixture->context, results, fixture->args.results, fixture->lanes * 32));
	for (unsigned i = 0; i < fixture->lanes; i++) {
		outcome.got += results[i][0];
		outcome.refused += results[i][1];
		outcome.wrong += results[i][2];
		outcome.statuses += results[i][3];
	}
	must(weir_pool_stats(fixture->pool, &outcome.stats));
	must(weir_pool_destroy(fixture->pool));
	must(weir_context_close(fixture->context));
	assert_int_equal(outcome.wrong, 0);
	assert_int_equal(outcome.statuses, 0);
	return outcome;
}

static void launch(struct fixture *fixture, const char *kernel)
{
	must(weir_launch(fixture->context, kernel, (fixture->lanes + 31) / 32,
			 fixture->lanes < 32 ? fixture->lanes : 32, &fixture->args, sizeof(fixture->args)));
}

/* Sizes of all levels, of more memory than there is: somebody gets none, nobody another one's. */
static void test_nothing_twice_and_nothing_lost(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (unsigned most = 1; most <= 300; most = most * 6 + 13) {
			struct outcome outcome;
			struct fixture fixture;

			open_pool(&fixture, test_width(w), LANES, 3 * MIB, 0);
			fixture.args.rounds = ROUNDS;
			fixture.args.pages = most;
			launch(&fixture, "test_pool");
			outcome = ended(&fixture);
			assert_int_equal(outcome.got + outcome.refused, LANES * ROUNDS);
			assert_true(outcome.got > LANES);
			assert_int_equal(outcome.stats.free_bytes, 3 * MIB);
			assert_int_equal(outcome.stats.largest_bytes, 3 * MIB);
			assert_int_equal(outcome.stats.refused, outcome.refused);
			assert_int_equal(outcome.stats.regions, 1);
		}
}

/* Of a region all chunks are free, and none behind its end: 64 of them have a bit in each word. */
static void test_all_of_a_region_is_free(void **state)
{
	static const unsigned sizes[] = { 63, 64, 65, 128, 130 };

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct weir_pool_stats stats = { .size = sizeof(stats) };
		struct fixture fixture;

		open_pool(&fixture, test_width(0), 1, (uint64_t)sizes[i] * MIB, 0);
		must(weir_pool_stats(fixture.pool, &stats));
		must(weir_pool_destroy(fixture.pool));
		must(weir_context_close(fixture.context));
		assert_int_equal(stats.bytes, (uint64_t)sizes[i] * MIB);
		assert_int_equal(stats.free_bytes, (uint64_t)sizes[i] * MIB);
		assert_int_equal(stats.largest_bytes, (uint64_t)(sizes[i] < 64 ? sizes[i] : 64) * MIB);
	}
}

/** struct server - a thread that adds memory while a kernel runs, wherever launches wait for that */
struct server {
	struct weir_buffer_pool *pool;
	int growths, error;
	bool stop;
};

static void *serve(void *of)
{
	struct server *server = of;

	while (!server->error && !__atomic_load_n(&server->stop, __ATOMIC_RELAXED)) {
		int more = weir_pool_serve(server->pool, 1000);

		server->error = more < 0 ? more : 0;
		server->growths += more > 0 ? more : 0;
	}
	return NULL;
}

/* Lanes take their buffers, while the host adds memory @growths times, and give them back. */
static struct outcome hold(struct fixture *fixture, uint32_t bytes, int growths)
{
	struct server server = { .pool = fixture->pool };
	pthread_t thread;

	fixture->args.pages = bytes / PAGE;
	fixture->args.timeout_us = growths ? test_patient_us(10 * 1000 * 1000) : 1000;
	assert_int_equal(pthread_create(&thread, NULL, serve, &server), 0);
	launch(fixture, "test_pool_hold");
	must(weir_sync(fixture->context));
	__atomic_store_n(&server.stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(server.error, 0);
	assert_int_equal(server.growths, growths);
	launch(fixture, "test_pool_release");
	return ended(fixture);
}

/* 1 MiB, then 1, 2, 4 and 8 more: every lane has its MiB at the same time. */
static void test_it_doubles(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct outcome outcome;
		struct fixture fixture;

		open_pool(&fixture, test_width(w), 16, MIB, 16 * MIB);
		outcome = hold(&fixture, MIB, 4);
		assert_int_equal(outcome.got, 16);
		assert_int_equal(outcome.stats.bytes, 16 * MIB);
		assert_int_equal(outcome.stats.regions, 5);
		assert_int_equal(outcome.stats.free_bytes, 16 * MIB);
		assert_int_equal(outcome.stats.largest_bytes, 8 * MIB);
	}
}

/* It grows by more than its size where a lane wants more at once, and not past its limit. */
static void test_as_much_as_is_wanted(void **state)
{
	(void)state;
	for (unsigned most = 4; most <= 5; most++) {
		struct outcome outcome;
		struct fixture fixture;

		open_pool(&fixture, test_width(0), 1, MIB, most * (uint64_t)MIB);
		outcome = hold(&fixture, 4 * MIB, most == 5);
		assert_int_equal(outcome.got, most == 5);
		assert_int_equal(outcome.stats.refused, most == 4);
		assert_int_equal(outcome.stats.bytes, most == 5 ? 5 * MIB : MIB);
	}
}

static void test_what_is_refused(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct outcome outcome;
		struct fixture fixture;

		open_pool(&fixture, test_width(w), 16, 0, 0);
		fixture.args.pages = 3;
		fixture.args.timeout_us = test_patient_us(10 * 1000 * 1000);
		launch(&fixture, "test_pool_hold");
		launch(&fixture, "test_pool_refusals");
		launch(&fixture, "test_pool_release");
		fixture.args.given_back = 1;
		launch(&fixture, "test_pool_refusals");
		outcome = ended(&fixture);
		assert_int_equal(outcome.got, 16);
		assert_int_equal(outcome.stats.bytes, 8 * MIB);
		assert_int_equal(outcome.stats.free_bytes, 8 * MIB);
	}
}

static void refused(int result, const char *word)
{
	assert_int_equal(result, -EINVAL);
	assert_non_null(strstr(weir_last_error(), word));
}

static void test_host_calls(void **state)
{
	struct weir_pool_options much = { .size = sizeof(much), .bytes = (uint64_t)2 << 40 };
	struct weir_pool_options more = { .size = sizeof(more), .most_bytes = (uint64_t)2 << 40 };
	struct weir_pool_stats stats = { .size = sizeof(stats) };
	struct weir_buffer_pool *pool = NULL;
	struct weir_context *context;

	(void)state;
	must(weir_context_open(test_context_name(), NULL, &context));
	refused(weir_pool_create(context, &much, &pool), "at most");
	refused(weir_pool_create(context, &more, &pool), "at most");
	refused(weir_pool_create(NULL, NULL, &pool), "NULL");
	refused(weir_pool_create(context, NULL, NULL), "out");
	must(weir_pool_create(context, NULL, &pool));
	must(weir_pool_stats(pool, &stats));
	assert_true(stats.own_bytes < 50 * 1000);
	refused(weir_pool_stats(pool, NULL), "stats");
	assert_int_equal(weir_pool_serve(pool, 0), 0);
	must(weir_pool_destroy(pool));
	refused(weir_pool_destroy(pool), "closed");
	refused(weir_pool_serve(pool, 0), "closed");
	assert_int_equal(weir_pool_address(pool), 0);
	must(weir_pool_destroy(NULL));
	must(weir_pool_create(context, NULL, &pool));
	must(weir_context_close(context));
	refused(weir_pool_serve(pool, 0), "closed"); /* its memory went with the context */
	refused(weir_pool_stats(pool, &stats), "closed");
}

/* A read of a block into @buffer is under way in the first slot of the storage's first queue pair, or ended.
 */
static void put_read(struct weir_storage *storage, uint64_t buffer, bool under_way)
{
	struct weir_queue *queue;
	struct weir_slot *slot;
	struct weir_disk disk;

	must(weir_storage_disk(storage, &disk));
	queue = weir_at(disk.queues, struct weir_queue, 0);
	slot = weir_at(queue->slots, struct weir_slot, 0);
	slot->target = 0;
	slot->buffer = under_way ? buffer : 0;
	*weir_at(queue->sq, struct nvme_sqe, 0) = (struct nvme_sqe){ .cdw0 = NVME_OPCODE_READ };
	weir_store_u32_relaxed_sys(&slot->sequence, under_way);
}

/* Anywhere in any of its regions: it stays until the command has ended. */
static void test_no_pool_goes_under_commands(void **state)
{
	struct weir_pool_options options = { .size = sizeof(options), .bytes = MIB, .most_bytes = 3 * MIB };
	struct weir_storage *storage;
	struct weir_buffer_pool *pool;
	struct weir_context *context;
	struct weir_pool *lanes;

	(void)state;
	if (!test_on_cpu()) /* the host reaches no queues */
		return;
	must(weir_context_open(test_context_name(), NULL, &context));
	must(weir_storage_open(context, "virt:1M?block=512", NULL, &storage));
	must(weir_pool_create(context, &options, &pool));
	lanes = weir_at(weir_pool_address(pool), struct weir_pool, 0);
	weir_store_u64_relaxed_sys(weir_at(lanes->wanted, weir_shared_u64, 0), 2 * MIB);
	assert_int_equal(weir_pool_serve(pool, 0), 1);
	assert_int_equal(lanes->region_count.value_, 2);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t bytes = (uint64_t)lanes->regions[i].pages << WEIR_POOL_PAGE_LOG2;

		const uint64_t at[] = { 0, bytes / 2, bytes - 512 };

		for (size_t k = 0; k < sizeof(at) / sizeof(at[0]); k++) {
			put_read(storage, lanes->regions[i].data + at[k], true);
			assert_int_equal(weir_pool_destroy(pool), -EBUSY);
			assert_non_null(strstr(weir_last_error(), "is under way"));
		}
	}
	put_read(storage, 0, false);
	must(weir_pool_destroy(pool));
	must(weir_storage_close(storage));
	must(weir_context_close(context));
}

static __thread uint64_t napped_ns; /* by this thread */

int nanosleep(const struct timespec *time, struct timespec *left)
{
	napped_ns += (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
	return (int)syscall(SYS_nanosleep, time, left);
}

static void wish(struct weir_pool *lanes, uint64_t bytes)
{
	weir_store_u64_relaxed_sys(weir_at(lanes->wanted, weir_shared_u64, 0), bytes);
}

/* What a pool of @count regions of these chunks has besides data. */
static uint64_t own_bytes(const unsigned *chunks, unsigned count)
{
	uint64_t bytes = sizeof(struct weir_pool);

	for (unsigned i = 0; i < count; i++) {
		uint32_t pages = chunks[i] * WEIR_POOL_CHUNK_PAGES;

		for (uint32_t level = 0; level < WEIR_POOL_LEVELS; level++)
			bytes += weir_pool_level_words(pages, level) * sizeof(uint64_t);
		bytes += pages * sizeof(uint32_t);
	}
	return bytes;
}

/* A wish makes a pool grow once; one that there is no room for not at all, and it is not tried again. */
static void test_a_wish_is_heard_once(void **state)
{
	static const unsigned chunks[] = { 1, 2, 3 };
	struct weir_pool_options options = { .size = sizeof(options), .bytes = MIB, .most_bytes = 8 * MIB };
	struct weir_pool_stats stats = { .size = sizeof(stats) };
	struct weir_buffer_pool *pool;
	struct weir_context *context;
	struct weir_pool *lanes;

	(void)state;
	if (!test_on_cpu()) /* the host reaches no words of lanes */
		return;
	must(weir_context_open(test_context_name(), NULL, &context));
	must(weir_pool_create(context, &options, &pool));
	lanes = weir_at(weir_pool_address(pool), struct weir_pool, 0);
	for (unsigned i = 0; i < 3; i++) {
		must(weir_pool_stats(pool, &stats));
		assert_int_equal(stats.regions, i + 1);
		assert_int_equal(stats.own_bytes, own_bytes(chunks, i + 1));
		wish(lanes, i < 1 ? MIB + 1 : i < 2 ? 2 * MIB : 3 * MIB);
		assert_int_equal(weir_pool_serve(pool, 1000), i < 2);
		assert_int_equal(weir_load_u64_relaxed_sys(weir_at(lanes->wanted, weir_shared_u64, 0)), 0);
	}
	must(weir_pool_stats(pool, &stats));
	assert_int_equal(stats.regions, 3);
	assert_int_equal(stats.bytes, 6 * MIB);
	napped_ns = 0;
	assert_int_equal(weir_pool_serve(pool, 3000), 0);
	assert_true(napped_ns == 3000000);
	wish(lanes, 2 * MIB); /* the last that there is room for */
	assert_int_equal(weir_pool_serve(pool, 0), 1);
	must(weir_pool_stats(pool, &stats));
	assert_int_equal(stats.bytes, 8 * MIB);
	must(weir_pool_destroy(pool));
	must(weir_context_close(context));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_twice_and_nothing_lost),
		cmocka_unit_test(test_all_of_a_region_is_free),
		cmocka_unit_test(test_it_doubles),
		cmocka_unit_test(test_as_much_as_is_wanted),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_host_calls),
		cmocka_unit_test(test_no_pool_goes_under_commands),
		cmocka_unit_test(test_a_wish_is_heard_once),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return test_begins() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
