/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/change.c: writes, and tombstones for what is trimmed.
 *
 * Owns: the rule of versions. A change is made in the table when its data is there: whether it still may is
 * checked once more then, so that nothing of an epoch that has passed appears after the command that made it
 * pass has ended.
 */
#include <stdlib.h>

#include "request.h"

enum version { VERSION_NEW, VERSION_EQUAL, VERSION_OLD };

/* Of the block whose header is @at, if any. */
static enum version compare(const struct weir_engine *engine, u32 at, u64 version)
{
	u64 is = at != ENGINE_NONE ? engine_header(engine, at)->version : 0;

	if (at == ENGINE_NONE || version > is || (version == is && engine_header(engine, at)->damaged))
		return VERSION_NEW;
	return version == is ? VERSION_EQUAL : VERSION_OLD;
}

static bool is_managers(const struct weir_io *io)
{
	return (u32)io->epochs == ~(u32)0;
}

/* A client's versions are those of its lease: one of a later lease would win over what its writer writes. The
 * manager copies what any lease has written. */
static bool is_of_lease(const struct weir_io *io, u32 blocks)
{
	u32 lease = (u32)io->epochs;

	return is_managers(io) || (io->version >> NVME_VOLUME_VERSION_EPOCH == lease &&
				   (io->version + blocks - 1) >> NVME_VOLUME_VERSION_EPOCH == lease);
}

/* Which blocks are new: @wanted, and @request's fresh of them are in the table for the first time. A client
 * takes an old version for one that it has written since: one of another lease is not that. */
static u32 sort_out(struct engine_request *request, u32 *wanted)
{
	struct weir_engine *engine = request->engine;
	const struct weir_io *io = request->given;
	u32 vid = request_vid(io), vba = request_vba(io);
	u32 status = engine->failed ? (u32)NVME_STATUS_WRITE_FAULT : engine_still(engine, vid, io->epochs);

	*wanted = 0;
	if (!is_of_lease(io, request->blocks))
		return NVME_STATUS_INVALID_FIELD | NVME_STATUS_DNR;
	if (status)
		return status;
	for (u32 i = 0; i < request->blocks; i++) {
		u32 at = engine_find(engine, vid, vba + i);
		enum version version = compare(engine, at, io->version + i);

		if (version == VERSION_OLD)
			return NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR;
		request->pieces[i].index = version == VERSION_EQUAL ? ENGINE_NONE : 0;
		*wanted += version == VERSION_NEW;
		request->fresh +=
			version == VERSION_NEW && (at == ENGINE_NONE || engine_is_tombstone(engine, at));
	}
	return NVME_STATUS_SUCCESS;
}

/* Header @index, which was taken, is of block @i of @request from now on, if that still may be. */
static u32 put(struct engine_request *request, u32 i, u32 index)
{
	struct weir_engine *engine = request->engine;
	const struct weir_io *io = request->given;
	struct engine_header *header = engine_header(engine, index);
	u32 vid = request_vid(io), vba = request_vba(io) + i;
	u32 at = engine_find(engine, vid, vba);
	enum version version = compare(engine, at, io->version + i);
	bool repairs = at != ENGINE_NONE && engine_header(engine, at)->version == io->version + i;

	if (version != VERSION_NEW) {
		engine_give_back(engine, index);
		return version == VERSION_OLD ? NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR
					      : NVME_STATUS_SUCCESS;
	}
	header->version = io->version + i;
	header->vba = vba;
	header->vid = (u16)vid;
	header->crc = request->pieces[i].crc;
	header->damaged = 0;
	if (!engine_install(engine, index)) {
		engine_give_back(engine, index);
		return NVME_STATUS_CAPACITY_EXCEEDED;
	}
	engine->status.repaired += repairs;
	engine->strays |= is_managers(io);
	engine_record_block(engine, index);
	return NVME_STATUS_SUCCESS;
}

/* All data is there, or the medium behind has failed, for want of space, too: of that the engine has enough.
 */
static u32 write_settle(struct engine_request *request)
{
	struct weir_engine *engine = request->engine;
	u32 status = request->status ? NVME_STATUS_WRITE_FAULT : NVME_STATUS_SUCCESS;

	if (!status)
		status = engine_still(engine, request_vid(request->given), request->given->epochs);
	engine->coming -= request->fresh;
	engine->status.write_faults += request->status != 0;
	for (u32 i = 0; i < request->blocks; i++) {
		u32 index = request->pieces[i].index, of_block;

		if (index == ENGINE_NONE)
			continue;
		if (request->status ||
		    (status && status != (NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR))) {
			engine_give_back(engine, index);
			continue;
		}
		of_block = put(request, i, index);
		status = status ? status : of_block;
		engine->status.user_writes += !of_block;
	}
	return status;
}

