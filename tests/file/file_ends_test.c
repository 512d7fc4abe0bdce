/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_ends_test.c: how file requests end that fail: behind bytes that were read, one after another, or
 * unwaited for.
 *
 * The calls of the library to the system pass through the test: a file gives no more than a few bytes at
 * once, and fails
 * from a certain byte on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <liburing.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/file.h>

#include "../rig/context.h"

enum { BYTES = 65536, PAGE = 4096, PAGES = 4 };

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

/** struct rig - a context whose files are read by single calls or not, registered memory, a file and a folder
 */
struct rig {
	struct weir_context *context;
	struct weir_registration *registration;
	uint64_t memory;
	void *host;
	char path[40];
	int file, folder;
};

/* What pread() gives: @most bytes at once, nothing from byte @bad on. 0: all. */
static struct {
	size_t most;
	off_t bad;
} limits;

/* Flags of the last descriptor that was opened of an open file. */
static int opened_again;

static int pass_open(const char *path, int flags, int mode)
{
	if (!strncmp(path, "/proc/self/fd/", strlen("/proc/self/fd/")))
		opened_again = flags;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list list;
	int mode;

	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, int) : 0;
	va_end(list);
	return pass_open(path, flags, mode);
}

/* Reads are held until @until of them are under way at the same time; 0: none is. */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	unsigned until, under_way;
} gate = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void pass_gate(void)
{
	pthread_mutex_lock(&gate.mutex);
	if (++gate.under_way == gate.until)
		usleep(100000); /* so that others come to where they are too many */
	if (gate.under_way >= gate.until)
		gate.until = 0;
	pthread_cond_broadcast(&gate.changed);
	while (gate.until)
		pthread_cond_wait(&gate.changed, &gate.mutex);
	gate.under_way--;
	pthread_mutex_unlock(&gate.mutex);
}

enum { FEED_BYTES = 100, FEED_MOST = 2000, FEED_PLACES = 600 };

/* Each read of the thread @caller submits one more batch, for which the other threads take their time.
 */
static struct {
	const struct rig *rig; /* NULL: none does */
	pthread_t caller;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool over;
	unsigned count;
	struct weir_file_io io[FEED_MOST];
} feed = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void submit_more(void)
{
	struct weir_file_io *io = &feed.io[feed.count];
	struct weir_file_batch *batch;

	if (feed.count == FEED_MOST)
		return;
	*io = (struct weir_file_io){ .registration = feed.rig->registration,
				     .file = feed.rig->file,
				     .at = feed.count % FEED_PLACES * FEED_BYTES,
				     .bytes = FEED_BYTES };
	pthread_mutex_lock(&feed.mutex);
	feed.count++;
	pthread_cond_broadcast(&feed.changed);
	pthread_mutex_unlock(&feed.mutex);
	must(weir_file_submit(feed.rig->context, io, 1, &batch));
}

/* Others begin behind the first read of @caller. What was submitted then they leave it for 0.1 s each: they
 * may have read other parts of its batch, which they report behind that. */
static void let_caller_go_on(size_t bytes)
{
	struct timespec until;
	int error = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 100000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&feed.mutex);
	while (!feed.over && !feed.count)
		pthread_cond_wait(&feed.changed, &feed.mutex);
	while (!feed.over && bytes == FEED_BYTES && !error)
		error = pthread_cond_timedwait(&feed.changed, &feed.mutex, &until);
	pthread_mutex_unlock(&feed.mutex);
}

static void pass_feed(size_t bytes)
{
	if (feed.rig && pthread_equal(pthread_self(), feed.caller))
		submit_more();
	else if (feed.rig)
		let_caller_go_on(bytes);
}

enum { SUBMITTED, READING, PASSED, ENDING, ENDED };

/* @waiter is held behind one of its unlocks, and the thread that reads until then: so that the batch ends
 * just when @waiter is about to see whether it has. */
static struct {
	atomic_bool armed;
	pthread_t waiter;
	unsigned unlocks; /* of @waiter, before it is held */
	atomic_int step;
	struct weir_file_io io;
} ending;

static bool is_other(void)
{
	return ending.armed && !pthread_equal(pthread_self(), ending.waiter);
}

static bool has_ended(void)
{
	return __atomic_load_n(&ending.io.result, __ATOMIC_ACQUIRE) == FEED_BYTES;
}

/* Or a minute. */
static void await_step(int step)
{
	for (unsigned i = 0; ending.step < step && i < 60000; i++)
		usleep(1000);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*next)(pthread_mutex_t *);
	int result;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	result = next(mutex);
	if (!ending.armed || is_other() || ending.unlocks-- != 0)
		return result;
	ending.step = PASSED;
	await_step(ENDING);
	return result;
}

