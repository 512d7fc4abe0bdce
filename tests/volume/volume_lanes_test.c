/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume_lanes_test.c: a volume's URI, and what lanes that place blocks themselves have of its client: the
 * map, the lease, what they leave behind. Engines are software controllers; no lane runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../rig/leaks.h"
#include "device/context.h"
#include "volume/placement.h"
#include "volume_rig.h"

enum { OUT = 0, NOT_REACHED = 2, MOST_RESTS = 60000 };

static struct rig rig;
static struct weir_context *context;
static struct weir_storage *storage;

static void must(int error)
{
	if (error)
		fail_msg("%s", weir_last_error());
}

/* Of the four engines one is out, and another one cannot be reached. */
static void begin(void)
{
	rig_begin(&rig, 2);
	rig.map.engines[OUT].state = NVME_VOLUME_ENGINE_OUT;
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		snprintf(rig.map.engines[i].address, sizeof(rig.map.engines[i].address), "%s",
			 i == NOT_REACHED ? "virt:nothing" : "virt:16M?block=4096&engine=on");
	must(weir_context_open("cpu", NULL, &context));
}

static void open_volume(bool read_only, const char *keys)
{
	char uri[512];

	snprintf(uri, sizeof(uri), "vol:test?daemon=%s&lanes=1%s", rig.path, keys);
	must(weir_storage_open(context, uri,
			       WEIR_OPTIONS(storage, .queues = 2, .depth = 16, .read_only = read_only),
			       &storage));
}

static void end(void)
{
	must(weir_context_close(context));
	rig_end(&rig);
}

static struct weir_session *session_of(void)
{
	const struct weir_medium *medium;

	(void)weir_transport_core(storage->transport, &medium);
	return weir_volume_from(medium)->session;
}

/* Engines have no map, and refuse its last flush for as long as it likes. */
static void close_volume(void)
{
	session_of()->keys.wait_ms = 1;
	must(weir_storage_close(storage));
}

static struct weir_placed *placed(void)
{
	return weir_at(weir_at(storage->queues, struct weir_queue, 0)->volume, struct weir_placed, 0);
}

static u32 epoch_of_lanes(void)
{
	u64 word = weir_load_u64_acquire_sys(&placed()->map);

	return word & WEIR_PLACED_VALID ? (u32)(word >> 32) : 0;
}

static u32 lease_of_lanes(void)
{
	return weir_load_u32_relaxed_sys(&placed()->lease);
}

