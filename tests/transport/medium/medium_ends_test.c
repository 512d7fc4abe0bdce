/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium_ends_test.c: media where a call does less than it was asked for, and where requests leave a
 * medium or a page.
 *
 * The calls of the library to the system pass through the test: each moves a few bytes at once, and some
 * are interrupted.
 */
#include "medium_file_rig.h"

#include <dlfcn.h>
#include <liburing.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum {
	SEED = 11,
	BYTES = 65536,
	SEGMENTS = 7,
	ALL = 1 << 20,
	SLOTS = 1024 /* of medium/file_buffers.c */,
	MOST_RETRIES = 100000 /* of medium/file_request.c */
};

/* What stands in the way: @most bytes a call, errors[0..] in turn before each call that moves something. */
static struct {
	size_t most;
	unsigned repeat, left; /* @repeat errors before each */
	int error;
} calls;

static bool nothing_is_written; /* by any write, which says so */

static bool interrupted(void)
{
	if (!calls.left) {
		calls.left = calls.repeat;
		return false;
	}
	calls.left--;
	errno = calls.error;
	return true;
}

static size_t allowed(size_t bytes)
{
	return calls.most && bytes > calls.most ? calls.most : bytes;
}

/* A file that takes the place of whatever is opened next. */
static const char *replacement;

int open(const char *path, int flags, ...)
{
	if (replacement)
		assert_int_equal(rename(replacement, path), 0);
	replacement = NULL;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}

/* A file that somebody cuts off behind what is read of it next. */
static const char *truncated;

ssize_t read(int fd, void *to, size_t bytes)
{
	ssize_t got = interrupted() ? -1 : syscall(SYS_read, fd, to, allowed(bytes));

	if (truncated)
		assert_int_equal(truncate(truncated, got), 0);
	truncated = NULL;
	return got;
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
	return interrupted() ? -1 : syscall(SYS_pread64, fd, to, allowed(bytes), offset);
}

/* Of segments, the first calls.most bytes, one after the other. */
static ssize_t each(int fd, const struct iovec *iov, int count, off_t offset, bool write)
{
	size_t left = calls.most ? calls.most : ALL;
	ssize_t done = 0;

	for (int i = 0; i < count && left; i++) {
		size_t bytes = iov[i].iov_len < left ? iov[i].iov_len : left;
		ssize_t moved = syscall(write ? SYS_pwrite64 : SYS_pread64, fd, iov[i].iov_base, bytes,
					offset + done);

		if (moved <= 0)
			return done ? done : moved;
		done += moved;
		left -= bytes;
	}
	return done;
}

ssize_t preadv(int fd, const struct iovec *iov, int count, off_t offset)
{
	return interrupted() ? -1 : each(fd, iov, count, offset, false);
}

ssize_t pwritev2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	(void)flags;
	if (nothing_is_written)
		return 0;
	return interrupted() ? -1 : each(fd, iov, count, offset, true);
}

/* A signal may come while a ring hands its requests over. */
static unsigned ring_signals;

int io_uring_submit_and_get_events(struct io_uring *ring)
{
	static int (*next)(struct io_uring *);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "io_uring_submit_and_get_events");
	if (!ring_signals)
		return next(ring);
	ring_signals--;
	return -EINTR;
}

static void let_through(void)
{
	memset(&calls, 0, sizeof(calls));
}

/* A file in memory, which the medium reads and writes by the calls above. */
static struct weir_medium *open_file(char name[RIG_NAME_BYTES])
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_OFF);
	struct weir_medium *medium;

	let_through();
	options.engine = WEIR_ENGINE_THREADS;
	rig_file(name, "/dev/shm", BYTES, SEED);
	if (weir_medium_file_open(name, &options, &medium))
		fail_msg("%s", weir_last_error());
	if (!strstr(weir_medium_path(medium), "system calls")) {
		medium->ops->close(medium);
		unlink(name);
		skip();
	}
	return medium;
}

/* @memory as segments that do not lie one after the other: in the order 1, 0, 3, 2, ... */
static void cut(unsigned char *memory, uint64_t bytes, struct iovec iov[SEGMENTS])
{
	uint64_t length = bytes / SEGMENTS;

	for (unsigned i = 0; i < SEGMENTS; i++) {
		iov[i].iov_base = memory + (i + 1 < SEGMENTS ? i ^ 1 : i) * length;
		iov[i].iov_len = i + 1 < SEGMENTS ? length : bytes - i * length;
	}
}

