/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate/client.c: a client's process: a program that writes and reads a volume.
 *
 * Owns: which requests are made, and that each read is asked of the history.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "faults.h"
#include "record.h"

enum {
	REOPEN_MS = 700,
	MOST_OP_S = 150,
	CALLS_END_MS = 4000,
	WORDS = NVME_VOLUME_BLOCK_BYTES / sizeof(u64),
};

/* ---- data ---- */

static void fill(u8 *data, u64 value, u32 vba)
{
	u64 *words = (u64 *)(void *)data;

	for (u32 i = 0; i < WORDS; i++)
		words[i] = value * 0x9e3779b97f4a7c15u + i;
	words[0] = value;
	words[WORDS - 1] = vba;
}

/* What write it is; ~0: none. */
static u64 value_of(const u8 *data, u32 vba)
{
	const u64 *words = (const u64 *)(const void *)data;
	u64 value = words[0], wrong = value ? words[WORDS - 1] ^ vba : words[WORDS - 1];

	for (u32 i = 1; i + 1 < WORDS; i++)
		wrong |= words[i] ^ (value ? value * 0x9e3779b97f4a7c15u + i : 0);
	return wrong ? ~(u64)0 : value;
}

u64 client_value_of(const u8 *data, u32 vba)
{
	return value_of(data, vba);
}

/* ---- requests ---- */

static void op_done(struct weir_io *io)
{
	((struct op *)io)->ended = true;
}

static const char *recorded_kind(const struct op *op)
{
	return op->io.kind == WEIR_IO_READ ? "read" : op->io.kind == WEIR_IO_FLUSH ? "flush" : "write";
}

/* A flush is of no block, and of one process. */
static void record_begin(const struct client *client, struct op *op, u32 i, u64 value)
{
	if (!op->process[i])
		op->process[i] = record_process();
	record_add(
		&(struct record_line){ .process = op->process[i],
				       .type = "invoke",
				       .what = recorded_kind(op),
				       .key = op->io.kind == WEIR_IO_FLUSH ? RECORD_NO_KEY : (i64)op->vba + i,
				       .value = value,
				       .lease = op->io.kind == WEIR_IO_READ ? 0 : client->epoch });
}

/* What may or may not have happened is the last of its process. */
static void record_end(struct op *op, u32 i, const char *type, u64 value)
{
	record_add(&(struct record_line){
		.process = op->process[i],
		.type = type,
		.what = recorded_kind(op),
		.key = op->io.kind == WEIR_IO_FLUSH ? RECORD_NO_KEY : (i64)op->vba + i,
		.value = value,
		.unknown = op->io.kind == WEIR_IO_FLUSH || *type == 'f',
		.durable = *type == 'o' && op->io.force_unit_access && op->io.kind != WEIR_IO_READ &&
			   op->io.kind != WEIR_IO_DISCARD && op->io.kind != WEIR_IO_FLUSH,
		.outsider = op->by_outsider && op->io.kind == WEIR_IO_READ });
	if (*type == 'i')
		op->process[i] = 0;
}

/* @good: it was done, and no loss of power came between. */
static void record_ends(struct op *op, bool good)
{
	bool reads = op->io.kind == WEIR_IO_READ;

	for (u32 i = 0; i < (op->blocks ? op->blocks : 1); i++) {
		const u8 *data = op->data + (size_t)i * NVME_VOLUME_BLOCK_BYTES;
		bool empty = op->io.kind != WEIR_IO_READ && op->io.kind != WEIR_IO_WRITE;

		record_end(op, i,
			   good    ? "ok"
			   : reads ? "fail"
				   : "info",
			   empty || (reads && !good) ? 0 : value_of(data, op->vba + i));
	}
}

static void note_begin(const struct client *client, struct op *op)
{
	static const char *const kinds[] = { "reads", "writes", "flushes", "zeroes", "discards" };

	if (sim.trace)
		printf("          client %u %s %u blocks from %u on\n", client->node.id, kinds[op->io.kind],
		       op->blocks, op->vba);
	if (op->io.kind == WEIR_IO_FLUSH) {
		history_flush_begin(&cluster.history, op->floors);
		record_begin(client, op, 0, 0);
	}
	for (u32 i = 0; i < op->blocks; i++) {
		u64 value = op->io.kind == WEIR_IO_WRITE ? ++cluster.values : 0;

		if (op->io.kind == WEIR_IO_READ) {
			op->read[i] = history_read_begin(&cluster.history, op->vba + i);
			record_begin(client, op, i, 0);
			continue;
		}
		if (value)
			fill(op->data + (size_t)i * NVME_VOLUME_BLOCK_BYTES, value, op->vba + i);
		op->index[i] = history_write_begin(&cluster.history, op->vba + i, client->epoch, value);
		record_begin(client, op, i, value);
	}
}

