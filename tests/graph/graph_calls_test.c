/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph_calls_test.c: weir-graph's files where the system does less than it was asked for, or fails.
 *
 * The calls of the library to the system pass through the test.
 */
#include "graph_rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "format.h"
#include "stripe.h"

enum { SCALE = 8, DEGREE = 8, UNIT = 64 << 20, LONG = 4096, MOST_UNITS = 256, FREE_BLOCKS = 1 << 30 };

/*
 * What stands in the way: @most bytes a call, @interrupts before they succeed, files that end at @end, if
 * that is not 0, the @sync_fails-th fsync(),
 * the @close_fails-th close() of a file that was made durable, a rename to @refused.
 */
static struct {
	size_t most;
	off_t end;
	atomic_uint interrupts, syncs, sync_fails, closes, close_fails;
	int synced; /* file that was made durable last */
	const char *refused;
	off_t full; /* if not 0: from here on there is no room, and what is long is dropped before */
	off_t dropped_at;
	unsigned backwards; /* of these, those before the one before */
	unsigned reads, writes;
	off_t read_at[MOST_UNITS], written_at[MOST_UNITS];
	int written_to[MOST_UNITS];
} calls;

static bool interrupted(void)
{
	unsigned left = atomic_load(&calls.interrupts);

	while (left && !atomic_compare_exchange_weak(&calls.interrupts, &left, left - 1))
		;
	if (left)
		errno = EINTR;
	return left != 0;
}

static size_t allowed(size_t bytes)
{
	return calls.most && bytes > calls.most ? calls.most : bytes;
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
	if (bytes == UNIT) {
		calls.read_at[calls.reads++ % MOST_UNITS] = offset;
		return UNIT;
	}
	if (calls.end && offset >= calls.end)
		return 0;
	if (calls.end && bytes > (size_t)(calls.end - offset))
		bytes = (size_t)(calls.end - offset);
	return interrupted() ? -1 : syscall(SYS_pread64, fd, to, allowed(bytes), offset);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
	if (bytes == UNIT) {
		calls.written_to[calls.writes % MOST_UNITS] = fd;
		calls.written_at[calls.writes++ % MOST_UNITS] = offset;
		return UNIT;
	}
	if (calls.full && offset >= calls.full) {
		errno = ENOSPC;
		return -1;
	}
	if (calls.full && bytes >= LONG) {
		calls.backwards += offset < calls.dropped_at;
		calls.dropped_at = offset;
		return (ssize_t)bytes;
	}
	return interrupted() ? -1 : syscall(SYS_pwrite64, fd, from, allowed(bytes), offset);
}

/* Room for whatever is to be written. */
int statvfs(const char *path, struct statvfs *status)
{
	memset(status, 0, sizeof(*status));
	status->f_frsize = 4096;
	status->f_bavail = FREE_BLOCKS;
	return access(path, F_OK);
}

int fsync(int fd)
{
	calls.synced = fd;
	if (atomic_fetch_add(&calls.syncs, 1) + 1 != atomic_load(&calls.sync_fails))
		return (int)syscall(SYS_fsync, fd);
	errno = EIO;
	return -1;
}

int close(int fd)
{
	int result = (int)syscall(SYS_close, fd);

	if (fd != calls.synced || result)
		return result;
	calls.synced = -1;
	if (atomic_fetch_add(&calls.closes, 1) + 1 != atomic_load(&calls.close_fails))
		return result;
	errno = EDQUOT;
	return -1;
}

int rename(const char *from, const char *to)
{
	if (!calls.refused || !strstr(to, calls.refused))
		return (int)syscall(SYS_renameat, -100 /* AT_FDCWD */, from, -100, to);
	errno = EXDEV;
	return -1;
}

static int make_set(const char *name)
{
	const struct graph_generate_options options = { .size = sizeof(options),
							.kind = GRAPH_KRONECKER,
							.scale = SCALE,
							.degree = DEGREE,
							.seed = 3,
							.threads = 1,
							.weighted = true };

	return graph_generate(&options, in_directory(name), sentence, sizeof(sentence));
}

static void same_sets(const char *one, const char *other)
{
	static const char *const ends[] = { "col", "dst", "val" };
	char names[2][64];

	for (size_t i = 0; i < 3; i++) {
		snprintf(names[0], sizeof(names[0]), "%s.%s", one, ends[i]);
		snprintf(names[1], sizeof(names[1]), "%s.%s", other, ends[i]);
		assert_same_file(names[0], names[1]);
	}
}

