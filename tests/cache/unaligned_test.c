/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements that begin at any byte, against the bytes that the storages were filled with. */
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
#include "../rig/kernels.h"
#include "unaligned.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum {
	LANES = 40,
	BLOCK = 512,
	DISKS = 2,
	BYTES = 4096, /* of all storages */
	MOST = BYTES / 2,
	EACH = 21,
	TIMEOUT_US = 30000000,
	UNTOUCHED = 0x5a,
};

/** struct rig - bytes behind a cache of @line_bytes, striped over @disks */
struct rig {
	struct weir_context *context;
	struct weir_storage *storages[DISKS];
	struct weir_cache *cache;
	struct test_unaligned_args args;
	unsigned disks;
	uint64_t line_bytes;
	uint64_t got[MOST], lengths[MOST];
	unsigned char bytes[BYTES + 8]; /* as the array has them */
};

/* A stripe takes whole lines by turns. */
static void fill(struct rig *rig)
{
	static unsigned char part[BYTES];

	for (uint64_t i = 0; i < BYTES / 8; i++) {
		uint64_t word = test_word(5, i);

		memcpy(rig->bytes + i * 8, &word, 8);
	}
	for (unsigned d = 0; d < rig->disks; d++) {
		for (uint64_t at = 0; at < BYTES / rig->disks; at += rig->line_bytes)
			memcpy(part + at, rig->bytes + at * rig->disks + d * rig->line_bytes,
			       rig->line_bytes);
		must(weir_storage_write(rig->storages[d], 0, part, BYTES / rig->disks));
	}
}

static void open_rig(struct rig *rig, const char *keys, uint32_t width, unsigned disks, uint64_t line_bytes,
		     uint64_t lines)
{
	char uri[128];

	rig->disks = disks;
	rig->line_bytes = line_bytes;
	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 2, .wave_lanes = width),
			       &rig->context));
	snprintf(uri, sizeof(uri), "virt:%u?block=%u%s", BYTES / disks, BLOCK, keys);
	for (unsigned d = 0; d < disks; d++)
		must(test_storage_open(rig->context, uri,
				       WEIR_OPTIONS(storage, .queues = 2, .depth = 16,
						    .timeout_us = test_patient_us(TIMEOUT_US)),
				       &rig->storages[d]));
	must(weir_cache_create(rig->context, WEIR_OPTIONS(cache, .lines = lines, .line_bytes = line_bytes),
			       &rig->cache));
	fill(rig);
	must(weir_alloc(rig->context, sizeof(rig->got), &rig->args.to));
	must(weir_alloc(rig->context, sizeof(rig->lengths), &rig->args.lengths));
}

static void close_rig(struct rig *rig)
{
	must(weir_cache_destroy(rig->cache));
	for (unsigned d = 0; d < rig->disks; d++)
		weir_storage_close(rig->storages[d]);
	weir_context_close(rig->context);
}

static void open_array(struct rig *rig, uint32_t width, uint64_t first_byte)
{
	must(weir_unaligned_open(rig->cache, rig->storages, rig->disks,
				 WEIR_OPTIONS(array, .element_bytes = width, .first_byte = first_byte,
					      .stripe_bytes = rig->line_bytes),
				 &rig->args.array));
	rig->args.width = width;
	rig->args.first = 0;
	rig->args.end = rig->args.array.array.count;
	rig->args.each = EACH;
	assert_int_equal(rig->args.end, (BYTES - first_byte) / width);
}

/* Return: of weir_sync(). */
static int run(struct rig *rig, enum unaligned_kind kind)
{
	int code;

	rig->args.kind = kind;
	memset(rig->got, kind == UNALIGNED_READ ? 0 : UNTOUCHED, sizeof(rig->got));
	memset(rig->lengths, UNTOUCHED, sizeof(rig->lengths));
	must(weir_copy_to_device(rig->context, rig->args.to, rig->got, sizeof(rig->got)));
	must(weir_copy_to_device(rig->context, rig->args.lengths, rig->lengths, sizeof(rig->lengths)));
	must(weir_launch(rig->context, "test_unaligned", 1, test_lanes(LANES), &rig->args,
			 sizeof(rig->args)));
	code = weir_sync(rig->context);
	must(weir_copy_from_device(rig->context, rig->got, rig->args.to, sizeof(rig->got)));
	must(weir_copy_from_device(rig->context, rig->lengths, rig->args.lengths, sizeof(rig->lengths)));
	return code;
}

static uint64_t byte_of(const struct rig *rig, uint64_t index)
{
	return rig->args.array.array.first_byte + index * rig->args.width;
}

