/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recovery_test.c: a controller that lives and does not answer. Each fault is one that a certain step of the
 * watchdog's cures, and none before it. Deadlines of lanes are ten minutes: that they return shows that their
 * commands were ended. Where the host does not reach queue words, Abort is the only cure.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <weir/disk.h>
#include <weir/weir.h>

#include "../rig/context.h"
#include "../rig/kernels.h"

enum {
	BLOCK = 512,
	QUEUES = 3,
	DEPTH = 8,
	BLOCKS = 2,
	THREADS = 37,
	OUTSTANDING = 3,
	ROUNDS = 4,
	VICTIM = 7
};

/*
 * How long a command has until the watchdog takes a step. On a machine that stands still for as long, other
 * commands are late, too, or an Abort is: then the counts are of more than the fault, and the same is tried
 * with a longer limit. What must not be at any speed (wrong data, rogue completions) fails at once.
 */
static const uint64_t limits_us[] = { 1000000, 5000000, 25000000 };

enum { LIMITS = sizeof(limits_us) / sizeof(limits_us[0]) };

#define NEVER_US ((uint64_t)600 * 1000000)
#define BY_HOST  (WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | NVME_STATUS_ABORTED_BY_HOST)
#define BY_ABORT (WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | NVME_STATUS_ABORT_REQUESTED)

static void must(int error)
{
	if (error)
		fail_msg("%s", weir_last_error());
}

/** struct fixture - a storage whose controller will not answer a command */
struct fixture {
	struct weir_context *context;
	struct weir_storage *storage;
};

static void open_fixture_within(struct fixture *fixture, uint32_t width, const char *fault,
				uint64_t first_ticket, uint64_t limit_us)
{
	char uri[192];

	must(weir_context_open(
		test_context_name(),
		WEIR_OPTIONS(context, .workers = 2, .wave_lanes = width, .service_waves = test_service()),
		&fixture->context));
	snprintf(uri, sizeof(uri), "virt:1M?block=512&fault=%s", fault);
	must(test_storage_open(fixture->context, uri,
			       WEIR_OPTIONS(storage, .queues = QUEUES, .depth = DEPTH, .timeout_us = NEVER_US,
					    .first_ticket = first_ticket,
					    .command_timeout_us = test_brief_us(limit_us)),
			       &fixture->storage));
}

static void open_fixture(struct fixture *fixture, uint32_t width, const char *fault, uint64_t first_ticket)
{
	open_fixture_within(fixture, width, fault, first_ticket, limits_us[0]);
}

static void close_fixture(struct fixture *fixture)
{
	weir_storage_close(fixture->storage);
	weir_context_close(fixture->context);
}

static uint64_t alloc(struct weir_context *context, size_t bytes)
{
	uint64_t address;

	must(weir_alloc(context, bytes, &address));
	return address;
}

/* How a read of one block ends, with the retries that the storage has; by a single lane, so on queue 1. */
static uint32_t read_block(struct fixture *fixture, uint64_t lba)
{
	struct test_request_args args = { .opcode = NVME_OPCODE_READ, .blocks = 1, .lba = lba };
	uint32_t statuses[2];

	must(weir_storage_disk(fixture->storage, &args.disk));
	args.buffer = alloc(fixture->context, BLOCK);
	args.event = alloc(fixture->context, sizeof(struct weir_event));
	args.statuses = alloc(fixture->context, sizeof(statuses));
	must(weir_launch(fixture->context, "test_request", 1, 1, &args, sizeof(args)));
	must(weir_sync(fixture->context));
	must(weir_copy_from_device(fixture->context, statuses, args.statuses, sizeof(statuses)));
	assert_int_equal(statuses[0], statuses[1]);
	return statuses[0];
}

static struct weir_stats stats_of(struct fixture *fixture)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	must(weir_stats(fixture->storage, &stats));
	return stats;
}

/** struct found - by lanes: requests with the right contents, and mistakes */
struct found {
	uint64_t good, bad;
};

