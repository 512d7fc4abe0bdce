/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stand_in.h: engines in the process, for tests of the daemon: tables behind its links.
 *
 * Owns: what an engine does with each command of nvme_volume.h, as far as the daemon and one client need it;
 * engines that die, come back, or forget. A block's data is one word.
 */
#ifndef WEIR_TEST_STAND_IN_H
#define WEIR_TEST_STAND_IN_H

#include <stdbool.h>

#include "volume/daemon/daemon.h"

enum { STAND_IN_ENGINES = 6, STAND_IN_VOLUMES = 4, STAND_IN_BLOCKS = 512, STAND_IN_HOSTS = 4 };

/** struct stand_in_block - @version 0: it is not there; @arrived: number of its write; @bad: it cannot be
 * read
 */
struct stand_in_block {
	u64 version;
	u64 word;
	u64 arrived;
	bool trimmed;
	bool bad;
};

struct stand_in_volume {
	struct nvme_volume is;
	struct nvme_volume_permission permissions[STAND_IN_HOSTS];
	u32 permission_count;
	struct stand_in_block blocks[STAND_IN_BLOCKS];
};

/**
 * struct stand_in - an engine
 * @dead: it answers nothing
 * @dies_after: commands until it is; 0: it does not
 * @resets: its connection is lost with the next command, and can be made again
 * @doubtful: it was not closed in order
 * @write_faults: writes that its medium has failed; @faulty: it fails all
 * @failed: nothing becomes durable any more: it refuses flushes and maps
 * @has_map: it was given one since it started
 * @fence: the highest epoch of a FENCE since then
 * @full: it has no room for blocks that it does not have
 * @arrived: writes that changed a block
 * @refuses_status: with it commands of opcode @refuses are refused, @refuses_later of them first being
 * carried out; 0: none are
 * @interrupts: so many commands for a volume or a map it ends as interrupted
 * @lists_again: each page of its lists says that the next one is the same; @lists_later: so many do
 */
struct stand_in {
	bool dead;
	unsigned dies_after;
	bool resets;
	bool doubtful;
	unsigned write_faults;
	bool faulty;
	bool failed;
	bool has_map;
	u32 fence;
	bool full;
	u64 arrived;
	u32 refuses;
	unsigned refuses_later;
	int refuses_status;
	unsigned interrupts;
	bool lists_again;
	unsigned lists_later;
	u32 last_vid;
	struct nvme_volume_map map;
	u32 *table;
	struct stand_in_volume volumes[STAND_IN_VOLUMES]; /* by number, from 1 on */
	unsigned writes;
	unsigned refused;
};

/** struct stand_in_array - engines, at addresses "0", "1" and so on; @base: what the daemon links by */
struct stand_in_array {
	struct volume_linker base;
	struct stand_in engines[STAND_IN_ENGINES];
	void (*on_command)(struct stand_in_array *array, u32 opcode,
			   unsigned engine); /* before it; or NULL */
};

void stand_in_init(struct stand_in_array *array);
void stand_in_release(struct stand_in_array *array);
/** stand_in_restart() - @forgets: with nothing of what it had */
void stand_in_restart(struct stand_in *engine, bool forgets);

/** stand_in_write() - as @client with a lease and a map would; an NVMe status, -1: it is dead */
int stand_in_write(struct stand_in *engine, u16 client, u32 lease, u32 map, u16 vid, u32 vba, u64 version,
		   u64 word);
/** stand_in_read() - likewise */
int stand_in_read(struct stand_in *engine, u16 client, u32 map, u16 vid, u32 vba, u64 *word);
/** stand_in_block() - what is there, whoever may know */
const struct stand_in_block *stand_in_block(const struct stand_in *engine, u16 vid, u32 vba);

#endif
