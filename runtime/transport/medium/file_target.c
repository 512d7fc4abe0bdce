/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/file_target.c: open a file or block device and learn its shape.
 *
 * Owns: what is accepted as a target, and every sentence about why one is not.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "../../backend/error.h"
#include "block_use.h"
#include "file.h"

enum { TRIES = 200, TRIES_ALONE = 2000, REST_NS = 1000000 };

static const char *kind_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR: return "a directory";
	case S_IFSOCK: return "a socket";
	case S_IFIFO: return "a named pipe";
	case S_IFCHR: return "a character device";
	default: return NULL;
	}
}

static int fail_kind(const char *path, mode_t mode)
{
	return weir_fail(S_ISDIR(mode) ? EISDIR : EINVAL,
			 "file:%s is %s: give a regular file or a block device", path, kind_name(mode));
}

static int fail_stat(const char *path, int error)
{
	if (error == ENOENT)
		return weir_fail(ENOENT,
				 "file:%s does not exist: check the path, or create it at its full size "
				 "first (truncate -s 1G %s)",
				 path, path);
	return weir_fail(error, "file:%s cannot be looked at (%s)", path, strerror(error));
}

static int fail_in_use(const struct file_target *target, uint64_t device)
{
	char use[WEIR_BLOCK_USE];
	bool for_good = weir_block_use(device, use);

	return weir_fail(EBUSY,
			 "file:%s is a block device in use (%s), so it is not opened for writing: free it "
			 "first, or open it read-only (ro=1)%s",
			 target->name, use, for_good ? "" : ", or let all of its users share it (share=on)");
}

static int fail_open(const struct file_target *target, const struct stat *stat, int error)
{
	if (error == EBUSY && target->block_device)
		return fail_in_use(target, stat->st_rdev);
	if (target->read_only)
		return weir_fail(error, "file:%s cannot be opened for reading (%s): check its permissions",
				 target->name, strerror(error));
	if (error == EACCES || error == EPERM || error == EROFS)
		return weir_fail(error == EPERM ? EACCES : error,
				 "file:%s cannot be opened for writing (%s): open it read-only (ro=1), or "
				 "gain write permission",
				 target->name, strerror(error));
	return weir_fail(error, "file:%s cannot be opened for reading and writing (%s)", target->name,
			 strerror(error));
}

static void rest(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = REST_NS }, NULL);
}

/*
 * The lock that programs take on a block device that they write to (BLKFLOCK of util-linux, udev): alone, or
 * with those that share it. udev has it for a moment after each change, so it is tried for a while.
 */
static int lock(int fd, bool share, int tries)
{
	for (int try = 0; flock(fd, (share ? LOCK_SH : LOCK_EX) | LOCK_NB); try++) {
		if (errno != EWOULDBLOCK || try == tries)
			return errno == EWOULDBLOCK ? EBUSY : errno;
		rest();
	}
	return 0;
}

/* Whether the kernel would let one program claim it: not what is mounted. Another one that asks just now has
 * it for a moment. */
static int probe_claim(const char *name)
{
	for (int try = 0;; try++) {
		int fd = open(name, O_CLOEXEC | O_RDONLY | O_EXCL);

		if (fd >= 0) {
			close(fd);
			return 0;
		}
		if (errno != EBUSY || try == TRIES)
			return errno;
		rest();
	}
}

static int claim_device(const struct file_target *target, const struct stat *stat, int fd)
{
	int error = target->share ? probe_claim(target->name) : 0;

	if (!error)
		error = lock(fd, target->share, TRIES);
	return error ? fail_open(target, stat, error) : 0;
}

/* Where a file system knows no locks nobody is kept off. The rings of a process that was killed have its
 * files for a while yet. */
static int be_alone(const struct file_target *target, int fd)
{
	if (lock(fd, target->read_only, TRIES_ALONE) != EBUSY)
		return 0;
	return weir_fail(EBUSY, "file:%s is in use by another engine: end that one first", target->name);
}

