/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate/verdict.c: the array is set up, and at the end everything is compared.
 *
 * Owns: what must be so once faults have stopped: clients go on and end, copying ends, all replicas of a
 * block have one version and the same data, which the history allows; engines are in order and have nothing
 * else.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "engine/parts.h"
#include "record.h"

enum { SETUP_S = 30, GO_ON_MS = 1000, END_S = 200, REST_S = 300, STEP_MS = 50, REST_MS = 300 };

static int set_up(void)
{
	json_t *result = NULL;
	int error = call_daemon("volume_create",
				json_pack("{s:s, s:I, s:i, s:I}", "name", "v", "bytes",
					  (json_int_t)(cluster.volume_blocks * NVME_VOLUME_BLOCK_BYTES),
					  "replicas", (int)cluster.replicas, "unit_bytes",
					  (json_int_t)NVME_VOLUME_BLOCK_BYTES << cluster.unit_log2),
				&result);

	json_decref(result);
	for (unsigned i = 0; i < cluster.client_count && !error; i++) {
		result = NULL;
		error = call_daemon("volume_chmod",
				    json_pack("{s:s, s:s, s:s}", "name", "v", "hostnqn",
					      cluster.clients[i].host, "rights",
					      cluster.clients[i].writes ? "rw" : "r"),
				    &result);
		json_decref(result);
	}
	return error;
}

/* A host with a volume of its own. */
static int set_up_intruder(void)
{
	json_t *result = NULL;
	int error = call_daemon("volume_create",
				json_pack("{s:s, s:i, s:i, s:i}", "name", "own", "bytes", 4 * 4096,
					  "replicas", 2, "unit_bytes", 4096),
				&result);

	json_decref(result);
	result = NULL;
	if (!error)
		error = call_daemon(
			"volume_chmod",
			json_pack("{s:s, s:s, s:s}", "name", "own", "hostnqn", INTRUDER_HOST, "rights", "rw"),
			&result);
	json_decref(result);
	return error;
}

/* Until @is is true, for @seconds at most. */
static bool wait_until(bool (*is)(void), u64 seconds)
{
	u64 end = sim.now + seconds * SIM_S;

	while (!is() && sim.now < end && !sim.failure[0])
		sim_sleep(STEP_MS * SIM_MS);
	return is();
}

static bool is_serving(void)
{
	return cluster.daemon.serving;
}

static bool is_quiet(void)
{
	return cluster.quiet;
}

static bool has_filled(void)
{
	return !cluster.filling;
}

static bool clients_have_ended(void)
{
	for (unsigned i = 0; i < cluster.client_count; i++)
		if (cluster.clients[i].task)
			return false;
	return true;
}

static bool lease_is_ended(void)
{
	json_t *result = NULL;
	int error = call_daemon("lease_end", json_pack("{s:s}", "name", "v"), &result);

	json_decref(result);
	return error == 0;
}

static bool daemon_rests(void)
{
	const struct volumed *d = cluster.daemon.serving ? cluster.daemon.d : NULL;

	if (!d || !d->counted || d->rebuilding || d->copy.task != VOLUMED_IDLE)
		return false;
	for (unsigned i = 0; i < d->engine_count; i++)
		if (!d->engines[i].current || d->engines[i].leaving ||
		    !(volumed_engine_in(&d->engines[i]) || d->engines[i].spare))
			return false;
	return true;
}

static void trace_engines(void)
{
	const struct volumed *d = cluster.daemon.d;

	for (unsigned i = 0; d && i < d->engine_count; i++)
		sim_trace(
			"engine number %llu: out %llu, answers %llu, current %llu, spare %llu, leaving %llu, "
			"rebuilding %llu, counted %llu, task %llu",
			(unsigned long long)d->engines[i].info.id,
			(unsigned long long)d->engines[i].info.state,
			(unsigned long long)d->engines[i].answers, (unsigned long long)d->engines[i].current,
			(unsigned long long)d->engines[i].spare, (unsigned long long)d->engines[i].leaving,
			(unsigned long long)d->rebuilding, (unsigned long long)d->counted,
			(unsigned long long)d->copy.task);
}