/* Of the thread that has read: time enough for @waiter to go on, if it does. */
int pthread_cond_broadcast(pthread_cond_t *changed)
{
	static int (*next)(pthread_cond_t *);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
	if (is_other() && ending.step == PASSED && has_ended()) {
		ending.step = ENDING;
		for (unsigned i = 0; ending.armed && i < 500; i++)
			usleep(1000);
		ending.step = ENDED;
	}
	return next(changed);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
	pass_gate();
	pass_feed(bytes);
	if (is_other()) {
		ending.step = READING;
		await_step(PASSED);
	}
	if (limits.bad && offset >= limits.bad) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, to, limits.most && bytes > limits.most ? limits.most : bytes, offset);
}

/* Of io_uring: @data: where a batch's pages are read to, of which half then come to nothing; @halved: so
 * many.
 */
static struct {
	unsigned char *data;
	unsigned halved;
} ring;

int io_uring_submit_and_wait(struct io_uring *uring, unsigned wait)
{
	static int (*next)(struct io_uring *, unsigned);
	struct io_uring_cqe *cqe;
	unsigned head;
	int result;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "io_uring_submit_and_wait");
	result = next(uring, wait);
	io_uring_for_each_cqe(uring, head, cqe)
	{
		if (!ring.data || cqe->res != PAGE)
			continue;
		memset(ring.data + io_uring_cqe_get_data64(cqe) * PAGE + PAGE / 2, 0x5a, PAGE / 2);
		cqe->res = PAGE / 2;
		ring.halved++;
	}
	return result;
}

static void says(int result, int error, const char *sentence)
{
	if (result != error || !strstr(weir_last_error(), sentence))
		fail_msg("%d and \"%s\" instead of %d and \"%s\"", result, weir_last_error(), error,
			 sentence);
}

/* @uring: by io_uring, if there is any. */
static void open_rig(struct rig *rig, bool uring)
{
	static unsigned char bytes[BYTES];

	limits.most = 0;
	limits.bad = 0;
	snprintf(rig->path, sizeof(rig->path), "/tmp/weir_file_ends_XXXXXX");
	rig->file = mkstemp(rig->path);
	for (unsigned i = 0; i < BYTES; i++)
		bytes[i] = (unsigned char)(i % 251);
	assert_true(rig->file >= 0 && write(rig->file, bytes, BYTES) == BYTES);
	rig->folder = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!uring)
		setenv("WEIR_FILE_NO_URING", "1", 1);
	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1), &rig->context));
	must(uring ? weir_alloc_host(rig->context, BYTES, &rig->memory, &rig->host)
		   : weir_alloc(rig->context, BYTES, &rig->memory));
	must(weir_register(rig->context, rig->memory, BYTES, NULL, &rig->registration));
}

static void close_files(struct rig *rig)
{
	unsetenv("WEIR_FILE_NO_URING");
	close(rig->file);
	close(rig->folder);
	unlink(rig->path);
}

static struct weir_file_io read_of(struct rig *rig, int file, uint64_t bytes)
{
	return (struct weir_file_io){ .registration = rig->registration, .file = file, .bytes = bytes };
}

/* A read moves two parts of what it was asked for, then fails: the two parts are the result. */
static void test_an_error_behind_data(void **state)
{
	static unsigned char found[BYTES];
	struct weir_file_stats stats = { .size = sizeof(stats) };
	struct weir_file_io io;
	struct rig rig;

	(void)state;
	open_rig(&rig, false);
	io = read_of(&rig, rig.file, BYTES / 2);
	limits.most = 5000;
	limits.bad = 10000;
	must(weir_file_batch(rig.context, &io, 1));
	assert_int_equal(io.result, 10000);
	must(weir_copy_from_device(rig.context, found, rig.memory, BYTES));
	for (unsigned i = 0; i < 10000; i++)
		assert_int_equal(found[i], i % 251);
	limits.bad = 1;
	io = read_of(&rig, rig.file, 300);
	io.offset = 1;
	says(weir_file_batch(rig.context, &io, 1), -EIO, "cannot read 300 bytes at 1");
	assert_int_equal(io.result, -EIO);
	must(weir_file_stats(rig.context, &stats)); /* what failed has no bytes, and none below zero */
	assert_int_equal(stats.read_bytes, 10000);
	must(weir_context_close(rig.context));
	close_files(&rig);
}

