/* SPDX-License-Identifier: BSD-3-Clause */
/* Files and memory that the host does not see: copies that fail, and those that lanes make. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/file.h>

#include "../rig/leaks.h"
#include "backend/error.h"
#include "file/files.h"
#include "kernels/copy_list.h"

enum { BYTES = 8192 };

static struct weir_backend_ops ops; /* of the cpu, but for some */
static unsigned refused;            /* so many copies more */

static int copy(struct weir_backend *backend, void *host, uint64_t device, size_t bytes)
{
	(void)backend;
	if (refused && refused--)
		return weir_fail(EIO, "a copy from the device failed");
	memcpy(host, (const void *)(uintptr_t)device, bytes);
	return 0;
}

/* What did not come from the device is not written: the file stays as it was. */
static void a_copy_that_fails_writes_nothing(void **state)
{
	char path[] = "/tmp/weir-file-copies-XXXXXX", found[BYTES], before[BYTES];
	struct weir_registration *registration;
	struct weir_context *context;
	struct weir_file_io io[2];
	int file = mkstemp(path);
	uint64_t memory;
	void *host;

	(void)state;
	memset(before, 'a', BYTES);
	assert_int_equal(write(file, before, BYTES), BYTES);
	assert_int_equal(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context), 0);
	ops = *context->backend->ops;
	ops.d2h = copy;
	context->backend->ops = &ops;
	assert_int_equal(weir_alloc_host(context, BYTES, &memory, &host), 0);
	memset(host, 'b', BYTES);
	assert_int_equal(weir_register(context, memory, BYTES,
				       WEIR_OPTIONS(register, .path = WEIR_FILE_BOUNCE), &registration),
			 0);
	registration->host = NULL;
	for (unsigned i = 0; i < 2; i++)
		io[i] = (struct weir_file_io){ .registration = registration,
					       .file = file,
					       .operation = WEIR_FILE_WRITE,
					       .bytes = BYTES / 2,
					       .at = i * BYTES / 2,
					       .offset = i * BYTES / 2 };
	refused = 1; /* the second one's could be had: they are one lot */
	assert_int_equal(weir_file_batch(context, io, 2), -EIO);
	assert_int_equal(io[0].result, -EIO);
	assert_int_equal(io[1].result, -EIO);
	refused = 1;
	assert_int_equal(weir_file_write(registration, file, BYTES, 0, 0), -EIO);
	assert_non_null(strstr(weir_last_error(), "a copy from the device failed"));
	assert_int_equal(pread(file, found, BYTES, 0), BYTES);
	assert_memory_equal(found, before, BYTES);
	assert_int_equal(refused, 0);
	assert_int_equal(weir_file_write(registration, file, BYTES, 0, 0), BYTES);
	assert_int_equal(pread(file, found, BYTES, 0), BYTES);
	assert_memory_equal(found, host, BYTES);
	assert_int_equal(weir_deregister(registration), 0);
	assert_int_equal(weir_context_close(context), 0);
	close(file);
	unlink(path);
}

enum { FILE_BYTES = 65536, REQUESTS = 8, EACH = 1000, MOST_MOVES = 256 };

/* Streams of a device, which do nothing before they are waited for. */
static struct {
	struct weir_move moves[MOST_MOVES];
	size_t count;
	unsigned copies, launches, opened, closed;
	uint32_t blocks; /* of the last launch */
	int copy_error, launch_error, wait_error;
} stream;

static int stream_open(struct weir_backend *backend, void **out)
{
	(void)backend;
	*out = &stream;
	stream.opened++;
	return 0;
}

static void stream_close(struct weir_backend *backend, void *of)
{
	(void)backend, (void)of;
	stream.closed++;
}

static int queue_moves(const struct weir_move *moves, size_t count)
{
	assert_true(stream.count + count <= MOST_MOVES);
	memcpy(stream.moves + stream.count, moves, count * sizeof(*moves));
	stream.count += count;
	return 0;
}

static int stream_copy(struct weir_backend *backend, void *of, const struct weir_move *moves, size_t count)
{
	(void)backend;
	assert_ptr_equal(of, &stream);
	stream.copies++;
	return stream.copy_error ? weir_fail(EIO, "the copy engines failed") : queue_moves(moves, count);
}

static int stream_launch(struct weir_backend *backend, void *of, const char *kernel, uint32_t blocks,
			 uint32_t threads, uint64_t address)
{
	const struct weir_copy_list_args *args = (const void *)(uintptr_t)address;

	(void)backend;
	assert_ptr_equal(of, &stream);
	assert_string_equal(kernel, "weir_copy_list");
	assert_int_equal(threads, 256);
	stream.blocks = blocks;
	stream.launches++;
	return stream.launch_error ? weir_fail(EIO, "lanes failed")
				   : queue_moves((const void *)(uintptr_t)args->copies, args->count);
}

