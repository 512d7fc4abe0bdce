/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium_file_durable_test.c: what the kernel is asked for, so that what has to be durable is.
 *
 * The calls that lead to the kernel are this program's own: each is noted, then passed on. So a write without
 * its flag is seen, though no power fails here.
 */
#include "../../rig/leaks.h"
#include "medium_file_rig.h"

#include <dlfcn.h>
#include <liburing.h>
#include <sys/uio.h>

enum {
	SEED = 5,
	FILE_BYTES = 1 << 20,
	CALLS = 4096,
	FILES = 1024,
	POLLS = 100,
	WRITE_DURABLE = 0x2 /* RWF_DSYNC */
};

enum call { CALL_WRITE, CALL_DURABLE_WRITE, CALL_SYNC, CALL_ALLOCATE };

static enum call calls[CALLS]; /* in the order in which the kernel gets them */
static unsigned call_count;
static bool direct_refused;  /* reads of files opened with O_DIRECT fail */
static bool reported[FILES]; /* descriptors whose open file has reported the failed write-back */
static bool pages_dropped;   /* a write-back failed: each open file reports it once, ... */
static unsigned reporting;   /* ... and while this is more than 0 nobody knows what it reported */
static unsigned syncs_fail,
	durable_writes_fail; /* so many more; what did not reach the disk is then dropped */

/* Threads of the medium's come here, too. */
static void note(enum call call)
{
	unsigned at = __atomic_fetch_add(&call_count, 1, __ATOMIC_RELAXED);

	if (at >= CALLS)
		abort();
	calls[at] = call;
}

/* Whether this one is to fail. */
static bool is_failing(unsigned *left)
{
	bool fails = __atomic_load_n(left, __ATOMIC_RELAXED) != 0;

	if (fails)
		__atomic_fetch_sub(left, 1, __ATOMIC_RELAXED);
	return fails;
}

/* One that the kernel refuses: of no file. */
static void spoil_entry(struct io_uring_sqe *sqe)
{
	if (sqe->opcode == IORING_OP_FSYNC && is_failing(&syncs_fail))
		sqe->fd = 99;
}

static void note_entry(const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE_FIXED:
		note(sqe->rw_flags & WRITE_DURABLE ? CALL_DURABLE_WRITE : CALL_WRITE);
		break;
	case IORING_OP_FSYNC: note(CALL_SYNC); break;
	case IORING_OP_FALLOCATE: note(CALL_ALLOCATE); break;
	default: break;
	}
}

static int ring_error; /* the kernel takes nothing from a ring any more */

int io_uring_submit_and_get_events(struct io_uring *ring)
{
	static int (*next)(struct io_uring *);
	const struct io_uring_sq *sq = &ring->sq;

	if (ring_error)
		return ring_error;
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "io_uring_submit_and_get_events");
	for (unsigned i = sq->sqe_head; i != sq->sqe_tail; i++) {
		note_entry(&sq->sqes[i & *sq->kring_mask]);
		spoil_entry(&sq->sqes[i & *sq->kring_mask]);
	}
	return next(ring);
}

ssize_t pwritev2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	static ssize_t (*next)(int, const struct iovec *, int, off_t, int);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pwritev2");
	note(flags & WRITE_DURABLE ? CALL_DURABLE_WRITE : CALL_WRITE);
	if (flags & WRITE_DURABLE && is_failing(&durable_writes_fail)) {
		errno = EIO;
		return -1;
	}
	return next(fd, iov, count, offset, flags);
}

/* What Linux says of a failed write-back, and how long that may take. */
static bool is_reported(int fd)
{
	if (!__atomic_load_n(&pages_dropped, __ATOMIC_SEQ_CST) || fd >= FILES ||
	    __atomic_exchange_n(&reported[fd], true, __ATOMIC_SEQ_CST))
		return false;
	while (__atomic_load_n(&reporting, __ATOMIC_SEQ_CST))
		usleep(100);
	return true;
}

