/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * beyond_test.c: what lanes of weir-resize and weir-checkpoint make at places beyond 4 GiB is what they make
 * at the same places of the first images and tensors. What would be between is not there: addresses are as
 * if.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <weir/weir.h>

#include "../../samples/checkpoint/checkpoint.h"
#include "../../samples/common/device.h"
#include "../../samples/resize/resize.h"
#include "beyond.h"

enum {
	FROM_WIDTH = 31,
	FROM_HEIGHT = 7,
	TO_WIDTH = 13,
	TO_HEIGHT = 5,
	IMAGES = 5,
	ROOM = 1 << 16,
	LANES = 64
};

#define GIB ((uint64_t)1 << 30)

static const uint64_t from_bytes = FROM_WIDTH * FROM_HEIGHT * RESIZE_CHANNELS,
		      to_bytes = TO_WIDTH * TO_HEIGHT * RESIZE_CHANNELS;
static struct weir_context *context;
static unsigned char *room; /* of lanes, too */
static uint64_t address;

static int open_room(void **state)
{
	void *host;
	int error = weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context);

	(void)state;
	if (!error)
		error = weir_alloc_host(context, ROOM, &address, &host);
	room = error ? NULL : host;
	return error;
}

static int close_room(void **state)
{
	(void)state;
	return weir_context_close(context);
}

static void run(const char *kernel, const struct test_beyond_args *args)
{
	assert_int_equal(weir_launch(context, kernel, 1, LANES, args, sizeof(*args)), 0);
	assert_int_equal(weir_sync(context), 0);
}

/* Where the parts of the room are: arguments, the input, what is made of it near and far. */
enum { ARGS = 0, INPUT = 1 << 12, NEAR = 1 << 14, FAR = 1 << 15 };

static void fill(uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		room[INPUT + i] = (unsigned char)(sample_scramble(i) >> 40);
}

/* A tile that begins within image @image and has parts of the next ones, to byte @to of the room. The input
 * has IMAGES from that one on. */
static void make_tile(uint64_t image, uint64_t skip, uint64_t bytes, uint64_t to)
{
	const struct resize_args images = { .from_width = FROM_WIDTH,
					    .from_height = FROM_HEIGHT,
					    .to_width = TO_WIDTH,
					    .to_height = TO_HEIGHT,
					    .bytes = (image + IMAGES) * to_bytes };

	memcpy(room + ARGS, &images, sizeof(images));
	run("test_beyond_tile", &(struct test_beyond_args){ .args = address + ARGS,
							    .at = image * to_bytes + skip,
							    .bytes = bytes,
							    .from = address + INPUT - image * from_bytes,
							    .to = address + to });
}

static void tiles_of_far_images(void **state)
{
	static const uint64_t skips[] = { 0, 1, 38, 39, 190 };
	const uint64_t far[] = { 5 * GIB / to_bytes, (UINT64_C(1) << 33) / TO_HEIGHT + 1,
				 GIB * GIB / from_bytes };
	enum { BYTES = 600 };

	(void)state;
	fill(IMAGES * from_bytes);
	for (unsigned i = 0; i < 5; i++) {
		memset(room + NEAR, 0, BYTES);
		make_tile(0, skips[i], BYTES, NEAR);
		assert_true(memcmp(room + NEAR, room + NEAR + 4, BYTES - 4) != 0);
		for (unsigned k = 0; k < 3; k++) {
			memset(room + FAR, 0, BYTES);
			make_tile(far[k], skips[i], BYTES, FAR);
			assert_memory_equal(room + FAR, room + NEAR, BYTES);
		}
	}
}

/* Which rows of the input a row of the output is made of. */
static void rows_of_far_images(void **state)
{
	const uint64_t far[] = { 5 * GIB / to_bytes, (UINT64_C(1) << 33) / TO_HEIGHT + 1 };
	uint64_t near[2], found[2];

	(void)state;
	for (uint64_t row = 0; row < TO_HEIGHT; row++) {
		make_tile(0, 0, 4, NEAR); /* for the arguments */
		run("test_beyond_rows",
		    &(struct test_beyond_args){ .args = address + ARGS, .at = row, .to = address + NEAR });
		memcpy(near, room + NEAR, sizeof(near));
		assert_true(near[1] < FROM_HEIGHT && near[0] <= near[1]);
		for (unsigned k = 0; k < 2; k++) {
			run("test_beyond_rows", &(struct test_beyond_args){ .args = address + ARGS,
									    .at = far[k] * TO_HEIGHT + row,
									    .to = address + FAR });
			memcpy(found, room + FAR, sizeof(found));
			assert_int_equal(found[0], far[k] * FROM_HEIGHT + near[0]);
			assert_int_equal(found[1], far[k] * FROM_HEIGHT + near[1]);
		}
	}
}

/* The last bytes of a tensor of 5 GiB, all of one of 64 bytes behind it, and the first ones of a third: each
 * from its own, and to its own. */
static void tensors_beyond_4_gib(void **state)
{
	enum { LAST = 32, MIDDLE = 64, FIRST = 48, ALL = LAST + MIDDLE + FIRST, APART = 256, TABLE = 1024 };
	const uint64_t end = 5 * GIB, place = address + INPUT;
	const struct checkpoint_tensor tensors[] = {
		{ .address = place + LAST - end, .begin = 0, .bytes = end },
		{ .address = place + APART, .begin = end, .bytes = MIDDLE },
		{ .address = place + 2 * APART, .begin = end + MIDDLE, .bytes = end },
	};
	const struct checkpoint_args data = { .tensors = address + TABLE,
					      .count = 3,
					      .bytes = 2 * end + MIDDLE };
	const struct test_beyond_args gather = {
		.args = address + ARGS, .at = end - LAST, .bytes = ALL, .to = address + NEAR
	};
	struct test_beyond_args scatter = gather;
	unsigned char right[ALL];

	(void)state;
	memcpy(room + ARGS, &data, sizeof(data));
	memcpy(room + TABLE, tensors, sizeof(tensors));
	fill(3 * APART);
	memcpy(right, room + INPUT, LAST);
	memcpy(right + LAST, room + INPUT + APART, MIDDLE);
	memcpy(right + LAST + MIDDLE, room + INPUT + 2 * APART, FIRST);
	memset(room + NEAR, 0, ALL);
	run("test_beyond_copy", &gather);
	assert_memory_equal(room + NEAR, right, ALL);
	memset(room + INPUT, 0, 3 * APART);
	scatter.scatter = 1;
	run("test_beyond_copy", &scatter);
	assert_memory_equal(room + INPUT, right, LAST);
	assert_memory_equal(room + INPUT + APART, right + LAST, MIDDLE);
	assert_memory_equal(room + INPUT + 2 * APART, right + LAST + MIDDLE, FIRST);
	for (uint64_t i = LAST; i < APART + LAST - FIRST; i++) /* and to nothing else */
		assert_int_equal(room[INPUT + i] | room[INPUT + 2 * APART + i + FIRST - LAST], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tiles_of_far_images),
		cmocka_unit_test(rows_of_far_images),
		cmocka_unit_test(tensors_beyond_4_gib),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("sample_beyond", tests, open_room, close_room);
}