static int stream_wait(struct weir_backend *backend, void *of)
{
	(void)backend;
	assert_ptr_equal(of, &stream);
	for (size_t i = 0; i < stream.count && !stream.wait_error; i++)
		memcpy((void *)(uintptr_t)stream.moves[i].to, (const void *)(uintptr_t)stream.moves[i].from,
		       stream.moves[i].bytes);
	stream.count = 0;
	return stream.wait_error ? weir_fail(EIO, "the stream failed") : 0;
}

/** struct rig - a context whose device has streams, registered memory, and a file */
struct rig {
	struct weir_context *context;
	struct weir_registration *registration;
	unsigned char *memory;
	int file;
};

static unsigned char byte_at(uint64_t at)
{
	return (unsigned char)(at * 2654435761u >> 13);
}

static struct rig open_rig(void)
{
	static unsigned char bytes[FILE_BYTES];
	char path[] = "/tmp/weir-file-copies-XXXXXX";
	struct rig rig = { .file = mkstemp(path) };
	uint64_t address;
	void *host;

	unlink(path);
	for (unsigned i = 0; i < FILE_BYTES; i++)
		bytes[i] = byte_at(i);
	assert_int_equal(write(rig.file, bytes, FILE_BYTES), FILE_BYTES);
	memset(&stream, 0, sizeof(stream));
	assert_int_equal(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &rig.context), 0);
	ops = *rig.context->backend->ops;
	ops.stream_open = stream_open;
	ops.stream_close = stream_close;
	ops.stream_copy = stream_copy;
	ops.stream_launch = stream_launch;
	ops.stream_wait = stream_wait;
	rig.context->backend->ops = &ops;
	assert_int_equal(weir_alloc_host(rig.context, FILE_BYTES, &address, &host), 0);
	rig.memory = host;
	memset(host, 'x', FILE_BYTES);
	assert_int_equal(weir_register(rig.context, address, FILE_BYTES,
				       WEIR_OPTIONS(register, .path = WEIR_FILE_PULL), &rig.registration),
			 0);
	return rig;
}

static void close_rig(struct rig *rig)
{
	assert_int_equal(weir_context_close(rig->context), 0);
	assert_true(stream.opened > 0);
	assert_int_equal(stream.closed, stream.opened);
	close(rig->file);
}

static struct weir_file_stats stats_of(struct rig *rig)
{
	struct weir_file_stats stats = { .size = sizeof(stats) };

	assert_int_equal(weir_file_stats(rig->context, &stats), 0);
	return stats;
}

/* Requests of @bytes, each @apart from the one before. Return: what the batch does; each has @result. */
static int run(struct rig *rig, uint32_t operation, uint64_t bytes, uint64_t apart, int64_t result)
{
	struct weir_file_io io[REQUESTS];
	int error;

	for (unsigned i = 0; i < REQUESTS; i++)
		io[i] = (struct weir_file_io){ .registration = rig->registration,
					       .file = rig->file,
					       .operation = operation,
					       .bytes = bytes,
					       .at = i * apart,
					       .offset = i * apart };
	error = weir_file_batch(rig->context, io, REQUESTS);
	for (unsigned i = 0; i < REQUESTS; i++)
		assert_int_equal(io[i].result, result);
	return error;
}

/* Few moves or long ones are the copy engines', many short ones lanes': all arrive, and nothing beside them.
 */
static void streams_bring_what_is_read(void **state)
{
	/* apart here and in staging, or here alone */
	static const unsigned each[] = { EACH, 1024 }, apart[] = { 7001, 7040 };
	enum { PAGE = 4096 };
	struct rig rig = open_rig();

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bool by_lanes = i < 2;

		ops.stream_launch = by_lanes ? stream_launch : NULL;
		stream.launches = stream.copies = 0;
		memset(rig.memory, 'x', FILE_BYTES);
		assert_int_equal(run(&rig, WEIR_FILE_READ, each[i % 2], apart[i % 2], each[i % 2]), 0);
		assert_int_equal(stream.launches, by_lanes);
		assert_int_equal(stream.copies, !by_lanes);
		for (unsigned k = 0; k < FILE_BYTES; k++)
			assert_int_equal(rig.memory[k],
					 k % apart[i % 2] < each[i % 2] && k / apart[i % 2] < REQUESTS
						 ? byte_at(k)
						 : 'x');
	}
	assert_int_equal(stats_of(&rig).pulled_bytes, REQUESTS * (each[0] + each[1]));
	assert_int_equal(stats_of(&rig).copied_bytes, REQUESTS * (each[0] + each[1]));
	ops.stream_launch = stream_launch;
	stream.copies = 0;
	memset(rig.memory, 'x', FILE_BYTES);
	assert_int_equal(run(&rig, WEIR_FILE_READ, PAGE, PAGE, PAGE), 0); /* one next to the other */
	assert_int_equal(stream.copies, 1);
	for (unsigned i = 0; i < FILE_BYTES; i++)
		assert_int_equal(rig.memory[i], i < REQUESTS * PAGE ? byte_at(i) : 'x');
	assert_int_equal(weir_file_read(rig.registration, rig.file, PAGE, FILE_BYTES - EACH, PAGE), EACH);
	for (unsigned i = 0; i < 2 * PAGE; i++) /* behind the end of the file nothing is brought */
		assert_int_equal(rig.memory[PAGE + i],
				 i < EACH ? byte_at(FILE_BYTES - EACH + i) : byte_at(PAGE + i));
	assert_int_equal(stats_of(&rig).copied_bytes,
			 REQUESTS * (each[0] + each[1]) + REQUESTS * PAGE + EACH);
	close_rig(&rig);
}