static uint16_t move(struct weir_medium *medium, enum weir_io_kind kind, unsigned char *memory,
		     uint64_t bytes)
{
	struct iovec iov[SEGMENTS];
	struct weir_io io = {
		.kind = kind, .offset_bytes = 512, .bytes = bytes, .iov = iov, .iov_count = SEGMENTS
	};

	cut(memory, bytes, iov);
	return rig_run(medium, &io);
}

/* Bytes @seed of the medium from 512 on, as segments have them. */
static bool matches(unsigned char *memory, uint64_t bytes, uint64_t seed)
{
	struct iovec iov[SEGMENTS];
	uint64_t at = 512;
	bool same = true;

	cut(memory, bytes, iov);
	for (unsigned i = 0; i < SEGMENTS; at += iov[i++].iov_len)
		same = same && rig_matches(iov[i].iov_base, at, iov[i].iov_len, seed);
	return same;
}

static void fill(unsigned char *memory, uint64_t bytes, uint64_t seed)
{
	struct iovec iov[SEGMENTS];
	uint64_t at = 512;

	cut(memory, bytes, iov);
	for (unsigned i = 0; i < SEGMENTS; at += iov[i++].iov_len)
		rig_fill(iov[i].iov_base, at, iov[i].iov_len, seed);
}

/* However few bytes a call moves, and wherever in a segment it stops. */
static void test_short_calls(void **state)
{
	static const size_t most[] = { 1, 7, 500, 512, 513, 1000, 4096, 5000 };
	static unsigned char memory[BYTES], file[BYTES];
	char name[RIG_NAME_BYTES];
	struct weir_medium *medium = open_file(name);

	(void)state;
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		uint64_t bytes = 512 * (i + 9);
		int fd;

		memset(memory, 0, sizeof(memory));
		calls.most = most[i];
		assert_int_equal(move(medium, WEIR_IO_READ, memory, bytes), NVME_STATUS_SUCCESS);
		assert_true(matches(memory, bytes, SEED + i));
		fill(memory, bytes, SEED + i + 1);
		assert_int_equal(move(medium, WEIR_IO_WRITE, memory, bytes), NVME_STATUS_SUCCESS);
		let_through();
		fill(memory, BYTES - 512, SEED + i + 1); /* the rest, for the next round */
		assert_int_equal(rig_io(medium, WEIR_IO_READ, 0, file, BYTES), NVME_STATUS_SUCCESS);
		assert_true(rig_matches(file + 512, 512, bytes, SEED + i + 1));
		assert_true(rig_matches(file + 512 + bytes, 512 + bytes, BYTES - 512 - bytes, SEED + i));
		assert_int_equal(move(medium, WEIR_IO_WRITE, memory, BYTES - 512), NVME_STATUS_SUCCESS);
		fd = open(name, O_RDONLY | O_CLOEXEC);
		assert_int_equal(lseek(fd, 0, SEEK_END), BYTES);
		close(fd);
	}
	medium->ops->close(medium);
	unlink(name);
}

/*
 * Calls that fail for now are made again, as often as it takes while they get on; other errors end the
 * request.
 */
static void test_interrupted_calls(void **state)
{
	static const int passing[] = { EINTR, EAGAIN, ECANCELED };
	static unsigned char memory[BYTES];
	char name[RIG_NAME_BYTES];
	struct weir_medium *medium = open_file(name);

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		calls.error = passing[i];
		calls.repeat = calls.left = 3;
		calls.most = 1000;
		memset(memory, 0, sizeof(memory));
		assert_int_equal(move(medium, WEIR_IO_READ, memory, 512 * 9), NVME_STATUS_SUCCESS);
		assert_true(matches(memory, 512 * 9, SEED));
		assert_int_equal(move(medium, WEIR_IO_WRITE, memory, 512 * 9), NVME_STATUS_SUCCESS);
	}
	calls.repeat = calls.left = 40000; /* more than there are tries, but not in a row */
	assert_int_equal(move(medium, WEIR_IO_READ, memory, 512 * 9), NVME_STATUS_SUCCESS);
	calls.error = EIO;
	calls.left = 1;
	assert_int_not_equal(move(medium, WEIR_IO_READ, memory, 512 * 9), NVME_STATUS_SUCCESS);
	let_through();
	medium->ops->close(medium);
	unlink(name);
}

