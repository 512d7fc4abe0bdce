/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate/sequences.c: faults that only matter one after the other, and disks that are full.
 *
 * Owns: orders that independent faults rarely come in.
 */
#include <errno.h>

#include "engine/parts.h"
#include "faults.h"

enum { WELL_MS = 9000, STEP_MS = 100, RELAYS = 3, LEASES = 6, FILL_BLOCKS = 400, SLOW_NS = 30 * SIM_MS };

/* All blocks are on as many engines as they may be; false: not soon. */
static bool wait_well(void)
{
	for (unsigned ms = 0; ms < WELL_MS; ms += STEP_MS) {
		if (fault_engines_well())
			return true;
		sim_sleep(STEP_MS * SIM_MS);
	}
	return false;
}

/* What was durable wanders from disk to disk; what is in no disk's cache alone survives. */
void sequence_relay(void)
{
	unsigned replaced = 0;

	for (unsigned i = 0; i < RELAYS && wait_well(); i++)
		replaced += fault_kill_engine(true, true);
	if (replaced && wait_well())
		fault_blackout();
}

/* One engine loses what it has, and another one, which may have the last replica of some blocks, is silent
 * meanwhile, and loses nothing. With three replicas that one is rightly taken out, and what it has is not
 * what is read any more: the third one may not fail then. */
void sequence_last(void)
{
	struct engine_node *node;
	u64 ns = fault_draw_ns(1000, 9000);

	if (!fault_kill_engine(true, sim_chance(1, 2)))
		return;
	sim_sleep(sim_below(2000) * SIM_MS);
	node = fault_draw_engine();
	if (!node || node->is_out || cluster.quiet || node->node.stalled_until > sim.now ||
	    !fault_silence(node))
		return;
	if (sim_chance(1, 2)) {
		sim_trace("%llu stands still for %llu ms, and may be the last",
			  (unsigned long long)node->node.id, (unsigned long long)(ns / SIM_MS));
		node->node.stalled_until = sim.now + ns;
		return;
	}
	fault_block(node->node.id, cluster.daemon.node.id, ns);
	fault_block(cluster.daemon.node.id, node->node.id, ns);
}

void sequence_stale(void)
{
	struct client *client = &cluster.clients[sim_below(cluster.client_count)];
	u64 ns = fault_draw_ns(2000, 14000);

	fault_block(client->node.id, cluster.daemon.node.id, ns);
	fault_block(cluster.daemon.node.id, client->node.id, ns);
	sim_sleep(sim_below(500) * SIM_MS);
	(void)fault_kill_engine(sim_chance(1, 2), sim_chance(1, 4));
}

void sequence_leases(void)
{
	for (unsigned i = 0; i < LEASES; i++) {
		(void)fault_operate("lease_end", json_pack("{s:s}", "name", "v"));
		sim_sleep(sim_below(60) * SIM_MS);
	}
}

static void lag_over(void *argument, u64 word)
{
	(void)argument;
	network.lag_ns[word] = 0;
}

void sequence_lag(void)
{
	struct engine_node *node = fault_draw_engine();

	if (!node || network.lag_ns[node->node.id])
		return;
	network.lag_ns[node->node.id] = sim_between(1, sim_chance(1, 3) ? 200 : 10) * SIM_MS;
	sim_trace("commands to engine %llu are late", (unsigned long long)node->node.id);
	sim_at(fault_draw_ns(200, 6000), lag_over, NULL, node->node.id);
}

void sequence_grow(void)
{
	u64 blocks = sim_between(MOST_OP_BLOCKS, MOST_BLOCKS);

	if (!fault_operate("volume_resize",
			   json_pack("{s:s, s:I}", "name", "v", "bytes", (json_int_t)(blocks * 4096))))
		cluster.grown_blocks = blocks;
}

/* Reads last while garbage is collected below them. */
static void set_disks(u64 slow_ns)
{
	for (unsigned i = 0; i < MOST_ENGINES; i++)
		if (cluster.engines[i].disk.slow_ns <= SLOW_NS)
			cluster.engines[i].disk.slow_ns = slow_ns;
}

static void fill(void *argument)
{
	(void)argument;
	(void)fault_operate("volume_create",
			    json_pack("{s:s, s:i, s:i, s:i}", "name", "full", "bytes", FILL_BLOCKS * 4096,
				      "replicas", (int)sim_between(1, 2), "unit_bytes", 4096));
	if (fault_operate("volume_chmod", json_pack("{s:s, s:s, s:s}", "name", "full", "hostnqn", FILLER_HOST,
						    "rights", "rw")) == 0)
		client_fill("full", FILL_BLOCKS);
	set_disks(SLOW_NS);
	sim_sleep(fault_draw_ns(1, 3000));
	set_disks(0);
	while (fault_operate("volume_delete", json_pack("{s:s}", "name", "full")) != -ENOENT)
		sim_sleep(STEP_MS * SIM_MS);
	cluster.filling = false;
}

void sequence_fill(void)
{
	if (cluster.filling)
		return;
	cluster.filling = true;
	sim_trace("a volume takes all the space");
	(void)sim_spawn(&cluster.operator_node, fill, NULL);
}

/* Somebody makes room, and starts the engine again if it has given up. */
static void room_again(void *argument, u64 word)
{
	struct engine_node *node = argument;

	(void)word;
	node->disk.full = false;
	sim_trace("the disk of engine %llu has room", (unsigned long long)node->node.id);
	if (!node->ready || !node->engine->failed)
		return;
	engine_node_kill(node, false);
	engine_node_start(node);
}

void sequence_full(void)
{
	struct engine_node *node = fault_draw_engine();

	if (!node || node->is_out || node->disk.full || !fault_harm(node))
		return;
	sim_trace("the disk of engine %llu is full", (unsigned long long)node->node.id);
	node->disk.full = true;
	sim_at(fault_draw_ns(100, 5000), room_again, node, 0);
}
