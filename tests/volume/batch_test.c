/* SPDX-License-Identifier: BSD-3-Clause */
/* Batched I/O of waves, on rings of several depths. WEIR_TEST_STORAGE may name a volume. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <weir/status.h>

#include "../rig/context.h"
#include "batch.h"

enum { LANES = 96, BLOCK_LANES = 32, ROUNDS = 6 };

/** struct fixture - a storage, a pool, batches; and what lanes say */
struct fixture {
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_buffer_pool *pool;
	struct test_batch_args args;
	uint64_t good, failed, wrong, given_up;
	struct weir_stats stats;
	struct weir_storage_info info;
};

static void must(int error)
{
	if (error)
		fail_msg("%s", weir_last_error());
}

static void open_batches(struct fixture *fixture, uint32_t width, uint32_t depth)
{
	struct weir_context_options context = { .size = sizeof(context), .wave_lanes = width };
	struct weir_storage_options storage = { .size = sizeof(storage), .queues = 2, .depth = depth };

	*fixture = (struct fixture){ .stats = { .size = sizeof(fixture->stats) },
				     .info = { .size = sizeof(fixture->info) } };
	context.service_waves = test_service();
	must(weir_context_open(test_context_name(), test_on_cpu() ? &context : NULL, &fixture->context));
	must(test_storage_open(fixture->context, "virt:8M?block=4096", &storage, &fixture->storage));
	must(weir_pool_create(fixture->context, NULL, &fixture->pool));
	must(weir_storage_disk(fixture->storage, &fixture->args.batches.disk));
	must(weir_alloc(fixture->context, LANES * sizeof(struct weir_batch), &fixture->args.batches.batches));
	must(weir_alloc(fixture->context, LANES * 32, &fixture->args.results));
	fixture->args.batches.pool = weir_pool_address(fixture->pool);
	fixture->args.batches.waves = LANES;
	fixture->args.rounds = ROUNDS;
}

/* Launch, and close. */
static void run(struct fixture *fixture, const char *kernel)
{
	struct weir_pool_stats pool = { .size = sizeof(pool) };
	uint64_t results[LANES][4];

	must(weir_launch(fixture->context, kernel, LANES / BLOCK_LANES, BLOCK_LANES, &fixture->args,
			 sizeof(fixture->args)));
	must(weir_sync(fixture->context));
	must(weir_copy_from_device(fixture->context, results, fixture->args.results, sizeof(results)));
	for (unsigned i = 0; i < LANES; i++) {
		fixture->good += results[i][0];
		fixture->failed += results[i][1];
		fixture->wrong += results[i][2];
		fixture->given_up += results[i][3];
	}
	must(weir_stats(fixture->storage, &fixture->stats));
	must(weir_storage_info(fixture->storage, &fixture->info));
	must(weir_pool_stats(fixture->pool, &pool));
	assert_int_equal(pool.free_bytes, pool.bytes);
	must(weir_pool_destroy(fixture->pool));
	must(weir_storage_close(fixture->storage));
	must(weir_context_close(fixture->context));
	assert_int_equal(fixture->wrong, 0);
	assert_int_equal(fixture->given_up, 0);
}

static void test_written_and_read_by_callbacks(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint32_t depth = 4; depth <= 128;
		     depth = depth * 8 > 128 && depth < 128 ? 128 : depth * 8) {
			struct fixture fixture;

			open_batches(&fixture, test_width(w), depth);
			run(&fixture, "test_batch");
			assert_int_equal(fixture.failed, 0);
			assert_int_equal(fixture.good, 2 * LANES * ROUNDS);
		}
}

static void test_synchronous_calls(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct fixture fixture;

		open_batches(&fixture, test_width(w), 16);
		run(&fixture, "test_batch_io");
		assert_int_equal(fixture.failed, 0);
		assert_true(fixture.good >= (uint64_t)LANES * ROUNDS);
	}
}

static void test_one_wait_for_all(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct fixture fixture;

		open_batches(&fixture, test_width(w), 256);
		run(&fixture, "test_batch_wait");
		assert_int_equal(fixture.failed, 0);
		assert_int_equal(fixture.good, LANES);
	}
}

static void test_refusals_come_back(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct fixture fixture;

		open_batches(&fixture, test_width(w), 16);
		fixture.args.past = 1;
		run(&fixture, "test_batch");
		assert_int_equal(fixture.good, 0);
		assert_int_equal(fixture.failed, LANES * ROUNDS);
	}
}

/* The paper has 128 requests in about 50 KB, besides the pool. */
static void test_memory_of_a_channel(void **state)
{
	struct fixture fixture;

	(void)state;
	open_batches(&fixture, test_width(0), 128);
	run(&fixture, "test_batch");
	if (!test_pull() && !test_given()) /* whose staging lies in host memory */
		assert_true(fixture.info.queue_bytes + 4 * sizeof(struct weir_batch) <= 50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written_and_read_by_callbacks),
		cmocka_unit_test(test_synchronous_calls),
		cmocka_unit_test(test_one_wait_for_all),
		cmocka_unit_test(test_refusals_come_back),
		cmocka_unit_test(test_memory_of_a_channel),
	};

	return test_begins() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
