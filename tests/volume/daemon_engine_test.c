/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_engine_test.c: the daemon over real engines, by NVMe/TCP over loopback: targets in this process,
 * links that can be cut, and a client that writes and reads by commands of its own.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/error.h"
#include "target/target.h"
#include "volume/daemon/daemon.h"

enum { ENGINES = 3, BLOCKS = 600, REPLICAS = 2, LEASE_MS = 1000000, MOST_STEPS = 100000 };

#define HOST "nqn.2026-11.org.example:writer"
#define NQN  "nqn.2026-11.org.example:engine"

/** struct cut_link - a link of the daemon's, through which nothing goes while its engine is cut away */
struct cut_link {
	struct volume_engine_link base;
	struct volume_engine_link *inner;
	bool *cut;
};

/** struct machine - an engine; @client: a writer's own link to it */
struct machine {
	struct weir_target *target;
	char address[44];
	struct volume_engine_link *client;
	bool cut;
};

static struct machine machines[ENGINES];
static struct volume_linker_nvmf daemon_linker, client_linker;
static struct volumed *d;
static uint64_t clock_ms;
static u16 client_number;
static u32 lease;
static u64 counter;
static u64 words[BLOCKS];

static uint64_t now(void)
{
	return clock_ms;
}

static int cut_open(struct volume_engine_link *base)
{
	struct cut_link *link = (struct cut_link *)base;

	return *link->cut ? weir_fail(EHOSTUNREACH, "the engine is cut away")
			  : link->inner->ops->open(link->inner);
}

static int cut_command(struct volume_engine_link *base, bool io, const struct nvme_sqe *sqe, void *data,
		       uint32_t bytes, enum volume_way way, unsigned ms)
{
	struct cut_link *link = (struct cut_link *)base;

	return *link->cut ? weir_fail(EHOSTUNREACH, "the engine is cut away")
			  : link->inner->ops->command(link->inner, io, sqe, data, bytes, way, ms);
}

static void cut_close(struct volume_engine_link *base)
{
	struct cut_link *link = (struct cut_link *)base;

	link->inner->ops->close(link->inner);
	free(link);
}

static const struct volume_engine_link_ops cut_ops = { cut_open, cut_command, cut_close };

static int cut_create(struct volume_linker *linker, const char *address, const char *nqn,
		      struct volume_engine_link **out)
{
	struct cut_link *link = calloc(1, sizeof(*link));

	(void)linker;
	link->base.ops = &cut_ops;
	for (unsigned i = 0; i < ENGINES; i++)
		if (!strcmp(machines[i].address, address))
			link->cut = &machines[i].cut;
	*out = &link->base;
	return daemon_linker.base.create(&daemon_linker.base, address, nqn, &link->inner);
}

static void start_machine(struct machine *machine)
{
	static const struct weir_target_namespace_options space[] = { { .uri = "virt:16M" } };
	static const struct weir_target_subsystem_options subsystem[] = {
		{ .nqn = NQN, .namespaces = space, .namespace_count = 1, .engine = true }
	};
	char listen[64] = "tcp://127.0.0.1:0";
	const char *address = listen;
	const struct weir_target_options options = { .size = sizeof(options),
						     .listen = &address,
						     .listen_count = 1,
						     .subsystems = subsystem,
						     .subsystem_count = 1 };

	if (machine->address[0])
		snprintf(listen, sizeof(listen), "tcp://%s", machine->address);
	assert_int_equal(weir_target_create(&options, &machine->target), 0);
	assert_int_equal(weir_target_start(machine->target), 0);
	snprintf(machine->address, sizeof(machine->address), "%.43s",
		 weir_target_address(machine->target, 0) + 6);
}

static void stop_machine(struct machine *machine)
{
	weir_target_stop(machine->target, 0);
	weir_target_destroy(machine->target);
	machine->target = NULL;
}

static void start_daemon(void)
{
	static struct volume_linker linker = { .create = cut_create };

	assert_int_equal(
		volumed_create(
			&(struct volumed_options){ .linker = &linker, .lease_ms = LEASE_MS, .now_ms = now },
			&d),
		0);
	for (unsigned i = 0; i < ENGINES; i++) {
		struct nvme_volume_engine info = { .domain = i, .weight = 100, .nqn = NQN };

		memcpy(info.address, machines[i].address, sizeof(info.address));
		assert_int_equal(volumed_engine_note(d, &info, false), 0);
	}
	assert_int_equal(volumed_gather(d), 0);
}

