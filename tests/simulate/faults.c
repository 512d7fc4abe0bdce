/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate/faults.c: what goes wrong, drawn from the seed.
 *
 * Owns: which faults a seed has (each kind or not, so that seeds differ), when they come, and when they end.
 * What must survive is what docs/volumes.md says: with R replicas R - 1 engines may fail at a time. An engine
 * is harmed when it may have lost something, or may be taken out of the map; it is not any more when the
 * daemon has blocks on R engines again.
 */
#include <stdio.h>

#include "engine/parts.h"
#include "faults.h"
#include "record.h"

enum fault {
	FAULT_CUT,       /* a connection is reset */
	FAULT_BAD_TIME,  /* messages are lost, late, twice */
	FAULT_PARTITION, /* two nodes do not reach each other */
	FAULT_ONE_WAY,   /* ... in one direction */
	FAULT_KILL,      /* an engine's process ends */
	FAULT_POWER,     /* ... and its disk loses its cache */
	FAULT_WIPE,      /* ... and all that was on it */
	FAULT_DAEMON,    /* the daemon's process ends */
	FAULT_CLIENT,    /* a client's */
	FAULT_STALL,     /* a process stands still */
	FAULT_CLOCK,     /* a clock jumps ahead */
	FAULT_SLOW,      /* a disk is slow */
	FAULT_ROT,       /* a bit of a disk turns over */
	FAULT_LEASE,     /* an operator ends a lease */
	FAULT_VOLUMES,   /* an operator creates and deletes volumes */
	FAULT_ENGINES,   /* an operator adds and removes engines */
	FAULT_BLACKOUT,  /* the power of everything but clients fails */
	FAULT_RELAY,     /* disks are replaced one after the other, then FAULT_BLACKOUT */
	FAULT_STALE,     /* a client hears of no map for long */
	FAULT_LEASES,    /* leases are taken over often */
	FAULT_LAG,       /* commands to an engine are late */
	FAULT_GROW,      /* an operator makes the volume larger */
	FAULT_FILL,      /* all engines are full */
	FAULT_FULL,      /* the file system below an engine is */
	FAULTS,
};

enum { PAUSE_LEAST_MS = 20, PAUSE_MOST_MS = 1500, MOST_ROTTEN = 12 };

static u32 kinds;  /* of this seed, as bits */
static u32 budget; /* engines that may be harmed at a time */
static u64 quiet_at;
static u32 volumes; /* that operators created */

static struct engine_node *node_of(const struct volumed_engine *engine)
{
	unsigned number = 0;

	(void)sscanf(engine->info.address, "sim:%u", &number);
	return &cluster.engines[number - 1];
}

static bool is_cut(const struct engine_node *node)
{
	unsigned daemon = cluster.daemon.node.id, engine = node->node.id;

	return network.blocked[daemon][engine] || network.blocked[engine][daemon];
}

/* It may lack blocks, and the daemon may be about to compare it with others: these are still needed. */
static bool is_in_doubt(const struct volumed_engine *engine)
{
	return engine->status.doubtful && !engine->accepted && cluster.daemon.works;
}

static bool is_well(const struct volumed_engine *engine)
{
	const struct engine_node *node = node_of(engine);

	return engine->current && !is_in_doubt(engine) && engine->answers && node->ready &&
	       !node->engine->failed && !node->disk.full && !is_cut(node) && daemon_has(node) &&
	       node->node.stalled_until <= sim.now && node->engine->has_map &&
	       node->engine->map.epoch == cluster.daemon.d->epoch;
}

/* Every block is on as many engines as it may be; their number. 0: not. */
u32 fault_engines_well(void)
{
	const struct volumed *d = cluster.daemon.serving ? cluster.daemon.d : NULL;
	u32 count = 0;

	if (!d || !d->counted || d->rebuilding || d->copy.task == VOLUMED_REBUILD)
		return 0;
	for (unsigned i = 0; i < d->engine_count; i++) {
		if (!volumed_engine_in(&d->engines[i]))
			continue;
		if (!is_well(&d->engines[i]))
			return 0;
		count++;
	}
	return count;
}

