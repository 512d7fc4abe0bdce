/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_direct.h: an engine's medium without a controller, over a medium that loses power.
 *
 * Owns: the medium behind: what was not flushed may be there after a loss of power or not, block by block, as
 * lots of a seed say.
 */
#ifndef WEIR_TESTS_ENGINE_DIRECT_H
#define WEIR_TESTS_ENGINE_DIRECT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <weir/core/mix.h>
#include <weir/weir.h>

#include "backend/error.h"
#include "engine/parts.h"

enum { BLOCK = 4096, VID = 7, LEASE = 5, MAP = 9, CLIENT = 3 };

/**
 * struct lossy - such a medium
 * @now: its bytes as reads see them; @durable: as they are after a loss of power; @dirty: which differ, by
 * block
 * @writes: how many have come
 * @discarded: blocks that were, and are zeros now
 * @cut: the power fails during that one; 0: never
 * @off: it has failed: all requests do
 * @full_from: writes that reach this byte fail; 0: none
 * @held: with @holds: a write that has come and is not carried out; with @holds_reads: a read
 * @meanwhile: called when a write has been carried out, but not within itself; NULL: nothing happens
 */
struct lossy {
	struct weir_medium medium;
	unsigned char *now;
	unsigned char *durable;
	bool *dirty;
	u64 writes;
	u64 discarded;
	u64 cut;
	u64 lots;
	bool off;
	u64 full_from;
	bool holds, holds_reads;
	struct weir_io *held;
	void (*meanwhile)(struct lossy *lossy, const struct weir_io *io);
	void *argument;
	bool is_meanwhile;
};

static inline u64 lossy_draw(struct lossy *lossy)
{
	return weir_mix_next(&lossy->lots);
}

static inline void lossy_keep(struct lossy *lossy, u64 block)
{
	memcpy(lossy->durable + block * BLOCK, lossy->now + block * BLOCK, BLOCK);
	lossy->dirty[block] = false;
}

static inline void lossy_write(struct lossy *lossy, const struct weir_io *io)
{
	u64 at = io->offset_bytes, first = at / BLOCK, count = io->bytes / BLOCK;

	for (unsigned i = 0; i < io->iov_count; i++) {
		memcpy(lossy->now + at, io->iov[i].iov_base, io->iov[i].iov_len);
		at += io->iov[i].iov_len;
	}
	for (u64 i = first; i < first + count; i++)
		lossy->dirty[i] = true;
	if (++lossy->writes == lossy->cut)
		lossy->off = true; /* which of its blocks got there, lots say */
	else if (io->force_unit_access)
		for (u64 i = first; i < first + count; i++)
			lossy_keep(lossy, i);
	if (!lossy->meanwhile || lossy->is_meanwhile || lossy->off)
		return;
	lossy->is_meanwhile = true;
	lossy->meanwhile(lossy, io);
	lossy->is_meanwhile = false;
}

static inline void lossy_discard(struct lossy *lossy, const struct weir_io *io)
{
	memset(lossy->now + io->offset_bytes, 0, io->bytes);
	memset(lossy->dirty + io->offset_bytes / BLOCK, true, io->bytes / BLOCK);
	lossy->discarded += io->bytes / BLOCK;
}

/* Whether there is no room for it. */
static inline bool lossy_is_full(const struct lossy *lossy, const struct weir_io *io)
{
	return lossy->full_from && io->kind == WEIR_IO_WRITE && io->offset_bytes >= lossy->full_from;
}

static inline bool lossy_submit(struct weir_medium *medium, struct weir_io *io)
{
	struct lossy *lossy = (struct lossy *)medium;
	u64 at = io->offset_bytes;

	if (!lossy->held && (io->kind == WEIR_IO_WRITE  ? lossy->holds
			     : io->kind == WEIR_IO_READ ? lossy->holds_reads
							: false)) {
		lossy->held = io;
		return true;
	}
	io->status = lossy_is_full(lossy, io) ? NVME_STATUS_CAPACITY_EXCEEDED : 0;
	if (!lossy->off && io->kind == WEIR_IO_READ)
		for (unsigned i = 0; i < io->iov_count; at += io->iov[i++].iov_len)
			memcpy(io->iov[i].iov_base, lossy->now + at, io->iov[i].iov_len);
	else if (!lossy->off && io->kind == WEIR_IO_WRITE && !io->status)
		lossy_write(lossy, io);
	else if (!lossy->off && io->kind == WEIR_IO_DISCARD)
		lossy_discard(lossy, io);
	else if (!lossy->off && io->kind == WEIR_IO_FLUSH)
		for (u64 i = 0; i < medium->bytes / BLOCK; i++)
			if (lossy->dirty[i])
				lossy_keep(lossy, i);
	if (lossy->off)
		io->status =
			io->kind == WEIR_IO_READ ? NVME_STATUS_UNRECOVERED_READ : NVME_STATUS_WRITE_FAULT;
	io->done(io);
	return true;
}

/* What it holds is carried out. */
static inline void lossy_let_go(struct lossy *lossy)
{
	struct weir_io *held = lossy->held;

	assert_non_null(held);
	lossy->held = NULL;
	lossy_submit(&lossy->medium, held);
}

