/* SPDX-License-Identifier: BSD-3-Clause */
/* The self-test of the kernel module's path, with ways for bytes that lie. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "file/module.h"

enum { BYTES = 8192 };

/**
 * struct way - a way for bytes
 * @disk: what is to arrive
 * @memory: the buffer
 * @first, @count: bytes that arrive
 * @flip: where one arrives that is another; -1: nowhere
 * @changes: times that somebody writes to the disk while it is tried
 * @fails: step that fails: 'k', 'p', 'r' or 'g'
 * @writes: it is tried from the buffer to a file
 * @driver, @copies: as in struct file_trial
 */
struct way {
	char disk[BYTES];
	char memory[BYTES];
	size_t first;
	size_t count;
	int flip;
	unsigned changes;
	char fails;
	bool writes;
	const char *driver;
	bool copies;
};

static int known(void *of, char *to, size_t bytes)
{
	struct way *way = of;

	memcpy(to, way->disk, bytes);
	return way->fails == 'k' ? -EIO : 0;
}

static int put(void *of, const char *from, size_t bytes)
{
	struct way *way = of;

	memcpy(way->memory, from, bytes);
	return way->fails == 'p' ? -ENOMEM : 0;
}

static int move(void *of, size_t bytes)
{
	struct way *way = of;

	assert_int_equal(bytes, BYTES);
	if (way->changes) {
		way->changes--;
		way->disk[17]++;
	}
	memcpy(way->memory + way->first, way->disk + way->first, way->count);
	if (way->flip >= 0)
		way->memory[way->flip] = (char)(way->disk[way->flip] ^ 4);
	return way->fails == 'r' ? -EREMOTEIO : 0;
}

static int get(void *of, char *to, size_t bytes)
{
	struct way *way = of;

	memcpy(to, way->memory, bytes);
	return way->fails == 'g' ? -EIO : 0;
}

static struct way *make_way(void)
{
	struct way *way = calloc(1, sizeof(*way));

	for (size_t i = 0; i < BYTES; i++)
		way->disk[i] = (char)(i * 7);
	way->count = BYTES;
	way->flip = -1;
	return way;
}

/* The way is tried with the result @want, and what is said has @words; it goes. */
static void tried(struct way *way, int want, const char *words)
{
	const struct file_trial trial = { way->writes, known, put,         move,       get,
					  way,         BYTES, way->driver, way->copies };
	char why[MODULE_WHY] = "";
	int error = file_trial_run(&trial, why);

	if (error != want || !strstr(why, words))
		fail_msg("%d instead of %d, saying \"%s\" instead of \"%s\"", error, want, why, words);
	free(way);
}

static void honest(void **state)
{
	struct way *way = make_way();

	(void)state;
	tried(way, 0, "8192 bytes that the SSD read into the device's memory arrived");
	way = make_way();
	memset(way->disk, 0, BYTES); /* as in memory that is new */
	tried(way, 0, "arrived");
	way = make_way();
	way->writes = true;
	tried(way, 0, "8192 bytes that the SSD wrote from the device's memory arrived");
	way = make_way();
	way->driver = "the NFS client";
	way->copies = true;
	tried(way, 0, "that the NFS client read into the device's memory arrived; a processor copied them");
}

/* The kernel says that all is well, and nothing was moved. */
static void nothing_arrives(void **state)
{
	struct way *way = make_way();

	(void)state;
	way->count = 0;
	tried(way, -EIO,
	      "the device finds 8192 wrong, the first at 0: 0xff, not 0x00; 8192 are what was there before");
	way = make_way();
	way->count = 0;
	memset(way->disk, 0, BYTES);
	tried(way, -EIO, "the device finds 8192 wrong");
}

static void a_part_arrives(void **state)
{
	struct way *way = make_way();

	(void)state;
	way->count = 4096;
	tried(way, -EIO, "the device finds 4096 wrong, the first at 4096:");
	way = make_way();
	way->first = 512;
	way->count = BYTES - 512;
	tried(way, -EIO, "the device finds 512 wrong, the first at 0:");
}

static void something_else_arrives(void **state)
{
	struct way *way = make_way();

	(void)state;
	way->flip = 8191;
	tried(way, -EIO,
	      "the device finds 1 wrong, the first at 8191: 0xfd, not 0xf9; 0 are what was there before");
	way = make_way();
	way->flip = 8191;
	way->writes = true;
	tried(way, -EIO,
	      "the SSD was asked to write from the device's memory, the file has 1 wrong, the first at 8191: "
	      "0xfd, not 0xf9");
}

static void steps_fail(void **state)
{
	static const struct {
		char step;
		int error;
		const char *words;
	} rows[] = {
		{ 'k', -EIO, "reading the block into host memory failed" },
		{ 'p', -ENOMEM, "filling the device's memory failed" },
		{ 'r', -EREMOTEIO, "reading a block into the device's memory failed: Remote I/O error" },
		{ 'g', -EIO, "reading the device's memory back failed" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct way *way = make_way();

		way->fails = rows[i].step;
		tried(way, rows[i].error, rows[i].words);
	}
}

/* Somebody writes to the block that it is tried with: no fault of the way's. */
static void the_block_changes(void **state)
{
	struct way *way = make_way();

	(void)state;
	way->changes = 2;
	tried(way, 0, "arrived");
	way = make_way();
	way->changes = 100;
	tried(way, -EAGAIN, "somebody writes to the block");
	way = make_way(); /* and yet a way that loses something is found out */
	way->changes = 1;
	way->count = BYTES - 1;
	tried(way, -EIO, "the device finds 1 wrong");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(honest),         cmocka_unit_test(nothing_arrives),
		cmocka_unit_test(a_part_arrives), cmocka_unit_test(something_else_arrives),
		cmocka_unit_test(steps_fail),     cmocka_unit_test(the_block_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
