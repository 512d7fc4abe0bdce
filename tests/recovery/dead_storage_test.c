/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dead_storage_test.c: of two storages behind one cache one dies, with commands under way on every line of
 * the cache. Deadlines are a minute: that lanes read the other storage, or are told of the dead one by its
 * own status, shows that they did not wait for them. Or one of them is closed, and had not answered.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../share/async.h"
#include "../rig/context.h"
#include "../cache/writer_kernels.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum {
	BLOCK = 512,
	WORDS = BLOCK / 8,
	LINES = 8,
	LANES = 32,
	READS = 20,
	BYTES = 65536,
	LAST = 100,
	LATER = 110,
	DEADLINE_US = 60000000,
	SHORT_US = 200000
};

/* Reads of the first blocks do not end; that of block LAST is the end of the controller. */
static const char *const ends[] = { "gone", "fatal" };

/** struct fixture - two storages behind one cache of LINES lines */
struct fixture {
	struct weir_context *context;
	struct weir_storage *living, *dying;
	struct weir_cache *cache;
	struct weir_array array;   /* of the living one: test_word(1, w) */
	struct weir_writer writer; /* of the dying one */
	uint64_t verdict;
};

static uint64_t alloc(struct fixture *fixture, size_t bytes)
{
	uint64_t address;

	must(weir_alloc(fixture->context, bytes, &address));
	return address;
}

static struct weir_storage *open_storage(struct fixture *fixture, const char *uri, uint64_t deadline_us)
{
	struct weir_storage *storage;

	must(test_storage_open(fixture->context, uri,
			       WEIR_OPTIONS(storage, .queues = 2, .depth = 16, .timeout_us = deadline_us),
			       &storage));
	return storage;
}

/* Its lines, and arrays of both storages. */
static void open_cache(struct fixture *fixture, uint32_t policy)
{
	must(weir_cache_create(fixture->context,
			       WEIR_OPTIONS(cache, .lines = LINES, .line_bytes = BLOCK, .policy = policy),
			       &fixture->cache));
	must(weir_array_open(fixture->cache, &fixture->living, 1, WEIR_OPTIONS(array, .element_bytes = 8),
			     &fixture->array));
	must(weir_writer_open(fixture->cache, &fixture->dying, 1, WEIR_OPTIONS(array, .element_bytes = 8),
			      &fixture->writer));
}

/* @uri: of the storage that dies, or does not answer, with @deadline_us */
static void open_fixture_of(struct fixture *fixture, uint32_t width, const char *uri, uint64_t deadline_us)
{
	uint64_t words[BYTES / 8];

	memset(fixture, 0, sizeof(*fixture));
	must(weir_context_open(test_context_name(),
			       WEIR_OPTIONS(context, .workers = 2, .resident_lanes = 256, .wave_lanes = width,
					    .service_waves = test_service()),
			       &fixture->context));
	fixture->dying = open_storage(fixture, uri, deadline_us);
	fixture->living = open_storage(fixture, "virt:64K?block=512", DEADLINE_US);
	for (uint64_t i = 0; i < BYTES / 8; i++)
		words[i] = test_word(1, i);
	must(weir_storage_write(fixture->living, 0, words, sizeof(words)));
	open_cache(fixture, 0);
	fixture->verdict = alloc(fixture, sizeof(struct test_verdict));
}

static void open_fixture(struct fixture *fixture, uint32_t width, const char *end)
{
	char uri[160];

	/* timeout_ms=0: commands are late for ever, and nobody aborts them */
	snprintf(
		uri, sizeof(uri),
		"virt:64K?block=512&timeout_ms=0&fault=late:us=1000000000:op=read:lba=0-99,%s:op=read:lba=%d",
		end, LAST);
	open_fixture_of(fixture, width, uri, DEADLINE_US);
}

static void close_storages(struct fixture *fixture)
{
	weir_storage_close(fixture->living);
	weir_storage_close(fixture->dying);
	weir_context_close(fixture->context);
}

/* One lane's raw read; its event afterwards. */
static uint32_t read_block(struct fixture *fixture, struct weir_storage *storage, uint64_t lba,
			   struct weir_event *event)
{
	struct test_request_args args = { .opcode = NVME_OPCODE_READ, .blocks = 1, .lba = lba };
	uint32_t statuses[2];

