/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes place blocks themselves: engines in this process, and a volume's own controller that is a plain
 * storage here, so that whatever lanes leave to it is counted.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/context.h"
#include "volume/lanes.h"
#include "volume/placement.h"

#include "placed.h"

enum {
	ENGINES = 3,
	BLOCKS = 1024,
	UNIT_LOG2 = 2,
	VID = 7,
	CLIENT = 3,
	LEASE = 5,
	EPOCH = 9,
	LANES = 64,
	MOST_BLOCKS = 32, /* of a command */
};

/**
 * struct fixture - @volume: the plain storage; @page: for admin commands' data
 * @unit_log2, @transfer_bytes: 0: the usual ones
 * @uri: of the plain storage, @engines: of each engine; NULL: without faults
 */
struct fixture {
	struct weir_context *context;
	struct weir_storage *volume;
	struct weir_lanes *lanes;
	struct nvme_volume_map map;
	uint32_t table[WEIR_PLACEMENT_GROUPS];
	uint32_t replicas;
	uint32_t unit_log2;
	uint32_t transfer_bytes;
	const char *uri;
	const char *engines[ENGINES];
	uint64_t page;
	struct test_placed_args args;
	uint64_t results[3];
};

static void must(int error)
{
	if (error)
		fail_msg("%s", weir_last_error());
}

static struct fixture fixture_of(void)
{
	return (struct fixture){ .context = NULL };
}

/* An admin command with what is in @data to engine @engine. */
static void admin(struct fixture *fixture, unsigned engine, struct nvme_sqe sqe, const void *data,
		  size_t bytes)
{
	struct weir_storage *part = weir_lanes_part(fixture->lanes, engine);
	uint32_t result;

	assert_non_null(part);
	if (bytes) {
		must(weir_copy_to_device(fixture->context, fixture->page, data, bytes));
		sqe.prp1 = fixture->page;
	}
	must(weir_admin_pass(&part->admin, &sqe, &result));
}

static void give_map(struct fixture *fixture, unsigned engine, uint32_t epoch)
{
	struct nvme_volume_map map = fixture->map;

	map.epoch = epoch;
	map.self = (uint16_t)engine;
	admin(fixture, engine, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_MAP }, &map, sizeof(map));
}

static void give_lease(struct fixture *fixture, unsigned engine, uint32_t epoch)
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

	give_map(fixture, engine, EPOCH);
	admin(fixture, engine,
	      (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_ADD, .cdw10 = VID, .cdw13 = EPOCH }, &volume,
	      sizeof(volume));
	admin(fixture, engine,
	      (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_CHMOD, .cdw10 = VID, .cdw13 = EPOCH }, &permission,
	      sizeof(permission));
	give_lease(fixture, engine, LEASE);
}

static void make_map(struct fixture *fixture)
{
	fixture->map = (struct nvme_volume_map){ .epoch = EPOCH, .count = ENGINES };
	for (unsigned i = 0; i < ENGINES; i++)
		fixture->map.engines[i] =
			(struct nvme_volume_engine){ .id = (uint16_t)(i + 1), .domain = i, .weight = 100 };
	must(weir_placement_build(&fixture->map, fixture->table));
}

static void begin(struct fixture *fixture, uint32_t width, uint32_t replicas, uint32_t depth)
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
	must(weir_context_open("cpu", &options, &fixture->context));
	must(weir_storage_open(fixture->context, fixture->uri ? fixture->uri : "virt:4M?block=4096", &storage,
			       &fixture->volume));
	must(weir_lanes_open(fixture->volume,
			     &(struct weir_lanes_options){ .uris = fixture->engines,
							   .engines = ENGINES,
							   .vid = VID,
							   .client = CLIENT,
							   .unit_log2 = fixture->unit_log2,
							   .replicas = replicas,
							   .queues = 2,
							   .depth = depth },
			     &fixture->lanes));
	must(weir_alloc(fixture->context, 4096, &fixture->page));
	must(weir_alloc(fixture->context, LANES * MOST_BLOCKS * 4096, &fixture->args.buffers));
	must(weir_alloc(fixture->context, LANES * sizeof(struct weir_event), &fixture->args.events));
	must(weir_alloc(fixture->context, sizeof(fixture->results), &fixture->args.results));
	must(weir_storage_disk(fixture->volume, &fixture->args.disk));
	for (unsigned i = 0; i < ENGINES; i++)
		if (weir_lanes_has(fixture->lanes, i))
			prepare(fixture, i);
	must(weir_lanes_map(fixture->lanes, EPOCH, fixture->table));
	weir_lanes_lease(fixture->lanes, LEASE);
	fixture->args.count = BLOCKS;
}