/* All queue pairs, many times around their rings. */
static struct found run_load(struct fixture *fixture)
{
	uint64_t requests = (uint64_t)BLOCKS * THREADS * OUTSTANDING;
	struct test_blocks_args args = { .disk_count = 1,
					 .blocks = 1,
					 .span = 4096,
					 .outstanding = OUTSTANDING,
					 .rounds = ROUNDS,
					 .path = test_pull() ? WEIR_PATH_PULL : WEIR_PATH_DIRECT };
	struct test_verdict verdict;

	must(weir_storage_disk(fixture->storage, &args.disk[0]));
	args.buffers = alloc(fixture->context, requests * args.span);
	args.events = alloc(fixture->context, requests * sizeof(struct weir_event));
	args.verdict = alloc(fixture->context, sizeof(verdict));
	must(weir_launch(fixture->context, "test_blocks", BLOCKS, THREADS, &args, sizeof(args)));
	must(weir_sync(fixture->context));
	must(weir_copy_from_device(fixture->context, &verdict, args.verdict, sizeof(verdict)));
	return (struct found){ .good = weir_load_u64_relaxed_sys(&verdict.good),
			       .bad = weir_load_u64_relaxed_sys(&verdict.bad) };
}

static uint64_t good_requests(void)
{
	return (uint64_t)BLOCKS * THREADS * OUTSTANDING * ROUNDS;
}

/* Everything of all lanes is read as it should be, and nothing more fails. */
static bool usable(struct fixture *fixture)
{
	uint64_t failed = stats_of(fixture).failed, rogue = stats_of(fixture).rogue;
	struct found found = run_load(fixture);

	if (stats_of(fixture).failed != failed)
		return false;
	assert_int_equal(stats_of(fixture).rogue, rogue);
	assert_int_equal(found.bad, 0);
	assert_int_equal(found.good, good_requests());
	return true;
}

/** struct cure - a fault, and the step that cures it; @status: what lanes are told where nothing is tried
 * again */
struct cure {
	const char *fault;
	uint32_t status;
	uint64_t aborted, queues, resets;
};

/* Lanes may know that a command ended before the watchdog has counted how. */
static struct weir_stats settled_stats(struct fixture *fixture, const struct cure *cure)
{
	uint64_t steps = cure->aborted + cure->queues + cure->resets;
	struct weir_stats stats = stats_of(fixture);

	for (unsigned i = 0; i < 30000 && stats.aborted + stats.queues_replaced + stats.resets < steps; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		stats = stats_of(fixture);
	}
	return stats;
}

/* By that step, once, and by no other. */
static bool cured(struct fixture *fixture, const struct cure *cure)
{
	struct weir_stats stats = settled_stats(fixture, cure);

	if (!stats.late || stats.aborted != cure->aborted || stats.queues_replaced != cure->queues ||
	    stats.resets != cure->resets)
		return false;
	if (stats.rogue &&
	    read_block(fixture, VICTIM + 1) != WEIR_OK) /* it died: what came then is nobody's */
		return false;
	assert_int_equal(stats.rogue, 0);
	return true;
}

/* @right, or there is a longer limit to try; counts are printed where they are wrong. */
static bool settled(struct fixture *fixture, bool right, size_t limit)
{
	struct weir_stats stats = stats_of(fixture);

	if (right)
		return true;
	print_message("after %llu us: %llu late, %llu aborted, %llu queue pairs replaced, %llu resets, %llu "
		      "failed, "
		      "%llu retried\n",
		      (unsigned long long)limits_us[limit], (unsigned long long)stats.late,
		      (unsigned long long)stats.aborted, (unsigned long long)stats.queues_replaced,
		      (unsigned long long)stats.resets, (unsigned long long)stats.failed,
		      (unsigned long long)stats.retried);
	if (limit + 1 == LIMITS)
		fail_msg("these are not the counts of the fault alone, at any limit");
	return false;
}