static void renew_budget(void)
{
	u32 count = fault_engines_well();

	if (!count)
		return;
	budget = (count < cluster.replicas ? count : cluster.replicas) - 1;
	for (unsigned i = 0; i < MOST_ENGINES; i++)
		cluster.engines[i].harmed = false;
}

/* Whether engine @node may fail now, too; then it counts as harmed. */
bool fault_harm(struct engine_node *node)
{
	u32 count = 0;

	renew_budget();
	for (unsigned i = 0; i < MOST_ENGINES; i++)
		count += &cluster.engines[i] != node &&
			 (cluster.engines[i].harmed || cluster.engines[i].rotten);
	if (count + 1 > budget || cluster.quiet)
		return false;
	node->harmed = true;
	return true;
}

static bool is_any_rotten(void)
{
	bool rotten = false;

	for (unsigned i = 0; i < MOST_ENGINES; i++)
		rotten = rotten || cluster.engines[i].rotten;
	return rotten;
}

/* Where one engine may fail, it is another one that has: this one is the last, and stays in. Where two may,
 * it is taken out if only one has, and then no further one may fail. */
bool fault_silence(struct engine_node *node)
{
	if (fault_harm(node) || budget < 2)
		return true;
	if (cluster.quiet || is_any_rotten())
		return false;
	node->harmed = true;
	return true;
}

static struct engine_node *engine_of(const struct sim_node *node)
{
	for (unsigned i = 0; i < MOST_ENGINES; i++)
		if (&cluster.engines[i].node == node)
			return &cluster.engines[i];
	return NULL;
}

/* A daemon that does not hear of an engine takes it out: that is a failure of the engine. */
static bool may_disturb(const struct sim_connection *connection)
{
	struct engine_node *engine = engine_of(connection->server);

	return !engine || connection->client != &cluster.daemon.node || fault_harm(engine);
}

struct engine_node *fault_draw_engine(void)
{
	struct engine_node *node = &cluster.engines[sim_below(MOST_ENGINES)];

	return node->ready ? node : NULL;
}

/* ---- faults and their ends ---- */

static void start_again(void *argument, u64 word)
{
	struct engine_node *node = argument;

	(void)word;
	if (!node->node.alive)
		engine_node_start(node);
}

u64 fault_draw_ns(u64 least_ms, u64 most_ms)
{
	return sim_between(least_ms, sim_chance(1, 2) ? most_ms : least_ms + (most_ms - least_ms) / 8) *
	       SIM_MS;
}

bool fault_kill_engine(bool power, bool wipe)
{
	struct engine_node *node = fault_draw_engine();

	if (!node || !fault_harm(node))
		return false;
	engine_node_kill(node, power);
	if (wipe) {
		sim_trace("the disk of engine %llu is replaced", (unsigned long long)node->node.id);
		sim_disk_wipe(&node->disk);
	}
	sim_at(fault_draw_ns(1, 6000), start_again, node, 0);
	return true;
}

static void daemon_again(void *argument, u64 word);

/* What was durable stays; of the rest, anything may. A damaged block may be the only one of its version then:
 * that is more than replicas are for. */
void fault_blackout(void)
{
	bool slow = sim_chance(1, 3); /* engines start later than the daemon */

	if (is_any_rotten())
		return;
	sim_trace("the power fails everywhere");
	for (unsigned i = 0; i < MOST_ENGINES; i++) {
		struct engine_node *node = &cluster.engines[i];

		if (!node->node.alive)
			continue;
		engine_node_kill(node, true);
		sim_at(fault_draw_ns(1, slow ? 12000 : 3000), start_again, node, 0);
	}
	if (cluster.daemon.node.alive)
		daemon_kill();
	sim_at(fault_draw_ns(1, 3000), daemon_again, NULL, 0);
	history_power_lost(&cluster.history);
	record_add(&(struct record_line){ .process = RECORD_NEMESIS,
					  .type = "info",
					  .what = "power",
					  .key = RECORD_NO_KEY,
					  .unknown = true });
	budget = 0;
}

