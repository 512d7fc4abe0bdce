/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes place blocks themselves, and leave to the volume's own controller what they cannot. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "placed_rig.h"

static struct fixture fixture_of(void)
{
	return (struct fixture){ .context = NULL };
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

		rig_begin(&fixture, *width, 1, 64);
		rig_run(&fixture, NVME_OPCODE_WRITE, 1, 1);
		for (unsigned i = 0; i < ENGINES; i++)
			assert_int_equal(rig_commands_to(&fixture, i), rig_placed_on(&fixture, i, 1));
		rig_run(&fixture, NVME_OPCODE_READ, 1, 1);
		for (unsigned i = 0; i < ENGINES; i++)
			assert_int_equal(rig_commands_to(&fixture, i), 2 * rig_placed_on(&fixture, i, 1));
		assert_int_equal(rig_commands_forwarded(&fixture), 0);
		rig_end(&fixture);
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

			rig_begin(&fixture, *width, replicas, 64);
			rig_run(&fixture, NVME_OPCODE_WRITE, 2, 1);
			for (unsigned i = 0; i < ENGINES; i++) {
				written[i] = rig_commands_to(&fixture, i);
				assert_int_equal(written[i], rig_placed_on(&fixture, i, 2));
			}
			for (unsigned i = 0; i < 3; i++)
				rig_run(&fixture, NVME_OPCODE_READ, 1, 1);
			for (unsigned i = 0; i < ENGINES; i++) {
				uint64_t more = rig_commands_to(&fixture, i) - written[i];

				assert_in_range(more, 1, 3 * BLOCKS - 1); /* how evenly is a matter of when */
				reads += more;
			}
			assert_int_equal(reads, 3 * BLOCKS);
			assert_int_equal(rig_commands_forwarded(&fixture), 0);
			assert_int_equal(weir_lanes_refused(fixture.lanes, &unequal), 0);
			assert_int_equal(unequal, 0);
			rig_end(&fixture);
		}
}

/* Bytes to and from engines count: a write goes to two of them. */
static void test_bytes_are_counted(void **state)
{
	struct weir_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	struct fixture fixture = fixture_of();

	(void)state;
	rig_begin(&fixture, 32, 2, 64);
	rig_must(weir_stats(fixture.volume, &before));
	rig_run(&fixture, NVME_OPCODE_WRITE, 1, 1);
	rig_run(&fixture, NVME_OPCODE_READ, 1, 1);
	rig_must(weir_stats(fixture.volume, &after));
	assert_int_equal(after.commands - before.commands, 3 * BLOCKS);
	assert_int_equal(after.bytes_written - before.bytes_written, 2 * BLOCKS * 4096);
	assert_int_equal(after.bytes_read - before.bytes_read, BLOCKS * 4096);
	rig_end(&fixture);
}

/* In rings of depth 4 writes find no slot at some of their engines: none is lost, none hangs. */
static void test_small_rings(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct fixture fixture = fixture_of();

		rig_begin(&fixture, *width, 1, 4);
		for (uint64_t generation = 1; generation < 4; generation++) {
			rig_run(&fixture, NVME_OPCODE_WRITE, 1, generation);
			rig_run(&fixture, NVME_OPCODE_READ, 1, generation);
		}
		rig_end(&fixture);
	}
	EACH_WIDTH(width)
	{
		struct fixture fixture = fixture_of();

		rig_begin(&fixture, *width, 3, 4);
		for (uint64_t generation = 1; generation < 4; generation++)
			rig_run(&fixture, NVME_OPCODE_WRITE, 1, generation);
		rig_end(&fixture);
	}
}

