/* SPDX-License-Identifier: BSD-3-Clause */
#include "lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/abi.h>

#include "../backend/error.h"
#include "../device/context.h"
#include "../storage/closed.h"

enum {
	JOINS = 4096,
	TABLE_BYTES = WEIR_PLACEMENT_GROUPS * sizeof(uint32_t),
	MOST_ENGINES = WEIR_PLACED_LEAST,
	ANSWER_US = 8000000, /* as long as the volume's own commands to an engine may take */
};

_Static_assert((int)WEIR_PLACEMENT_GROUPS == (int)WEIR_PLACED_GROUPS, "lanes and hosts have one table");
_Static_assert((int)WEIR_PLACEMENT_NONE == (int)WEIR_PLACED_NOBODY, "lanes and hosts have one table");

/**
 * struct weir_lanes - @storage: the volume's; @placed: device address of its struct weir_placed
 * @parts: storages of engines; NULL: not reached
 * @second: which table lanes go by
 */
struct weir_lanes {
	struct weir_storage *storage;
	struct weir_context *context;
	struct weir_placed described;
	uint64_t placed;
	unsigned engines;
	struct weir_storage **parts;
	bool second;
};

static int to_device(const struct weir_lanes *lanes, uint64_t address, const void *from, size_t bytes)
{
	struct weir_backend *backend = lanes->context->backend;

	return backend->ops->h2d(backend, address, from, bytes);
}

static int take_memory(struct weir_lanes *lanes)
{
	struct weir_context *context = lanes->context;
	struct weir_placed *placed = &lanes->described;
	size_t queues = (size_t)placed->engines * placed->queues_each * sizeof(struct weir_queue);
	int error = weir_memory_get(context, sizeof(*placed), &lanes->placed);

	if (!error)
		error = weir_memory_get(context, queues, &placed->queues);
	if (!error)
		error = weir_memory_get(context, 2 * (size_t)TABLE_BYTES, &placed->tables);
	if (!error)
		error = weir_memory_get(context, JOINS * sizeof(struct weir_write_join), &placed->joins);
	return error;
}

static uint64_t part_queues(const struct weir_lanes *lanes, unsigned engine)
{
	return lanes->described.queues +
	       (uint64_t)engine * lanes->described.queues_each * sizeof(struct weir_queue);
}

/* Queue pairs at @queues belong to the volume. */
static int mark_queues(const struct weir_lanes *lanes, uint64_t queues, uint32_t count, uint16_t role)
{
	int error = 0;

	for (uint32_t i = 0; i < count && !error; i++) {
		uint64_t queue = queues + i * sizeof(struct weir_queue);

		error = to_device(lanes, queue + offsetof(struct weir_queue, volume), &lanes->placed,
				  sizeof(lanes->placed));
		if (!error)
			error = to_device(lanes, queue + offsetof(struct weir_queue, placed), &role,
					  sizeof(role));
		if (!error)
			error = to_device(lanes, queue + offsetof(struct weir_queue, retry),
					  &lanes->storage->disk.retry, sizeof(uint64_t));
	}
	return error;
}

/* What was refused may be refused again before it comes to the host: its deadline ends that, no number. */
static void retry_often(struct weir_storage *storage)
{
	storage->disk.retry = (storage->disk.retry & ~(uint64_t)WEIR_RETRIES_MASK) | WEIR_RETRIES_MOST;
}

/* Lanes that meet an engine without queue pairs, by whatever mistake, find it dead. */
static int mark_absent(const struct weir_lanes *lanes, unsigned engine)
{
	weir_closed_queues(lanes->context, part_queues(lanes, engine), lanes->described.queues_each);
	return 0;
}

/* Most that a lane sends to an engine by one command: what the volume takes, in one stripe unit. Each slot of
 * an engine's queue pair has room for so much. */
static uint32_t most_bytes(const struct weir_lanes *lanes, const struct weir_lanes_options *options)
{
	uint64_t unit = (uint64_t)1 << options->unit_log2, most = lanes->storage->disk.max_blocks;

	return (uint32_t)(unit < most ? unit : most) << NVME_VOLUME_BLOCK_LOG2;
}