static int begin(void **state)
{
	calls.most = 0;
	calls.end = 0;
	calls.interrupts = calls.syncs = calls.sync_fails = calls.closes = calls.close_fails = 0;
	calls.synced = -1;
	calls.refused = NULL;
	calls.reads = calls.writes = 0;
	calls.full = calls.dropped_at = 0;
	calls.backwards = 0;
	return make_directory(state) || clean(state);
}

static int end(void **state)
{
	return leaves_nothing(state) || remove_directory(state);
}

/* Files come out the same, and are read the same, however few bytes a call moves. */
static void short_calls_are_continued(void **state)
{
	static const size_t most[] = { 1000, 4096, 7 };
	struct graph_bel bel;
	uint64_t *offsets[2], *neighbours[2];

	(void)state;
	assert_int_equal(make_set("whole.bel"), 0);
	assert_int_equal(graph_bel_open(in_directory("whole.bel"), &bel, sentence, sizeof(sentence)), 0);
	assert_int_equal(graph_bel_load(&bel, &offsets[0], &neighbours[0], sentence, sizeof(sentence)), 0);
	for (size_t i = 0; i < 3; i++) {
		calls.most = most[i];
		calls.interrupts = 20;
		assert_int_equal(make_set("parts.bel"), 0);
		assert_int_equal(
			graph_bel_load(&bel, &offsets[1], &neighbours[1], sentence, sizeof(sentence)), 0);
		calls.most = 0;
		assert_int_equal(calls.interrupts, 0);
		same_sets("parts.bel", "whole.bel");
		assert_memory_equal(offsets[0], offsets[1], (bel.vertices + 1) * 8);
		assert_memory_equal(neighbours[0], neighbours[1], bel.edges * 8);
		free(offsets[1]);
		free(neighbours[1]);
	}
	free(offsets[0]);
	free(neighbours[0]);
}

/* What fails when a file is made durable, any of the set, is told, and no file of the set is there. */
static void failed_syncs_keep_nothing(void **state)
{
	unsigned syncs;

	(void)state;
	assert_int_equal(make_set("whole.bel"), 0);
	syncs = atomic_load(&calls.syncs);
	assert_true(syncs >= 3);
	for (unsigned i = 1; i <= syncs; i++) {
		calls.syncs = 0;
		calls.sync_fails = i;
		assert_int_equal(make_set("half.bel"), -EIO);
		assert_sentence("cannot finish writing");
		assert_false(exists("half.bel.col") || exists("half.bel.dst") || exists("half.bel.val"));
	}
	calls.sync_fails = 0;
	for (unsigned i = 1; i <= 3; i++) {
		calls.closes = 0;
		calls.close_fails = i;
		assert_int_equal(make_set("half.bel"), -EDQUOT);
		assert_sentence("cannot finish writing");
		assert_false(exists("half.bel.col") || exists("half.bel.dst") || exists("half.bel.val"));
	}
}

/* One of the set cannot get its name: those that have theirs lose it. */
static void half_a_set_is_not_kept(void **state)
{
	static const char *const refused[] = { ".col", ".dst", ".val" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		calls.refused = refused[i];
		assert_int_equal(make_set("half.bel"), -EXDEV);
		assert_sentence("nothing was kept");
		assert_false(exists("half.bel.col") || exists("half.bel.dst") || exists("half.bel.val"));
	}
}

static unsigned blocked_at_first; /* before any case */

/* How many signals wait until this thread lets them come. */
static unsigned blocked_signals(void)
{
	unsigned count = 0;
	sigset_t set;

	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &set), 0);
	for (int number = 1; number < NSIG; number++)
		count += sigismember(&set, number) == 1;
	return count;
}

/* However many sets failed before, the next one has its names; signals are those that were blocked before. */
static void failed_sets_leave_room_for_others(void **state)
{
	enum { SETS = 100 }; /* of three files, of which 256 may be under way */

	(void)state;
	for (unsigned i = 0; i < SETS; i++) {
		calls.syncs = 0;
		calls.sync_fails = i % 2 ? 2 : 0;
		calls.refused = i % 2 ? NULL : ".dst";
		assert_true(make_set("half.bel") < 0);
		assert_int_equal(blocked_signals(), blocked_at_first);
	}
	assert_int_equal(count_files(), 0);
	calls.refused = NULL;
	calls.sync_fails = 0;
	assert_int_equal(make_set("whole.bel"), 0);
	assert_int_equal(blocked_signals(), blocked_at_first);
}