static enum weir_io_kind draw_kind(const struct client *client)
{
	u64 kind = sim_below(20);

	if (!client->writes)
		return WEIR_IO_READ;
	return kind < 11   ? WEIR_IO_WRITE
	       : kind < 12 ? WEIR_IO_ZERO
	       : kind < 13 ? (client->lanes ? WEIR_IO_ZERO : WEIR_IO_DISCARD)
	       : kind < 14 ? WEIR_IO_FLUSH
			   : WEIR_IO_READ;
}

/* Where a request of @blocks begins. */
static u32 draw_block(const struct client *client, u32 blocks)
{
	u64 all = client->medium->bytes / NVME_VOLUME_BLOCK_BYTES;

	return (u32)sim_below(cluster.hot && sim_chance(7, 8) ? cluster.hot : all - blocks + 1);
}

/* A call whose answer was lost keeps the client from hearing of maps for a while. */
static bool outlasts_calls(const struct client *client)
{
	return ((struct volume *)client->medium)->session->keys.wait_ms > CALLS_END_MS;
}

u8 *client_data(struct op *op)
{
	if (!op->data) {
		op->data = aligned_alloc(4096, MOST_OP_BYTES);
		if (!op->data)
			abort();
		memset(op->data, 0, MOST_OP_BYTES);
	}
	return op->data;
}

/* Lanes that write the same block at the same time have no say in which of them is last: so these do not. */
static bool would_race(const struct client *client, const struct op *op)
{
	for (u32 i = 0; client->lanes && i < MOST_OPS; i++) {
		const struct op *other = &client->ops[i];

		if (other != op && other->used && other->io.kind != WEIR_IO_READ &&
		    other->vba < op->vba + op->blocks && op->vba < other->vba + other->blocks)
			return true;
	}
	return false;
}

static void begin(struct client *client, struct op *op)
{
	enum weir_io_kind kind = draw_kind(client);

	(void)client_data(op);
	op->used = true;
	op->ended = op->by_outsider = false;
	op->begun = sim.now;
	op->well = cluster.quiet && sim.now >= cluster.well_from && outlasts_calls(client) &&
		   fault_engines_well();
	op->losses = cluster.history.losses;
	op->blocks = kind == WEIR_IO_FLUSH ? 0 : (u32)sim_between(1, sim_chance(1, 3) ? MOST_OP_BLOCKS : 1);
	op->vba = draw_block(client, op->blocks);
	if (op->blocks && kind != WEIR_IO_READ && would_race(client, op))
		kind = WEIR_IO_READ;
	op->iov = (struct iovec){ op->data, (size_t)op->blocks * NVME_VOLUME_BLOCK_BYTES };
	op->io = (struct weir_io){ .kind = kind,
				   .force_unit_access = sim_chance(1, 6),
				   .offset_bytes = (u64)op->vba * NVME_VOLUME_BLOCK_BYTES,
				   .bytes = (u64)op->blocks * NVME_VOLUME_BLOCK_BYTES,
				   .iov = &op->iov,
				   .iov_count = kind == WEIR_IO_READ || kind == WEIR_IO_WRITE,
				   .done = op_done };
	note_begin(client, op);
	if (client->lanes)
		client_lanes_begin(client, op);
	else
		(void)client->medium->ops->submit(client->medium, &op->io);
}

static void check_read(const struct client *client, const struct op *op, u32 i)
{
	u32 vba = op->vba + i;
	u64 value = value_of(op->data + (size_t)i * NVME_VOLUME_BLOCK_BYTES, vba);
	const char *wrong = NULL;

	if (!op->by_outsider)
		wrong = history_read_end(&cluster.history, vba, op->read[i], value);
	else if (value && !history_is_written(&cluster.history, vba, value))
		wrong = "a read returns what was never written";
	if (wrong)
		sim_fail("client %u, block %u, value %lld: %s", client->node.id, vba, (long long)value,
			 wrong);
}