static void end(struct fixture *fixture)
{
	weir_lanes_close(fixture->lanes);
	must(weir_context_close(fixture->context));
}

static void launch(struct fixture *fixture, uint32_t opcode, uint32_t blocks, uint64_t generation)
{
	memset(fixture->results, 0, sizeof(fixture->results));
	must(weir_copy_to_device(fixture->context, fixture->args.results, fixture->results,
				 sizeof(fixture->results)));
	fixture->args.opcode = opcode;
	fixture->args.blocks = blocks;
	fixture->args.generation = generation;
	must(weir_launch(fixture->context, "test_placed", 1, LANES, &fixture->args, sizeof(fixture->args)));
	must(weir_sync(fixture->context));
	must(weir_copy_from_device(fixture->context, fixture->results, fixture->args.results,
				   sizeof(fixture->results)));
}

/* Every block once, by commands of @blocks: all end well, and nothing is wrong. */
static void run(struct fixture *fixture, uint32_t opcode, uint32_t blocks, uint64_t generation)
{
	launch(fixture, opcode, blocks, generation);
	assert_int_equal(fixture->results[0], BLOCKS / blocks);
	assert_int_equal(fixture->results[1], 0);
	assert_int_equal(fixture->results[2], 0);
}

static uint64_t commands_of(struct weir_storage *storage)
{
	struct weir_stats stats = { .size = sizeof(stats) };
	struct weir_storage **parts = storage->parts;
	unsigned count = storage->part_count;

	storage->part_count = 0; /* its own alone */
	must(weir_stats(storage, &stats));
	storage->parts = parts;
	storage->part_count = count;
	return stats.commands;
}

static uint64_t commands_to(struct fixture *fixture, unsigned engine)
{
	return commands_of(weir_lanes_part(fixture->lanes, engine));
}

static uint64_t commands_forwarded(struct fixture *fixture)
{
	return commands_of(fixture->volume);
}

/* Commands of @blocks that replica 0 to @replicas - 1 of all blocks make for engine @engine. */
static uint64_t placed_on(struct fixture *fixture, unsigned engine, uint32_t blocks)
{
	uint64_t count = 0;

	for (uint64_t vba = 0; vba < BLOCKS; vba += blocks)
		for (uint32_t replica = 0; replica < fixture->replicas; replica++)
			count += weir_placement_engine((weir_addr)(uintptr_t)fixture->table,
						       weir_placement_group(VID, vba, fixture->unit_log2),
						       replica) == engine;
	return count;
}

static const uint32_t widths[] = { 1, 4, 32 };

#define EACH_WIDTH(width)                                                                                    \
	for (const uint32_t *width = widths; width < widths + sizeof(widths) / sizeof(widths[0]); width++)

/* Each engine gets the commands for blocks that are placed on it, and the host none. */
static void test_one_replica(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct fixture fixture = fixture_of();

		begin(&fixture, *width, 1, 64);
		run(&fixture, NVME_OPCODE_WRITE, 1, 1);
		for (unsigned i = 0; i < ENGINES; i++)
			assert_int_equal(commands_to(&fixture, i), placed_on(&fixture, i, 1));
		run(&fixture, NVME_OPCODE_READ, 1, 1);
		for (unsigned i = 0; i < ENGINES; i++)
			assert_int_equal(commands_to(&fixture, i), 2 * placed_on(&fixture, i, 1));
		assert_int_equal(commands_forwarded(&fixture), 0);
		end(&fixture);
	}
}

