/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_fuzz.c: an engine whose disk has anything in the place of its tables, and admin commands of
 * anything.
 *
 * Owns: a small engine with a volume and a few blocks; the input then damages its super block, checkpoints
 * and journal, and it is opened again. What is read is what was written, or an error; no command writes
 * behind its page.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "engine/parts.h"

#include "fuzz.h"

enum { BLOCK = 4096, BLOCKS = 256, VID = 3, WRITTEN = 8, PATCHES = 64, COMMANDS = 64 };

/** struct disk - a medium in memory */
struct disk {
	struct weir_medium medium;
	uint8_t bytes[(size_t)BLOCKS * BLOCK];
};

static struct disk disk;
static uint8_t made[sizeof(disk.bytes)]; /* as an engine left it */
static bool is_made;

static void move(const struct weir_io *io, bool to_disk)
{
	uint8_t *at = disk.bytes + io->offset_bytes;

	for (unsigned i = 0; i < io->iov_count; at += io->iov[i++].iov_len)
		memcpy(to_disk ? at : io->iov[i].iov_base, to_disk ? io->iov[i].iov_base : at,
		       io->iov[i].iov_len);
}

static bool disk_submit(struct weir_medium *medium, struct weir_io *io)
{
	(void)medium;
	fuzz_must(io->offset_bytes <= sizeof(disk.bytes) &&
		  io->bytes <= sizeof(disk.bytes) - io->offset_bytes);
	io->status = 0;
	if (io->kind == WEIR_IO_READ || io->kind == WEIR_IO_WRITE)
		move(io, io->kind == WEIR_IO_WRITE);
	else if (io->kind == WEIR_IO_ZERO)
		memset(disk.bytes + io->offset_bytes, 0, io->bytes);
	io->done(io);
	return true;
}

static unsigned disk_poll(struct weir_medium *medium, unsigned thread)
{
	(void)medium;
	(void)thread;
	return 0;
}

static void disk_close(struct weir_medium *medium)
{
	(void)medium;
}

static struct weir_engine *open_engine(void)
{
	static const struct weir_medium_ops ops = {
		.size = sizeof(ops), .submit = disk_submit, .poll = disk_poll, .close = disk_close
	};
	struct weir_engine *engine = NULL;

	disk.medium = (struct weir_medium){ .ops = &ops,
					    .bytes = sizeof(disk.bytes),
					    .end_bytes = sizeof(disk.bytes),
					    .block_bytes = BLOCK,
					    .path = "memory" };
	return weir_engine_open(&(struct weir_engine_options){ .behind = &disk.medium, .threads = 1 },
				&engine) == 0
		       ? engine
		       : NULL;
}

static uint32_t admin(struct weir_engine *engine, struct nvme_sqe *sqe, const void *data, size_t bytes)
{
	static _Alignas(4096) uint8_t page[2 * BLOCK];
	uint32_t status;

	memset(page, 0, BLOCK);
	memset(page + BLOCK, 0x5a, BLOCK);
	memcpy(page, data, bytes < BLOCK ? bytes : BLOCK);
	status = weir_engine_admin(engine, "nqn.host", sqe, page);
	for (unsigned i = 0; i < BLOCK; i++)
		fuzz_must(page[BLOCK + i] == 0x5a);
	return status;
}

/** struct moved - a request, and whether it has ended */
struct moved {
	struct weir_io io;
	bool ended;
};

static void done(struct weir_io *io)
{
	((struct moved *)io)->ended = true;
}

static uint32_t move_block(struct weir_engine *engine, enum weir_io_kind kind, uint32_t vba, uint8_t *data)
{
	struct weir_medium *medium = weir_engine_medium(engine);
	struct iovec iov = { data, BLOCK };
	struct moved moved = { .io = { .kind = kind,
				       .offset_bytes = weir_engine_offset(VID, vba),
				       .bytes = BLOCK,
				       .iov = &iov,
				       .iov_count = 1,
				       .force_unit_access = kind == WEIR_IO_WRITE,
				       .epochs = (u64)engine->map.epoch << 32 | ~(u32)0,
				       .version = kind == WEIR_IO_WRITE ? vba + 1 : 0,
				       .done = done } };

	fuzz_must(medium->ops->submit(medium, &moved.io));
	for (unsigned i = 0; i < 100 && !moved.ended; i++)
		(void)medium->ops->poll(medium, 0);
	fuzz_must(moved.ended);
	return moved.io.status;
}