/* An engine that lanes cannot use as they do is none. */
static int check_part(const struct weir_lanes *lanes, const struct weir_lanes_options *options,
		      unsigned engine, const struct weir_disk *disk)
{
	uint64_t bytes = most_bytes(lanes, options);

	if (disk->queue_count < options->queues || disk->block_log2 != NVME_VOLUME_BLOCK_LOG2)
		return weir_fail(ENOTSUP, "storage \"%s\": an engine gives lanes %u queue pairs, not %u",
				 options->uris[engine], disk->queue_count, options->queues);
	if (lanes->storage->disk.flags & ~disk->flags & WEIR_DISK_SERVICE)
		return weir_fail(ENOTSUP,
				 "storage \"%s\": it has no service, and lanes of one that has do not reap",
				 options->uris[engine]);
	if ((uint64_t)disk->max_blocks << disk->block_log2 < bytes)
		return weir_fail(ENOTSUP,
				 "storage \"%s\": an engine takes %llu bytes a command at most, and lanes "
				 "send up to %llu",
				 options->uris[engine],
				 (unsigned long long)disk->max_blocks << disk->block_log2,
				 (unsigned long long)bytes);
	return 0;
}

static int open_part(struct weir_lanes *lanes, const struct weir_lanes_options *options, unsigned engine)
{
	struct weir_storage_options asked = { .size = sizeof(asked),
					      .queues = options->queues,
					      .depth = options->depth,
					      .max_transfer_bytes = most_bytes(lanes, options),
					      .read_only = lanes->storage->disk.flags & WEIR_DISK_READ_ONLY,
					      .command_timeout_us = ANSWER_US };
	struct weir_storage *part;
	int error = weir_storage_open_at(lanes->context, options->uris[engine], &asked,
					 part_queues(lanes, engine), &part);

	if (!error && (error = check_part(lanes, options, engine, &part->disk)) != 0)
		(void)weir_storage_shut(part);
	if (error) {
		weir_report("storage \"%s\": lanes do not reach an engine, and its blocks go by "
			    "way of the host's threads: %s",
			    lanes->storage->uri, weir_last_error());
		return mark_absent(lanes, engine);
	}
	lanes->parts[engine] = part;
	return mark_queues(lanes, part_queues(lanes, engine), options->queues, WEIR_QUEUE_ENGINE);
}

static int describe(struct weir_lanes *lanes, const struct weir_lanes_options *options)
{
	const struct weir_storage *storage = lanes->storage;

	if (!options->engines || options->engines > MOST_ENGINES || !options->replicas ||
	    options->replicas > WEIR_PLACED_MOST)
		return weir_fail(EINVAL, "storage \"%s\": lanes cannot have %u engines and %u replicas",
				 storage->uri, options->engines, options->replicas);
	lanes->engines = options->engines;
	lanes->described = (struct weir_placed){ .engines = options->engines,
						 .queues_each = options->queues,
						 .forwarder = storage->queues,
						 .forwarder_count = storage->disk.queue_count,
						 .join_count = JOINS,
						 .tag = (uint32_t)options->vid << 16 | options->client,
						 .unit_log2 = options->unit_log2,
						 .replicas = options->replicas };
	lanes->parts = calloc(options->engines, sizeof(struct weir_storage *));
	return lanes->parts ? take_memory(lanes)
			    : weir_fail(ENOMEM, "storage \"%s\": no memory for engines", storage->uri);
}

int weir_lanes_open(struct weir_storage *storage, const struct weir_lanes_options *options,
		    struct weir_lanes **out)
{
	struct weir_lanes *lanes = calloc(1, sizeof(*lanes));
	int error;

	if (!lanes)
		return weir_fail(ENOMEM, "storage \"%s\": no memory for its lanes", storage->uri);
	lanes->storage = storage;
	lanes->context = storage->context;
	retry_often(storage);
	error = describe(lanes, options);
	if (!error)
		error = to_device(lanes, lanes->placed, &lanes->described, sizeof(lanes->described));
	for (unsigned i = 0; i < options->engines && !error; i++)
		error = open_part(lanes, options, i);
	if (!error)
		error = mark_queues(lanes, storage->queues, storage->disk.queue_count, WEIR_QUEUE_FORWARDER);
	if (error) {
		weir_lanes_close(lanes);
		return error;
	}
	storage->parts = lanes->parts;
	storage->part_count = lanes->engines;
	storage->disk.flags |= WEIR_DISK_PLACED;
	*out = lanes;
	return 0;
}

bool weir_lanes_has(const struct weir_lanes *lanes, unsigned engine)
{
	return lanes->parts[engine] != NULL;
}

struct weir_storage *weir_lanes_part(const struct weir_lanes *lanes, unsigned engine)
{
	return lanes->parts[engine];
}

