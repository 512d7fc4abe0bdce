/* SPDX-License-Identifier: BSD-3-Clause */
/* Without io_uring: single calls, which may be short, interrupted, or fail in the middle; and with it:
 * signals that come meanwhile. This file's pread(), pwrite() and io_uring_submit_and_wait() are the whole
 * program's. */
#include <dlfcn.h>
#include <liburing.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "file_cases.h"

/* What stands in the way of the library's pread() and pwrite(): no more bytes than this, signals, a range
 * that cannot be read. */
static struct {
	size_t most_bytes;
	atomic_uint signals;
	atomic_uint ring_signals, reads;
	uint64_t bad_from, bad_to;
} calls;

int io_uring_submit_and_wait(struct io_uring *ring, unsigned wait)
{
	static int (*next)(struct io_uring *, unsigned);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "io_uring_submit_and_wait");
	if (!atomic_load(&calls.ring_signals))
		return next(ring, wait);
	return atomic_fetch_sub(&calls.ring_signals, 1) % 2 ? -EINTR : -EAGAIN;
}

static size_t allowed(size_t bytes)
{
	return calls.most_bytes && bytes > calls.most_bytes ? calls.most_bytes : bytes;
}

static bool interrupted(void)
{
	unsigned left = atomic_load(&calls.signals);

	while (left && !atomic_compare_exchange_weak(&calls.signals, &left, left - 1))
		;
	if (left)
		errno = EINTR;
	return left != 0;
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
	atomic_fetch_add(&calls.reads, 1);
	if (interrupted())
		return -1;
	if ((uint64_t)offset < calls.bad_to && (uint64_t)offset + bytes > calls.bad_from) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, to, allowed(bytes), offset);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
	return interrupted() ? -1 : syscall(SYS_pwrite64, fd, from, allowed(bytes), offset);
}

/* A context whose files go by single calls. */
static struct weir_context *open_without_uring(uint64_t *there, struct weir_registration **registration)
{
	struct weir_context *other;

	setenv("WEIR_FILE_NO_URING", "1", 1);
	must(weir_context_open(test_context_name(), NULL, &other));
	must(weir_alloc(other, BUFFER_BYTES, there));
	must(weir_register(other, *there, BUFFER_BYTES, NULL, registration));
	unsetenv("WEIR_FILE_NO_URING");
	return other;
}

/* A call that does less than asked for, or is interrupted, is no end of a file. */
void test_short_calls(void **state)
{
	static const size_t most[] = { 5000, 4096, 1 };
	char own[] = "weir-file-own-XXXXXX";
	int fds[2] = { file, open_direct(O_RDONLY) }, out = mkstemp(own);
	struct weir_registration *registration;
	struct weir_context *other;
	uint64_t there;

	(void)state;
	other = open_without_uring(&there, &registration);
	must(weir_file_attach(other, fds[0]));
	for (size_t i = 0; i < 3; i++) {
		size_t bytes = most[i] == 1 ? 300 : 100000;

		for (unsigned direct = 0; direct < 2 && (!direct || most[i] == 4096); direct++) {
			calls.most_bytes = most[i];
			atomic_store(&calls.signals, 5);
			assert_int_equal(weir_file_read(registration, fds[direct], bytes, 777, 64), bytes);
			calls.most_bytes = 0;
			must(weir_copy_from_device(other, got, there, BUFFER_BYTES));
			assert_memory_equal(got + 64, want + 777, bytes);
			assert_int_equal(atomic_load(&calls.signals), 0);
		}
		calls.most_bytes = most[i];
		atomic_store(&calls.signals, 5);
		assert_int_equal(weir_file_write(registration, out, bytes, 13, 64), bytes);
		calls.most_bytes = 0;
		assert_int_equal(pread(out, got, bytes, 13), bytes);
		assert_memory_equal(got, want + 777, bytes);
	}
	weir_context_close(other);
	close(fds[1]);
	close(out);
	unlink(own);
}