/* What lies in two stripe units is the host's to place. */
static void test_two_units(void **state)
{
	struct fixture fixture = fixture_of();

	(void)state;
	rig_begin(&fixture, 32, 2, 64);
	rig_run(&fixture, NVME_OPCODE_WRITE, 8, 1);
	rig_run(&fixture, NVME_OPCODE_READ, 8, 1);
	assert_int_equal(rig_commands_forwarded(&fixture), 2 * BLOCKS / 8);
	for (unsigned i = 0; i < ENGINES; i++)
		assert_int_equal(rig_commands_to(&fixture, i), 0);
	rig_end(&fixture);
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
		rig_begin(&fixture, *width, 2, 64);
		rig_run(&fixture, NVME_OPCODE_WRITE, 32, 1);
		rig_run(&fixture, NVME_OPCODE_READ, 32, 1);
		assert_int_equal(rig_commands_forwarded(&fixture), 0);
		rig_end(&fixture);
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
	rig_begin(&fixture, 4, 1, 64);
	assert_true(weir_lanes_has(fixture.lanes, 0));
	assert_false(weir_lanes_has(fixture.lanes, 1));
	rig_run(&fixture, NVME_OPCODE_WRITE, 32, 1);
	rig_run(&fixture, NVME_OPCODE_READ, 32, 1);
	assert_int_equal(rig_commands_forwarded(&fixture), 2 * rig_placed_on(&fixture, 1, 32));
	rig_end(&fixture);
}

/* Lanes of a storage with a service do not reap: an engine without one is left to the host. */
static void test_engines_without_service(void **state)
{
	struct fixture fixture = fixture_of();

	(void)state;
	fixture.served = true;
	rig_begin(&fixture, 4, 2, 64);
	for (unsigned i = 0; i < ENGINES; i++)
		assert_false(weir_lanes_has(fixture.lanes, i));
	rig_end(&fixture);
}

/* Engines have another map than lanes: each command is carried out by the host, and ends well. */
static void test_stale_map(void **state)
{
	struct fixture fixture = fixture_of();
	uint64_t unequal, before;

	(void)state;
	rig_begin(&fixture, 4, 2, 64);
	for (unsigned i = 0; i < ENGINES; i++)
		rig_give_map(&fixture, i, EPOCH + 1);
	rig_run(&fixture, NVME_OPCODE_WRITE, 1, 1);
	assert_int_equal(rig_commands_forwarded(&fixture), BLOCKS);
	assert_true(weir_lanes_refused(fixture.lanes, &unequal) > 0);
	assert_true(unequal > 0);
	rig_run(&fixture, NVME_OPCODE_READ, 1, 1);
	assert_int_equal(rig_commands_forwarded(&fixture), 2 * BLOCKS);
	rig_must(weir_lanes_map(fixture.lanes, EPOCH + 1, fixture.table));
	before = weir_lanes_refused(fixture.lanes, &unequal);
	rig_run(&fixture, NVME_OPCODE_WRITE, 1, 2);
	rig_run(&fixture, NVME_OPCODE_READ, 1, 2);
	assert_int_equal(rig_commands_forwarded(&fixture), 2 * BLOCKS);
	assert_int_equal(weir_lanes_refused(fixture.lanes, &unequal), before);
	rig_end(&fixture);
}

/* Lanes have no map, or engines have refused it once: nothing is tried in vain. */
static void test_no_map(void **state)
{
	struct fixture fixture = fixture_of();
	uint64_t unequal, refused;

	(void)state;
	rig_begin(&fixture, 4, 1, 64);
	rig_give_map(&fixture, 0, EPOCH + 1);
	rig_run(&fixture, NVME_OPCODE_WRITE, 1, 1);
	refused = weir_lanes_refused(fixture.lanes, &unequal);
	assert_in_range(refused, 1, LANES); /* those that were under way together */
	rig_run(&fixture, NVME_OPCODE_WRITE, 1, 2);
	assert_int_equal(weir_lanes_refused(fixture.lanes, &unequal), refused);
	rig_end(&fixture);
}