static inline unsigned lossy_poll(struct weir_medium *medium, unsigned thread)
{
	(void)medium;
	(void)thread;
	return 0;
}

/* It outlives engines: tests open the next one on it. */
static inline void lossy_leave(struct weir_medium *medium)
{
	(void)medium;
}

static inline void lossy_create(struct lossy *lossy, u64 bytes)
{
	static const struct weir_medium_ops ops = {
		.size = sizeof(ops), .submit = lossy_submit, .poll = lossy_poll, .close = lossy_leave
	};

	*lossy = (struct lossy){ .medium = { .ops = &ops,
					     .bytes = bytes,
					     .end_bytes = bytes,
					     .block_bytes = BLOCK,
					     .path = "lossy" } };
	lossy->now = calloc(1, bytes);
	lossy->durable = calloc(1, bytes);
	lossy->dirty = calloc(bytes / BLOCK, sizeof(bool));
	assert_true(lossy->now && lossy->durable && lossy->dirty);
}

static inline void lossy_destroy(struct lossy *lossy)
{
	free(lossy->now);
	free(lossy->durable);
	free(lossy->dirty);
}

enum { NOTHING_IS_KEPT = 0 }; /* a seed of lossy_crash() */

/* The power comes back: of what was not durable, some blocks are there, or none. */
static inline void lossy_crash(struct lossy *lossy, u64 seed)
{
	lossy->lots = seed;
	for (u64 i = 0; i < lossy->medium.bytes / BLOCK; i++)
		if (lossy->dirty[i] && seed != NOTHING_IS_KEPT && lossy_draw(lossy) & 1)
			lossy_keep(lossy, i);
	memcpy(lossy->now, lossy->durable, lossy->medium.bytes);
	memset(lossy->dirty, 0, lossy->medium.bytes / BLOCK * sizeof(bool));
	lossy->off = false;
	lossy->cut = lossy->writes = 0;
}

/* Another medium with what is durable on this one. */
static inline void lossy_copy(struct lossy *lossy, const struct lossy *from)
{
	lossy_create(lossy, from->medium.bytes);
	memcpy(lossy->now, from->durable, from->medium.bytes);
	memcpy(lossy->durable, from->durable, from->medium.bytes);
}

/* ---- the engine ---- */

static inline struct weir_engine *direct_open(struct lossy *lossy)
{
	struct weir_engine *engine = NULL;

	if (weir_engine_open(&(struct weir_engine_options){ .behind = &lossy->medium, .threads = 1 },
			     &engine))
		return NULL;
	return engine;
}

static inline void direct_close(struct weir_engine *engine)
{
	struct weir_medium *medium = weir_engine_medium(engine);

	medium->ops->close(medium);
}

static inline struct nvme_volume_engine_status direct_status(struct weir_engine *engine)
{
	struct nvme_volume_engine_status status;

	weir_engine_status(engine, &status);
	return status;
}

/* By a daemon whose map has epoch @epoch. */
static inline u32 direct_admin_by(struct weir_engine *engine, u32 epoch, u32 opcode, u32 cdw11, u32 cdw12,
				  void *page)
{
	return weir_engine_admin(
		engine, NULL,
		&(struct nvme_sqe){
			.cdw0 = opcode, .cdw10 = VID, .cdw11 = cdw11, .cdw12 = cdw12, .cdw13 = epoch },
		page);
}

/* By the daemon whose map the engine has. */
static inline u32 direct_admin(struct weir_engine *engine, u32 opcode, u32 cdw11, u32 cdw12, void *page)
{
	return direct_admin_by(engine, direct_status(engine).map_epoch, opcode, cdw11, cdw12, page);
}

static inline u32 direct_map(struct weir_engine *engine, u32 epoch)
{
	struct nvme_volume_map map = { .epoch = epoch, .count = 1 };

	map.engines[0] = (struct nvme_volume_engine){ .id = 1, .weight = 100 };
	return direct_admin(engine, NVME_ADMIN_VOLUME_MAP, 0, 0, &map);
}

static inline u32 direct_prepare(struct weir_engine *engine)
{
	struct nvme_volume volume = {
		.vid = VID, .replicas = 1, .unit_log2 = 4, .weight = 1, .blocks = 1 << 20, .name = "volume"
	};
	struct nvme_volume_permission permission = {
		.vid = VID, .client = CLIENT, .rights = 3, .hostnqn = "nqn.a"
	};
	u32 status = direct_admin(engine, NVME_ADMIN_VOLUME_ADD, 0, 0, &volume);

	if (!status)
		status = direct_admin(engine, NVME_ADMIN_VOLUME_CHMOD, 0, 0, &permission);
	return status ? status : direct_admin(engine, NVME_ADMIN_VOLUME_LEASE, LEASE, CLIENT, NULL);
}

/* An engine on a new medium, with a volume. */
static inline struct weir_engine *direct_begin(struct lossy *lossy, u64 bytes)
{
	struct weir_engine *engine;

	lossy_create(lossy, bytes);
	engine = direct_open(lossy);
	assert_non_null(engine);
	assert_int_equal(direct_map(engine, MAP), 0);
	assert_int_equal(direct_prepare(engine), 0);
	return engine;
}

