/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_cycles: in the guest, open and close, map and unmap, again and again; nothing may be left over.
 *
 *   vm_cycles URI SECONDS           so long for each of the two
 *   vm_cycles URI queues COUNT      so many times an I/O queue pair of an open controller is deleted and
 * created again vm_cycles URI leaking COUNT     the same, and a page is not freed: a control, which has to be
 * found out
 *
 * Counted before and after: open files, pinned and locked memory, mappings that the IOMMU's container has
 * left. Through iommufd nobody tells the latter; what is mapped is pinned, and that is counted. What the
 * runtime maps and unmaps is counted by a mapper of our own beside the controller's.
 */
#include <dirent.h>
#include <linux/vfio.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"
#include "recovery/watchdog.h" /* the runtime's */

enum { ALLOCATIONS = 16, PATH = 300, PAIRS = 16, DEPTH = 8, TRANSFER = 64 << 10 };

/** struct left - what there is; @mappings: that could still be made, 0 without a container; @spaces: of
 * iommufd */
struct left {
	unsigned files;
	unsigned long pinned_kb;
	unsigned long locked_kb;
	unsigned mappings;
	unsigned spaces;
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Mappings that can still be made in the container @file. */
static unsigned mappings_left(int file)
{
	union {
		struct vfio_iommu_type1_info info;
		char room[1024];
	} answer = { .info = { .argsz = sizeof(answer) } };

	if (ioctl(file, VFIO_IOMMU_GET_INFO, &answer) != 0 || !(answer.info.flags & VFIO_IOMMU_INFO_CAPS))
		return 0;
	for (uint32_t at = answer.info.cap_offset; at && at < sizeof(answer);) {
		const struct vfio_iommu_type1_info_dma_avail *left = (const void *)(answer.room + at);

		if (left->header.id == VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL)
			return left->avail;
		at = left->header.next;
	}
	return 0;
}

static void count_files(struct left *left)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	char path[PATH], target[PATH];

	while ((entry = readdir(folder))) {
		ssize_t length;

		if (entry->d_name[0] == '.')
			continue;
		left->files++;
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		target[length < 0 ? 0 : length] = '\0';
		if (!strcmp(target, "/dev/vfio/vfio"))
			left->mappings = mappings_left(atoi(entry->d_name));
		left->spaces += !strcmp(target, "/dev/iommu");
	}
	closedir(folder);
}

static struct left count_left(const char *when)
{
	struct left left = { 0, 0, 0, 0, 0 };
	FILE *file = fopen("/proc/self/status", "r");
	char line[200];

	count_files(&left);
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "VmPin: %lu", &left.pinned_kb);
		sscanf(line, "VmLck: %lu", &left.locked_kb);
	}
	if (file)
		fclose(file);
	printf("%s: %u files, %lu KiB pinned, %lu KiB locked, %u mappings to be had\n", when, left.files,
	       left.pinned_kb, left.locked_kb, left.mappings);
	return left;
}

static int same(const struct left *a, const struct left *b)
{
	return a->files == b->files && a->pinned_kb == b->pinned_kb && a->locked_kb == b->locked_kb &&
	       a->mappings == b->mappings && a->spaces == b->spaces;
}

static void open_and_close(struct weir_context *context, const char *uri)
{
	struct weir_storage *storage;

	rig_must(weir_storage_open(context, uri, NULL, &storage));
	weir_storage_close(storage);
}

static int openings(struct weir_context *context, const char *uri, double seconds)
{
	struct left before, after;
	double end = now() + seconds;
	unsigned long done = 0;

	open_and_close(context, uri); /* what is made once and kept */
	before = count_left("before");
	for (; now() < end; done++)
		open_and_close(context, uri);
	after = count_left("after");
	printf("%lu openings in %.0f s\n", done, seconds);
	return !same(&before, &after) || !done;
}

static int mappings(struct weir_context *context, const char *uri, double seconds)
{
	uint64_t addresses[ALLOCATIONS];
	struct weir_storage *storage;
	struct left before, after;
	double end = now() + seconds;
	unsigned long done = 0;

	rig_must(weir_storage_open(context, uri, NULL, &storage));
	before = count_left("open");
	for (; now() < end; done += ALLOCATIONS) {
		for (unsigned i = 0; i < ALLOCATIONS; i++)
			rig_must(weir_alloc(context, (size_t)4096 << (i % 4), &addresses[i]));
		for (unsigned i = 0; i < ALLOCATIONS; i++)
			rig_must(weir_free(context, addresses[i]));
	}
	after = count_left("still open");
	printf("%lu mappings in %.0f s\n", done, seconds);
	weir_storage_close(storage);
	if (before.mappings || (before.spaces && before.pinned_kb))
		return !same(&before, &after) || !done;
	printf("the container does not tell its mappings\n");
	return 1;
}

/** struct tally - a mapper that maps nothing and counts: @maps since it began to follow, of @bytes that are
 * mapped now */
struct tally {
	struct weir_dma_mapper mapper;
	uint64_t maps;
	uint64_t unmaps;
	uint64_t bytes;
};

static int tally_map(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes, void *host)
{
	struct tally *tally = (struct tally *)mapper;

	(void)address;
	(void)host;
	tally->maps++;
	tally->bytes += bytes;
	return 0;
}

