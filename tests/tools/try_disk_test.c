/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * try_disk_test.c: which disks weir-try takes for blank, and how much of them it writes; what it makes of
 * steps that end otherwise than by an answer.
 *
 * A file in memory stands for the disk: of what the machine is asked for, stand-ins say that it is one.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
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
static const char *driver = "nvme";
static unsigned
	spaces; /* namespaces besides, all of the same name with numbers behind it, the highest first */

bool tree_function(const char *address, struct tree_function *function)
{
	*function = (struct tree_function){ .class = "0x010802" };
	snprintf(function->driver, sizeof(function->driver), "%s", driver);
	snprintf(function->address, sizeof(function->address), "%.63s", address);
	return true;
}

void tree_blocks(const char *address, struct tree_names *blocks)
{
	(void)address;
	blocks->count = 1 + spaces;
	memcpy(blocks->name[0], name, sizeof(name));
	for (unsigned i = 1; i <= spaces; i++)
		snprintf(blocks->name[i], sizeof(name), "%.40sn%u", name, spaces + 1 - i);
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

/* A disk of @bytes zeros, as a file that is open. */
static int make_disk(uint64_t bytes)
{
	char path[TREE_NAME_BYTES + 8];
	int file;

	snprintf(name, sizeof(name), "shm/weir-try-disk-%d", (int)getpid());
	snprintf(path, sizeof(path), "/dev/%s", name);
	file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(file >= 0 && ftruncate(file, (off_t)bytes) == 0);
	return file;
}

static void remove_disk(int file)
{
	char path[TREE_NAME_BYTES + 8];

	close(file);
	snprintf(path, sizeof(path), "/dev/%s", name);
	unlink(path);
}

static int take_disk(struct try_storage *storage)
{
	const struct try_options options = { .file_bytes = 1 << 30 };
	const struct try_disk disk = { .address = "0000:01:00.0" };

	said[0] = 0;
	return try_disk_open(&options, &disk, storage);
}

/* Open a disk of @bytes that are zeros but for one, at @at; UINT64_MAX: for none. */
static int open_disk(uint64_t bytes, uint64_t at, struct try_storage *storage)
{
	int file = make_disk(bytes), status;

	assert_true(at == UINT64_MAX || pwrite(file, "x", 1, (off_t)at) == 1);
	status = take_disk(storage);
	remove_disk(file);
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

/* Beyond 4 GiB: the end of such a disk is another place than that of its lowest 32 bits. */
static void a_large_disk(void **state)
{
	const uint64_t bytes = 5 * (uint64_t)(1 << 30) + 3 * MIB;
	struct try_storage storage;

	(void)state;
	is_refused(bytes, bytes - 1, "its first and last MiB are not zeros");
	is_refused(bytes, bytes - MIB, "its first and last MiB are not zeros");
	if (open_disk(bytes, (uint32_t)(bytes - 1), &storage) != 0)
		fail_msg("%s", said);
	assert_int_equal(storage.bytes, 1 << 30);
}

static void clean(const struct try_storage *storage, const char *verdict)
{
	json_t *found = try_child(try_disk_clean, storage);

	assert_string_equal(json_string_value(json_object_get(found, "verdict")), verdict);
	json_decref(found);
}

/* The last command that the trace at @path has is a flush. */
static void ends_with_a_flush(const char *path)
{
	char line[256], last[256] = "";
	FILE *file = fopen(path, "re");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, "begin ", 6))
			memcpy(last, line, sizeof(last));
	fclose(file);
	if (!strstr(last, " flush"))
		fail_msg("the last command is: %s", last);
}

/* Of what the tests left all is zeros, durable, and what lies around that stays as it is. */
static void what_was_written_is_zeros_in_the_end(void **state)
{
	static unsigned char disk[DISK_BYTES];
	struct try_storage storage;
	int file = make_disk(DISK_BYTES);
	char trace[64];

	(void)state;
	if (take_disk(&storage) != 0)
		fail_msg("%s", said);
	snprintf(trace, sizeof(trace), "/dev/shm/weir-try-trace-%d", (int)getpid());
	snprintf(storage.uri, sizeof(storage.uri), "file:/dev/%s?trace=%s", name, trace);
	memset(disk, 'x', sizeof(disk));
	assert_int_equal(pwrite(file, disk, sizeof(disk), 0), sizeof(disk));
	clean(&storage, "good");
	ends_with_a_flush(trace);
	unlink(trace);
	assert_int_equal(pread(file, disk, sizeof(disk), 0), sizeof(disk));
	for (uint64_t i = 0; i < sizeof(disk); i++)
		if (disk[i] != (i < MIB || i >= DISK_BYTES - MIB ? 'x' : 0))
			fail_msg("byte %llu is %u", (unsigned long long)i, disk[i]);
	snprintf(storage.uri, sizeof(storage.uri), "file:/dev/%s", name);
	storage.bytes += 2 * MIB; /* more than there is */
	clean(&storage, "failed");
	remove_disk(file);
}

