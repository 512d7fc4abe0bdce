/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * try_disk_test.c: which disks weir-try takes for blank, and how much of them it writes.
 *
 * A file in memory stands for the disk: of what the machine is asked for, stand-ins say that it is one.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "machine.h"
#include "tree.h"
#include "tools/weir-try/try.h"

enum { MIB = 1 << 20, DISK_BYTES = 8 * MIB };

const char *tree_root = "";

static char name[TREE_NAME_BYTES]; /* below /dev */
static char said[1024];

bool tree_function(const char *address, struct tree_function *function)
{
	*function = (struct tree_function){ .driver = "nvme", .class = "0x010802" };
	snprintf(function->address, sizeof(function->address), "%.63s", address);
	return true;
}

void tree_blocks(const char *address, struct tree_names *blocks)
{
	(void)address;
	blocks->count = 1;
	memcpy(blocks->name[0], name, sizeof(name));
}

bool tree_blocks_each(const char *address, bool (*visit)(void *to, const char *block), void *to)
{
	(void)address;
	return visit(to, name);
}

enum tree_use tree_used(const char *block, char why[TREE_WHY_BYTES])
{
	(void)block;
	why[0] = 0;
	return TREE_FREE;
}

void put_text(char *text, size_t bytes, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, bytes, format, arguments);
	va_end(arguments);
}

int tool_complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(said, sizeof(said), format, arguments);
	va_end(arguments);
	return 1;
}

/* Open a disk of @bytes that are zeros but for one, at @at; UINT64_MAX: for none. */
static int open_disk(uint64_t bytes, uint64_t at, struct try_storage *storage)
{
	const struct try_options options = { .file_bytes = 1 << 30 };
	const struct try_disk disk = { .address = "0000:01:00.0" };
	char path[TREE_NAME_BYTES + 8];
	int file, status;

	snprintf(name, sizeof(name), "shm/weir-try-disk-%d", (int)getpid());
	snprintf(path, sizeof(path), "/dev/%s", name);
	file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(file >= 0 && ftruncate(file, (off_t)bytes) == 0);
	assert_true(at == UINT64_MAX || pwrite(file, "x", 1, (off_t)at) == 1);
	close(file);
	said[0] = 0;
	status = try_disk_open(&options, &disk, storage);
	unlink(path);
	return status;
}

static void is_refused(uint64_t bytes, uint64_t at, const char *why)
{
	struct try_storage storage;

	assert_int_equal(open_disk(bytes, at, &storage), TRY_REFUSED);
	if (!strstr(said, why) || !strstr(said, "nothing was written"))
		fail_msg("'%s' is not in: %s", why, said);
}

/* Data in either MiB alone is data, from its first byte to its last. */
static void data_at_an_edge(void **state)
{
	static const uint64_t places[] = { 0, MIB - 1, DISK_BYTES - MIB, DISK_BYTES - 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		is_refused(DISK_BYTES, places[i], "its first and last MiB are not zeros");
}

/* Between the edges nobody looks, and all that is written lies there, in whole MiB. */
static void a_blank_disk(void **state)
{
	static const uint64_t sizes[] = { 6 * MIB, DISK_BYTES, DISK_BYTES + MIB / 2 };
	struct try_storage storage;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (open_disk(sizes[i], UINT64_MAX, &storage) != 0)
			fail_msg("%s", said);
		assert_int_equal(storage.offset, MIB);
		assert_int_equal(storage.bytes, sizes[i] / MIB * MIB - 2 * MIB);
	}
	assert_int_equal(open_disk(DISK_BYTES, MIB, &storage), 0);
}

static void a_small_disk(void **state)
{
	(void)state;
	is_refused(6 * MIB - 512, UINT64_MAX, "6 MiB are the fewest");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_at_an_edge),
		cmocka_unit_test(a_blank_disk),
		cmocka_unit_test(a_small_disk),
	};

	return cmocka_run_group_tests_name("try_disk", tests, NULL, NULL);
}
