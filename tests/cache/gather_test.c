/* SPDX-License-Identifier: BSD-3-Clause */
/* Cursors, lists and strides against the numbers that the storage was filled with. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../rig/context.h"
#include "gather.h"
#include "../rig/kernels.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum { LANES = 70, BLOCKS = 2, COUNT = 23, BYTES = 65536, FIRST_BYTE = 16, TIMEOUT_US = 30000000 };

/** struct rig - a dataset behind a cache, and lists for all lanes */
struct rig {
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_cache *cache;
	struct test_gather_args args;
	uint64_t list[BLOCKS * LANES * COUNT], got[BLOCKS * LANES * COUNT];
	uint64_t words[BYTES / 8];
};

static void open_rig(struct rig *rig, uint32_t width, uint64_t lines)
{
	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 2, .wave_lanes = width),
			       &rig->context));
	must(test_storage_open(
		rig->context, "virt:64K?block=512",
		WEIR_OPTIONS(storage, .queues = 2, .depth = 16, .timeout_us = test_patient_us(TIMEOUT_US)),
		&rig->storage));
	must(weir_cache_create(rig->context, WEIR_OPTIONS(cache, .lines = lines, .line_bytes = 512),
			       &rig->cache));
	for (uint64_t i = 0; i < BYTES / 8; i++)
		rig->words[i] = test_word(1, i);
	must(weir_storage_write(rig->storage, 0, rig->words, BYTES));
	must(weir_alloc(rig->context, sizeof(rig->list), &rig->args.list));
	must(weir_alloc(rig->context, sizeof(rig->got), &rig->args.to));
	rig->args.count = COUNT;
}

static void close_rig(struct rig *rig)
{
	weir_cache_destroy(rig->cache);
	weir_storage_close(rig->storage);
	weir_context_close(rig->context);
}

static uint64_t expected(const struct rig *rig, uint64_t index)
{
	uint64_t byte = FIRST_BYTE + index * rig->args.array.element_bytes, value;

	if (index >= rig->args.array.count)
		return 0;
	value = rig->words[byte / 8] >> byte % 8 * 8;
	return rig->args.array.element_bytes == 8 ? value : (uint32_t)value;
}

/* Steps of a cursor: forwards and back within lines, over their ends, and far away. */
static uint64_t next_index(uint64_t random, uint64_t index, uint64_t count)
{
	uint64_t step = random >> 8;

	switch (random % 4) {
	case 0: return step % count;
	case 1: return (index + count - step % 5) % count;
	default: return (index + step % 9) % count;
	}
}

static void run(struct rig *rig, uint32_t element, uint32_t kind, uint64_t salt)
{
	uint64_t lanes = BLOCKS * test_lanes(LANES), index = 0;

	must(weir_array_open(rig->cache, &rig->storage, 1,
			     WEIR_OPTIONS(array, .element_bytes = element, .first_byte = FIRST_BYTE),
			     &rig->args.array));
	rig->args.kind = kind;
	rig->args.stride = 1 + salt % 100;
	for (uint64_t i = 0; i < lanes * COUNT; i++) {
		uint64_t count = rig->args.array.count;

		index = next_index(test_word(salt, i), index, count);
		if (kind == GATHER_STRIDED)
			index = i % COUNT ? rig->list[i - 1] + rig->args.stride
					  : index % (count - COUNT * rig->args.stride);
		rig->list[i] = index;
	}
	memset(rig->got, 0xff, sizeof(rig->got));
	must(weir_copy_to_device(rig->context, rig->args.list, rig->list, sizeof(rig->list)));
	must(weir_copy_to_device(rig->context, rig->args.to, rig->got, sizeof(rig->got)));
	must(weir_launch(rig->context, "test_gather", BLOCKS, test_lanes(LANES), &rig->args,
			 sizeof(rig->args)));
}

static void check(struct rig *rig)
{
	uint64_t lanes = BLOCKS * test_lanes(LANES);

	must(weir_copy_from_device(rig->context, rig->got, rig->args.to, sizeof(rig->got)));
	for (uint64_t i = 0; i < lanes * COUNT; i++)
		if (rig->got[i] != expected(rig, rig->list[i]))
			fail_msg("kind %u, elements of %u bytes: element %llu is %#llx instead of %#llx",
				 rig->args.kind, rig->args.array.element_bytes,
				 (unsigned long long)rig->list[i], (unsigned long long)rig->got[i],
				 (unsigned long long)expected(rig, rig->list[i]));
}

/* A cache of one set, whose lines change under every cursor, and one that holds all. */
static void test_every_kind_cache_and_width(void **state)
{
	static struct rig rig;

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint64_t lines = 4; lines <= 256; lines *= 8) {
			open_rig(&rig, test_width(w), lines);
			for (uint32_t kind = GATHER_CURSOR; kind <= GATHER_STRIDED; kind++)
				for (uint32_t element = 4; element <= 8; element *= 2) {
					run(&rig, element, kind, lines + kind * 7 + w);
					must(weir_sync(rig.context));
					check(&rig);
				}
			close_rig(&rig);
		}
}

static void test_an_index_that_is_none(void **state)
{
	static struct rig rig;

	(void)state;
	for (uint32_t kind = GATHER_CURSOR; kind <= GATHER_LIST; kind++) {
		open_rig(&rig, test_width(0), 64);
		run(&rig, 8, kind, 3);
		must(weir_sync(rig.context));
		rig.list[31] = rig.args.array.count + 5;
		must(weir_copy_to_device(rig.context, rig.args.list, rig.list, sizeof(rig.list)));
		must(weir_launch(rig.context, "test_gather", BLOCKS, test_lanes(LANES), &rig.args,
				 sizeof(rig.args)));
		assert_int_equal(weir_sync(rig.context), -EIO);
		if (!strstr(weir_last_error(), "8195"))
			fail_msg("%s", weir_last_error());
		check(&rig); /* 0 there, and nothing lost elsewhere */
		close_rig(&rig);
	}
}

/* An array that ends in the middle of a line: a cursor that stands in it goes no further than the array. */
static void test_a_cursor_ends_where_its_array_does(void **state)
{
	static struct rig rig;

	(void)state;
	for (uint32_t element = 4; element <= 8; element *= 2) {
		open_rig(&rig, test_width(0), 64);
		must(weir_array_open(
			rig.cache, &rig.storage, 1,
			WEIR_OPTIONS(array, .element_bytes = element, .first_byte = FIRST_BYTE, .count = 100),
			&rig.args.array));
		rig.args.kind = GATHER_CURSOR;
		for (uint64_t i = 0; i < BLOCKS * test_lanes(LANES) * COUNT; i++)
			rig.list[i] = i % 3 == 1 ? 100 + i % 2 : 99 - i % 5;
		must(weir_copy_to_device(rig.context, rig.args.list, rig.list, sizeof(rig.list)));
		must(weir_launch(rig.context, "test_gather", BLOCKS, test_lanes(LANES), &rig.args,
				 sizeof(rig.args)));
		assert_int_equal(weir_sync(rig.context), -EIO);
		if (!strstr(weir_last_error(), " 100"))
			fail_msg("%s", weir_last_error());
		check(&rig); /* 0 behind the end */
		close_rig(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_cache_and_width),
		cmocka_unit_test(test_an_index_that_is_none),
		cmocka_unit_test(test_a_cursor_ends_where_its_array_does),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("gather", tests, NULL, NULL);
}