/* A newer map is about to come: nothing goes by the one before any more, though engines would take it. */
static void test_retired_map(void **state)
{
	struct fixture fixture = fixture_of();

	(void)state;
	rig_begin(&fixture, 4, 2, 64);
	weir_lanes_no_map(fixture.lanes);
	rig_run(&fixture, NVME_OPCODE_WRITE, 1, 1);
	rig_run(&fixture, NVME_OPCODE_READ, 1, 1);
	assert_int_equal(rig_commands_forwarded(&fixture), 2 * BLOCKS);
	rig_must(weir_lanes_map(fixture.lanes, EPOCH, fixture.table));
	rig_run(&fixture, NVME_OPCODE_WRITE, 1, 2);
	rig_run(&fixture, NVME_OPCODE_READ, 1, 2);
	assert_int_equal(rig_commands_forwarded(&fixture), 2 * BLOCKS);
	rig_end(&fixture);
}

/* Engines that read nothing: what a cache fetches it has from the host, at the second try. */
static void test_cached_reads_of_failing_engines(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct fixture fixture = fixture_of();

		for (unsigned i = 0; i < ENGINES; i++)
			fixture.engines[i] = "virt:16M?block=4096&engine=on&retries=0&fault=status:code="
					     "0x281:op=read";
		rig_begin(&fixture, *width, 2, 64);
		weir_lanes_no_map(fixture.lanes);
		rig_run(&fixture, NVME_OPCODE_WRITE, 1, 1);
		rig_must(weir_lanes_map(fixture.lanes, EPOCH, fixture.table));
		rig_get(&fixture, 1);
		assert_int_equal(rig_commands_forwarded(&fixture), 2 * BLOCKS);
		rig_end(&fixture);
	}
}

/* One of two replicas refuses a write: the host carries it out, and knows that replicas may differ. */
static void test_half_failed(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct fixture fixture = fixture_of();
		uint64_t unequal, refused, placed;

		rig_begin(&fixture, *width, 2, 64);
		rig_give_lease(&fixture, 1, LEASE + 1);
		placed = rig_placed_on(&fixture, 1, 1);
		rig_run(&fixture, NVME_OPCODE_WRITE, 1, 1);
		refused = weir_lanes_refused(fixture.lanes, &unequal);
		assert_int_equal(refused, placed);
		assert_int_equal(unequal, placed);
		assert_int_equal(rig_commands_forwarded(&fixture), placed);
		rig_end(&fixture);
	}
}

/* One of three engines dies when it is read: nothing is sent to it from then on, and what it had is read from
 * the others. */
static void test_dead_engine(void **state)
{
	(void)state;
	EACH_WIDTH(width)
	{
		struct fixture fixture = fixture_of();
		uint64_t sent = 0, forwarded;

		fixture.engines[1] = "virt:16M?block=4096&engine=on&retries=0&fault=fatal:op=read";
		rig_begin(&fixture, *width, 2, 64);
		rig_run(&fixture, NVME_OPCODE_WRITE, 1, 1);
		for (unsigned tries = 0; rig_commands_to(&fixture, 1) != sent; tries++) {
			assert_true(tries < 100);
			sent = rig_commands_to(&fixture, 1);
			/* the host's blocks, of those that were under way there, are others here */
			rig_launch(&fixture, NVME_OPCODE_READ, 1, 1);
		}
		forwarded = rig_commands_forwarded(&fixture);
		rig_run(&fixture, NVME_OPCODE_READ, 1, 1);
		assert_int_equal(rig_commands_to(&fixture, 1), sent);
		assert_int_equal(rig_commands_forwarded(&fixture), forwarded);
		weir_lanes_close(fixture.lanes);
		(void)weir_context_close(fixture.context);
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

		rig_begin(&fixture, *width, 2, 64);
		fixture.args.leaves = 1;
		fixture.args.count = LANES;
		rig_launch(&fixture, NVME_OPCODE_WRITE, 1, 1);
		assert_int_equal(fixture.results[0], LANES);
		assert_int_equal(weir_lanes_refused(fixture.lanes, &unequal), 0);
		assert_in_range(unequal, 1, LANES);
		events_are_busy(&fixture);
		fixture.args.leaves = 0;
		fixture.args.count = BLOCKS;
		rig_run(&fixture, NVME_OPCODE_WRITE, 1, 2);
		assert_int_equal(weir_lanes_refused(fixture.lanes, &unequal), 0);
		assert_int_equal(unequal, 0);
		rig_must(weir_free(fixture.context, fixture.args.events));
		rig_end(&fixture);
	}
}