/* What gets on no more ends, with an error: a call that is interrupted again and again, a write of which
 * nothing is taken. */
static void test_calls_that_lead_nowhere(void **state)
{
	static const int passing[] = { EINTR, EAGAIN, ECANCELED };
	static unsigned char memory[BYTES];
	char name[RIG_NAME_BYTES];
	struct weir_medium *medium = open_file(name);

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		let_through();
		calls.error = passing[i / 2];
		calls.left = 3 * MOST_RETRIES;
		assert_int_equal(move(medium, i % 2 ? WEIR_IO_WRITE : WEIR_IO_READ, memory, 512 * 9),
				 NVME_STATUS_INTERNAL_ERROR);
		assert_in_range(calls.left, MOST_RETRIES, 3 * MOST_RETRIES - 1);
	}
	let_through();
	nothing_is_written = true;
	assert_int_equal(move(medium, WEIR_IO_WRITE, memory, 512 * 9), NVME_STATUS_WRITE_FAULT);
	nothing_is_written = false;
	assert_int_equal(move(medium, WEIR_IO_READ, memory, 512 * 9), NVME_STATUS_SUCCESS);
	assert_true(matches(memory, 512 * 9, SEED));
	medium->ops->close(medium);
	unlink(name);
}

static void test_a_file_that_is_loaded_in_parts(void **state)
{
	static unsigned char memory[BYTES];
	struct weir_medium *medium;
	char name[RIG_NAME_BYTES];

	(void)state;
	let_through();
	rig_file(name, "/tmp", BYTES - 700, SEED);
	calls.most = 3000;
	calls.error = EINTR;
	calls.repeat = 1;
	assert_int_equal(weir_medium_ram_open(BYTES, 512, name, &medium), 0);
	let_through();
	assert_int_equal(rig_io(medium, WEIR_IO_READ, 0, memory, BYTES), NVME_STATUS_SUCCESS);
	assert_true(rig_matches(memory, 0, BYTES - 700, SEED));
	assert_true(rig_is_filled(memory + BYTES - 700, 700, 0));
	medium->ops->close(medium);
	unlink(name);
}

/* Of one that ends early, or of which a part cannot be read, the rest is not zeros: there is no such medium.
 */
static void test_a_file_that_cannot_be_loaded_whole(void **state)
{
	static const char *const words[] = { "became shorter while it was read", "cannot read" };
	char name[RIG_NAME_BYTES];

	(void)state;
	for (unsigned fails = 0; fails < 2; fails++) {
		struct weir_medium *medium = NULL;

		let_through();
		rig_file(name, "/tmp", BYTES, SEED);
		calls.most = 3000;
		calls.error = EIO;
		calls.repeat = fails; /* from the second call on */
		truncated = fails ? NULL : name;
		assert_int_equal(weir_medium_ram_open(fails ? BYTES : 0, 512, name, &medium), -EIO);
		let_through();
		assert_null(truncated);
		assert_null(medium);
		assert_non_null(strstr(weir_last_error(), words[fails]));
		unlink(name);
	}
}

/*
 * Requests that begin or end behind a medium are refused, also where the sum of both wraps; and touch
 * nothing.
 */
static void refuses_what_leaves(struct weir_medium *medium)
{
	static const enum weir_io_kind kinds[] = { WEIR_IO_READ, WEIR_IO_WRITE, WEIR_IO_ZERO,
						   WEIR_IO_DISCARD };
	static unsigned char memory[1024];

	for (size_t i = 0; i < 4; i++) {
		void *at = i < 2 ? memory : NULL;
		uint64_t end = medium->bytes;

		assert_int_equal(rig_io(medium, kinds[i], end, at, 512), NVME_STATUS_LBA_OUT_OF_RANGE);
		assert_int_equal(rig_io(medium, kinds[i], end - 512, at, 1024), NVME_STATUS_LBA_OUT_OF_RANGE);
		assert_int_equal(rig_io(medium, kinds[i], UINT64_MAX - 511, at, 512),
				 NVME_STATUS_LBA_OUT_OF_RANGE);
		assert_int_equal(rig_io(medium, kinds[i], UINT64_MAX - 511, at, 1024),
				 NVME_STATUS_LBA_OUT_OF_RANGE);
		assert_int_equal(rig_io(medium, kinds[i], end - 512, at, 512), NVME_STATUS_SUCCESS);
	}
}

