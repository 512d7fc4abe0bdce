/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing through caches of every size: what ends up on storage, element by element. */
#include <unistd.h>

#include "writeback_cases.h"

static const uint32_t ELEMENTS[] = { 1, 2, 4, 8, 16 };

static struct weir_stats storage_stats(struct rig *rig, unsigned i)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	must(weir_stats(rig->storages[i], &stats));
	return stats;
}

/* Each command of the cache since @before is a line that came or was written back; and of those that came all
 * made another one go, but as many as there is room for. @others: commands that are not the cache's. */
static void check_counts(struct rig *rig, struct weir_stats before, uint64_t others)
{
	struct weir_cache_stats stats = stats_of(rig);
	struct weir_stats after = storage_stats(rig, 0);
	uint64_t expected = before.commands + stats.misses + stats.writebacks + others;

	/* a service counts a command after it has told of it */
	for (unsigned i = 0; i < 10000 && after.commands < expected; i++) {
		usleep(1000);
		after = storage_stats(rig, 0);
	}
	assert_int_equal(after.failed, before.failed);
	assert_int_equal(after.commands, expected);
	assert_true(stats.evictions + rig->shape.lines >= stats.misses);
	assert_true(stats.evictions <= stats.misses + stats.retracted);
}

static void test_every_element_cache_and_width(void **state)
{
	static const struct {
		uint64_t lines;
		uint32_t line_bytes;
	} caches[] = {
		{ 4, 512 }, { 8, 512 }, { 12, 4096 }, { 64, 512 }, { 4, 16384 }, { 512, 512 },
	};

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t c = 0; c < 6; c++) {
			struct weir_stats before;
			struct rig rig;

			open_rig(&rig, (struct shape){ .width = test_width(w),
						       .lines = caches[c].lines,
						       .line_bytes = caches[c].line_bytes });
			before = storage_stats(&rig, 0);
			for (size_t e = c + w; e <= c + w + 2;
			     e += 2) { /* every pair of size and cache, at some width */
				struct test_put_args args = {
					.writer_count = 1, .puts = 12, .seed = e, .salt = c
				};

				open_writer(&rig, ELEMENTS[e % 5], e % 2 ? 16 : 0, &args.writer[0]);
				put(&rig, &args);
			}
			assert_true(stats_of(&rig).writebacks > 0 ||
				    caches[c].lines * caches[c].line_bytes >= rig.bytes);
			must(weir_cache_flush(rig.cache, c % 2));
			assert_int_equal(stats_of(&rig).dirty, 0);
			check_counts(&rig, before, c % 2);
			check_storages(&rig);
			close_rig(&rig);
		}
}

static void test_a_clean_close_writes_everything(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_put_args args = { .writer_count = 1, .puts = 12 };
		struct rig rig;

		open_rig(&rig, (struct shape){ .width = test_width(w), .lines = 512 });
		open_writer(&rig, 8, 0, &args.writer[0]);
		put(&rig, &args);
		assert_int_equal(stats_of(&rig).writebacks, 0);
		assert_true(stats_of(&rig).dirty > 0);
		close_rig(&rig);
	}
}

static void test_additions_from_all_lanes(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint32_t bytes = 4; bytes <= 8; bytes += 4) {
			struct test_add_args args = { .adds = 10, .counters = 700 };
			uint64_t all = LANES * args.adds;
			struct test_verdict verdict;
			struct rig rig;

			open_rig(&rig, (struct shape){ .width = test_width(w) });
			memset(rig.model, 0, rig.bytes);
			each_unit(&rig, fill_unit);
			open_writer(&rig, bytes, 0, &args.writer);
			args.verdict = rig.verdict;
			must(weir_launch(rig.context, bytes == 4 ? "test_add_u32" : "test_add_u64", BLOCKS,
					 THREADS, &args, sizeof(args)));
			verdict = judge(&rig);
			assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), all);
			assert_int_equal(weir_load_u64_relaxed_sys(&verdict.sum), all * (all - 1) / 2);
			for (uint64_t i = 0; i < all; i++) {
				uint64_t index = test_mix(i) % args.counters, value = 0;

				memcpy(&value, rig.model + index * bytes, bytes);
				value += index + 1;
				memcpy(rig.model + index * bytes, &value, bytes);
			}
			memcpy(rig.model + args.counters * bytes, &all, bytes);
			close_rig(&rig);
		}
}