static int target_open_fd(struct file_target *target, const struct stat *stat)
{
	int flags = O_CLOEXEC | (target->read_only ? O_RDONLY : O_RDWR);
	bool claims = target->block_device && !target->read_only;
	int fd;

	if (claims && !target->share)
		flags |= O_EXCL; /* the kernel refuses what is mounted or otherwise claimed */
	fd = open(target->name, flags);
	if (fd < 0)
		return fail_open(target, stat, errno);
	target->fds[FILE_BUFFERED] = fd;
	if (claims)
		return claim_device(target, stat, fd);
	return target->alone && !target->block_device ? be_alone(target, fd) : 0;
}

static int measure_file(struct file_target *target, const struct stat *stat)
{
	if (stat->st_size == 0)
		return weir_fail(EINVAL,
				 "file:%s is empty: its size is the storage's size, so make it that large "
				 "first (truncate -s 1G %s)",
				 target->name, target->name);
	target->bytes = (uint64_t)stat->st_size;
	target->logical_bytes = 1;
	return 0;
}

static void learn_file_system(struct file_target *target)
{
	struct statfs about;

	if (target->block_device || fstatfs(target->fds[FILE_BUFFERED], &about))
		return;
	target->in_memory = about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC;
	target->on_fuse = about.f_type == FUSE_SUPER_MAGIC;
}

static int measure_device(struct file_target *target)
{
	int logical = 0;

	if (ioctl(target->fds[FILE_BUFFERED], BLKGETSIZE64, &target->bytes) ||
	    ioctl(target->fds[FILE_BUFFERED], BLKSSZGET, &logical))
		return weir_fail(errno, "file:%s does not report its size (%s)", target->name,
				 strerror(errno));
	target->logical_bytes = (uint32_t)logical;
	if (target->bytes < target->block_bytes)
		return weir_fail(EINVAL, "file:%s is a block device of %llu bytes, less than one block of %u",
				 target->name, (unsigned long long)target->bytes, target->block_bytes);
	if (target->logical_bytes <= target->block_bytes)
		return 0;
	return weir_fail(EINVAL,
			 "file:%s has logical blocks of %u bytes, so blocks of %u cannot be written to it%s",
			 target->name, target->logical_bytes, target->block_bytes,
			 target->logical_bytes == 4096 ? ": use 4096" : "");
}

/* What is open, since the path may have changed hands meanwhile. */
static int target_measure(struct file_target *target, const struct stat *before)
{
	struct stat now;

	if (fstat(target->fds[FILE_BUFFERED], &now))
		return fail_stat(target->name, errno);
	if (kind_name(now.st_mode))
		return fail_kind(target->name, now.st_mode);
	if (now.st_dev != before->st_dev || now.st_ino != before->st_ino)
		return weir_fail(EAGAIN, "file:%s was replaced while it was being opened: try again",
				 target->name);
	learn_file_system(target);
	return target->block_device ? measure_device(target) : measure_file(target, &now);
}

int file_target_open(const char *path, const struct weir_medium_file_options *options,
		     struct file_target *target)
{
	struct stat before;
	int error;

	memset(target, 0, sizeof(*target));
	target->name = path;
	target->fds[FILE_BUFFERED] = target->fds[FILE_DIRECT] = target->fds[FILE_SYNC] = -1;
	target->block_bytes = options->block_bytes ? options->block_bytes : 4096;
	target->read_only = options->read_only;
	target->share = options->share;
	target->alone = options->alone;
	if (stat(path, &before))
		return fail_stat(path, errno);
	if (kind_name(before.st_mode))
		return fail_kind(path, before.st_mode);
	target->block_device = S_ISBLK(before.st_mode);
	error = target_open_fd(target, &before);
	if (!error)
		error = target_measure(target, &before);
	if (error)
		file_target_close(target);
	return error;
}

/* By way of /proc, since the path may have changed hands. On FUSE what one descriptor wrote another one need
 * not sync. */
int file_target_sync(const struct file_target *target)
{
	bool writes =
		!target->read_only && !target->block_device; /* udev looks at a device that was written */
	char name[64];
	int fd = -1;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", target->fds[FILE_BUFFERED]);
	if (!target->on_fuse)
		fd = open(name, O_CLOEXEC | (writes ? O_RDWR : O_RDONLY));
	return fd < 0 ? target->fds[FILE_BUFFERED] : fd;
}

void file_target_close(struct file_target *target)
{
	for (int i = 0; i < FILE_WAYS; i++) {
		if (target->fds[i] >= 0)
			close(target->fds[i]);
		target->fds[i] = -1;
	}
}
