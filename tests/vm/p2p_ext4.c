/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * File I/O by the kernel (WEIR_P2P_IO) on files of a file system:
 *
 *   vm_p2p ext4 NODE FOLDER     FOLDER/data to the same place of the window; FOLDER/written and FOLDER/pieces
 * from 8 MiB of it; holes, ends of files, files that are truncated meanwhile
 */
#include "p2p.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	MIB = 1 << 20,
	KIB = 1 << 10,
	BLOCK = 4096,
	ALL = 4 * MIB,
	PIECES = 256 * KIB,
	SECONDS = 4,
	POISON = 0xa5
};

static const char *folder;

static int open_at(const char *name, int flags)
{
	char path[128];
	int file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = open(path, flags | O_RDWR | O_CLOEXEC, 0600);
	check(file >= 0, "cannot open %s", path);
	return file;
}

/* Return: bytes done, or -1 with errno. */
static int64_t io(const struct range *range, int file, uint32_t flags, uint64_t at, uint64_t location,
		  uint64_t bytes)
{
	struct weir_p2p_io call = { .size = sizeof(call),
				    .flags = flags,
				    .handle = range->handle,
				    .fd = file,
				    .file_offset = at,
				    .buffer_offset = location,
				    .bytes = bytes };

	return ioctl(range->node, WEIR_P2P_IO, &call) ? -1 : (int64_t)call.done;
}

static void moves(const struct range *range, int file, uint32_t flags, uint64_t at, uint64_t location,
		  uint64_t bytes)
{
	int64_t done = io(range, file, flags, at, location, bytes);

	check(done == (int64_t)bytes, "%lld of %llu bytes at %llu were moved", (long long)done,
	      (unsigned long long)bytes, (unsigned long long)at);
}

static bool all_are(const uint8_t *bytes, size_t count, uint8_t value)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

static void holds(const struct range *range, size_t from, size_t to, uint8_t value, const char *what)
{
	for (size_t i = from; i < to; i++)
		check(range->memory[i] == value, "%s: byte %zu, from %zu to %zu, is %#x, not %#x", what, i,
		      from, to, range->memory[i], value);
}

/* By O_DIRECT from memory of the host's. */
static void fill(int file, uint64_t at, uint64_t bytes, int value)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(memory != MAP_FAILED, "no memory");
	memset(memory, value, bytes);
	check(pwrite(file, memory, bytes, (off_t)at) == (ssize_t)bytes || errno == EINTR, "cannot write");
	munmap(memory, bytes);
}

static void read_all(int node)
{
	struct range range = take(node, 0, ALL);
	int file = open_at("data", O_DIRECT);

	moves(&range, file, 0, 0, 0, ALL);
	close(file);
	drop(&range);
}

static void write_all(int node)
{
	struct range range = take(node, 8 * MIB, ALL);
	int file = open_at("written", O_DIRECT | O_CREAT), pieces = open_at("pieces", O_DIRECT | O_CREAT);

	moves(&range, file, WEIR_P2P_WRITE, 0, 0, ALL);
	/* Behind the end each time, and no whole blocks of the file system. */
	for (uint64_t at = 0, bytes = 512; at < PIECES; at += bytes, bytes = (bytes + 512) % 6144 + 512)
		moves(&range, pieces, WEIR_P2P_WRITE, at, at, bytes < PIECES - at ? bytes : PIECES - at);
	close(file);
	close(pieces);
	drop(&range);
}

static void holes(const struct range *range)
{
	int file = open_at("sparse", O_DIRECT | O_CREAT);

	check(!ftruncate(file, MIB), "ftruncate");
	fill(file, MIB / 2, BLOCK, 0x77);
	memset(range->memory, POISON, MIB);
	moves(range, file, 0, 0, 0, MIB);
	holds(range, 0, MIB / 2, 0, "a hole");
	holds(range, MIB / 2, MIB / 2 + BLOCK, 0x77, "a block between holes");
	holds(range, MIB / 2 + BLOCK, MIB, 0, "a hole at the end");
	close(file);
}