static int set_up(void **state)
{
	struct volumed_volume *volume;

	(void)state;
	memset(machines, 0, sizeof(machines));
	memset(words, 0, sizeof(words));
	clock_ms = 1000000;
	daemon_linker = (struct volume_linker_nvmf){ .base = volume_linker_nvmf, .connect_ms = 2000 };
	client_linker = daemon_linker;
	client_linker.hostnqn = HOST;
	for (unsigned i = 0; i < ENGINES; i++) {
		start_machine(&machines[i]);
		assert_int_equal(client_linker.base.create(&client_linker.base, machines[i].address, NQN,
							   &machines[i].client),
				 0);
		assert_int_equal(machines[i].client->ops->open(machines[i].client), 0);
	}
	start_daemon();
	assert_int_equal(volumed_volume_create(d, "v", BLOCKS * 4096ull, REPLICAS, 8192, 100, &volume), 0);
	assert_int_equal(volumed_volume_chmod(d, "v", HOST, NVME_VOLUME_READ | NVME_VOLUME_WRITE), 0);
	volume = volumed_volume_of(d, "v");
	assert_int_equal(volumed_volume_client(volume, HOST, NVME_VOLUME_WRITE, &client_number), 0);
	assert_int_equal(volumed_lease_grant(d, volume, client_number), 0);
	lease = volume->info.lease_epoch;
	counter = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	volumed_destroy(d);
	for (unsigned i = 0; i < ENGINES; i++) {
		machines[i].client->ops->close(machines[i].client);
		if (machines[i].target)
			stop_machine(&machines[i]);
	}
	return 0;
}

static u32 engine_at(u32 vba, u32 replica)
{
	return d->table[weir_placement_group(1, vba, 1)] >> (8 * replica) & 0xff;
}

static int command(unsigned engine, u32 opcode, u32 vba, u64 version, u32 map, u64 *word)
{
	const struct nvme_sqe sqe = { .cdw0 = opcode,
				      .nsid = 1,
				      .cdw2 = (u32)version,
				      .cdw3 = (u32)(version >> 32),
				      .cdw10 = vba,
				      .cdw11 = 1u << 16 | client_number,
				      .cdw14 = opcode == NVME_OPCODE_READ ? 0 : lease,
				      .cdw15 = map };
	struct volume_engine_link *link = machines[engine].client;
	u64 data[512] = { [0] = *word, [511] = *word };
	int status =
		link->ops->command(link, true, &sqe, data, sizeof(data),
				   opcode == NVME_OPCODE_READ ? VOLUME_FROM_ENGINE : VOLUME_TO_ENGINE, 5000);

	if (!status && opcode == NVME_OPCODE_READ)
		assert_int_equal(data[0], data[511]);
	*word = data[0];
	return status;
}

static void write_block(u32 vba, u64 word)
{
	counter++;
	for (u32 i = 0; i < REPLICAS; i++)
		assert_int_equal(command(engine_at(vba, i), NVME_OPCODE_WRITE, vba,
					 (u64)lease << NVME_VOLUME_VERSION_EPOCH | counter, d->epoch, &word),
				 0);
	words[vba] = word;
}

static void trim_block(u32 vba)
{
	const u32 blocks = 1;
	const u64 slba = (u64)(1u << 16 | client_number) << 32 | vba,
		  version = (u64)lease << NVME_VOLUME_VERSION_EPOCH | ++counter;
	const struct nvme_sqe sqe = { .cdw0 = NVME_OPCODE_DSM,
				      .nsid = 1,
				      .cdw2 = (u32)version,
				      .cdw3 = (u32)(version >> 32),
				      .cdw11 = NVME_DSM_DEALLOCATE,
				      .cdw14 = lease,
				      .cdw15 = d->epoch };
	u8 range[16] = { 0 };

	memcpy(range + 4, &blocks, sizeof(blocks));
	memcpy(range + 8, &slba, sizeof(slba));
	for (u32 i = 0; i < REPLICAS; i++) {
		struct volume_engine_link *link = machines[engine_at(vba, i)].client;

		assert_int_equal(
			link->ops->command(link, true, &sqe, range, sizeof(range), VOLUME_TO_ENGINE, 5000),
			0);
	}
	words[vba] = 0;
}

