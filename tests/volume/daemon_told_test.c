/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon_told_test.c: what the daemon tells of engines, of work that goes on and of volumes, number by
 * number. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "daemon_client.h"
#include "volume/rpc.h"

static void check_number(json_t *object, const char *name, json_int_t expected)
{
	json_t *value = json_object_get(object, name);

	assert_true(json_is_integer(value));
	if (json_integer_value(value) != expected)
		fail_msg("%s: %lld, and not %lld", name, (long long)json_integer_value(value),
			 (long long)expected);
}

static void check_text(json_t *object, const char *name, const char *expected)
{
	assert_string_equal(json_string_value(json_object_get(object, name)), expected);
}

static json_t *ask_well(const char *method, json_t *params)
{
	int code;
	json_t *result = ask(method, params, &code);

	assert_int_equal(code, 0);
	return result;
}

/* What engines count is told as they do, each number by its own name, and as large as it is. */
static void test_engines_are_told_as_they_are(void **state)
{
	static const char *const names[] = { "blocks",     "used",     "user_writes", "medium_writes",
					     "bad_blocks", "repaired", "refused" };
	json_t *result, *engine;

	(void)state;
	start_daemon(3, 0, true);
	for (u64 i = 0; i < 3; i++)
		d->engines[i].status = (struct nvme_volume_engine_status){ .blocks = i << 40 | 1,
									   .used = i << 40 | 2,
									   .user_writes = i << 40 | 3,
									   .medium_writes = i << 40 | 4,
									   .bad_blocks = i << 40 | 5,
									   .repaired = i << 40 | 6,
									   .refused = i << 40 | 7,
									   .map_epoch = ~(u32)i };
	d->copy.task = VOLUMED_JOIN;
	d->copy.engine = 1;
	result = ask_well("engine_list", NULL);
	assert_int_equal(json_array_size(json_object_get(result, "engines")), 3);
	for (u64 i = 0; i < 3; i++) {
		engine = json_array_get(json_object_get(result, "engines"), i);
		for (u64 j = 0; j < sizeof(names) / sizeof(names[0]); j++)
			check_number(engine, names[j], (json_int_t)(i << 40 | (j + 1)));
		check_number(engine, "map_epoch", ~(u32)i);
		check_number(engine, "id", d->engines[i].info.id);
		check_number(engine, "domain", (json_int_t)i);
		check_number(engine, "weight", 100);
		check_text(engine, "state", "in");
		check_text(engine, "what", i == 1 ? "catching up" : "in");
	}
	json_decref(result);
	d->copy.task = VOLUMED_IDLE;
}

/* The same of what the daemon does. */
static void test_work_is_told_as_it_is(void **state)
{
	static const char *const tasks[] = { "none", "rebuild", "join", "leave" };
	static const char *const names[] = {
		"maps",          "heartbeats",       "taken_out",       "taken_in",
		"blocks_copied", "blocks_equalized", "blocks_repaired", "leases"
	};
	const struct volumed_counts counts = { 1 << 20, 2 << 20, 3 << 20, 4 << 20,
					       5 << 20, 6 << 20, 7 << 20, 8 << 20 };
	json_t *result, *copy;

	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	d->counts = counts;
	for (unsigned i = 0; i < 8; i++) {
		bool open = i & 1;

		d->copy.task = (enum volumed_task)(i / 2);
		d->copy.compared = 100;
		d->copy.copied = 30;
		d->copy.level.compared = 7;
		d->copy.level.copied = 2;
		d->copy.open = open;
		result = ask_well("status", NULL);
		copy = json_object_get(result, "copy");
		check_text(copy, "task", tasks[i / 2]);
		check_number(copy, "blocks", BLOCKS);
		check_number(copy, "compared", i < 2 ? 0 : open ? 107 : 100);
		check_number(copy, "copied", i < 2 ? 0 : open ? 32 : 30);
		for (unsigned j = 0; j < 8; j++)
			check_number(json_object_get(result, "counts"), names[j], (json_int_t)(j + 1) << 20);
		check_number(result, "map_epoch", d->epoch);
		check_number(result, "engines", 3);
		check_number(result, "engines_in", 3);
		check_number(result, "volumes", 1);
		json_decref(result);
	}
	memset(&d->copy.level, 0, sizeof(d->copy.level));
	d->copy.open = false;
	d->copy.task = VOLUMED_IDLE;
}

