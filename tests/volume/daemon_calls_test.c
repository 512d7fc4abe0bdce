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

#include "daemon_client.h"

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

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(test_numbers_of_leases_are_not_cut),
		CASE(test_numbers_of_engines_are_not_cut),
		CASE(test_weights_are_not_cut),
		CASE(test_a_lease_that_is_over_is_not_renewed),
	};

	return cmocka_run_group_tests_name("daemon_calls", tests, NULL, NULL);
}