static struct engine_node *node_of(const struct volumed *d, u32 index)
{
	return &cluster.engines[strtoul(d->engines[index].info.address + 4, NULL, 10) - 1];
}

/** struct peek - a read of an engine's medium */
struct peek {
	struct weir_io io;
	struct iovec iov;
	bool ended;
};

static void peek_done(struct weir_io *io)
{
	((struct peek *)io)->ended = true;
}

/* A block as the engine gives it; an NVMe status. */
static u32 read_block(struct engine_node *node, u16 vid, u32 vba, u8 *data)
{
	struct weir_medium *medium = weir_engine_medium(node->engine);
	struct peek peek = { .io = { .kind = WEIR_IO_READ,
				     .offset_bytes = weir_engine_offset(vid, vba),
				     .bytes = NVME_VOLUME_BLOCK_BYTES,
				     .iov_count = 1,
				     .epochs = (u64)node->engine->map.epoch << 32,
				     .done = peek_done },
			     .iov = { data, NVME_VOLUME_BLOCK_BYTES } };

	peek.io.iov = &peek.iov;
	(void)medium->ops->submit(medium, &peek.io);
	while (!peek.ended)
		sim_sleep(SIM_MS);
	return peek.io.status;
}

static const struct engine_header *header_of(const struct engine_node *node, u16 vid, u32 vba)
{
	u32 index = engine_find(node->engine, vid, vba);

	return index != ENGINE_NONE ? engine_header(node->engine, index) : NULL;
}

/* Each replica is read by a process of its own. */
static void record_read(u32 vba, u64 value)
{
	struct record_line line = {
		.process = record_process(), .type = "invoke", .what = "read", .key = vba, .unknown = true
	};

	record_add(&line);
	line.type = "ok";
	line.value = value;
	line.unknown = false;
	record_add(&line);
}

static void compare_replica(struct engine_node *node, u16 vid, u32 vba, u64 *version, u64 *value)
{
	const struct engine_header *header = header_of(node, vid, vba);
	u64 is = header ? header->version : 0, read;
	u8 data[NVME_VOLUME_BLOCK_BYTES] __attribute__((aligned(16)));
	u32 status = read_block(node, vid, vba, data);
	const char *wrong;

	if (*version == ~(u64)0)
		*version = is;
	if (is != *version)
		sim_fail("block %u has version %llx on engine %u, %llx on another", vba,
			 (unsigned long long)is, node->node.id, (unsigned long long)*version);
	if (status && (status != NVME_STATUS_UNRECOVERED_READ || !node->rotten))
		sim_fail("block %u of engine %u: status %#x", vba, node->node.id, status);
	if (status)
		return;
	read = client_value_of(data, vba);
	record_read(vba, read);
	wrong = history_read_end(&cluster.history, vba, history_read_begin(&cluster.history, vba), read);
	if (wrong)
		sim_fail("at the end, block %u of engine %u, value %lld: %s", vba, node->node.id,
			 (long long)read, wrong);
	if (*value == ~(u64)0)
		*value = read;
	if (*value != read)
		sim_fail("block %u is not the same on engine %u", vba, node->node.id);
}

static void compare_replicas(const struct volumed *d, u16 vid, u64 blocks, u64 counts[MOST_ENGINES])
{
	for (u32 vba = 0; vba < blocks; vba++) {
		u32 group = weir_placement_group(vid, vba, cluster.unit_log2);
		u64 version = ~(u64)0, value = ~(u64)0;

		for (u32 i = 0; i < cluster.replicas; i++) {
			u32 engine = d->table[group] >> (8 * i) & 0xff;
			struct engine_node *node;

			if (engine == WEIR_PLACEMENT_NONE)
				continue;
			node = node_of(d, engine);
			compare_replica(node, vid, vba, &version, &value);
			counts[node - cluster.engines] += header_of(node, vid, vba) != NULL;
		}
	}
}

