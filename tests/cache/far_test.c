/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far_test.c: every way in which a lane comes to an element, on both sides of 4 GiB, of 2^32 elements, of
 * 2^32 blocks and of 2^32 lines. Words hold their addresses on their own storage, until they are written to.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/transfer.h>
#include <weir/weir.h>

#include "../rig/context.h"
#include "far.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum { LINE = 4096, STRIPE = 65536, MEMBERS = 3, TIMEOUT_US = 30000000 };

static const uint64_t places[] = { (uint64_t)1 << 32, (uint64_t)1 << 35, (uint64_t)1 << 41, (uint64_t)1 << 44,
				   (uint64_t)90 << 40 };

/** struct rig - a stripe of @disks storages, or one, and one more behind them to copy to */
struct rig {
	unsigned disks;
	struct weir_context *context;
	struct weir_storage *storages[MEMBERS + 1];
	struct weir_cache *cache;
	struct weir_writer target;
	struct test_far_args args;
};

static void open_rig(struct rig *rig, unsigned disks)
{
	const struct weir_array_options
		words = { .size = sizeof(words), .element_bytes = 8, .stripe_bytes = STRIPE },
		halves = { .size = sizeof(halves), .element_bytes = 4, .stripe_bytes = STRIPE },
		odd = { .size = sizeof(odd), .element_bytes = 8, .first_byte = 3, .stripe_bytes = STRIPE };

	memset(rig, 0, sizeof(*rig));
	rig->disks = disks;
	must(weir_context_open(test_context_name(),
			       WEIR_OPTIONS(context, .workers = 2, .service_waves = test_service(),
					    .wave_lanes = test_width(0)),
			       &rig->context));
	for (unsigned i = 0; i <= disks; i++)
		must(test_storage_open(rig->context, "virt:100T?content=address&block=512",
				       WEIR_OPTIONS(storage, .queues = 2, .depth = 16,
						    .timeout_us = test_patient_us(TIMEOUT_US)),
				       &rig->storages[i]));
	must(weir_cache_create(rig->context, WEIR_OPTIONS(cache, .lines = 64, .line_bytes = LINE),
			       &rig->cache));
	must(weir_array_open(rig->cache, rig->storages, disks, &words, &rig->args.array));
	must(weir_array_open(rig->cache, rig->storages, disks, &halves, &rig->args.narrow));
	must(weir_unaligned_open(rig->cache, rig->storages, disks, &odd, &rig->args.odd));
	must(weir_writer_open(rig->cache, rig->storages, disks, &words, &rig->args.writer));
	must(weir_writer_open(rig->cache, &rig->storages[disks], 1, &words, &rig->target));
	must(weir_alloc(rig->context, LINE, &rig->args.room));
	must(weir_alloc(rig->context, sizeof(uint64_t), &rig->args.result));
	must(weir_alloc(rig->context, sizeof(struct weir_transfer), &rig->args.transfer));
}

static void close_rig(struct rig *rig)
{
	must(weir_cache_destroy(rig->cache));
	for (unsigned i = 0; i <= rig->disks; i++)
		weir_storage_close(rig->storages[i]);
	must(weir_context_close(rig->context));
}

/* Where byte @at of the array lies on its own storage. */
static uint64_t own(const struct rig *rig, uint64_t at)
{
	return rig->disks == 1 ? at : at / STRIPE / rig->disks * STRIPE + at % STRIPE;
}

static struct weir_storage *member(const struct rig *rig, uint64_t at)
{
	return rig->storages[rig->disks == 1 ? 0 : at / STRIPE % rig->disks];
}

/* What the lane gives, whose lines are not in the cache before. */
static uint64_t access_by(struct rig *rig, const char *kernel, uint32_t kind, uint64_t index)
{
	struct weir_array *array = &rig->args.array;
	uint64_t result = ~(uint64_t)0;

	rig->args.kind = kind;
	rig->args.index = index;
	must(weir_array_invalidate(rig->cache, array, 0, array->count));
	must(weir_copy_to_device(rig->context, rig->args.result, &result, sizeof(result)));
	must(weir_launch(rig->context, kernel, 1, 1, &rig->args, sizeof(rig->args)));
	must(weir_sync(rig->context));
	must(weir_copy_from_device(rig->context, &result, rig->args.result, sizeof(result)));
	return result;
}

static uint64_t expected(const struct rig *rig, uint32_t kind, uint64_t at)
{
	if (kind == FAR_GET_U32)
		return (uint32_t)own(rig, at);
	if (kind >= FAR_UNALIGNED && kind <= FAR_UNALIGNED_SPAN)
		return own(rig, at) >> 24 | own(rig, at + 8) << 40;
	return own(rig, at);
}

static void test_far_elements_are_read(void **state)
{
	(void)state;
	for (unsigned disks = 1; disks <= MEMBERS; disks += MEMBERS - 1) {
		struct rig rig;

		open_rig(&rig, disks);
		for (uint32_t kind = 0; kind < FAR_READS; kind++)
			for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
				for (int step = -1; step <= 1; step++) {
					uint64_t index = places[i] / 8 + (uint64_t)step;
					uint64_t found = access_by(&rig, "far_read", kind, index);

					if (found != expected(&rig, kind, index * 8))
						fail_msg("kind %u: element %#llx of %u storages is %#llx",
							 kind, (unsigned long long)index, disks,
							 (unsigned long long)found);
				}
		close_rig(&rig);
	}
}

/* The storage has @value at byte @at of it, and behind that what it had. */
static void check_word(struct weir_storage *storage, uint64_t at, uint64_t value, uint64_t next,
		       uint32_t kind)
{
	uint64_t words[64], word = at % sizeof(words) / 8;

	must(weir_storage_read(storage, at - at % sizeof(words), words, sizeof(words)));
	if (words[word] != value || words[word + 1] != next)
		fail_msg("kind %u: the words at byte %#llx are %#llx and %#llx", kind, (unsigned long long)at,
			 (unsigned long long)words[word], (unsigned long long)words[word + 1]);
}

static void test_far_elements_are_written(void **state)
{
	(void)state;
	for (unsigned disks = 1; disks <= MEMBERS; disks += MEMBERS - 1) {
		struct rig rig;

		open_rig(&rig, disks);
		for (uint32_t kind = FAR_READS; kind < FAR_LINES; kind++)
			for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
				for (int step = -1; step <= 1; step++) {
					/* each in a block of its own */
					uint64_t at =
						places[i] + (uint64_t)step * LINE + (kind - FAR_READS) * 512;

					rig.args.value = ~at;
					assert_int_equal(access_by(&rig, "far_write", kind, at / 8), WEIR_OK);
					check_word(member(&rig, at), own(&rig, at), ~at, own(&rig, at) + 8,
						   kind);
				}
		rig.args.writer = rig.target;
		for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
			uint64_t at = places[i] + 8 * LINE, from = own(&rig, at - 3 * LINE);

			assert_int_equal(access_by(&rig, "far_write", FAR_LINES, at / 8), WEIR_OK);
			check_word(rig.storages[disks], at, from, from + 8, FAR_LINES);
		}
		close_rig(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_far_elements_are_read),
		cmocka_unit_test(test_far_elements_are_written),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("far", tests, NULL, NULL);
}