static void daemon_again(void *argument, u64 word)
{
	(void)argument;
	(void)word;
	if (!cluster.daemon.node.alive)
		daemon_start();
}

static void kill_daemon(void)
{
	if (!cluster.daemon.node.alive)
		return;
	daemon_kill();
	sim_at(fault_draw_ns(1, 6000), daemon_again, NULL, 0);
}

static void client_again(void *argument, u64 word)
{
	struct client *client = argument;

	(void)word;
	if (!client->node.alive && !cluster.over)
		client_start(client);
}

static void kill_client(void)
{
	struct client *client = &cluster.clients[sim_below(cluster.client_count)];

	if (!client->node.alive)
		return;
	client_kill(client);
	sim_at(fault_draw_ns(1, 5000), client_again, client, 0);
}

static void heal(void *argument, u64 word)
{
	(void)argument;
	network.blocked[word >> 8][word & 0xff] = false;
}

void fault_block(unsigned from, unsigned to, u64 ns)
{
	if (network.blocked[from][to])
		return;
	sim_trace("%llu does not reach %llu for %llu ms", (unsigned long long)from, (unsigned long long)to,
		  (unsigned long long)(ns / SIM_MS));
	network.blocked[from][to] = true;
	sim_at(ns, heal, NULL, (u64)from << 8 | to);
}

static void partition(bool one_way)
{
	unsigned a = (unsigned)sim_below(network.count), b = (unsigned)sim_below(network.count);
	struct engine_node *engine = engine_of(network.nodes[a]);
	u64 ns = fault_draw_ns(10, 8000);

	if (!engine)
		engine = engine_of(network.nodes[b]);
	if (a == b || network.nodes[a] == &cluster.operator_node ||
	    network.nodes[b] == &cluster.operator_node)
		return;
	if (engine &&
	    (network.nodes[a] == &cluster.daemon.node || network.nodes[b] == &cluster.daemon.node) &&
	    !fault_harm(engine))
		return;
	fault_block(a, b, ns);
	if (!one_way)
		fault_block(b, a, ns);
}

static void stall(void)
{
	struct sim_node *node = network.nodes[sim_below(network.count)];
	struct engine_node *engine = engine_of(node);
	u64 ns = fault_draw_ns(50, 9000);

	if (!node->alive || node == &cluster.operator_node || node->stalled_until > sim.now ||
	    (engine && !fault_harm(engine)))
		return;
	sim_trace("%llu stands still for %llu ms", (unsigned long long)node->id,
		  (unsigned long long)(ns / SIM_MS));
	node->stalled_until = sim.now + ns;
}

static void jump_clock(void)
{
	struct sim_node *node = network.nodes[sim_below(network.count)];
	u64 ns = fault_draw_ns(10, 20000);

	sim_trace("the clock of %llu jumps ahead by %llu ms", (unsigned long long)node->id,
		  (unsigned long long)(ns / SIM_MS));
	node->clock_ns += ns;
}

static void good_time(void *argument, u64 word)
{
	(void)argument;
	(void)word;
	network.loss_ppm = network.slow_ppm = network.duplicate_ppm = 0;
	network.most_delay_ns = 300 * SIM_US;
}

static void bad_time(void)
{
	network.loss_ppm = sim_chance(1, 2) ? 20000 : 0;
	network.slow_ppm = sim_chance(1, 2) ? 20000 : 0;
	network.duplicate_ppm = sim_chance(1, 2) ? 100000 : 0;
	network.most_delay_ns = sim_chance(1, 2) ? 20 * SIM_MS : 300 * SIM_US;
	sim_trace("the network is bad: %llu %llu %llu %llu", (unsigned long long)network.loss_ppm,
		  (unsigned long long)network.slow_ppm, (unsigned long long)network.duplicate_ppm,
		  (unsigned long long)network.most_delay_ns);
	sim_at(fault_draw_ns(100, 6000), good_time, NULL, 0);
}

