/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_held_test.c: requests that the medium behind has, while what they were admitted by comes to an end.
 */
#include "engine_direct.h"

enum { BYTES = 2 << 20 };

#define STALE_LEASE (NVME_STATUS_VOLUME_STALE_LEASE | NVME_STATUS_DNR)

/* A write is under way when the lease that it was admitted by is changed to epoch @epoch of client @client.
 */
static u32 write_under_change(u32 epoch, u32 client)
{
	unsigned char data[BLOCK] __attribute__((aligned(BLOCK)));
	struct weir_engine *engine;
	struct direct direct;
	struct lossy lossy;

	engine = direct_begin(&lossy, BYTES);
	assert_int_equal(direct_write(engine, 1, 1, true), 0);
	direct_fill(data, 1, 2);
	direct_hold(engine, &lossy, WEIR_IO_WRITE, 1, 2, data, &direct);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_LEASE, epoch, client, NULL), 0);
	lossy_let_go(&lossy);
	while (!direct.ended)
		weir_engine_medium(engine)->ops->poll(weir_engine_medium(engine), 0);
	assert_true(direct_holds(engine, 1, direct.io.status ? 1 : 2));
	direct_close(engine);
	lossy_destroy(&lossy);
	return direct.io.status;
}

static void test_a_lease_ends_under_a_write(void **state)
{
	(void)state;
	assert_int_equal(write_under_change(LEASE, CLIENT), 0); /* the same once more */
	assert_int_equal(write_under_change(LEASE, 0), STALE_LEASE);
	assert_int_equal(write_under_change(LEASE + 1, NVME_VOLUME_MOST), STALE_LEASE);
	assert_int_equal(write_under_change(LEASE + 2, CLIENT), STALE_LEASE);
}

/* A read is under way while all that its erase block had is written over, and erase blocks are erased by the
 * dozen. */
static void test_garbage_is_collected_under_a_read(void **state)
{
	unsigned char data[BLOCK] __attribute__((aligned(BLOCK))), expected[BLOCK];
	struct weir_engine *engine;
	struct direct direct;
	struct lossy lossy;
	u64 blocks, erases;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = direct_status(engine).blocks / 2;
	for (u64 vba = 0; vba < blocks; vba++)
		assert_int_equal(direct_write(engine, vba, 1, false), 0);
	assert_int_equal(direct_flush(engine), 0);
	direct_hold(engine, &lossy, WEIR_IO_READ, 0, 0, data, &direct);
	erases = direct_status(engine).erases;
	for (u64 version = 2; direct_status(engine).erases < erases + 3 * engine->shape.erase_count;
	     version++)
		for (u64 vba = 0; vba < blocks; vba++)
			assert_int_equal(direct_write(engine, vba, version, false), 0);
	assert_false(direct.ended);
	lossy_let_go(&lossy);
	while (!direct.ended)
		weir_engine_medium(engine)->ops->poll(weir_engine_medium(engine), 0);
	assert_int_equal(direct.io.status, 0);
	direct_fill(expected, 0, 1);
	assert_memory_equal(data, expected, BLOCK);
	assert_int_equal(direct_status(engine).bad_blocks, 0);
	direct_close(engine);
	lossy_destroy(&lossy);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_lease_ends_under_a_write),
		cmocka_unit_test(test_garbage_is_collected_under_a_read),
	};

	return cmocka_run_group_tests_name("engine_held", tests, NULL, NULL);
}
