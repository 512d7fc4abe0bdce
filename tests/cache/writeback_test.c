/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing through caches of every size: what ends up on storage, element by element. */
#include <time.h>
#include <unistd.h>

#include "../rig/request_trace.h"
#include "writer_rig.h"

enum { BLOCKS = 2, THREADS = 70, LANES = BLOCKS * THREADS };

static void put_model(struct rig *rig, const struct test_put_args *args)
{
	for (uint64_t thread = 0; thread < LANES; thread++)
		for (uint64_t step = 0; step < args->puts; step++) {
			const struct weir_writer *writer = &args->writer[step % args->writer_count];
			uint64_t index = test_put_index(writer->array.count, LANES, thread, step, args->salt);
			uint64_t value[2] = { test_put_value(args->seed, index, step) };

			value[1] = ~value[0];
			model_put(rig, writer, index, value);
		}
}

static void put(struct rig *rig, struct test_put_args *args)
{
	struct test_verdict verdict;

	args->verdict = rig->verdict;
	must(weir_launch(rig->context, "test_put", BLOCKS, THREADS, args, sizeof(*args)));
	put_model(rig, args);
	verdict = judge(rig);
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), LANES * args->puts);
}

static const uint32_t ELEMENTS[] = { 1, 2, 4, 8, 16 };

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
			struct rig rig;

			open_rig(&rig, (struct shape){ .width = test_width(w),
						       .lines = caches[c].lines,
						       .line_bytes = caches[c].line_bytes });
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
			must(weir_launch(rig.context, "test_add", BLOCKS, THREADS, &args, sizeof(args)));
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
			must(weir_launch(rig.context, "test_change", BLOCKS, THREADS, &args, sizeof(args)));
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

static struct weir_stats storage_stats(struct rig *rig, unsigned i)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	must(weir_stats(rig->storages[i], &stats));
	return stats;
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
			must(weir_launch(rig.context, "test_put", BLOCKS, THREADS, &args, sizeof(args)));
			/* in the model, which is one after the other, the second writer begins where its
			 * storage does */
			args.writer[1].array.first_byte = rig.shape.bytes_each;
			put_model(&rig, &args);
			judge(&rig);
			assert_true(stats_of(&rig).writebacks > 0);
			close_rig(&rig);
		}
}

/* What lanes read through @array at @index. */
static uint64_t element(struct rig *rig, const struct weir_array *array, uint64_t index)
{
	struct test_get_args args = { .array = *array, .index = index, .verdict = rig->verdict };
	struct test_verdict verdict;

	must(weir_launch(rig->context, "test_get", 1, 1, &args, sizeof(args)));
	verdict = judge(rig);
	return weir_load_u64_relaxed_sys(&verdict.sum);
}

static void put_one_pass(struct rig *rig, struct test_put_args *args, struct weir_writer *writer)
{
	open_writer(rig, 8, 0, writer);
	*args = (struct test_put_args){ .writer = { *writer }, .writer_count = 1, .puts = 12 };
	put(rig, args);
}

static void test_arrays_of_the_same_storage_agree(void **state)
{
	struct test_put_args args;
	struct weir_writer writer;
	struct weir_array array;
	uint64_t expected;
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0), .lines = 256, .disks = 2, .stripe = 4096 });
	put_one_pass(&rig, &args, &writer);
	must(weir_array_open(rig.cache, rig.storages, 2,
			     WEIR_OPTIONS(array, .element_bytes = 8, .first_byte = 16, .stripe_bytes = 4096),
			     &array));
	memcpy(&expected, rig.model + 16 + 8 * 70, 8);
	assert_true(element(&rig, &array, 70) == expected);
	/* other stripes would be other lines */
	assert_int_equal(
		weir_array_open(rig.cache, rig.storages, 1, WEIR_OPTIONS(array, .element_bytes = 8), &array),
		-EBUSY);
	assert_non_null(strstr(weir_last_error(), "two layouts"));
	assert_int_equal(weir_writer_open(rig.cache, rig.storages, 2, WEIR_OPTIONS(array, .element_bytes = 8),
					  &writer),
			 -EBUSY);
	must(weir_writer_open(rig.cache, rig.storages, 2,
			      WEIR_OPTIONS(array, .element_bytes = 8, .stripe_bytes = 4096), &writer));
	close_rig(&rig);
}

/* Bytes [@from, @to) of the model as they were in the beginning. */
static void model_forget(struct rig *rig, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		rig->model[i] = (unsigned char)test_mix(i);
}

