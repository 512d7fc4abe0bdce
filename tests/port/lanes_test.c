/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a lane knows about itself, and launches; what it can do is port_test's. And that a kernel is ended, if
 * that is asked for, in which some lanes of a wave leave others waiting for them.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../rig/context.h"
#include "../rig/kernels.h"
#include "../rig/leaks.h"
#include "port.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

static const struct grid {
	uint32_t blocks, threads, workers;
} GRIDS[] = {
	{ 1, 1, 2 },  { 1, 3, 1 },  { 3, 1, 2 },   { 5, 37, 2 },
	{ 2, 65, 1 }, { 7, 64, 2 }, { 3, 130, 2 }, { 1, 1500, 1 },
};

enum { GRID_COUNT = sizeof(GRIDS) / sizeof(GRIDS[0]) };

static struct weir_context *open_context(uint32_t width, uint32_t workers)
{
	struct weir_context *context;

	must(weir_context_open(test_context_name(),
			       WEIR_OPTIONS(context, .workers = workers, .wave_lanes = width), &context));
	return context;
}

static uint64_t alloc(struct weir_context *context, size_t bytes)
{
	uint64_t address;

	must(weir_alloc(context, bytes, &address));
	return address;
}

/* Read the verdict, which must be without mistakes. */
static struct test_verdict judge(struct weir_context *context, uint64_t address, uint32_t width)
{
	struct test_verdict verdict;

	must(weir_sync(context));
	must(weir_copy_from_device(context, &verdict, address, sizeof(verdict)));
	if (weir_load_u64_relaxed_sys(&verdict.bad))
		fail_msg("wave width %u: %llu mistakes; first at %llu: %#llx instead of %#llx", width,
			 (unsigned long long)weir_load_u64_relaxed_sys(&verdict.bad),
			 (unsigned long long)verdict.where, (unsigned long long)verdict.found,
			 (unsigned long long)verdict.expected);
	return verdict;
}

/* The largest blocks come last. */
static bool fits(const struct grid *grid)
{
	return grid->threads <= test_device()->block_lanes;
}

static void check_places(const struct test_location *locations, const struct grid *grid, uint32_t width)
{
	uint64_t waves_per_block = (grid->threads + width - 1) / width;

	for (uint64_t i = 0; i < (uint64_t)grid->blocks * grid->threads; i++) {
		uint64_t in_block = i % grid->threads;

		assert_int_equal(
			weir_load_u64_relaxed_sys((weir_shared_u64 *)(uintptr_t)&locations[i].visits), 1);
		assert_int_equal(locations[i].threads, (uint64_t)grid->blocks * grid->threads);
		assert_int_equal(locations[i].lanes, width);
		assert_int_equal(locations[i].lane, in_block % width);
		assert_int_equal(locations[i].wave, i / grid->threads * waves_per_block + in_block / width);
	}
}

static void run_grid(const struct grid *grid, uint32_t width)
{
	struct weir_context *context = open_context(width, grid->workers);
	uint64_t count = (uint64_t)grid->blocks * grid->threads;
	struct test_location *locations = calloc(count, sizeof(*locations));
	struct test_grid_args args = { .count = count };

	args.locations = alloc(context, count * sizeof(*locations));
	args.verdict = alloc(context, sizeof(struct test_verdict));
	must(weir_launch(context, "test_grid", grid->blocks, grid->threads, &args, sizeof(args)));
	(void)judge(context, args.verdict, width);
	must(weir_copy_from_device(context, locations, args.locations, count * sizeof(*locations)));
	check_places(locations, grid, width);
	free(locations);
	weir_context_close(context);
}

static void test_ids_cover_the_grid_once(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t g = 0; g < GRID_COUNT && fits(&GRIDS[g]); g++)
			run_grid(&GRIDS[g], test_width(w));
}