/* The volume's controller, which flushes all engines at the end, has failed: @writes: what lanes wrote to
 * engines, and nothing else, may be lost. */
static void close_failed(bool writes)
{
	struct fixture fixture = fixture_of();
	unsigned char units[8 * 4096];

	fixture.uri = "virt:4M?block=4096&fault=fatal:after=2";
	rig_begin(&fixture, 4, 2, 64);
	rig_launch(&fixture, writes ? NVME_OPCODE_WRITE : NVME_OPCODE_READ, 1, 1);
	assert_int_equal(fixture.results[0], BLOCKS);
	assert_int_equal(rig_commands_forwarded(&fixture), 0);
	for (unsigned i = 0; i < 4; i++)
		(void)weir_storage_read(fixture.volume, 0, units, sizeof(units));
	weir_lanes_close(fixture.lanes);
	assert_int_equal(weir_storage_close(fixture.volume), writes ? -EIO : 0);
	if (writes)
		assert_non_null(strstr(weir_last_error(), "may be lost"));
	rig_must(weir_context_close(fixture.context));
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
	rig_begin(&fixture, 32, 2, 64);
	weir_lanes_lease(fixture.lanes, 0);
	rig_run(&fixture, NVME_OPCODE_WRITE, 1, 1);
	assert_int_equal(rig_commands_forwarded(&fixture), BLOCKS);
	for (unsigned i = 0; i < ENGINES; i++)
		assert_int_equal(rig_commands_to(&fixture, i), 0);
	rig_end(&fixture);
}

/* Blocks of an engine that lanes do not reach go to the host, of the others to their engines. */
static void test_hidden_engine(void **state)
{
	struct fixture fixture = fixture_of();
	uint32_t hidden[WEIR_PLACEMENT_GROUPS];

	(void)state;
	rig_begin(&fixture, 4, 1, 64);
	for (uint32_t group = 0; group < WEIR_PLACEMENT_GROUPS; group++)
		hidden[group] = (fixture.table[group] & 0xff) == 2
					? (fixture.table[group] & ~(uint32_t)0xff) | WEIR_PLACED_HIDDEN
					: fixture.table[group];
	rig_must(weir_lanes_map(fixture.lanes, EPOCH, hidden));
	rig_run(&fixture, NVME_OPCODE_WRITE, 1, 1);
	rig_run(&fixture, NVME_OPCODE_READ, 1, 1);
	assert_int_equal(rig_commands_forwarded(&fixture), 2 * rig_placed_on(&fixture, 2, 1));
	assert_int_equal(rig_commands_to(&fixture, 0), 2 * rig_placed_on(&fixture, 0, 1));
	assert_int_equal(rig_commands_to(&fixture, 2), 0);
	rig_end(&fixture);
}

/* Commands for blocks whose replica @replica is on engine @engine. */
static uint64_t placed_as(const struct fixture *fixture, uint32_t replica, unsigned engine)
{
	uint64_t count = 0;

	for (uint64_t vba = 0; vba < BLOCKS; vba++)
		count += weir_placement_engine((weir_addr)(uintptr_t)fixture->table,
					       weir_placement_group(VID, vba, fixture->unit_log2),
					       replica) == engine;
	return count;
}

