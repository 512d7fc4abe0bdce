/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that the controller refuses for now: how often they are submitted again, and what is told at last.
 */
#include <time.h>

#include <weir/status.h>

#include "retry.h"
#include "../cache/writer_rig.h"
#include "../rig/hurry.h"

enum { LANES = 70, RETRIES = 3, NOT_READY = NVME_STATUS_NAMESPACE_NOT_READY };

/** struct outcome - what the lanes were told, and what it took */
struct outcome {
	uint64_t results[LANES][2];
	struct weir_stats stats;
	int sync;
};

static const char *const operation[TEST_WAYS] = { "read",  "write", "flush", "read", "read", "read", "read",
						  "write", "write", "read",  "read", "read", "read" };

static void refused(int result, int error, const char *word, const char *other)
{
	assert_int_equal(result, error);
	assert_non_null(strstr(weir_last_error(), word));
	assert_non_null(strstr(weir_last_error(), other));
}

/* What a lane is told of a command that ended with @code: that, and no mark of whoever else knows. */
static uint64_t status_with(uint32_t code)
{
	return (uint32_t)WEIR_STATUS_NVME | (uint32_t)WEIR_GROUP_REQUEST | code;
}

static struct weir_stats stats_now(struct rig *rig)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	must(weir_stats(rig->storages[0], &stats));
	return stats;
}

/* A rig whose storage's commands of @way fail as @fault says; writes only after the rig's own. */
static void open_refusing(struct rig *rig, uint32_t width, unsigned way, const char *fault)
{
	char text[128];

	snprintf(text, sizeof(text), "&retries=%d&fault=status:op=%s:%s%s", RETRIES, operation[way], fault,
		 strcmp(operation[way], "write") ? "" : ":after=1");
	open_rig(rig, (struct shape){ .width = width, .fault = text });
	rig->shape.fault = "";
}

/* @timeout_us: of the lanes' waits; 0: the storage's. */
static struct outcome request_within(struct rig *rig, unsigned way, unsigned lanes, uint64_t timeout_us)
{
	struct test_retry_args args = { .way = way };
	struct weir_stats before = stats_now(rig);
	struct outcome outcome;

	memset(&outcome, 0xff, sizeof(outcome));
	must(weir_storage_disk(rig->storages[0], &args.disk));
	open_writer(rig, 8, 0, &args.writer);
	if (timeout_us) {
		args.disk.timeout_ns = timeout_us * 1000;
		must(test_hurry(rig->context, &args.writer.array, 0, timeout_us));
	}
	must(weir_alloc(rig->context, LANES * 512, &args.buffers));
	must(weir_alloc(rig->context, LANES * sizeof(struct weir_event), &args.events));
	must(weir_alloc(rig->context, sizeof(outcome.results), &args.results));
	must(weir_launch(rig->context, "test_retry", 1, lanes, &args, sizeof(args)));
	outcome.sync = weir_sync(rig->context);
	must(test_hurry(rig->context, &args.writer.array, 0, rig->shape.timeout_us)); /* no more */
	must(weir_copy_from_device(rig->context, outcome.results, args.results, sizeof(outcome.results)));
	outcome.stats = stats_now(rig);
	outcome.stats.commands -= before.commands;
	outcome.stats.failed -= before.failed;
	outcome.stats.retried -= before.retried;
	return outcome;
}

static struct outcome request(struct rig *rig, unsigned way, unsigned lanes)
{
	return request_within(rig, way, lanes, 0);
}

/* What is on the storage afterwards is not what the rig thinks. */
static void close_refusing(struct rig *rig)
{
	must(weir_cache_destroy(rig->cache));
	close_storages(rig);
}

static uint64_t first_word(struct rig *rig)
{
	uint64_t word;

	memcpy(&word, rig->model, sizeof(word));
	return word;
}

static void check_words(struct rig *rig, const struct outcome *outcome, unsigned way, unsigned lanes)
{
	for (unsigned lane = 0; lane < lanes; lane++) {
		assert_int_equal(outcome->results[lane][0], WEIR_OK);
		if (way == TEST_WAY_READ || (way >= TEST_WAY_LOAD && way <= TEST_WAY_AHEAD) ||
		    way >= TEST_WAY_WAIT)
			assert_int_equal(outcome->results[lane][1], first_word(rig));
	}
}