/* The requests of a batch get half of what they ask for in the midst of a file: the rest follows. */
static void test_a_short_read_is_not_the_end(void **state)
{
	struct weir_file_io io[PAGES];
	unsigned char *found;
	struct rig rig;

	(void)state;
	open_rig(&rig, true);
	for (unsigned i = 0; i < PAGES; i++) {
		io[i] = read_of(&rig, rig.file, PAGE);
		io[i].at = io[i].offset = (uint64_t)i * PAGE;
	}
	found = ring.data = rig.host;
	must(weir_file_batch(rig.context, io, PAGES));
	ring.data = NULL;
	for (unsigned i = 0; i < PAGES; i++)
		assert_int_equal(io[i].result, PAGE);
	for (unsigned i = 0; i < PAGES * PAGE; i++)
		assert_int_equal(found[i], i % 251);
	if (!ring.halved)
		print_message("# SKIPPED, NOT TESTED HERE: io_uring\n");
	must(weir_context_close(rig.context));
	close_files(&rig);
}

static void *read_one(void *of)
{
	struct rig *rig = of;

	return (void *)(intptr_t)weir_file_read(rig->registration, rig->file, 100, 0, 0);
}

/* More threads read at the same time than there is staging for: the others wait for theirs. */
static void test_many_threads(void **state)
{
	enum { AT_ONCE = 64, THREADS = AT_ONCE + 16 };
	pthread_t threads[THREADS];
	struct rig rig;
	void *got;

	(void)state;
	open_rig(&rig, false);
	gate.until = AT_ONCE;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_one, &rig), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &got), 0);
		assert_int_equal((intptr_t)got, 100);
	}
	must(weir_context_close(rig.context));
	close_files(&rig);
}

/* As many as WEIR_FILE_THREADS says share much, the caller among them, and never more than 16. */
static void test_threads_that_are_asked_for(void **state)
{
	enum { REQUESTS = 64 }; /* of 4 MiB, which 32 threads might share */
	static const struct {
		const char *asked;
		unsigned threads;
	} cases[] = { { "1", 1 }, { "3", 3 }, { "16", 16 }, { "17", 16 }, { "1000", 16 } };

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_file_stats stats = { .size = sizeof(stats) };
		struct weir_file_io io[REQUESTS];
		struct rig rig;

		setenv("WEIR_FILE_THREADS", cases[i].asked, 1);
		open_rig(&rig, false);
		for (unsigned k = 0; k < REQUESTS; k++) {
			io[k] = read_of(&rig, rig.file, BYTES);
			io[k].operation = WEIR_FILE_WRITE;
		}
		must(weir_file_batch(rig.context, io, REQUESTS));
		must(weir_file_stats(rig.context, &stats));
		must(weir_context_close(rig.context));
		unsetenv("WEIR_FILE_THREADS");
		close_files(&rig);
		assert_int_equal(stats.threads, cases[i].threads);
	}
}

/* While a thread waits for its batch others submit more and more behind it: what it does itself ends with its
 * own. */
static void test_more_behind_it(void **state)
{
	enum { REQUESTS = 600, EACH = 64 }; /* so many are shared with the context's threads */
	struct weir_file_io io[REQUESTS];
	struct rig rig;
	unsigned fed;

	(void)state;
	open_rig(&rig, false);
	for (unsigned i = 0; i < REQUESTS; i++) {
		io[i] = read_of(&rig, rig.file, EACH);
		io[i].at = io[i].offset = (uint64_t)i * EACH;
	}
	feed.rig = &rig;
	feed.caller = pthread_self();
	must(weir_file_batch(rig.context, io, REQUESTS));
	pthread_mutex_lock(&feed.mutex);
	feed.over = true;
	fed = feed.count;
	pthread_cond_broadcast(&feed.changed);
	pthread_mutex_unlock(&feed.mutex);
	assert_in_range(fed, 1, REQUESTS);
	must(weir_context_close(rig.context));
	feed.rig = NULL;
	close_files(&rig);
}

/* Whoever waits for a batch has it back when the thread that ended it is done with it, not before. */
static void test_a_batch_that_ends_just_then(void **state)
{
	struct weir_file_batch *batch;
	struct rig rig;
	int step;

	(void)state;
	open_rig(&rig, false);
	ending.io = read_of(&rig, rig.file, FEED_BYTES);
	must(weir_file_batch(rig.context, &ending.io, 1)); /* what the waiter needs is made before */
	ending.waiter = pthread_self();
	for (unsigned unlocks = 0; unlocks < 3; unlocks++) {
		ending.unlocks = UINT_MAX;
		ending.step = SUBMITTED;
		ending.armed = true;
		ending.io = read_of(&rig, rig.file, FEED_BYTES);
		must(weir_file_submit(rig.context, &ending.io, 1, &batch));
		await_step(READING); /* else the waiter may read it itself */
		ending.unlocks = unlocks;
		must(weir_file_wait(batch));
		step = ending.step;
		ending.armed = false;
		assert_int_equal(step, ENDED);
		assert_true(has_ended());
	}
	must(weir_context_close(rig.context));
	close_files(&rig);
}