static void test_what_leaves_a_medium(void **state)
{
	struct weir_medium *medium;
	char name[RIG_NAME_BYTES];

	(void)state;
	assert_int_equal(weir_medium_ram_open(BYTES, 512, NULL, &medium), 0);
	refuses_what_leaves(medium);
	medium->ops->close(medium);
	assert_int_equal(weir_medium_sparse_open((uint64_t)1 << 50, 512, &medium), 0);
	refuses_what_leaves(medium);
	medium->ops->close(medium);
	medium = open_file(name);
	refuses_what_leaves(medium);
	medium->ops->close(medium);
	unlink(name);
}

/*
 * Parts of pages of a sparse medium: what is beside them stays, whether it was written, cleared or
 * neither.
 */
static void test_parts_of_pages(void **state)
{
	static unsigned char memory[16384], model[16384];
	const uint64_t at = ((uint64_t)1 << 44) + 4096;
	uint64_t chance = SEED;
	struct weir_medium *medium;

	(void)state;
	assert_int_equal(weir_medium_sparse_open((uint64_t)1 << 50, 512, &medium), 0);
	for (uint64_t i = 0; i < sizeof(model) / 8; i++)
		memcpy(model + i * 8, &(uint64_t){ at + i * 8 }, 8);
	for (unsigned i = 0; i < 300; i++) {
		uint64_t first, count;

		chance = chance * 6364136223846793005u + 1442695040888963407u;
		first = (chance >> 40) % 32;
		count = (chance >> 50) % (32 - first) + 1;
		if (chance >> 63) {
			rig_fill(memory, first * 512, count * 512, i);
			memcpy(model + first * 512, memory, count * 512);
		} else {
			memset(model + first * 512, 0, count * 512);
		}
		assert_int_equal(rig_io(medium, chance >> 63 ? WEIR_IO_WRITE : WEIR_IO_ZERO, at + first * 512,
					chance >> 63 ? memory : NULL, count * 512),
				 NVME_STATUS_SUCCESS);
		assert_int_equal(rig_io(medium, WEIR_IO_READ, at, memory, sizeof(memory)),
				 NVME_STATUS_SUCCESS);
		assert_memory_equal(memory, model, sizeof(model));
	}
	medium->ops->close(medium);
}

/* Of this process, what RLIMIT_DATA is about. */
static size_t data_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages), 1);
	fclose(file);
	return pages * 4096;
}

/* The word at @at, which is written if @with is not 0. */
static uint64_t word_at(struct weir_medium *medium, uint64_t at, uint64_t with)
{
	uint64_t words[64];

	for (unsigned i = 0; i < 64; i++)
		words[i] = with;
	if (with)
		assert_int_equal(rig_io(medium, WEIR_IO_WRITE, at, words, 512), 0);
	assert_int_equal(rig_io(medium, WEIR_IO_READ, at, words, 512), 0);
	return words[0];
}

/*
 * A discard of nearly all of a sparse medium: what was written in it is zero, what was written beside it
 * stays, as does what nobody wrote; and it takes neither memory nor time for that.
 */