	must(weir_storage_disk(storage, &args.disk));
	args.buffer = alloc(fixture, BLOCK);
	args.event = alloc(fixture, sizeof(struct weir_event));
	args.statuses = alloc(fixture, sizeof(statuses));
	must(weir_launch(fixture->context, "test_request", 1, 1, &args, sizeof(args)));
	(void)weir_sync(fixture->context);
	must(weir_copy_from_device(fixture->context, statuses, args.statuses, sizeof(statuses)));
	must(weir_copy_from_device(fixture->context, event, args.event, sizeof(*event)));
	return statuses[0];
}

/* @lines of the dying storage, from block 0 on, are wanted ahead. Return: commands that were made for them.
 */
static uint64_t started_ahead(struct fixture *fixture, uint64_t lines)
{
	struct test_prefetch_args args = { .array = fixture->writer.array, .each = lines * WORDS };
	uint64_t started;

	args.started = alloc(fixture, sizeof(started));
	must(weir_launch(fixture->context, "test_prefetch", 1, 1, &args, sizeof(args)));
	must(weir_sync(fixture->context));
	must(weir_copy_from_device(fixture->context, &started, args.started, sizeof(started)));
	return started;
}

/* Each has a command under way, and nobody waits for it. */
static void fetch_ahead(struct fixture *fixture, uint64_t lines)
{
	assert_int_equal(started_ahead(fixture, lines), lines);
}

static void die(struct fixture *fixture)
{
	struct weir_event event;
	uint32_t status = read_block(fixture, fixture->dying, LAST, &event);

	assert_true(status == WEIR_E_DEVICE_DEAD || status == WEIR_E_DEVICE_GONE);
	/* The lane was told by its event, which is its own again. */
	assert_true(weir_load_u64_relaxed_sys(&event.word) & WEIR_EVENT_DONE);
	assert_int_equal((uint32_t)weir_load_u64_relaxed_sys(&event.word), status);
}

/* Lanes read @array, all over it. Return: weir_sync()'s. */
static int read_elements(struct fixture *fixture, const struct weir_array *array)
{
	struct test_array_args args = { .array = { *array },
					.seed = { 1 },
					.array_count = 1,
					.kind = TEST_READ_RANDOM,
					.reads = READS,
					.verdict = fixture->verdict };

	must(weir_launch(fixture->context, "test_array", 1, LANES, &args, sizeof(args)));
	return weir_sync(fixture->context);
}

static void refused(int error, const char *says)
{
	assert_int_equal(error, -EIO);
	if (!strstr(weir_last_error(), says))
		fail_msg("\"%s\" does not say \"%s\"", weir_last_error(), says);
}

static void check_reads(struct fixture *fixture)
{
	struct test_verdict verdict;

	must(weir_copy_from_device(fixture->context, &verdict, fixture->verdict, sizeof(verdict)));
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.bad), 0);
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), LANES * READS);
}

static struct weir_cache_stats cache_stats(struct fixture *fixture)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };

	must(weir_cache_stats(fixture->cache, &stats));
	return stats;
}

static struct weir_stats stats_of(struct weir_storage *storage)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	must(weir_stats(storage, &stats));
	return stats;
}

static uint64_t commands_of(struct weir_storage *storage)
{
	return stats_of(storage).commands;
}

/* The dead storage had every line of the cache; the other one is read as ever. Every command ended, and none
 * of those read was lost. */
static void test_the_other_goes_on(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
			struct fixture fixture;

			open_fixture(&fixture, test_width(w), ends[i]);
			fetch_ahead(&fixture, LINES);
			die(&fixture);
			must(read_elements(&fixture, &fixture.array));
			check_reads(&fixture);
			assert_int_equal(commands_of(fixture.dying), LINES + 1);
			assert_int_equal(stats_of(fixture.dying).failed, LINES + 1);
			must(weir_cache_destroy(fixture.cache));
			close_storages(&fixture);
		}
}

/* What reads of a dead storage ask for, or is to be fetched ahead, takes no line from the living one, and no
 * command is made for it. */
