/* SPDX-License-Identifier: BSD-3-Clause */
/* Replacement policies: against their simulators, with many lanes, by name, and what a hit writes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/abi.h>
#include <weir/weir.h>

#include "../../runtime/tools/weir-policies/fixture.h"
#include "../rig/context.h"
#include "../rig/kernels.h"
#include "simulate.h"
#include "trace.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum { READS = 3000, LANES = 140, LANE_READS = 2800, LINE_WORDS = 64, SETTLED_READS = 3 };

static struct trace make_trace(enum trace_kind kind, uint64_t cache_lines, uint64_t reads)
{
	struct trace_shape shape = { .cache_lines = cache_lines, .reads = reads, .theta = 0.99, .seed = 7 };
	struct trace trace;

	assert_int_equal(trace_make(kind, &shape, &trace), 0);
	assert_true(trace.count > 0 && trace.count <= reads);
	for (uint64_t i = 0; i < trace.count; i++)
		assert_true(trace.lines[i] < trace.span);
	return trace;
}

static void open_fixture(struct fixture *fixture, uint32_t width, uint64_t span)
{
	struct fixture_options options = {
		.backend = test_context_name(),
		.context = WEIR_OPTIONS(context, .workers = 2, .wave_lanes = width,
					.service_waves = test_service()),
		.span = span,
	};

	must(fixture_open(fixture, &options));
}

static uint64_t on_paper(unsigned policy, uint64_t sets, unsigned ways, const struct trace *trace)
{
	uint64_t *keys = malloc(trace->count * sizeof(*keys)), misses;

	assert_non_null(keys);
	for (uint64_t i = 0; i < trace->count; i++)
		keys[i] = trace->lines[i] + 1;
	assert_int_equal(simulate(policy, sets, ways, (struct simulate_trace){ keys, trace->count }, &misses),
			 0);
	free(keys);
	return misses;
}

/* The random policy draws other numbers than its simulator: misses within a twentieth of all reads. */
static void compare(enum weir_policy policy, uint64_t lines, const char *trace_name,
		    const struct trace *trace, uint64_t measured)
{
	uint64_t simulated = on_paper(policy, lines / WEIR_WAYS, WEIR_WAYS, trace);
	uint64_t apart = measured > simulated ? measured - simulated : simulated - measured;

	if (apart > (simulate_exact(policy) ? 0 : trace->count / 20))
		fail_msg("%s, %llu lines, %s: %llu misses of %llu, the simulator says %llu",
			 weir_policy_name(policy), (unsigned long long)lines, trace_name,
			 (unsigned long long)measured, (unsigned long long)trace->count,
			 (unsigned long long)simulated);
	assert_true(measured >= on_paper(SIMULATE_BEST, lines / WEIR_WAYS, WEIR_WAYS, trace));
}

static void test_one_lane_agrees_with_the_simulator(void **state)
{
	static const uint64_t sizes[] = { 4, 12, 128 };

	(void)state;
	for (size_t s = 0; s < 3; s++)
		for (unsigned kind = 0; kind < TRACE_COUNT; kind++) {
			struct trace trace =
				make_trace((enum trace_kind)kind, sizes[s], test_trace_reads(READS));
			struct fixture fixture;

			open_fixture(&fixture, test_width(0), trace.span);
			for (unsigned policy = 0; policy < WEIR_POLICY_USER; policy++) {
				struct fixture_cache cache = { sizes[s], (enum weir_policy)policy, 1 };
				uint64_t misses;

				must(fixture_replay(&fixture, &cache, &trace, &misses));
				compare((enum weir_policy)policy, sizes[s], trace_names[kind], &trace,
					misses);
			}
			must(fixture_close(&fixture));
			free(trace.lines);
		}
}