/* One lane reads what gets no answer, others before and after it. */
static bool one_cured(struct fixture *fixture, const struct cure *cure, bool retries, size_t before)
{
	bool right = true;

	for (size_t k = 0; k < before; k++) /* the first ones are spared by name */
		right &= read_block(fixture, VICTIM + 1) == WEIR_OK;
	right &= read_block(fixture, VICTIM) == (retries ? (uint32_t)WEIR_OK : cure->status);
	right &= cured(fixture, cure) && stats_of(fixture).retried == retries;
	right &= read_block(fixture, VICTIM) == WEIR_OK && stats_of(fixture).failed == 1;
	return right && usable(fixture);
}

/* One lane alone; at a ticket in the middle of a ring, in an odd turn of it, and before and behind where 32
 * bits end. */
static void cure_one_with(const struct cure *cure, bool retries)
{
	static const uint64_t tickets[] = { 0, 2 * DEPTH, ((uint64_t)1 << 32) - 2 * DEPTH,
					    ((uint64_t)1 << 32) - 2 * DEPTH };
	size_t count = test_on_cpu() ? 4 : 1;
	struct fixture fixture;
	char fault[160];
	bool right = false;

	snprintf(fault, sizeof(fault), "%s%s", cure->fault, retries ? "" : "&retries=0");
	for (size_t i = 0; i < count; i++, right = false)
		for (size_t limit = 0; !right; limit++) {
			open_fixture_within(&fixture, test_width(i), fault, tickets[i], limits_us[limit]);
			right = settled(&fixture, one_cured(&fixture, cure, retries, 3 + 5 * i), limit);
			close_fixture(&fixture);
		}
}

/* The read that got no answer is read again, and its lane knows nothing of it; or it is told. */
static void cure_one(const struct cure *cure)
{
	cure_one_with(cure, true);
	cure_one_with(cure, false);
}

static void test_abort(void **state)
{
	(void)state;
	cure_one(&(struct cure){
		.fault = "late:us=1000000000:op=read:lba=7:count=1", .status = BY_ABORT, .aborted = 1 });
}

static void test_new_queue(void **state)
{
	(void)state;
	if (test_on_cpu())
		cure_one(&(struct cure){
			.fault = "drop:op=read:lba=7:count=1", .status = BY_HOST, .queues = 1 });
}

static void test_reset(void **state)
{
	(void)state;
	if (test_on_cpu())
		cure_one(&(struct cure){
			.fault = "stuck:op=read:lba=7:count=1", .status = BY_HOST, .resets = 1 });
}

/* The controller stops fetching from a queue: what it never saw cannot be aborted. */
static void test_stalled_queue(void **state)
{
	struct fixture fixture;
	bool right = false;

	(void)state;
	if (!test_on_cpu())
		return;
	for (size_t limit = 0; !right; limit++) {
		open_fixture_within(&fixture, 1, "stall:us=1000000000:op=read:lba=7:count=1", 0,
				    limits_us[limit]);
		right = read_block(&fixture, VICTIM) == WEIR_OK;
		right &= read_block(&fixture, VICTIM + 1) == WEIR_OK && stats_of(&fixture).retried == 1;
		right &= cured(&fixture, &(struct cure){ .queues = 1 });
		right = settled(&fixture, right && usable(&fixture), limit);
		close_fixture(&fixture);
	}
}

/** struct harm - what a fault under load may cost: commands that fail at most, reads read again at least */
struct harm {
	uint64_t most_failed, least_hidden;
};

static bool load_cured(struct fixture *fixture, const struct cure *cure, const struct harm *harm)
{
	struct found found = run_load(fixture);
	struct weir_stats stats = stats_of(fixture);

	if (!cured(fixture, cure)) /* perhaps by something worse, on a machine that stood still */
		return false;
	/* what was read is read again; a write says that it may not have happened */
	assert_true(found.good >= good_requests() - (stats.failed - stats.retried));
	assert_true(found.bad <= 2 * (stats.failed - stats.retried));
	return stats.failed >= 1 && stats.failed <= harm->most_failed &&
	       stats.retried >= harm->least_hidden && usable(fixture);
}

/*
 * Under load, on queue 2: at most what it had under way ends with an error, each write told to its lane, each
 * read read again; everything else of all lanes is as if nothing had happened.
 */
