/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that are attached: the shortest way, with the same bounds, ends and refusals. */
#include "file_cases.h"

/* A descriptor that is attached is not asked what it is, and reads as any other. */
void test_attach(void **state)
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
void test_attached_bounds(void **state)
{
	struct weir_file_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	struct weir_registration *registration, *bounced, *behind;
	int attached = open(path, O_RDONLY | O_CLOEXEC), append = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	(void)state;
	must(weir_register(context, buffer, 8192, NULL, &registration));
	must(weir_register(context, buffer, 8192, WEIR_OPTIONS(register, .path = WEIR_FILE_BOUNCE),
			   &bounced));
	must(weir_register(context, buffer + 4096, 4096, NULL, &behind));
	must(weir_file_attach(context, attached));
	must(weir_file_attach(context, append));
	clear();
	refused(weir_file_read(behind, attached, 1, 0, SIZE_MAX), -EFAULT, "not inside", "has 4096");
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
	must(weir_deregister(behind));
	must(weir_deregister(bounced));
	must(weir_deregister(registration));
	close(attached);
	close(append);
}
