/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon_calls_test.c: calls of the daemon that are refused: numbers that fit nothing, leases that are over.
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

#include <weir/weir.h>

#include "daemon_client.h"
#include "volume/rpc.h"

static const json_int_t BEYOND_16 = (json_int_t)1 << 16, BEYOND_32 = (json_int_t)1 << 32;

static void call_lease(const char *method, json_int_t client, json_int_t epoch, int expected)
{
	do_call(method, json_pack("{s:s, s:I, s:I}", "name", "v", "client", client, "epoch", epoch),
		expected);
}

/* Of a number that is one of a client or a lease in its low bits alone nothing is renewed or given back. */
static void test_numbers_of_leases_are_not_cut(void **state)
{
	static const char *const methods[] = { "lease_renew", "lease_release" };

	(void)state;
	begin_written(3);
	for (unsigned i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		call_lease(methods[i], writer.number + BEYOND_16, writer.lease, -EINVAL);
		call_lease(methods[i], writer.number - BEYOND_16, writer.lease, -EINVAL);
		call_lease(methods[i], writer.number, writer.lease + BEYOND_32, -EINVAL);
		call_lease(methods[i], writer.number, writer.lease - BEYOND_32, -EINVAL);
	}
	assert_int_equal(write_block(&writer, 0, 5000), 0); /* it has the lease, still */
	call_lease("lease_renew", writer.number, writer.lease, 0);
	call_lease("lease_release", writer.number, writer.lease, 0);
}

static void call_suspect(json_int_t id, json_int_t epoch, int expected)
{
	do_call("engine_suspect", json_pack("{s:I, s:I}", "id", id, "map_epoch", epoch), expected);
}

/* Nor is another engine meant, or another map. */
static void test_numbers_of_engines_are_not_cut(void **state)
{
	json_int_t id;

	(void)state;
	begin_written(3);
	id = d->engines[1].info.id;
	do_call("engine_remove", json_pack("{s:I}", "id", id + BEYOND_32), -EINVAL);
	do_call("engine_remove", json_pack("{s:I}", "id", id - BEYOND_32), -EINVAL);
	assert_false(d->engines[1].leaving);
	do_call("block_damaged",
		json_pack("{s:s, s:I, s:i, s:i}", "name", "v", "id", id + BEYOND_32, "vba", 1, "blocks", 1),
		-EINVAL);
	assert_int_equal(d->damage_count, 0);
	array.engines[1].dead = true;
	call_suspect(id + BEYOND_32, d->epoch, -EINVAL);
	call_suspect(id, d->epoch + BEYOND_32, 0); /* of another map than the one of now */
	assert_true(volumed_engine_in(&d->engines[1]));
	call_suspect(id, d->epoch, 0);
	assert_false(volumed_engine_in(&d->engines[1]));
}

static void call_add(json_int_t domain, json_int_t weight)
{
	do_call("engine_add",
		json_pack("{s:s, s:s, s:I, s:I}", "address", "3", "nqn", "nqn.engine", "domain", domain,
			  "weight", weight),
		-EINVAL);
}

static void test_weights_are_not_cut(void **state)
{
	(void)state;
	begin_written(3);
	call_add(3, BEYOND_32);
	call_add(3, BEYOND_32 + 100);
	call_add(3 + BEYOND_32, 100);
	call_add(-1, 100);
	assert_int_equal(d->engine_count, 3);
	do_call("volume_create",
		json_pack("{s:s, s:i, s:I}", "name", "w", "bytes", 8 * 4096, "weight", BEYOND_32 + 100),
		-EINVAL);
	assert_int_equal(d->volume_count, 1);
}

static json_int_t call_add_without_domain(const char *address)
{
	int code;
	json_t *result =
		ask("engine_add", json_pack("{s:s, s:s}", "address", address, "nqn", "nqn.engine"), &code);
	json_int_t id = json_integer_value(json_object_get(result, "id"));

	assert_int_equal(code, 0);
	json_decref(result);
	return id;
}