/* A request ends where the first of its pieces failed: what came behind is not counted. */
void test_failed_in_the_middle(void **state)
{
	enum { BAD = 1 << 20 };
	struct weir_registration *registration;
	struct weir_context *other;
	struct weir_file_io io;
	uint64_t there;

	(void)state;
	other = open_without_uring(&there, &registration);
	io = (struct weir_file_io){ .registration = registration, .file = file, .bytes = FILE_BYTES };
	calls.bad_from = BAD;
	calls.bad_to = BAD + 1;
	must(weir_file_batch(other, &io, 1));
	calls.bad_to = 0;
	assert_int_equal(io.result, BAD);
	must(weir_copy_from_device(other, got, there, BUFFER_BYTES));
	assert_memory_equal(got, want, BAD);
	weir_context_close(other);
}

/* Without io_uring all is the same. Once with a context that is closed with registrations and work left. */
void test_without_uring(void **state)
{
	static struct weir_file_io io[MOST_BATCH];
	struct weir_file_stats stats = { .size = sizeof(stats) };
	struct weir_registration *registration;
	struct weir_context *other;
	uint64_t there;
	int fds[2] = { file, file };

	(void)state;
	setenv("WEIR_FILE_NO_URING", "1", 1);
	must(weir_context_open(test_context_name(), NULL, &other));
	must(weir_alloc(other, BUFFER_BYTES, &there));
	must(weir_register(other, there, BUFFER_BYTES, NULL, &registration));
	unsetenv("WEIR_FILE_NO_URING");
	make_batch(io, registration, fds);
	refused(weir_file_batch(context, io, 1), -EINVAL, "request 0", "not registered with this context");
	must(weir_file_batch(other, io, MOST_BATCH));
	must(weir_copy_from_device(other, got, there, BUFFER_BYTES));
	for (size_t i = 1; i < MOST_BATCH - 2; i++)
		assert_memory_equal(got + io[i].at, want + io[i].offset, io[i].bytes);
	must(weir_file_stats(other, &stats));
	assert_int_equal(stats.uring, 0);
	weir_context_close(other);
}

/* A ring that is interrupted has what it was given all the same: nothing is read twice, which the kernel may
 * be about to do itself. */
void test_an_interrupted_ring(void **state)
{
	enum { REQUESTS = 9, APART = 8192 };
	struct weir_file_stats stats = { .size = sizeof(stats) };
	struct weir_registration *registration;
	struct weir_file_io io[REQUESTS];

	(void)state;
	must(weir_register(context, buffer, BUFFER_BYTES, NULL, &registration));
	assert_int_equal(weir_file_read(registration, file, 1, 0, 0),
			 1); /* its ring is made, if there is any */
	must(weir_file_stats(context, &stats));
	for (unsigned signals = 0; signals < 4; signals++) {
		clear();
		for (unsigned i = 0; i < REQUESTS; i++)
			io[i] = (struct weir_file_io){ .registration = registration,
						       .file = file,
						       .at = i * APART,
						       .offset = i * APART,
						       .bytes = 1000 };
		atomic_store(&calls.ring_signals, stats.uring ? signals : 0);
		atomic_store(&calls.reads, 0);
		must(weir_file_batch(context, io, REQUESTS));
		assert_int_equal(atomic_load(&calls.ring_signals), 0);
		assert_int_equal(atomic_load(&calls.reads), stats.uring ? 0 : REQUESTS);
		must(weir_copy_from_device(context, got, buffer, BUFFER_BYTES));
		for (unsigned i = 0; i < REQUESTS; i++) {
			assert_int_equal(io[i].result, 1000);
			assert_memory_equal(got + i * APART, want + i * APART, 1000);
			assert_int_equal(got[i * APART + 1000], 0x5a);
		}
	}
	must(weir_deregister(registration));
}
