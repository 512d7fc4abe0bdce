/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_shapes: in the guest, requests of every length whose data begins anywhere in a page.
 *
 *   vm_shapes URI SEED TRANSFER_BYTES     TRANSFER_BYTES: most that one request may move
 *   vm_shapes URI SEED TRANSFER_BYTES few from 64 pages on every 37th length only, and the last four
 *
 * Each shape is written to blocks of its own, read into a poisoned buffer and compared; what lies in
 * front of the buffer and behind it stays poisoned. "covered N bytes": from byte 0 on, they hold SEED.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

enum { PAGE = 4096, FEW_FROM = 64 * PAGE, FEW_STEP = 37, FEW_LAST = 4 };

/* Beginnings in a page: its start, its last word, the edges of blocks, an odd word. */
static const uint32_t offsets[] = { 0, 4, 512, 2052, 3584, 4092 };

enum { OFFSETS = sizeof(offsets) / sizeof(offsets[0]) };

static void poison(struct rig *rig)
{
	uint32_t *words = (uint32_t *)(uintptr_t)rig->args.buffers;

	for (uint64_t i = 0; i < rig->args.span / sizeof(*words); i++)
		words[i] = (uint32_t)VM_POISON;
}

/* Words outside of the request's data that a controller has touched. */
static uint64_t touched(const struct rig *rig)
{
	const uint32_t *words = (const uint32_t *)(uintptr_t)rig->args.buffers;
	uint64_t first = rig->args.offset / 4,
		 end = first + (rig->args.blocks << rig->args.disk.block_log2) / 4;
	uint64_t count = 0;

	for (uint64_t i = 0; i < rig->args.span / sizeof(*words); i++)
		count += (i < first || i >= end) && words[i] != (uint32_t)VM_POISON;
	return count;
}

/* One shape, at rig->args.first. Return: exit status. */
static int shape(struct rig *rig, uint32_t blocks, uint32_t offset)
{
	struct test_verdict verdict;
	uint64_t stray;

	rig->args.blocks = rig->args.per_request = blocks;
	rig->args.offset = offset;
	rig->args.write = 1;
	if (rig_say(rig_run_on(rig, 1)))
		return 1;
	rig->args.write = 0;
	poison(rig);
	if (rig_say(rig_run_on(rig, 1)))
		return 1;
	stray = touched(rig);
	verdict = rig_verdict(rig);
	if (!stray && !weir_load_u64_relaxed_sys(&verdict.bad)) /* relaxed: the launch is over */
		return 0;
	printf("%u blocks at byte %u of a page: word %llu is %#llx, not %#llx; %llu words beside it "
	       "touched\n",
	       blocks, offset, (unsigned long long)verdict.where, (unsigned long long)verdict.found,
	       (unsigned long long)verdict.expected, (unsigned long long)stray);
	return 1;
}

static bool left_out(const struct rig *rig, uint32_t blocks, bool few)
{
	return few && (uint64_t)blocks << rig->args.disk.block_log2 > FEW_FROM && blocks % FEW_STEP &&
	       blocks + FEW_LAST <= rig->args.disk.max_blocks;
}

int main(int argc, char **argv)
{
	bool few = argc == 5 && !strcmp(argv[4], "few");
	unsigned long shapes = 0;
	struct rig rig;
	int status = 0;

	if (argc != 4 && !few)
		return fprintf(stderr, "usage: vm_shapes URI SEED TRANSFER_BYTES [few]\n"), 2;
	rig_open(&rig, argv[1],
		 &(struct rig_options){ .queues = 1, .transfer = (uint32_t)strtoul(argv[3], NULL, 0) });
	rig.args.seed = strtoull(argv[2], NULL, 0);
	rig.args.flush = 0;
	for (uint32_t blocks = 1; blocks <= rig.args.disk.max_blocks; blocks++)
		for (unsigned i = 0; i < OFFSETS && !status && !left_out(&rig, blocks, few); i++, shapes++) {
			status = shape(&rig, blocks, offsets[i]);
			rig.args.first += blocks;
		}
	printf("%lu shapes, up to %llu bytes; covered %llu bytes\n", shapes,
	       (unsigned long long)rig.args.disk.max_blocks << rig.args.disk.block_log2,
	       (unsigned long long)rig.args.first << rig.args.disk.block_log2);
	rig_close(&rig);
	return status;
}
