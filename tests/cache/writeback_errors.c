/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines that cannot be written: what is told, and what stays dirty. */
#include <time.h>

#include "../rig/hurry.h"
#include "writeback_cases.h"

/* Of a stripe the second member cannot write its block 3: it is named, not the first. */
void test_the_member_is_named(void **state)
{
	struct test_put_args args;
	struct weir_writer writer;
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0), .lines = 512, .disks = 2, .stripe = 4096 });
	weir_storage_close(rig.storages[1]);
	must(test_storage_open(rig.context,
			       "virt:64K?block=512&fault=status:op=write:lba=3:code=0x280:after=1:count=1",
			       WEIR_OPTIONS(storage, .timeout_us = rig.shape.timeout_us), &rig.storages[1]));
	each_unit(&rig, fill_unit);
	put_one_pass(&rig, &args, &writer);
	refused(weir_cache_flush(rig.cache, 0), -EIO,
		"from block 3 of \"virt:64K?block=512&fault=", "write fault");
	must(weir_cache_flush(rig.cache, 0));
	close_rig(&rig);
}

/* The first write that the storage gets is the rig's own; then block 16 fails. */
void test_media_error_on_write_back(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_put_args args;
		struct weir_writer writer;
		struct rig rig;

		open_rig(&rig, (struct shape){
				       .width = test_width(w),
				       .lines = 512,
				       .fault = "&fault=status:op=write:lba=16:code=0x280:after=1:count=2" });
		put_one_pass(&rig, &args, &writer);
		refused(weir_cache_flush(rig.cache, 0), -EIO,
			"1 lines could not be written, from block 16 of \"virt:", "write fault");
		assert_int_equal(stats_of(&rig).dirty, 1);
		assert_int_equal(stats_of(&rig).write_errors, 1);
		refused(weir_array_flush(rig.cache, &writer.array, 16 * 64, 1, 0), -EIO, "block 16",
			"stay dirty");
		must(weir_cache_flush(rig.cache, 0));
		assert_int_equal(stats_of(&rig).dirty, 0);
		assert_int_equal(stats_of(&rig).write_errors, 2);
		close_rig(&rig);
	}
}

void test_close_names_what_is_lost(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_put_args args;
		struct weir_writer writer;
		struct rig rig;

		open_rig(&rig,
			 (struct shape){ .width = test_width(w),
					 .lines = 512,
					 .fault = "&fault=status:op=write:lba=20-29:code=0x80:after=1" });
		put_one_pass(&rig, &args, &writer);
		refused(weir_cache_destroy(rig.cache), -EIO, "10 lines could not be written",
			"LBA out of range");
		assert_non_null(strstr(weir_last_error(), "and 2 more; they are lost"));
		model_forget(&rig, 20 * 512, 30 * 512);
		check_storages(&rig);
		close_storages(&rig);
	}
}

/* Nothing can be written: whoever needs room is told why, instead of waiting. */
void test_a_set_that_cannot_be_written(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_put_args args = { .writer_count = 1, .puts = 4 };
		struct rig rig;
		int error;

		open_rig(&rig, (struct shape){ .width = test_width(w),
					       .fault = "&fault=status:op=write:code=0x280:after=1" });
		open_writer(&rig, 8, 0, &args.writer[0]);
		args.verdict = rig.verdict;
		must(weir_launch(rig.context, "test_put_u64", BLOCKS, THREADS, &args, sizeof(args)));
		refused(weir_sync(rig.context), -EIO, "written back, which failed", "write fault");
		error = weir_cache_destroy(rig.cache);
		refused(error, -EIO, "4 lines could not be written", "they are lost");
		model_forget(&rig, 0, rig.bytes);
		check_storages(&rig);
		close_storages(&rig);
	}
}

void test_a_controller_that_dies(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_put_args args;
		struct weir_writer writer;
		struct timespec begin, end;
		struct rig rig;

		clock_gettime(CLOCK_MONOTONIC, &begin);
		open_rig(&rig, (struct shape){ .width = test_width(w),
					       .lines = 512,
					       .timeout_us = 600000000,
					       .fault = "&fault=fatal:op=write:after=5" });
		put_one_pass(&rig, &args, &writer);
		refused(weir_cache_flush(rig.cache, 1), -EIO, "lines could not be written, from block",
			"the controller failed");
		refused(weir_cache_destroy(rig.cache), -EIO, "they are lost", "the controller failed");
		close_storages(&rig);
		clock_gettime(CLOCK_MONOTONIC, &end);
		assert_true(end.tv_sec - begin.tv_sec < 300); /* a lane that waits does so for 600 s */
	}
}

enum { OTHERS = 63, LATE_US = 300000 };

/* A storage that never answers, opened 64 storages behind a good one: of that each line is written. Lanes
 * have lines of both, one after the other. */