/* Relaxed: place.M0 comes behind them. */
static int write_table(const struct weir_lanes *lanes, uint64_t address, const uint32_t *table)
{
	if (!lanes->context->shared_memory)
		return to_device(lanes, address, table, TABLE_BYTES);
	for (uint32_t i = 0; i < WEIR_PLACEMENT_GROUPS; i++)
		weir_store_u32_relaxed_sys(weir_at(address, weir_shared_u32, i), table[i]);
	return 0;
}

static int write_map(const struct weir_lanes *lanes, uint64_t word)
{
	uint64_t address = lanes->placed + offsetof(struct weir_placed, map);

	if (!lanes->context->shared_memory)
		return to_device(lanes, address, &word, sizeof(word));
	/* place.M0: pairs with place.M1 (core/volume/place.h): the table before the map's word */
	weir_store_u64_release_sys(weir_at(address, weir_shared_u64, 0), word);
	return 0;
}

void weir_lanes_no_map(struct weir_lanes *lanes)
{
	(void)write_map(lanes, 0);
}

int weir_lanes_map(struct weir_lanes *lanes, uint32_t epoch, const uint32_t *table)
{
	bool second = !lanes->second;
	int error = write_table(lanes, lanes->described.tables + (second ? TABLE_BYTES : 0), table);

	if (error) {
		weir_lanes_no_map(lanes);
		return error;
	}
	lanes->second = second;
	return write_map(lanes,
			 (uint64_t)epoch << 32 | WEIR_PLACED_VALID | (second ? WEIR_PLACED_SECOND : 0));
}

void weir_lanes_lease(struct weir_lanes *lanes, uint32_t epoch)
{
	uint64_t address = lanes->placed + offsetof(struct weir_placed, lease);

	if (!lanes->context->shared_memory)
		(void)to_device(lanes, address, &epoch, sizeof(epoch));
	else
		/* relaxed: engines know which epoch is the volume's */
		weir_store_u32_relaxed_sys(weir_at(address, weir_shared_u32, 0), epoch);
}

/* Writes whose answers lanes have not taken from all engines, as where no lane waited for them. */
static uint64_t unanswered(const struct weir_lanes *lanes)
{
	enum { AT_A_TIME = 64 };
	struct weir_backend *backend = lanes->context->backend;
	struct weir_write_join joins[AT_A_TIME];
	uint64_t count = 0;

	for (uint32_t at = 0; at < JOINS; at += AT_A_TIME) {
		if (backend->ops->d2h(backend, joins, lanes->described.joins + at * sizeof(*joins),
				      sizeof(joins)) != 0)
			return 1;
		for (uint32_t i = 0; i < AT_A_TIME; i++)
			count += weir_load_u32_relaxed_sys(&joins[i].left) != 0; /* relaxed: a copy */
	}
	return count;
}

uint64_t weir_lanes_refused(const struct weir_lanes *lanes, uint64_t *unequal)
{
	struct weir_backend *backend = lanes->context->backend;
	struct weir_placed seen;

	if (backend->ops->d2h(backend, &seen, lanes->placed, sizeof(seen)) != 0)
		return *unequal = 1; /* nobody knows better */
	/* relaxed: a copy */
	*unequal = weir_load_u64_relaxed_sys(&seen.unequal) + unanswered(lanes);
	return weir_load_u64_relaxed_sys(&seen.refused);
}

static bool have_written(const struct weir_lanes *lanes)
{
	struct weir_backend *backend = lanes->context->backend;
	struct weir_placed seen;

	if (!lanes->placed)
		return false;
	return backend->ops->d2h(backend, &seen, lanes->placed, sizeof(seen)) != 0 ||
	       weir_load_u64_relaxed_sys(&seen.written) != 0; /* relaxed: a copy */
}

void weir_lanes_close(struct weir_lanes *lanes)
{
	if (!lanes)
		return;
	lanes->storage->parts_written = have_written(lanes);
	lanes->storage->disk.flags &= ~(uint32_t)WEIR_DISK_PLACED;
	lanes->storage->parts = NULL;
	lanes->storage->part_count = 0;
	for (unsigned i = 0; lanes->parts && i < lanes->engines; i++)
		if (lanes->parts[i]) /* an engine that is dead has lost what other replicas have */
			(void)weir_storage_shut(lanes->parts[i]);
	free(lanes->parts);
	(void)weir_memory_put(lanes->context, lanes->described.joins);
	(void)weir_memory_put(lanes->context, lanes->described.tables);
	(void)weir_memory_put(lanes->context, lanes->described.queues);
	(void)weir_memory_put(lanes->context, lanes->placed);
	free(lanes);
}