/* Neighbours of 9 GiB over two files: each unit is read from its place and goes to its own, beyond 4 GiB. */
static void units_beyond_4_gib_are_where_they_belong(void **state)
{
	const uint64_t edges = (UINT64_C(9) << 30) / 8, col[] = { 2, 8, 0, edges }, dst[] = { edges, 8 };
	const unsigned units = (unsigned)((UINT64_C(9) << 30) / UNIT) + 1;
	char names[2][512], *const files[] = { names[0], names[1] };
	struct graph_progress progress;
	struct graph_error failure = { .text = "" };

	(void)state;
	write_words("far.bel.col", col, 4);
	write_words("far.bel.dst", dst, 2);
	assert_int_equal(truncate(in_directory("far.bel.dst"), (off_t)(16 + edges * 8)), 0);
	snprintf(names[0], sizeof(names[0]), "%s", in_directory("f0"));
	snprintf(names[1], sizeof(names[1]), "%s", in_directory("f1"));
	graph_progress_init(&progress, NULL, NULL);
	if (graph_stripe(in_directory("far.bel"), files, 2, UNIT, &progress, &failure))
		fail_msg("%s", failure.text);
	graph_progress_close(&progress);
	assert_int_equal(calls.reads, units - 1); /* the last one is short */
	assert_int_equal(calls.writes, units);
	assert_int_not_equal(calls.written_to[0], calls.written_to[1]);
	for (unsigned i = 0; i < units; i++) {
		assert_true(i == units - 1 || calls.read_at[i] == (off_t)i * UNIT);
		assert_true(calls.written_at[i] == (off_t)(i / 2) * UNIT);
		assert_int_equal(calls.written_to[i], calls.written_to[i % 2]);
	}
}

static void write_at(const char *name, uint64_t at, const void *data, size_t bytes)
{
	int file = open(in_directory(name), O_RDWR | O_CREAT, 0600);

	assert_true(file >= 0);
	assert_int_equal(syscall(SYS_pwrite64, file, data, bytes, (off_t)at), bytes);
	close(file);
}

/* A directed graph whose offsets alone have 5 GiB: its last offset, its edges and its inverse are behind
 * them, and not where the lowest 32 bits of their places are. */
static void rows_beyond_4_gib_are_read_where_they_are(void **state)
{
	const uint64_t vertices = (UINT64_C(5) << 30) / 8, edges = 2, rows = (vertices + 1) * 8 + edges * 4,
		       inverse = 17 + rows, wrong = UINT64_C(77) << 32 | 77;
	const unsigned char directed = 1;
	struct graph_source *source;
	struct graph_gapbs found;
	struct graph_error failure = { .text = "" };

	(void)state;
	write_at("far.sg", 0, &directed, 1);
	write_at("far.sg", 1, &edges, 8);
	write_at("far.sg", 9, &vertices, 8);
	write_at("far.sg", 17 + vertices * 8, &edges, 8); /* the last offset */
	write_at("far.sg", (uint32_t)inverse, &wrong, 8);
	assert_int_equal(truncate(in_directory("far.sg"), (off_t)(17 + 2 * rows)), 0);
	if (graph_gapbs_open(in_directory("far.sg"), &found, sentence, sizeof(sentence)))
		fail_msg("%s", sentence);
	assert_true(found.vertices == vertices && found.edges == edges && found.directed && !found.weighted);
	assert_true(found.offsets_at == 17 && found.edges_at == 17 + (vertices + 1) * 8);
	assert_int_equal(found.edge_bytes, 4);
	assert_int_equal(graph_source_open(in_directory("far.sg"), 0, NULL, &source, &failure), 0);
	if (graph_sg_read_inverse(source, &failure))
		fail_msg("%s", failure.text);
	graph_source_close(source);
}