/* So that agreeing means something: no two policies do the same on every trace. */
static void test_policies_differ(void **state)
{
	struct trace zipf = make_trace(TRACE_ZIPF, 256, READS), loop = make_trace(TRACE_LOOP, 256, READS);

	(void)state;
	for (unsigned a = 0; a < WEIR_POLICY_USER; a++)
		for (unsigned b = a + 1; b < WEIR_POLICY_USER; b++)
			assert_true(on_paper(a, 64, WEIR_WAYS, &zipf) != on_paper(b, 64, WEIR_WAYS, &zipf) ||
				    on_paper(a, 64, WEIR_WAYS, &loop) != on_paper(b, 64, WEIR_WAYS, &loop));
	free(zipf.lines);
	free(loop.lines);
}

/* Small cases by hand: one set of four lines. */
static void test_simulators_by_hand(void **state)
{
	static const struct {
		unsigned policy;
		uint64_t lines[12];
		uint64_t misses;
	} cases[] = {
		/* 0 is read again before 4 comes: LRU keeps it, FIFO does not */
		{ WEIR_POLICY_LRU, { 0, 1, 2, 3, 0, 4, 0, 1, 0, 0, 0, 0 }, 6 },
		{ SIMULATE_LRU, { 0, 1, 2, 3, 0, 4, 0, 1, 0, 0, 0, 0 }, 6 },
		{ WEIR_POLICY_FIFO, { 0, 1, 2, 3, 0, 4, 0, 1, 0, 0, 0, 0 }, 7 },
		/* 0 and 4 share a place, 1, 2 and 3 are not touched */
		{ WEIR_POLICY_DIRECT, { 0, 1, 2, 3, 4, 0, 4, 0, 1, 2, 3, 3 }, 8 },
		/* all come marked, so the hand goes round and takes 0; then 1, not 0, is passed over */
		{ WEIR_POLICY_CLOCK, { 0, 1, 2, 3, 4, 1, 0, 1, 2, 2, 2, 2 }, 7 },
		/* 0 stays, 1 goes for 4; the hand is at 2 then, which goes for 5 */
		{ WEIR_POLICY_SIEVE, { 0, 1, 2, 3, 0, 4, 5, 0, 3, 4, 5, 0 }, 6 },
		/* five lines in turn: three stay, two take turns on probation */
		{ WEIR_POLICY_FREQUENCY, { 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1 }, 7 },
		/* never the one that is needed next */
		{ SIMULATE_BEST, { 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1 }, 6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t lines[12];
		struct trace trace = { lines, 12, 6 };

		/* Keys begin at 1, and direct mapping would put key 4 where key 0 would be: as well. */
		memcpy(lines, cases[i].lines, sizeof(lines));
		if (on_paper(cases[i].policy, 1, WEIR_WAYS, &trace) != cases[i].misses)
			fail_msg("case %zu: %llu misses instead of %llu", i,
				 (unsigned long long)on_paper(cases[i].policy, 1, WEIR_WAYS, &trace),
				 (unsigned long long)cases[i].misses);
	}
}

static void test_many_lanes_read_right_data(void **state)
{
	static const uint64_t sizes[] = { 4, 12, 64 };

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct trace trace = make_trace(TRACE_MIXED, 64, LANE_READS);
		struct fixture fixture;

		open_fixture(&fixture, test_width(w), trace.span);
		for (unsigned policy = 0; policy < WEIR_POLICY_USER; policy++)
			for (size_t s = 0; s < 3; s++) {
				struct fixture_cache cache = { sizes[s], (enum weir_policy)policy, LANES };
				uint64_t misses = 0;
				int error = fixture_replay(&fixture, &cache, &trace, &misses);

				if (error)
					fail_msg("%s, %llu lines, width %u: %s",
						 weir_policy_name(cache.policy), (unsigned long long)sizes[s],
						 test_width(w),
						 error == -EBADMSG ? "wrong data" : weir_last_error());
				assert_in_range(misses, 1, LANE_READS);
			}
		fixture_close(&fixture);
		free(trace.lines);
	}
}

