/* SPDX-License-Identifier: BSD-3-Clause */
/* disk.c: requests in time, and what a loss of power leaves. */
#include "disk.h"

#include <stdlib.h>
#include <string.h>

#include <weir/nvme.h>

static u8 *spare; /* blocks that nobody has, linked by their first word */

static u8 *take_block(void)
{
	u8 *block = spare;

	if (block) {
		memcpy(&spare, block, sizeof(spare));
		return block;
	}
	block = aligned_alloc(DISK_BLOCK, DISK_BLOCK);
	if (!block)
		abort();
	return block;
}

static void give_block(u8 *block)
{
	if (!block)
		return;
	memcpy(block, &spare, sizeof(spare));
	spare = block;
}

static void set_block(struct sim_disk *disk, u64 at, const u8 *data)
{
	if (!disk->dirty[at]) {
		disk->before[at] = disk->now[at];
		disk->now[at] = NULL;
		disk->dirty[at] = true;
	}
	if (!disk->now[at])
		disk->now[at] = take_block();
	if (data)
		memcpy(disk->now[at], data, DISK_BLOCK);
	else
		memset(disk->now[at], 0, DISK_BLOCK);
}

static void keep(struct sim_disk *disk, u64 at)
{
	if (!disk->dirty[at])
		return;
	give_block(disk->before[at]);
	disk->before[at] = NULL;
	disk->dirty[at] = false;
}

static void apply_write(struct sim_disk *disk, const struct weir_io *io)
{
	u64 at = io->offset_bytes / DISK_BLOCK;

	for (unsigned i = 0; i < io->iov_count; i++)
		for (size_t done = 0; done < io->iov[i].iov_len; done += DISK_BLOCK, at++) {
			set_block(disk, at, (const u8 *)io->iov[i].iov_base + done);
			if (io->force_unit_access)
				keep(disk, at);
		}
}

static void apply_read(const struct sim_disk *disk, const struct weir_io *io)
{
	u64 at = io->offset_bytes / DISK_BLOCK;

	for (unsigned i = 0; i < io->iov_count; i++)
		for (size_t done = 0; done < io->iov[i].iov_len; done += DISK_BLOCK, at++) {
			u8 *to = (u8 *)io->iov[i].iov_base + done;

			if (disk->now[at])
				memcpy(to, disk->now[at], DISK_BLOCK);
			else
				memset(to, 0, DISK_BLOCK);
		}
}

static void apply(struct sim_disk *disk, const struct weir_io *io)
{
	u64 first = io->offset_bytes / DISK_BLOCK, count = io->bytes / DISK_BLOCK;

	switch (io->kind) {
	case WEIR_IO_READ: apply_read(disk, io); break;
	case WEIR_IO_WRITE: apply_write(disk, io); break;
	case WEIR_IO_FLUSH:
		for (u64 i = 0; i < disk->medium.bytes / DISK_BLOCK; i++)
			keep(disk, i);
		break;
	case WEIR_IO_DISCARD:
		if (sim_chance(1, 2))
			break;
		/* fall through */
	case WEIR_IO_ZERO:
		for (u64 i = first; i < first + count; i++)
			set_block(disk, i, NULL);
		break;
	}
}

static void unlink_io(struct sim_io *pending)
{
	struct sim_io **at = &pending->disk->pending;

	while (*at != pending)
		at = &(*at)->next;
	*at = pending->next;
}

/* Reads and writes take place somewhere between their begin and their end. */
static void finish(void *argument, u64 word)
{
	struct sim_io *pending = argument;
	struct sim_disk *disk = pending->disk;

	(void)word;
	if (pending->ended) {
		free(pending);
		return;
	}
	if (!pending->applied)
		apply(disk, pending->io);
	unlink_io(pending);
	pending->io->done(pending->io);
	sim_wake(*disk->task);
	sim_wake_condition(disk);
	free(pending);
}

/* It has no room for what is written. */
static bool is_too_much(const struct sim_disk *disk, const struct weir_io *io)
{
	u64 first = io->offset_bytes / DISK_BLOCK, count = io->bytes / DISK_BLOCK;

	for (u64 i = first; disk->full && io->kind == WEIR_IO_WRITE && i < first + count; i++)
		if (!disk->now[i])
			return true;
	return false;
}