static uint64_t expected(const struct rig *rig, uint64_t index)
{
	uint64_t value = 0;

	memcpy(&value, rig->bytes + byte_of(rig, index), rig->args.width);
	return value;
}

/* Does element @index lie in two lines? */
static int is_split(const struct rig *rig, uint64_t index)
{
	uint64_t byte = byte_of(rig, index);

	return byte / rig->line_bytes != (byte + rig->args.width - 1) / rig->line_bytes;
}

static void check(const struct rig *rig)
{
	for (uint64_t i = rig->args.first; i < rig->args.end; i++)
		if (rig->got[i] != expected(rig, i))
			fail_msg("kind %u, elements of %u bytes from byte %llu on, lines of %llu: element "
				 "%llu is %#llx instead of %#llx",
				 rig->args.kind, rig->args.width,
				 (unsigned long long)rig->args.array.array.first_byte,
				 (unsigned long long)rig->line_bytes, (unsigned long long)i,
				 (unsigned long long)rig->got[i], (unsigned long long)expected(rig, i));
}

/* Each run has the length that weir_unaligned_run() promises: by counts, not by what it costs. */
static void check_lengths(const struct rig *rig)
{
	uint32_t width = rig->args.width;

	for (uint64_t i = 0, next; i < rig->args.end; i = next) {
		uint64_t in_line = rig->line_bytes - byte_of(rig, i) % rig->line_bytes;
		uint64_t words = 64 - byte_of(rig, i) % 8, left = EACH - i % EACH;
		uint64_t most = (words < in_line ? words : in_line) / width;

		left = left < rig->args.end - i ? left : rig->args.end - i;
		most = most > 8 ? 8 : most ? most : 1;
		assert_int_equal(rig->lengths[i], most < left ? most : left);
		next = i + rig->lengths[i];
	}
}

static void check_all_skews(struct rig *rig, uint32_t width)
{
	for (uint64_t skew = 0; skew < 16; skew++) {
		open_array(rig, width, skew);
		for (enum unaligned_kind kind = UNALIGNED_GET; kind < UNALIGNED_KINDS; kind++) {
			if (kind == UNALIGNED_TRY || (kind == UNALIGNED_RUN && width == 2))
				continue;
			must(run(rig, kind));
			check(rig);
			if (kind == UNALIGNED_RUN)
				check_lengths(rig);
		}
	}
}

/* A cache of one set, whose lines change under every lane, and one that holds all; lines of one block by
 * turns from two storages, and of two blocks. */
static void test_every_skew_width_and_line(void **state)
{
	static struct rig rig;

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (unsigned disks = 1; disks <= DISKS; disks++)
			for (uint64_t lines = 4; lines <= 32; lines *= 8) {
				open_rig(&rig, "", test_width(w), disks, disks == 1 ? 2 * BLOCK : BLOCK,
					 lines);
				for (uint32_t width = 2; width <= 8; width *= 2)
					check_all_skews(&rig, width);
				close_rig(&rig);
			}
}

/* Elements of any size as bytes; those of 3 bytes are not found at multiples of anything. */
static void test_elements_of_any_size_are_copied(void **state)
{
	static struct rig rig;

	(void)state;
	open_rig(&rig, "", test_width(0), 2, BLOCK, 8);
	for (uint32_t width = 1; width <= 8; width++) {
		if (BYTES / width > MOST)
			continue;
		open_array(&rig, width, 17);
		must(run(&rig, UNALIGNED_READ));
		check(&rig);
	}
	close_rig(&rig);
}

/* The first element in two lines of an array of 8-byte elements from byte @skew on. */
static uint64_t first_split(struct rig *rig, uint64_t skew)
{
	uint64_t i = 0;

	open_array(rig, 8, skew);
	while (!is_split(rig, i))
		i++;
	return i;
}

static void read_one(struct rig *rig, enum unaligned_kind kind, uint64_t index)
{
	rig->args.first = index;
	rig->args.end = index + 1;
	must(run(rig, kind));
}

/* What was only tried comes once both lines of it are in the cache, and never by halves. */
static void test_a_tried_run_has_both_lines_or_nothing(void **state)
{
	static struct rig rig;

	(void)state;
	for (uint64_t skew = 1; skew < 8; skew++)
		for (uint64_t there = 0; there < 2; there++) {
			uint64_t split;

			open_rig(&rig, "", test_width(0), 1, BLOCK, 32);
			split = first_split(&rig, skew);
			read_one(&rig, UNALIGNED_TRY, split);
			assert_int_equal(rig.lengths[split], 0);
			read_one(&rig, UNALIGNED_GET, there ? split + 1 : split - 1); /* one line of it */
			read_one(&rig, UNALIGNED_TRY, split);
			assert_int_equal(rig.lengths[split], 0);
			read_one(&rig, UNALIGNED_GET, there ? split - 1 : split + 1); /* the other */
			read_one(&rig, UNALIGNED_TRY, split);
			assert_int_equal(rig.lengths[split], 1);
			check(&rig);
			close_rig(&rig);
		}
}

