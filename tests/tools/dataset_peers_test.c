/* SPDX-License-Identifier: BSD-3-Clause */
/* What weir-dataset measures beside weir: files one by one, and a packed file through io_uring. A stand-in
 * for the library says where samples are; the clock goes on a millisecond with each question. */
#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <liburing.h>

#include <weir/dataset.h>

enum { DEPTH = 8, FILES = 25, BYTES = 1 << 20, PATH = 128 };

/** stand_in - where the only sample is; what was under way when a ring went */
static struct {
	struct weir_dataset_sample sample;
	unsigned rings, left;
	int slow[2]; /* a pipe, which the first read of a ring is from, in the place of its file, if that is
			wanted */
	bool one_is_slow, waits;
	atomic_uint clock;
} stand_in;

static int give_info(struct weir_dataset *dataset, struct weir_dataset_info *info)
{
	(void)dataset;
	info->samples = 3;
	info->longest_bytes = stand_in.sample.length;
	return 0;
}

static int give_sample(struct weir_dataset *dataset, uint64_t number, struct weir_dataset_sample *sample)
{
	(void)dataset;
	assert_in_range(number, 0, 2);
	*sample = stand_in.sample;
	return 0;
}

/* Reads that the kernel has, and nobody has waited for, have memory that is freed now. */
static void end_ring(struct io_uring *ring)
{
	stand_in.left += *ring->sq.khead - *ring->cq.khead;
	stand_in.rings++;
	io_uring_queue_exit(ring);
}

static void begin_read(struct io_uring_sqe *sqe, int file, void *to, unsigned bytes, uint64_t offset)
{
	if (stand_in.one_is_slow)
		io_uring_prep_read(sqe, stand_in.slow[0], to, 1, 0);
	else
		io_uring_prep_read(sqe, file, to, bytes, offset);
	stand_in.waits |= stand_in.one_is_slow;
	stand_in.one_is_slow = false;
}

/* Now the slow one ends. */
static int wait_for_read(struct io_uring *ring, struct io_uring_cqe **cqe)
{
	if (stand_in.waits)
		assert_int_equal(write(stand_in.slow[1], "x", 1), 1);
	stand_in.waits = false;
	return io_uring_wait_cqe(ring, cqe);
}

/* Nobody else's caches are dropped. */
static int open_file(const char *path, int flags)
{
	return strncmp(path, "/proc/", 6) ? open(path, flags) : -1;
}

static void sync_nothing(void)
{
}

#define sync                                sync_nothing
#define open                                open_file
#define weir_dataset_info(of, to)           give_info(of, to)
#define weir_dataset_sample(of, number, to) give_sample(of, number, to)
#define io_uring_prep_read                  begin_read
#define io_uring_wait_cqe                   wait_for_read
#define io_uring_queue_exit                 end_ring
#include "tools/weir-dataset/peers.c"

double tool_seconds(void)
{
	return (double)atomic_fetch_add(&stand_in.clock, 1) * 1e-3;
}

static char folder[] = "/tmp/weir-dataset-peers-XXXXXX", packed[PATH], tree[PATH];
static struct peer_result result;
static double seconds;

static int make_files(void **state)
{
	char name[2 * PATH];

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(packed, sizeof(packed), "%s/packed", folder);
	(void)snprintf(tree, sizeof(tree), "%s/tree", folder);
	for (unsigned i = 0; i < FILES + 1; i++) {
		FILE *file;

		(void)snprintf(name, sizeof(name), "%s/%u", tree, i);
		if (i == 0)
			(void)mkdir(tree, 0755);
		file = fopen(i == FILES ? packed : name, "w");
		if (!file || ftruncate(fileno(file), i == FILES ? BYTES : 1000 + i) || fclose(file))
			return -1;
	}
	return 0;
}

