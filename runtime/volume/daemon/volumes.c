/* SPDX-License-Identifier: BSD-3-Clause */
/* volumes.c: volumes and who may use them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../backend/error.h"
#include "command.h"
#include "daemon.h"

enum { MOST_WEIGHT = 1000, MOST_UNIT_LOG2 = 16 };

static const u64 MOST_BLOCKS = 1ull << 32;

struct volumed_volume *volumed_volume_of(struct volumed *d, const char *name)
{
	for (size_t i = 0; i < d->volume_count; i++)
		if (!strcmp(d->volumes[i].info.name, name))
			return &d->volumes[i];
	weir_fail(ENOENT, "there is no volume '%s'; weir-volume list shows those that there are", name);
	return NULL;
}

struct volumed_volume *volumed_volume_numbered(struct volumed *d, u32 vid)
{
	for (size_t i = 0; i < d->volume_count; i++)
		if (d->volumes[i].info.vid == vid)
			return &d->volumes[i];
	return NULL;
}

struct volumed_volume *volumed_volume_insert(struct volumed *d, const struct nvme_volume *info)
{
	struct volumed_volume *volumes = realloc(d->volumes, (d->volume_count + 1) * sizeof(*volumes));
	size_t at = d->volume_count;

	if (!volumes) {
		weir_fail(ENOMEM, "no memory for volume '%s'", info->name);
		return NULL;
	}
	d->volumes = volumes;
	while (at && volumes[at - 1].info.vid > info->vid)
		at--;
	memmove(&volumes[at + 1], &volumes[at], (d->volume_count - at) * sizeof(*volumes));
	volumes[at] = (struct volumed_volume){ .info = *info };
	d->volume_count++;
	if (info->vid > d->last_vid)
		d->last_vid = info->vid;
	return &volumes[at];
}

void volumed_volume_erase(struct volumed *d, struct volumed_volume *volume)
{
	size_t at = (size_t)(volume - d->volumes);

	free(volume->permissions);
	d->volume_count--;
	memmove(volume, volume + 1, (d->volume_count - at) * sizeof(*volume));
}

int volumed_permission_note(struct volumed_volume *volume, const struct nvme_volume_permission *permission)
{
	struct nvme_volume_permission *list;
	size_t at = 0;

	while (at < volume->count && volume->permissions[at].client < permission->client)
		at++;
	if (at < volume->count && volume->permissions[at].client == permission->client) {
		volume->permissions[at] = *permission;
		return 0;
	}
	list = realloc(volume->permissions, (volume->count + 1) * sizeof(*list));
	if (!list)
		return weir_fail(ENOMEM, "no memory for permissions of volume '%s'", volume->info.name);
	memmove(&list[at + 1], &list[at], (volume->count - at) * sizeof(*list));
	list[at] = *permission;
	volume->permissions = list;
	volume->count++;
	return 0;
}

unsigned volumed_engines_needed(const struct volumed *d)
{
	unsigned most = 1;

	for (size_t i = 0; i < d->volume_count; i++)
		if (d->volumes[i].info.replicas > most)
			most = d->volumes[i].info.replicas;
	return most;
}

/* Numbers of volumes that are gone are used again last: an engine that is away may have their blocks. */
static u32 free_vid(struct volumed *d)
{
	u32 vid = d->last_vid + 1;

	if (vid <= NVME_VOLUME_MOST)
		return vid;
	for (vid = 1; vid <= NVME_VOLUME_MOST; vid++)
		if (!volumed_volume_numbered(d, vid))
			return vid;
	return 0;
}

static int check_name(struct volumed *d, const char *name)
{
	size_t length = strlen(name);

	if (!length || length >= NVME_VOLUME_NAME_BYTES ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != length)
		return weir_fail(EINVAL,
				 "volume name '%s': use 1 to %d letters, digits, and the characters - _ .",
				 name, NVME_VOLUME_NAME_BYTES - 1);
	for (size_t i = 0; i < d->volume_count; i++)
		if (!strcmp(d->volumes[i].info.name, name))
			return weir_fail(EEXIST, "there is a volume '%s' already", name);
	return 0;
}

static int check_shape(struct volumed *d, u64 bytes, u32 replicas, u64 unit_bytes, u32 weight)
{
	u64 unit = unit_bytes / NVME_VOLUME_BLOCK_BYTES;

	if (!bytes || bytes % NVME_VOLUME_BLOCK_BYTES || bytes / NVME_VOLUME_BLOCK_BYTES > MOST_BLOCKS)
		return weir_fail(EINVAL, "a volume of %llu bytes: give a multiple of %d, 16 TiB at most",
				 (unsigned long long)bytes, NVME_VOLUME_BLOCK_BYTES);
	if (!replicas || replicas > NVME_VOLUME_MOST_REPLICAS)
		return weir_fail(EINVAL, "%u replicas: give 1 to %d", replicas, NVME_VOLUME_MOST_REPLICAS);
	if (replicas > volumed_engines_remaining(d))
		return weir_fail(EINVAL, "%u replicas on %u engines: each is on another engine; add engines",
				 replicas, volumed_engines_remaining(d));
	if (!unit || unit_bytes % NVME_VOLUME_BLOCK_BYTES || (unit & (unit - 1)) ||
	    unit > 1u << MOST_UNIT_LOG2)
		return weir_fail(EINVAL, "a stripe unit of %llu bytes: give a power of two, 4096 to 256M",
				 (unsigned long long)unit_bytes);
	if (!weight || weight > MOST_WEIGHT)
		return weir_fail(EINVAL, "weight %u: give 1 to %d", weight, MOST_WEIGHT);
	return 0;
}

static int call_add(struct volume_engine_link *link, const void *volume)
{
	return volume_engine_add(link, volume);
}