/* A write goes to all replicas of its block; reads are spread over them, and each has what was written. */
static void test_replicas(void **state)
{
	(void)state;
	for (uint32_t replicas = 2; replicas <= ENGINES; replicas++)
		EACH_WIDTH(width)
		{
			struct fixture fixture = fixture_of();
			uint64_t written[ENGINES], reads = 0, unequal;

			begin(&fixture, *width, replicas, 64);
			run(&fixture, NVME_OPCODE_WRITE, 2, 1);
			for (unsigned i = 0; i < ENGINES; i++) {
				written[i] = commands_to(&fixture, i);
				assert_int_equal(written[i], placed_on(&fixture, i, 2));
			}
			for (unsigned i = 0; i < 3; i++)
				run(&fixture, NVME_OPCODE_READ, 1, 1);
			for (unsigned i = 0; i < ENGINES; i++) {
				uint64_t more = commands_to(&fixture, i) - written[i];

				assert_in_range(more, 1, 3 * BLOCKS - 1); /* how evenly is a matter of when */
				reads += more;
			}
			assert_int_equal(reads, 3 * BLOCKS);
			assert_int_equal(commands_forwarded(&fixture), 0);
			assert_int_equal(weir_lanes_refused(fixture.lanes, &unequal), 0);
			assert_int_equal(unequal, 0);
			end(&fixture);
		}
}

/* Bytes to and from engines count: a write goes to two of them. */
static void test_bytes_are_counted(void **state)
{
	struct weir_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	struct fixture fixture = fixture_of();

	(void)state;
	begin(&fixture, 32, 2, 64);
	must(weir_stats(fixture.volume, &before));
	run(&fixture, NVME_OPCODE_WRITE, 1, 1);
	run(&fixture, NVME_OPCODE_READ, 1, 1);
	must(weir_stats(fixture.volume, &after));
	assert_int_equal(after.commands - before.commands, 3 * BLOCKS);
	assert_int_equal(after.bytes_written - before.bytes_written, 2 * BLOCKS * 4096);
	assert_int_equal(after.bytes_read - before.bytes_read, BLOCKS * 4096);
	end(&fixture);
}

/* In rings of depth 4 writes find no slot at some of their engines: none is lost, none hangs. */
static void test_small_rings(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct fixture fixture = fixture_of();

		begin(&fixture, *width, 1, 4);
		for (uint64_t generation = 1; generation < 4; generation++) {
			run(&fixture, NVME_OPCODE_WRITE, 1, generation);
			run(&fixture, NVME_OPCODE_READ, 1, generation);
		}
		end(&fixture);
	}
	EACH_WIDTH(width)
	{
		struct fixture fixture = fixture_of();

		begin(&fixture, *width, 3, 4);
		for (uint64_t generation = 1; generation < 4; generation++)
			run(&fixture, NVME_OPCODE_WRITE, 1, generation);
		end(&fixture);
	}
}

/* What lies in two stripe units is the host's to place. */
static void test_two_units(void **state)
{
	struct fixture fixture = fixture_of();

	(void)state;
	begin(&fixture, 32, 2, 64);
	run(&fixture, NVME_OPCODE_WRITE, 8, 1);
	run(&fixture, NVME_OPCODE_READ, 8, 1);
	assert_int_equal(commands_forwarded(&fixture), 2 * BLOCKS / 8);
	for (unsigned i = 0; i < ENGINES; i++)
		assert_int_equal(commands_to(&fixture, i), 0);
	end(&fixture);
}

/* A stripe unit of 128 KiB, of which lanes write and read all by one command: each slot of an engine's queue
 * pair has room for the pages of that. */
static void test_large_commands(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct fixture fixture = fixture_of();

		fixture.unit_log2 = 5;
		fixture.transfer_bytes = 128 << 10;
		begin(&fixture, *width, 2, 64);
		run(&fixture, NVME_OPCODE_WRITE, 32, 1);
		run(&fixture, NVME_OPCODE_READ, 32, 1);
		assert_int_equal(commands_forwarded(&fixture), 0);
		end(&fixture);
	}
}

/* An engine that takes less by one command than lanes may send is left to the host. */
static void test_engine_of_small_commands(void **state)
{
	struct fixture fixture = fixture_of();

	(void)state;
	fixture.unit_log2 = 5;
	fixture.transfer_bytes = 128 << 10;
	fixture.engines[1] = "virt:16M?block=4096&engine=on&retries=0&mdts=64K";
	begin(&fixture, 4, 1, 64);
	assert_true(weir_lanes_has(fixture.lanes, 0));
	assert_false(weir_lanes_has(fixture.lanes, 1));
	run(&fixture, NVME_OPCODE_WRITE, 32, 1);
	run(&fixture, NVME_OPCODE_READ, 32, 1);
	assert_int_equal(commands_forwarded(&fixture), 2 * placed_on(&fixture, 1, 32));
	end(&fixture);
}