/* What the four elements must be, and what came out of the exchanges. */
static void check_changes(struct rig *rig, const struct test_change_args *args, uint32_t bytes, uint64_t sum)
{
	uint64_t least = UINT64_MAX, most = 0, all = 0, last = 0, expected[3];
	unsigned shift = bytes == 8 ? 32 : 0;

	for (uint64_t i = 0; i < LANES * args->rounds; i++) {
		uint64_t number = test_change_number(i % LANES, i / LANES, LANES);

		least = number < least ? number : least;
		most = number > most ? number : most;
		all += number;
	}
	must(weir_cache_flush(rig->cache, 0));
	must(weir_storage_read(rig->storages[0], 0, rig->model,
			       4096)); /* block by block what has no other model */
	expected[0] = least << shift;
	expected[1] = most << shift;
	expected[2] = LANES * args->rounds;
	for (unsigned i = 0; i < 3; i++)
		assert_memory_equal(rig->model + i * bytes, &expected[i], bytes);
	memcpy(&last, rig->model + 3 * bytes, bytes);
	assert_int_equal(sum + (last >> shift), all);
}

static void test_changes_from_all_lanes(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint32_t bytes = 4; bytes <= 8; bytes += 4) {
			struct test_change_args args = { .rounds = 6 };
			struct test_verdict verdict;
			struct test_pair pair = { .third = args.rounds - 1 };
			struct rig rig;

			open_rig(&rig,
				 (struct shape){ .width = test_width(w), .lines = bytes == 4 ? 4 : 64 });
			memset(rig.model, 0, rig.bytes);
			memset(rig.model, 0xff, bytes);
			each_unit(&rig, fill_unit);
			must(weir_writer_open(rig.cache, rig.storages, 1,
					      WEIR_OPTIONS(array, .element_bytes = bytes, .count = 64),
					      &args.writer));
			must(weir_writer_open(
				rig.cache, rig.storages, 1,
				WEIR_OPTIONS(array, .element_bytes = sizeof(pair), .first_byte = 4096),
				&args.pairs));
			args.verdict = rig.verdict;
			must(weir_launch(rig.context, bytes == 4 ? "test_change_u32" : "test_change_u64",
					 BLOCKS, THREADS, &args, sizeof(args)));
			must(weir_launch(rig.context, "test_change_pairs", BLOCKS, THREADS, &args,
					 sizeof(args)));
			verdict = judge(&rig);
			assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), LANES * args.rounds);
			check_changes(&rig, &args, bytes, weir_load_u64_relaxed_sys(&verdict.sum));
			for (uint64_t lane = 0; lane < LANES; lane++) {
				pair.first = test_change_number(lane, args.rounds - 1, LANES);
				pair.second = ~pair.first;
				memcpy(rig.model + 4096 + lane * sizeof(pair), &pair, sizeof(pair));
			}
			check_storages(&rig);
			close_rig(&rig);
		}
}

static void write_spans(struct rig *rig, struct test_span_args *args, uint32_t lanes)
{
	uint32_t bytes = args->writer.array.element_bytes;
	struct test_verdict verdict;

	args->verdict = rig->verdict;
	args->span_bytes = (args->most * bytes + 32) & ~(uint64_t)15;
	must(weir_alloc(rig->context, lanes * 2 * args->span_bytes, &args->buffers));
	must(weir_launch(rig->context, "test_span", 1, lanes, args, sizeof(*args)));
	verdict = judge(rig);
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), lanes * args->steps);
	must(weir_free(rig->context, args->buffers));
	for (uint64_t thread = 0; thread < lanes; thread++)
		for (uint64_t step = 0; step < args->steps; step++) {
			struct test_span span =
				test_span_at(args->each, args->most, thread, step, args->salt);
			uint64_t at = span.first * bytes;

			for (uint64_t i = 0; i < span.count * bytes; i++)
				rig->model[args->writer.array.first_byte + at + i] =
					(unsigned char)test_put_value(args->seed, at + i, step);
		}
}

