/* SPDX-License-Identifier: BSD-3-Clause */
/* Files into and out of registered memory, on each path that the device has, and what is told of them. */
#include <sys/mman.h>
#include <time.h>

#include "../rig/leaks.h"
#include "file_cases.h"

struct weir_context *context;
uint64_t buffer;
char path[] = "weir-file-test-XXXXXX", *want, *got;
int file;

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
	static const char *const names[] = { [WEIR_FILE_AUTO] = "auto",
					     [WEIR_FILE_MODULE] = "module",
					     [WEIR_FILE_DIRECT] = "direct",
					     [WEIR_FILE_PULL] = "pull",
					     [WEIR_FILE_BOUNCE] = "bounce" };
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
	assert_string_equal(info.reason, "the host sees this memory");
	assert_int_equal(pread(file, info.host, 4096, 0), 4096); /* with the system's own call */
	assert_memory_equal((char *)host + 4096, want, 4096);
	must(weir_deregister(registration));
	must(weir_free(context, pinned));
	must(weir_alloc_host(context, 8192, &pinned, &host));
	must(weir_register(context, pinned, 4096, WEIR_OPTIONS(register, .path = WEIR_FILE_BOUNCE),
			   &registration));
	must(weir_registration_info(registration, &info));
	assert_int_equal(info.path, WEIR_FILE_BOUNCE);
	assert_string_equal(info.reason, "asked for: the host copies from staging and waits");
	must(weir_deregister(registration));
	must(weir_free(context, pinned));
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_string_equal(weir_file_path_name((enum weir_file_path)i), names[i]);
	assert_null(weir_file_path_name((enum weir_file_path)99));
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

/* What was done once leaves no more behind when it is done again. */
static void test_nothing_is_left(void **state)
{
	void (*const cases[])(void **) = { test_writes,           test_batches,        test_enqueued,
					   test_enqueued_failure, test_wrong_requests, test_failures,
					   test_attach,           test_attached_bounds };
	struct test_has before = { 0 };

	for (unsigned again = 0; again < 2; again++) {
		for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			cases[i](state);
		if (again == 0)
			before = test_has();
	}
	before.map_bytes = UINT64_MAX / 2; /* arenas of threads come when they come */
	test_keeps(before, 256 << 10);
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
		cmocka_unit_test(test_enqueued_elsewhere),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_longer_than_a_call),
		cmocka_unit_test(test_far_offsets),
		cmocka_unit_test(test_far_places),
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
		cmocka_unit_test(test_an_interrupted_ring),
		cmocka_unit_test(test_nothing_is_left),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