static json_int_t listed_domain(json_int_t id)
{
	int code;
	json_t *result = ask("engine_list", NULL, &code), *engine;
	json_int_t domain = -1;
	size_t i;

	json_array_foreach(json_object_get(result, "engines"), i,
			   engine) if (json_integer_value(json_object_get(engine, "id")) == id) domain =
		json_integer_value(json_object_get(engine, "domain"));
	json_decref(result);
	return domain;
}

/* Engines of which nobody says what they fail with fail alone: replicas may be on any two of them. */
static void test_an_engine_without_a_domain_has_its_own(void **state)
{
	json_int_t first, second;

	(void)state;
	start_daemon(3, 0, true);
	first = listed_domain(call_add_without_domain("3"));
	second = listed_domain(call_add_without_domain("4"));
	assert_true(first >= VOLUMED_FIRST_DOMAIN && second >= VOLUMED_FIRST_DOMAIN);
	assert_true(first != second && first != VOLUMED_OWN_DOMAIN && second != VOLUMED_OWN_DOMAIN);
	settle();
	assert_int_equal(d->counts.taken_in, 2);
}

/* Whoever comes next may have the volume since: what is over stays it, though nobody has come yet. */
static void test_a_lease_that_is_over_is_not_renewed(void **state)
{
	(void)state;
	begin_written(3);
	clock_ms += LEASE_MS - 1;
	call_lease("lease_renew", writer.number, writer.lease, 0);
	clock_ms += LEASE_MS;
	call_lease("lease_renew", writer.number, writer.lease, -ESTALE);
	call_lease("lease_release", writer.number, writer.lease, -ESTALE);
	assert_int_equal(open_volume(&reader, OTHER, true), 0);
}

static void call_create(const char *name, json_int_t bytes, json_int_t replicas, json_int_t unit,
			json_int_t weight, int expected)
{
	do_call("volume_create",
		json_pack("{s:s, s:I, s:I, s:I, s:I}", "name", name, "bytes", bytes, "replicas", replicas,
			  "unit_bytes", unit, "weight", weight),
		expected);
}