static const char *end_change(const struct op *op, u32 i, bool good)
{
	/* What was acknowledged when the power failed may be lost before the client hears of it. */
	good = good && op->losses == cluster.history.losses;
	if (good && op->io.force_unit_access && op->io.kind != WEIR_IO_DISCARD)
		history_write_durable(&cluster.history, op->vba + i, op->index[i]);
	return history_write_end(&cluster.history, op->vba + i, op->index[i], good);
}

static bool is_lease_lost(const struct op *op)
{
	return (op->io.status & NVME_STATUS_CODE_MASK) == NVME_STATUS_VOLUME_STALE_LEASE;
}

/* Its time was over. */
static bool is_given_up(const struct op *op)
{
	return (op->io.status >> 8 & 7) == 3;
}

static void end(struct client *client, struct op *op)
{
	bool good = !op->io.status;
	const char *wrong = NULL;

	sim_trace("client %llu: kind %llu, %llu blocks from %llu on, value %llu: status %llx",
		  (unsigned long long)client->node.id, (unsigned long long)op->io.kind,
		  (unsigned long long)op->blocks, (unsigned long long)op->vba,
		  (unsigned long long)*(const u64 *)(const void *)op->data,
		  (unsigned long long)op->io.status);
	record_ends(op, good && (op->io.kind == WEIR_IO_READ || op->losses == cluster.history.losses));
	op->used = false;
	client->done += good;
	client->failed += !good;
	if (op->io.kind == WEIR_IO_FLUSH && good && op->losses == cluster.history.losses)
		history_flush_end(&cluster.history, op->floors);
	for (u32 i = 0; i < op->blocks && !wrong; i++) {
		if (op->io.kind != WEIR_IO_READ)
			wrong = end_change(op, i, good);
		else if (good)
			check_read(client, op, i);
	}
	if (op->well && is_given_up(op))
		wrong = "a request fails although all is well";
	if (wrong)
		sim_fail("client %u, blocks from %u on: %s", client->node.id, op->vba, wrong);
	cluster.reads += op->io.kind == WEIR_IO_READ;
	cluster.writes += op->io.kind != WEIR_IO_READ;
	if (is_lease_lost(op))
		client->close = true;
}

/* ---- the process ---- */

static unsigned end_some(struct client *client)
{
	unsigned left = 0;

	for (unsigned i = 0; i < client->most_ops; i++) {
		struct op *op = &client->ops[i];

		if (op->used && op->ended)
			end(client, op);
		if (op->used && sim.now - op->begun > MOST_OP_S * SIM_S)
			sim_fail("client %u: a request does not end", client->node.id);
		left += op->used;
	}
	return left;
}

static void note_lease(const struct client *client)
{
	if (client->epoch > cluster.history.lease)
		record_add(&(struct record_line){ .process = RECORD_NEMESIS,
						  .type = "info",
						  .what = "lease",
						  .key = RECORD_NO_KEY,
						  .value = client->epoch });
	history_granted(&cluster.history, client->epoch);
}

static void open_volume(struct client *client)
{
	const struct volume_options options = { .open = client_channel_open, .argument = client };
	struct weir_session_keys keys = { .name = "v",
					  .daemon = "sim",
					  .read_only = !client->writes,
					  .wait_ms = 1000 * sim_between(2, 10) };
	struct weir_medium *medium;

	snprintf(keys.host.nqn, sizeof(keys.host.nqn), "%s", client->host);
	if (weir_volume_medium_open(&keys, 1, &options, &medium) != 0) {
		sim_sleep(sim_between(1, REOPEN_MS) * SIM_MS);
		return;
	}
	client->medium = medium;
	client->epoch = ((struct volume *)medium)->session->lease_epoch;
	client->close = false;
	sim_trace("client %llu opens the volume, lease %llu", (unsigned long long)client->node.id,
		  (unsigned long long)client->epoch);
	if (client->epoch)
		note_lease(client);
	if (cluster.lanes && sim_chance(3, 4))
		client_lanes_open(client);
}

static void close_medium(struct client *client)
{
	struct weir_medium *medium = client->medium;
	struct client_lanes *lanes = client->lanes;

	client->medium = NULL;
	client->lanes = NULL;
	if (lanes)
		client_lanes_close(lanes, medium);
	else
		medium->ops->close(medium);
}