static void load(const char *fault, const struct cure *cure, const struct harm *harm)
{
	struct fixture fixture;
	bool right = false;

	for (size_t w = 0; w < test_width_count(); w++, right = false)
		for (size_t limit = 0; !right; limit++) {
			open_fixture_within(&fixture, test_width(w), fault, 0, limits_us[limit]);
			right = settled(&fixture, load_cured(&fixture, cure, harm), limit);
			close_fixture(&fixture);
		}
}

static void test_abort_under_load(void **state)
{
	(void)state;
	load("late:us=1000000000:op=read:queue=2:after=30:count=1", &(struct cure){ .aborted = 1 },
	     &(struct harm){ 1, 1 });
}

static void test_new_queue_under_load(void **state)
{
	(void)state;
	if (test_on_cpu())
		load("drop:op=read:queue=2:after=30:count=1", &(struct cure){ .queues = 1 },
		     &(struct harm){ DEPTH - 1, 1 });
}

static void test_reset_under_load(void **state)
{
	(void)state;
	if (test_on_cpu())
		load("stuck:op=read:queue=2:after=30:count=1", &(struct cure){ .resets = 1 },
		     &(struct harm){ QUEUES * (DEPTH - 1), 1 });
}

/* Nothing helps: requests end, further ones are refused, closing does not wait for the controller. */
static void test_lost(void **state)
{
	struct fixture fixture;
	bool right = false;

	(void)state;
	for (size_t limit = 0; !right; limit++) {
		open_fixture_within(&fixture, test_width(0), "hung:op=read:lba=7:count=1", 0,
				    limits_us[limit]);
		right = read_block(&fixture, VICTIM + 1) == WEIR_OK;
		assert_int_equal(read_block(&fixture, VICTIM), WEIR_E_DEVICE_DEAD);
		assert_int_equal(read_block(&fixture, VICTIM + 1), WEIR_E_DEVICE_DEAD);
		right = settled(&fixture, right && cured(&fixture, &(struct cure){ .aborted = 0 }), limit);
		close_fixture(&fixture);
	}
}

/* A completion that nobody takes is no delay of the controller's, nor are those that it has no room for
 * meanwhile. */
static void test_lanes_are_late(void **state)
{
	struct timespec pause = { .tv_sec = (time_t)(test_brief_us(2 * limits_us[0]) / 1000000) };
	struct weir_event *events;
	struct weir_disk disk;
	struct fixture fixture;
	uint64_t buffer;

	(void)state;
	if (!test_on_cpu())
		return;
	open_fixture(&fixture, 1, "late:us=1:count=1", 0);
	must(weir_storage_disk(fixture.storage, &disk));
	buffer = alloc(fixture.context, BLOCK);
	events = weir_at(alloc(fixture.context, DEPTH * sizeof(*events)), struct weir_event, 0);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < DEPTH - 1; i++) /* the host is a wave of one lane */
			assert_int_equal(weir_read_async(&disk, i, 1, buffer, &events[i]), WEIR_OK);
		if (round) /* the second time the controller does not know of entries that were taken: it
			      lacks room */
			nanosleep(&pause, NULL);
		for (uint32_t i = 0; i < DEPTH - 1; i++)
			assert_int_equal(weir_wait(&disk, &events[i], 0), WEIR_OK);
	}
	assert_int_equal(stats_of(&fixture).late, 0);
	assert_int_equal(stats_of(&fixture).failed, 0);
	close_fixture(&fixture);
}

/* A lane that waits for 200 ms, then for ever, for a read that takes 3 s, without a limit for commands:
 * @statuses of both waits. */
