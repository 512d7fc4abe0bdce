/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h: volumes in front of a medium: who may do what, and where blocks are (GNStor, section 4.3).
 *
 * Owns: the engine's outside. It is a medium, whose block @vba of volume @vid is at byte (vid << 32 | vba) *
 * 4096, beside checks that the controller core makes of each command before it asks the medium for anything.
 * Commands, their fields and statuses: include/weir/nvme_volume.h.
 */
#ifndef WEIR_ENGINE_H
#define WEIR_ENGINE_H

#include <weir/nvme.h>
#include <weir/nvme_volume.h>

#include "../transport/medium/medium.h"

struct weir_engine;

/**
 * struct weir_engine_options - how to open one
 * @behind: where its blocks are: the engine's from here on, unless opening fails. It takes requests of
 * threads 0 to @threads; the last of these is the engine's own
 * @threads: controller threads that will submit
 * @manager: NQN of the one host that may send admin commands of volumes, and be client 0; NULL: any
 * @own_thread: start a thread for what goes on in the background; else polls of thread 0 call
 *              weir_engine_step(), which does it
 * @format: begin anew, whatever is there
 * @read_only: nothing is written: it is for weir_engine_status() and weir_engine_check() alone
 */
struct weir_engine_options {
	struct weir_medium *behind;
	unsigned threads;
	const char *manager;
	bool own_thread;
	bool format;
	bool read_only;
};

/**
 * weir_engine_open() - begin with what @behind has; an empty medium (of zeros) is formatted
 * @out: its medium leads back to it by weir_engine_of()
 *
 * Return: 0 or a negative errno with a sentence: what is there is damaged, or no engine's.
 */
int weir_engine_open(const struct weir_engine_options *options, struct weir_engine **out);
/** weir_engine_medium() - the engine as a medium, whose close() closes the engine */
struct weir_medium *weir_engine_medium(struct weir_engine *engine);
/** weir_engine_step() - what the engine's own thread does, once; 0: there was nothing to do */
unsigned weir_engine_step(struct weir_engine *engine);

/**
 * struct weir_engine_access - what a command wants
 * @host: NQN of the host whose connection it came by; NULL: whoever it says
 * @client: as the command says, as the rest
 * @changes: it changes blocks
 */
struct weir_engine_access {
	const char *host;
	u16 client;
	u16 vid;
	bool changes;
	u32 vba;
	u64 blocks;
	u32 lease_epoch;
	u32 map_epoch;
};

/**
 * weir_engine_admit() - whether it may
 *
 * Any thread. Return: 0, or NVME_STATUS_VOLUME_..., LBA_OUT_OF_RANGE or INVALID_FIELD, with DNR where the
 * same command would meet the same status whatever happens meanwhile.
 */
u32 weir_engine_admit(struct weir_engine *engine, const struct weir_engine_access *access);

/**
 * weir_engine_admit_flush() - whether a flush may do what it says
 *
 * Any thread. Its client is asked for the epoch of its map alone; the manager for nothing. Return: 0,
 * NVME_STATUS_VOLUME_NO_MAP or VOLUME_STALE_MAP.
 */
u32 weir_engine_admit_flush(struct weir_engine *engine, const struct weir_engine_access *access);

/** weir_engine_epochs() - for struct weir_io.epochs: under which epochs a command was admitted */
static inline u64 weir_engine_epochs(const struct weir_engine_access *access)
{
	u32 lease = access->client == NVME_VOLUME_MANAGER ? ~(u32)0 : access->lease_epoch;

	return (u64)access->map_epoch << 32 | lease;
}

/** weir_engine_offset() - byte of the engine's medium */
static inline u64 weir_engine_offset(u32 vid, u32 vba)
{
	return ((u64)vid << 32 | vba) << NVME_VOLUME_BLOCK_LOG2;
}

/** weir_engine_slba() - what SLBA @slba says into @access */
static inline void weir_engine_slba(u64 slba, struct weir_engine_access *access)
{
	access->vid = (u16)(slba >> 48);
	access->client = (u16)(slba >> 32);
	access->vba = (u32)slba;
}

/** weir_engine_is_admin() - whether @opcode is an admin command of volumes */
bool weir_engine_is_admin(u32 opcode);
/** weir_engine_admin_bytes() - data of admin command @opcode, in the direction that its bits 1:0 say */
u32 weir_engine_admin_bytes(u32 opcode);
/**
 * weir_engine_admin() - carry one out; what it changes is durable when this returns
 * @host: as of struct weir_engine_access
 * @sqe: the command
 * @page: its data, or room for it: NVME_VOLUME_BLOCK_BYTES
 *
 * Any thread but one that is inside the medium. Return: an NVMe status.
 */
u32 weir_engine_admin(struct weir_engine *engine, const char *host, const struct nvme_sqe *sqe, void *page);
/** weir_engine_status() - counts and sizes; any thread */
void weir_engine_status(struct weir_engine *engine, struct nvme_volume_engine_status *status);

/** struct weir_engine_wear - how often erase blocks were erased, and of how many blocks they are */
struct weir_engine_wear {
	u32 erase_blocks;
	u32 count;
	u32 least;
	u32 most;
	u32 free;
};

void weir_engine_wear(struct weir_engine *engine, struct weir_engine_wear *wear);
/** weir_engine_volume_blocks() - of volume @vid, how many blocks have data here */
u64 weir_engine_volume_blocks(struct weir_engine *engine, u32 vid);

/**
 * struct weir_engine_checked - what weir_engine_check() found
 * @blocks: with data, that were read
 * @tombstones: blocks that were trimmed
 * @bad: of @blocks, those whose checksum was wrong, or which could not be read
 * @lost: headers that say that they are valid, and that the table does not lead to
 * @orphans: blocks of volumes that there are not, or behind their end
 * @miscounted: erase blocks whose count of valid blocks is wrong
 */
struct weir_engine_checked {
	u64 blocks;
	u64 tombstones;
	u64 bad;
	u64 lost;
	u64 orphans;
	u64 miscounted;
};

/**
 * weir_engine_check() - read all blocks, and compare the table with the headers
 * @bad: called for each bad block with its volume, block and version; or NULL
 *
 * While nobody else uses the engine.
 */
void weir_engine_check(struct weir_engine *engine, struct weir_engine_checked *checked,
		       void (*bad)(u32 vid, u32 vba, u64 version));

#endif