/* Two enqueued requests fail: weir_sync() says the first one, and the next weir_sync() nothing. */
static void test_the_first_failure_is_said(void **state)
{
	struct weir_file_io first, second;
	struct rig rig;

	(void)state;
	open_rig(&rig, false);
	first = read_of(&rig, rig.folder, 100);
	second = read_of(&rig, rig.folder, 200);
	if (weir_file_enqueue(rig.context, NULL, &first, 1) ==
	    0) { /* else the backend has no streams that wait */
		must(weir_file_enqueue(rig.context, NULL, &second, 1));
		says(weir_sync(rig.context), -EISDIR, "cannot read 100 bytes");
		must(weir_sync(rig.context));
		assert_int_equal(second.result, -EISDIR);
	}
	must(weir_context_close(rig.context));
	close_files(&rig);
}

/* Batches that nobody waits for fail: closing the context says all of them. */
static void test_batches_without_a_waiter(void **state)
{
	struct weir_file_batch *batches[3];
	struct weir_file_io io[3];
	struct rig rig;

	(void)state;
	open_rig(&rig, false);
	for (unsigned i = 0; i < 3; i++) {
		io[i] = read_of(&rig, i == 1 ? rig.file : rig.folder, 100 + i);
		must(weir_file_submit(rig.context, &io[i], 1, &batches[i]));
	}
	says(weir_context_close(rig.context), -EISDIR, "a batch that nobody waited for: ");
	assert_non_null(strstr(weir_last_error(), "cannot read 100 bytes"));
	assert_non_null(strstr(weir_last_error(), "cannot read 102 bytes"));
	assert_null(strstr(weir_last_error(), "101 bytes"));
	assert_int_equal(io[1].result, 101);
	close_files(&rig);
}

/* What is written at the edges of a file with O_DIRECT is as durable as the rest of it. */
static void test_edges_are_as_durable(void **state)
{
	static const int syncs[] = { 0, O_DSYNC, O_SYNC };
	struct weir_file_io io;
	struct rig rig;

	(void)state;
	for (unsigned i = 0; i < sizeof(syncs) / sizeof(syncs[0]); i++) {
		struct weir_file_stats stats = { .size = sizeof(stats) };
		int direct;

		open_rig(&rig, false);
		direct = open(rig.path, O_RDWR | O_DIRECT | O_CLOEXEC | syncs[i]);
		io = read_of(&rig, direct, 100);
		io.operation = WEIR_FILE_WRITE;
		opened_again = -1;
		if (direct >= 0)
			must(weir_file_batch(rig.context, &io, 1));
		assert_true(direct < 0 || (opened_again & O_SYNC) == syncs[i]);
		must(weir_file_stats(rig.context, &stats));
		assert_int_equal(stats.edges, direct >= 0);
		assert_int_equal(stats.written_bytes, direct >= 0 ? 100 : 0);
		must(weir_context_close(rig.context));
		close(direct);
		close_files(&rig);
	}
}

/* An allocation stays as long as any part of it is registered. */
static void test_registered_parts(void **state)
{
	static const struct {
		uint64_t at, bytes;
	} parts[] = { { 0, 1 }, { PAGE, PAGE }, { 3 * PAGE - 1, 1 }, { 0, 3 * PAGE } };
	struct weir_registration *part;
	uint64_t memory;
	struct rig rig;

	(void)state;
	open_rig(&rig, false);
	must(weir_alloc(rig.context, 3 * PAGE, &memory));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		must(weir_register(rig.context, memory + parts[i].at, parts[i].bytes, NULL, &part));
		says(weir_free(rig.context, memory), -EBUSY, "are registered");
		must(weir_deregister(part));
	}
	must(weir_free(rig.context, memory));
	must(weir_context_close(rig.context));
	close_files(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_error_behind_data),
		cmocka_unit_test(test_a_short_read_is_not_the_end),
		cmocka_unit_test(test_the_first_failure_is_said),
		cmocka_unit_test(test_batches_without_a_waiter),
		cmocka_unit_test(test_edges_are_as_durable),
		cmocka_unit_test(test_registered_parts),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_threads_that_are_asked_for),
		cmocka_unit_test(test_more_behind_it),
		cmocka_unit_test(test_a_batch_that_ends_just_then),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("file_ends", tests, NULL, NULL);
}
