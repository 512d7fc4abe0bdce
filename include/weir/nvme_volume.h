/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvme_volume.h: commands of an engine, which keeps volumes on the storage that it is in front of.
 *
 * Owns: what clients, engines and the daemon of an array say to one another by NVMe commands: fields that an
 * engine adds to Read, Write, Write Zeroes, Flush and Dataset Management, its vendor specific admin commands
 * with their data, its status codes. Words are little-endian, as in nvme.h. Source: GNStor, section 4; what
 * the paper leaves open (epochs, versions) is weir's own.
 *
 * I/O commands to an engine are to namespace 1, whose logical blocks have 4096 bytes:
 *
 * - SLBA: 63:48 volume, 47:32 client, 31:0 block of the volume; likewise in ranges of Dataset Management.
 * - CDW2 and 3: version, low word first, of what is written; one greater for each block that follows. Of a
 *   client: lease epoch from bit NVME_VOLUME_VERSION_EPOCH on, below it what it counts; another epoch than
 *   CDW14's is refused with NVME_STATUS_INVALID_FIELD. Of a Read of client 0: the version that is wanted,
 *   refused with NVME_STATUS_VOLUME_OLD_VERSION where another is here; 0: any.
 * - CDW14: lease epoch, of a command that changes blocks; else 0.
 * - CDW15: map epoch, of a Flush too. A Flush of client 0 needs none: it is then of what this engine has, and
 *   not of what clients have written to it before it was started again.
 *
 * One command lies in one stripe unit of its volume.
 */
#ifndef WEIR_NVME_VOLUME_H
#define WEIR_NVME_VOLUME_H

#include <weir/types.h>

enum {
	NVME_VOLUME_BLOCK_BYTES = 4096,
	NVME_VOLUME_BLOCK_LOG2 = 12,
	NVME_VOLUME_NAME_BYTES = 64, /* terminator included */
	NVME_VOLUME_HOST_BYTES = 224,
	NVME_VOLUME_MOST_ENGINES = 31,
	NVME_VOLUME_MOST_REPLICAS = 4,
	NVME_VOLUME_MOST = 0xfffe, /* volumes are 1 to this, clients likewise */
	NVME_VOLUME_MANAGER = 0,   /* client: the daemon, which may do all, whatever the lease */
	NVME_VOLUME_ALL = 0xffff,
	NVME_VOLUME_VERSION_EPOCH =
		40, /* a lease is good for 2^40 blocks written, a volume for 2^24 epochs */
	NVME_VOLUME_LAST_EPOCH = 0xfffffe,
};

/*
 * Admin commands; one page of data at most. cdw10: the volume, 15:0, unless it says otherwise.
 *
 * Those that change volumes (ADD, DELETE, CHMOD, LEASE) and FENCE carry in cdw13 the epoch of the map of the
 * daemon that sends them. An engine refuses one whose epoch is lower than that of its own map, or than that
 * of a FENCE since it was started, with NVME_STATUS_VOLUME_STALE_MAP; a MAP likewise. So what a daemon had
 * sent before another one became active changes nothing if it arrives after that one's first command. An
 * equal or a higher epoch is accepted: the engine may have been away. An engine that has had no map and no
 * FENCE accepts any.
 *
 * An ADD or a MAP that ends with NVME_STATUS_COMMAND_INTERRUPTED has changed nothing, and is to be sent
 * again: blocks that must be gone before it are being dropped, some with each such command.
 */