static void test_a_discard_of_any_size(void **state)
{
	static const uint64_t sizes[] = { 4096, (uint64_t)1 << 21, ((uint64_t)1 << 30) + 4096,
					  (uint64_t)1 << 60 };
	const size_t most_bytes = 16 << 20;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		uint64_t end = sizes[i], middle = end / 2 & ~(uint64_t)4095;
		struct rlimit before, little;
		struct weir_medium *medium;

		assert_int_equal(weir_medium_sparse_open(end, 512, &medium), 0);
		assert_true(word_at(medium, 0, 7) == 7);
		assert_true(word_at(medium, middle + 1024, 8) == 8);
		assert_true(word_at(medium, end - 512, 9) == 9);
		assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
		little =
			(struct rlimit){ .rlim_cur = data_bytes() + most_bytes, .rlim_max = before.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_DATA, &little), 0);
		assert_int_equal(rig_io(medium, WEIR_IO_DISCARD, 512, NULL, end - 1024), 0);
		assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
		assert_true(word_at(medium, 0, 0) == 7);
		assert_true(word_at(medium, middle + 1024, 0) == 0);
		assert_true(word_at(medium, end - 512, 0) == 9);
		if (end > 4096)
			assert_true(word_at(medium, end - 4096 - 512, 0) == end - 4096 - 512);
		assert_int_equal(rig_io(medium, WEIR_IO_DISCARD, end - 512, NULL, 512), 0);
		assert_true(word_at(medium, end - 512, 0) == 0);
		medium->ops->close(medium);
	}
}

/*
 * A path may change hands while it is opened: then another file is open than the one that stat()
 * described.
 */
static void test_a_file_that_is_replaced(void **state)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_OFF);
	char name[RIG_NAME_BYTES], other[RIG_NAME_BYTES];
	struct weir_medium *medium;

	(void)state;
	let_through();
	rig_file(name, "/tmp", BYTES, SEED);
	rig_file(other, "/tmp", BYTES * 2, SEED);
	replacement = other;
	assert_int_equal(weir_medium_file_open(name, &options, &medium), -EAGAIN);
	assert_says("was replaced while it was being opened");
	assert_int_equal(weir_medium_file_open(name, &options, &medium), 0);
	assert_int_equal(medium->bytes, BYTES * 2);
	medium->ops->close(medium);
	unlink(name);
}

/* A ring goes on after signals. */
static void test_an_interrupted_ring(void **state)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_OFF);
	static unsigned char memory[BYTES];
	char name[RIG_NAME_BYTES];
	struct weir_medium *medium;

	(void)state;
	let_through();
	rig_file(name, "/tmp", BYTES, SEED);
	assert_int_equal(weir_medium_file_open(name, &options, &medium), 0);
	for (unsigned i = 0; i < 4; i++) {
		memset(memory, 0, sizeof(memory));
		ring_signals = strstr(weir_medium_path(medium), "io_uring,") ? i : 0;
		assert_int_equal(rig_io(medium, WEIR_IO_READ, 0, memory, BYTES), NVME_STATUS_SUCCESS);
		assert_true(rig_matches(memory, 0, BYTES, SEED));
		assert_int_equal(ring_signals, 0);
	}
	medium->ops->close(medium);
	unlink(name);
}

/* Memory that is registered again and again, in other places, always gets one of the kernel's slots. */
static void test_slots_are_used_again(void **state)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_OFF);
	unsigned char *memory = rig_memory(2 * BYTES);
	char name[RIG_NAME_BYTES];
	struct weir_medium *medium;

	(void)state;
	let_through();
	rig_file(name, "/tmp", BYTES, SEED);
	assert_int_equal(weir_medium_file_open(name, &options, &medium), 0);
	rig_register(medium, 0, memory, BYTES, 1);
	if (!strstr(weir_medium_path(medium), "fixed buffers")) {
		medium->ops->close(medium);
		unlink(name);
		skip();
	}
	for (unsigned i = 2; i < SLOTS + 10; i++)
		rig_register(medium, 0, memory + i % 2 * BYTES, BYTES, i);
	assert_non_null(strstr(weir_medium_path(medium), "fixed buffers"));
	medium->ops->close(medium);
	unlink(name);
	munmap(memory, 2 * BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_calls),
		cmocka_unit_test(test_interrupted_calls),
		cmocka_unit_test(test_calls_that_lead_nowhere),
		cmocka_unit_test(test_a_file_that_is_loaded_in_parts),
		cmocka_unit_test(test_a_file_that_cannot_be_loaded_whole),
		cmocka_unit_test(test_what_leaves_a_medium),
		cmocka_unit_test(test_parts_of_pages),
		cmocka_unit_test(test_a_discard_of_any_size),
		cmocka_unit_test(test_a_file_that_is_replaced),
		cmocka_unit_test(test_an_interrupted_ring),
		cmocka_unit_test(test_slots_are_used_again),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("medium_ends", tests, NULL, NULL);
}