static void test_flush_and_invalidate_a_range(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint64_t lines = 128; lines <= 512;
		     lines *= 4) { /* ranges longer and shorter than the cache */
			struct test_put_args args;
			struct weir_writer writer;
			struct rig rig;

			open_rig(&rig, (struct shape){ .width = test_width(w), .lines = lines });
			put_one_pass(&rig, &args, &writer);
			/* bytes 1000 to 9000: lines 1 to 17 */
			must(weir_array_flush(rig.cache, &writer.array, 125, 1000, w % 2));
			must(weir_array_invalidate(rig.cache, &writer.array, 0, 64));
			must(weir_array_invalidate(rig.cache, &writer.array, 18 * 64,
						   writer.array.count - 18 * 64));
			assert_int_equal(stats_of(&rig).dirty, 0);
			if (lines == 512) { /* else some were evicted before */
				model_forget(&rig, 0, 512);
				model_forget(&rig, 18 * 512, rig.bytes);
				check_storages(&rig);
			}
			assert_int_equal(weir_array_flush(rig.cache, &writer.array, 8000, 1000, 0), -ERANGE);
			assert_non_null(strstr(weir_last_error(), "9000"));
			must(weir_array_flush(rig.cache, &writer.array, 0, 0, 0));
			if (lines == 512) {
				close_rig(&rig);
			} else {
				must(weir_cache_destroy(rig.cache));
				close_storages(&rig);
			}
		}
}

static void test_invalidated_lines_are_read_again(void **state)
{
	struct weir_array array;
	uint64_t words[64], number = 0;
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0) });
	must(weir_array_open(rig.cache, rig.storages, 1, WEIR_OPTIONS(array, .element_bytes = 8), &array));
	memcpy(&number, rig.model + 8, 8);
	assert_true(element(&rig, &array, 1) == number);
	memset(words, 0x5a, sizeof(words));
	memcpy(rig.model, words, sizeof(words));
	must(weir_storage_write(rig.storages[0], 0, words, sizeof(words)));
	assert_true(element(&rig, &array, 1) == number);
	must(weir_array_invalidate(rig.cache, &array, 1, 1));
	assert_true(element(&rig, &array, 1) == words[1]);
	close_rig(&rig);
}

/* Two contexts with one file, each with a cache of its own: one sees what the other wrote once that flushed
 * and this invalidated. */
static void test_two_contexts_share_a_file(void **state)
{
	enum { BYTES = 65536, ELEMENT = 70 };
	struct test_put_args args = { .writer_count = 1, .puts = 12, .seed = 3 };
	char path[] = "/tmp/weir-shared-XXXXXX", uri[64];
	struct rig first, second;
	struct weir_array array;
	uint64_t before, after;
	int file = mkstemp(path);

	(void)state;
	if (test_given())
		skip();
	assert_true(file >= 0 && ftruncate(file, BYTES) == 0 && close(file) == 0);
	snprintf(uri, sizeof(uri), "file:%s?block=512&share=on", path);
	open_rig(&first, (struct shape){ .width = test_width(0), .lines = 256, .uri = uri });
	open_rig(&second, (struct shape){ .width = test_width(0), .lines = 256, .uri = uri });
	open_writer(&first, 8, 0, &args.writer[0]);
	must(weir_array_open(second.cache, second.storages, 1, WEIR_OPTIONS(array, .element_bytes = 8),
			     &array));
	memcpy(&before, first.model + ELEMENT * 8, 8);
	for (args.salt = 0; !memcmp(&before, first.model + ELEMENT * 8, 8);
	     args.salt++) { /* until a lane met that element */
		put(&first, &args);
		assert_true(element(&second, &array, ELEMENT) == before);
	}
	must(weir_cache_flush(first.cache, 0));
	assert_true(element(&second, &array, ELEMENT) == before);
	must(weir_array_invalidate(second.cache, &array, 0, array.count));
	memcpy(&after, first.model + ELEMENT * 8, 8);
	assert_true(element(&second, &array, ELEMENT) == after);
	memcpy(second.model, first.model, BYTES);
	close_rig(&second);
	close_rig(&first);
	unlink(path);
}

/* Each lane has a block; what it flushed it finds there, past the cache. */
static void test_lanes_flush(void **state)
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

static void refused(int result, int error, const char *word, const char *other)
{
	assert_int_equal(result, error);
	if (!strstr(weir_last_error(), word) || !strstr(weir_last_error(), other))
		fail_msg("neither or only one of \"%s\" and \"%s\" in: %s", word, other, weir_last_error());
}

static void test_durable_means_an_nvme_flush(void **state)
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

/* A durable flush reaches every storage of a stripe, behind all of its writes; one that is not reaches none;
 * a close does. */
static void test_every_member_becomes_durable(void **state)
{
	char folder[] = "/tmp/weir-trace-XXXXXX", trace[64];
	struct test_flush_args lanes = { .each = 64, .rounds = 1 };
	uint32_t statuses[LANES];
	struct test_put_args args;
	struct weir_writer writer;
	struct rig rig;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(trace, sizeof(trace), "%s/trace", folder);
	open_rig(&rig, (struct shape){ .width = test_width(0),
				       .lines = 1024,
				       .disks = MEMBERS,
				       .stripe = 4096,
				       .trace = trace });
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
		must(weir_launch(rig.context, "test_put", 1, LANES_FAR, &args, sizeof(args)));
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

static uint64_t commands_of(struct weir_storage *storage)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	must(weir_stats(storage, &stats));
	return stats.commands;
}

