/* SPDX-License-Identifier: BSD-3-Clause */
/* Files into and out of registered memory, on each path that the device has; and every wrong call refused. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/file.h>

#include "../rig/context.h"
#include "../rig/kernels.h"

enum { FILE_BYTES = (3 << 20) + 777, BUFFER_BYTES = 4 << 20, MOST_BATCH = 700, WAIT_ITERATIONS = 5000 };

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

static struct weir_context *context;
static uint64_t buffer;
static char path[] = "weir-file-test-XXXXXX", *want, *got;
static int file;

/* @result is @error, and the sentence has @first and @second. */
static void refused(int64_t result, int error, const char *first, const char *second)
{
	if (result != error)
		fail_msg("%lld instead of %d (\"%s\", \"%s\"); last: %s", (long long)result, error, first,
			 second, weir_last_error());
	if (!strstr(weir_last_error(), first) || !strstr(weir_last_error(), second))
		fail_msg("\"%s\" does not say \"%s\" and \"%s\"", weir_last_error(), first, second);
}

static void scramble(char *bytes, size_t count, uint64_t seed)
{
	for (size_t i = 0; i < count; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (char)(seed >> 56);
	}
}

static int set_up(void **state)
{
	(void)state;
	want = malloc(BUFFER_BYTES);
	got = malloc(BUFFER_BYTES);
	scramble(want, FILE_BYTES, 1);
	file = mkstemp(path);
	if (file < 0 || write(file, want, FILE_BYTES) != FILE_BYTES)
		return -1;
	return weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 2), &context) ||
	       weir_alloc(context, BUFFER_BYTES, &buffer);
}

static int tear_down(void **state)
{
	(void)state;
	weir_context_close(context);
	close(file);
	unlink(path);
	free(want);
	free(got);
	return 0;
}

/* The paths that the buffer can have, each in turn; false behind the last. */
static bool register_by(unsigned *iteration, struct weir_registration **registration)
{
	static const enum weir_file_path paths[] = { WEIR_FILE_AUTO, WEIR_FILE_DIRECT, WEIR_FILE_PULL,
						     WEIR_FILE_BOUNCE };

	while (*iteration < sizeof(paths) / sizeof(paths[0])) {
		int error =
			weir_register(context, buffer, BUFFER_BYTES,
				      WEIR_OPTIONS(register, .path = paths[(*iteration)++]), registration);

		if (!error)
			return true;
		assert_int_equal(error, -ENOTSUP);
	}
	return false;
}

/* A descriptor with O_DIRECT, or without where the file system has none. */
static int open_direct(int flags)
{
	int fd = open(path, flags | O_DIRECT | O_CLOEXEC);

	return fd >= 0 ? fd : open(path, flags | O_CLOEXEC);
}

/* What stands in the way of the library's pread() and pwrite(): no more bytes than this, signals, a range
 * that cannot be read. */
static struct {
	size_t most_bytes;
	atomic_uint signals;
	uint64_t bad_from, bad_to;
} calls;

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

static void clear(void)
{
	memset(got, 0x5a, BUFFER_BYTES);
	must(weir_copy_to_device(context, buffer, got, BUFFER_BYTES));
}

/* The buffer has @bytes of the file from @offset at @at, and beside the @asked ones what it had. */
static void check(size_t at, uint64_t offset, size_t bytes, size_t asked, const char *what)
{
	must(weir_copy_from_device(context, got, buffer, BUFFER_BYTES));
	for (size_t i = 0; i < BUFFER_BYTES; i++) {
		char right = i >= at && i < at + bytes ? want[offset + i - at] : 0x5a;

		/* Behind the end of a file O_DIRECT pads with zeros what it was asked for. */
		if (got[i] != right && !(i >= at + bytes && i < at + asked))
			fail_msg("%s: byte %zu is %02x, not %02x (%zu bytes of %llu at %zu)", what, i,
				 got[i] & 255, right & 255, bytes, (unsigned long long)offset, at);
	}
}

/* struct span - a request, whatever its alignment, and what comes of it */
struct span {
	uint64_t offset;
	size_t bytes;
	size_t at;
	size_t comes;
};

