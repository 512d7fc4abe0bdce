/* SPDX-License-Identifier: BSD-3-Clause */
/* Files and memory that the host does not see, whose copies fail. */
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

#include "backend/error.h"
#include "file/files.h"

enum { BYTES = 8192 };

static struct weir_backend_ops ops; /* of the cpu, but for one */
static bool refused;

static int copy(struct weir_backend *backend, void *host, uint64_t device, size_t bytes)
{
	(void)backend;
	if (refused)
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
	refused = true;
	assert_int_equal(weir_file_write(registration, file, BYTES, 0, 0), -EIO);
	assert_non_null(strstr(weir_last_error(), "a copy from the device failed"));
	assert_int_equal(pread(file, found, BYTES, 0), BYTES);
	assert_memory_equal(found, before, BYTES);
	refused = false;
	assert_int_equal(weir_file_write(registration, file, BYTES, 0, 0), BYTES);
	assert_int_equal(pread(file, found, BYTES, 0), BYTES);
	assert_memory_equal(found, host, BYTES);
	assert_int_equal(weir_deregister(registration), 0);
	assert_int_equal(weir_context_close(context), 0);
	close(file);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_copy_that_fails_writes_nothing) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