static void test_as_often_as_allowed(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (unsigned way = 0; way < TEST_WAYS; way++)
			for (unsigned times = 1; times <= RETRIES; times += RETRIES - 1) {
				struct outcome outcome;
				struct rig rig;
				char fault[64];

				snprintf(fault, sizeof(fault), "code=0x82:count=%u", times);
				open_refusing(&rig, test_width(w), way, fault);
				outcome = request(&rig, way, 1);
				assert_int_equal(outcome.sync, 0);
				check_words(&rig, &outcome, way, 1);
				assert_int_equal(outcome.stats.failed, times);
				/* A prefetch is not tried again, but its line is fetched anew; an eviction
				 * takes another line. */
				if (way != TEST_WAY_AHEAD && way != TEST_WAY_EVICT)
					assert_int_equal(outcome.stats.retried, times);
				must(weir_cache_flush(rig.cache, 0));
				if (way == TEST_WAY_EVICT)
					assert_int_equal(stats_now(&rig).retried, times);
				assert_int_equal(stats_of(&rig).write_errors, 0);
				close_refusing(&rig);
			}
}

static void test_many_lanes(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (unsigned way = 0; way < TEST_WAYS; way++) {
			struct outcome outcome;
			struct rig rig;

			if (way == TEST_WAY_EVICT || way == TEST_WAY_PUT)
				continue;
			open_refusing(&rig, test_width(w), way, "code=0x21:count=3");
			outcome = request(&rig, way, LANES);
			assert_int_equal(outcome.sync, 0);
			check_words(&rig, &outcome, way, LANES);
			assert_int_equal(outcome.stats.failed, 3);
			if (way != TEST_WAY_AHEAD)
				assert_int_equal(outcome.stats.retried, 3);
			close_refusing(&rig);
		}
}

static void test_no_more_often(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (unsigned way = 0; way < TEST_WAYS; way++) {
			struct outcome outcome;
			struct rig rig;

			if (way == TEST_WAY_EVICT || way == TEST_WAY_AHEAD)
				continue;
			open_refusing(&rig, test_width(w), way, "code=0x22:count=4");
			outcome = request(&rig, way, 1);
			assert_int_equal(outcome.results[0][0], status_with(NVME_STATUS_TRANSIENT_TRANSPORT));
			assert_int_equal(outcome.stats.failed, RETRIES + 1);
			assert_int_equal(outcome.stats.retried, RETRIES);
			close_refusing(&rig); /* the fifth try of the line is right */
		}
}

/* None of the four lines can be written at first: then one of them is tried again, RETRIES times. */
static void test_a_full_set(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (unsigned more = RETRIES - 1; more <= RETRIES; more++) {
			struct outcome outcome;
			struct rig rig;
			char fault[64];

			snprintf(fault, sizeof(fault), "code=0x82:count=%u", 4 + more);
			open_refusing(&rig, test_width(w), TEST_WAY_EVICT, fault);
			outcome = request(&rig, TEST_WAY_EVICT, 1);
			assert_int_equal(outcome.sync, more < RETRIES ? 0 : -EIO);
			assert_int_equal(outcome.stats.failed, 4 + more);
			assert_true(outcome.stats.retried >=
				    RETRIES); /* the next line's eviction has as many */
			must(weir_cache_flush(rig.cache, 0));
			close_refusing(&rig);
		}
}

/* A copy whose record was taken by another failure begins to count anew, once (weir_block_wait()). */
static uint64_t most_failures(unsigned way)
{
	return (way == TEST_WAY_COPY ? 2 * RETRIES + 1 : RETRIES + 1) * LANES + 1;
}

static void test_everybody_is_notified(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (unsigned way = TEST_WAY_LOAD; way <= TEST_WAY_AHEAD; way++) {
			struct outcome outcome;
			struct rig rig;

			open_refusing(&rig, test_width(w), way, "code=0x303");
			outcome = request(&rig, way, LANES);
			for (unsigned lane = 0; lane < LANES; lane++)
				assert_int_equal(outcome.results[lane][0],
						 status_with(NVME_STATUS_PATH_TRANSITION));
			if (outcome.stats.failed > most_failures(way))
				fail_msg("way %u: %llu commands failed, for %u lanes with %u retries each",
					 way, (unsigned long long)outcome.stats.failed, LANES, RETRIES);
			close_refusing(&rig);
		}
}