int fdatasync(int fd)
{
	static int (*next)(int);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "fdatasync");
	note(CALL_SYNC);
	if (is_failing(&syncs_fail) || is_reported(fd)) {
		errno = EIO;
		return -1;
	}
	return next(fd);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
	static ssize_t (*next)(int, void *, size_t, off_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pread");
	if (direct_refused && fcntl(fd, F_GETFL) & O_DIRECT) {
		errno = EINVAL;
		return -1;
	}
	return next(fd, to, bytes, offset);
}

/* How many of the calls since @from are @call. */
static unsigned count_of(enum call call, unsigned from)
{
	unsigned count = 0;

	for (unsigned i = from; i < call_count; i++)
		count += calls[i] == call;
	return count;
}

/** struct place - a file of some kind, reached in some way */
struct location {
	const char *folder;
	enum weir_direct direct;
};

static const struct location locations[] = {
	{ "/tmp", WEIR_DIRECT_OFF },      { "/tmp", WEIR_DIRECT_AUTO },    { "/tmp", WEIR_DIRECT_ON },
	{ "/dev/shm", WEIR_DIRECT_AUTO }, { "/dev/shm", WEIR_DIRECT_OFF },
};

enum { PLACES = sizeof(locations) / sizeof(locations[0]), SEGMENTS = 1100 };

static struct weir_medium *open_place(const struct location *location, char name[RIG_NAME_BYTES])
{
	struct weir_medium_file_options options = rig_options(location->direct);
	struct weir_medium *medium = NULL;

	rig_file(name, location->folder, FILE_BYTES, SEED);
	if (weir_medium_file_open(name, &options, &medium) && location->direct != WEIR_DIRECT_ON)
		fail_msg("%s", weir_last_error());
	if (!medium) {
		print_message("# SKIPPED, NOT TESTED HERE: O_DIRECT in %s\n", location->folder);
		unlink(name);
	}
	return medium;
}

/* One piece; odd memory, which O_DIRECT does not take; some pieces; more than one system call takes. */
static unsigned shape(unsigned char *memory, unsigned kind, struct iovec iov[SEGMENTS])
{
	static const unsigned counts[] = { 1, 1, 3, SEGMENTS };

	for (unsigned i = 0; i < counts[kind]; i++)
		iov[i] = (struct iovec){ memory + (size_t)i * 1024 + (kind == 1 ? 4 : 0),
					 kind < 2 ? 4096 : 512 };
	return counts[kind];
}

static void write_one(struct weir_medium *medium, unsigned char *memory, unsigned kind, bool durable)
{
	static struct iovec iov[SEGMENTS];
	struct weir_io io = {
		.kind = WEIR_IO_WRITE, .offset_bytes = 8192, .iov = iov, .force_unit_access = durable
	};
	unsigned from = call_count;

	io.iov_count = shape(memory, kind, iov);
	for (unsigned i = 0; i < io.iov_count; i++)
		io.bytes += iov[i].iov_len;
	assert_int_equal(rig_run(medium, &io), 0);
	assert_true(count_of(durable ? CALL_DURABLE_WRITE : CALL_WRITE, from) >= (kind == 3 ? 2 : 1));
	assert_int_equal(count_of(durable ? CALL_WRITE : CALL_DURABLE_WRITE, from), 0);
}

/* Every part of a durable write is durable, and no other write is. */
static void durable_writes_are_written_durably(void **state)
{
	unsigned char *memory = rig_memory(2 << 20);

	(void)state;
	for (unsigned p = 0; p < PLACES; p++) {
		char name[RIG_NAME_BYTES];
		struct weir_medium *medium = open_place(&locations[p], name);

		for (unsigned registered = 0; medium && registered < 2; registered++) {
			if (registered)
				rig_register(medium, 0, memory, 2 << 20, 1);
			for (unsigned kind = 0; kind < 4; kind++) {
				write_one(medium, memory, kind, true);
				write_one(medium, memory, kind, false);
			}
		}
		if (medium)
			medium->ops->close(medium);
		unlink(name);
	}
	munmap(memory, 2 << 20);
}