/* With arguments that are changed as soon as the launch has returned, in memory that a device sees. */
static void test_launches_run_in_order(void **state)
{
	enum { LAUNCHES = 200 };

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct weir_context *context = open_context(test_width(w), 2);
		struct test_count_args *args;
		struct test_verdict verdict;
		uint64_t address;

		must(weir_alloc_host(context, sizeof(*args), &address, (void **)&args));
		*args = (struct test_count_args){ .adds = 1, .relaxes = 1 };
		args->verdict = alloc(context, sizeof(verdict));
		for (; args->launch < LAUNCHES; args->launch++)
			must(weir_launch(context, "test_count", 2, 5, args, sizeof(*args)));
		verdict = judge(context, args->verdict, test_width(w));
		assert_int_equal(weir_load_u64_relaxed_sys(&verdict.sum), LAUNCHES * 10);
		weir_context_close(context);
	}
}

static void test_few_resident_lanes_are_enough(void **state)
{
	struct weir_context *context;
	struct port_groups_args args = { .block_threads = 100, .rounds = 2 };
	struct test_verdict verdict;

	(void)state;
	if (!test_on_cpu()) {
		print_message("# resident_lanes is an option of the cpu's\n");
		skip();
	}
	must(weir_context_open("cpu",
			       WEIR_OPTIONS(context, .workers = 2, .wave_lanes = 32, .resident_lanes = 1,
					    .stack_bytes = 65536),
			       &context));
	args.verdict = alloc(context, sizeof(verdict));
	must(weir_launch(context, "port_groups", 9, 100, &args, sizeof(args)));
	verdict = judge(context, args.verdict, 32);
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), 9 * 100 * 2);
	weir_context_close(context);
}

static void test_wrong_launches_are_refused(void **state)
{
	static const struct {
		const char *kernel;
		uint32_t blocks, threads;
		int bytes, error;
		const char *words[2];
	} cases[] = {
		{ "test_no_such", 1, 1, 0, -ENOENT, { "test_no_such", "linked" } },
		{ "", 1, 1, 0, -ENOENT, { "no kernel", "\"\"" } },
		{ "test_count", 1, 1, 8, -EINVAL, { "test_count", "40" } },
		{ "test_count", 1, 1, -32, -EINVAL, { "32 bytes", "not 0" } },
		{ "test_count", 0, 1, 0, -EINVAL, { "test_count", "0 blocks" } },
		{ "test_count", 1, 0, 0, -EINVAL, { "test_count", "0 lanes" } },
	};
	struct weir_context *context = open_context(4, 2);
	struct {
		struct test_count_args args;
		uint64_t more;
	} padded;

	(void)state;
	memset(&padded, 0, sizeof(padded));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t bytes = sizeof(struct test_count_args) + (size_t)cases[i].bytes;

		assert_int_equal(weir_launch(context, cases[i].kernel, cases[i].blocks, cases[i].threads,
					     &padded, bytes),
				 cases[i].error);
		for (size_t j = 0; j < 2; j++)
			if (!strstr(weir_last_error(), cases[i].words[j]))
				fail_msg("case %zu: \"%s\" does not say \"%s\"", i, weir_last_error(),
					 cases[i].words[j]);
	}
	must(weir_sync(context));
	weir_context_close(context);
}

/* Places in memory that nobody may touch. */
static unsigned barred(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned count = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		count += strstr(line, " ---p ") != NULL;
	if (maps)
		fclose(maps);
	return count;
}

/* Before each lane's stack there is such a place: a lane with too much on its stack ends the process, and
 * does not write to its neighbour's. */
static void test_stacks_are_apart(void **state)
{
	enum { RESIDENT = 64 };
	struct weir_context *context;
	unsigned before = barred();

	(void)state;
	if (!test_on_cpu())
		skip();
	must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1, .resident_lanes = RESIDENT),
			       &context));
	assert_true(barred() >= before + RESIDENT);
	must(weir_context_close(context));
}

/* Stacks that are apart take mappings, of which a process has so many: on a machine of many cores, too, there
 * are enough for two contexts; who asks for more is told so. */
