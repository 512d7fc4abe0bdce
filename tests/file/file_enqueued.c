/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests in a stream: what is before has ended, what is behind waits, what fails is told. */
#include "file_cases.h"

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
void test_enqueued(void **state)
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
void test_enqueued_failure(void **state)
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

/* The cpu has one stream: requests in another one are refused, and nothing is under way. */
void test_enqueued_elsewhere(void **state)
{
	struct weir_registration *registration;
	struct weir_file_io io;
	int own;

	(void)state;
	if (!test_on_cpu())
		skip();
	must(weir_register(context, buffer, BUFFER_BYTES, NULL, &registration));
	io = (struct weir_file_io){ .registration = registration, .file = file, .bytes = 100 };
	refused(weir_file_enqueue(context, &own, &io, 1), -EINVAL, "the cpu has no streams", "give NULL");
	must(weir_sync(context));
	must(weir_deregister(registration));
}