/* A flush is one sync, after the writes that had ended. */
static void a_flush_is_a_sync(void **state)
{
	unsigned char *memory = rig_memory(65536);

	(void)state;
	for (unsigned p = 0; p < PLACES; p++) {
		char name[RIG_NAME_BYTES];
		struct weir_medium *medium = open_place(&locations[p], name);
		unsigned from;

		if (!medium)
			continue;
		from = call_count;
		assert_int_equal(rig_io(medium, WEIR_IO_WRITE, 0, memory, 4096), 0);
		assert_int_equal(rig_io(medium, WEIR_IO_WRITE, 65536, memory, 4096), 0);
		assert_int_equal(count_of(CALL_SYNC, from), 0);
		assert_int_equal(rig_io(medium, WEIR_IO_FLUSH, 0, NULL, 0), 0);
		assert_int_equal(count_of(CALL_SYNC, from), 1);
		assert_int_equal(calls[call_count - 1], CALL_SYNC);
		medium->ops->close(medium);
		unlink(name);
	}
	munmap(memory, 65536);
}

/* Linux says once that a write-back failed: a flush that succeeds afterwards would say that what is lost is
 * there. Opened again, the file is what it is. */
static void a_failed_sync_is_not_forgotten(void **state)
{
	unsigned char *memory = rig_memory(65536);

	(void)state;
	for (unsigned p = 0; p < PLACES; p++) {
		char name[RIG_NAME_BYTES];
		struct weir_medium_file_options options = rig_options(locations[p].direct);
		struct weir_io zeros = { .kind = WEIR_IO_ZERO, .bytes = 4096, .force_unit_access = true };
		struct weir_medium *medium = open_place(&locations[p], name);

		if (!medium)
			continue;
		assert_int_equal(rig_io(medium, WEIR_IO_WRITE, 0, memory, 4096), 0);
		syncs_fail = 1;
		assert_int_not_equal(rig_io(medium, WEIR_IO_FLUSH, 0, NULL, 0), 0);
		assert_int_equal(syncs_fail, 0);
		assert_int_equal(rig_io(medium, WEIR_IO_FLUSH, 0, NULL, 0), NVME_STATUS_WRITE_FAULT);
		assert_int_equal(rig_io(medium, WEIR_IO_WRITE, 0, memory, 4096), 0);
		assert_int_equal(rig_io(medium, WEIR_IO_READ, 0, memory, 4096), 0);
		assert_int_equal(rig_io(medium, WEIR_IO_FLUSH, 0, NULL, 0), NVME_STATUS_WRITE_FAULT);
		assert_int_equal(rig_run(medium, &zeros), NVME_STATUS_WRITE_FAULT);
		medium->ops->close(medium);
		assert_int_equal(weir_medium_file_open(name, &options, &medium), 0);
		assert_int_equal(rig_io(medium, WEIR_IO_FLUSH, 0, NULL, 0), 0);
		medium->ops->close(medium);
		unlink(name);
	}
	munmap(memory, 65536);
}

/* Nor is that of the sync behind zeros, which ends their request alone. */
static void a_failed_sync_behind_zeros_is_not_forgotten(void **state)
{
	(void)state;
	for (unsigned p = 0; p < PLACES; p++) {
		struct weir_io zeros = { .kind = WEIR_IO_ZERO, .bytes = 4096, .force_unit_access = true };
		char name[RIG_NAME_BYTES];
		struct weir_medium *medium = open_place(&locations[p], name);

		if (!medium)
			continue;
		syncs_fail = 1;
		assert_int_not_equal(rig_run(medium, &zeros), 0);
		assert_int_equal(syncs_fail, 0);
		assert_int_equal(rig_io(medium, WEIR_IO_FLUSH, 0, NULL, 0), NVME_STATUS_WRITE_FAULT);
		medium->ops->close(medium);
		unlink(name);
	}
}

static struct weir_medium *open_by_threads(char name[RIG_NAME_BYTES], unsigned threads)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_OFF);
	struct weir_medium *medium = NULL;

	options.engine = WEIR_ENGINE_THREADS;
	options.threads = threads;
	rig_file(name, "/tmp", FILE_BYTES, SEED);
	assert_int_equal(weir_medium_file_open(name, &options, &medium), 0);
	return medium;
}

