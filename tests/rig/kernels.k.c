/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of the tests: written once, for every port. */
#include <weir/array.h>
#include <weir/wait.h>

#include "kernels.h"
#include "verdict.h"

enum { VIEW_TRIES = 4 };

WEIR_KERNEL(test_grid, struct test_grid_args)
{
	u64 thread = weir_thread();
	WEIR_GLOBAL struct test_location *location;

	if (!expect(args->verdict, thread, thread < args->count, 1))
		return;
	location = weir_at(args->locations, struct test_location, thread);
	if (weir_add_u64_relaxed_dev(&location->visits, 1) != 0)
		return;
	location->threads = weir_threads();
	location->wave = weir_wave();
	location->lane = weir_lane();
	location->lanes = weir_lanes();
}

WEIR_KERNEL(test_count, struct test_count_args)
{
	WEIR_GLOBAL struct test_verdict *verdict = verdict_at(args->verdict);
	u64 per_launch = weir_threads() * args->adds;

	for (u64 i = 0; i < args->adds; i++) {
		u64 before = weir_add_u64_relaxed_dev(&verdict->sum, 1);

		expect(args->verdict, args->launch, before / per_launch, args->launch);
		for (u64 j = 0; j < args->relaxes; j++)
			weir_relax(0);
	}
	for (u64 i = 0; i < args->adds; i++) {
		u64 seen = weir_load_u64_relaxed_dev(&verdict->good), found;

		while ((found = weir_cas_u64_acq_rel_dev(&verdict->good, seen, seen + 1)) != seen)
			seen = found;
	}
}

/* Request @slot of this lane in one round. */
WEIR_FN u64 request_lba(WEIR_GLOBAL struct test_blocks_args *args, u32 slot)
{
	return args->first_lba + (weir_thread() * args->outstanding + slot) * args->blocks;
}

WEIR_FN weir_addr request_buffer(WEIR_GLOBAL struct test_blocks_args *args, u32 slot)
{
	return args->buffers + (weir_thread() * args->outstanding + slot) * args->span + args->offset;
}

WEIR_FN WEIR_GLOBAL struct weir_event *request_event(WEIR_GLOBAL struct test_blocks_args *args, u32 slot)
{
	return weir_at(args->events, struct weir_event, weir_thread() * args->outstanding + slot);
}

WEIR_FN void fill_request(WEIR_GLOBAL struct test_blocks_args *args, u32 block_log2, u32 slot, u64 generation)
{
	u32 words = (u32)1 << (block_log2 - 2);

	for (u32 i = 0; i < args->blocks * words; i++)
		*weir_at(request_buffer(args, slot), u32, i) =
			generation
				? test_block_word(request_lba(args, slot) + i / words, generation, i % words)
				: 0;
}

WEIR_FN void compare_request(WEIR_GLOBAL struct test_blocks_args *args, u32 block_log2, u32 slot,
			     u64 generation)
{
	u32 words = (u32)1 << (block_log2 - 2);

	for (u32 i = 0; i < args->blocks * words; i++) {
		u64 lba = request_lba(args, slot) + i / words;

		if (!expect(args->verdict, lba, *weir_at(request_buffer(args, slot), u32, i),
			    test_block_word(lba, generation, i % words)))
			return;
	}
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
}

/* Start all of a lane's requests, then wait for each, the last one first. */
WEIR_FN void do_requests(WEIR_GLOBAL struct test_blocks_args *args, WEIR_GLOBAL struct weir_disk *disk,
			 u32 opcode)
{
	for (u32 i = 0; i < args->outstanding; i++)
		expect(args->verdict, opcode,
		       weir_block_async(disk, opcode, request_lba(args, i), args->blocks,
					request_buffer(args, i), request_event(args, i)),
		       WEIR_OK);
	for (u32 i = args->outstanding; i > 0; i--) {
		expect(args->verdict, 1000 + opcode, weir_wait(disk, request_event(args, i - 1), 0), WEIR_OK);
		expect(args->verdict, 2000 + opcode,
		       weir_event_path(weir_event_test(request_event(args, i - 1))), args->path);
	}
}

WEIR_KERNEL(test_blocks, struct test_blocks_args)
{
	WEIR_GLOBAL struct weir_disk *disk = &args->disk[weir_thread() % args->disk_count];

	for (u32 round = 0; round < args->rounds; round++) {
		u64 generation = (u64)round * 2 + 1 + weir_thread() % args->disk_count;

		for (u32 i = 0; i < args->outstanding; i++)
			fill_request(args, disk->block_log2, i, generation);
		do_requests(args, disk, NVME_OPCODE_WRITE);
		for (u32 i = 0; i < args->outstanding; i++)
			fill_request(args, disk->block_log2, i, 0);
		if (args->flush) {
			expect(args->verdict, 3000, weir_flush_async(disk, request_event(args, 0)), WEIR_OK);
			expect(args->verdict, 3001, weir_wait(disk, request_event(args, 0), 0), WEIR_OK);
		}
		do_requests(args, disk, NVME_OPCODE_READ);
		for (u32 i = 0; i < args->outstanding; i++)
			compare_request(args, disk->block_log2, i, generation);
	}
}