/* No engine hears of a volume that cannot be. */
static void test_volumes_that_are_none(void **state)
{
	static const char *const names[] = {
		"",    "a/b",      "a b",
		"a%b", "\xc3\xa4", "0123456789012345678901234567890123456789012345678901234567890123"
	};
	const json_int_t most = (json_int_t)1 << 44, bytes = 8 * 4096, unit = 4096;

	(void)state;
	start_daemon(3, 0, true);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		call_create(names[i], bytes, 2, unit, 100, -EINVAL);
	call_create("w", 0, 2, unit, 100, -EINVAL);
	call_create("w", -4096, 2, unit, 100, -EINVAL);
	call_create("w", 6144, 2, unit, 100, -EINVAL);
	call_create("w", most + 4096, 2, unit, 100, -EINVAL);
	call_create("w", bytes, 0, unit, 100, -EINVAL);
	call_create("w", bytes, -1, unit, 100, -EINVAL);
	call_create("w", bytes, 258, unit, 100, -EINVAL);
	call_create("w", bytes, NVME_VOLUME_MOST_REPLICAS + 1, unit, 100, -EINVAL);
	call_create("w", bytes, 4, unit, 100, -EINVAL); /* on three engines */
	call_create("w", bytes, 2, 0, 100, -EINVAL);
	call_create("w", bytes, 2, 2048, 100, -EINVAL);
	call_create("w", bytes, 2, 3 * 4096, 100, -EINVAL);
	call_create("w", bytes, 2, 4096 + 512, 100, -EINVAL);
	call_create("w", bytes, 2, (json_int_t)512 << 20, 100, -EINVAL);
	call_create("w", bytes, 2, unit, 0, -EINVAL);
	call_create("w", bytes, 2, unit, 1001, -EINVAL);
	assert_int_equal(d->volume_count, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(array.engines[i].last_vid, 0);
	call_create("v", most, 3, (json_int_t)256 << 20, 1000, 0);
	assert_int_equal(d->volumes[0].info.unit_log2, 16);
	assert_int_equal(d->volumes[0].info.blocks, most / 4096);
}

/* A volume under its writer stays, and grows. */
static void test_volumes_that_are_written_stay(void **state)
{
	(void)state;
	begin_written(3);
	do_call("volume_delete", json_pack("{s:s}", "name", "v"), -EBUSY);
	do_call("volume_resize", json_pack("{s:s, s:i}", "name", "v", "bytes", (BLOCKS - 1) * 4096),
		-ENOTSUP);
	do_call("volume_resize", json_pack("{s:s, s:i}", "name", "v", "bytes", BLOCKS * 4096 + 1), -EINVAL);
	do_call("volume_resize", json_pack("{s:s, s:i}", "name", "v", "bytes", -4096), -EINVAL);
	do_call("volume_resize", json_pack("{s:s, s:i}", "name", "w", "bytes", BLOCKS * 4096), -ENOENT);
	assert_int_equal(write_block(&writer, BLOCKS - 1, 7), 0);
	do_call("volume_resize", json_pack("{s:s, s:i}", "name", "v", "bytes", (BLOCKS + 1) * 4096), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(array.engines[i].volumes[1].is.blocks, BLOCKS + 1);
	assert_int_equal(d->volumes[0].info.blocks, BLOCKS + 1);
	check_all(&writer);
	do_call("lease_end", json_pack("{s:s}", "name", "v"), 0);
	do_call("volume_delete", json_pack("{s:s}", "name", "v"), 0);
}

static void call_chmod(const char *name, const char *host, const char *rights, int expected)
{
	do_call("volume_chmod", json_pack("{s:s, s:s, s:s}", "name", name, "hostnqn", host, "rights", rights),
		expected);
}

static void test_permissions_that_are_none(void **state)
{
	static const char *const rights[] = { "w", "x", "rx", "rw " };
	char host[NVME_VOLUME_HOST_BYTES + 1] = "nqn.";
	size_t count;

	(void)state;
	begin_written(3);
	count = d->volumes[0].count;
	for (unsigned i = 0; i < sizeof(rights) / sizeof(rights[0]); i++)
		call_chmod("v", HOST, rights[i], -EINVAL);
	call_chmod("v", "host", "r", -EINVAL);
	call_chmod("w", HOST, "r", -ENOENT);
	memset(host + 4, 'h', sizeof(host) - 5);
	call_chmod("v", host, "r", -EINVAL);
	assert_int_equal(open_volume(&reader, HOST, false), 0); /* it may, still */
	host[NVME_VOLUME_HOST_BYTES - 1] = '\0';
	d->volumes[0].permissions[0].client = VOLUMED_NOBODY - 1;
	call_chmod("v", host, "r", -ENOSPC); /* the next number is nobody's */
	assert_int_equal(d->volumes[0].count, count);
	d->volumes[0].permissions[0].client = VOLUMED_NOBODY - 2;
	call_chmod("v", host, "r", 0);
	assert_int_equal(d->volumes[0].count, count + 1);
}

/* A host that may not write any more keeps nobody from it for longer than its lease lasts. */
static void test_a_lease_without_a_right_is_not_renewed(void **state)
{
	(void)state;
	begin_written(3);
	call_chmod("v", HOST, "r", 0);
	call_lease("lease_renew", writer.number, writer.lease, -EACCES);
	call_chmod("v", HOST, "rw", 0);
	call_lease("lease_renew", writer.number, writer.lease, 0);
	call_chmod("v", HOST, "", 0);
	call_lease("lease_renew", writer.number, writer.lease, -EACCES);
	assert_int_equal(open_volume(&reader, OTHER, true), -EBUSY);
	clock_ms += LEASE_MS;
	assert_int_equal(open_volume(&reader, OTHER, true), 0);
	call_lease("lease_renew", writer.number, writer.lease, -ESTALE);
	call_lease("lease_renew", reader.number, reader.lease, 0);
}

/* Nor by the rights of a host that comes after a restart of the daemon, which knows of that one's no more. */
static void test_a_number_with_a_lease_is_nobody_elses(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	assert_int_equal(open_volume(&writer, OTHER, true), 0);
	call_chmod("v", OTHER, "", 0);
	volumed_destroy(d);
	start_daemon(3, 0, true);
	call_chmod("v", "nqn.2026-11.org.example:host-c", "rw", 0);
	call_lease("lease_renew", writer.number, writer.lease, -EACCES);
}

/* Whoever does not want an answer gets none, and what it asks for is done. */
static void test_calls_without_an_answer(void **state)
{
	json_t *request = json_pack("{s:s, s:s, s:{s:s}}", "jsonrpc", "2.0", "method", "lease_end", "params",
				    "name", "v");
	json_t *nothing = json_pack("{s:s, s:i}", "jsonrpc", "2.0", "id", 4), *reply;

	(void)state;
	begin_written(3);
	assert_null(volumed_answer(d, NULL, request));
	assert_int_equal(d->volumes[0].info.lease_client, VOLUMED_NOBODY);
	reply = volumed_answer(d, NULL, nothing);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(reply, "error"), "code")),
			 -32600);
	json_decref(reply);
	json_decref(request);
	json_decref(nothing);
}

