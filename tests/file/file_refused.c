/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations and requests that are refused, and those that fail. */
#include "file_cases.h"

#include "../storage/lifetime.h"

void test_wrong_registrations(void **state)
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

void test_wrong_requests(void **state)
{
	struct weir_registration *registration;
	struct weir_file_io io[2];
	int ends[2], read_only = open(path, O_RDONLY | O_CLOEXEC),
		     append = open(path, O_WRONLY | O_APPEND | O_CLOEXEC),
		     first = fcntl(STDIN_FILENO, F_GETFD);

	(void)state;
	assert_int_equal(pipe(ends), 0);
	must(weir_register(context, buffer, 8192, NULL, &registration));
	refused(weir_file_read(NULL, file, 1, 0, 0), -EINVAL, "no registration", "NULL");
	refused(weir_file_read(registration, 9999, 1, 0, 0), -EBADF, "9999", "no open file");
	refused(weir_file_read(registration, ends[0], 1, 0, 0), -ESPIPE, "pipe", "request 0");
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), first); /* somebody else's, be it number 0 */
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
void test_failures(void **state)
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

/* A request behind a kernel that waits for the host has not ended. */
static void check_enqueued_is_busy(struct weir_registration *registration)
{
	struct weir_file_io io = { .registration = registration, .file = file, .bytes = 100 };
	struct lifetime_wait_args args = { .gate = 0 };
	uint32_t *gate, *out;

	must(weir_alloc_host(context, sizeof(*gate), &args.gate, (void **)&gate));
	must(weir_alloc_host(context, sizeof(*out), &args.out, (void **)&out));
	must(weir_launch(context, "lifetime_wait", 1, 1, &args, sizeof(args)));
	must(weir_file_enqueue(context, NULL, &io, 1));
	refused(weir_deregister(registration), -EBUSY, "have not ended", "weir_file_wait");
	__atomic_store_n(gate, 1, __ATOMIC_RELEASE);
	must(weir_sync(context));
	assert_int_equal(io.result, 100);
	must(weir_free(context, args.gate));
	must(weir_free(context, args.out));
}

void test_busy(void **state)
{
	static struct weir_file_io io[MOST_BATCH];
	struct weir_registration *registration;
	struct weir_file_batch *batch;
	int fds[2] = { file, file }, error;

	(void)state;
	must(weir_register(context, buffer, BUFFER_BYTES, NULL, &registration));
	if (test_on_cpu())
		check_enqueued_is_busy(registration);
	make_batch(io, registration, fds);
	must(weir_file_submit(context, io, MOST_BATCH, &batch));
	error = weir_deregister(registration); /* it may just have ended */
	if (error)
		refused(error, -EBUSY, "have not ended", "weir_file_wait");
	must(weir_file_wait(batch));
	if (error)
		must(weir_deregister(registration));
}
