/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * command.h: what the daemon asks of an engine, a function for each command of nvme_volume.h.
 *
 * Return of each: 0; a positive NVMe status, without a sentence; or a negative errno with a sentence: the
 * engine did not answer.
 */
#ifndef WEIR_VOLUMED_COMMAND_H
#define WEIR_VOLUMED_COMMAND_H

#include "link.h"

enum { VOLUME_COMMAND_MS = 2000, VOLUME_STATUS_MS = 1000 };

int volume_engine_add(struct volume_engine_link *link, const struct nvme_volume *volume);
int volume_engine_delete(struct volume_engine_link *link, u16 vid);
int volume_engine_chmod(struct volume_engine_link *link, const struct nvme_volume_permission *permission);
int volume_engine_lease(struct volume_engine_link *link, u16 vid, u32 epoch, u16 client);
/** volume_engine_fence() - what a daemon before this one has sent, and has not arrived yet, is refused */
int volume_engine_fence(struct volume_engine_link *link);
int volume_engine_map(struct volume_engine_link *link, const struct nvme_volume_map *map);
int volume_engine_get_map(struct volume_engine_link *link, struct nvme_volume_map *map);
/** volume_engine_get() - the first volume whose number is at least @vid; NVME_STATUS_VOLUME_UNKNOWN: none */
int volume_engine_get(struct volume_engine_link *link, u32 vid, struct nvme_volume *volume);
/** volume_engine_get_permission() - @index-th of volume @vid; NVME_STATUS_VOLUME_UNKNOWN: no more */
int volume_engine_get_permission(struct volume_engine_link *link, u16 vid, u32 index,
				 struct nvme_volume_permission *permission);
/** volume_engine_list() - go on from @cursor with blocks that have versions of at least @from */
int volume_engine_list(struct volume_engine_link *link, u16 vid, u64 cursor, u64 from,
		       struct nvme_volume_list *list);
/** volume_engine_version() - of one block; 0: the engine does not have it, or it was trimmed */
int volume_engine_version(struct volume_engine_link *link, u16 vid, u32 vba, u64 *version);
int volume_engine_status(struct volume_engine_link *link, struct nvme_volume_engine_status *status);

/** struct volume_block - a block as the manager names it in I/O commands; @map: epoch */
struct volume_block {
	u16 vid;
	u32 vba;
	u64 version;
	u32 map;
	u32 lease;
};

/**
 * volume_engine_read() - one block, in the version given and no other
 *
 * Return: NVME_STATUS_VOLUME_OLD_VERSION: it has another by now.
 */
int volume_engine_read(struct volume_engine_link *link, const struct volume_block *block, void *data);
/** volume_engine_write() - one block with its version; NVME_STATUS_VOLUME_OLD_VERSION: a newer one is there
 */
int volume_engine_write(struct volume_engine_link *link, const struct volume_block *block, const void *data);
/** volume_engine_flush() - what it has acknowledged is durable then */
int volume_engine_flush(struct volume_engine_link *link);
/** volume_engine_trim() - as volume_engine_write(): the block was trimmed in that version */
int volume_engine_trim(struct volume_engine_link *link, const struct volume_block *block);

#endif