/* Do not retry; and what another try would not change. */
static void test_not_at_all(void **state)
{
	static const char *const faults[] = { "code=0x82:dnr=1:count=1", "code=0x281:count=1",
					      "code=0x7:dnr=1:count=1", "code=0x301:count=1" };

	(void)state;
	for (size_t f = 0; f < 4; f++)
		for (unsigned way = 0; way < TEST_WAYS; way++) {
			struct outcome outcome;
			struct rig rig;

			if (way == TEST_WAY_AHEAD || way == TEST_WAY_EVICT)
				continue;
			open_refusing(&rig, test_width(f), way, faults[f]);
			outcome = request(&rig, way, 1);
			assert_int_not_equal(outcome.results[0][0], WEIR_OK);
			assert_int_equal(outcome.stats.failed, 1);
			assert_int_equal(outcome.stats.retried, 0);
			assert_int_equal(outcome.stats.commands,
					 way == TEST_WAY_PUT ? 2 : 1); /* its line was read first */
			close_refusing(&rig);
		}
}

/* Aborted, by whomever, or with its queue pair: nobody knows whether it was carried out. Only a write tells.
 */
static void test_what_may_be_done_twice(void **state)
{
	static const char *const faults[] = { "code=0x7:count=1", "code=0x8:count=1", "code=0x371:count=1" };

	(void)state;
	for (size_t f = 0; f < 3; f++)
		for (unsigned way = 0; way < TEST_WAYS; way++) {
			struct outcome outcome;
			struct rig rig;

			if (way == TEST_WAY_AHEAD || way == TEST_WAY_EVICT)
				continue;
			open_refusing(&rig, test_width(f), way, faults[f]);
			outcome = request(&rig, way, 1);
			assert_int_equal(outcome.results[0][0] == WEIR_OK, way != TEST_WAY_WRITE);
			assert_int_equal(outcome.stats.failed, 1);
			assert_int_equal(outcome.stats.retried, way != TEST_WAY_WRITE);
			close_refusing(&rig);
		}
}

static uint64_t elapsed_ms(const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)(now.tv_sec - begin->tv_sec) * 1000 + (uint64_t)(now.tv_nsec / 1000000) -
	       (uint64_t)(begin->tv_nsec / 1000000);
}

/* One that is refused for 300 ms, the second of the delays, in a wait of 250: what the lane was told. The
 * controller's answer may come behind that, which shows nothing: again then. */
static void check_too_late(unsigned way, uint32_t width)
{
	uint32_t status = WEIR_E_TIMEOUT;

	for (unsigned tries = 0; tries < 20 && status == WEIR_E_TIMEOUT; tries++) {
		struct outcome outcome;
		struct rig rig;

		open_refusing(&rig, width, way, "code=0x82:crd=2:count=1");
		outcome = request_within(&rig, way, 1, 250000);
		status = (uint32_t)outcome.results[0][0];
		assert_int_equal(outcome.stats.retried, 0);
		close_refusing(&rig);
	}
	assert_int_equal(status, status_with(NOT_READY | 2 << NVME_STATUS_CRD_SHIFT));
}

/* A wait that would end before the delay has passed tells what there is. */
static void test_after_the_delay_asked_for(void **state)
{
	static const unsigned ways[] = { TEST_WAY_READ, TEST_WAY_LOAD, TEST_WAY_BYTES, TEST_WAY_PUT,
					 TEST_WAY_COPY, TEST_WAY_WAIT, TEST_WAY_ALL,   TEST_WAY_ANY };

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		uint32_t width = test_width(i % test_width_count());
		struct timespec begin;
		struct outcome outcome;
		struct rig rig;

		open_refusing(&rig, width, ways[i], "code=0x82:crd=2:count=1");
		clock_gettime(CLOCK_MONOTONIC, &begin);
		outcome = request(&rig, ways[i], 1);
		assert_true(elapsed_ms(&begin) >= 300);
		check_words(&rig, &outcome, ways[i], 1);
		assert_int_equal(outcome.stats.retried, 1);
		close_refusing(&rig);
		check_too_late(ways[i], width);
	}
}

