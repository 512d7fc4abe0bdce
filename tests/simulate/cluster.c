/* SPDX-License-Identifier: BSD-3-Clause */
/* simulate/cluster.c: an array made from a seed, run to its end, and taken apart. */
#include "cluster.h"
#include "lanes.h"

#include <stdio.h>
#include <string.h>

enum { MOST_STEPS = 3000000, MEDIUM_BYTES = 1 << 20, NQNS = 1 };

struct cluster cluster;

static void draw_shape(void)
{
	cluster.engine_count = (unsigned)sim_between(2, MOST_ENGINES - 2);
	cluster.replicas = (u32)sim_between(2, cluster.engine_count < 3 ? cluster.engine_count : 3);
	cluster.unit_log2 = (u32)sim_between(0, 2);
	cluster.volume_blocks = sim_between(MOST_OP_BLOCKS, MOST_BLOCKS);
	cluster.lease_ms = sim_between(1500, 6000);
	cluster.client_count = (unsigned)sim_between(2, MOST_CLIENTS);
	cluster.intrusion = sim_chance(1, 4);
	cluster.hot = sim_chance(1, 3) ? (u32)sim_between(1, 3) : 0;
}

static void build(u64 ns, bool lanes)
{
	memset(&cluster, 0, sizeof(cluster));
	cluster.lanes = lanes;
	sim_network_begin();
	if (lanes)
		lanes_draw_pauses();
	draw_shape();
	sim_network_add(&cluster.daemon.node, "daemon", "nqn.daemon", daemon_receive);
	sim_network_add(&cluster.operator_node, "operator", "nqn.operator", NULL);
	intruder_begin();
	for (unsigned i = 0; i < MOST_ENGINES; i++)
		engine_node_create(i, MEDIUM_BYTES);
	for (unsigned i = cluster.engine_count; i < MOST_ENGINES; i++)
		cluster.engines[i].is_out = true;
	for (unsigned i = 0; i < cluster.client_count; i++)
		client_create(i, i == 0 || (i == 2 && sim_chance(2, 3)));
	history_create(&cluster.history, MOST_BLOCKS);
	for (unsigned i = 0; i < cluster.engine_count; i++)
		engine_node_start(&cluster.engines[i]);
	daemon_start();
	faults_begin(ns);
	(void)sim_spawn(&cluster.operator_node, verdict_run, NULL);
}

static void take_apart(void)
{
	for (unsigned i = 0; i < cluster.client_count; i++)
		client_destroy(&cluster.clients[i]);
	if (cluster.daemon.node.alive)
		daemon_kill();
	for (unsigned i = 0; i < MOST_ENGINES; i++)
		engine_node_destroy(&cluster.engines[i]);
	sim_end(sim_drop);
	sim_network_end();
	history_destroy(&cluster.history);
}

void cluster_run(u64 seed, u64 seconds, bool lanes, bool trace, struct outcome *outcome)
{
	u64 begun;

	sim_begin(seed, trace);
	begun = sim.now;
	build(seconds ? seconds * SIM_S : sim_between(1500, 7000) * SIM_MS, lanes);
	while (!cluster.finished && !sim.failure[0] && sim.steps < MOST_STEPS && sim_step())
		;
	if (!cluster.finished && !sim.failure[0])
		sim_fail("it does not end within %d steps", MOST_STEPS);
	*outcome = (struct outcome){ .failed = sim.failure[0] != '\0',
				     .hash = sim.hash,
				     .steps = sim.steps,
				     .simulated_ns = sim.now - begun,
				     .reads = cluster.reads,
				     .writes = cluster.writes,
				     .faults = cluster.faults };
	memcpy(outcome->failure, sim.failure, sizeof(outcome->failure));
	take_apart();
}