static const struct span spans[] = {
	{ 0, 4096, 0, 4096 },
	{ 0, 1, 0, 1 },
	{ 1, 1, 1, 1 },
	{ 4096, 65536, 4096, 65536 },
	{ 513, 10000, 7, 10000 },
	{ 4095, 4098, 100001, 4098 },
	{ 4096, 5000, 64, 5000 },
	{ 100, FILE_BYTES - 100, 33, FILE_BYTES - 100 },
	{ 0, FILE_BYTES, 512, FILE_BYTES },
	{ FILE_BYTES - 10, 4096, 8192, 10 },
	{ FILE_BYTES - 5000, 1 << 20, 4096, 5000 },
	{ FILE_BYTES, 100, 0, 0 },
	{ (uint64_t)FILE_BYTES + 100000, 100, 0, 0 },
	{ 77, 0, 5, 0 },
	{ 4096, BUFFER_BYTES - 4096, 4096, FILE_BYTES - 4096 },
};

static void test_reads(void **state)
{
	int fds[2] = { file, open_direct(O_RDONLY) };
	struct weir_registration *registration;

	(void)state;
	for (unsigned iteration = 0; register_by(&iteration, &registration);) {
		for (size_t i = 0; i < 2 * sizeof(spans) / sizeof(spans[0]); i++) {
			const struct span *span = &spans[i / 2];

			clear();
			assert_int_equal(weir_file_read(registration, fds[i % 2], span->bytes,
							(off_t)span->offset, span->at),
					 span->comes);
			check(span->at, span->offset, span->comes, span->bytes,
			      i % 2 ? "O_DIRECT" : "buffered");
		}
		must(weir_deregister(registration));
	}
	close(fds[1]);
}