static void begin_flush(struct weir_medium *medium, struct weir_io *io, unsigned thread)
{
	*io = (struct weir_io){ .kind = WEIR_IO_FLUSH, .thread = thread, .status = 0xffff, .done = rig_done };
	assert_true(medium->ops->submit(medium, io));
	medium->ops->poll(medium, thread);
}

/* Of flushes at once, of one controller thread or of several, none succeeds that covers lost pages: not
 * because another one reports it. */
static void flushes_at_once_fail_together(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads <= 2; threads++) {
		char name[RIG_NAME_BYTES];
		struct weir_medium *medium = open_by_threads(name, threads);
		struct weir_io first, second;
		unsigned from = call_count;

		memset(reported, 0, sizeof(reported));
		pages_dropped = true;
		reporting = 1;
		begin_flush(medium, &first, 0);
		while (__atomic_load_n(&call_count, __ATOMIC_SEQ_CST) == from)
			usleep(100);
		begin_flush(medium, &second, threads - 1);
		for (unsigned i = 0; i < POLLS && !rig_ended(&second); i++) {
			medium->ops->poll(medium, threads - 1);
			usleep(100);
		}
		__atomic_store_n(&reporting, 0, __ATOMIC_SEQ_CST);
		assert_int_equal(rig_wait(medium, &first), NVME_STATUS_WRITE_FAULT);
		assert_int_equal(rig_wait(medium, &second), NVME_STATUS_WRITE_FAULT);
		pages_dropped = false;
		medium->ops->close(medium);
		unlink(name);
	}
}

/* Those that come while one is under way share the next sync, and none of them the one that began before. */
static void flushes_share_syncs(void **state)
{
	(void)state;
	for (unsigned p = 0; p < PLACES; p++) {
		char name[RIG_NAME_BYTES];
		struct weir_medium *medium = open_place(&locations[p], name);
		struct weir_io flushes[8];
		unsigned from = call_count;

		for (unsigned i = 0; medium && i < 8; i++) {
			flushes[i] =
				(struct weir_io){ .kind = WEIR_IO_FLUSH, .status = 0xffff, .done = rig_done };
			assert_true(medium->ops->submit(medium, &flushes[i]));
		}
		for (unsigned i = 0; medium && i < 8; i++)
			assert_int_equal(rig_wait(medium, &flushes[i]), 0);
		if (!medium)
			continue;
		assert_int_equal(count_of(CALL_SYNC, from), 2);
		medium->ops->close(medium);
		unlink(name);
	}
}

/* So does a durable write by the page cache, which a system call carries out here: its failure is said of all
 * that was written. */
static void a_failed_durable_write_is_not_forgotten(void **state)
{
	unsigned char *memory = rig_memory(65536);
	struct iovec iov = { memory, 4096 };
	char name[RIG_NAME_BYTES];
	struct weir_medium *medium = open_by_threads(name, 1);

	(void)state;
	assert_int_equal(rig_io(medium, WEIR_IO_WRITE, 0, memory, 4096), 0);
	durable_writes_fail = 1;
	assert_int_equal(rig_run(medium, &(struct weir_io){ .kind = WEIR_IO_WRITE,
							    .offset_bytes = 8192,
							    .bytes = 4096,
							    .iov = &iov,
							    .iov_count = 1,
							    .force_unit_access = true }),
			 NVME_STATUS_WRITE_FAULT);
	assert_int_equal(rig_io(medium, WEIR_IO_FLUSH, 0, NULL, 0), NVME_STATUS_WRITE_FAULT);
	medium->ops->close(medium);
	unlink(name);
	munmap(memory, 65536);
}

