/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

#include <string.h>

enum {
	RANGE_BYTES = 16,
	NAMESPACE = 1,
	MOST_PARTS = 1 << 16, /* a few times as many as the largest engine needs */
};

static int command(struct volume_engine_link *link, bool io, const struct nvme_sqe *sqe, void *data,
		   uint32_t bytes, enum volume_way way, unsigned ms)
{
	if (link->between && link->between->call)
		link->between->call(link->between->argument);
	return link->ops->command(link, io, sqe, data, bytes, way, ms);
}

/* An admin command with a page that goes @way; of @object's @bytes the rest of the page is zeros. */
static int admin(struct volume_engine_link *link, struct nvme_sqe sqe, void *object, size_t bytes,
		 enum volume_way way, unsigned ms)
{
	_Alignas(16) u8 page[NVME_PAGE_BYTES] = { 0 };
	unsigned parts = 0;
	int status;

	if (way == VOLUME_TO_ENGINE)
		memcpy(page, object, bytes);
	do { /* an engine that has much to drop first does a part with each command */
		status = command(link, false, &sqe, way == VOLUME_NO_DATA ? NULL : page,
				 way == VOLUME_NO_DATA ? 0 : sizeof(page), way, ms);
	} while (status == NVME_STATUS_COMMAND_INTERRUPTED && ++parts < MOST_PARTS);
	if (!status && way == VOLUME_FROM_ENGINE)
		memcpy(object, page, bytes);
	return status;
}

/* Likewise, of a command that an engine refuses when it comes from a daemon that is not active any more. */
static int fenced(struct volume_engine_link *link, struct nvme_sqe sqe, void *object, size_t bytes)
{
	sqe.cdw13 = link->epoch ? *link->epoch : 0;
	return admin(link, sqe, object, bytes, object ? VOLUME_TO_ENGINE : VOLUME_NO_DATA, VOLUME_COMMAND_MS);
}

int volume_engine_add(struct volume_engine_link *link, const struct nvme_volume *volume)
{
	struct nvme_volume copy = *volume;

	return fenced(link, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_ADD, .cdw10 = volume->vid }, &copy,
		      sizeof(copy));
}

int volume_engine_delete(struct volume_engine_link *link, u16 vid)
{
	return fenced(link, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_DELETE, .cdw10 = vid }, NULL, 0);
}

int volume_engine_chmod(struct volume_engine_link *link, const struct nvme_volume_permission *permission)
{
	struct nvme_volume_permission copy = *permission;

	return fenced(link, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_CHMOD, .cdw10 = permission->vid },
		      &copy, sizeof(copy));
}

int volume_engine_lease(struct volume_engine_link *link, u16 vid, u32 epoch, u16 client)
{
	return fenced(
		link,
		(struct nvme_sqe){
			.cdw0 = NVME_ADMIN_VOLUME_LEASE, .cdw10 = vid, .cdw11 = epoch, .cdw12 = client },
		NULL, 0);
}

int volume_engine_fence(struct volume_engine_link *link)
{
	return fenced(link, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_FENCE }, NULL, 0);
}

int volume_engine_map(struct volume_engine_link *link, const struct nvme_volume_map *map)
{
	struct nvme_volume_map copy = *map;

	return admin(link, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_MAP }, &copy, sizeof(copy),
		     VOLUME_TO_ENGINE, VOLUME_COMMAND_MS);
}

int volume_engine_get_map(struct volume_engine_link *link, struct nvme_volume_map *map)
{
	return admin(link, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_GET_MAP }, map, sizeof(*map),
		     VOLUME_FROM_ENGINE, VOLUME_COMMAND_MS);
}

int volume_engine_get(struct volume_engine_link *link, u32 vid, struct nvme_volume *volume)
{
	return admin(link, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_GET, .cdw10 = vid }, volume,
		     sizeof(*volume), VOLUME_FROM_ENGINE, VOLUME_COMMAND_MS);
}