/* Engines have another map than lanes: each command is carried out by the host, and ends well. */
static void test_stale_map(void **state)
{
	struct fixture fixture = fixture_of();
	uint64_t unequal, before;

	(void)state;
	begin(&fixture, 4, 2, 64);
	for (unsigned i = 0; i < ENGINES; i++)
		give_map(&fixture, i, EPOCH + 1);
	run(&fixture, NVME_OPCODE_WRITE, 1, 1);
	assert_int_equal(commands_forwarded(&fixture), BLOCKS);
	assert_true(weir_lanes_refused(fixture.lanes, &unequal) > 0);
	assert_true(unequal > 0);
	run(&fixture, NVME_OPCODE_READ, 1, 1);
	assert_int_equal(commands_forwarded(&fixture), 2 * BLOCKS);
	must(weir_lanes_map(fixture.lanes, EPOCH + 1, fixture.table));
	before = weir_lanes_refused(fixture.lanes, &unequal);
	run(&fixture, NVME_OPCODE_WRITE, 1, 2);
	run(&fixture, NVME_OPCODE_READ, 1, 2);
	assert_int_equal(commands_forwarded(&fixture), 2 * BLOCKS);
	assert_int_equal(weir_lanes_refused(fixture.lanes, &unequal), before);
	end(&fixture);
}

/* Lanes have no map, or engines have refused it once: nothing is tried in vain. */
static void test_no_map(void **state)
{
	struct fixture fixture = fixture_of();
	uint64_t unequal, refused;

	(void)state;
	begin(&fixture, 4, 1, 64);
	give_map(&fixture, 0, EPOCH + 1);
	run(&fixture, NVME_OPCODE_WRITE, 1, 1);
	refused = weir_lanes_refused(fixture.lanes, &unequal);
	assert_in_range(refused, 1, LANES); /* those that were under way together */
	run(&fixture, NVME_OPCODE_WRITE, 1, 2);
	assert_int_equal(weir_lanes_refused(fixture.lanes, &unequal), refused);
	end(&fixture);
}

/* A newer map is about to come: nothing goes by the one before any more, though engines would take it. */
static void test_retired_map(void **state)
{
	struct fixture fixture = fixture_of();

	(void)state;
	begin(&fixture, 4, 2, 64);
	weir_lanes_no_map(fixture.lanes);
	run(&fixture, NVME_OPCODE_WRITE, 1, 1);
	run(&fixture, NVME_OPCODE_READ, 1, 1);
	assert_int_equal(commands_forwarded(&fixture), 2 * BLOCKS);
	must(weir_lanes_map(fixture.lanes, EPOCH, fixture.table));
	run(&fixture, NVME_OPCODE_WRITE, 1, 2);
	run(&fixture, NVME_OPCODE_READ, 1, 2);
	assert_int_equal(commands_forwarded(&fixture), 2 * BLOCKS);
	end(&fixture);
}

/* One of two replicas refuses a write: the host carries it out, and knows that replicas may differ. */
static void test_half_failed(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct fixture fixture = fixture_of();
		uint64_t unequal, refused, placed;

		begin(&fixture, *width, 2, 64);
		give_lease(&fixture, 1, LEASE + 1);
		placed = placed_on(&fixture, 1, 1);
		run(&fixture, NVME_OPCODE_WRITE, 1, 1);
		refused = weir_lanes_refused(fixture.lanes, &unequal);
		assert_int_equal(refused, placed);
		assert_int_equal(unequal, placed);
		assert_int_equal(commands_forwarded(&fixture), placed);
		end(&fixture);
	}
}

/* A command under way has the events: the sentence names its block. */
static void events_are_busy(struct fixture *fixture)
{
	const char *block;

	assert_int_equal(weir_free(fixture->context, fixture->args.events), -EBUSY);
	block = strstr(weir_last_error(), "of block ");
	assert_non_null(block);
	assert_in_range(strtoull(block + strlen("of block "), NULL, 10), 0, LANES - 1);
}

/* Lanes write, and leave: an engine may never have what they sent, and their events stay. Once they have
 * taken all answers, all engines have it. */