static void ends(const struct range *range)
{
	int file = open_at("short", O_DIRECT | O_CREAT);

	fill(file, 0, 3 * BLOCK, 0x33);
	check(!ftruncate(file, 10000), "ftruncate");
	memset(range->memory, POISON, MIB);
	check(io(range, file, 0, 0, 0, 16 * BLOCK) == 10000, "a read over the file's end");
	holds(range, 0, 10000, 0x33, "a read over the file's end");
	/* What lies between is nobody's concern: the kernel may set it to 0. */
	holds(range, 16 * BLOCK, MIB, POISON, "behind a read over the file's end");
	memset(range->memory, POISON, MIB);
	check(!io(range, file, 0, 3 * BLOCK, 0, BLOCK), "a read behind the file's end");
	moves(range, file, 0, 512, 3 * BLOCK + 1024, 512);
	holds(range, 3 * BLOCK + 512, 3 * BLOCK + 1024, POISON, "before a read of 512 bytes");
	holds(range, 3 * BLOCK + 1024, 3 * BLOCK + 1536, 0x33, "a read of 512 bytes");
	holds(range, 3 * BLOCK + 1536, MIB, POISON, "behind a read of 512 bytes");
	expect(range->node, (int)io(range, file, 0, 100, 0, 512), EINVAL,
	       "a place in a file that is not of 512 bytes");
	expect(range->node, (int)io(range, file, 0, 0, 0, 100), EINVAL, "a length that is not of 512 bytes");
	close(file);
}

/* Files of which ext4 keeps the contents in its journal go through its cache, O_DIRECT or not: the bytes are
 * right, the CPU copies. */
static void journaled(const struct range *range)
{
	int file = open_at("journaled", O_DIRECT | O_CREAT), flags = FS_JOURNAL_DATA_FL;

	check(!ioctl(file, FS_IOC_SETFLAGS, &flags), "ext4 does not keep contents in its journal");
	memset(range->memory, 0x44, MIB);
	moves(range, file, WEIR_P2P_WRITE, 0, 0, MIB);
	memset(range->memory, POISON, MIB);
	moves(range, file, 0, 0, 0, MIB);
	holds(range, 0, MIB, 0x44, "a file in the journal");
	close(file);
}

static void truncate_often(int file)
{
	for (;;) {
		fill(file, 0, MIB, 0x55);
		check(!ftruncate(file, 512 * KIB) && !ftruncate(file, MIB) && !ftruncate(file, 0),
		      "ftruncate");
	}
}

/* What a read says it has moved is the file's or zeros, block by block. */
static void check_blocks(const struct range *range, int64_t done)
{
	for (int64_t i = 0; i + BLOCK <= done; i += BLOCK)
		check(all_are(range->memory + i, BLOCK, 0x55) || all_are(range->memory + i, BLOCK, 0),
		      "block %lld of %lld holds %#x", (long long)(i / BLOCK), (long long)(done / BLOCK),
		      range->memory[i]);
}

static void truncated(const struct range *range)
{
	int file = open_at("truncated", O_DIRECT | O_CREAT), status;
	uint64_t reads = 0, whole = 0;
	time_t end = time(NULL) + SECONDS;
	pid_t child;

	fflush(stdout);
	child = fork();
	check(child >= 0, "fork");
	if (!child)
		truncate_often(file);
	for (int64_t done; time(NULL) < end; reads++) {
		memset(range->memory, POISON, MIB);
		done = io(range, file, 0, 0, 0, MIB);
		check(done >= 0, "a read of a file that is truncated");
		check_blocks(range, done);
		whole += done == MIB;
		if (reads % 4)
			continue;
		memset(range->memory, 0x55, MIB);
		check(io(range, file, WEIR_P2P_WRITE, 0, 0, MIB) > 0, "a write to a file that is truncated");
	}
	kill(child, SIGKILL);
	check(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	      "the child ended with %#x", status);
	check(whole && whole < reads, "%llu of %llu reads found the whole file", (unsigned long long)whole,
	      (unsigned long long)reads);
	printf("%llu reads beside truncation, %llu of the whole file\n", (unsigned long long)reads,
	       (unsigned long long)whole);
	close(file);
}

int do_ext4(char **argv)
{
	int node = open_node(argv[0]);
	struct range range;

	folder = argv[1];
	read_all(node);
	write_all(node);
	range = take(node, 16 * MIB, MIB);
	holes(&range);
	ends(&range);
	journaled(&range);
	truncated(&range);
	drop(&range);
	return 0;
}