/* Volumes that the daemon alone knows, numbered from 2 on, of which most have room in a message. */
static void insert_volumes(unsigned last)
{
	struct nvme_volume info = { .replicas = 2, .weight = 100, .blocks = BLOCKS };

	for (info.vid = 2; info.vid <= last; info.vid++) {
		snprintf(info.name, sizeof(info.name), "%0*u", NVME_VOLUME_NAME_BYTES - 1, info.vid);
		assert_non_null(volumed_volume_insert(d, &info));
	}
}

/* Each page has room in a message, and all together have each volume once. */
static void test_volumes_are_listed_by_pages(void **state)
{
	enum { VOLUMES = 8000 };
	json_int_t from = 1, seen = 0;
	unsigned pages = 0;

	(void)state;
	begin_written(3);
	insert_volumes(VOLUMES);
	for (json_int_t next; from; from = next, pages++) {
		int code;
		json_t *page = ask("volume_list", json_pack("{s:I}", "from", from), &code), *volume;
		size_t i;

		assert_int_equal(code, 0);
		assert_true(json_dumpb(page, NULL, 0, JSON_COMPACT) < WEIR_RPC_LINE_BYTES - 4096);
		json_array_foreach(json_object_get(page, "volumes"), i, volume)
		{
			seen++;
			assert_int_equal(json_integer_value(json_object_get(volume, "vid")), seen);
		}
		next = json_integer_value(json_object_get(page, "next"));
		assert_true(!next || next == seen + 1);
		json_decref(page);
	}
	assert_int_equal(seen, VOLUMES);
	assert_true(pages > 2);
	do_call("volume_list", json_pack("{s:s}", "from", "v"), -32602);
}

/* Hosts that the daemon alone knows, with clients @first, @first + 2 and so on to @last. */
static void insert_hosts(struct volumed_volume *volume, unsigned first, unsigned last)
{
	struct nvme_volume_permission permission = { .rights = NVME_VOLUME_READ };

	for (unsigned client = first; client <= last; client += 2) {
		permission.client = (u16)client;
		snprintf(permission.hostnqn, sizeof(permission.hostnqn), "nqn.%0200u", client);
		assert_int_equal(volumed_permission_note(volume, &permission), 0);
	}
}

/* The volume in a page of its hosts, which has room in a message. */
static json_t *page_of(const char *method, json_t *params)
{
	int code;
	json_t *page = ask(method, params, &code);

	assert_int_equal(code, 0);
	assert_true(json_dumpb(page, NULL, 0, JSON_COMPACT) < WEIR_RPC_LINE_BYTES - 4096);
	return page;
}