static bool disk_submit(struct weir_medium *medium, struct weir_io *io)
{
	struct sim_disk *disk = (struct sim_disk *)medium;
	struct sim_io *pending;

	io->status = 0;
	if (disk->off) {
		io->status =
			io->kind == WEIR_IO_READ ? NVME_STATUS_UNRECOVERED_READ : NVME_STATUS_WRITE_FAULT;
		io->done(io);
		return true;
	}
	if (is_too_much(disk, io)) {
		io->status = NVME_STATUS_WRITE_FAULT;
		io->done(io);
		return true;
	}
	if (!disk->slow_ns || sim_chance(1, 2)) {
		apply(disk, io);
		io->done(io);
		return true;
	}
	pending = malloc(sizeof(*pending));
	if (!pending)
		abort();
	*pending = (struct sim_io){ .io = io, .disk = disk, .next = disk->pending };
	disk->pending = pending;
	if (io->kind == WEIR_IO_FLUSH || sim_chance(1, 2)) {
		apply(disk, io);
		pending->applied = true;
	}
	sim_at(1 + sim_below(disk->slow_ns), finish, pending, 0);
	return true;
}

/* The engine's own thread waits here; others are woken. */
static unsigned disk_poll(struct weir_medium *medium, unsigned thread)
{
	struct sim_disk *disk = (struct sim_disk *)medium;

	if (thread == 0 || !disk->pending || disk->off)
		return 0;
	sim.current->condition = disk;
	sim_sleep(disk->slow_ns + SIM_MS);
	sim.current->condition = NULL;
	return 1;
}

/* It outlives engines. */
static void disk_leave(struct weir_medium *medium)
{
	(void)medium;
}

void sim_disk_create(struct sim_disk *disk, u64 bytes, struct sim_task **task)
{
	static const struct weir_medium_ops ops = {
		.size = sizeof(ops), .submit = disk_submit, .poll = disk_poll, .close = disk_leave
	};

	if (bytes / DISK_BLOCK > DISK_MOST_BLOCKS)
		abort();
	*disk = (struct sim_disk){ .medium = { .ops = &ops,
					       .bytes = bytes,
					       .end_bytes = bytes,
					       .block_bytes = DISK_BLOCK,
					       .path = "simulated" },
				   .task = task };
}

void sim_disk_destroy(struct sim_disk *disk)
{
	sim_disk_wipe(disk);
}

void sim_disk_off(struct sim_disk *disk)
{
	disk->off = true;
	while (disk->pending) {
		struct sim_io *pending = disk->pending;

		disk->pending = pending->next;
		pending->ended = true;
		pending->io->status = NVME_STATUS_WRITE_FAULT;
		pending->io->done(pending->io);
	}
}

/* A block that was being written: its sectors are of before or of now. */
static void tear(struct sim_disk *disk, u64 at)
{
	for (u32 sector = 0; sector < DISK_BLOCK; sector += DISK_SECTOR) {
		if (sim_chance(1, 2))
			continue;
		if (disk->before[at])
			memcpy(disk->now[at] + sector, disk->before[at] + sector, DISK_SECTOR);
		else
			memset(disk->now[at] + sector, 0, DISK_SECTOR);
	}
}

void sim_disk_on(struct sim_disk *disk, bool lossy)
{
	disk->off = false;
	for (u64 i = 0; i < disk->medium.bytes / DISK_BLOCK; i++) {
		u64 fate = disk->dirty[i] && lossy ? sim_below(8) : 0;

		if (fate == 7) {
			tear(disk, i);
		} else if (fate > 3) {
			give_block(disk->now[i]);
			disk->now[i] = disk->before[i];
			disk->before[i] = NULL;
			disk->dirty[i] = false;
		}
		keep(disk, i);
	}
}

void sim_disk_wipe(struct sim_disk *disk)
{
	for (u64 i = 0; i < disk->medium.bytes / DISK_BLOCK; i++) {
		keep(disk, i);
		give_block(disk->now[i]);
		disk->now[i] = NULL;
	}
}

bool sim_disk_rot(struct sim_disk *disk, u64 block)
{
	if (!disk->now[block])
		return false;
	disk->now[block][sim_below(DISK_BLOCK)] ^= (u8)(1u << sim_below(8));
	return true;
}
