/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writeback_cases.h: cases of writeback_test.c that lie in other files.
 *
 * Owns: one pass of writes by all lanes, on the rig and in its model, and how errors and elements are looked
 * at.
 */
#ifndef WEIR_TESTS_WRITEBACK_CASES_H
#define WEIR_TESTS_WRITEBACK_CASES_H

#include "writer_rig.h"

enum { BLOCKS = 2, THREADS = 70, LANES = BLOCKS * THREADS };

static inline void put_model(struct rig *rig, const struct test_put_args *args)
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

static inline void put(struct rig *rig, struct test_put_args *args)
{
	struct test_verdict verdict;
	char kernel[16];

	args->verdict = rig->verdict;
	snprintf(kernel, sizeof(kernel), "test_put_u%u", 8 * args->writer[0].array.element_bytes);
	must(weir_launch(rig->context, kernel, BLOCKS, THREADS, args, sizeof(*args)));
	put_model(rig, args);
	verdict = judge(rig);
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), LANES * args->puts);
}

/* What lanes read through @array at @index. */
static inline uint64_t element(struct rig *rig, const struct weir_array *array, uint64_t index)
{
	struct test_get_args args = { .array = *array, .index = index, .verdict = rig->verdict };
	struct test_verdict verdict;

	must(weir_launch(rig->context, "test_get", 1, 1, &args, sizeof(args)));
	verdict = judge(rig);
	return weir_load_u64_relaxed_sys(&verdict.sum);
}

static inline void put_one_pass(struct rig *rig, struct test_put_args *args, struct weir_writer *writer)
{
	open_writer(rig, 8, 0, writer);
	*args = (struct test_put_args){ .writer = { *writer }, .writer_count = 1, .puts = 12 };
	put(rig, args);
}

/* Bytes [@from, @to) of the model as they were in the beginning. */
static inline void model_forget(struct rig *rig, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		rig->model[i] = (unsigned char)test_mix(i);
}

static inline void refused(int result, int error, const char *word, const char *other)
{
	assert_int_equal(result, error);
	if (!strstr(weir_last_error(), word) || !strstr(weir_last_error(), other))
		fail_msg("neither or only one of \"%s\" and \"%s\" in: %s", word, other, weir_last_error());
}

/* The cases of writeback_range.c. */
void test_arrays_of_the_same_storage_agree(void **state);
void test_many_layouts(void **state);
void test_flush_and_invalidate_a_range(void **state);
void test_invalidated_lines_are_read_again(void **state);
void test_two_contexts_share_a_file(void **state);
void test_flush_keeps_to_the_range(void **state);
void test_lanes_flush_to_their_last_element(void **state);
void test_dirty_lines_of_a_large_cache(void **state);

/* The cases of writeback_durable.c. */
void test_lanes_flush(void **state);
void test_durable_means_an_nvme_flush(void **state);
void test_durable_reaches_every_storage(void **state);
void test_durable_tells_every_member(void **state);
void test_durable_tells_every_layout(void **state);
void test_every_member_becomes_durable(void **state);
void test_a_late_member_holds_up_no_other(void **state);

/* The cases of writeback_errors.c. */
void test_the_member_is_named(void **state);
void test_media_error_on_write_back(void **state);
void test_close_names_what_is_lost(void **state);
void test_a_set_that_cannot_be_written(void **state);
void test_a_controller_that_dies(void **state);
void test_a_late_storage_is_no_other(void **state);
void test_read_only_storage(void **state);
void test_past_the_end(void **state);
void test_an_error_is_its_lanes_own(void **state);

#endif