static int remove_files(void **state)
{
	char command[2 * PATH];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static int run_limit(int count, char **words)
{
	(void)count;
	(void)words;
	return peer_limit(packed, 64 << 10, DEPTH, seconds, &result);
}

static int run_packed(int count, char **words)
{
	static struct tool tool;

	(void)count;
	(void)words;
	return peer_packed(&tool, packed, DEPTH, 1, seconds, &result);
}

static bool has_ring(void)
{
	struct io_uring ring;
	int file = open(packed, O_RDONLY | O_DIRECT);

	if (file < 0 || io_uring_queue_init(DEPTH, &ring, 0) < 0)
		return false;
	(io_uring_queue_exit)(&ring);
	return close(file) == 0;
}

static unsigned open_files(void)
{
	unsigned count = 0;

	for (int file = 0; file < 256; file++)
		count += fcntl(file, F_GETFD) >= 0;
	return count;
}

/* However short a run is, its reads have ended when their memory goes; nothing stays open. */
static void test_reads_are_waited_for(void **state)
{
	unsigned files;

	(void)state;
	if (!has_ring())
		skip();
	assert_int_equal(pipe(stand_in.slow), 0);
	files = open_files();
	stand_in.rings = stand_in.left = 0;
	stand_in.sample = (struct weir_dataset_sample){ .offset = 700, .length = 3000 };
	for (unsigned i = 0; i < 40; i++) {
		seconds = 1e-3 * (i % 8);
		stand_in.one_is_slow = true;
		stand_in.waits = false;
		assert_int_equal(capture_run(i % 2 ? run_limit : run_packed, "run"), 0);
	}
	assert_int_equal(stand_in.left, 0);
	assert_int_equal(stand_in.rings >= 40, 1);
	assert_int_equal(open_files(), files);
	stand_in.one_is_slow = false;
	close(stand_in.slow[0]);
	close(stand_in.slow[1]);
}

/* A rate, by how much there was in all. */
static bool is(double rate, double all)
{
	double found = rate * result.seconds;

	return found > all - 0.5 && found < all + 0.5;
}

/* What came is counted, by whole blocks: of a sample at byte 700 those up to byte 3,700. */
static void test_bytes_of_reads(void **state)
{
	(void)state;
	if (!has_ring())
		skip();
	seconds = 0.05;
	stand_in.sample = (struct weir_dataset_sample){ .offset = 700, .length = 3000 };
	assert_int_equal(capture_run(run_packed, "run"), 0);
	assert_true(result.samples > 0);
	assert_true(is(result.bytes, result.samples * result.seconds * (4096 - 512)));
	assert_int_equal(capture_run(run_limit, "run"), 0);
	assert_true(result.samples > 0 && is(result.bytes, result.samples * result.seconds * (64 << 10)));
	/* beyond the file's end nothing comes, whatever is where the lowest 32 bits of the place are */
	stand_in.sample = (struct weir_dataset_sample){ .offset = ((uint64_t)1 << 32) + 512, .length = 512 };
	assert_int_equal(capture_run(run_packed, "run"), 0);
	assert_true(result.samples > 0 && result.bytes == 0);
}

/* Reads that fail are no measurement. */
static void test_reads_that_fail(void **state)
{
	(void)state;
	if (!has_ring())
		skip();
	seconds = 0.02;
	stand_in.sample = (struct weir_dataset_sample){ .offset = ((uint64_t)1 << 63) + 512, .length = 512 };
	assert_int_equal(capture_run(run_packed, "run"), 1);
	assert_non_null(strstr(captured_errors, "reads of the packed file failed"));
	(void)snprintf(packed, sizeof(packed), "%s/none", folder);
	assert_int_equal(capture_run(run_packed, "run"), 1);
	assert_int_equal(capture_run(run_limit, "run"), 1);
	assert_non_null(strstr(captured_errors, "cannot open"));
	(void)snprintf(packed, sizeof(packed), "%s/packed", folder);
}

/* Each file once, by any number of threads; its bytes only where it is read. */
static void test_each_file_once(void **state)
{
	double bytes = FILES * 1000 + FILES * (FILES - 1) / 2.0;

	(void)state;
	for (uint32_t threads = 1; threads < 9; threads += 7)
		for (enum peer_use use = PEER_READ; use <= PEER_OPEN_CACHED; use++) {
			assert_int_equal(peer_files(tree, threads, 3, 1000, use, &result), 0);
			assert_true(is(result.samples, FILES));
			assert_true(is(result.bytes, use == PEER_READ ? bytes : 0));
		}
	assert_int_equal(peer_files(tree, 2, 3, 0.004, PEER_OPEN_CACHED, &result), 0); /* the time is over */
	assert_true(result.samples * result.seconds < FILES - 5);
}

/* Names are in the order of their seed, each once. */
static void test_names_of_a_seed(void **state)
{
	char **names[3];
	size_t count[3];
	bool seen[FILES] = { false }, other = false;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(peer_names(tree, 5 + i / 2, &names[i], &count[i]), 0);
	for (size_t i = 0; i < FILES; i++) {
		unsigned long number = strtoul(strrchr(names[0][i], '/') + 1, NULL, 10);

		assert_true(count[0] == FILES && number < FILES && !seen[number]);
		seen[number] = true;
		assert_string_equal(names[0][i], names[1][i]);
		other |= strcmp(names[0][i], names[2][i]) != 0;
	}
	assert_true(other);
	for (unsigned i = 0; i < 3; i++) {
		for (size_t k = 0; k < count[i]; k++)
			free(names[i][k]);
		free(names[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_are_waited_for), cmocka_unit_test(test_bytes_of_reads),
		cmocka_unit_test(test_reads_that_fail),      cmocka_unit_test(test_each_file_once),
		cmocka_unit_test(test_names_of_a_seed),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("dataset_peers", tests, make_files, remove_files);
}
