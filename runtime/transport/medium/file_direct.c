/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/file_direct.c: O_DIRECT or the page cache?
 *
 * Owns: finding out what O_DIRECT wants of addresses, whether it works here (by
 * reading, since some file systems accept the flag and not the read), and
 * whether it is the faster way to this file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../backend/error.h"
#include "file.h"

enum { PAGE = 4096 };

/* O_DIRECT must be this much slower before the page cache is preferred. */
#define CACHE_PREFERRED 1.1

static int direct_open(struct file_target *target)
{
	int flags = O_CLOEXEC | O_DIRECT | (target->read_only ? O_RDONLY : O_RDWR);
	int fd = open(target->name, flags);
	struct stat direct;
	struct stat buffered;

	if (fd < 0)
		return -errno;
	target->fds[FILE_DIRECT] = fd;
	if (fstat(fd, &direct) || fstat(target->fds[FILE_BUFFERED], &buffered))
		return -errno;
	return direct.st_dev == buffered.st_dev && direct.st_ino == buffered.st_ino ? 0 : -ESTALE;
}

static void direct_align_default(struct file_target *target)
{
	uint32_t logical = target->logical_bytes > 512 ? target->logical_bytes : 512;

	target->memory_align = logical;
	target->offset_align = logical;
}

/* What the kernel says; before 6.1, and for devices before 6.11, it says nothing. */
static void direct_align(struct file_target *target)
{
	struct statx about;

	direct_align_default(target);
	memset(&about, 0, sizeof(about));
	if (statx(target->fds[FILE_DIRECT], "", AT_EMPTY_PATH, STATX_DIOALIGN, &about))
		return;
	if (!(about.stx_mask & STATX_DIOALIGN) || !about.stx_dio_mem_align || !about.stx_dio_offset_align)
		return;
	target->memory_align = about.stx_dio_mem_align;
	target->offset_align = about.stx_dio_offset_align;
}

/* Reads @align bytes at 0 into memory aligned to @align and no better. */
static int direct_read(int fd, uint32_t align)
{
	char *memory = NULL;
	ssize_t got;

	if (posix_memalign((void **)&memory, (size_t)align * 2, (size_t)align * 2))
		return -ENOMEM;
	got = pread(fd, memory + align, align, 0);
	got = got < 0 ? -errno : 0;
	free(memory);
	return (int)got;
}

static int direct_probe(struct file_target *target)
{
	uint32_t align =
		target->offset_align > target->memory_align ? target->offset_align : target->memory_align;
	int error = direct_read(target->fds[FILE_DIRECT], align);

	if (error != -EINVAL || align >= PAGE)
		return error;
	target->memory_align = target->offset_align = PAGE;
	return direct_read(target->fds[FILE_DIRECT], PAGE);
}

static int direct_try(struct file_target *target)
{
	int error = direct_open(target);

	if (error)
		return error;
	direct_align(target);
	return direct_probe(target);
}

static void direct_drop(struct file_target *target)
{
	if (target->fds[FILE_DIRECT] >= 0)
		close(target->fds[FILE_DIRECT]);
	target->fds[FILE_DIRECT] = -1;
}

static uint64_t measure_seed(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec;
}

/* Both work: the faster one stays. */
static void direct_compare(struct file_target *target)
{
	uint64_t seed = measure_seed();
	double direct = file_measure_rate(target->fds[FILE_DIRECT], target->bytes, seed);
	double cached = file_measure_rate(target->fds[FILE_BUFFERED], target->bytes, seed);

	if (direct <= 0 || cached <= 0)
		return;
	if (cached > direct * CACHE_PREFERRED) {
		snprintf(target->reason, sizeof(target->reason), " (measured %.1f times O_DIRECT's rate)",
			 cached / direct);
		direct_drop(target);
	} else {
		snprintf(target->reason, sizeof(target->reason),
			 " (measured %.1f times the page cache's rate)", direct / cached);
	}
}

int file_direct_choose(enum weir_direct want, struct file_target *target)
{
	int error;

	if (want == WEIR_DIRECT_OFF)
		return 0;
	if (want == WEIR_DIRECT_AUTO && target->in_memory) {
		snprintf(target->reason, sizeof(target->reason), " (the file system lies in memory)");
		return 0;
	}
	error = direct_try(target);
	if (!error) {
		if (want == WEIR_DIRECT_AUTO)
			direct_compare(target);
		return 0;
	}
	direct_drop(target);
	if (want == WEIR_DIRECT_ON)
		return weir_fail(-error,
				 "file:%s does not take O_DIRECT (%s), its file system may lack it: use "
				 "direct=auto or direct=off",
				 target->name, strerror(-error));
	snprintf(target->reason, sizeof(target->reason), " (O_DIRECT refused: %s)", strerror(-error));
	return 0;
}
