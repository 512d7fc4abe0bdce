/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/ram.c: a medium in host memory.
 *
 * Owns: one anonymous mapping, unless its memory is lent. Every request ends inside
 * submit(), so threads need nothing from each other; requests to the same bytes at
 * the same time may mix, as on any disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../backend/error.h"
#include "medium.h"
#include <weir/nvme.h>

enum {
	RETURNED_BYTES = 256 * 1024, /* from here on, madvise() beats memset() */
	LINE_BYTES = 64,             /* of a cache, near enough */
	EXPECTED_BYTES = 512,        /* fetched ahead; the core itself follows what is longer */
};

struct ram {
	struct weir_medium medium;
	unsigned char *bytes;
	bool lent;
};

static void d2h(const unsigned char *from, const struct iovec *iov, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		memcpy(iov[i].iov_base, from, iov[i].iov_len);
		from += iov[i].iov_len;
	}
}

/* @left: of the segments, the bytes before the medium's end */
static void h2d(unsigned char *to, const struct iovec *iov, unsigned count, uint64_t left)
{
	for (unsigned i = 0; i < count && left; i++) {
		uint64_t bytes = iov[i].iov_len < left ? iov[i].iov_len : left;

		memcpy(to, iov[i].iov_base, bytes);
		to += bytes;
		left -= bytes;
	}
}

/* Whole pages of a large range go back to the system, and read as zeros from then on; but not those that a
 * device has pinned, which would go on reading what was there. */
static void clear(unsigned char *at, uint64_t bytes, bool lent)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t head = (page - (uintptr_t)at % page) % page;
	uint64_t whole;

	if (bytes < RETURNED_BYTES || lent) {
		memset(at, 0, bytes);
		return;
	}
	whole = (bytes - head) / page * page;
	memset(at, 0, head);
	if (madvise(at + head, whole, MADV_DONTNEED))
		memset(at + head, 0, whole);
	memset(at + head + whole, 0, bytes - head - whole);
}

/* What lies behind the medium's end is zero, and stays it. */
static void ram_do(const struct ram *ram, struct weir_io *io)
{
	unsigned char *at = ram->bytes + io->offset_bytes;

	switch (io->kind) {
	case WEIR_IO_READ: d2h(at, io->iov, io->iov_count); break;
	case WEIR_IO_WRITE: h2d(at, io->iov, io->iov_count, weir_medium_kept(&ram->medium, io)); break;
	case WEIR_IO_ZERO:
	case WEIR_IO_DISCARD: clear(at, io->bytes, ram->lent); break;
	case WEIR_IO_FLUSH: break;
	}
}

static bool ram_submit(struct weir_medium *medium, struct weir_io *io)
{
	struct ram *ram = (struct ram *)medium;

	io->status = NVME_STATUS_SUCCESS;
	if (io->kind == WEIR_IO_FLUSH) {
		io->done(io);
		return true;
	}
	if (io->offset_bytes > medium->bytes || io->bytes > medium->bytes - io->offset_bytes)
		io->status = NVME_STATUS_LBA_OUT_OF_RANGE;
	else
		ram_do(ram, io);
	io->done(io);
	return true;
}

static unsigned ram_poll(struct weir_medium *medium, unsigned thread)
{
	(void)medium;
	(void)thread;
	return 0;
}

static void ram_close(struct weir_medium *medium)
{
	struct ram *ram = (struct ram *)medium;

	if (!ram->lent)
		munmap(ram->bytes, medium->bytes);
	free(ram);
}

static void ram_expect(const struct weir_medium *medium, enum weir_io_kind kind, uint64_t offset_bytes)
{
	const unsigned char *at = ((const struct ram *)medium)->bytes + offset_bytes;

	if (kind != WEIR_IO_READ)
		return; /* what is written over whole needs no reading before */
	for (unsigned i = 0; i < EXPECTED_BYTES && i < medium->block_bytes; i += LINE_BYTES)
		__builtin_prefetch(at + i);
}

static const struct weir_medium_ops ram_ops = {
	.size = sizeof(ram_ops),
	.submit = ram_submit,
	.poll = ram_poll,
	.close = ram_close,
	.expect = ram_expect,
};

static int read_all(int file, const char *path, unsigned char *to, uint64_t bytes)
{
	while (bytes) {
		ssize_t got = read(file, to, bytes);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return weir_fail(errno, "cannot read %s: %s", path, strerror(errno));
		if (!got)
			return weir_fail(EIO, "%s became shorter while it was read", path);
		to += got;
		bytes -= (uint64_t)got;
	}
	return 0;
}