static void fast_again(void *argument, u64 word)
{
	(void)word;
	((struct engine_node *)argument)->disk.slow_ns = 0;
}

static void slow_disk(void)
{
	struct engine_node *node = fault_draw_engine();

	if (!node)
		return;
	node->disk.slow_ns = sim_chance(1, 4) && fault_harm(node) ? 300 * SIM_MS : 3 * SIM_MS;
	sim_trace("the disk of engine %llu is slow", (unsigned long long)node->node.id);
	sim_at(fault_draw_ns(100, 6000), fast_again, node, 0);
}

/* ---- operators ---- */

int fault_operate(const char *method, json_t *params)
{
	json_t *result = NULL;
	int error = call_daemon(method, params, &result);

	sim_trace("an operator's call: %llu", (unsigned long long)(u32)-error);
	json_decref(result);
	return error;
}

static void change_volumes(void)
{
	char name[16];

	snprintf(name, sizeof(name), "x%llu", (unsigned long long)sim_below(3));
	volumes++;
	if (sim_chance(1, 2))
		(void)fault_operate("volume_create", json_pack("{s:s, s:i, s:i, s:i}", "name", name, "bytes",
							       8 * 4096, "replicas", 2, "unit_bytes", 4096));
	else if (sim_chance(1, 2))
		(void)fault_operate("volume_delete", json_pack("{s:s}", "name", name));
	else
		(void)fault_operate("volume_chmod",
				    json_pack("{s:s, s:s, s:s}", "name", name, "hostnqn", "nqn.other",
					      "rights", sim_chance(1, 2) ? "rw" : ""));
}

static struct engine_node *find_unused(void)
{
	for (unsigned i = cluster.engine_count; i < MOST_ENGINES; i++)
		if (!cluster.engines[i].node.alive && !cluster.engines[i].node.incarnation)
			return &cluster.engines[i];
	return NULL;
}

/* Often the newest: the next one that is added gets its number. */
static u64 draw_leaving(void)
{
	u64 id = sim_between(1, cluster.engine_count);
	const struct volumed *d = cluster.daemon.serving ? cluster.daemon.d : NULL;

	for (unsigned i = 0; d && id >= cluster.engine_count && i < d->engine_count; i++)
		id = d->engines[i].info.id > id ? d->engines[i].info.id : id;
	return id;
}

static void add_engine(void)
{
	struct engine_node *node = find_unused();

	if (!node)
		return;
	engine_node_start(node);
	sim_sleep(100 * SIM_MS);
	(void)fault_operate("engine_add", json_pack("{s:s, s:s, s:i, s:b}", "address", node->address, "nqn",
						    "nqn.engine", "domain", (int)(node - cluster.engines),
						    "spare", (int)sim_chance(1, 3)));
}

static void change_engines(void)
{
	renew_budget();
	if (find_unused() && sim_chance(1, 2)) {
		add_engine();
	} else if (fault_engines_well() > cluster.replicas) {
		(void)fault_operate("engine_remove", json_pack("{s:i}", "id", (int)draw_leaving()));
	}
}

/* Of blocks of data: damage of tables is engine_power_test's. */
static void rot(void)
{
	struct engine_node *node = fault_draw_engine();

	if (!node || node->is_out || !fault_harm(node))
		return;
	if (kinds &
	    (1u << FAULT_FULL | 1u << FAULT_FILL)) /* it may be the only one with a write that failed */
		return;
	for (u64 left = sim_between(1, MOST_ROTTEN); left > 0; left--) {
		u64 block = node->engine->shape.data + sim_below(node->engine->shape.erase_count * 8ull);

		if (!sim_disk_rot(&node->disk, block))
			continue;
		node->rotten = true;
		sim_trace("block %llu of engine %llu rots", (unsigned long long)block,
			  (unsigned long long)node->node.id);
	}
	if (node->rotten && sim_chance(1, 2))
		add_engine(); /* blocks are copied from there */
}

