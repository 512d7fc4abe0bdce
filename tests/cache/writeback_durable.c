/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushes by lanes, and durable ones: an NVMe Flush on every storage that was written to. */
#include <unistd.h>

#include "../rig/hurry.h"
#include "../rig/request_trace.h"
#include "writeback_cases.h"

/* Each lane has a block; what it flushed it finds there, past the cache. */
void test_lanes_flush(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint64_t lines = 4; lines <= 64; lines *= 16) {
			struct test_flush_args args = { .each = 64, .seed = w, .rounds = 2 };
			uint32_t statuses[64];
			struct rig rig;

			open_rig(&rig, (struct shape){ .width = test_width(w), .lines = lines });
			open_writer(&rig, 8, 0, &args.writer);
			must(weir_storage_disk(rig.storages[0], &args.disk));
			must(weir_alloc(rig.context, 64 * 2 * sizeof(struct weir_event), &args.events));
			must(weir_alloc(rig.context, sizeof(statuses), &args.statuses));
			must(weir_alloc(rig.context, 64 * 512, &args.blocks));
			args.verdict = rig.verdict;
			must(weir_launch(rig.context, "test_flush", 1, 64, &args, sizeof(args)));
			judge(&rig);
			must(weir_copy_from_device(rig.context, statuses, args.statuses, sizeof(statuses)));
			for (uint64_t i = 0; i < 64; i++)
				assert_int_equal(statuses[i], WEIR_OK);
			for (uint64_t i = 0; i < 64 * 64; i++) {
				uint64_t value = test_put_value(args.seed, i, args.rounds - 1);

				if (i % 64 % TEST_FLUSH_STRIDE == 0)
					model_put(&rig, &args.writer, i, &value);
			}
			close_rig(&rig);
		}
}

void test_durable_means_an_nvme_flush(void **state)
{
	struct test_put_args args;
	struct weir_writer writer;
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0),
				       .lines = 512,
				       .fault = "&fault=status:op=flush:code=0x6:count=2" });
	put_one_pass(&rig, &args, &writer);
	must(weir_cache_flush(rig.cache, 0));
	refused(weir_cache_flush(rig.cache, 1), -EIO, "flush", "internal error");
	refused(weir_array_flush(rig.cache, &writer.array, 0, 1, 1), -EIO, "flush", "internal error");
	must(weir_cache_flush(rig.cache, 1));
	close_rig(&rig);
}

enum { MEMBERS = 3 };

static const char *trace_of(const char *folder, unsigned member)
{
	static char path[96];

	snprintf(path, sizeof(path), "%s/trace.%u", folder, member);
	return path;
}

/* Each member has had so many flushes; with @all, nothing that it was given could be lost. */
static void check_members(const char *folder, const unsigned flushes[MEMBERS], bool all)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		assert_int_equal(trace_count(trace_of(folder, i), 'f'), flushes[i]);
		assert_true(trace_count(trace_of(folder, i), 'w') > 0);
		assert_int_equal(trace_volatile(trace_of(folder, i)) == 0, all);
	}
}

enum { TRACE_BYTES = 64 };

/* A stripe whose members write down what they do, in a folder of its own. */
static void open_members(struct rig *rig, char *folder, char trace[TRACE_BYTES])
{
	assert_non_null(mkdtemp(folder));
	snprintf(trace, TRACE_BYTES, "%s/trace", folder);
	open_rig(rig, (struct shape){ .width = test_width(0),
				      .lines = 1024,
				      .disks = MEMBERS,
				      .stripe = 4096,
				      .trace = trace });
}

/* A durable flush reaches every storage of a stripe, behind all of its writes; one that is not reaches none;
 * a close does. */
void test_every_member_becomes_durable(void **state)
{
	char folder[] = "/tmp/weir-trace-XXXXXX", trace[TRACE_BYTES];
	struct test_flush_args lanes = { .each = 64, .rounds = 1 };
	uint32_t statuses[LANES];
	struct test_put_args args;
	struct weir_writer writer;
	struct rig rig;

	(void)state;
	open_members(&rig, folder, trace);
	put_one_pass(&rig, &args, &writer);
	check_members(folder, (unsigned[]){ 0, 0, 0 }, false);
	must(weir_cache_flush(rig.cache, 0));
	assert_int_equal(stats_of(&rig).dirty, 0);
	check_members(folder, (unsigned[]){ 0, 0, 0 }, false);
	must(weir_cache_flush(rig.cache, 1)); /* nothing is dirty, and all of it is to be durable */
	check_members(folder, (unsigned[]){ 1, 1, 1 }, true);
	args.seed = 7;
	put(&rig, &args);
	must(weir_array_flush(rig.cache, &writer.array, 0, writer.array.count, 1));
	check_members(folder, (unsigned[]){ 2, 2, 2 }, true);
	args.seed = 8;
	put(&rig, &args);
	must(weir_cache_flush(rig.cache, 1));
	check_members(folder, (unsigned[]){ 3, 3, 3 }, true);
	/* Lanes, each of which makes what it wrote durable: it lies on the first members' units. */
	lanes.writer = writer;
	lanes.seed = 9;
	lanes.verdict = rig.verdict;
	must(weir_alloc(rig.context, THREADS * 2 * sizeof(struct weir_event), &lanes.events));
	must(weir_alloc(rig.context, sizeof(statuses), &lanes.statuses));
	must(weir_launch(rig.context, "test_flush", 1, THREADS, &lanes, sizeof(lanes)));
	judge(&rig);
	for (unsigned i = 0; i < MEMBERS; i++) {
		assert_int_equal(trace_volatile(trace_of(folder, i)), 0);
		assert_true(trace_count(trace_of(folder, i), 'f') > 3);
	}
	for (uint64_t i = 0; i < THREADS * 64; i++) {
		uint64_t value = test_put_value(lanes.seed, i, 0);

		if (i % 64 % TEST_FLUSH_STRIDE == 0)
			model_put(&rig, &writer, i, &value);
	}
	args.seed = 10;
	put(&rig, &args);
	close_rig(&rig); /* the cache without a durable flush, then the storages */
	for (unsigned i = 0; i < MEMBERS; i++) {
		assert_int_equal(trace_volatile(trace_of(folder, i)), 0);
		unlink(trace_of(folder, i));
	}
	rmdir(folder);
}