static void test_stacks_leave_mappings(void **state)
{
	enum { WORKERS = 64, LANES = 4096 };
	struct weir_context *contexts[2], *context;
	unsigned before = barred();

	(void)state;
	if (!test_on_cpu())
		skip();
	for (unsigned i = 0; i < 2; i++)
		must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = WORKERS), &contexts[i]));
	assert_true(barred() >= before + 2 * WORKERS);
	for (unsigned i = 0; i < 2; i++)
		must(weir_context_close(contexts[i]));
	if (!TEST_COUNTS_MEMORY)
		return; /* a sanitizer that finds no mapping left ends the process */
	if (weir_context_open("cpu", WEIR_OPTIONS(context, .workers = WORKERS, .resident_lanes = LANES),
			      &context) == 0)
		must(weir_context_close(context)); /* a machine that has more of them */
	else if (!strstr(weir_last_error(), "resident_lanes"))
		fail_msg("\"%s\" does not say \"resident_lanes\"", weir_last_error());
}

/* Contexts that come and go, or do not come about, and launches: nothing of them stays. */
static void test_nothing_stays(void **state)
{
	struct weir_context *context;
	struct test_has before;

	(void)state;
	if (!test_on_cpu()) {
		print_message("# what a vendor's library keeps is its own\n");
		skip();
	}
	for (unsigned round = 0; round < 24; round++) {
		struct test_count_args args = { .adds = 1 };

		if (round == 8)
			before = test_has();
		context = open_context(4, 2);
		args.verdict = alloc(context, sizeof(struct test_verdict));
		for (unsigned i = 0; i < 2000; i++)
			must(weir_launch(context, "test_count", 1, 1, &args, sizeof(args)));
		must(weir_sync(context));
		weir_context_close(context);
		/* The first worker has room for its lanes, and no machine for their stacks. */
		assert_int_equal(
			weir_context_open("cpu",
					  WEIR_OPTIONS(context, .workers = 2, .resident_lanes = 1 << 18,
						       .stack_bytes = (uint32_t)1 << 31),
					  &context),
			-ENOMEM);
		/* The workers have come, and the file has not. */
		assert_int_equal(weir_context_open("cpu:memory=/proc/self/none",
						   WEIR_OPTIONS(context, .workers = 2), &context),
				 -ENOENT);
	}
	test_keeps(before, 1 << 20);
}

/* Stacks are whole pages: those of a byte more than some pages are a page longer. */
static void test_stacks_are_large_enough(void **state)
{
	enum { LANES = 1024, LEAST = 16384, PAGE = 4096, SLACK = 1 << 20 };
	static const uint32_t bytes[] = { LEAST, LEAST + 1, LEAST + PAGE, LEAST + PAGE + 1 };
	uint64_t taken[4] = { 0 };

	(void)state;
	if (!test_on_cpu() || !TEST_COUNTS_MEMORY)
		skip();
	for (unsigned warm = 0; warm < 3; warm++)
		for (unsigned i = 0; i < 4; i++) {
			uint64_t before = test_map_bytes();
			struct weir_context *context;

			must(weir_context_open("cpu",
					       WEIR_OPTIONS(context, .workers = 1, .wave_lanes = 1,
							    .resident_lanes = LANES, .stack_bytes = bytes[i]),
					       &context));
			taken[i] = test_map_bytes() - before;
			weir_context_close(context);
		}
	assert_true(taken[1] + SLACK >= taken[0] + (uint64_t)LANES * PAGE);
	assert_true(taken[2] <= taken[1] + SLACK);
	assert_true(taken[3] + SLACK >= taken[2] + (uint64_t)LANES * PAGE);
}

/* MemTotal, the first line. */
static unsigned long long machine_kib(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "MemTotal: %llu kB", &kib), 1);
	fclose(file);
	return kib;
}