static int call_delete(struct volume_engine_link *link, const void *vid)
{
	return volume_engine_delete(link, *(const u16 *)vid);
}

static int call_chmod(struct volume_engine_link *link, const void *permission)
{
	return volume_engine_chmod(link, permission);
}

int volumed_volume_create(struct volumed *d, const char *name, u64 bytes, u32 replicas, u64 unit_bytes,
			  u32 weight, struct volumed_volume **out)
{
	struct nvme_volume info = { .replicas = (u8)replicas,
				    .weight = weight,
				    .blocks = bytes / NVME_VOLUME_BLOCK_BYTES };
	int error = check_name(d, name);

	if (!error)
		error = check_shape(d, bytes, replicas, unit_bytes, weight);
	if (error)
		return error;
	info.vid = (u16)free_vid(d);
	if (!info.vid)
		return weir_fail(ENOSPC, "there are %d volumes; delete one", NVME_VOLUME_MOST);
	info.unit_log2 = (u8)__builtin_ctzll(unit_bytes / NVME_VOLUME_BLOCK_BYTES);
	memcpy(info.name, name, strlen(name));
	d->last_vid = info.vid > d->last_vid ? info.vid : d->last_vid;
	error = volumed_each_in(d, call_add, &info, 0, "create a volume");
	if (error)
		return error;
	*out = volumed_volume_insert(d, &info);
	return *out ? 0 : -ENOMEM;
}

int volumed_volume_delete(struct volumed *d, const char *name)
{
	struct volumed_volume *volume = volumed_volume_of(d, name);
	u16 vid;
	int error;

	if (!volume)
		return -ENOENT;
	if (volume->info.lease_client && volume->info.lease_client != VOLUMED_NOBODY)
		return weir_fail(EBUSY, "volume '%s' is being written by client %u; end that lease first",
				 name, volume->info.lease_client);
	vid = volume->info.vid;
	error = volumed_each_in(d, call_delete, &vid, NVME_STATUS_VOLUME_UNKNOWN, "delete a volume");
	if (!error)
		volumed_volume_erase(d, volumed_volume_of(d, name));
	return error;
}

int volumed_volume_resize(struct volumed *d, const char *name, u64 bytes)
{
	struct volumed_volume *volume = volumed_volume_of(d, name);
	struct nvme_volume info;
	int error;

	if (!volume)
		return -ENOENT;
	info = volume->info;
	error = check_shape(d, bytes, info.replicas, (u64)NVME_VOLUME_BLOCK_BYTES << info.unit_log2,
			    info.weight);
	if (error)
		return error;
	info.blocks = bytes / NVME_VOLUME_BLOCK_BYTES;
	if (info.blocks < volume->info.blocks)
		return weir_fail(ENOTSUP, "volume '%s' has %llu blocks: volumes only grow", name,
				 (unsigned long long)volume->info.blocks);
	error = volumed_each_in(d, call_add, &info, 0, "resize a volume");
	if (!error)
		volumed_volume_of(d, name)->info.blocks = info.blocks;
	return error;
}

static u32 leased_number(const struct volumed_volume *volume)
{
	return volume->info.lease_client == VOLUMED_NOBODY ? 0 : volume->info.lease_client;
}

/* A host has one number, of whatever volume. One that has a lease is not free, though its rights have ended.
 */
static u32 client_of(struct volumed *d, const char *hostnqn)
{
	u32 highest = 0;

	for (size_t i = 0; i < d->volume_count; i++) {
		highest = leased_number(&d->volumes[i]) > highest ? leased_number(&d->volumes[i]) : highest;
		for (size_t j = 0; j < d->volumes[i].count; j++) {
			const struct nvme_volume_permission *permission = &d->volumes[i].permissions[j];

			if (!strcmp(permission->hostnqn, hostnqn))
				return permission->client;
			if (permission->client > highest)
				highest = permission->client;
		}
	}
	return highest + 1;
}

int volumed_volume_chmod(struct volumed *d, const char *name, const char *hostnqn, u32 rights)
{
	struct volumed_volume *volume = volumed_volume_of(d, name);
	struct nvme_volume_permission permission = { .rights = rights };
	u32 client = client_of(d, hostnqn);
	int error;

	if (!volume)
		return -ENOENT;
	if (strncmp(hostnqn, "nqn.", 4) != 0 || strlen(hostnqn) >= NVME_VOLUME_HOST_BYTES)
		return weir_fail(EINVAL, "host '%s' is no NQN; weir-fabrics show prints a host's", hostnqn);
	if (client >= VOLUMED_NOBODY)
		return weir_fail(ENOSPC, "there are %d hosts with permissions", VOLUMED_NOBODY - 1);
	permission.vid = volume->info.vid;
	permission.client = (u16)client;
	memcpy(permission.hostnqn, hostnqn, strlen(hostnqn));
	error = volumed_each_in(d, call_chmod, &permission, 0, "change a permission");
	return error ? error : volumed_permission_note(volumed_volume_of(d, name), &permission);
}

int volumed_volume_client(const struct volumed_volume *volume, const char *hostnqn, u32 rights, u16 *client)
{
	for (size_t i = 0; i < volume->count; i++) {
		const struct nvme_volume_permission *permission = &volume->permissions[i];

		if (strcmp(permission->hostnqn, hostnqn) != 0 || (permission->rights & rights) != rights)
			continue;
		*client = permission->client;
		return 0;
	}
	return weir_fail(EACCES,
			 "host %s may not %s volume '%s'; weir-volume share %s --host %s --rights %s lets it",
			 hostnqn, rights & NVME_VOLUME_WRITE ? "write" : "read", volume->info.name,
			 volume->info.name, hostnqn, rights & NVME_VOLUME_WRITE ? "rw" : "r");
}