static void close_volume(struct client *client)
{
	close_medium(client);
	sim_trace("client %llu has closed the volume", (unsigned long long)client->node.id);
	if (!cluster.over)
		sim_sleep(sim_between(1, 2 * REOPEN_MS) * SIM_MS);
}

static void begin_some(struct client *client)
{
	for (unsigned i = 0; i < client->most_ops && !client->close && !cluster.rest; i++)
		if (!client->ops[i].used && sim_chance(1, 2))
			begin(client, &client->ops[i]);
}

static void run(void *argument)
{
	struct client *client = argument;
	u64 next = 0;
	unsigned left;

	while (client->medium || !cluster.over) {
		if (!client->medium) {
			open_volume(client);
			continue;
		}
		if (sim.now >= next) {
			begin_some(client);
			next = sim.now + sim_below(client->pause_ns);
		}
		if (!client->lanes)
			(void)client->medium->ops->poll(client->medium, 0);
		left = end_some(client);
		if (client->writes && !cluster.rest && sim_chance(1, 400))
			client->close = true;
		if (!left && (client->close || cluster.over))
			close_volume(client);
		else
			sim_sleep(left ? 5 * SIM_MS : next > sim.now ? next - sim.now : SIM_MS);
	}
	client->task = NULL;
}

void client_start(struct client *client)
{
	client->node.alive = true;
	client->task = sim_spawn(&client->node, run, client);
}

void client_kill(struct client *client)
{
	struct sim_task *killer = sim.current;

	sim_trace("client %llu ends", (unsigned long long)client->node.id);
	sim_kill(&client->node);
	sim.current = NULL; /* what is taken apart is not the killer's */
	client->task = NULL;
	if (client->medium)
		close_medium(client);
	for (unsigned i = 0; i < MOST_OPS; i++) {
		if (client->ops[i].used)
			record_ends(&client->ops[i], false);
		client->ops[i].used = false;
	}
	sim.current = killer;
}

/* ---- a program that fills another volume ---- */

static bool fill_block(struct weir_medium *medium, u8 *data, u32 vba)
{
	struct op op = { .iov = { data, NVME_VOLUME_BLOCK_BYTES } };

	op.io = (struct weir_io){ .kind = WEIR_IO_WRITE,
				  .offset_bytes = (u64)vba * NVME_VOLUME_BLOCK_BYTES,
				  .bytes = NVME_VOLUME_BLOCK_BYTES,
				  .iov = &op.iov,
				  .iov_count = 1,
				  .done = op_done };
	(void)medium->ops->submit(medium, &op.io);
	while (!op.ended) {
		(void)medium->ops->poll(medium, 0);
		if (!op.ended)
			sim_sleep(SIM_MS);
	}
	return !op.io.status;
}

void client_fill(const char *name, u32 blocks)
{
	static struct client filler;
	static u8 data[NVME_VOLUME_BLOCK_BYTES] __attribute__((aligned(4096)));
	const struct volume_options options = { .open = client_channel_open, .argument = &filler };
	struct weir_session_keys keys = { .daemon = "sim", .wait_ms = 2000 };
	struct weir_medium *medium;
	u32 vba = 0;

	snprintf(keys.name, sizeof(keys.name), "%s", name);
	snprintf(keys.host.nqn, sizeof(keys.host.nqn), "%s", FILLER_HOST);
	filler = (struct client){ .task = sim.current };
	if (weir_volume_medium_open(&keys, 1, &options, &medium) != 0)
		return;
	while (vba < blocks && !cluster.quiet && fill_block(medium, data, vba))
		vba++;
	sim_trace("%llu blocks fill what there is", (unsigned long long)vba);
	medium->ops->close(medium);
}

void client_create(unsigned index, bool writes)
{
	struct client *client = &cluster.clients[index];

	snprintf(client->name, sizeof(client->name), "client%u", index);
	snprintf(client->host, sizeof(client->host), "nqn.client%u", index);
	sim_network_add(&client->node, client->name, client->host, NULL);
	client->node.alive = false;
	client->writes = writes;
	client->most_ops = (unsigned)sim_between(1, MOST_OPS);
	client->pause_ns = sim_between(20, 600) * SIM_MS;
	if (writes && sim_chance(1, 6))
		client->pause_ns = 4 * SIM_MS;
}

void client_destroy(struct client *client)
{
	if (client->node.alive)
		client_kill(client);
	for (unsigned i = 0; i < MOST_OPS; i++)
		free(client->ops[i].data);
}