/* Nothing is left to write: what a durable flush sends then is one Flush for each member of each layout that
 * is written to. */
static void test_durable_reaches_every_storage(void **state)
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

/* Each of two members refuses one Flush: each time that is said. */
static void test_durable_tells_every_member(void **state)
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
	refused(weir_cache_flush(rig.cache, 1), -EIO, "flush", "internal error");
	must(weir_cache_flush(rig.cache, 1));
	close_rig(&rig);
}

/* Of a stripe the second member cannot write its block 3: it is named, not the first. */
static void test_the_member_is_named(void **state)
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

/* Exactly the lines that have the elements, where an array begins within its storage; what is no range of it
 * is refused. */
static void test_flush_keeps_to_the_range(void **state)
{
	struct weir_storage *storage;
	struct test_put_args args = { .writer_count = 1, .puts = 12 };
	struct weir_writer writer;
	struct weir_cache *other;
	uint64_t dirty;
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0), .lines = 512 });
	open_writer(&rig, 8, 1024, &args.writer[0]);
	put(&rig, &args);
	dirty = stats_of(&rig).dirty;
	must(weir_array_invalidate(rig.cache, &args.writer[0].array, 0, 64)); /* line 2 */
	assert_int_equal(stats_of(&rig).dirty, dirty - 1);
	model_forget(&rig, 1024, 1536);
	must(weir_array_flush(rig.cache, &args.writer[0].array, 64, 128, 0)); /* lines 3 and 4 */
	assert_int_equal(stats_of(&rig).dirty, dirty - 3);
	refused(weir_array_flush(rig.cache, &args.writer[0].array, 2, UINT64_MAX, 0), -ERANGE, "elements 2",
		"weir_array_flush");
	refused(weir_array_invalidate(rig.cache, &args.writer[0].array, UINT64_MAX, 2), -ERANGE,
		"of an array", "weir_array_invalidate");
	must(test_storage_open(rig.context, "virt:64K?block=512", NULL, &storage));
	must(weir_cache_create(rig.context, WEIR_OPTIONS(cache, .lines = 4, .line_bytes = 512), &other));
	must(weir_writer_open(other, &storage, 1, WEIR_OPTIONS(array, .element_bytes = 8), &writer));
	refused(weir_array_flush(other, &args.writer[0].array, 0, 1, 0), -EINVAL, "weir_array_flush",
		"not one of this cache");
	must(weir_cache_destroy(other));
	weir_storage_close(storage);
	close_rig(&rig);
}

/* Lines anywhere in a cache that has more of them than the host looks at in one go. */
static void test_dirty_lines_of_a_large_cache(void **state)
{
	struct test_put_args args;
	struct weir_writer writer;
	uint64_t dirty;
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0), .lines = 3 << 16 });
	put_one_pass(&rig, &args, &writer);
	dirty = stats_of(&rig).dirty;
	assert_true(dirty > 100);
	must(weir_cache_flush(rig.cache, 0));
	assert_int_equal(stats_of(&rig).writebacks, dirty);
	close_rig(&rig);
}

/* The first write that the storage gets is the rig's own; then block 16 fails. */
static void test_media_error_on_write_back(void **state)
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

static void test_close_names_what_is_lost(void **state)
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
static void test_a_set_that_cannot_be_written(void **state)
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
		must(weir_launch(rig.context, "test_put", BLOCKS, THREADS, &args, sizeof(args)));
		refused(weir_sync(rig.context), -EIO, "written back, which failed", "write fault");
		error = weir_cache_destroy(rig.cache);
		refused(error, -EIO, "4 lines could not be written", "they are lost");
		model_forget(&rig, 0, rig.bytes);
		check_storages(&rig);
		close_storages(&rig);
	}
}

static void test_a_controller_that_dies(void **state)
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

static void test_read_only_storage(void **state)
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

static void test_past_the_end(void **state)
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
		cmocka_unit_test(test_flush_and_invalidate_a_range),
		cmocka_unit_test(test_invalidated_lines_are_read_again),
		cmocka_unit_test(test_two_contexts_share_a_file),
		cmocka_unit_test(test_lanes_flush),
		cmocka_unit_test(test_durable_means_an_nvme_flush),
		cmocka_unit_test(test_durable_reaches_every_storage),
		cmocka_unit_test(test_durable_tells_every_member),
		cmocka_unit_test(test_the_member_is_named),
		cmocka_unit_test(test_flush_keeps_to_the_range),
		cmocka_unit_test(test_dirty_lines_of_a_large_cache),
		cmocka_unit_test(test_every_member_becomes_durable),
		cmocka_unit_test(test_many_tebibytes),
		cmocka_unit_test(test_media_error_on_write_back),
		cmocka_unit_test(test_close_names_what_is_lost),
		cmocka_unit_test(test_a_set_that_cannot_be_written),
		cmocka_unit_test(test_a_controller_that_dies),
		cmocka_unit_test(test_read_only_storage),
		cmocka_unit_test(test_past_the_end),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("writeback", tests, NULL, NULL);
}