/* The same of any of two replicas: no write goes to the other one alone; reads do. */
static void test_hidden_replica(void **state)
{
	(void)state;
	for (uint32_t replica = 0; replica < 2; replica++) {
		struct fixture fixture = fixture_of();
		uint32_t hidden[WEIR_PLACEMENT_GROUPS], byte = (uint32_t)0xff << (8 * replica);
		uint64_t there, sent = 0;

		rig_begin(&fixture, 4, 2, 64);
		there = placed_as(&fixture, replica, 2);
		assert_in_range(there, 1, BLOCKS - 1);
		for (uint32_t group = 0; group < WEIR_PLACEMENT_GROUPS; group++) {
			uint32_t word = fixture.table[group];

			hidden[group] = (word & byte) == 2u << (8 * replica)
						? (word & ~byte) | (uint32_t)WEIR_PLACED_HIDDEN
									   << (8 * replica)
						: word;
		}
		rig_must(weir_lanes_map(fixture.lanes, EPOCH, hidden));
		rig_run(&fixture, NVME_OPCODE_WRITE, 1, 1);
		assert_int_equal(rig_commands_forwarded(&fixture), there);
		for (unsigned i = 0; i < ENGINES; i++)
			sent += rig_commands_to(&fixture, i);
		assert_int_equal(sent, 2 * (BLOCKS - there));
		rig_launch(&fixture, NVME_OPCODE_READ, 1, 1); /* the host's writes went elsewhere here */
		assert_int_equal(rig_commands_forwarded(&fixture), there);
		rig_end(&fixture);
	}
}

/* Fewer engines or replicas than one, or more than a table has room for, are refused; the storage is as
 * before. */
static void test_what_lanes_cannot_have(void **state)
{
	static const struct {
		unsigned engines, replicas;
	} wrong[] = {
		{ 0, 1 }, { ENGINES, 0 }, { ENGINES, WEIR_PLACED_MOST + 1 }, { WEIR_PLACED_LEAST + 1, 1 }
	};
	static const char *const uris[ENGINES] = { "virt:16M?block=4096&engine=on",
						   "virt:16M?block=4096&engine=on",
						   "virt:16M?block=4096&engine=on" };
	struct weir_lanes_options options = {
		.uris = uris, .vid = VID, .client = CLIENT, .unit_log2 = UNIT_LOG2, .queues = 2, .depth = 64
	};
	struct weir_storage *volume;
	struct weir_context *context;
	unsigned char block[4096];
	struct weir_disk disk;

	(void)state;
	rig_must(weir_context_open("cpu", NULL, &context));
	rig_must(weir_storage_open(context, "virt:4M?block=4096", NULL, &volume));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct weir_lanes *lanes = NULL;

		options.engines = wrong[i].engines;
		options.replicas = wrong[i].replicas;
		assert_int_equal(weir_lanes_open(volume, &options, &lanes), -EINVAL);
		assert_non_null(strstr(weir_last_error(), "lanes cannot have"));
		assert_null(lanes);
		rig_must(weir_storage_disk(volume, &disk));
		assert_int_equal(disk.flags & WEIR_DISK_PLACED, 0);
	}
	rig_must(weir_storage_read(volume, 0, block, sizeof(block)));
	rig_must(weir_storage_close(volume));
	rig_must(weir_context_close(context));
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
		cmocka_unit_test(test_engines_without_service),
		cmocka_unit_test(test_stale_map),
		cmocka_unit_test(test_no_map),
		cmocka_unit_test(test_retired_map),
		cmocka_unit_test(test_cached_reads_of_failing_engines),
		cmocka_unit_test(test_half_failed),
		cmocka_unit_test(test_dead_engine),
		cmocka_unit_test(test_left_writes),
		cmocka_unit_test(test_failed_close),
		cmocka_unit_test(test_no_lease),
		cmocka_unit_test(test_hidden_engine),
		cmocka_unit_test(test_hidden_replica),
		cmocka_unit_test(test_what_lanes_cannot_have),
		cmocka_unit_test(a_new_map_leaves_the_one_before),
		cmocka_unit_test(each_join_counts),
		cmocka_unit_test(engines_are_opened_for_the_volume),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