static void happen(enum fault fault)
{
	switch (fault) {
	case FAULT_CUT: sim_network_cut(); break;
	case FAULT_BAD_TIME: bad_time(); break;
	case FAULT_PARTITION: partition(false); break;
	case FAULT_ONE_WAY: partition(true); break;
	case FAULT_KILL: (void)fault_kill_engine(false, false); break;
	case FAULT_POWER: (void)fault_kill_engine(true, false); break;
	case FAULT_WIPE: (void)fault_kill_engine(true, true); break;
	case FAULT_DAEMON: kill_daemon(); break;
	case FAULT_CLIENT: kill_client(); break;
	case FAULT_STALL: stall(); break;
	case FAULT_CLOCK: jump_clock(); break;
	case FAULT_SLOW: slow_disk(); break;
	case FAULT_ROT: rot(); break;
	case FAULT_LEASE: (void)fault_operate("lease_end", json_pack("{s:s}", "name", "v")); break;
	case FAULT_VOLUMES: change_volumes(); break;
	case FAULT_ENGINES: change_engines(); break;
	case FAULT_BLACKOUT: fault_blackout(); break;
	case FAULT_RELAY: sequence_relay(); break;
	case FAULT_STALE: sequence_stale(); break;
	case FAULT_LEASES: sequence_leases(); break;
	case FAULT_LAG: sequence_lag(); break;
	case FAULT_GROW: sequence_grow(); break;
	case FAULT_FILL: sequence_fill(); break;
	case FAULT_FULL: sequence_full(); break;
	case FAULTS: break;
	}
}

/* All is well again, but for what clients and the daemon make of it. */
static void calm(void)
{
	cluster.quiet = true;
	good_time(NULL, 0);
	for (unsigned i = 0; i < network.count; i++) {
		if (network.nodes[i]->stalled_until > cluster.well_from)
			cluster.well_from = network.nodes[i]->stalled_until; /* until then its tasks sleep */
		network.nodes[i]->stalled_until = 0;
		network.lag_ns[i] = 0;
		for (unsigned j = 0; j < network.count; j++)
			network.blocked[i][j] = false;
	}
	for (unsigned i = 0; i < MOST_ENGINES; i++) {
		cluster.engines[i].disk.slow_ns = 0;
		if (!cluster.engines[i].node.alive && cluster.engines[i].node.incarnation)
			engine_node_start(&cluster.engines[i]);
	}
	daemon_again(NULL, 0);
	for (unsigned i = 0; i < cluster.client_count; i++)
		client_again(&cluster.clients[i], 0);
	sim_trace("faults have stopped");
}

void faults_begin(u64 ns)
{
	kinds = (u32)sim_draw() & (u32)sim_draw();
	if (sim_chance(1, 3)) /* one or two kinds, often */
		kinds = 1u << sim_below(FAULTS) | 1u << sim_below(FAULTS);
	budget = cluster.replicas - 1;
	quiet_at = sim.now + ns;
	volumes = 0;
	network.may_disturb = may_disturb;
}

void faults_run(void *argument)
{
	(void)argument;
	while (sim.now < quiet_at) {
		enum fault fault = (enum fault)sim_below(FAULTS);

		sim_sleep(sim_between(PAUSE_LEAST_MS, PAUSE_MOST_MS) * SIM_MS / 2);
		for (unsigned i = 0; i < FAULTS && !(kinds >> fault & 1); i++)
			fault = (fault + 1) % FAULTS;
		if (!(kinds >> fault & 1))
			continue;
		if (cluster.lanes && sim_chance(1, 16))
			sequence_last();
		else
			happen(fault);
		cluster.faults++;
	}
	calm();
}