void engine_write_finish(struct engine_request *request)
{
	struct weir_engine *engine = request->engine;
	u64 commit = 0;

	engine_lock(engine);
	request->status = (u16)write_settle(request);
	if (!request->status && request->given->force_unit_access)
		commit = engine_want_commit(engine);
	engine_unlock(engine);
	engine_request_end_after(request, commit);
}

/* There is no room for @wanted blocks now; false: garbage is to be collected first. */
static bool give_up(struct weir_engine *engine, u32 wanted, u32 *status)
{
	bool never = engine_is_out_of_space(engine);

	engine->want_blocks = wanted;
	engine_want_space(engine);
	if (never)
		*status = NVME_STATUS_CAPACITY_EXCEEDED;
	return never;
}

/* Blocks to write to; false: not now, nor while what is gone still takes up room. Whoever waits keeps others
 * of its thread waiting, too, and so helps.
 */
static bool take(struct engine_request *request, u32 wanted, u32 *status)
{
	struct weir_engine *engine = request->engine;

	if (engine->status.used + engine->coming + request->fresh > engine->shape.user_blocks) {
		*status = NVME_STATUS_CAPACITY_EXCEEDED;
		return !engine_sweep_some(engine);
	}
	if (!engine_can_take(engine, wanted))
		return give_up(engine, wanted, status);
	engine->coming += request->fresh;
	engine->status.medium_writes += wanted;
	for (u32 i = 0; i < request->blocks; i++)
		if (request->pieces[i].index != ENGINE_NONE)
			request->pieces[i].index = engine_take(engine, false);
	if (engine->free_erases <= ENGINE_LOW_ERASE)
		engine_want_space(engine);
	return true;
}

static void fill_crcs(struct engine_request *request)
{
	struct engine_cursor cursor = { request->given->iov, 0 };

	for (u32 i = 0; i < request->blocks; i++) {
		if (request->pieces[i].index == ENGINE_NONE)
			engine_block_pass(&cursor, false);
		else
			request->pieces[i].crc = engine_block_crc(&cursor);
	}
}

bool engine_submit_write(struct weir_engine *engine, struct weir_io *io)
{
	struct engine_request *request = engine_request_create(engine, io);
	u32 status, wanted;
	bool taken = true;

	if (!request)
		return engine_request_refuse(io, NVME_STATUS_INTERNAL_ERROR);
	engine_lock(engine);
	status = sort_out(request, &wanted);
	request->weight = engine_volume_weight(engine, request_vid(io));
	if (!status)
		taken = take(request, wanted, &status);
	engine_unlock(engine);
	if (status || !taken) {
		free(request);
		return taken ? engine_request_refuse(io, status) : false;
	}
	fill_crcs(request);
	engine_request_start(request);
	return true;
}

static u32 bury(struct engine_request *request)
{
	u32 status = NVME_STATUS_SUCCESS;

	for (u32 i = 0; i < request->blocks && !status; i++) {
		u32 index;

		if (request->pieces[i].index == ENGINE_NONE)
			continue;
		index = engine_take_tombstone(request->engine);
		if (index == ENGINE_NONE)
			return NVME_STATUS_CAPACITY_EXCEEDED;
		request->pieces[i].crc = 0;
		status = put(request, i, index);
	}
	return status;
}

/* A tombstone for each block: what was there is gone, and older versions do not come back. */
bool engine_submit_zero(struct weir_engine *engine, struct weir_io *io)
{
	struct engine_request *request = engine_request_create(engine, io);
	u32 wanted;
	u64 commit = 0;
	bool later;

	if (!request)
		return engine_request_refuse(io, NVME_STATUS_INTERNAL_ERROR);
	engine_lock(engine);
	request->status = (u16)sort_out(request, &wanted);
	if (!request->status)
		request->status = (u16)bury(request);
	/* room is being made: what has a tombstone by now gets no other one then */
	later = request->status == NVME_STATUS_CAPACITY_EXCEEDED && engine_sweep_some(engine);
	if (!request->status && io->force_unit_access)
		commit = engine_want_commit(engine);
	engine_unlock(engine);
	if (later)
		free(request);
	else
		engine_request_end_after(request, commit);
	return !later;
}
