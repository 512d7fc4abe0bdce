/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_join_test.c: the daemon over stand-in engines, one of which comes back while clients make volumes,
 * write them, and go.
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

/* Engine 1 comes back, and volume 1, which has no blocks, was compared in the first pass. */
static void begin_join(void)
{
	array.engines[1].dead = true;
	settle();
	stand_in_restart(&array.engines[1], false);
	for (unsigned i = 0;
	     i < MOST_STEPS && (d->copy.task != VOLUMED_JOIN || d->copy.next < 2 || d->copy.open); i++) {
		clock_ms++;
		(void)volumed_step(d);
	}
	assert_int_equal(d->copy.task, VOLUMED_JOIN);
	assert_int_equal(d->copy.pass, 0);
}

/* A writer comes and goes, in order; the pass takes so long that others follow, which list what came since
 * the one before. */
static void write_and_join(void)
{
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	do_call("lease_release",
		json_pack("{s:s, s:i, s:i}", "name", "v", "client", (int)writer.number, "epoch",
			  (int)writer.lease),
		0);
	clock_ms += 2 * VOLUMED_HEARTBEAT_MS;
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	check_all(&writer);
}

/* What is written first while an engine comes back is there afterwards. */
static void test_a_volume_is_first_written_while_an_engine_joins(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	begin_join();
	write_and_join();
}

static void test_a_volume_is_made_while_an_engine_joins(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	do_call("volume_create", json_pack("{s:s, s:i}", "name", "w", "bytes", 4096), 0);
	begin_join();
	make_volume();
	write_and_join();
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(test_a_volume_is_first_written_while_an_engine_joins),
		CASE(test_a_volume_is_made_while_an_engine_joins),
	};

	return cmocka_run_group_tests_name("daemon_join", tests, NULL, NULL);
}
