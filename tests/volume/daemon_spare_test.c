/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_spare_test.c: the daemon over stand-in engines, one of them a spare. What clients read while it
 * takes another one's place is what was acknowledged last, whichever engine they ask first.
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

/* As a client reads: "not here" by all of the engines is zeros. Where one of them is dead, or has another
 * map, the client asks again later. */
static void check_read(u32 vba)
{
	unsigned lacking = 0;

	for (u32 replica = 0; replica < REPLICAS; replica++) {
		u64 word = 0;
		int status = stand_in_read(&array.engines[engine_at(writer.vid, vba, replica)], writer.number,
					   d->epoch, writer.vid, vba, &word);

		lacking += status == NVME_STATUS_VOLUME_NOT_HERE;
		if (!status)
			assert_int_equal(word, writer.acknowledged[vba]);
	}
	assert_true(lacking < REPLICAS);
}

/* As settle(). */
static void settle_reading(void)
{
	for (unsigned i = 0; i < MOST_STEPS; i++) {
		clock_ms += 1;
		(void)volumed_step(d);
		for (u32 vba = i % 16; vba < BLOCKS; vba += 16)
			check_read(vba);
		if (i > 5 * VOLUMED_HEARTBEAT_MS && d->copy.task == VOLUMED_IDLE && !d->rebuilding)
			return;
	}
	fail_msg("it does not come to rest");
}

/* What it has of a time when it was in is older than what the others have. */
static void test_a_spare_that_was_in_has_nothing(void **state)
{
	(void)state;
	begin_written(3);
	array.engines[2].dead = true;
	settle();
	volumed_destroy(d);
	stand_in_restart(&array.engines[2], false);
	start_daemon(2, 1, true);
	assert_false(volumed_engine_in(&d->engines[2]));
	get_map(&writer);
	write_all(2000);
	array.engines[0].dead = true;
	settle_reading();
	assert_true(volumed_engine_in(&d->engines[2]));
	assert_int_equal(d->counts.taken_out, 1);
	check_all(&writer);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(test_a_spare_that_was_in_has_nothing),
	};

	return cmocka_run_group_tests_name("daemon_spare", tests, NULL, NULL);
}