static void test_resident_lines_miss_once(void **state)
{
	uint64_t lines[512];
	struct trace trace = { lines, 512, 128 };
	struct fixture fixture;

	(void)state;
	for (uint64_t i = 0; i < 512; i++)
		lines[i] = i * 37 % 128;
	open_fixture(&fixture, test_width(0), trace.span);
	for (unsigned policy = 0; policy < WEIR_POLICY_USER; policy++)
		for (uint32_t lanes = 1; lanes <= 64; lanes *= 8) {
			struct fixture_cache cache = { 128, (enum weir_policy)policy, lanes };
			uint64_t misses;

			must(fixture_replay(&fixture, &cache, &trace, &misses));
			assert_int_equal(misses, 128);
		}
	fixture_close(&fixture);
}

/** struct stage - one storage, one cache of one set, one lane */
struct stage {
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_cache *cache;
	struct test_get_args args;
};

static void open_stage(struct stage *stage, enum weir_policy policy, const char *uri)
{
	uint64_t verdict;

	memset(stage, 0, sizeof(*stage));
	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .service_waves = test_service()),
			       &stage->context));
	must(test_storage_open(stage->context, uri, NULL, &stage->storage));
	must(weir_cache_create(stage->context,
			       WEIR_OPTIONS(cache, .lines = 4, .line_bytes = 512, .policy = policy),
			       &stage->cache));
	must(weir_array_open(stage->cache, &stage->storage, 1, WEIR_OPTIONS(array, .element_bytes = 8),
			     &stage->args.array));
	must(weir_alloc(stage->context, sizeof(struct test_verdict), &verdict));
	stage->args.verdict = verdict;
}

static void close_stage(struct stage *stage)
{
	weir_cache_destroy(stage->cache);
	weir_storage_close(stage->storage);
	weir_context_close(stage->context);
}

static int read_line(struct stage *stage, uint64_t line)
{
	stage->args.index = line * LINE_WORDS;
	must(weir_launch(stage->context, "test_get", 1, 1, &stage->args, sizeof(stage->args)));
	return weir_sync(stage->context);
}

static uint64_t word_of(struct stage *stage, uint32_t way)
{
	struct weir_lines lines;
	struct weir_set set;

	must(weir_copy_from_device(stage->context, &lines, stage->args.array.lines, sizeof(lines)));
	must(weir_copy_from_device(stage->context, &set, lines.words, sizeof(set)));
	return weir_load_u64_relaxed_sys(&set.word[way]);
}

static uint64_t misses_of(struct stage *stage)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };

	must(weir_cache_stats(stage->cache, &stats));
	return stats.misses;
}

/* Where a policy ignores reads a line comes marked, and no hit changes a bit; else the first one does. */
static void test_hits_write_only_what_is_new(void **state)
{
	(void)state;
	for (unsigned policy = 0; policy < WEIR_POLICY_USER; policy++) {
		uint64_t listens = policy == WEIR_POLICY_LRU || policy == WEIR_POLICY_SIEVE ||
				   policy == WEIR_POLICY_FREQUENCY;
		uint64_t claimed;
		struct stage stage;
		uint32_t way = 0;

		open_stage(&stage, (enum weir_policy)policy, "virt:64K?block=512");
		assert_int_equal(read_line(&stage, 0), 0);
		while (way < WEIR_WAYS - 1 && !word_of(&stage, way))
			way++;
		claimed = word_of(&stage, way);
		assert_int_equal(claimed >> WEIR_LINE_KEY_SHIFT, 1);
		assert_int_equal(claimed & WEIR_LINE_USED, listens ? 0 : WEIR_LINE_USED);
		for (unsigned i = 0; i < SETTLED_READS; i++) {
			assert_int_equal(read_line(&stage, 0), 0);
			assert_int_equal(word_of(&stage, way), claimed | WEIR_LINE_USED);
		}
		assert_int_equal(misses_of(&stage), 1);
		close_stage(&stage);
	}
}

/* Six lines through a cache of four: the host is told of each that came, and of each that made room. */
static void test_what_came_and_went(void **state)
{
	(void)state;
	for (unsigned policy = 0; policy < WEIR_POLICY_USER; policy++) {
		struct weir_cache_stats stats = { .size = sizeof(stats) };
		struct stage stage;

		open_stage(&stage, (enum weir_policy)policy, "virt:64K?block=512");
		for (uint64_t line = 0; line < 6; line++)
			assert_int_equal(read_line(&stage, line), 0);
		must(weir_cache_stats(stage.cache, &stats));
		assert_int_equal(stats.misses, 6);
		assert_int_equal(stats.evictions, 2);
		assert_int_equal(stats.writebacks, 0);
		close_stage(&stage);
	}
}