/* The inverse of a graph whose offsets have 4 GiB is written behind them: there the disk is full. */
static void an_inverse_is_written_beyond_4_gib(void **state)
{
	const uint64_t vertices = UINT64_C(1) << 29;
	const struct graph_shape shape = { .vertices = vertices, .directed = true };
	struct graph_error failure = { .text = "" };
	struct graph_sink *sink;
	char at[64];

	(void)state;
	calls.full = (off_t)(17 + (vertices + 1) * 8);
	snprintf(at, sizeof(at), "at byte %llu: No space left", (unsigned long long)calls.full);
	assert_int_equal(graph_sink_open(in_directory("far.sg"), &shape, 1 << 20, NULL, &sink, &failure), 0);
	assert_int_equal(graph_sink_finish(sink, &failure), -ENOSPC);
	assert_non_null(strstr(failure.text, at));
	assert_int_equal(calls.backwards, 0);
	graph_sink_close(sink);
	assert_int_equal(count_files(), 0);
}

/* A neighbour may be the last vertex, and no other one behind it. */
static void a_neighbour_behind_the_last_vertex(void **state)
{
	static const uint64_t col[] = { 4, 8, 0, 2, 2, 3 };
	uint64_t words[5] = { 3, 8, 1, 2, 0 }, *offsets, *neighbours;
	struct graph_bel bel;

	(void)state;
	write_words("t.bel.col", col, 6);
	write_words("t.bel.dst", words, 5);
	assert_int_equal(graph_bel_open(in_directory("t.bel"), &bel, sentence, sizeof(sentence)), 0);
	words[3] = bel.vertices - 1;
	write_words("t.bel.dst", words, 5);
	assert_int_equal(graph_bel_load(&bel, &offsets, &neighbours, sentence, sizeof(sentence)), 0);
	free(offsets);
	free(neighbours);
	words[3] = bel.vertices;
	write_words("t.bel.dst", words, 5);
	assert_int_equal(graph_bel_load(&bel, &offsets, &neighbours, sentence, sizeof(sentence)), -ERANGE);
	assert_sentence("leads to vertex 3, but there are only 3 vertices");
}

static int convert_set(const char *to)
{
	struct graph_progress progress;
	struct graph_error failure = { .text = "" };
	const struct graph_convert_options options = { .memory_bytes = 1 << 20, .progress = &progress };
	int status;

	graph_progress_init(&progress, NULL, NULL);
	status = graph_convert(in_directory("whole.bel"), in_directory(to), &options, &failure);
	graph_progress_close(&progress);
	snprintf(sentence, sizeof(sentence), "%s", failure.text);
	return status;
}

/* Files that became shorter since they were found to be whole: nobody takes what is missing for read. */
static void files_that_end_early_are_told(void **state)
{
	static const char *const results[] = { "o.bel", "o.wel", "o.wsg" };
	uint64_t *offsets = NULL, *neighbours = NULL;
	struct graph_bel bel;
	off_t ends[4];

	(void)state;
	assert_int_equal(make_set("whole.bel"), 0);
	assert_int_equal(graph_bel_open(in_directory("whole.bel"), &bel, sentence, sizeof(sentence)), 0);
	ends[0] = 8;                                            /* within a header */
	ends[1] = 16 + 8 * 100;                                 /* among the offsets */
	ends[2] = 16 + (off_t)(bel.vertices + 1) * 8 + 8 * 100; /* behind them: among the neighbours */
	ends[3] = 16 + (off_t)bel.edges * 8 - 1;                /* within the last one */
	for (size_t i = 0; i < 4; i++) {
		calls.end = ends[i];
		for (size_t k = 0; k < 20; k++) /* what is kept each time would be more than a little */
			assert_int_equal(
				graph_bel_load(&bel, &offsets, &neighbours, sentence, sizeof(sentence)),
				-EILSEQ);
		assert_sentence("cut short or shrank while being read");
		assert_null(offsets);
		for (size_t k = 0; k < 3; k++) {
			assert_int_equal(convert_set(results[k]), -EILSEQ);
			assert_sentence("cut short or shrank while being read");
			assert_int_equal(count_files(), 3); /* of the set */
		}
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(short_calls_are_continued),
		CASE(failed_syncs_keep_nothing),
		CASE(half_a_set_is_not_kept),
		CASE(a_neighbour_behind_the_last_vertex),
		CASE(files_that_end_early_are_told),
		CASE(failed_sets_leave_room_for_others),
		CASE(units_beyond_4_gib_are_where_they_belong),
		CASE(rows_beyond_4_gib_are_read_where_they_are),
		CASE(an_inverse_is_written_beyond_4_gib),
	};

	blocked_at_first = blocked_signals();
	return cmocka_run_group_tests_name("graph calls", tests, NULL, NULL);
}