enum {
	NVME_ADMIN_VOLUME_ADD = 0xc1,    /* struct nvme_volume to the engine; one that exists is changed */
	NVME_ADMIN_VOLUME_DELETE = 0xc4, /* no data; its blocks are freed, if later */
	NVME_ADMIN_VOLUME_CHMOD = 0xc5,  /* struct nvme_volume_permission to the engine */
	NVME_ADMIN_VOLUME_LEASE = 0xc8,  /* no data; cdw11: lease epoch, cdw12: client that has it, or 0 */
	NVME_ADMIN_VOLUME_MAP = 0xc9,    /* struct nvme_volume_map to the engine */
	NVME_ADMIN_VOLUME_GET_MAP = 0xca,
	NVME_ADMIN_VOLUME_FENCE = 0xcc, /* no data; no volume; until the engine is started again */
	NVME_ADMIN_VOLUME_GET = 0xce,   /* struct nvme_volume: the first whose number is at least cdw10 */
	NVME_ADMIN_VOLUME_GET_PERMISSION = 0xd2, /* struct nvme_volume_permission: cdw11-th of the volume */
	NVME_ADMIN_VOLUME_LIST = 0xd6,           /* struct nvme_volume_list from the engine; see there */
	NVME_ADMIN_VOLUME_STATUS = 0xda,         /* struct nvme_volume_engine_status */
};

/* Status codes of an engine, type 7 (vendor specific), as NVME_STATUS(sct, sc) has them. */
enum {
	NVME_STATUS_VOLUME_UNKNOWN = 0x7c0,     /* no volume of this number */
	NVME_STATUS_VOLUME_CLIENT = 0x7c1,      /* the connection's host is not the client that it says */
	NVME_STATUS_VOLUME_DENIED = 0x7c2,      /* the client has no right to do that */
	NVME_STATUS_VOLUME_STALE_LEASE = 0x7c3, /* another lease epoch is the volume's: renew it, or stop */
	NVME_STATUS_VOLUME_STALE_MAP = 0x7c4,   /* another map epoch is the engine's: get the map, repeat; of
						 * an admin command: another daemon is active */
	NVME_STATUS_VOLUME_MISPLACED = 0x7c5,   /* the block is not placed on this engine */
	NVME_STATUS_VOLUME_OLD_VERSION = 0x7c6, /* a newer version of the block is here */
	NVME_STATUS_VOLUME_NOT_HERE =
		0x7c7, /* the block may not have been copied here yet: ask another replica */
	NVME_STATUS_VOLUME_NO_MAP = 0x7c8, /* the engine has been given no map since it started */
};

/* Rights of a client of a volume. */
enum {
	NVME_VOLUME_READ = 1,
	NVME_VOLUME_WRITE = 2,
};

/**
 * struct nvme_volume - a volume
 * @vid: its number
 * @replicas: copies of each block, 1 to NVME_VOLUME_MOST_REPLICAS
 * @unit_log2: blocks of a stripe unit, as a power of two
 * @weight: its share of an engine's rate beside other volumes, 1 to 1000
 * @blocks: its size
 * @lease_epoch: of the last lease; 0: there was none
 * @lease_client: who has it; 0: nobody
 * @name: as people call it
 */
struct nvme_volume {
	u16 vid;
	u8 replicas;
	u8 unit_log2;
	u32 weight;
	u64 blocks;
	u32 lease_epoch;
	u16 lease_client;
	u16 reserved;
	char name[NVME_VOLUME_NAME_BYTES];
};

/** struct nvme_volume_permission - what client @client, the host @hostnqn, may do; @rights 0: nothing more */
struct nvme_volume_permission {
	u16 vid;
	u16 client;
	u32 rights;
	char hostnqn[NVME_VOLUME_HOST_BYTES];
};

/* States of an engine in a map. */
enum {
	NVME_VOLUME_ENGINE_IN = 0,
	NVME_VOLUME_ENGINE_OUT = 1, /* it has no groups */
};

/**
 * struct nvme_volume_engine - an engine of a map
 * @id: its number, which never changes
 * @state: NVME_VOLUME_ENGINE_...
 * @leaving: not 0: it is to go from the array when others have its blocks
 * @domain: what fails together: replicas are in different ones as far as there are
 * @weight: its share of the groups
 * @address, @nqn: how to reach it
 */
struct nvme_volume_engine {
	u16 id;
	u8 state;
	u8 leaving;
	u32 domain;
	u32 weight;
	char address[44];
	char nqn[72];
};