void test_a_late_storage_is_no_other(void **state)
{
	struct test_put_args args, late_args;
	struct weir_writer writer;
	struct weir_storage *other, *late;
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0), .lines = 8192, .bytes_each = 1 << 20 });
	for (unsigned i = 0; i < OTHERS; i++) {
		must(test_storage_open(rig.context, "virt:4K", NULL, &other));
		must(weir_storage_close(other));
	}
	must(test_storage_open(rig.context,
			       "virt:1M?block=512&timeout_ms=0&fault=late:us=1000000000:op=write",
			       WEIR_OPTIONS(storage, .timeout_us = rig.shape.timeout_us), &late));
	put_one_pass(&rig, &args, &writer);
	late_args = args;
	must(weir_writer_open(rig.cache, &late, 1, WEIR_OPTIONS(array, .element_bytes = 8),
			      &late_args.writer[0]));
	must(weir_launch(rig.context, "test_put_u64", BLOCKS, THREADS, &late_args, sizeof(late_args)));
	(void)judge(&rig);
	must(test_hurry(rig.context, &late_args.writer[0].array, 0, LATE_US));
	refused(weir_cache_flush(rig.cache, 0), -EIO, "lines could not be written", "timeout_ms=0");
	check_storages(&rig);
	refused(weir_cache_destroy(rig.cache), -EIO, "they are lost", "timeout_ms=0");
	(void)weir_storage_close(late);
	close_storages(&rig);
}

void test_read_only_storage(void **state)
{
	struct weir_storage *storage;
	struct weir_writer writer;
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0) });
	must(test_storage_open(rig.context, "virt:64K", WEIR_OPTIONS(storage, .read_only = 1), &storage));
	refused(weir_writer_open(rig.cache, &storage, 1, WEIR_OPTIONS(array, .element_bytes = 8), &writer),
		-EROFS, "virt:64K", "read-only");
	refused(weir_writer_open(rig.cache, (struct weir_storage *[]){ rig.storages[0], storage }, 2,
				 WEIR_OPTIONS(array, .element_bytes = 8), &writer),
		-EROFS, "virt:64K", "read-only");
	weir_storage_close(storage);
	close_rig(&rig);
}

void test_past_the_end(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_flush_args args = { .each = 64, .rounds = 1 };
		struct rig rig;

		open_rig(&rig, (struct shape){ .width = test_width(w), .bytes_each = 63 * 512 });
		open_writer(&rig, 8, 0, &args.writer);
		must(weir_alloc(rig.context, 4096, &args.statuses));
		args.verdict = rig.verdict;
		must(weir_launch(rig.context, "test_flush", 1, 64, &args,
				 sizeof(args))); /* the last lane has no block */
		refused(weir_sync(rig.context), -EIO, "array element 4032", "has 4032");
		for (uint64_t i = 0; i < args.writer.array.count; i++) {
			uint64_t value = test_put_value(0, i, 0);

			if (i % 64 % TEST_FLUSH_STRIDE == 0)
				model_put(&rig, &args.writer, i, &value);
		}
		close_rig(&rig);
	}
}

enum { APART = 66, SPAN_LINES = 3, BAD = 5 };

/* What lane @lane is told of its span, and what it has of it then: all, nothing, or the first line. */
static void check_apart(const struct rig *rig, const struct test_apart_args *args, unsigned lane,
			uint32_t status, const uint64_t *words)
{
	static const uint32_t statuses[] = { WEIR_OK, WEIR_E_INDEX,
					     (uint32_t)WEIR_STATUS_NVME | (uint32_t)WEIR_GROUP_REQUEST |
						     NVME_STATUS_UNRECOVERED_READ };
	uint64_t first = lane % 3 ? BAD - 1 : BAD + 1 + lane,
		 good = lane % 3 == 0 ? SPAN_LINES : lane % 3 == 2;

	if (status != (args->writes && lane % 3 == 2 ? (uint32_t)WEIR_OK : statuses[lane % 3]))
		fail_msg("lane %u was told %#x", lane, status);
	for (uint64_t i = 0; !args->writes && i < SPAN_LINES * args->each; i++) {
		uint64_t expected = 0;

		if (i / args->each < good)
			memcpy(&expected, rig->model + (first * args->each + i) * 8, 8);
		assert_true(words[i] == expected);
	}
}

/* Of the lanes of a wave that read or write together each is told of its own error, though others go on. */
void test_an_error_is_its_lanes_own(void **state)
{
	(void)state;
	for (size_t w = 0; w < 2 * test_width_count(); w++) {
		struct test_apart_args args = {
			.each = 64, .lines = SPAN_LINES, .bad = BAD * 64, .writes = w % 2
		};
		static uint64_t words[APART][SPAN_LINES * 64];
		uint32_t statuses[APART];
		struct rig rig;

		open_rig(&rig, (struct shape){ .width = test_width(w / 2),
					       .lines = 256,
					       .fault = "&fault=status:op=read:lba=5:code=0x281" });
		open_writer(&rig, 8, 0, &args.writer);
		must(weir_alloc(rig.context, sizeof(words), &args.buffers));
		must(weir_alloc(rig.context, sizeof(statuses), &args.statuses));
		must(weir_launch(rig.context, "test_apart", 1, APART, &args, sizeof(args)));
		assert_int_equal(weir_sync(rig.context), -EIO);
		must(weir_copy_from_device(rig.context, words, args.buffers, sizeof(words)));
		must(weir_copy_from_device(rig.context, statuses, args.statuses, sizeof(statuses)));
		for (unsigned lane = 0; lane < APART; lane++)
			check_apart(&rig, &args, lane, statuses[lane], words[lane]);
		must(weir_cache_destroy(rig.cache));
		close_storages(&rig);
	}
}