/* A file of its own, whose bytes are compared with what they should have become. */
static void test_writes(void **state)
{
	char own[] = "weir-file-own-XXXXXX";
	int fds[2] = { mkstemp(own), -1 };
	struct weir_registration *registration;
	char *model = malloc(BUFFER_BYTES), *there = malloc(BUFFER_BYTES), *sent = got;

	(void)state;
	fds[1] = open(own, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (fds[1] < 0)
		fds[1] = open(own, O_RDWR | O_CLOEXEC);
	scramble(sent, BUFFER_BYTES, 7);
	must(weir_copy_to_device(context, buffer, sent, BUFFER_BYTES));
	for (unsigned iteration = 0; register_by(&iteration, &registration);) {
		for (size_t i = 0; i < 2 * sizeof(spans) / sizeof(spans[0]); i++) {
			const struct span *span = &spans[i / 2];
			size_t end = span->offset + span->bytes;

			if (end > BUFFER_BYTES)
				continue;
			memset(model, 0, BUFFER_BYTES);
			memset(model, 0x33, FILE_BYTES);
			assert_int_equal(ftruncate(fds[0], 0), 0);
			assert_int_equal(pwrite(fds[0], model, FILE_BYTES, 0), FILE_BYTES);
			memcpy(model + span->offset, sent + span->at, span->bytes);
			assert_int_equal(weir_file_write(registration, fds[i % 2], span->bytes,
							 (off_t)span->offset, span->at),
					 span->bytes);
			end = end > FILE_BYTES ? end : FILE_BYTES;
			assert_int_equal(pread(fds[0], there, BUFFER_BYTES, 0), end);
			assert_memory_equal(there, model, end);
		}
		must(weir_deregister(registration));
	}
	free(model);
	free(there);
	close(fds[0]);
	close(fds[1]);
	unlink(own);
}

/* Blocks of the file in another order, of both descriptors, with some that are none, short or beyond the end.
 */
static void make_batch(struct weir_file_io *io, struct weir_registration *registration, const int *fds)
{
	for (size_t i = 0; i < MOST_BATCH; i++) {
		size_t block = i * 419 % MOST_BATCH;

		io[i] = (struct weir_file_io){ .registration = registration,
					       .file = fds[i % 3 == 0],
					       .operation = WEIR_FILE_READ,
					       .at = i * 4096 + i % 5,
					       .offset = block * 4096 + i % 7,
					       .bytes = i % 11 ? 4000 : 0 };
	}
	io[MOST_BATCH - 1].offset = FILE_BYTES - 5;
	io[MOST_BATCH - 2].offset = FILE_BYTES + 5;
}

static void check_batch(const struct weir_file_io *io)
{
	must(weir_copy_from_device(context, got, buffer, BUFFER_BYTES));
	for (size_t i = 0; i < MOST_BATCH; i++) {
		int64_t right = io[i].offset >= FILE_BYTES ? 0
				: io[i].bytes < FILE_BYTES - io[i].offset
					? (int64_t)io[i].bytes
					: (int64_t)(FILE_BYTES - io[i].offset);

		assert_int_equal(io[i].result, right);
		if (right)
			assert_memory_equal(got + io[i].at, want + io[i].offset, right);
	}
}

static void test_batches(void **state)
{
	static struct weir_file_io io[MOST_BATCH];
	int fds[2] = { file, open_direct(O_RDONLY) };
	struct weir_registration *registration;

	(void)state;
	for (unsigned iteration = 0; register_by(&iteration, &registration);) {
		struct weir_file_batch *batch;

		for (unsigned again = 0; again < 5; again++) {
			clear();
			make_batch(io, registration, fds);
			must(weir_file_batch(context, io, MOST_BATCH));
			check_batch(io);
		}
		clear();
		make_batch(io, registration, fds);
		must(weir_file_submit(context, io, MOST_BATCH, &batch));
		for (unsigned i = 0; i < WAIT_ITERATIONS && weir_file_ended(batch) < MOST_BATCH; i++)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		assert_int_equal(weir_file_ended(batch), MOST_BATCH); /* without anybody's help */
		must(weir_file_wait(batch));
		check_batch(io);
		must(weir_deregister(registration));
	}
	must(weir_file_batch(context, io, 0));
	close(fds[1]);
}

/* Several at a time, and requests that both read and write. */
static void test_overlapped(void **state)
{
	enum { BATCHES = 6, EACH = 16, BLOCK = 16384 };
	static struct weir_file_io io[BATCHES][EACH];
	char own[] = "weir-file-own-XXXXXX";
	struct weir_file_batch *batches[BATCHES];
	struct weir_registration *registration;
	int out = mkstemp(own);

	(void)state;
	must(weir_register(context, buffer, BUFFER_BYTES, NULL, &registration));
	clear();
	assert_int_equal(weir_file_read(registration, file, BATCHES * EACH * BLOCK / 2, 0, 0),
			 BATCHES * EACH * BLOCK / 2);
	for (size_t i = 0; i < BATCHES * EACH; i++) {
		size_t half = i / 2 * BLOCK, second = BATCHES * EACH * BLOCK / 2;

		io[i / EACH][i % EACH] =
			(struct weir_file_io){ .registration = registration,
					       .bytes = BLOCK,
					       .offset = half,
					       .file = i % 2 ? out : file,
					       .operation = i % 2 ? WEIR_FILE_WRITE : WEIR_FILE_READ,
					       .at = i % 2 ? half : second + half };
	}
	for (unsigned i = 0; i < BATCHES; i++)
		must(weir_file_submit(context, io[i], EACH, &batches[i]));
	for (unsigned i = BATCHES; i-- > 0;)
		must(weir_file_wait(batches[i]));
	must(weir_copy_from_device(context, got, buffer, BUFFER_BYTES));
	assert_memory_equal(got + BATCHES * EACH * BLOCK / 2, want, BATCHES * EACH * BLOCK / 2);
	assert_int_equal(pread(out, got, BUFFER_BYTES, 0), BATCHES * EACH * BLOCK / 2);
	assert_memory_equal(got, want, BATCHES * EACH * BLOCK / 2);
	must(weir_deregister(registration));
	close(out);
	unlink(own);
}

/* Where streams cannot wait for the host that is said, and there is no more to try. */
static void enqueue_or_skip(struct weir_file_io *io, uint32_t count)
{
	int error = weir_file_enqueue(context, NULL, io, count);

	if (error == -ENOTSUP) {
		refused(error, -ENOTSUP, "stream wait for the host", "weir_file_batch()");
		skip();
	}
	must(error);
}

/* A kernel before has ended when its words are written; one behind begins when all has ended. */
static void test_enqueued(void **state)
{
	enum { LANES = 64, ADDS = 3 };
	struct test_count_args args = { .adds = ADDS };
	struct weir_registration *registration, *words;
	struct test_verdict between, after;
	struct weir_file_io io[2], late;
	char own[] = "weir-file-own-XXXXXX";
	int out = mkstemp(own);

	(void)state;
	must(weir_alloc(context, sizeof(between), &args.verdict));
	must(weir_register(context, args.verdict, sizeof(between), NULL, &words));
	must(weir_register(context, buffer, BUFFER_BYTES, NULL, &registration));
	clear();
	must(weir_launch(context, "test_count", 2, LANES / 2, &args, sizeof(args)));
	io[0] = (struct weir_file_io){
		.registration = words, .file = out, .operation = WEIR_FILE_WRITE, .bytes = sizeof(between)
	};
	io[1] = (struct weir_file_io){
		.registration = registration, .file = file, .bytes = FILE_BYTES, .at = 12
	};
	enqueue_or_skip(io, 2);
	args.launch = 1;
	must(weir_launch(context, "test_count", 2, LANES / 2, &args, sizeof(args)));
	late = (struct weir_file_io){ .registration = words,
				      .file = out,
				      .operation = WEIR_FILE_WRITE,
				      .offset = sizeof(between),
				      .bytes = sizeof(after) };
	must(weir_file_enqueue(context, NULL, &late, 1));
	must(weir_sync(context));
	assert_int_equal(io[0].result, sizeof(between));
	assert_int_equal(io[1].result, FILE_BYTES);
	assert_int_equal(late.result, sizeof(after));
	check(12, 0, FILE_BYTES, FILE_BYTES, "enqueued");
	assert_int_equal(pread(out, &between, sizeof(between), 0), sizeof(between));
	assert_int_equal(pread(out, &after, sizeof(after), sizeof(between)), sizeof(after));
	assert_int_equal(weir_load_u64_relaxed_sys(&between.sum), LANES * ADDS);
	assert_int_equal(weir_load_u64_relaxed_sys(&after.sum), 2 * LANES * ADDS);
	must(weir_deregister(words));
	must(weir_deregister(registration));
	must(weir_free(context, args.verdict));
	close(out);
	unlink(own);
}

/* What fails in a stream is in the result, and weir_sync() says it. */
static void test_enqueued_failure(void **state)
{
	struct weir_registration *registration;
	struct weir_file_io io;
	int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	must(weir_register(context, buffer, BUFFER_BYTES, NULL, &registration));
	io = (struct weir_file_io){ .registration = registration, .file = folder, .bytes = 100 };
	enqueue_or_skip(&io, 1);
	refused(weir_sync(context), -EISDIR, "cannot read 100 bytes", "directory");
	assert_int_equal(io.result, -EISDIR);
	must(weir_sync(context));
	must(weir_deregister(registration));
	close(folder);
}

/* What only the cpu can show: memory of the process, more than 1 GiB of it, and the pointer in other hands.
 */
static void test_large(void **state)
{
	const uint64_t bytes = ((uint64_t)5 << 30) / 2 + 4096, last = bytes - 5000;
	struct weir_registration_info info = { .size = sizeof(info) };
	struct weir_registration *registration;
	char *memory;

	(void)state;
	if (!test_on_cpu())
		skip();
	memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	must(weir_register(context, (uint64_t)(uintptr_t)memory, bytes, NULL, &registration));
	must(weir_registration_info(registration, &info));
	assert_int_equal(info.bytes, bytes);
	assert_ptr_equal(info.host, memory);
	assert_int_equal(info.path, WEIR_FILE_DIRECT);
	assert_int_equal(weir_file_read(registration, file, 5000, 3, last), 5000);
	assert_memory_equal(memory + last, want + 3, 5000);
	refused(weir_file_read(registration, file, 5001, 3, last), -EFAULT, "not inside", "request 0");
	must(weir_deregister(registration));
	munmap(memory, bytes);
}

/* A request that is too long for one system call, into memory that is not all there. */
static void test_longer_than_a_call(void **state)
{
	const uint64_t bytes = ((uint64_t)9 << 30) / 4;
	struct weir_registration *registration;
	char own[] = "weir-file-own-XXXXXX";
	int sparse = mkstemp(own);
	char *memory;

	(void)state;
	if (!test_on_cpu() || getenv("WEIR_TEST_TIMEOUT_FACTOR"))
		skip();
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, sparse, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	must(weir_register(context, (uint64_t)(uintptr_t)memory, bytes, NULL, &registration));
	/* The file ends before the request does. */
	assert_int_equal(weir_file_read(registration, file, bytes, FILE_BYTES - 1, 0), -EFAULT);
	assert_int_equal(ftruncate(sparse, 4096), 0);
	assert_int_equal(weir_file_read(registration, file, bytes, FILE_BYTES - 1, 0), 1);
	assert_int_equal(memory[0], want[FILE_BYTES - 1]);
	must(weir_deregister(registration));
	munmap(memory, bytes);
	close(sparse);
	unlink(own);
}

static void test_info(void **state)
{
	struct weir_registration_info info = { .size = sizeof(info) };
	struct weir_registration *registration;
	uint64_t pinned;
	void *host;

	(void)state;
	must(weir_register(context, buffer + 100, 1000, NULL, &registration));
	must(weir_registration_info(registration, &info));
	assert_int_equal(info.address, buffer + 100);
	assert_int_equal(info.bytes, 1000);
	assert_int_equal(info.host != NULL, info.path == WEIR_FILE_DIRECT);
	if (test_on_cpu())
		assert_non_null(info.host);
	assert_true(strlen(info.reason) > 20);
	must(weir_deregister(registration));
	must(weir_alloc_host(context, 8192, &pinned, &host));
	must(weir_register(context, pinned + 4096, 4096, NULL, &registration));
	must(weir_registration_info(registration, &info));
	assert_ptr_equal(info.host, (char *)host + 4096);
	assert_int_equal(info.path, WEIR_FILE_DIRECT);
	assert_int_equal(pread(file, info.host, 4096, 0), 4096); /* with the system's own call */
	assert_memory_equal((char *)host + 4096, want, 4096);
	must(weir_deregister(registration));
	must(weir_free(context, pinned));
	assert_string_equal(weir_file_path_name(WEIR_FILE_PULL), "pull");
	assert_null(weir_file_path_name((enum weir_file_path)99));
}

static void test_wrong_registrations(void **state)
{
	struct weir_registration *registration;

	(void)state;
	refused(weir_register(context, buffer, 0, NULL, &registration), -EINVAL, "0 bytes",
		"cannot register");
	assert_null(registration);
	refused(weir_register(context, buffer, BUFFER_BYTES + 1, NULL, &registration), -EFAULT,
		"the allocation has", "4194304");
	refused(weir_register(context, buffer + 4096, BUFFER_BYTES, NULL, &registration), -EFAULT,
		"the allocation has", "4190208");
	refused(weir_register(context, buffer, UINT64_MAX, NULL, &registration), -EINVAL,
		"past the last address", "cannot");
	refused(weir_register(context, UINT64_MAX - 100, 4096, NULL, &registration), -EINVAL,
		"past the last address", "cannot");
	assert_int_equal(weir_register(context, 0, 4096, NULL, &registration), -EFAULT);
	refused(weir_register(context, buffer, 4096, WEIR_OPTIONS(register, .path = WEIR_FILE_MODULE),
			      &registration),
		-ENOTSUP, "\"module\"", "not to be had");
	refused(weir_register(context, buffer, 4096, WEIR_OPTIONS(register, .path = (enum weir_file_path)9),
			      &registration),
		-EINVAL, "9 is no path", "weir_file_path");
	refused(weir_register(context, buffer, 4096, &(struct weir_register_options){ .size = 3 },
			      &registration),
		-EINVAL, "register options", "size");
	must(weir_deregister(NULL));
}

static void test_wrong_requests(void **state)
{
	struct weir_registration *registration;
	struct weir_file_io io[2];
	int ends[2], read_only = open(path, O_RDONLY | O_CLOEXEC),
		     append = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	(void)state;
	assert_int_equal(pipe(ends), 0);
	must(weir_register(context, buffer, 8192, NULL, &registration));
	refused(weir_file_read(NULL, file, 1, 0, 0), -EINVAL, "no registration", "NULL");
	refused(weir_file_read(registration, 9999, 1, 0, 0), -EBADF, "9999", "no open file");
	refused(weir_file_read(registration, ends[0], 1, 0, 0), -ESPIPE, "pipe", "request 0");
	refused(weir_file_read(registration, append, 1, 0, 0), -EBADF, "not open for reading", "request 0");
	refused(weir_file_write(registration, read_only, 1, 0, 0), -EBADF, "not open for writing",
		"request 0");
	refused(weir_file_write(registration, append, 1, 0, 0), -EBADF, "O_APPEND", "request 0");
	refused(weir_file_read(registration, file, 8193, 0, 0), -EFAULT, "8193 bytes at 0", "has 8192");
	refused(weir_file_read(registration, file, 1, 0, 8192), -EFAULT, "1 bytes at 8192", "has 8192");
	refused(weir_file_read(registration, file, SIZE_MAX, 0, 1), -EFAULT, "not inside", "has 8192");
	refused(weir_file_read(registration, file, 1, -1, 0), -EINVAL, "offset -1", "negative");
	refused(weir_file_read(registration, file, 8192, INT64_MAX - 8000, 0), -EINVAL, "largest offset",
		"request 0");
	for (unsigned i = 0; i < 2; i++)
		io[i] = (struct weir_file_io){
			.registration = registration, .file = file, .bytes = 10, .result = 77
		};
	io[1].operation = 5;
	refused(weir_file_batch(context, io, 2), -EINVAL, "request 1: 5", "WEIR_FILE_READ");
	assert_int_equal(io[0].result, 77); /* none was begun */
	io[1].registration = NULL;
	io[1].operation = WEIR_FILE_READ;
	refused(weir_file_batch(context, io, 2), -EINVAL, "request 1", "not registered");
	must(weir_deregister(registration));
	close(read_only);
	close(append);
	close(ends[0]);
	close(ends[1]);
}

/* One fails, the others do not: each says so itself, the call says the first. */
static void test_failures(void **state)
{
	struct weir_registration *registration;
	struct weir_file_io io[8];
	int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	must(weir_register(context, buffer, BUFFER_BYTES, NULL, &registration));
	for (unsigned i = 0; i < 8; i++)
		io[i] = (struct weir_file_io){ .registration = registration,
					       .file = i == 3 || i == 5 ? folder : file,
					       .bytes = 1000 + i,
					       .at = i * 4096 };
	refused(weir_file_batch(context, io, 8), -EISDIR, "request 3: cannot read 1003 bytes at 0",
		"directory");
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(io[i].result, i == 3 || i == 5 ? -EISDIR : 1000 + (int)i);
	if (full >= 0)
		refused(weir_file_write(registration, full, 4096, 0, 0), -ENOSPC, "cannot write 4096 bytes",
			"No space");
	must(weir_deregister(registration));
	close(folder);
	close(full);
}

static void test_busy(void **state)
{
	static struct weir_file_io io[MOST_BATCH];
	struct weir_registration *registration;
	struct weir_file_batch *batch;
	int fds[2] = { file, file }, error;

	(void)state;
	must(weir_register(context, buffer, BUFFER_BYTES, NULL, &registration));
	make_batch(io, registration, fds);
	must(weir_file_submit(context, io, MOST_BATCH, &batch));
	error = weir_deregister(registration); /* it may just have ended */
	if (error)
		refused(error, -EBUSY, "have not ended", "weir_file_wait");
	must(weir_file_wait(batch));
	if (error)
		must(weir_deregister(registration));
}

/* A descriptor that is attached is not asked what it is, and reads as any other. */
static void test_attach(void **state)
{
	struct weir_registration *registration;
	int attached = open(path, O_RDONLY | O_CLOEXEC), write_only = open(path, O_WRONLY | O_CLOEXEC),
	    ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	must(weir_register(context, buffer, BUFFER_BYTES, NULL, &registration));
	refused(weir_file_attach(context, 9999), -EBADF, "9999", "no open file");
	refused(weir_file_attach(context, -1), -EBADF, "-1", "no open file");
	refused(weir_file_attach(context, ends[0]), -ESPIPE, "pipe", "cannot attach");
	refused(weir_file_detach(context, attached), -ENOENT, "is not attached", "file descriptor");
	refused(weir_file_detach(context, -1), -ENOENT, "is not attached", "-1");
	must(weir_file_attach(context, attached));
	refused(weir_file_attach(context, attached), -EEXIST, "attached already", "weir_file_detach()");
	must(weir_file_attach(context, write_only));
	clear();
	assert_int_equal(weir_file_read(registration, attached, 100000, 777, 4096), 100000);
	check(4096, 777, 100000, 100000, "attached");
	refused(weir_file_read(registration, write_only, 1, 0, 0), -EBADF, "not open for reading",
		"request 0");
	must(weir_file_detach(context, attached));
	must(weir_file_detach(context, write_only));
	close(attached);
	refused(weir_file_read(registration, attached, 1, 0, 0), -EBADF, "no open file", "request 0");
	must(weir_deregister(registration));
	close(write_only);
	close(ends[0]);
	close(ends[1]);
}

/* The shortest way, of an attached descriptor, has the same bounds, ends and refusals. */
static void test_attached_bounds(void **state)
{
	struct weir_file_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	struct weir_registration *registration, *bounced;
	int attached = open(path, O_RDONLY | O_CLOEXEC), append = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	(void)state;
	must(weir_register(context, buffer, 8192, NULL, &registration));
	must(weir_register(context, buffer, 8192, WEIR_OPTIONS(register, .path = WEIR_FILE_BOUNCE),
			   &bounced));
	must(weir_file_attach(context, attached));
	must(weir_file_attach(context, append));
	clear();
	refused(weir_file_read(registration, attached, 8192, 0, 1), -EFAULT, "8192 bytes at 1", "has 8192");
	refused(weir_file_read(registration, attached, 1, 0, 8192), -EFAULT, "1 bytes at 8192", "has 8192");
	refused(weir_file_read(registration, attached, 1, 0, SIZE_MAX), -EFAULT, "not inside", "has 8192");
	refused(weir_file_write(registration, attached, 16, 0, 0), -EBADF, "not open for writing",
		"request 0");
	refused(weir_file_write(registration, append, 16, 0, 0), -EBADF, "O_APPEND", "request 0");
	assert_int_equal(lseek(attached, 0, SEEK_END), FILE_BYTES);
	check(0, 0, 0, 0, "attached, refused");
	assert_int_equal(weir_file_read(registration, attached, 4096, FILE_BYTES - 10, 100), 10);
	check(100, FILE_BYTES - 10, 10, 4096, "attached, at the end");
	must(weir_file_stats(context, &before));
	assert_int_equal(weir_file_read(bounced, attached, 4096, 4096, 0), 4096);
	must(weir_file_stats(context, &after));
	assert_int_equal(after.copied_bytes - before.copied_bytes, 4096);
	assert_int_equal(after.direct_bytes, before.direct_bytes);
	must(weir_file_detach(context, attached));
	must(weir_file_detach(context, append));
	must(weir_deregister(bounced));
	must(weir_deregister(registration));
	close(attached);
	close(append);
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
static void test_short_calls(void **state)
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
static void test_failed_in_the_middle(void **state)
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

/* As the registration says, where no kernel module is in it. */
static void test_route(void **state)
{
	struct weir_registration_info info = { .size = sizeof(info) };
	struct weir_file_route route = { .size = sizeof(route) };
	struct weir_registration *registration;
	unsigned iteration = 0;

	(void)state;
	while (register_by(&iteration, &registration)) {
		must(weir_registration_info(registration, &info));
		must(weir_file_route(registration, file, &route));
		assert_int_equal(route.path, info.path);
		assert_string_equal(route.reason, info.reason);
		refused(weir_file_route(registration, 9999, &route), -EBADF, "9999", "no route");
		must(weir_deregister(registration));
	}
	refused(weir_file_route(NULL, file, &route), -EINVAL, "no registration", "NULL");
}

static void test_stats(void **state)
{
	struct weir_file_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	struct weir_registration *registration;

	(void)state;
	must(weir_register(context, buffer, BUFFER_BYTES, NULL, &registration));
	assert_int_equal(weir_file_read(registration, file, 4096, 0, 0), 4096);
	must(weir_file_stats(context, &before));
	assert_int_equal(weir_file_read(registration, file, 100000, 5, 0), 100000);
	must(weir_file_stats(context, &after));
	assert_int_equal(after.read_bytes - before.read_bytes, 100000);
	assert_int_equal(after.direct_bytes + after.pulled_bytes + after.copied_bytes,
			 before.direct_bytes + before.pulled_bytes + before.copied_bytes + 100000);
	assert_int_equal(after.written_bytes, before.written_bytes);
	assert_true(after.threads > 0);
	must(weir_deregister(registration));
	after.size = 2;
	refused(weir_file_stats(context, &after), -EINVAL, "weir_file_stats", "size");
}

/* Without io_uring all is the same. Once with a context that is closed with registrations and work left. */
static void test_without_uring(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_overlapped),
		cmocka_unit_test(test_enqueued),
		cmocka_unit_test(test_enqueued_failure),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_longer_than_a_call),
		cmocka_unit_test(test_info),
		cmocka_unit_test(test_wrong_registrations),
		cmocka_unit_test(test_wrong_requests),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_attach),
		cmocka_unit_test(test_attached_bounds),
		cmocka_unit_test(test_short_calls),
		cmocka_unit_test(test_failed_in_the_middle),
		cmocka_unit_test(test_route),
		cmocka_unit_test(test_stats),
		cmocka_unit_test(test_without_uring),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
