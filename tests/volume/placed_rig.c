/* SPDX-License-Identifier: BSD-3-Clause */
#include "placed_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "device/context.h"
#include "volume/placement.h"

void rig_must(int error)
{
	if (error)
		fail_msg("%s", weir_last_error());
}

/* An admin command with what is in @data to engine @engine. */
static void admin(struct fixture *fixture, unsigned engine, struct nvme_sqe sqe, const void *data,
		  size_t bytes)
{
	struct weir_storage *part = weir_lanes_part(fixture->lanes, engine);
	uint32_t result;

	assert_non_null(part);
	if (bytes) {
		rig_must(weir_copy_to_device(fixture->context, fixture->page, data, bytes));
		sqe.prp1 = fixture->page;
	}
	rig_must(weir_admin_pass(&part->admin, &sqe, &result));
}

void rig_give_map(struct fixture *fixture, unsigned engine, uint32_t epoch)
{
	struct nvme_volume_map map = fixture->map;

	map.epoch = epoch;
	map.self = (uint16_t)engine;
	admin(fixture, engine, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_MAP }, &map, sizeof(map));
}

void rig_give_lease(struct fixture *fixture, unsigned engine, uint32_t epoch)
{
	admin(fixture, engine,
	      (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_LEASE,
				 .cdw10 = VID,
				 .cdw11 = epoch,
				 .cdw12 = CLIENT,
				 .cdw13 = EPOCH + 1 },
	      NULL, 0);
}

static void prepare(struct fixture *fixture, unsigned engine)
{
	struct nvme_volume volume = { .vid = VID,
				      .replicas = (uint8_t)fixture->replicas,
				      .unit_log2 = (uint8_t)fixture->unit_log2,
				      .weight = 1,
				      .blocks = BLOCKS,
				      .name = "volume" };
	struct nvme_volume_permission permission = { .vid = VID,
						     .client = CLIENT,
						     .rights = NVME_VOLUME_READ | NVME_VOLUME_WRITE,
						     .hostnqn = "nqn.a" };

	rig_give_map(fixture, engine, EPOCH);
	admin(fixture, engine,
	      (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_ADD, .cdw10 = VID, .cdw13 = EPOCH }, &volume,
	      sizeof(volume));
	admin(fixture, engine,
	      (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_CHMOD, .cdw10 = VID, .cdw13 = EPOCH }, &permission,
	      sizeof(permission));
	rig_give_lease(fixture, engine, LEASE);
}

static void make_map(struct fixture *fixture)
{
	fixture->map = (struct nvme_volume_map){ .epoch = EPOCH, .count = ENGINES };
	for (unsigned i = 0; i < ENGINES; i++)
		fixture->map.engines[i] =
			(struct nvme_volume_engine){ .id = (uint16_t)(i + 1), .domain = i, .weight = 100 };
	rig_must(weir_placement_build(&fixture->map, fixture->table));
}

void rig_begin(struct fixture *fixture, uint32_t width, uint32_t replicas, uint32_t depth)
{
	struct weir_context_options options = { .size = sizeof(options), .wave_lanes = width };
	struct weir_storage_options storage = { .size = sizeof(storage),
						.queues = 2,
						.depth = depth,
						.max_transfer_bytes = fixture->transfer_bytes };

	fixture->replicas = replicas;
	fixture->unit_log2 = fixture->unit_log2 ? fixture->unit_log2 : UNIT_LOG2;
	for (unsigned i = 0; i < ENGINES; i++)
		if (!fixture->engines[i])
			fixture->engines[i] = "virt:16M?block=4096&engine=on&retries=0";
	make_map(fixture);
	rig_must(weir_context_open("cpu", &options, &fixture->context));
	rig_must(weir_storage_open(fixture->context, fixture->uri ? fixture->uri : "virt:4M?block=4096",
				   &storage, &fixture->volume));
	if (fixture->served)
		fixture->volume->disk.flags |= WEIR_DISK_SERVICE;
	rig_must(weir_lanes_open(fixture->volume,
				 &(struct weir_lanes_options){ .uris = fixture->engines,
							       .engines = ENGINES,
							       .vid = VID,
							       .client = CLIENT,
							       .unit_log2 = fixture->unit_log2,
							       .replicas = replicas,
							       .queues = 2,
							       .depth = depth },
				 &fixture->lanes));
	rig_must(weir_alloc(fixture->context, 4096, &fixture->page));
	rig_must(weir_alloc(fixture->context, LANES * MOST_BLOCKS * 4096, &fixture->args.buffers));
	rig_must(weir_alloc(fixture->context, LANES * sizeof(struct weir_event), &fixture->args.events));
	rig_must(weir_alloc(fixture->context, sizeof(fixture->results), &fixture->args.results));
	rig_must(weir_storage_disk(fixture->volume, &fixture->args.disk));
	for (unsigned i = 0; i < ENGINES; i++)
		if (weir_lanes_has(fixture->lanes, i))
			prepare(fixture, i);
	rig_must(weir_lanes_map(fixture->lanes, EPOCH, fixture->table));
	weir_lanes_lease(fixture->lanes, LEASE);
	fixture->args.count = BLOCKS;
}