/* Zeros are durable by a sync behind them, whether the file system makes them or they are written. */
static void durable_zeros_are_synced(void **state)
{
	(void)state;
	for (unsigned p = 0; p < PLACES; p++) {
		char name[RIG_NAME_BYTES];
		struct weir_medium *medium = open_place(&locations[p], name);

		for (unsigned durable = 0; medium && durable < 2; durable++) {
			struct weir_io io = { .kind = WEIR_IO_ZERO,
					      .offset_bytes = 8192,
					      .bytes = 3 * 65536,
					      .force_unit_access = durable };
			unsigned from = call_count;

			assert_int_equal(rig_run(medium, &io), 0);
			assert_int_equal(count_of(CALL_SYNC, from), durable);
			if (durable)
				assert_int_equal(calls[call_count - 1], CALL_SYNC);
		}
		if (medium)
			medium->ops->close(medium);
		unlink(name);
	}
}

/* Of a ring from which the kernel takes nothing any more all requests end with an error, those that share a
 * sync or wait for one, too; and so do later ones. */
static void a_broken_ring_ends_all_requests(void **state)
{
	enum { REQUESTS = 7 };
	struct weir_io io[REQUESTS];
	char name[RIG_NAME_BYTES];
	struct weir_medium *medium = open_place(&locations[0], name);

	(void)state;
	ring_error = strstr(medium->path, "io_uring") ? -EBADF : 0;
	if (!ring_error)
		print_message("# SKIPPED, NOT TESTED HERE: io_uring\n");
	for (unsigned i = 0; i < REQUESTS; i++) {
		io[i] = (struct weir_io){ .kind = i == 0   ? WEIR_IO_ZERO
						  : i == 1 ? WEIR_IO_DISCARD
							   : WEIR_IO_FLUSH,
					  .bytes = i < 2 ? 4096 : 0,
					  .status = 0xffff,
					  .done = rig_done };
		assert_true(medium->ops->submit(medium, &io[i]));
	}
	for (unsigned i = 0; i < POLLS && ring_error; i++) /* nobody is waited for */
		medium->ops->poll(medium, 0);
	for (unsigned i = 0; i < REQUESTS; i++) {
		assert_true(rig_ended(&io[i]) || !ring_error);
		assert_int_equal(rig_wait(medium, &io[i]), ring_error ? NVME_STATUS_INTERNAL_ERROR : 0);
	}
	assert_int_equal(rig_io(medium, WEIR_IO_FLUSH, 0, NULL, 0),
			 ring_error ? NVME_STATUS_INTERNAL_ERROR : 0);
	ring_error = 0;
	medium->ops->close(medium);
	unlink(name);
}

/* O_DIRECT opens, and its reads fail: auto does without and keeps nothing of it, on says why not. */
static void a_refused_way_is_let_go(void **state)
{
	struct weir_medium_file_options automatic = rig_options(WEIR_DIRECT_AUTO),
					on = rig_options(WEIR_DIRECT_ON);
	char name[RIG_NAME_BYTES];
	struct test_has before;

	(void)state;
	rig_file(name, "/tmp", FILE_BYTES, SEED);
	direct_refused = true;
	for (unsigned round = 0; round < 12; round++) {
		struct weir_medium *medium;

		if (round == 4)
			before = test_has();
		assert_int_equal(weir_medium_file_open(name, &automatic, &medium), 0);
		assert_non_null(strstr(medium->path, "page cache (O_DIRECT refused"));
		medium->ops->close(medium);
		assert_int_equal(weir_medium_file_open(name, &on, &medium), -EINVAL);
	}
	direct_refused = false;
	test_keeps(before, 1 << 20);
	unlink(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durable_writes_are_written_durably),
		cmocka_unit_test(a_flush_is_a_sync),
		cmocka_unit_test(a_failed_sync_is_not_forgotten),
		cmocka_unit_test(a_failed_sync_behind_zeros_is_not_forgotten),
		cmocka_unit_test(flushes_at_once_fail_together),
		cmocka_unit_test(flushes_share_syncs),
		cmocka_unit_test(a_failed_durable_write_is_not_forgotten),
		cmocka_unit_test(durable_zeros_are_synced),
		cmocka_unit_test(a_broken_ring_ends_all_requests),
		cmocka_unit_test(a_refused_way_is_let_go),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