static void tally_unmap(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes)
{
	struct tally *tally = (struct tally *)mapper;

	(void)address;
	tally->unmaps++;
	tally->bytes -= bytes;
}

static int tallies_differ(const struct tally *before, const struct tally *after)
{
	printf("mapped: %llu times, unmapped: %llu times; %lld mappings and %lld bytes more than before\n",
	       (unsigned long long)(after->maps - before->maps),
	       (unsigned long long)(after->unmaps - before->unmaps),
	       (long long)(after->maps - after->unmaps - before->maps + before->unmaps),
	       (long long)(after->bytes - before->bytes));
	return after->maps - after->unmaps != before->maps - before->unmaps || after->bytes != before->bytes;
}

/* The last pair there is; the runtime knows of those before it. */
static void delete_pair(struct weir_storage *storage)
{
	uint32_t index = --storage->created;

	rig_must(weir_admin_delete_queue(&storage->admin, index + 1));
	storage->disk.queue_count = index;
	rig_must(weir_memory_put(storage->context, storage->rings[index]));
	rig_must(weir_memory_put(storage->context, storage->slots[index]));
}

static void delete_pairs(struct weir_storage *storage)
{
	while (storage->created)
		delete_pair(storage);
}

static void create_pairs(struct weir_storage *storage)
{
	while (storage->created < storage->queue_count) {
		rig_must(weir_queue_create(storage, storage->created, 0, TRANSFER));
		storage->disk.queue_count = storage->created;
	}
}

/* The controller has these pairs and no others: it refuses to create one again, and to delete one that is
 * deleted. */
static int numbers_differ(struct weir_storage *storage, uint64_t bus)
{
	uint32_t count = storage->queue_count;
	unsigned wrong = 0;

	for (uint32_t i = 1; i <= count; i++)
		wrong += !weir_admin_create_queue(&storage->admin, i, DEPTH, bus, bus + 4096);
	delete_pairs(storage);
	for (uint32_t i = 1; i <= count; i++)
		wrong += !weir_admin_delete_queue(&storage->admin, i);
	create_pairs(storage);
	printf("%u queue pairs, %u wrong\n", count, wrong);
	return wrong != 0 || count != PAIRS;
}

/* Waves take them in turn, and there are more waves than pairs: each one carries commands. */
static int pairs_work(struct rig *rig)
{
	const struct weir_queue *queues = weir_at(rig->storage->queues, struct weir_queue, 0);
	unsigned idle = 0;

	rig->args.blocks = (uint64_t)RIG_LANES * rig->args.per_request;
	if (rig_say(rig_run(rig)))
		return 1;
	for (uint32_t i = 0; i < rig->storage->queue_count; i++)
		idle += !weir_load_u64_relaxed_sys(&queues[i].tail); /* relaxed: the launch is over */
	printf("%u queue pairs were not used\n", idle);
	return idle != 0;
}

/* Nobody looks at the storage meanwhile. */
static int queues(struct rig *rig, unsigned long count, bool leaking)
{
	struct tally tally = { .mapper = { .map = tally_map, .unmap = tally_unmap, .peers = true } },
		     at_first;
	struct left before, after;
	unsigned long done = 0;
	double begin = now();
	uint64_t page;
	int status;

	weir_watchdog_stop(rig->storage);
	rig_must(weir_dma_map_follow(rig->context->dma, &tally.mapper));
	at_first = tally;
	before = count_left("queue pairs before");
	for (; done < count; done += rig->storage->queue_count) {
		delete_pairs(rig->storage);
		create_pairs(rig->storage);
	}
	if (leaking)
		rig_must(weir_alloc(rig->context, 4096, &page));
	after = count_left("queue pairs after");
	printf("%lu queue pairs deleted and created in %.1f s\n", done, now() - begin);
	status = tallies_differ(&at_first, &tally) || tally.unmaps < done || !same(&before, &after);
	status |= numbers_differ(rig->storage, rig->storage->admin.bus);
	weir_dma_map_unfollow(rig->context->dma, &tally.mapper);
	rig_must(weir_watchdog_start(rig->storage, 0));
	return status | pairs_work(rig);
}

static int cycle_queues(const char *uri, unsigned long count, bool leaking)
{
	struct rig rig;
	int status;

	rig_open(&rig, uri, &(struct rig_options){ .queues = PAIRS, .depth = DEPTH, .transfer = TRANSFER });
	status = queues(&rig, count, leaking);
	rig_close(&rig);
	return status;
}

static int usage(void)
{
	return fprintf(stderr, "usage: vm_cycles URI SECONDS | vm_cycles URI queues|leaking COUNT\n"), 2;
}

int main(int argc, char **argv)
{
	struct weir_context *context;
	int status;

	if (argc == 4 && (!strcmp(argv[2], "queues") || !strcmp(argv[2], "leaking")))
		return cycle_queues(argv[1], strtoul(argv[3], NULL, 0), argv[2][0] == 'l');
	if (argc != 3)
		return usage();
	rig_must(weir_context_open("cpu", NULL, &context));
	status = openings(context, argv[1], strtod(argv[2], NULL)) |
		 mappings(context, argv[1], strtod(argv[2], NULL));
	weir_context_close(context);
	return status;
}