/* A line that could not be read is tried again where it is, under every policy. */
static void test_a_failed_line_is_tried_again(void **state)
{
	(void)state;
	for (unsigned policy = 0; policy < WEIR_POLICY_USER; policy++) {
		struct stage stage;

		open_stage(&stage, (enum weir_policy)policy,
			   "virt:64K?block=512&fault=status:code=0x281:lba=5:count=1");
		for (uint64_t line = 4; line < 8; line++)
			assert_int_equal(read_line(&stage, line), line == 5 ? -EIO : 0);
		assert_int_equal(read_line(&stage, 5), 0);
		for (uint64_t line = 4; line < 8; line++)
			assert_int_equal(read_line(&stage, line), 0);
		assert_int_equal(misses_of(&stage), 5);
		close_stage(&stage);
	}
}

static void test_names(void **state)
{
	enum weir_policy policy = WEIR_POLICY_COUNT;

	(void)state;
	for (int i = 0; i < WEIR_POLICY_COUNT; i++) {
		must(weir_policy_of_name(weir_policy_name((enum weir_policy)i), &policy));
		assert_int_equal(policy, i);
	}
	assert_null(weir_policy_name(WEIR_POLICY_COUNT));
	assert_int_equal(weir_policy_of_name("lifo", &policy), -EINVAL);
	assert_string_equal(weir_last_error(),
			    "no cache policy is called \"lifo\"; there are clock, lru, fifo, random, direct, "
			    "sieve, frequency, user");
}

static void refuse(struct weir_context *context, const struct weir_cache_options *options, const char *says)
{
	struct weir_cache *cache;

	assert_int_equal(weir_cache_create(context, options, &cache), -EINVAL);
	assert_null(cache);
	if (!strstr(weir_last_error(), says))
		fail_msg("\"%s\" does not say %s", weir_last_error(), says);
}

static void test_refusals(void **state)
{
	struct weir_context *context;

	(void)state;
	must(weir_context_open(test_context_name(), NULL, &context));
	refuse(context, WEIR_OPTIONS(cache, .lines = 4, .policy = (enum weir_policy)99),
	       "no policy number 99");
	refuse(context, WEIR_OPTIONS(cache, .lines = 4, .policy = WEIR_POLICY_LRU, .policy_parameter = 1),
	       "\"lru\" takes none");
	refuse(context, WEIR_OPTIONS(cache, .lines = 4, .policy = WEIR_POLICY_USER), "-Duser_policy=HEADER");
	weir_context_close(context);
}

/* A cache with a policy that the kernel was not built with: an error, not another policy. */
static void test_a_kernel_without_the_policy(void **state)
{
	struct weir_lines lines;
	struct stage stage;

	(void)state;
	open_stage(&stage, WEIR_POLICY_CLOCK, "virt:64K?block=512");
	must(weir_copy_from_device(stage.context, &lines, stage.args.array.lines, sizeof(lines)));
	lines.policy = WEIR_POLICY_USER;
	must(weir_copy_to_device(stage.context, stage.args.array.lines, &lines, sizeof(lines)));
	assert_int_equal(read_line(&stage, 0), -EIO);
	assert_non_null(strstr(weir_last_error(), "WEIR_USER_POLICY"));
	assert_int_equal(misses_of(&stage), 0);
	close_stage(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_lane_agrees_with_the_simulator),
		cmocka_unit_test(test_policies_differ),
		cmocka_unit_test(test_simulators_by_hand),
		cmocka_unit_test(test_many_lanes_read_right_data),
		cmocka_unit_test(test_resident_lines_miss_once),
		cmocka_unit_test(test_hits_write_only_what_is_new),
		cmocka_unit_test(test_what_came_and_went),
		cmocka_unit_test(test_a_failed_line_is_tried_again),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_a_kernel_without_the_policy),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