static void fill(uint8_t *data, uint32_t vba)
{
	memset(data, (int)(vba * 7 + 1), BLOCK);
}

static void make(void)
{
	struct nvme_volume volume = {
		.vid = VID, .replicas = 1, .weight = 1, .blocks = WRITTEN, .name = "v"
	};
	struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_VOLUME_ADD, .cdw10 = VID }; /* it has no map yet */
	static _Alignas(4096) uint8_t data[BLOCK];
	struct weir_engine *engine = open_engine();

	fuzz_must(engine && admin(engine, &sqe, &volume, sizeof(volume)) == 0);
	for (uint32_t vba = 0; vba < WRITTEN; vba++) {
		fill(data, vba);
		fuzz_must(move_block(engine, WEIR_IO_WRITE, vba, data) == 0);
	}
	weir_engine_medium(engine)->ops->close(weir_engine_medium(engine));
	memcpy(made, disk.bytes, sizeof(made));
	is_made = true;
}

/* Blocks of tables, which come before data. */
static void damage(struct fuzz *fuzz, uint64_t tables)
{
	uint32_t count = 0, words[2];

	(void)fuzz_take(fuzz, &count, 1);
	for (count %= PATCHES; count; count--) {
		uint8_t bytes[8];

		if (!fuzz_take(fuzz, words, sizeof(words)) || !fuzz_take(fuzz, bytes, sizeof(bytes)))
			return;
		memcpy(disk.bytes + (words[0] % (tables * BLOCK - sizeof(bytes))), bytes, 1 + words[1] % 8);
	}
}

static void command(struct weir_engine *engine, struct fuzz *fuzz)
{
	static uint8_t data[BLOCK];
	struct nvme_sqe sqe = { .nsid = 1 };
	uint8_t opcode = 0, words = 0;

	(void)fuzz_take(fuzz, &opcode, 1);
	(void)fuzz_take(fuzz, &sqe.cdw10, 24);
	(void)fuzz_take(fuzz, &words, 1);
	memset(data, 0, sizeof(data));
	(void)fuzz_take(fuzz, data, words);
	sqe.cdw0 = NVME_ADMIN_VOLUME_ADD + opcode % 32;
	if (weir_engine_is_admin(sqe.cdw0))
		(void)admin(engine, &sqe, data, sizeof(data));
}

/* @is_whole: nothing was damaged, and no command came. */
static void read_all(struct weir_engine *engine, bool is_whole)
{
	static _Alignas(4096) uint8_t data[BLOCK], wanted[BLOCK], zeros[BLOCK];

	for (uint32_t vba = 0; vba < WRITTEN; vba++) {
		uint32_t status = move_block(engine, WEIR_IO_READ, vba, data);

		fill(wanted, vba);
		fuzz_must(status || !memcmp(data, wanted, BLOCK) ||
			  (!is_whole && !memcmp(data, zeros, BLOCK)));
		fuzz_must(!is_whole || !status);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz fuzz = { data, bytes };
	struct weir_engine *engine;
	uint64_t tables;

	if (!is_made)
		make();
	memcpy(disk.bytes, made, sizeof(made));
	engine = open_engine();
	fuzz_must(engine);
	read_all(engine, true);
	tables = engine->shape.data;
	weir_engine_medium(engine)->ops->close(weir_engine_medium(engine));
	memcpy(disk.bytes, made, sizeof(made));
	damage(&fuzz, tables);
	engine = open_engine();
	if (!engine)
		return 0;
	read_all(engine, false);
	for (unsigned i = 0; i < COMMANDS && fuzz.bytes; i++)
		command(engine, &fuzz);
	weir_engine_medium(engine)->ops->close(weir_engine_medium(engine));
	return 0;
}