/* However many moves there are, there are waves for them, a block for each eight, up to 24; all arrive. */
static void lanes_are_as_many_as_moves_need(void **state)
{
	static const struct {
		unsigned moves;
		uint32_t blocks;
	} rows[] = {
		{ 2, 1 }, { 7, 1 }, { 8, 1 }, { 9, 2 }, { 17, 3 }, { 192, 24 }, { 193, 24 }, { 250, 24 }
	};
	enum { SHORT = 100, APART = 250 };
	static struct weir_file_io io[MOST_MOVES];
	struct rig rig = open_rig();

	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		memset(rig.memory, 'x', FILE_BYTES);
		for (unsigned i = 0; i < rows[r].moves; i++)
			io[i] = (struct weir_file_io){ .registration = rig.registration,
						       .file = rig.file,
						       .bytes = SHORT,
						       .at = i * APART,
						       .offset = i * APART };
		stream.launches = 0;
		assert_int_equal(weir_file_batch(rig.context, io, rows[r].moves), 0);
		assert_int_equal(stream.launches, 1);
		assert_int_equal(stream.blocks, rows[r].blocks);
		for (unsigned i = 0; i < FILE_BYTES; i++)
			assert_int_equal(rig.memory[i],
					 i % APART < SHORT && i / APART < rows[r].moves ? byte_at(i) : 'x');
	}
	close_rig(&rig);
}

/* It is written when it is there, not before. */
static void streams_fetch_what_is_written(void **state)
{
	enum { APART = 7001 };
	static unsigned char found[FILE_BYTES];
	struct rig rig = open_rig();

	(void)state;
	assert_int_equal(run(&rig, WEIR_FILE_WRITE, EACH, APART, EACH), 0);
	assert_int_equal(pread(rig.file, found, FILE_BYTES, 0), FILE_BYTES);
	for (unsigned i = 0; i < FILE_BYTES; i++)
		assert_int_equal(found[i], i % APART < EACH && i / APART < REQUESTS ? 'x' : byte_at(i));
	close_rig(&rig);
}

/* Whatever fails on the way: all requests of the lot say so, nothing is brought, and nothing is written. */
static void streams_that_fail(void **state)
{
	static const char *const words[] = { "lanes failed", "the copy engines failed", "the stream failed" };
	static unsigned char found[FILE_BYTES];
	struct rig rig = open_rig();

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		unsigned what = i / 2;

		ops.stream_launch = what == 1 ? NULL : stream_launch;
		stream.launch_error = what == 0;
		stream.copy_error = what == 1;
		stream.wait_error = what == 2;
		assert_int_equal(run(&rig, i % 2 ? WEIR_FILE_WRITE : WEIR_FILE_READ, EACH, 7001, -EIO), -EIO);
		assert_non_null(strstr(weir_last_error(), words[what]));
		for (unsigned k = 0; k < FILE_BYTES; k++)
			assert_int_equal(rig.memory[k], 'x');
		assert_int_equal(pread(rig.file, found, FILE_BYTES, 0), FILE_BYTES);
		for (unsigned k = 0; k < FILE_BYTES; k++)
			assert_int_equal(found[k], byte_at(k));
	}
	stream.wait_error = 0;
	assert_int_equal(run(&rig, WEIR_FILE_READ, EACH, 7001, EACH), 0); /* it passes */
	close_rig(&rig);
}

/* All that a context had for files goes with it: threads, rings, staging, batches that nobody waited for,
 * registrations, descriptors that are attached. */