/* A context says what it was opened with, what the machine is, and what the cpu's lanes can do. */
static void test_what_the_cpu_is(void **state)
{
	static const struct {
		uint32_t workers, lanes;
		const char *name;
	} opened[] = { { 1, 1, "cpu (1 worker, wave width 1)" },
		       { 2, 4, "cpu (2 workers, wave width 4)" },
		       { 3, 64, "cpu (3 workers, wave width 64)" } };

	(void)state;
	if (!test_on_cpu())
		skip();
	for (unsigned i = 0; i < sizeof(opened) / sizeof(opened[0]); i++) {
		struct weir_context_info info = { .size = sizeof(info) };
		struct weir_context *context;

		must(weir_context_open(
			"cpu",
			WEIR_OPTIONS(context, .workers = opened[i].workers, .wave_lanes = opened[i].lanes),
			&context));
		must(weir_context_info(context, &info));
		weir_context_close(context);
		assert_string_equal(info.name, opened[i].name);
		assert_int_equal(info.workers, opened[i].workers);
		assert_int_equal(info.wave_lanes, opened[i].lanes);
		assert_int_equal(info.block_lanes, UINT32_MAX);
		assert_int_equal(info.memory_bytes, machine_kib() * 1024);
		assert_in_range(info.memory_free_bytes, 1, info.memory_bytes);
		assert_string_equal(info.pci_address, "");
		assert_int_equal(info.peer_writes, WEIR_PEER_WRITES_ORDERED_ALL);
		assert_true(info.peer_dma && info.map_registers && info.register_host);
		assert_true(!info.dma_buf && !info.export_memory);
		assert_non_null(strstr(info.export_memory_why, "the process's own"));
		assert_string_equal(info.register_host_why, "");
	}
}

/* In a process of its own, whose words go to @words: lanes that meet among themselves, while others of the
 * wave wait for them. */
static void nest(int words, const char *strict)
{
	struct port_groups_args args = { .block_threads = 32, .rounds = 1 };
	struct weir_context *context;
	struct test_verdict verdict;

	setenv("WEIR_CPU_STRICT", strict, 1);
	dup2(words, STDERR_FILENO);
	if (weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1, .wave_lanes = 32), &context) ||
	    weir_alloc(context, sizeof(verdict), &args.verdict) || weir_alloc(context, 32 * 8, &args.words) ||
	    weir_launch(context, "port_nested", 1, args.block_threads, &args, sizeof(args)) ||
	    weir_sync(context) || weir_copy_from_device(context, &verdict, args.verdict, sizeof(verdict)))
		_exit(2);
	_exit(weir_load_u64_relaxed_sys(&verdict.good) != 32 || weir_load_u64_relaxed_sys(&verdict.bad));
}

/* Return: how it ended; its words in @text. */
static int nested(const char *strict, char *text, size_t size)
{
	int ends[2], status = 0;
	size_t bytes = 0;
	ssize_t more;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		nest(ends[1], strict);
	close(ends[1]);
	while ((more = read(ends[0], text + bytes, size - 1 - bytes)) > 0)
		bytes += (size_t)more;
	text[bytes] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void test_lanes_left_behind_are_found(void **state)
{
	char text[8192];
	int status;

	(void)state;
	if (!test_on_cpu()) {
		print_message("# WEIR_CPU_STRICT is the cpu's\n");
		skip();
	}
	status = nested("", text, sizeof(text));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	status = nested("1", text, sizeof(text));
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_non_null(strstr(text, "meet among themselves, while others of it wait for them"));
	assert_non_null(strstr(text, "over mask 0xffffffff"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_cover_the_grid_once),
		cmocka_unit_test(test_launches_run_in_order),
		cmocka_unit_test(test_few_resident_lanes_are_enough),
		cmocka_unit_test(test_wrong_launches_are_refused),
		cmocka_unit_test(test_stacks_are_apart),
		cmocka_unit_test(test_nothing_stays),
		cmocka_unit_test(test_stacks_are_large_enough),
		cmocka_unit_test(test_what_the_cpu_is),
		cmocka_unit_test(test_lanes_left_behind_are_found),
		cmocka_unit_test(test_stacks_leave_mappings),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