/* Until the client's thread has done what it does every few milliseconds. */
static void await(u32 (*what)(void), u32 value)
{
	for (unsigned i = 0; i < MOST_RESTS && what() != value; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(what(), value);
}

/* What lanes have for an engine of the map: its number among those that were in when the volume was opened.
 */
static u32 number_of(u32 engine)
{
	if (engine == WEIR_PLACEMENT_NONE)
		return WEIR_PLACED_NOBODY;
	return engine == NOT_REACHED ? (u32)WEIR_PLACED_HIDDEN : engine - (engine > OUT);
}

static void check_table(void)
{
	u64 word = weir_load_u64_acquire_sys(&placed()->map);
	const u32 *table =
		weir_at(placed()->tables, u32, word & WEIR_PLACED_SECOND ? WEIR_PLACEMENT_GROUPS : 0);
	static u32 expected[WEIR_PLACEMENT_GROUPS];

	must(weir_placement_build(&rig.map, expected));
	for (u32 group = 0; group < WEIR_PLACEMENT_GROUPS; group++)
		for (u32 r = 0; r < NVME_VOLUME_MOST_REPLICAS; r++)
			assert_int_equal(table[group] >> (8 * r) & 0xff,
					 number_of(expected[group] >> (8 * r) & 0xff));
}

/* Lanes have the client's map, and the next one when it has that; an engine that is not reached is hidden. */
static void lanes_go_by_the_clients_map(void **state)
{
	(void)state;
	begin();
	open_volume(false, "");
	assert_int_equal(placed()->tag, (u32)RIG_VID << 16 | RIG_CLIENT);
	assert_int_equal(placed()->engines, RIG_ENGINES - 1);
	assert_int_equal(placed()->unit_log2, RIG_UNIT_LOG2);
	assert_int_equal(placed()->replicas, 2);
	assert_int_equal(epoch_of_lanes(), rig.map.epoch);
	check_table();
	for (unsigned i = 0; i < 3; i++) {
		if (i < 2)
			rig_new_epoch(&rig, true, true);
		else
			rig_take_out(&rig, 3);
		weir_session_want_map(session_of(), rig.map.epoch - 1);
		await(epoch_of_lanes, rig.map.epoch);
		check_table();
	}
	close_volume();
	end();
}

/* Lanes write under the client's lease for as long as it has that, and not without one. */
static void lanes_write_under_the_clients_lease(void **state)
{
	(void)state;
	begin();
	open_volume(false, "");
	assert_int_equal(lease_of_lanes(), RIG_LEASE_EPOCH);
	weir_session_doubt(session_of());
	await(lease_of_lanes, 0);
	close_volume();
	open_volume(true, "");
	assert_int_equal(session_of()->lease_epoch, 0);
	assert_int_equal(lease_of_lanes(), 0);
	close_volume();
	open_volume(false, "&ro=1");
	assert_int_equal(session_of()->lease_epoch, 0);
	close_volume();
	end();
	assert_int_equal(rig.releases, 0); /* the first one's was lost */
}

/* Writes of lanes that not all engines have are the daemon's to make equal. */
static void the_daemon_hears_what_lanes_left(void **state)
{
	(void)state;
	begin();
	for (unsigned i = 0; i < 2; i++) {
		open_volume(false, "");
		weir_store_u64_relaxed_sys(&placed()->unequal, i);
		close_volume();
	}
	end();
	assert_int_equal(rig.releases, 2);
	assert_int_equal(rig.unequal, 1);
}

/* Each key of the URI is what the client goes by. */
static void keys_are_taken(void **state)
{
	const struct weir_session_keys *keys;

	(void)state;
	begin();
	open_volume(false, "");
	assert_int_equal(session_of()->keys.wait_ms, 10000);
	close_volume();
	open_volume(false,
		    "&hostnqn=nqn.test:other&hostid=01020304-0506-0708-090a-0b0c0d0e0f10&wait_ms=777"
		    "&dhchap_secret=/secret&dhchap_ctrl_secret=/engine&daemon_psk=/daemon&tls_psk=/key");
	keys = &session_of()->keys;
	assert_string_equal(keys->name, "test");
	assert_string_equal(keys->daemon, rig.path);
	assert_string_equal(keys->host.nqn, "nqn.test:other");
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(keys->host.id[i], i + 1);
	assert_int_equal(keys->wait_ms, 777);
	assert_string_equal(keys->secret, "/secret");
	assert_string_equal(keys->controller_secret, "/engine");
	assert_string_equal(keys->daemon_key, "/daemon");
	assert_string_equal(keys->engine_key, "/key");
	assert_false(keys->read_only);
	close_volume();
	end();
}

static void nothing_of_a_volume_is_left(void **state)
{
	enum { ROUNDS = 24, FIRST = 4, TABLES = 1 << 20 }; /* that of a map has 256 KiB */
	struct test_has before = { 0 };

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		begin();
		open_volume(i % 2, "");
		close_volume();
		end();
		if (i == FIRST)
			before = test_has();
	}
	test_keeps(before, 64 << 20); /* threads may have other stacks */
	if (TEST_COUNTS_MEMORY)
		assert_true(test_has().heap_bytes < before.heap_bytes + TABLES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_go_by_the_clients_map),
		cmocka_unit_test(lanes_write_under_the_clients_lease),
		cmocka_unit_test(the_daemon_hears_what_lanes_left),
		cmocka_unit_test(keys_are_taken),
		cmocka_unit_test(nothing_of_a_volume_is_left),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("volume_lanes", tests, NULL, NULL);
}
