/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_client.h: a daemon over stand-in engines with the test's clock, and clients of it.
 *
 * Owns: calls as JSON, writes as a client makes them, and what must be true of all replicas in the end.
 */
#ifndef WEIR_TEST_DAEMON_CLIENT_H
#define WEIR_TEST_DAEMON_CLIENT_H

#include "stand_in.h"
#include "volume/daemon/methods.h"

enum { LEASE_MS = 1000000, BLOCKS = 400, REPLICAS = 2, MOST_STEPS = 20000, MOST_TRIES = 50 };

#define HOST  "nqn.2026-11.org.example:host-a"
#define OTHER "nqn.2026-11.org.example:host-b"

/** struct client - a writer or reader, and what it was told was written: by block, 0: nothing */
struct client {
	u16 number;
	u16 vid;
	u32 lease;
	u32 map;
	u64 counter;
	u64 acknowledged[BLOCKS];
};

static struct stand_in_array array;
static struct volumed *d;
static uint64_t clock_ms;
static struct client writer, reader;

static inline uint64_t now(void)
{
	return clock_ms;
}

static inline void start_daemon(unsigned engines, unsigned spares, bool gathers)
{
	int error = volumed_create(
		&(struct volumed_options){ .linker = &array.base, .lease_ms = LEASE_MS, .now_ms = now }, &d);

	assert_int_equal(error, 0);
	for (unsigned i = 0; i < engines + spares; i++) {
		struct nvme_volume_engine info = { .domain = i, .weight = 100, .nqn = "nqn.engine" };

		info.address[0] = (char)('0' + i);
		assert_int_equal(volumed_engine_note(d, &info, i >= engines), 0);
	}
	assert_int_equal(volumed_gather(d), gathers ? 0 : -EAGAIN);
}

static inline int set_up(void **state)
{
	(void)state;
	clock_ms = 1000000;
	memset(&writer, 0, sizeof(writer));
	memset(&reader, 0, sizeof(reader));
	stand_in_init(&array);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	volumed_destroy(d);
	stand_in_release(&array);
	return 0;
}

/* The result, or NULL and *@code. */
static inline json_t *ask(const char *method, json_t *params, int *code)
{
	json_t *request = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", 1, "method", method,
				    "params", params ? params : json_object());
	json_t *reply = volumed_answer(d, NULL, request), *result = json_object_get(reply, "result");

	*code = (int)json_integer_value(json_object_get(json_object_get(reply, "error"), "code"));
	json_incref(result);
	json_decref(reply);
	json_decref(request);
	return result;
}

static inline void do_call(const char *method, json_t *params, int expected)
{
	int code;
	json_t *result = ask(method, params, &code);

	assert_int_equal(code, expected);
	json_decref(result);
}

static inline void take_map(struct client *client, json_t *result)
{
	client->map = (u32)json_integer_value(json_object_get(json_object_get(result, "map"), "epoch"));
}

static inline int open_volume(struct client *client, const char *host, bool write)
{
	int code;
	json_t *result =
		ask("volume_open", json_pack("{s:s, s:s, s:b}", "name", "v", "hostnqn", host, "write", write),
		    &code);

	if (code)
		return code;
	client->number = (u16)json_integer_value(json_object_get(result, "client"));
	client->vid = (u16)json_integer_value(json_object_get(json_object_get(result, "volume"), "vid"));
	client->lease = (u32)json_integer_value(json_object_get(json_object_get(result, "lease"), "epoch"));
	client->counter = 0;
	take_map(client, result);
	json_decref(result);
	return 0;
}

static inline void make_volume(void)
{
	do_call("volume_create",
		json_pack("{s:s, s:i, s:i, s:i}", "name", "v", "bytes", BLOCKS * 4096, "replicas", REPLICAS,
			  "unit_bytes", 4096),
		0);
	do_call("volume_chmod", json_pack("{s:s, s:s, s:s}", "name", "v", "hostnqn", HOST, "rights", "rw"),
		0);
	do_call("volume_chmod", json_pack("{s:s, s:s, s:s}", "name", "v", "hostnqn", OTHER, "rights", "rw"),
		0);
}

static inline u32 engine_at(u16 vid, u32 vba, u32 replica)
{
	return weir_placement_engine((weir_addr)(uintptr_t)d->table, weir_placement_group(vid, vba, 0),
				     replica);
}

static inline void get_map(struct client *client)
{
	int code;
	json_t *result = ask("map_get", NULL, &code);

	assert_int_equal(code, 0);
	take_map(client, result);
	json_decref(result);
}

static inline void suspect(struct client *client, u32 engine)
{
	do_call("engine_suspect",
		json_pack("{s:I, s:I}", "id", (json_int_t)d->engines[engine].info.id, "map_epoch",
			  (json_int_t)client->map),
		0);
	get_map(client);
}

/* As a client does: to all replicas of the map, again after each refusal that another map cures. */
static inline int write_block(struct client *client, u32 vba, u64 word)
{
	u64 version = (u64)client->lease << NVME_VOLUME_VERSION_EPOCH | ++client->counter;

	for (unsigned i = 0; i < MOST_TRIES; i++) {
		int status = 0;

		for (u32 replica = 0; replica < REPLICAS && !status; replica++) {
			u32 engine = engine_at(client->vid, vba, replica);

			status = stand_in_write(&array.engines[engine], client->number, client->lease,
						client->map, client->vid, vba, version, word);
			if (status == -1)
				suspect(client, engine);
		}
		if (!status)
			client->acknowledged[vba] = word;
		if (status != -1 && status != NVME_STATUS_VOLUME_STALE_MAP &&
		    status != NVME_STATUS_VOLUME_NO_MAP)
			return status;
		get_map(client);
	}
	return -ETIMEDOUT;
}

static inline void write_all(u64 base)
{
	for (u32 i = 0; i < BLOCKS; i++)
		assert_int_equal(write_block(&writer, i, base + i), 0);
}

/* An array, and a volume whose blocks are all written. */
static inline void begin_written(unsigned engines)
{
	start_daemon(engines, 0, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
}

/* A write that reached replica @replica alone, of a client that is no more. */
static inline void write_one(u32 vba, u32 replica, u64 word)
{
	u64 version = (u64)writer.lease << NVME_VOLUME_VERSION_EPOCH | ++writer.counter;

	assert_int_equal(stand_in_write(&array.engines[engine_at(writer.vid, vba, replica)], writer.number,
					writer.lease, writer.map, writer.vid, vba, version, word),
			 0);
}

/* Steps until nothing is left to do but heartbeats. */
static inline void settle(void)
{
	for (unsigned i = 0; i < MOST_STEPS; i++) {
		clock_ms += 1;
		(void)volumed_step(d);
		if (i > 5 * VOLUMED_HEARTBEAT_MS && d->copy.task == VOLUMED_IDLE && !d->rebuilding)
			return;
	}
	fail_msg("it does not come to rest");
}

/* What was acknowledged is on all replicas, and they are the same; of blocks that never were, too. */
static inline void check_all(const struct client *client)
{
	for (u32 vba = 0; vba < BLOCKS; vba++) {
		const struct stand_in_block *first =
			stand_in_block(&array.engines[engine_at(client->vid, vba, 0)], client->vid, vba);

		for (u32 i = 1; i < REPLICAS; i++) {
			const struct stand_in_block *other = stand_in_block(
				&array.engines[engine_at(client->vid, vba, i)], client->vid, vba);

			assert_int_equal(first->version, other->version);
			assert_int_equal(first->word, other->word);
		}
		if (client->acknowledged[vba])
			assert_int_equal(first->word, client->acknowledged[vba]);
	}
}

#endif