/* In order, and with no block but those that belong there: @blocks, tombstones included. */
static void check_engine(struct engine_node *node, u64 blocks)
{
	struct weir_engine_checked checked;

	weir_engine_check(node->engine, &checked, NULL);
	if (checked.lost || checked.orphans || checked.miscounted || (checked.bad && !node->rotten))
		sim_fail("engine %u is not in order: %llu lost, %llu orphans, %llu miscounted, %llu bad",
			 node->node.id, (unsigned long long)checked.lost, (unsigned long long)checked.orphans,
			 (unsigned long long)checked.miscounted, (unsigned long long)checked.bad);
	if (checked.blocks + checked.tombstones != blocks)
		sim_fail("engine %u has %llu blocks and %llu tombstones; %llu are placed there",
			 node->node.id, (unsigned long long)checked.blocks,
			 (unsigned long long)checked.tombstones, (unsigned long long)blocks);
}

static void compare(void)
{
	const struct volumed *d = cluster.daemon.d;
	const struct volumed_volume *volume = NULL;
	u64 counts[MOST_ENGINES] = { 0 };

	for (size_t i = 0; i < d->volume_count; i++)
		if (!strcmp(d->volumes[i].info.name, "v"))
			volume = &d->volumes[i];
	if (!volume) {
		sim_fail("the volume is gone");
		return;
	}
	if (volume->info.blocks < cluster.grown_blocks)
		sim_fail("the volume has %llu blocks, and was grown to %llu",
			 (unsigned long long)volume->info.blocks, (unsigned long long)cluster.grown_blocks);
	compare_replicas(d, volume->info.vid, volume->info.blocks, counts);
	for (unsigned i = 0; i < d->engine_count; i++)
		if (volumed_engine_in(&d->engines[i]))
			check_engine(node_of(d, i), counts[node_of(d, i) - cluster.engines]);
}

/* Clients go on for a while once all is well: none of them may be locked out. */
static void check_progress(void)
{
	u64 done[MOST_CLIENTS];

	for (unsigned i = 0; i < cluster.client_count; i++)
		done[i] = cluster.clients[i].done;
	sim_sleep(GO_ON_MS * SIM_MS);
	for (u64 end = sim.now + END_S * SIM_S; sim.now < end && !sim.failure[0];) {
		bool all = true;
		u64 written = 0;

		for (unsigned i = 0; i < cluster.client_count; i++) {
			u64 more = cluster.clients[i].done - done[i];

			written += cluster.clients[i].writes ? more : 0;
			all = all && (more || cluster.clients[i].writes);
		}
		if (all && written)
			return;
		sim_sleep(STEP_MS * SIM_MS);
	}
	sim_fail("clients do not go on after the faults have stopped");
}

/* Clients that want nothing ask for nothing. */
static void check_rest(void)
{
	u64 calls, end = sim.now + END_S * SIM_S;

	cluster.rest = true;
	do {
		calls = cluster.map_calls;
		sim_sleep(REST_MS * SIM_MS);
	} while (cluster.map_calls != calls && sim.now < end && !sim.failure[0]);
	if (cluster.map_calls != calls)
		sim_fail("clients without requests go on asking for maps");
}

void verdict_run(void *argument)
{
	(void)argument;
	if (!wait_until(is_serving, SETUP_S) || set_up() != 0)
		sim_fail("the array is not set up");
	if (cluster.intrusion && set_up_intruder() != 0)
		sim_fail("the intruder has no volume");
	for (unsigned i = 0; i < cluster.client_count; i++)
		client_start(&cluster.clients[i]);
	if (cluster.intrusion)
		(void)sim_spawn(&cluster.intruder, intruder_run, NULL);
	(void)sim_spawn(&cluster.operator_node, faults_run, NULL);
	(void)wait_until(is_quiet, 100000);
	check_progress();
	check_rest();
	cluster.over = true;
	if (!wait_until(clients_have_ended, END_S))
		sim_fail("clients do not end");
	if (!wait_until(has_filled, END_S))
		sim_fail("the volume that took all the space is not deleted");
	if (!wait_until(lease_is_ended, END_S))
		sim_fail("blocks are not made equal");
	if (!wait_until(daemon_rests, REST_S)) {
		trace_engines();
		sim_fail("the daemon does not come to rest");
	}
	if (!sim.failure[0])
		compare();
	cluster.finished = true;
	for (;;)
		sim_sleep(1000 * SIM_S);
}