static void write_all(u64 base)
{
	for (u32 i = 0; i < BLOCKS; i += 2)
		write_block(i, base + i);
}

/* Every replica of the map has what was written, and zeros elsewhere. */
static void check_all(void)
{
	for (u32 vba = 0; vba < BLOCKS; vba++)
		for (u32 i = 0; i < REPLICAS; i++) {
			u64 word = 1;

			assert_int_equal(
				command(engine_at(vba, i), NVME_OPCODE_READ, vba, 0, d->epoch, &word), 0);
			assert_int_equal(word, words[vba]);
		}
}

static void settle(void)
{
	for (unsigned i = 0; i < MOST_STEPS; i++) {
		clock_ms += VOLUMED_HEARTBEAT_MS / 10;
		(void)volumed_step(d);
		if (i > 100 && d->copy.task == VOLUMED_IDLE && !d->rebuilding)
			return;
	}
	fail_msg("it does not come to rest");
}

static void test_an_engine_is_killed_and_forgets(void **state)
{
	(void)state;
	write_all(100);
	check_all();
	stop_machine(&machines[1]);
	settle();
	assert_int_equal(d->counts.taken_out, 1);
	write_all(1000);
	check_all();
	start_machine(&machines[1]); /* with nothing of what it had */
	(void)machines[1].client->ops->open(machines[1].client);
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	check_all();
}

static void test_an_engine_is_cut_away_and_comes_back(void **state)
{
	u32 old, vba = 0;
	u64 word = 1;

	(void)state;
	write_all(100);
	old = d->epoch;
	machines[2].cut = true;
	settle();
	write_all(1000); /* of which it gets nothing */
	while (engine_at(vba, 0) != 0)
		vba += 2;
	assert_int_equal(command(0, NVME_OPCODE_WRITE, vba, ~0ull >> 1, old, &word),
			 NVME_STATUS_VOLUME_STALE_MAP);
	machines[2].cut = false;
	for (unsigned i = 0; d->counts.taken_in == 0 && i < MOST_STEPS; i++) {
		write_block(i * 2 % BLOCKS, 5000 + i);
		clock_ms += VOLUMED_HEARTBEAT_MS / 10;
		(void)volumed_step(d);
	}
	assert_int_equal(d->counts.taken_in, 1);
	check_all();
	/* Out and in again: nothing that lay there from the first time is read. */
	machines[0].cut = true;
	settle();
	write_all(9000);
	check_all();
	machines[0].cut = false;
	settle();
	check_all();
}

static void test_trimmed_blocks_do_not_come_back(void **state)
{
	(void)state;
	write_all(100);
	machines[1].cut = true;
	settle();
	for (u32 i = 0; i < BLOCKS; i += 4)
		trim_block(i);
	machines[1].cut = false; /* it has them, still */
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	check_all();
	machines[2].cut = true; /* others learn that they were trimmed */
	settle();
	check_all();
}

static void test_a_writer_dies(void **state)
{
	struct volumed_volume *volume = volumed_volume_of(d, "v");
	u64 word = 77;

	(void)state;
	write_all(100);
	assert_int_equal(command(engine_at(4, 1), NVME_OPCODE_WRITE, 4,
				 (u64)lease << NVME_VOLUME_VERSION_EPOCH | ++counter, d->epoch, &word),
			 0);
	words[4] = 77;
	clock_ms += LEASE_MS;
	assert_int_equal(volumed_lease_grant(d, volume, client_number), 0);
	assert_int_equal(d->counts.equalized, 1);
	check_all();
	assert_int_equal(command(engine_at(4, 1), NVME_OPCODE_WRITE, 4,
				 (u64)lease << NVME_VOLUME_VERSION_EPOCH | ++counter, d->epoch, &word),
			 NVME_STATUS_VOLUME_STALE_LEASE);
}

static void test_another_daemon_takes_over(void **state)
{
	(void)state;
	write_all(100);
	volumed_destroy(d);
	start_daemon();
	assert_int_equal(d->volume_count, 1);
	assert_int_equal(d->volumes[0].info.lease_epoch, lease);
	write_all(500); /* under the same lease, and the new map */
	check_all();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_an_engine_is_killed_and_forgets, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_engine_is_cut_away_and_comes_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_trimmed_blocks_do_not_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_writer_dies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_another_daemon_takes_over, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("daemon_engine", tests, NULL, NULL);
}