enum { LATE_US = 300000 };

/* The first member of a stripe never answers: what lies on those behind it becomes durable all the same. */
void test_a_late_member_holds_up_no_other(void **state)
{
	char folder[] = "/tmp/weir-trace-XXXXXX", trace[TRACE_BYTES];
	struct test_put_args args;
	struct weir_writer writer;
	struct rig rig;

	(void)state;
	open_members(&rig, folder, trace);
	must(weir_storage_close(rig.storages[0]));
	must(test_storage_open(rig.context,
			       "virt:64K?block=512&timeout_ms=0&fault=late:us=1000000000:op=write:after=16",
			       WEIR_OPTIONS(storage, .timeout_us = rig.shape.timeout_us), &rig.storages[0]));
	each_unit(&rig, fill_unit); /* 16 of each */
	put_one_pass(&rig, &args, &writer);
	must(test_hurry(rig.context, &writer.array, 0, LATE_US));
	refused(weir_cache_flush(rig.cache, 1), -EIO, "lines could not be written", "timeout_ms=0");
	for (unsigned i = 1; i < MEMBERS; i++) {
		assert_int_equal(trace_count(trace_of(folder, i), 'f'), 1);
		assert_int_equal(trace_volatile(trace_of(folder, i)), 0);
	}
	refused(weir_cache_destroy(rig.cache), -EIO, "they are lost", "timeout_ms=0");
	close_storages(&rig);
	for (unsigned i = 0; i < MEMBERS; i++)
		unlink(trace_of(folder, i));
	rmdir(folder);
}

static uint64_t commands_of(struct weir_storage *storage)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	must(weir_stats(storage, &stats));
	return stats.commands;
}

/* Nothing is left to write: what a durable flush sends then is one Flush for each member of each layout that
 * is written to. */
void test_durable_reaches_every_storage(void **state)
{
	uint64_t before[3];
	struct test_put_args args;
	struct weir_writer writer, third;
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0), .lines = 512, .disks = 3, .stripe = 4096 });
	rig.shape.disks = 2; /* the third has a layout of its own */
	rig.bytes = 2 * rig.shape.bytes_each;
	each_unit(&rig, fill_unit);
	put_one_pass(&rig, &args, &writer);
	must(weir_writer_open(rig.cache, &rig.storages[2], 1, WEIR_OPTIONS(array, .element_bytes = 8),
			      &third));
	must(weir_cache_flush(rig.cache, 0));
	for (unsigned i = 0; i < 3; i++)
		before[i] = commands_of(rig.storages[i]);
	must(weir_cache_flush(rig.cache, 1));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(commands_of(rig.storages[i]) - before[i], 1);
	must(weir_array_flush(rig.cache, &writer.array, 0, 100, 1));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(commands_of(rig.storages[i]) - before[i], i < 2 ? 2 : 1);
	must(weir_cache_destroy(rig.cache));
	check_storages(&rig);
	weir_storage_close(rig.storages[2]);
	close_storages(&rig);
}

/* Each of two members refuses one Flush: one durable flush asks both, and says so. */
void test_durable_tells_every_member(void **state)
{
	struct test_put_args args;
	struct weir_writer writer;
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0),
				       .lines = 512,
				       .disks = 2,
				       .stripe = 4096,
				       .fault = "&fault=status:op=flush:code=0x6:count=1" });
	put_one_pass(&rig, &args, &writer);
	refused(weir_cache_flush(rig.cache, 1), -EIO, "flush", "internal error");
	must(weir_cache_flush(rig.cache, 1));
	close_rig(&rig);
}

/* The same of two layouts, of which the one that was opened last is asked first. */
void test_durable_tells_every_layout(void **state)
{
	uint64_t before[2];
	struct test_put_args args;
	struct weir_writer writer, last;
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0),
				       .lines = 512,
				       .disks = 2,
				       .fault = "&fault=status:op=flush:code=0x6:count=1" });
	rig.shape.disks = 1; /* the second has a layout of its own */
	rig.bytes = rig.shape.bytes_each;
	each_unit(&rig, fill_unit);
	put_one_pass(&rig, &args, &writer);
	must(weir_writer_open(rig.cache, &rig.storages[1], 1, WEIR_OPTIONS(array, .element_bytes = 8),
			      &last));
	must(weir_cache_flush(rig.cache, 0));
	for (unsigned i = 0; i < 2; i++)
		before[i] = commands_of(rig.storages[i]);
	refused(weir_cache_flush(rig.cache, 1), -EIO, "flush", "internal error");
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(commands_of(rig.storages[i]) - before[i], 1);
	must(weir_cache_flush(rig.cache, 1));
	must(weir_cache_destroy(rig.cache));
	check_storages(&rig);
	weir_storage_close(rig.storages[1]);
	close_storages(&rig);
}