static void test_no_line_makes_room_for_a_dead_storage(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct weir_cache_stats before, after;
		uint64_t commands;
		struct fixture fixture;

		open_fixture(&fixture, test_width(w), ends[0]);
		die(&fixture);
		must(read_elements(&fixture, &fixture.array));
		check_reads(&fixture);
		before = cache_stats(&fixture);
		commands = commands_of(fixture.dying);
		refused(read_elements(&fixture, &fixture.writer.array), "could not get block");
		assert_int_equal(started_ahead(&fixture, LINES), 0);
		after = cache_stats(&fixture);
		assert_int_equal(after.misses, before.misses);
		assert_int_equal(after.evictions, before.evictions);
		assert_int_equal(commands_of(fixture.dying), commands);
		must(weir_cache_destroy(fixture.cache));
		close_storages(&fixture);
	}
}

/* A copy of a line that nobody has: it is refused at once, and no command is made. */
static void test_no_copy_of_a_dead_storage(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		struct fixture fixture;
		struct test_copy_args args;
		uint32_t statuses[2];
		uint64_t commands;

		open_fixture(&fixture, test_width(i % test_width_count()), ends[i]);
		die(&fixture);
		commands = commands_of(fixture.dying);
		args = (struct test_copy_args){ .array = fixture.writer.array, .line = LATER };
		args.buffer = alloc(&fixture, BLOCK);
		args.event = alloc(&fixture, sizeof(struct weir_event));
		args.statuses = alloc(&fixture, sizeof(statuses));
		must(weir_launch(fixture.context, "test_copy", 1, 1, &args, sizeof(args)));
		assert_int_equal(weir_sync(fixture.context), -EIO);
		must(weir_copy_from_device(fixture.context, statuses, args.statuses, sizeof(statuses)));
		assert_true(statuses[0] == WEIR_E_DEVICE_DEAD || statuses[0] == WEIR_E_DEVICE_GONE);
		assert_int_equal(statuses[1], statuses[0]);
		assert_int_equal(commands_of(fixture.dying), commands);
		must(weir_cache_destroy(fixture.cache));
		close_storages(&fixture);
	}
}

/*
 * What the watchdog says of a controller that it cannot keep from memory, in whose place the test says it:
 * commands on lines stay, and whoever needs these lines is told at once.
 */
static void declare_unsafe(struct fixture *fixture)
{
	struct weir_disk disk;

	must(weir_storage_disk(fixture->dying, &disk));
	for (uint32_t i = 0; i < disk.queue_count; i++)
		weir_store_u32_relaxed_sys(&weir_at(disk.queues, struct weir_queue, i)->dead,
					   WEIR_E_DEVICE_DEAD | WEIR_QUEUE_UNSAFE);
}

static void test_lines_that_stay(void **state)
{
	(void)state;
	if (!test_on_cpu()) /* the host reaches no queues */
		return;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct fixture fixture;

		open_fixture(&fixture, test_width(w), ends[0]);
		fetch_ahead(&fixture, LINES);
		declare_unsafe(&fixture);
		refused(read_elements(&fixture, &fixture.array), "the controller failed");
		assert_int_equal(commands_of(fixture.dying), 0); /* none has ended */
		/* and none of the lines, which were being read, is called lost */
		must(weir_cache_destroy(fixture.cache));
		close_storages(&fixture);
	}
}

/* Of a cache in which each line has one place only, that place stays: nothing else makes room. */
static void test_a_place_that_stays(void **state)
{
	(void)state;
	if (!test_on_cpu()) /* the host reaches no queues */
		return;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct fixture fixture;

		open_fixture(&fixture, test_width(w), ends[0]);
		must(weir_cache_destroy(fixture.cache));
		open_cache(&fixture, WEIR_POLICY_DIRECT);
		fetch_ahead(&fixture, 1);
		declare_unsafe(&fixture);
		refused(read_elements(&fixture, &fixture.array), "the controller failed");
		must(weir_cache_destroy(fixture.cache));
		close_storages(&fixture);
	}
}