enum { NVME_VOLUME_REBUILDING = 1, NVME_VOLUME_CHANGING = 2 };

/**
 * struct nvme_volume_map - the array at one epoch
 * @epoch: grows with each change
 * @count: of @engines
 * @self: which of them the engine is that the map is given to
 * @rebuilding: not 0: some blocks may not be on all engines where they are placed: an engine answers reads of
 *   blocks that it does not have with NVME_STATUS_VOLUME_NOT_HERE; 0: with zeros, and it drops blocks that
 *   are placed elsewhere when the map comes, not when it comes once more: copies for the map to come may be
 *   among them. NVME_VOLUME_REBUILDING: after a failure; with the first such map an engine drops what the map
 *   before placed elsewhere. NVME_VOLUME_CHANGING: it keeps that for the map to come.
 * @uncounted: not 0: too few engines may have it for the next daemon to hear of it; the same map comes once
 *   more when enough have it, to an engine that is in doubt
 */
struct nvme_volume_map {
	u32 epoch;
	u16 count;
	u16 self;
	u32 rebuilding;
	u32 uncounted;
	u32 reserved[28];
	struct nvme_volume_engine engines[NVME_VOLUME_MOST_ENGINES];
};

/** struct nvme_volume_entry - a block that an engine has; @vba bit 32: what is there is that it was trimmed
 */
struct nvme_volume_entry {
	u64 vba;
	u64 version;
};

/**
 * struct nvme_volume_list - blocks of volume cdw10 with versions of at least cdw14 (high) and cdw15 (low);
 * with cdw10 31:16 not 0 only that many from block cdw13 on, 255 at most, in one page. A list that begins
 * with what the engine's status said is @written has of the blocks that are written, not trimmed, at least
 * those that came after it said so
 * @next: cdw12 (high) and cdw11 (low) of the command that goes on, 0 at first; ~0: there is no more
 * @count: of @entries, in no order; blocks that are there all the while are in it once, others perhaps
 */
struct nvme_volume_list {
	u64 next;
	u32 count;
	u32 reserved;
	struct nvme_volume_entry entries[255];
};

/**
 * struct nvme_volume_engine_status - sizes in blocks of 4096 bytes, counts since it was formatted
 * @doubtful: it was not closed in order the last time: writes that it acknowledged and had not made durable
 * may be missing; 0 again once it has been given a map in which it is out, and which is not @uncounted
 * @write_faults: writes that its medium failed since it started; 0 again once it has been given a map in
 * which it is out
 * @last_vid: no volume has had a greater number; what is not there of these was deleted
 * @has_map: it was given a map since it was started
 * @fence: highest epoch of a FENCE since it was started
 * @written: what a list begins with that goes on behind all blocks that are written; until it is started
 * again
 */
struct nvme_volume_engine_status {
	u64 blocks; /* that volumes can use */
	u64 used;
	u64 user_writes;
	u64 medium_writes; /* with what garbage collection moved */
	u64 erases;
	u64 erases_most; /* of one erase block */
	u64 bad_blocks;  /* reads whose checksum was wrong */
	u64 refused;
	u32 map_epoch;
	u32 volumes;
	u32 doubtful;
	u32 last_vid;
	u32 has_map;
	u32 fence;
	u64 write_faults;
	u64 repaired; /* damaged blocks that were written again in the same version */
	u64 written;
	u64 reserved[2];
};

WEIR_ASSERT_SIZE(struct nvme_volume, 88);
WEIR_ASSERT_SIZE(struct nvme_volume_permission, 232);
WEIR_ASSERT_SIZE(struct nvme_volume_engine, 128);
WEIR_ASSERT_SIZE(struct nvme_volume_map, 4096);
WEIR_ASSERT_SIZE(struct nvme_volume_list, 4096);
WEIR_ASSERT_SIZE(struct nvme_volume_engine_status, 128);

#endif