/* Of an element in two lines one of which cannot be read nothing is given, whichever it is. */
static void test_a_line_that_fails(void **state)
{
	static struct rig rig;
	char keys[64];

	(void)state;
	for (unsigned bad = 0; bad < 2; bad++)
		for (enum unaligned_kind kind = UNALIGNED_GET; kind <= UNALIGNED_RUN; kind++) {
			uint64_t split;

			snprintf(keys, sizeof(keys), "&fault=status:code=0x281:op=read:lba=%u:dnr=1", bad);
			open_rig(&rig, keys, test_width(0), 1, BLOCK, 32);
			split = first_split(&rig, 3);
			rig.args.first = split;
			rig.args.end = split + 1;
			assert_int_equal(run(&rig, kind), -EIO);
			if (!strstr(weir_last_error(), bad ? "block 1 " : "block 0 "))
				fail_msg("%s", weir_last_error());
			if (kind == UNALIGNED_GET)
				assert_int_equal(rig.got[split], 0);
			else
				assert_int_equal(rig.lengths[split], 0);
			close_rig(&rig);
		}
}

static void refused_launch(struct rig *rig, enum unaligned_kind kind, const char *words)
{
	assert_int_equal(run(rig, kind), -EIO);
	if (!strstr(weir_last_error(), words))
		fail_msg("\"%s\" is not in: %s", words, weir_last_error());
}

static void test_an_element_that_is_none(void **state)
{
	static struct rig rig;
	uint64_t count;

	(void)state;
	for (enum unaligned_kind kind = UNALIGNED_GET; kind <= UNALIGNED_TRY; kind++) {
		open_rig(&rig, "", test_width(0), 1, BLOCK, 32);
		open_array(&rig, 8, 17);
		count = rig.args.end;
		rig.args.first = count - (kind == UNALIGNED_GET ? 0 : 1);
		rig.args.end = count + 1;
		refused_launch(&rig, kind, "509"); /* (4096 - 17) / 8 */
		close_rig(&rig);
		open_rig(&rig, "", test_width(0), 1, BLOCK, 32);
		open_array(&rig, 2, 17);
		rig.args.width = 8;
		rig.args.end = 1;
		refused_launch(&rig, kind, "8 bytes on an array whose elements have 2");
		close_rig(&rig);
	}
}

static void refused_open(int code, int expect, const char *words)
{
	assert_int_equal(code, expect);
	if (!strstr(weir_last_error(), words))
		fail_msg("\"%s\" is not in: %s", words, weir_last_error());
}

static void test_what_is_refused(void **state)
{
	static struct rig rig;
	struct weir_array array;
	struct weir_writer writer;
	const struct weir_array_options odd = { .size = sizeof(odd), .element_bytes = 4, .first_byte = 17 },
					none = { .size = sizeof(none), .first_byte = 17 },
					many = { .size = sizeof(many),
						 .element_bytes = 8,
						 .first_byte = 17,
						 .count = BYTES / 8 };

	(void)state;
	open_rig(&rig, "", test_width(0), 1, BLOCK, 8);
	refused_open(weir_array_open(rig.cache, rig.storages, 1, &odd, &array), -EINVAL,
		     "array: first_byte 17 is not a multiple of 4, which its elements need; "
		     "weir_unaligned_open() reads");
	refused_open(weir_writer_open(rig.cache, rig.storages, 1, &odd, &writer), -EINVAL,
		     "writer: first_byte 17 is not a multiple of 4, which its elements need; lanes write "
		     "aligned");
	refused_open(weir_unaligned_open(rig.cache, rig.storages, 1, &none, &rig.args.array), -EINVAL,
		     "element_bytes is 0");
	refused_open(weir_unaligned_open(rig.cache, rig.storages, 1, &many, &rig.args.array), -ERANGE,
		     "from byte 17 on");
	close_rig(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_skew_width_and_line),
		cmocka_unit_test(test_elements_of_any_size_are_copied),
		cmocka_unit_test(test_a_tried_run_has_both_lines_or_nothing),
		cmocka_unit_test(test_a_line_that_fails),
		cmocka_unit_test(test_an_element_that_is_none),
		cmocka_unit_test(test_what_is_refused),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("unaligned", tests, NULL, NULL);
}
