/* SPDX-License-Identifier: BSD-3-Clause */
/* volume_links.c: what becomes of commands whose engine is lost, or goes; and of opens without any. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../rig/leaks.h"
#include "volume_rig.h"

static struct rig rig;

/* An engine is lost with a write, and its channel cannot be halted at first: it may still look at the write's
 * memory, and so the write does not end before it is. */
void a_channel_that_is_not_halted_keeps_its_memory(void **state)
{
	enum { UNHALTED = 50 };
	static unsigned char data[NVME_VOLUME_BLOCK_BYTES];
	struct rig_engine *engine;
	struct weir_io io;

	(void)state;
	rig_begin(&rig, 2);
	engine = &rig.engines[rig_replica(&rig, 0, 0)];
	engine->unhalted = UNHALTED;
	rig_open(&rig, false, 20000);
	engine->held = true;
	rig_start(&rig, &io, WEIR_IO_WRITE, 0, 1, data);
	rig_poll(&rig);
	__atomic_store_n(&engine->down, true, __ATOMIC_SEQ_CST);
	while (!rig_is_done(&io))
		rig_poll(&rig);
	assert_true(__atomic_load_n(&engine->halts, __ATOMIC_SEQ_CST) > UNHALTED);
	assert_int_equal(rig_wait(&rig, &io), 0); /* the other one has it */
	rig_end(&rig);
}

/* An engine leaves the map with a write that it never answers, however long a command may take.
 * @by_another: the client learns of the map by another request. */
static void engine_goes(bool by_another)
{
	enum { DAY_MS = 86400000 };
	static unsigned char data[2 * NVME_VOLUME_BLOCK_BYTES];
	unsigned index, other = 0;
	struct weir_io io;

	rig_begin(&rig, 2);
	rig_open(&rig, false, 20000);
	weir_volume_from(rig.medium)->command_ms = DAY_MS;
	index = rig_replica(&rig, 0, 0);
	while (rig_replica(&rig, other, 0) == index || rig_replica(&rig, other, 1) == index)
		other++;
	rig.engines[index].held = true;
	if (by_another)
		rig_start(&rig, &io, WEIR_IO_WRITE, 0, 1, data);
	rig_take_out(&rig, index);
	if (by_another)
		assert_int_equal(rig_do(&rig, WEIR_IO_READ, other, 1, data + NVME_VOLUME_BLOCK_BYTES), 0);
	else
		rig_start(&rig, &io, WEIR_IO_WRITE, 0, 1, data); /* to the engines of the map before */
	assert_int_equal(rig_wait(&rig, &io), 0);
	assert_int_equal(__atomic_load_n(&rig.engines[index].halts, __ATOMIC_SEQ_CST), 1);
	assert_int_equal(rig.engines[index].blocks[0].version, 0);
	for (unsigned r = 0; r < 2; r++)
		assert_int_not_equal(rig.engines[rig_replica(&rig, 0, r)].blocks[0].version, 0);
	rig_end(&rig);
}

void an_engine_that_is_out_is_not_waited_for(void **state)
{
	(void)state;
	engine_goes(true);
}

/* The other engine of the write says that there is a newer map, and the one that is not in it nothing. */
void a_newer_map_is_asked_for_at_once(void **state)
{
	(void)state;
	engine_goes(false);
}

/* The daemon refuses some, and no engine is there for others, which give their lease back. */
static void open_in_vain(void)
{
	enum { EACH = 3, WAIT_MS = 20000 };

	rig_begin(&rig, 2);
	rig.refuse_open = rig.keeps_dead = true;
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		rig.engines[i].down = true;
	for (unsigned i = 0; i < EACH; i++)
		assert_int_equal(rig_try(&rig, false, WAIT_MS), -EBUSY);
	pthread_mutex_lock(&rig.lock);
	rig.refuse_open = false;
	pthread_mutex_unlock(&rig.lock);
	for (unsigned i = 0; i < EACH; i++)
		assert_int_equal(rig_try(&rig, false, WAIT_MS), -ENOTCONN);
	rig_end(&rig);
	assert_int_equal(rig.releases, EACH);
}

void opens_that_fail_leave_nothing_behind(void **state)
{
	enum { ROUNDS = 8 };
	struct test_has before;

	(void)state;
	open_in_vain();
	open_in_vain();
	before = test_has();
	for (unsigned i = 0; i < ROUNDS; i++)
		open_in_vain();
	test_keeps(before, 1 << 20);
}
