/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of elements flushed and invalidated, arrays and contexts of the same storage. */
#include <unistd.h>

#include "writeback_cases.h"

void test_arrays_of_the_same_storage_agree(void **state)
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

enum { OTHERS = 5 };

/* Arrays of the storages @others, three at a time in the orders that begin with those of @first to @last - 1.
 */
static void open_arrays(struct rig *rig, struct weir_storage *const *others, unsigned first, unsigned last)
{
	struct weir_array array;

	for (unsigned i = first * OTHERS * OTHERS; i < last * OTHERS * OTHERS; i++) {
		unsigned a = i / OTHERS / OTHERS, b = i / OTHERS % OTHERS, c = i % OTHERS;
		struct weir_storage *const three[] = { others[a], others[b], others[c] };

		if (a != b && a != c && b != c)
			must(weir_array_open(rig->cache, three, 3, WEIR_OPTIONS(array, .element_bytes = 8),
					     &array));
		if (a != b && !c)
			must(weir_array_open(rig->cache, three, 2, WEIR_OPTIONS(array, .element_bytes = 8),
					     &array));
	}
}

/* The table of layouts grows, from 64 of them to twice as many: where lines are written stays known. */
void test_many_layouts(void **state)
{
	struct weir_storage *others[OTHERS];
	struct test_put_args args;
	struct weir_writer writer;
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0), .lines = 256 });
	for (unsigned i = 0; i < OTHERS; i++)
		must(test_storage_open(rig.context, "virt:64K?block=512",
				       WEIR_OPTIONS(storage, .queues = 1, .depth = 2), &others[i]));
	open_arrays(&rig, others, 0, 2);
	put_one_pass(&rig, &args, &writer);
	open_arrays(&rig, others, 2, OTHERS);
	must(weir_cache_flush(rig.cache, 0));
	check_storages(&rig);
	args.salt = 5; /* other elements, some of lines that are evicted */
	put(&rig, &args);
	must(weir_cache_flush(rig.cache, 0));
	assert_int_equal(stats_of(&rig).dirty, 0);
	check_storages(&rig);
	must(weir_cache_destroy(rig.cache));
	for (unsigned i = 0; i < OTHERS; i++)
		must(weir_storage_close(others[i]));
	close_storages(&rig);
}

void test_flush_and_invalidate_a_range(void **state)
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

void test_invalidated_lines_are_read_again(void **state)
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
void test_two_contexts_share_a_file(void **state)
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

/* Exactly the lines that have the elements, where an array begins within its storage; what is no range of it
 * is refused. */
void test_flush_keeps_to_the_range(void **state)
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

/* Lanes flush up to their last element, also of a line of which others have the rest. */
void test_lanes_flush_to_their_last_element(void **state)
{
	static const struct {
		uint32_t lanes;
		uint64_t each;
	} flushes[] = { { 1, 1 }, { 1, 64 }, { 1, 85 }, { 1, 90 }, { 2, 90 }, { 3, 43 } };

	(void)state;
	for (size_t f = 0; f < sizeof(flushes) / sizeof(*flushes); f++) {
		struct test_flush_args lanes = { .each = flushes[f].each, .seed = f + 1, .rounds = 1 };
		uint64_t count = flushes[f].lanes * flushes[f].each, found[3 * 90 + 64];
		struct rig rig;

		open_rig(&rig, (struct shape){ .width = test_width(0), .lines = 512 });
		open_writer(&rig, 8, 1024, &lanes.writer);
		lanes.verdict = rig.verdict;
		must(weir_alloc(rig.context, 4 * sizeof(uint32_t), &lanes.statuses));
		must(weir_launch(rig.context, "test_flush", 1, flushes[f].lanes, &lanes, sizeof(lanes)));
		judge(&rig);
		must(weir_storage_read(rig.storages[0], 1024, found, (count * 8 + 511) / 512 * 512));
		for (uint64_t i = 0; i < count; i++) {
			uint64_t value = test_put_value(lanes.seed, i, 0);

			if (i % flushes[f].each % TEST_FLUSH_STRIDE != 0)
				continue;
			assert_true(found[i] == value);
			model_put(&rig, &lanes.writer, i, &value);
		}
		close_rig(&rig);
	}
}

/* Lines anywhere in a cache that has more of them than the host looks at in one go. */
void test_dirty_lines_of_a_large_cache(void **state)
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