static void test_spans_of_any_alignment(void **state)
{
	static const struct {
		uint32_t bytes, skew;
	} cases[] = { { 1, 0 }, { 1, 5 }, { 2, 4 }, { 8, 0 }, { 16, 8 }, { 24, 3 } };

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct rig rig;

		open_rig(&rig,
			 (struct shape){ .width = test_width(w), .lines = 8, .disks = 2, .stripe = 4096 });
		for (size_t c = 0; c < 6; c++) {
			struct test_span_args args = {
				.skew = cases[c].skew, .steps = 2, .seed = c, .salt = w
			};

			open_writer(&rig, cases[c].bytes, c % 2 ? 48 : 0, &args.writer);
			args.each = args.writer.array.count / LANES;
			args.most = 1500 / cases[c].bytes;
			write_spans(&rig, &args, test_lanes(LANES));
		}
		close_rig(&rig);
	}
}

/* Lines that are overwritten as a whole; the last one as far as the storage has it. */
static void test_whole_lines_are_not_read(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_span_args args = { .each = 1, .most = 1, .steps = 1, .seed = 3 };
		struct rig rig;
		uint64_t before;

		open_rig(&rig, (struct shape){ .width = test_width(w),
					       .lines = 256,
					       .line_bytes = 1024,
					       .bytes_each = 100 * 1024 + 512 });
		before = storage_stats(&rig, 0).bytes_read;
		open_writer(&rig, 1024, 0, &args.writer);
		write_spans(&rig, &args, 100);
		open_writer(&rig, 512, 100 * 1024, &args.writer);
		write_spans(&rig, &args, 1);
		assert_int_equal(stats_of(&rig).misses, 0);
		assert_int_equal(stats_of(&rig).dirty, 101);
		must(weir_cache_flush(rig.cache, 1));
		assert_int_equal(stats_of(&rig).writebacks, 101);
		assert_int_equal(storage_stats(&rig, 0).bytes_read - before, 0);
		close_rig(&rig);
	}
}

/* Each storage by itself, behind one set: the lines of one must go for those of the other. */
static void test_eviction_across_storages(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint32_t depth = 2; depth <= 16; depth *= 8) {
			struct test_put_args args = { .writer_count = 2, .puts = 16, .seed = w };
			struct rig rig;

			open_rig(&rig, (struct shape){ .width = test_width(w), .disks = 2, .depth = depth });
			for (unsigned i = 0; i < 2; i++)
				must(weir_writer_open(rig.cache, &rig.storages[i], 1,
						      WEIR_OPTIONS(array, .element_bytes = 8),
						      &args.writer[i]));
			args.verdict = rig.verdict;
			must(weir_launch(rig.context, "test_put_u64", BLOCKS, THREADS, &args, sizeof(args)));
			/* in the model, which is one after the other, the second writer begins where its
			 * storage does */
			args.writer[1].array.first_byte = rig.shape.bytes_each;
			put_model(&rig, &args);
			judge(&rig);
			assert_true(stats_of(&rig).writebacks > 0);
			close_rig(&rig);
		}
}

/* Two caches' worth of lines beyond 4 GiB and 2^32 blocks, on one storage and on a stripe: each element is
 * where it belongs. */