static int check_file(int file, const char *path, uint64_t room, uint64_t *bytes)
{
	struct stat info;

	if (fstat(file, &info))
		return weir_fail(errno, "cannot stat %s: %s", path, strerror(errno));
	if (!S_ISREG(info.st_mode))
		return weir_fail(EINVAL, "%s is not a regular file, so it cannot be loaded", path);
	*bytes = (uint64_t)info.st_size;
	if (*bytes > room)
		return weir_fail(
			EFBIG, "%s has %" PRIu64 " bytes, the medium only %" PRIu64 ": ask for a larger one",
			path, *bytes, room);
	return 0;
}

static int load(struct ram *ram, const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t bytes = 0;
	int error;

	if (file < 0)
		return weir_fail(errno, "cannot open %s: %s", path, strerror(errno));
	error = check_file(file, path, ram->medium.bytes, &bytes);
	if (!error)
		error = read_all(file, path, ram->bytes, bytes);
	close(file);
	return error;
}

/* A medium without a size of its own ends where its file does. */
static int measure(const char *path, uint64_t *bytes)
{
	struct stat info;

	if (stat(path, &info))
		return weir_fail(errno, "cannot open %s: %s", path, strerror(errno));
	*bytes = (uint64_t)info.st_size;
	if (S_ISREG(info.st_mode) && *bytes)
		return 0;
	return weir_fail(
		EINVAL,
		"%s is %s, so it gives a storage no size: give a file with something in it, or a size", path,
		*bytes ? "no regular file" : "empty");
}

int weir_medium_check_shape(uint64_t bytes, uint32_t block_bytes)
{
	if (block_bytes != 512 && block_bytes != 4096)
		return weir_fail(EINVAL, "blocks of %" PRIu32 " bytes: give 512 or 4096", block_bytes);
	if (!bytes || bytes % block_bytes || bytes > SIZE_MAX / 2)
		return weir_fail(EINVAL,
				 "a medium of %" PRIu64 " bytes is not a positive multiple of %" PRIu32,
				 bytes, block_bytes);
	return 0;
}

static int map_bytes(struct ram *ram, const struct weir_lender *lender)
{
	void *bytes;

	ram->lent = lender != NULL;
	if (lender) {
		int error = ram->medium.bytes <= lender->most
				    ? lender->lend(lender->of, ram->medium.bytes, &bytes)
				    : weir_fail(EFBIG, "%" PRIu64 " bytes are too many to be pinned",
						ram->medium.bytes);

		ram->medium.memory = ram->bytes = error ? NULL : bytes;
		return error;
	}
	bytes = mmap(NULL, ram->medium.bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (bytes == MAP_FAILED)
		return weir_fail(errno,
				 "cannot map %" PRIu64
				 " bytes for a medium in memory: %s; ask for a smaller one",
				 ram->medium.bytes, strerror(errno));
	ram->medium.memory = ram->bytes = bytes;
	/* Random blocks miss the TLB as well as the caches; where it is refused, they do. */
	madvise(bytes, ram->medium.bytes, MADV_HUGEPAGE);
	return 0;
}

int weir_medium_ram_open_lent(uint64_t bytes, uint32_t block_bytes, const char *load_path,
			      const struct weir_lender *lender, struct weir_medium **out)
{
	uint64_t end = bytes;
	struct ram *ram;
	int error = bytes || !load_path ? 0 : measure(load_path, &end);

	if (!error && !bytes)
		bytes = (end + block_bytes - 1) / block_bytes * block_bytes;
	if (!error)
		error = weir_medium_check_shape(bytes, block_bytes);
	if (error)
		return error;
	ram = calloc(1, sizeof(*ram));
	if (!ram)
		return weir_fail(ENOMEM, "no memory for a medium");
	ram->medium = (struct weir_medium){ .ops = &ram_ops,
					    .bytes = bytes,
					    .end_bytes = end,
					    .block_bytes = block_bytes,
					    .in_memory = true,
					    .path = "ram" };
	error = map_bytes(ram, lender);
	if (error)
		goto free_ram;
	error = load_path ? load(ram, load_path) : 0;
	if (error)
		goto unmap;
	*out = &ram->medium;
	return 0;
unmap:
	ram_close(&ram->medium);
	return error;
free_ram:
	free(ram);
	return error;
}

int weir_medium_ram_open(uint64_t bytes, uint32_t block_bytes, const char *load_path,
			 struct weir_medium **out)
{
	return weir_medium_ram_open_lent(bytes, block_bytes, load_path, NULL, out);
}
