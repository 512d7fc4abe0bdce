/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_storage: in the guest, use a storage as asked, and say what came of it.
 *
 *   vm_storage info URI [QUEUES [DEPTH]]             what weir says of it
 *   vm_storage write URI SEED FIRST BLOCKS           pattern SEED into these blocks, flushed
 *   vm_storage read URI SEED FIRST BLOCKS            compare them with it, word by word
 *   vm_storage unmapped URI                          read into memory the controller may no longer reach
 *   vm_storage foreign URI                           read into memory that is not the device's: refused, and
 * the next is not vm_storage dead URI [COMMAND]                    take its completion queue away: it has to
 * die, and reads to end; before it is closed the shell runs COMMAND vm_storage hold URI read for ever, until
 * killed
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rig.h"

static int info(struct rig *rig)
{
	printf("bytes=%llu block=%u transfer=%u queues=%u depth=%u\npath=%s\nmodel=%s serial=%s nsid=%u\n",
	       (unsigned long long)rig->info.bytes, rig->info.block_bytes, rig->info.max_transfer_bytes,
	       rig->info.queues, rig->info.depth, rig->info.path, rig->storage->space.model,
	       rig->storage->space.serial, rig->storage->space.nsid);
	return 0;
}

static int transfer(struct rig *rig, bool write, char **numbers)
{
	struct test_verdict verdict;
	struct weir_stats stats = { .size = sizeof(stats) };
	uint64_t words;

	rig->args.write = write;
	rig->args.seed = strtoull(numbers[0], NULL, 0);
	rig->args.first = strtoull(numbers[1], NULL, 0);
	rig->args.blocks = strtoull(numbers[2], NULL, 0);
	words = rig->args.blocks << rig->args.disk.block_log2 >> 3;
	if (rig_say(rig_run(rig)))
		return 1;
	verdict = rig_verdict(rig);
	rig_must(weir_stats(rig->storage, &stats));
	printf("%s: %llu commands, %llu failed, %llu rogue; %llu words good, %llu bad\n",
	       write ? "write" : "read", (unsigned long long)stats.commands, (unsigned long long)stats.failed,
	       (unsigned long long)stats.rogue, (unsigned long long)weir_load_u64_relaxed_sys(&verdict.good),
	       (unsigned long long)weir_load_u64_relaxed_sys(&verdict.bad));
	if (weir_load_u64_relaxed_sys(&verdict.bad))
		printf("word %llu is %#llx, not %#llx\n", (unsigned long long)verdict.where,
		       (unsigned long long)verdict.found, (unsigned long long)verdict.expected);
	return weir_load_u64_relaxed_sys(&verdict.good) != (write ? 0 : words) ||
	       weir_load_u64_relaxed_sys(&verdict.bad) || stats.failed || stats.rogue;
}

/* A read into memory that was taken from the controller: no word of it may arrive. */
static int unmapped(struct rig *rig)
{
	const uint64_t *words = (const uint64_t *)(uintptr_t)rig->args.buffers;
	uint64_t arrived = 0;
	weir_status status;

	rig_must(weir_dma_map_remove(rig->context->dma, (void *)(uintptr_t)rig->args.buffers));
	rig->args.blocks = 1;
	status = rig_run(rig);
	for (size_t i = 0; i < ((size_t)1 << rig->args.disk.block_log2) / sizeof(*words); i++)
		arrived += words[i] != VM_POISON;
	rig_must(weir_dma_map_add(rig->context->dma, (void *)(uintptr_t)rig->args.buffers,
				  RIG_LANES * rig->args.span));
	printf("unmapped: status %#x, %llu words arrived\n", status, (unsigned long long)arrived);
	return arrived != 0;
}

/* Nothing but the lanes' own check keeps a controller from where no IOMMU confines it. */
static int foreign(struct rig *rig)
{
	static uint64_t memory[2 * RIG_LANES * 4096 / sizeof(uint64_t)] __attribute__((aligned(4096)));
	weir_addr own = rig->args.buffers;
	size_t arrived = 0;
	weir_status status, next;

	rig->args.blocks = 1;
	rig->args.buffers = WEIR_ADDR(memory);
	rig->args.span = 8192;
	status = rig_run_on(rig, 1);
	rig_say(status);
	for (size_t i = 0; i < ((size_t)1 << rig->args.disk.block_log2) / sizeof(*memory); i++)
		arrived += memory[i] != 0 && memory[i] != VM_POISON;
	rig->args.buffers = own;
	next = rig_run_on(rig, 1);
	rig_say(next);
	printf("foreign: status %#x, %zu words arrived, then %#x\n", status, arrived, next);
	return status != WEIR_E_WINDOW || arrived || next != WEIR_OK;
}

/* Without its rings the controller cannot go on: it reports a fatal status, and the watchdog ends what is
 * under way. */
static int dead(struct rig *rig, const char *command)
{
	struct timespec begin, end;
	weir_status status;

	for (uint32_t i = 0; i < rig->info.queues; i++)
		rig_must(weir_dma_map_remove(rig->context->dma, (void *)(uintptr_t)rig->storage->rings[i]));
	rig->args.blocks = RIG_LANES * rig->args.per_request;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	status = rig_run(rig);
	clock_gettime(CLOCK_MONOTONIC, &end);
	rig_say(status);
	printf("dead after %lld ms\n",
	       (long long)(end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000);
	fflush(stdout);
	if (command && system(command) != 0)
		printf("(the shell's command failed)\n");
	for (uint32_t i = 0; i < rig->info.queues; i++) /* so that they can be freed */
		rig_must(
			weir_dma_map_add(rig->context->dma, (void *)(uintptr_t)rig->storage->rings[i], 4096));
	return status != WEIR_E_DEVICE_DEAD;
}

static int hold(struct rig *rig)
{
	rig->args.blocks = rig->info.bytes >> rig->args.disk.block_log2;
	printf("holding\n");
	fflush(stdout);
	for (;;)
		if (rig_say(rig_run(rig)))
			return 1;
}

int main(int argc, char **argv)
{
	struct rig_options options = { 0 };
	struct rig rig;
	int status = 2;

	if (argc < 3)
		return fprintf(stderr, "usage: vm_storage info|write|read|unmapped|foreign|dead|hold URI "
				       "[SEED FIRST BLOCKS]\n"),
		       2;
	if (!strcmp(argv[1], "info"))
		options = (struct rig_options){ .queues = argc > 3 ? (uint32_t)atoi(argv[3]) : 0,
						.depth = argc > 4 ? (uint32_t)atoi(argv[4]) : 0 };
	rig_open(&rig, argv[2], &options);
	if (!strcmp(argv[1], "info"))
		status = info(&rig);
	else if (argc == 6 && (!strcmp(argv[1], "write") || !strcmp(argv[1], "read")))
		status = transfer(&rig, argv[1][0] == 'w', argv + 3);
	else if (!strcmp(argv[1], "unmapped"))
		status = unmapped(&rig);
	else if (!strcmp(argv[1], "foreign"))
		status = foreign(&rig);
	else if (!strcmp(argv[1], "dead"))
		status = dead(&rig, argc > 3 ? argv[3] : NULL);
	else if (!strcmp(argv[1], "hold"))
		status = hold(&rig);
	rig_close(&rig);
	return status;
}