/* And of a volume, of whose hosts those are left out that have no rights any more. */
static void test_a_volume_is_told_as_it_is(void **state)
{
	const u64 blocks = 1ull << 31;
	json_t *result, *volume, *hosts;

	(void)state;
	begin_written(3);
	do_call("volume_chmod", json_pack("{s:s, s:s, s:s}", "name", "v", "hostnqn", OTHER, "rights", ""), 0);
	d->volumes[0].info.blocks = blocks;
	d->volumes[0].info.unit_log2 = 4;
	d->volumes[0].info.weight = 300;
	d->volumes[0].unclean = true;
	result = ask_well("volume_info", json_pack("{s:s}", "name", "v"));
	volume = json_object_get(result, "volume");
	hosts = json_object_get(volume, "hosts");
	check_number(volume, "blocks", (json_int_t)blocks);
	check_number(volume, "bytes", (json_int_t)blocks * 4096);
	check_number(volume, "unit_bytes", 16 * 4096);
	check_number(volume, "weight", 300);
	check_number(volume, "replicas", REPLICAS);
	assert_true(json_is_true(json_object_get(volume, "unequal")));
	check_number(json_object_get(volume, "lease"), "client", writer.number);
	check_number(json_object_get(volume, "lease"), "epoch", writer.lease);
	check_number(json_object_get(volume, "lease"), "ms", LEASE_MS);
	assert_int_equal(json_array_size(hosts), 1);
	check_text(json_array_get(hosts, 0), "hostnqn", HOST);
	check_text(json_array_get(hosts, 0), "rights", "rw");
	check_number(json_array_get(hosts, 0), "client", writer.number);
	json_decref(result);
}

/* What weir-volumed is not told is the usual: a lease of five minutes, an engine that is taken out after
 * three half seconds without an answer, clients that are kept off for a tenth. */
static void test_what_is_not_told_is_the_usual(void **state)
{
	const struct volumed_options given = { .linker = &array.base,
					       .lease_ms = 7,
					       .heartbeat_ms = 8,
					       .misses = 9,
					       .rebuild_blocks = 10,
					       .kept_off_ms = 11,
					       .now_ms = now,
					       .alone = true };

	(void)state;
	assert_int_equal(volumed_create(&given, &d), 0);
	assert_ptr_equal(d->options.linker, given.linker);
	assert_int_equal(d->options.lease_ms, 7);
	assert_int_equal(d->options.heartbeat_ms, 8);
	assert_int_equal(d->options.misses, 9);
	assert_int_equal(d->options.rebuild_blocks, 10);
	assert_int_equal(d->options.kept_off_ms, 11);
	assert_int_equal(volumed_now_ms(d), clock_ms);
	assert_true(d->options.alone);
	volumed_destroy(d);
	assert_int_equal(volumed_create(&(struct volumed_options){ .linker = &array.base }, &d), 0);
	assert_int_equal(d->options.lease_ms, 300000);
	assert_int_equal(d->options.heartbeat_ms, 500);
	assert_int_equal(d->options.misses, 3);
	assert_int_equal(d->options.kept_off_ms, 100);
	assert_int_equal(d->options.rebuild_blocks, 0);
	assert_true(volumed_now_ms(d) > 0);
	assert_false(d->options.alone);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(test_engines_are_told_as_they_are),
		CASE(test_work_is_told_as_it_is),
		CASE(test_a_volume_is_told_as_it_is),
		CASE(test_what_is_not_told_is_the_usual),
	};

	return cmocka_run_group_tests_name("daemon_told", tests, NULL, NULL);
}