/* A volume of many hosts: each page has room in a message, and all together have each host once. */
static void test_hosts_are_listed_by_pages(void **state)
{
	enum { HOSTS = 6000 };
	json_int_t from = 0, seen = 0;
	unsigned pages = 0;

	(void)state;
	begin_written(3);
	insert_hosts(&d->volumes[0], 4, HOSTS);
	insert_hosts(&d->volumes[0], 3, HOSTS);
	for (json_int_t next = 1; next; from = next, pages++) {
		json_t *page = page_of("volume_info", json_pack("{s:s, s:I}", "name", "v", "from", from)),
		       *volume = json_object_get(page, "volume"), *host;
		size_t i;

		json_array_foreach(json_object_get(volume, "hosts"), i, host)
		{
			seen++;
			assert_int_equal(json_integer_value(json_object_get(host, "client")), seen);
		}
		next = json_integer_value(json_object_get(volume, "next"));
		assert_true(!next || next == seen + 1);
		json_decref(page);
	}
	assert_int_equal(seen, HOSTS);
	assert_true(pages > 2);
	json_decref(page_of("volume_chmod", json_pack("{s:s, s:s, s:s, s:i}", "name", "v", "hostnqn", OTHER,
						      "rights", "r", "from", 0)));
	json_decref(page_of("volume_list", json_pack("{s:i}", "from", 1)));
	do_call("volume_info", json_pack("{s:s, s:s}", "name", "v", "from", "1"), -32602);
}

/* The sentence has no room for all of the name; it ends with a whole letter. */
static void test_a_long_name_gets_an_answer(void **state)
{
	enum { LETTERS = 1000 };
	char name[2 * LETTERS + 2];

	(void)state;
	start_daemon(3, 0, true);
	for (unsigned ahead = 0; ahead < 2; ahead++) {
		name[0] = 'n';
		for (unsigned i = 0; i < LETTERS; i++)
			memcpy(name + ahead + 2 * (size_t)i, "\xc3\xa9", 3);
		do_call("volume_info", json_pack("{s:s}", "name", name), -ENOENT);
	}
}

/* One that answers the daemon again is in use again at once, not with the next heartbeat. */
static void test_an_engine_that_answers_again_is_used(void **state)
{
	(void)state;
	begin_written(3);
	array.engines[1].dead = true;
	volumed_heartbeat(d);
	assert_false(d->engines[1].current);
	stand_in_restart(&array.engines[1], false);
	call_suspect(d->engines[1].info.id, d->epoch, 0);
	assert_true(d->engines[1].current);
	assert_int_equal(d->counts.taken_out, 0);
	check_all(&writer);
}

/* Three of four engines lose all that they had just when a lease is given, and the map without them does not
 * count. */
static void forget_at_lease(struct stand_in_array *engines, u32 opcode, unsigned index)
{
	if (opcode != NVME_ADMIN_VOLUME_LEASE || index)
		return;
	for (unsigned i = 1; i < 4; i++) {
		stand_in_restart(&engines->engines[i], true);
		engines->engines[i].resets = true;
	}
	engines->on_command = NULL;
}

/* Whoever is refused has no lease, so that another one need not wait for its end. */
static void test_a_refused_client_has_no_lease(void **state)
{
	(void)state;
	start_daemon(4, 0, true);
	make_volume();
	array.on_command = forget_at_lease;
	assert_int_equal(open_volume(&writer, HOST, true), -EAGAIN);
	assert_non_null(strstr(weir_last_error(), "fewer than half"));
	assert_int_equal(d->volumes[0].info.lease_epoch, 1);
	assert_int_equal(d->volumes[0].info.lease_client, 0);
	assert_int_equal(array.engines[0].volumes[1].is.lease_client, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(test_numbers_of_leases_are_not_cut),
		CASE(test_numbers_of_engines_are_not_cut),
		CASE(test_weights_are_not_cut),
		CASE(test_an_engine_without_a_domain_has_its_own),
		CASE(test_a_lease_that_is_over_is_not_renewed),
		CASE(test_volumes_that_are_none),
		CASE(test_volumes_that_are_written_stay),
		CASE(test_permissions_that_are_none),
		CASE(test_a_lease_without_a_right_is_not_renewed),
		CASE(test_a_number_with_a_lease_is_nobody_elses),
		CASE(test_calls_without_an_answer),
		CASE(test_volumes_are_listed_by_pages),
		CASE(test_hosts_are_listed_by_pages),
		CASE(test_a_long_name_gets_an_answer),
		CASE(test_an_engine_that_answers_again_is_used),
		CASE(test_a_refused_client_has_no_lease),
	};

	return cmocka_run_group_tests_name("daemon_calls", tests, NULL, NULL);
}