static void test_the_hosts_own(void **state)
{
	struct weir_context *context;
	struct weir_storage *storage;
	char block[512] = "";

	(void)state;
	must(weir_context_open(test_context_name(), NULL, &context));
	must(test_storage_open(
		context, "virt:1M?fault=status:code=0x82:count=4,status:code=0x21:op=flush:after=1:count=5",
		NULL, &storage));
	must(weir_storage_write(storage, 0, block, sizeof(block)));
	must(weir_storage_flush(storage));
	refused(weir_storage_flush(storage), -EIO, "flush", "command interrupted");
	weir_storage_close(storage);
	must(test_storage_open(context, "virt:1M?retries=0&fault=status:code=0x82:count=1", NULL, &storage));
	refused(weir_storage_write(storage, 0, block, sizeof(block)), -EIO, "blocks 0 to 1",
		"namespace not ready");
	must(weir_storage_write(storage, 0, block, sizeof(block)));
	weir_storage_close(storage);
	must(test_storage_open(context, "virt:1M?fault=status:code=0x82:count=1",
			       WEIR_OPTIONS(storage, .retries = 1), &storage));
	refused(weir_storage_write(storage, 0, block, sizeof(block)), -EIO, "blocks 0 to 1",
		"namespace not ready");
	weir_storage_close(storage);
	refused(weir_storage_open(context, "virt:1M?retries=101", NULL, &storage), -EINVAL, "retries=101",
		"100");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .retries = 102), &storage),
		-EINVAL, "retries is 101", "from 0 to 100");
	refused(weir_storage_open(context, "virt:1M?fault=status:code=0x82:crd=4", NULL, &storage), -EINVAL,
		"crd=4", "3");
	weir_context_close(context);
}

/* Lanes of a wave give up at a full queue pair, each at a time of its own: nobody leaves slots to them. */
static void test_who_gives_up_is_not_waited_for(void **state)
{
	enum { FEW = 4 };

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_retry_args args = { .way = TEST_WAY_READ, .timeout_us = 60000000 };
		uint64_t results[FEW][2];
		struct weir_context *context;
		struct weir_storage *storage;
		struct weir_queue queue;

		must(weir_context_open(test_context_name(),
				       WEIR_OPTIONS(context, .wave_lanes = test_width(w)), &context));
		must(test_storage_open(context, "virt:1M?lat_us=1000000",
				       WEIR_OPTIONS(storage, .queues = 1, .depth = 2, .timeout_us = 20000),
				       &storage));
		must(weir_storage_disk(storage, &args.disk));
		must(weir_alloc(context, FEW * 512, &args.buffers));
		must(weir_alloc(context, FEW * sizeof(struct weir_event), &args.events));
		must(weir_alloc(context, sizeof(results), &args.results));
		must(weir_launch(context, "test_retry", 1, FEW, &args, sizeof(args)));
		must(weir_sync(context));
		must(weir_copy_from_device(context, results, args.results, sizeof(results)));
		for (unsigned lane = 0; lane < FEW; lane++)
			assert_true(results[lane][0] == WEIR_OK || results[lane][0] == WEIR_E_QUEUE_FULL);
		must(weir_copy_from_device(context, &queue, args.disk.queues, sizeof(queue)));
		assert_int_equal(weir_load_u64_relaxed_sys(&queue.first), 0);
		weir_storage_close(storage);
		weir_context_close(context);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_often_as_allowed),
		cmocka_unit_test(test_many_lanes),
		cmocka_unit_test(test_no_more_often),
		cmocka_unit_test(test_a_full_set),
		cmocka_unit_test(test_everybody_is_notified),
		cmocka_unit_test(test_not_at_all),
		cmocka_unit_test(test_what_may_be_done_twice),
		cmocka_unit_test(test_after_the_delay_asked_for),
		cmocka_unit_test(test_the_hosts_own),
		cmocka_unit_test(test_who_gives_up_is_not_waited_for),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}