WEIR_KERNEL(test_request, struct test_request_args)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->event, struct weir_event, 0);
	WEIR_GLOBAL u32 *statuses = weir_at(args->statuses, u32, 0);

	if (weir_thread() != 0)
		return;
	statuses[0] =
		weir_block_async(&args->disk, args->opcode, args->lba, args->blocks, args->buffer, event);
	statuses[1] = statuses[0];
	if (statuses[0] != WEIR_OK)
		return;
	statuses[0] = weir_wait(&args->disk, event, args->timeout_us);
	statuses[1] = weir_wait(&args->disk, event, 0);
}

/* Each lane has its request refused, and asks its event in every way there is. */
WEIR_KERNEL(test_refused, struct test_request_args)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->event, struct weir_event, weir_thread());
	WEIR_GLOBAL u32 *reported = weir_at(args->statuses, u32, weir_thread() * TEST_REPORTED);
	WEIR_GLOBAL struct weir_disk *disk = &args->disk;

	if (weir_block_async(disk, args->opcode, args->lba, args->blocks, args->buffer, event) == WEIR_OK)
		return;
	reported[TEST_REPORTED_WAIT] = weir_wait(disk, event, args->timeout_us);
	reported[TEST_REPORTED_ALL] = weir_wait_all(disk, event, 1, args->timeout_us);
	reported[TEST_REPORTED_ANY] = weir_wait_any(disk, event, 1, args->timeout_us).status;
	reported[TEST_REPORTED_TEST] = weir_event_status(weir_test(disk, event));
	reported[TEST_REPORTED_BLOCK] = weir_block_wait(disk, args->opcode, args->lba, args->blocks,
							args->buffer, event, args->timeout_us);
}

WEIR_ARRAY_STRUCT(record, struct test_record)

WEIR_FN u64 expected_bits(u64 seed, u64 byte, u32 bytes)
{
	u64 word = test_word(seed, byte / 8) >> (byte % 8 * 8);

	return bytes == 8 ? word : word & (((u64)1 << (bytes * 8)) - 1);
}

WEIR_FN void check_wide(WEIR_GLOBAL struct weir_array *array, weir_addr verdict, u64 seed, u64 index)
{
	u64 word = (array->first_byte + index * array->element_bytes) / 8;

	if (array->element_bytes == 16) {
		struct weir_u128 got = weir_array_get_u128(array, index);

		expect(verdict, index, got.low, test_word(seed, word));
		expect(verdict, index, got.high, test_word(seed, word + 1));
	} else {
		struct test_record got = weir_array_get_record(array, index);

		expect(verdict, index, got.a, test_word(seed, word));
		expect(verdict, index, got.b, test_word(seed, word + 1));
		expect(verdict, index, got.c, test_word(seed, word + 2));
	}
}

/* Four elements at once, near and far; the last one is asked for twice. */
WEIR_FN void check_four(WEIR_GLOBAL struct weir_array *array, weir_addr verdict, u64 seed, u64 index)
{
	struct weir_four at, got;

	at.value[0] = index;
	at.value[1] = (index + 1) % array->count;
	at.value[2] = (index * 7 + 1000) % array->count;
	at.value[3] = at.value[2];
	got = weir_array_get_four_u64(array, at);
	for (u32 k = 0; k < 4; k++)
		expect(verdict, at.value[k], got.value[k],
		       expected_bits(seed, array->first_byte + at.value[k] * 8, 8));
}

WEIR_FN void check_element(WEIR_GLOBAL struct weir_array *array, weir_addr verdict, u64 seed, u64 index)
{
	u64 expected, found;

	if (array->element_bytes > 8) {
		check_wide(array, verdict, seed, index);
		return;
	}
	if (array->element_bytes == 8 && index % 3 == 0)
		check_four(array, verdict, seed, index);
	expected =
		expected_bits(seed, array->first_byte + index * array->element_bytes, array->element_bytes);
	if (array->element_bytes == 1)
		found = weir_array_get_u8(array, index);
	else if (array->element_bytes == 2)
		found = weir_array_get_u16(array, index);
	else if (array->element_bytes == 4)
		found = weir_array_get_u32(array, index);
	else
		found = weir_array_get_u64(array, index);
	expect(verdict, index, found, expected);
}

WEIR_KERNEL(test_array, struct test_array_args)
{
	for (u64 i = 0; i < args->reads; i++) {
		u64 step = i * weir_threads() + weir_thread();
		u32 which = (u32)((i + weir_thread()) % args->array_count);
		u64 at = args->kind == TEST_READ_RANDOM ? test_mix(step + args->salt) : step;

		check_element(&args->array[which], args->verdict, args->seed[which],
			      at % args->array[which].count);
		weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
	}
}

