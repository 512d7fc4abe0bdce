/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_cycles: in the guest, open and close, map and unmap, again and again; nothing may be left over.
 *
 *   vm_cycles URI SECONDS     so long for each of the two
 *
 * Counted before and after: open files, pinned and locked memory, mappings that the IOMMU's container has left. Through
 * iommufd nobody tells the latter; what is mapped is pinned, and that is counted.
 */
#include <dirent.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

enum { ALLOCATIONS = 16, PATH = 300 };

/** struct left - what there is; @mappings: that could still be made, 0 without a container; @spaces: of iommufd */
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

static struct left count(const char *when)
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
	printf("%s: %u files, %lu KiB pinned, %lu KiB locked, %u mappings to be had\n", when, left.files, left.pinned_kb,
	       left.locked_kb, left.mappings);
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
	before = count("before");
	for (; now() < end; done++)
		open_and_close(context, uri);
	after = count("after");
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
	before = count("open");
	for (; now() < end; done += ALLOCATIONS) {
		for (unsigned i = 0; i < ALLOCATIONS; i++)
			rig_must(weir_alloc(context, (size_t)4096 << (i % 4), &addresses[i]));
		for (unsigned i = 0; i < ALLOCATIONS; i++)
			rig_must(weir_free(context, addresses[i]));
	}
	after = count("still open");
	printf("%lu mappings in %.0f s\n", done, seconds);
	weir_storage_close(storage);
	if (before.mappings || (before.spaces && before.pinned_kb))
		return !same(&before, &after) || !done;
	printf("the container does not tell its mappings\n");
	return 1;
}

int main(int argc, char **argv)
{
	struct weir_context *context;
	int status;

	if (argc != 3)
		return fprintf(stderr, "usage: vm_cycles URI SECONDS\n"), 2;
	rig_must(weir_context_open("cpu", NULL, &context));
	status = openings(context, argv[1], strtod(argv[2], NULL)) | mappings(context, argv[1], strtod(argv[2], NULL));
	weir_context_close(context);
	return status;
}