static u32 direct_lease = LEASE; /* of requests; ~0: they are the manager's, whose versions are as given */

static inline u64 direct_epochs(void)
{
	return (u64)MAP << 32 | direct_lease;
}

/* In tests versions count from 1 on, in each lease; 0, of a read: any. */
static inline u64 direct_version(u64 version)
{
	bool counts = version && direct_lease != ~(u32)0;

	return counts ? (u64)direct_lease << NVME_VOLUME_VERSION_EPOCH | version : version;
}

/* Of a request of @kind: a read goes by the map that the engine has. */
static inline u64 direct_epochs_of(struct weir_engine *engine, enum weir_io_kind kind)
{
	return kind == WEIR_IO_READ ? (u64)direct_status(engine).map_epoch << 32 : direct_epochs();
}

/** struct direct - a request */
struct direct {
	struct weir_io io;
	struct iovec iov;
	bool ended;
};

static inline void direct_done(struct weir_io *io)
{
	((struct direct *)io)->ended = true;
}

static inline u32 direct_io(struct weir_engine *engine, enum weir_io_kind kind, u64 vba, u32 blocks,
			    u64 version, bool durable, void *data)
{
	struct weir_medium *medium = weir_engine_medium(engine);
	struct direct direct = { .io = { .kind = kind,
					 .force_unit_access = durable,
					 .offset_bytes = weir_engine_offset(VID, (u32)vba),
					 .bytes = (u64)blocks * BLOCK,
					 .iov_count = data ? 1 : 0,
					 .version = direct_version(version),
					 .epochs = direct_epochs_of(engine, kind),
					 .done = direct_done },
				 .iov = { data, (size_t)blocks * BLOCK } };

	direct.io.iov = &direct.iov;
	for (u32 tries = 0; !medium->ops->submit(medium, &direct.io); tries++) {
		assert_true(tries < 100000);
		medium->ops->poll(medium, 0);
	}
	while (!direct.ended)
		medium->ops->poll(medium, 0);
	return direct.io.status;
}

/* Submit one of block @vba that the medium behind holds. */
static inline void direct_hold(struct weir_engine *engine, struct lossy *lossy, enum weir_io_kind kind,
			       u64 vba, u64 version, void *data, struct direct *direct)
{
	struct weir_medium *medium = weir_engine_medium(engine);
	bool taken = false;

	*direct = (struct direct){ .io = { .kind = kind,
					   .offset_bytes = weir_engine_offset(VID, (u32)vba),
					   .bytes = BLOCK,
					   .iov = &direct->iov,
					   .iov_count = 1,
					   .version = direct_version(version),
					   .epochs = direct_epochs_of(engine, kind),
					   .done = direct_done },
				   .iov = { data, BLOCK } };
	while (!taken) {
		lossy->holds = kind == WEIR_IO_WRITE;
		lossy->holds_reads = kind == WEIR_IO_READ;
		taken = medium->ops->submit(medium, &direct->io);
		lossy->holds = lossy->holds_reads = false;
		if (!taken)
			medium->ops->poll(medium, 0);
	}
	assert_non_null(lossy->held);
}

/* What a block holds as @version: 0: zeros. */
static inline void direct_fill(unsigned char *data, u64 vba, u64 version)
{
	u64 *words = (u64 *)(void *)data;

	for (u32 i = 0; i < BLOCK / sizeof(u64); i++)
		words[i] = version ? version << 32 ^ vba << 12 ^ i : 0;
}

static inline u32 direct_write(struct weir_engine *engine, u64 vba, u64 version, bool durable)
{
	unsigned char data[BLOCK] __attribute__((aligned(BLOCK)));

	direct_fill(data, vba, version);
	return direct_io(engine, WEIR_IO_WRITE, vba, 1, version, durable, data);
}

/* Whether block @vba is read as what was written as @version. */
static inline bool direct_holds(struct weir_engine *engine, u64 vba, u64 version)
{
	unsigned char data[BLOCK], expected[BLOCK];

	assert_int_equal(direct_io(engine, WEIR_IO_READ, vba, 1, 0, false, data), 0);
	direct_fill(expected, vba, version);
	return !memcmp(data, expected, BLOCK);
}

/** direct_place() - the byte of the medium where block @vba is in @version */
static inline u64 direct_place(const struct lossy *lossy, u64 vba, u64 version)
{
	unsigned char expected[BLOCK];
	u64 at = 0;

	direct_fill(expected, vba, version);
	while (memcmp(lossy->now + at, expected, BLOCK) != 0)
		at += BLOCK;
	return at;
}

static inline u32 direct_trim(struct weir_engine *engine, u64 vba, u64 version, bool durable)
{
	return direct_io(engine, WEIR_IO_ZERO, vba, 1, version, durable, NULL);
}

static inline u32 direct_flush(struct weir_engine *engine)
{
	return direct_io(engine, WEIR_IO_FLUSH, 0, 0, 0, false, NULL);
}

#endif