void rig_end(struct fixture *fixture)
{
	weir_lanes_close(fixture->lanes);
	rig_must(weir_context_close(fixture->context));
}

static void launch(struct fixture *fixture, const char *kernel, void *args, size_t bytes)
{
	memset(fixture->results, 0, sizeof(fixture->results));
	rig_must(weir_copy_to_device(fixture->context, fixture->args.results, fixture->results,
				     sizeof(fixture->results)));
	rig_must(weir_launch(fixture->context, kernel, 1, LANES, args, bytes));
	rig_must(weir_sync(fixture->context));
	rig_must(weir_copy_from_device(fixture->context, fixture->results, fixture->args.results,
				       sizeof(fixture->results)));
}

void rig_launch(struct fixture *fixture, uint32_t opcode, uint32_t blocks, uint64_t generation)
{
	fixture->args.opcode = opcode;
	fixture->args.blocks = blocks;
	fixture->args.generation = generation;
	launch(fixture, "test_placed", &fixture->args, sizeof(fixture->args));
}

/* Every block once, by commands of @blocks: all end well, and nothing is wrong. */
void rig_run(struct fixture *fixture, uint32_t opcode, uint32_t blocks, uint64_t generation)
{
	rig_launch(fixture, opcode, blocks, generation);
	assert_int_equal(fixture->results[0], BLOCKS / blocks);
	assert_int_equal(fixture->results[1], 0);
	assert_int_equal(fixture->results[2], 0);
}

void rig_get(struct fixture *fixture, uint64_t generation)
{
	struct test_placed_cached_args args = { .of = fixture->args };
	struct weir_cache *cache;

	rig_must(weir_cache_create(fixture->context, WEIR_OPTIONS(cache, .lines = 64, .line_bytes = 4096),
				   &cache));
	rig_must(weir_array_open(cache, &fixture->volume, 1, WEIR_OPTIONS(array, .element_bytes = 8),
				 &args.array));
	args.of.generation = generation;
	launch(fixture, "test_placed_cached", &args, sizeof(args));
	rig_must(weir_cache_destroy(cache));
	assert_int_equal(fixture->results[0], BLOCKS);
	assert_int_equal(fixture->results[2], 0);
}

static uint64_t rig_commands_of(struct weir_storage *storage)
{
	struct weir_stats stats = { .size = sizeof(stats) };
	struct weir_storage **parts = storage->parts;
	unsigned count = storage->part_count;

	storage->part_count = 0; /* its own alone */
	rig_must(weir_stats(storage, &stats));
	storage->parts = parts;
	storage->part_count = count;
	return stats.commands;
}

uint64_t rig_commands_to(struct fixture *fixture, unsigned engine)
{
	return rig_commands_of(weir_lanes_part(fixture->lanes, engine));
}

uint64_t rig_commands_forwarded(struct fixture *fixture)
{
	return rig_commands_of(fixture->volume);
}

/* Commands of @blocks that replica 0 to @replicas - 1 of all blocks make for engine @engine. */
uint64_t rig_placed_on(struct fixture *fixture, unsigned engine, uint32_t blocks)
{
	uint64_t count = 0;

	for (uint64_t vba = 0; vba < BLOCKS; vba += blocks)
		for (uint32_t replica = 0; replica < fixture->replicas; replica++)
			count += weir_placement_engine((weir_addr)(uintptr_t)fixture->table,
						       weir_placement_group(VID, vba, fixture->unit_log2),
						       replica) == engine;
	return count;
}