int volume_engine_get_permission(struct volume_engine_link *link, u16 vid, u32 index,
				 struct nvme_volume_permission *permission)
{
	return admin(
		link,
		(struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_GET_PERMISSION, .cdw10 = vid, .cdw11 = index },
		permission, sizeof(*permission), VOLUME_FROM_ENGINE, VOLUME_COMMAND_MS);
}

int volume_engine_list(struct volume_engine_link *link, u16 vid, u64 cursor, u64 from,
		       struct nvme_volume_list *list)
{
	return admin(link,
		     (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_LIST,
					.cdw10 = vid,
					.cdw11 = (u32)cursor,
					.cdw12 = (u32)(cursor >> 32),
					.cdw14 = (u32)(from >> 32),
					.cdw15 = (u32)from },
		     list, sizeof(*list), VOLUME_FROM_ENGINE, VOLUME_COMMAND_MS);
}

int volume_engine_version(struct volume_engine_link *link, u16 vid, u32 vba, u64 *version)
{
	struct nvme_volume_list list = { .count = 0 };
	int status = admin(
		link,
		(struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_LIST, .cdw10 = 1u << 16 | vid, .cdw13 = vba },
		&list, sizeof(list), VOLUME_FROM_ENGINE, VOLUME_COMMAND_MS);

	*version = !status && list.count == 1 && list.entries[0].vba == vba ? list.entries[0].version : 0;
	return status;
}

int volume_engine_status(struct volume_engine_link *link, struct nvme_volume_engine_status *status)
{
	return admin(link, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_STATUS }, status, sizeof(*status),
		     VOLUME_FROM_ENGINE, VOLUME_STATUS_MS);
}

/* As the manager, one block. */
static struct nvme_sqe io(u32 opcode, const struct volume_block *block)
{
	return (struct nvme_sqe){ .cdw0 = opcode,
				  .nsid = NAMESPACE,
				  .cdw2 = (u32)block->version,
				  .cdw3 = (u32)(block->version >> 32),
				  .cdw10 = block->vba,
				  .cdw11 = (u32)block->vid << 16 | NVME_VOLUME_MANAGER,
				  .cdw14 = block->lease,
				  .cdw15 = block->map };
}

int volume_engine_read(struct volume_engine_link *link, const struct volume_block *block, void *data)
{
	const struct nvme_sqe sqe = io(NVME_OPCODE_READ, block);

	return command(link, true, &sqe, data, NVME_VOLUME_BLOCK_BYTES, VOLUME_FROM_ENGINE,
		       VOLUME_COMMAND_MS);
}

int volume_engine_write(struct volume_engine_link *link, const struct volume_block *block, const void *data)
{
	const struct nvme_sqe sqe = io(NVME_OPCODE_WRITE, block);
	_Alignas(16) u8 copy[NVME_VOLUME_BLOCK_BYTES];

	memcpy(copy, data, sizeof(copy));
	return command(link, true, &sqe, copy, sizeof(copy), VOLUME_TO_ENGINE, VOLUME_COMMAND_MS);
}

int volume_engine_flush(struct volume_engine_link *link)
{
	const struct nvme_sqe sqe = { .cdw0 = NVME_OPCODE_FLUSH, .nsid = NAMESPACE };

	return command(link, true, &sqe, NULL, 0, VOLUME_NO_DATA, VOLUME_COMMAND_MS);
}

int volume_engine_trim(struct volume_engine_link *link, const struct volume_block *block)
{
	struct nvme_sqe sqe = io(NVME_OPCODE_DSM, block);
	const u32 blocks = 1;
	const u64 slba = (u64)sqe.cdw11 << 32 | block->vba;
	u8 range[RANGE_BYTES] = { 0 };

	memcpy(range + 4, &blocks, sizeof(blocks));
	memcpy(range + 8, &slba, sizeof(slba));
	sqe.cdw10 = 0; /* one range */
	sqe.cdw11 = NVME_DSM_DEALLOCATE;
	return command(link, true, &sqe, range, sizeof(range), VOLUME_TO_ENGINE, VOLUME_COMMAND_MS);
}