WEIR_FN void check_u32(WEIR_GLOBAL struct test_array_args *args, u64 index)
{
	WEIR_GLOBAL struct weir_array *array = &args->array[0];

	expect(args->verdict, index, weir_array_get_u32(array, index),
	       expected_bits(args->seed[0], array->first_byte + index * 4, 4));
}

/* Lanes of a wave part, and read at two places what a compiler may have made one function of. */
WEIR_KERNEL(test_parted, struct test_array_args)
{
	for (u64 i = 0; i < args->reads; i++) {
		u64 at = test_mix(i * weir_threads() + weir_thread() + args->salt),
		    index = at % args->array[0].count;

		if (at >> 63)
			check_u32(args, index);
		else
			check_u32(args, args->array[0].count - 1 - index);
		weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
	}
}

/* What a view at @index adds up to, in *sum. Return: elements, 0 if it did not hold. */
WEIR_FN u64 sum_view(WEIR_GLOBAL struct weir_array *array, u64 index, u64 end, u64 *sum)
{
	struct weir_view view = weir_array_view(array, index);
	u64 count = view.count < end - index ? view.count : end - index;
	u64 part = 0;

	for (u64 i = 0; i < count; i++)
		part += weir_view_u64(view, i);
	if (!weir_view_valid(view))
		return 0;
	*sum += part;
	return count;
}

/*
 * Each lane of @wave has a row of TEST_ROW words in view, from @first on, and all of them compare each.
 * Return: those whose rows were there to the end.
 */
WEIR_FN u64 compare_rows(u64 wave, WEIR_GLOBAL struct test_array_args *args, struct weir_view_u64 view,
			 u64 first)
{
	u64 seen = 0, wrong = 0, valid;

	for (u64 left = weir_ballot(wave, view.own.count >= TEST_ROW); left; left &= left - 1) {
		u32 lane = weir_lowest_bit(left);
		u64 word = weir_shuffle_u64(wave, first, lane) + weir_lane() % TEST_ROW;
		u64 value = weir_view_u64_of(wave, view, lane, weir_lane() % TEST_ROW);

		seen += value;
		wrong |= (u64)(value != test_word(args->seed[0], word)) << lane;
	}
	valid = weir_ballot(wave, weir_view_valid_by_all(wave, view, seen));
	expect(args->verdict, first, wrong & valid, 0);
	return valid;
}

/* Rows of an array by whole waves, and by those lanes of each that happen to come together. */
WEIR_KERNEL(test_rows, struct test_array_args)
{
	for (u64 i = 0; i < args->reads; i++) {
		u64 at = test_mix(i * weir_threads() + weir_thread() + args->salt);
		u64 first = at % (args->array[0].count / TEST_ROW) * TEST_ROW, wave;

		if (i % 2 && at >> 63)
			continue;
		wave = weir_active();
		if ((compare_rows(wave, args, weir_array_view_by(wave, &args->array[0], first), first) >>
		     weir_lane()) &
		    1)
			weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
		weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->sum, 1);
	}
}

WEIR_FN u64 sum_run(WEIR_GLOBAL struct weir_array *array, u64 index, u64 end, u64 *sum)
{
	struct weir_run run = weir_array_run_u64(array, index, end);

	for (u32 i = 0; i < run.count; i++)
		*sum += run.value[i];
	return run.count;
}

/* What is in the cache, by runs that are tried: the others are none, and bring nothing in. */
WEIR_KERNEL(test_try, struct test_sum_args)
{
	u64 each = (args->array.count + weir_threads() - 1) / weir_threads(), at = weir_thread() * each;
	u64 end = at + each < args->array.count ? at + each : args->array.count;
	u64 sum = 0, count = 0;

	while (at < end) {
		struct weir_run run = weir_array_try_run_u64(&args->array, at, end);

		for (u32 i = 0; i < run.count; i++)
			sum += run.value[i];
		count += run.count;
		at += run.count ? run.count : 1;
	}
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->sum, sum);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, count);
}

WEIR_KERNEL(test_sum, struct test_sum_args)
{
	u64 each = (args->array.count + weir_threads() - 1) / weir_threads();
	u64 at = weir_thread() * each;
	u64 end = at + each < args->array.count ? at + each : args->array.count;
	u64 sum = 0, count = 0;
	u32 tries = 0;

	while (at < end && !weir_array_failed(&args->array)) {
		u64 got = args->by_view ? sum_view(&args->array, at, end, &sum)
					: sum_run(&args->array, at, end, &sum);

		if (got == 0 && ++tries >= VIEW_TRIES) {
			expect(args->verdict, at, args->by_view, 1); /* a run always gets there */
			sum += weir_array_get_u64(&args->array, at);
			got = 1;
		}
		if (got)
			tries = 0;
		at += got;
		count += got;
	}
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->sum, sum);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, count);
}

WEIR_KERNEL(test_get, struct test_get_args)
{
	u64 value;

	if (weir_thread() != args->lane)
		return;
	value = weir_array_get_u64(&args->array, args->index);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->sum, value);
	if (weir_array_failed(&args->array))
		weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->bad, 1);
}
