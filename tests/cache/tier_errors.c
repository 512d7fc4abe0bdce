/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that cannot be read or written, kernels that know of no tier, and sizes that are refused. */
#include "tier_cases.h"

/* A block that cannot be read is told each time, and is never in the tier; others are. */
void test_unreadable_blocks(void **state)
{
	struct bench bench;

	(void)state;
	open_bench(&bench, (struct shape){ .width = test_width(0),
					   .tier = 64,
					   .fault = "&fault=status:op=read:lba=5:code=0x281" });
	for (unsigned i = 0; i < 3; i++) {
		do_step(&bench, TEST_STEP_COPY, 5, WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | 0x281);
		bench.args.kind = TEST_TIER_GET;
		bench.args.first = 5;
		bench.args.count = bench.args.rounds = 1;
		must(weir_launch(bench.rig.context, "tier_read", 1, 1, &bench.args, sizeof(bench.args)));
		assert_int_equal(weir_sync(bench.rig.context), -EIO);
		assert_non_null(strstr(weir_last_error(), "block 5 of"));
		must(weir_copy_to_device(bench.rig.context, bench.rig.verdict,
					 &(struct test_verdict){ .where = 0 }, sizeof(struct test_verdict)));
		get(&bench, 4);
		push_out(&bench, 8 + 8 * i);
	}
	assert_int_equal(path_of(&bench, 4), WEIR_PATH_TIER);
	must(weir_cache_destroy(bench.rig.cache));
	close_storages(&bench.rig);
}

/* Lines whose write-back fails stay in the cache, and go down once it did not. */
void test_unwritable_blocks(void **state)
{
	(void)state;
	for (unsigned inclusive = 0; inclusive < 2; inclusive++) {
		struct bench bench;

		open_bench(
			&bench,
			(struct shape){ .width = test_width(0),
					.tier = 64,
					.inclusive = inclusive,
					.fault = "&fault=status:op=write:lba=0:code=0x280:after=1:count=1" });
		get(&bench, 0);
		push_out(&bench, 8);
		get(&bench, 0);
		put(&bench, 0, 99);
		push_out(&bench, 16);
		assert_int_equal(path_of(&bench, 0), WEIR_PATH_CACHE);
		assert_int_equal(weir_cache_flush(bench.rig.cache, 0), -EIO);
		must(weir_cache_flush(bench.rig.cache, 0));
		push_out(&bench, 24);
		assert_int_equal(path_of(&bench, 0), WEIR_PATH_TIER);
		get(&bench, 0);
		close_bench(&bench);
	}
}

/* Kernels that know of no tier read what the cache has, and are told so when they miss. */
void test_kernels_without_a_tier(void **state)
{
#ifndef WEIR_TIER /* not all kernels of this build have code for a tier (-Dtier=true) */
	struct test_put_args args = { .writer_count = 1, .puts = 1 };
	struct bench bench;

	open_bench(&bench, (struct shape){ .width = test_width(0), .tier = 64 });
	args.writer[0] = bench.writer;
	args.verdict = bench.rig.verdict;
	must(weir_launch(bench.rig.context, "test_put_u64", 1, 1, &args, sizeof(args)));
	assert_int_equal(weir_sync(bench.rig.context), -EIO);
	assert_non_null(strstr(weir_last_error(), "WEIR_TIER"));
	close_bench(&bench);
#endif
	(void)state;
}

static void refused(struct rig *rig, struct weir_cache_options options, int error, const char *why)
{
	struct weir_cache *cache;

	options.size = sizeof(options);
	assert_int_equal(weir_cache_create(rig->context, &options, &cache), error);
	assert_null(cache);
	if (!strstr(weir_last_error(), why))
		fail_msg("\"%s\" does not tell of \"%s\"", weir_last_error(), why);
}

void test_bad_sizes(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0) });
	refused(&rig,
		(struct weir_cache_options){ .lines = 4, .line_bytes = 4096, .tier_bytes = 16384 + 512 },
		-EINVAL, "tier_bytes is 16896; it must be a multiple of the lines of 4096 bytes");
	refused(&rig, (struct weir_cache_options){ .lines = 4, .line_bytes = 4096, .tier_bytes = 3 * 4096 },
		-EINVAL, "a tier of 12288 bytes: one set of 4 lines of 4096 bytes needs 16384");
	refused(&rig,
		(struct weir_cache_options){
			.lines = 8, .line_bytes = 512, .tier_bytes = 4 * 512, .tier_inclusive = 1 },
		-EINVAL,
		"inclusive tier of 4 lines has copies of less than the 8 lines before it; give it 4096 "
		"bytes");
	refused(&rig, (struct weir_cache_options){ .lines = 8, .tier_inclusive = 1 }, -EINVAL,
		"tier_inclusive without a tier");
	refused(&rig, (struct weir_cache_options){ .lines = 8, .tier_bytes = 65536, .tier_inclusive = 2 },
		-EINVAL, "tier_inclusive is 2");
	refused(&rig,
		(struct weir_cache_options){
			.lines = 4, .line_bytes = 65536, .tier_bytes = (uint64_t)1 << 50 },
		-EINVAL, "at most 8589934592 each; use longer lines");
	refused(&rig,
		(struct weir_cache_options){
			.lines = 4, .line_bytes = 65536, .tier_bytes = (uint64_t)1 << 48 },
		-ENOMEM, "no 281474976710656 bytes of host memory for its tier (");
	close_rig(&rig);
}