static int take_space(uint32_t nsid, struct try_storage *storage)
{
	const struct try_options options = { .file_bytes = 4 * MIB };
	const struct try_disk disk = { .address = "ffff:ff:1f.7", .nsid = nsid };

	said[0] = 0;
	return try_disk_open(&options, &disk, storage);
}

/* Of several namespaces the one that was named, and none where none was; 1 is not 11. */
static void one_of_several_namespaces(void **state)
{
	char first[TREE_NAME_BYTES], path[TREE_NAME_BYTES + 8];
	struct try_storage storage;
	int files[2];

	(void)state;
	files[0] = make_disk(DISK_BYTES);
	memcpy(first, name, sizeof(name));
	snprintf(path, sizeof(path), "/dev/%.40sn2", first);
	files[1] = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(files[1] >= 0 && ftruncate(files[1], 7 * MIB) == 0);
	spaces = 12;
	assert_int_equal(take_space(0, &storage), TRY_REFUSED);
	assert_non_null(
		strstr(said, "it has several namespaces; name one: ADDRESS/NSID; nothing was written"));
	assert_int_equal(take_space(2, &storage), 0);
	assert_string_equal(storage.path, path);
	assert_string_equal(storage.uri + strlen("file:"), path);
	assert_int_equal(storage.bytes, 4 * MIB);
	assert_int_equal(take_space(13, &storage), TRY_REFUSED);
	assert_non_null(strstr(said, "there is no such namespace; nothing was written"));
	assert_int_equal(take_space(1, &storage), TRY_REFUSED); /* of that there is no file */
	if (!strstr(said, "n1 does not exist"))
		fail_msg("%s", said);
	spaces = 0;
	assert_int_equal(take_space(0, &storage), 0);
	close(files[1]);
	unlink(path);
	remove_disk(files[0]);
}

/* Bound to vfio-pci it is driven as a whole: by its address, and the namespace that was named. */
static void a_disk_of_vfio(void **state)
{
	struct try_storage storage;

	(void)state;
	driver = "vfio-pci";
	snprintf(name, sizeof(name), "none");
	assert_int_equal(take_space(0, &storage), TRY_REFUSED); /* there is no such function */
	assert_string_equal(storage.uri, "nvme:ffff:ff:1f.7");
	assert_false(storage.keys || storage.path[0]);
	assert_int_equal(take_space(7, &storage), TRY_REFUSED);
	assert_string_equal(storage.uri, "nvme:ffff:ff:1f.7?nsid=7");
	assert_true(storage.keys);
	driver = "other";
	assert_int_equal(take_space(0, &storage), TRY_REFUSED);
	assert_non_null(strstr(said, "neither the kernel's driver nor vfio-pci has it"));
	driver = "nvme";
}

static json_t *step_that_answers(const void *arguments)
{
	printf("to one");
	fflush(stdout);
	fprintf(stderr, " and the other");
	return try_verdict("good", "%s", (const char *)arguments);
}

static json_t *step_that_ends(const void *arguments)
{
	printf("its last words");
	fflush(stdout);
	_exit(*(const int *)arguments);
}

static json_t *step_that_is_killed(const void *arguments)
{
	(void)raise(*(const int *)arguments);
	return try_verdict("good", "it lives");
}

static json_t *step_without_a_verdict(const void *arguments)
{
	(void)arguments;
	return json_object();
}

static void expect_step(try_step step, const void *arguments, const char *verdict, const char *why,
			const char *words)
{
	json_t *found = try_child(step, arguments);
	const char *has = json_string_value(json_object_get(found, "said"));

	assert_string_equal(json_string_value(json_object_get(found, "verdict")), verdict);
	assert_string_equal(json_string_value(json_object_get(found, "why")), why);
	assert_string_equal(has ? has : "", words);
	json_decref(found);
}

/* A step that does not answer has failed, however it ends; what it said is kept. */
static void steps_that_end_otherwise(void **state)
{
	const int good = 0, bad = 3, terminated = SIGTERM, killed = SIGKILL;

	(void)state;
	expect_step(step_that_answers, "an answer", "good", "an answer", "to one and the other");
	expect_step(step_that_ends, &good, "failed", "it ended with status 0 and no result",
		    "its last words");
	expect_step(step_that_ends, &bad, "failed", "it ended with status 3 and no result", "its last words");
	expect_step(step_that_is_killed, &terminated, "failed", "it was ended by a signal: Terminated", "");
	expect_step(step_that_is_killed, &killed, "failed", "it was ended by a signal: Killed", "");
	expect_step(step_without_a_verdict, NULL, "failed", "it ended with status 0 and no result", "");
}

static void a_small_disk(void **state)
{
	(void)state;
	is_refused(6 * MIB - 512, UINT64_MAX, "6 MiB are the fewest");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_at_an_edge), cmocka_unit_test(a_blank_disk),
		cmocka_unit_test(a_large_disk),    cmocka_unit_test(what_was_written_is_zeros_in_the_end),
		cmocka_unit_test(a_small_disk),    cmocka_unit_test(one_of_several_namespaces),
		cmocka_unit_test(a_disk_of_vfio),  cmocka_unit_test(steps_that_end_otherwise),
	};

	return cmocka_run_group_tests_name("try_disk", tests, NULL, NULL);
}