static void use_a_context(void)
{
	enum { BATCHES = 16 };
	static struct weir_file_io io[BATCHES][MOST_MOVES];
	struct rig rig = open_rig();

	assert_int_equal(weir_file_attach(rig.context, rig.file), 0);
	for (unsigned b = 0; b < BATCHES; b++) {
		struct weir_file_batch *batch;

		for (unsigned i = 0; i < MOST_MOVES; i++)
			io[b][i] = (struct weir_file_io){ .registration = rig.registration,
							  .file = rig.file,
							  .operation = WEIR_FILE_WRITE,
							  .at = i * 100,
							  .offset = i * 100,
							  .bytes = 50 };
		assert_int_equal(weir_file_submit(rig.context, io[b], MOST_MOVES, &batch), 0);
		while (weir_file_ended(batch) < MOST_MOVES)
			usleep(100);
	}
	assert_int_equal(weir_file_write(rig.registration, rig.file, 1000, 1, 0), 1000); /* of a caller */
	close_rig(&rig);
}

/* All that a context had for files goes with it: threads, rings, staging, batches that nobody waited for,
 * registrations, descriptors that are attached. What is left each time is left in each of the tries. */
static void a_context_that_is_closed_leaves_nothing_behind(void **state)
{
	enum {
		TRIES = 6,
		TIMES = 15,
		CLOSED = 256 / 16 /* handles are kept for a while when they are closed */
	};
	struct test_has before, now;

	(void)state;
	for (unsigned times = 0; times < CLOSED; times++)
		use_a_context();
	for (unsigned i = 0; i < TRIES; i++) {
		before = test_has();
		for (unsigned times = 0; times < TIMES; times++)
			use_a_context();
		now = test_has_settled(before.threads);
		if (now.files <= before.files && now.threads <= before.threads &&
		    (!TEST_COUNTS_MEMORY || now.heap_bytes < before.heap_bytes + TIMES * 256))
			return;
	}
	fail_msg("left behind: %d files, %d threads, %lld bytes of the heap", (int)(now.files - before.files),
		 (int)(now.threads - before.threads), (long long)(now.heap_bytes - before.heap_bytes));
}

enum { MOVES = 150, LONGEST = 3001, ROOM = 1 << 19 };

/* Moves of any length and alignment, some of nothing, with a gap between any two; what is there afterwards.
 */
static void compose(struct weir_kernel_move moves[MOVES], uint64_t from, uint64_t to, unsigned char *expected)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < MOVES; i++) {
		uint64_t bytes = i % 11 ? i * 331 % LONGEST : 0, source = i * 2647 % (ROOM - LONGEST);

		at += 1 + i % 19;
		moves[i] = (struct weir_kernel_move){ .to = to + at, .from = from + source, .bytes = bytes };
		memcpy(expected + at, (const unsigned char *)(uintptr_t)from + source, bytes);
		at += bytes;
	}
	assert_true(at < ROOM);
}

/* By however many waves of whatever width: each move once, and nothing beside it. */
static void waves_move_what_is_in_a_list(void **state)
{
	static const struct {
		uint32_t width, blocks, threads;
	} grids[] = { { 1, 1, 1 }, { 1, 3, 5 }, { 4, 1, 4 }, { 4, 2, 12 }, { 32, 1, 32 }, { 32, 3, 128 } };
	static unsigned char expected[ROOM];

	(void)state;
	for (size_t g = 0; g < sizeof(grids) / sizeof(grids[0]); g++) {
		struct weir_copy_list_args args = { .count = MOVES };
		struct weir_context *context;
		uint64_t from, to;

		assert_int_equal(
			weir_context_open("cpu",
					  WEIR_OPTIONS(context, .workers = 2, .wave_lanes = grids[g].width),
					  &context),
			0);
		assert_int_equal(weir_alloc(context, ROOM, &from), 0);
		assert_int_equal(weir_alloc(context, ROOM, &to), 0);
		assert_int_equal(weir_alloc(context, MOVES * sizeof(struct weir_kernel_move), &args.copies),
				 0);
		for (unsigned i = 0; i < ROOM; i++)
			((unsigned char *)(uintptr_t)from)[i] = (unsigned char)(i * 2654435761u >> 11);
		memset(expected, 0, ROOM);
		compose((struct weir_kernel_move *)(uintptr_t)args.copies, from, to, expected);
		assert_int_equal(weir_launch(context, "weir_copy_list", grids[g].blocks, grids[g].threads,
					     &args, sizeof(args)),
				 0);
		assert_int_equal(weir_sync(context), 0);
		assert_memory_equal((const void *)(uintptr_t)to, expected, ROOM);
		assert_int_equal(weir_context_close(context), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_copy_that_fails_writes_nothing),
					    cmocka_unit_test(streams_bring_what_is_read),
					    cmocka_unit_test(lanes_are_as_many_as_moves_need),
					    cmocka_unit_test(streams_fetch_what_is_written),
					    cmocka_unit_test(streams_that_fail),
					    cmocka_unit_test(a_context_that_is_closed_leaves_nothing_behind),
					    cmocka_unit_test(waves_move_what_is_in_a_list) };

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));

	return cmocka_run_group_tests(tests, NULL, NULL);
}