static void wait_twice(uint32_t statuses[2])
{
	struct test_request_args args = {
		.opcode = NVME_OPCODE_READ, .blocks = 1, .lba = VICTIM, .timeout_us = 200000
	};
	struct fixture fixture;

	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1), &fixture.context));
	must(test_storage_open(fixture.context,
			       "virt:1M?block=512&timeout_ms=0&fault=late:us=3000000:lba=7:count=1",
			       WEIR_OPTIONS(storage, .command_timeout_us = 1000), &fixture.storage));
	must(weir_storage_disk(fixture.storage, &args.disk));
	args.buffer = alloc(fixture.context, BLOCK);
	args.event = alloc(fixture.context, sizeof(struct weir_event));
	args.statuses = alloc(fixture.context, 2 * sizeof(*statuses));
	must(weir_launch(fixture.context, "test_request", 1, 1, &args, sizeof(args)));
	must(weir_sync(fixture.context));
	must(weir_copy_from_device(fixture.context, statuses, args.statuses, 2 * sizeof(*statuses)));
	assert_int_equal(stats_of(&fixture).late, 0);
	close_fixture(&fixture);
}

/* Without a limit nobody is hurried: the lane gives up waiting, and its command ends by itself. Where the
 * machine stood still meanwhile the command has ended before the lane gave up, which shows nothing: again
 * then. */
static void test_switched_off(void **state)
{
	uint32_t statuses[2] = { WEIR_OK, WEIR_OK };

	(void)state;
	for (uint32_t tries = 0; statuses[0] == WEIR_OK && tries < 20; tries++)
		wait_twice(statuses);
	assert_int_equal(statuses[0], WEIR_E_TIMEOUT);
	assert_int_equal(statuses[1], WEIR_OK);
}

/* How a read ends whose answer takes @late_us, with @key in the URI or @option as the time to answer; and
 * whether it was late. */
static uint32_t read_late(const char *key, uint64_t option_us, uint64_t late_us, uint64_t *late)
{
	struct fixture fixture;
	uint32_t status;
	char uri[160];

	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1), &fixture.context));
	snprintf(uri, sizeof(uri), "virt:1M?block=512&retries=0%s&fault=late:us=%llu:lba=7:count=1", key,
		 (unsigned long long)late_us);
	must(test_storage_open(fixture.context, uri,
			       WEIR_OPTIONS(storage, .timeout_us = NEVER_US, .command_timeout_us = option_us),
			       &fixture.storage));
	status = read_block(&fixture, VICTIM);
	*late = stats_of(&fixture).late;
	close_fixture(&fixture);
	return status;
}

/* Whether a read whose answer takes @late_us ends as @late says. A machine that stands still makes no command
 * late, and a loaded one makes any: where it did not end so, again. A wrong time to answer never ends so. */
static bool ends_late(const char *key, uint64_t option_us, uint64_t late_us, bool late)
{
	for (uint32_t tries = 0; tries < 20; tries++) {
		uint64_t counted;
		uint32_t status = read_late(key, option_us, late_us, &counted);

		if ((status != WEIR_OK) == late && counted == late)
			return true;
	}
	return false;
}

/* Neither a quarter of what was asked for nor four times as long: with much room beside both. How a late one
 * ends, by its abort or by more, is up to how fast a machine with other work answers that. */
static void test_time_to_answer(void **state)
{
	(void)state;
	assert_true(ends_late("&timeout_ms=1000", 0, 3700000, true));
	assert_true(ends_late("", 1000000, 3700000, true));
	assert_true(ends_late("&timeout_ms=8000", 0, 3000000, false));
	assert_true(ends_late("", 8000000, 3000000, false));
}

static void test_refused(void **state)
{
	struct weir_context *context;
	struct weir_storage *storage;

	(void)state;
	must(weir_context_open("cpu", NULL, &context));
	assert_int_equal(weir_storage_open(context, "virt:1M?timeout_ms=soon", NULL, &storage), -EINVAL);
	assert_non_null(strstr(weir_last_error(), "timeout_ms=soon"));
	weir_context_close(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_new_queue),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_stalled_queue),
		cmocka_unit_test(test_abort_under_load),
		cmocka_unit_test(test_new_queue_under_load),
		cmocka_unit_test(test_reset_under_load),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_lanes_are_late),
		cmocka_unit_test(test_switched_off),
		cmocka_unit_test(test_time_to_answer),
		cmocka_unit_test(test_refused),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