static void test_many_tebibytes(void **state)
{
	enum { STRIPE = 65536, PUTS = 12, LANES_FAR = 32 };

	(void)state;
	for (unsigned disks = 1; disks <= 3; disks += 2) {
		struct test_put_args args = { .writer_count = 1, .puts = PUTS, .seed = disks };
		struct test_verdict verdict;
		struct rig rig;

		memset(&rig, 0, sizeof(rig));
		must(weir_context_open(test_context_name(),
				       WEIR_OPTIONS(context, .workers = 2, .service_waves = test_service(),
						    .wave_lanes = test_width(0)),
				       &rig.context));
		for (unsigned i = 0; i < disks; i++)
			must(test_storage_open(rig.context, "virt:100T?content=address&block=512",
					       WEIR_OPTIONS(storage, .queues = 2, .depth = 16,
							    .timeout_us = test_patient_us(TIMEOUT_US)),
					       &rig.storages[i]));
		must(weir_cache_create(rig.context, WEIR_OPTIONS(cache, .lines = 128, .line_bytes = 4096),
				       &rig.cache));
		must(weir_alloc(rig.context, sizeof(struct test_verdict), &rig.verdict));
		must(weir_writer_open(rig.cache, rig.storages, disks,
				      WEIR_OPTIONS(array, .element_bytes = 8, .stripe_bytes = STRIPE),
				      &args.writer[0]));
		args.verdict = rig.verdict;
		must(weir_launch(rig.context, "test_put_u64", 1, LANES_FAR, &args, sizeof(args)));
		verdict = judge(&rig);
		assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), LANES_FAR * PUTS);
		must(weir_cache_flush(rig.cache, 1));
		assert_int_equal(stats_of(&rig).dirty, 0);
		for (uint64_t thread = 0; thread < LANES_FAR; thread++)
			for (uint64_t step = 0; step < PUTS; step++) {
				uint64_t index = test_put_index(args.writer[0].array.count, LANES_FAR, thread,
								step, 0),
					 at = index * 8;
				uint64_t unit = at / STRIPE,
					 offset = disks == 1 ? at : unit / disks * STRIPE + at % STRIPE,
					 block[64];

				must(weir_storage_read(rig.storages[disks == 1 ? 0 : unit % disks],
						       offset / 512 * 512, block, sizeof(block)));
				if (block[offset % 512 / 8] != test_put_value(args.seed, index, step))
					fail_msg("element %llu of %u storages", (unsigned long long)index,
						 disks);
				if (block[(offset % 512 / 8 + 1) % 64] !=
				    offset / 512 * 512 + (offset % 512 / 8 + 1) % 64 * 8)
					fail_msg("the neighbour of element %llu of %u storages",
						 (unsigned long long)index, disks);
			}
		must(weir_cache_destroy(rig.cache));
		for (unsigned i = disks; i > 0; i--)
			weir_storage_close(rig.storages[i - 1]);
		weir_context_close(rig.context);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_element_cache_and_width),
		cmocka_unit_test(test_a_clean_close_writes_everything),
		cmocka_unit_test(test_additions_from_all_lanes),
		cmocka_unit_test(test_changes_from_all_lanes),
		cmocka_unit_test(test_spans_of_any_alignment),
		cmocka_unit_test(test_whole_lines_are_not_read),
		cmocka_unit_test(test_eviction_across_storages),
		cmocka_unit_test(test_arrays_of_the_same_storage_agree),
		cmocka_unit_test(test_many_layouts),
		cmocka_unit_test(test_flush_and_invalidate_a_range),
		cmocka_unit_test(test_invalidated_lines_are_read_again),
		cmocka_unit_test(test_two_contexts_share_a_file),
		cmocka_unit_test(test_lanes_flush),
		cmocka_unit_test(test_durable_means_an_nvme_flush),
		cmocka_unit_test(test_durable_reaches_every_storage),
		cmocka_unit_test(test_durable_tells_every_member),
		cmocka_unit_test(test_durable_tells_every_layout),
		cmocka_unit_test(test_the_member_is_named),
		cmocka_unit_test(test_flush_keeps_to_the_range),
		cmocka_unit_test(test_lanes_flush_to_their_last_element),
		cmocka_unit_test(test_dirty_lines_of_a_large_cache),
		cmocka_unit_test(test_every_member_becomes_durable),
		cmocka_unit_test(test_a_late_member_holds_up_no_other),
		cmocka_unit_test(test_many_tebibytes),
		cmocka_unit_test(test_media_error_on_write_back),
		cmocka_unit_test(test_close_names_what_is_lost),
		cmocka_unit_test(test_a_set_that_cannot_be_written),
		cmocka_unit_test(test_a_controller_that_dies),
		cmocka_unit_test(test_a_late_storage_is_no_other),
		cmocka_unit_test(test_read_only_storage),
		cmocka_unit_test(test_past_the_end),
		cmocka_unit_test(test_an_error_is_its_lanes_own),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("writeback", tests, NULL, NULL);
}