/* Each lane puts elements of the dying storage's last blocks, which reads of the others do not touch. */
static void dirty_lines(struct fixture *fixture)
{
	struct test_put_args args = { .writer_count = 1, .puts = 4, .verdict = fixture->verdict };

	must(weir_writer_open(
		fixture->cache, &fixture->dying, 1,
		WEIR_OPTIONS(array, .element_bytes = 8, .first_byte = LATER * BLOCK, .count = 2 * WORDS),
		&args.writer[0]));
	must(weir_launch(fixture->context, "test_put_u64", 1, LANES, &args, sizeof(args)));
	must(weir_sync(fixture->context));
	assert_int_equal(cache_stats(fixture).dirty, 2);
}

/* Of lines that were being read nothing is lost; of dirty ones it is, and exactly these are counted. */
static void test_what_is_lost(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (int unsafe = 0; unsafe <= test_on_cpu(); unsafe++) {
			struct fixture fixture;

			open_fixture(&fixture, test_width(w), ends[1]);
			dirty_lines(&fixture);
			fetch_ahead(&fixture,
				    LINES / 4); /* of each set one; more would have dirty ones written back */
			if (unsafe)
				declare_unsafe(&fixture);
			else
				die(&fixture);
			refused(weir_cache_destroy(fixture.cache),
				"cache: 2 lines could not be written, from block 11");
			assert_non_null(strstr(weir_last_error(), "they are lost"));
			close_storages(&fixture);
		}
}

/* Commands in every queue pair that no lane waits for end, too, once the controller is dead. */
static void test_commands_without_a_waiter(void **state)
{
	(void)state;
	if (!test_on_cpu()) /* where the host does not access queues, lanes alone end them */
		return;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		struct test_prefetch_args args = { .each = LINES / 2 * WORDS };
		struct fixture fixture;

		open_fixture(&fixture, 1, ends[i]);
		args.array = fixture.writer.array;
		args.started = alloc(&fixture, 8);
		must(weir_launch(fixture.context, "test_prefetch", 2, 1, &args,
				 sizeof(args))); /* two waves, two queue pairs */
		must(weir_sync(fixture.context));
		die(&fixture);
		for (unsigned ms = 0; ms < DEADLINE_US / 1000 && commands_of(fixture.dying) != LINES + 1;
		     ms++)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		assert_int_equal(commands_of(fixture.dying), LINES + 1);
		must(weir_cache_destroy(fixture.cache));
		close_storages(&fixture);
	}
}

/* A storage that does not answer, with commands on every line, or dirty lines: once it is closed none is its
 * own. Of one that was given up, and not kept from memory, likewise. */
static void close_silent(uint32_t width, bool writes, bool unsafe)
{
	struct fixture fixture;
	char uri[160];

	snprintf(uri, sizeof(uri), "virt:64K?block=512&timeout_ms=0&fault=late:us=1000000000:op=%s",
		 writes ? "write" : "read");
	open_fixture_of(&fixture, width, uri, SHORT_US);
	if (writes)
		dirty_lines(&fixture);
	else
		fetch_ahead(&fixture, LINES);
	if (unsafe)
		declare_unsafe(&fixture);
	if (writes)
		refused(weir_storage_close(fixture.dying), "2 lines could not be written");
	else
		must(weir_storage_close(fixture.dying));
	assert_int_equal(cache_stats(&fixture).dirty, 0);
	fixture.verdict = alloc(&fixture, sizeof(struct test_verdict));
	must(read_elements(&fixture, &fixture.array));
	check_reads(&fixture);
	must(weir_context_close(fixture.context));
}

static void test_a_closed_storage_keeps_no_line(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (int writes = 0; writes < 2; writes++)
			for (int unsafe = 0; unsafe <= test_on_cpu(); unsafe++)
				close_silent(test_width(w), writes, unsafe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_other_goes_on),
		cmocka_unit_test(test_no_line_makes_room_for_a_dead_storage),
		cmocka_unit_test(test_no_copy_of_a_dead_storage),
		cmocka_unit_test(test_lines_that_stay),
		cmocka_unit_test(test_a_place_that_stays),
		cmocka_unit_test(test_what_is_lost),
		cmocka_unit_test(test_commands_without_a_waiter),
		cmocka_unit_test(test_a_closed_storage_keeps_no_line),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("dead_storage", tests, NULL, NULL);
}