static void test_left_writes(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct fixture fixture = fixture_of();
		uint64_t unequal;

		begin(&fixture, *width, 2, 64);
		fixture.args.leaves = 1;
		fixture.args.count = LANES;
		launch(&fixture, NVME_OPCODE_WRITE, 1, 1);
		assert_int_equal(fixture.results[0], LANES);
		assert_int_equal(weir_lanes_refused(fixture.lanes, &unequal), 0);
		assert_in_range(unequal, 1, LANES);
		events_are_busy(&fixture);
		fixture.args.leaves = 0;
		fixture.args.count = BLOCKS;
		run(&fixture, NVME_OPCODE_WRITE, 1, 2);
		assert_int_equal(weir_lanes_refused(fixture.lanes, &unequal), 0);
		assert_int_equal(unequal, 0);
		must(weir_free(fixture.context, fixture.args.events));
		end(&fixture);
	}
}

/* The volume's controller, which flushes all engines at the end, has failed: @writes: what lanes wrote to
 * engines, and nothing else, may be lost. */
static void close_failed(bool writes)
{
	struct fixture fixture = fixture_of();
	unsigned char units[8 * 4096];

	fixture.uri = "virt:4M?block=4096&fault=fatal:after=2";
	begin(&fixture, 4, 2, 64);
	launch(&fixture, writes ? NVME_OPCODE_WRITE : NVME_OPCODE_READ, 1, 1);
	assert_int_equal(fixture.results[0], BLOCKS);
	assert_int_equal(commands_forwarded(&fixture), 0);
	for (unsigned i = 0; i < 4; i++)
		(void)weir_storage_read(fixture.volume, 0, units, sizeof(units));
	weir_lanes_close(fixture.lanes);
	assert_int_equal(weir_storage_close(fixture.volume), writes ? -EIO : 0);
	if (writes)
		assert_non_null(strstr(weir_last_error(), "may be lost"));
	must(weir_context_close(fixture.context));
}

static void test_failed_close(void **state)
{
	(void)state;
	close_failed(true);
	close_failed(false);
}

/* Without a lease of its own a client's lanes leave writes to the host. */
static void test_no_lease(void **state)
{
	struct fixture fixture = fixture_of();

	(void)state;
	begin(&fixture, 32, 2, 64);
	weir_lanes_lease(fixture.lanes, 0);
	run(&fixture, NVME_OPCODE_WRITE, 1, 1);
	assert_int_equal(commands_forwarded(&fixture), BLOCKS);
	for (unsigned i = 0; i < ENGINES; i++)
		assert_int_equal(commands_to(&fixture, i), 0);
	end(&fixture);
}

/* Blocks of an engine that lanes do not reach go to the host, of the others to their engines. */
static void test_hidden_engine(void **state)
{
	struct fixture fixture = fixture_of();
	uint32_t hidden[WEIR_PLACEMENT_GROUPS];

	(void)state;
	begin(&fixture, 4, 1, 64);
	for (uint32_t group = 0; group < WEIR_PLACEMENT_GROUPS; group++)
		hidden[group] = (fixture.table[group] & 0xff) == 2
					? (fixture.table[group] & ~(uint32_t)0xff) | WEIR_PLACED_HIDDEN
					: fixture.table[group];
	must(weir_lanes_map(fixture.lanes, EPOCH, hidden));
	run(&fixture, NVME_OPCODE_WRITE, 1, 1);
	run(&fixture, NVME_OPCODE_READ, 1, 1);
	assert_int_equal(commands_forwarded(&fixture), 2 * placed_on(&fixture, 2, 1));
	assert_int_equal(commands_to(&fixture, 0), 2 * placed_on(&fixture, 0, 1));
	assert_int_equal(commands_to(&fixture, 2), 0);
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_replica),
		cmocka_unit_test(test_replicas),
		cmocka_unit_test(test_bytes_are_counted),
		cmocka_unit_test(test_small_rings),
		cmocka_unit_test(test_two_units),
		cmocka_unit_test(test_large_commands),
		cmocka_unit_test(test_engine_of_small_commands),
		cmocka_unit_test(test_stale_map),
		cmocka_unit_test(test_no_map),
		cmocka_unit_test(test_retired_map),
		cmocka_unit_test(test_half_failed),
		cmocka_unit_test(test_left_writes),
		cmocka_unit_test(test_failed_close),
		cmocka_unit_test(test_no_lease),
		cmocka_unit_test(test_hidden_engine),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
