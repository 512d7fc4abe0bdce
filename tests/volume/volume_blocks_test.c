/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume_blocks_test.c: which block goes where, what waits for what, and what of an engine's refusals a
 * request ends with. Time passes when a case says so.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "volume_clock.h"
#include "volume_rig.h"

enum {
	BLOCK = NVME_VOLUME_BLOCK_BYTES,
	UNIT = 1 << RIG_UNIT_LOG2,
	MOST = 2 * UNIT,
	WAIT_MS = 20000,
	HOUR_S = 3600,
	LAPS = 10,
	MOST_POLLS = 1000,
	REFUSAL = NVME_STATUS_INTERNAL_ERROR,
	UNREADABLE = NVME_STATUS_UNRECOVERED_READ | NVME_STATUS_DNR,
};

static struct rig rig;
static unsigned char data[MOST * BLOCK], there[MOST * BLOCK];
static const unsigned char zeros[BLOCK];
static unsigned connects;

int connect(int file, __CONST_SOCKADDR_ARG address, socklen_t bytes)
{
	__atomic_fetch_add(&connects, 1, __ATOMIC_SEQ_CST);
	return (int)syscall(SYS_connect, file, address.__sockaddr__, bytes);
}

static int waited_ms[2]; /* for answers of the daemon: by this thread, and by the client's */

/* A client waits for one socket, the rig's daemon for several, or for nothing at all. */
int poll(struct pollfd *pollers, nfds_t count, int ms)
{
	const struct timespec most = { ms / 1000, ms % 1000 * 1000000 };

	if (count == 1 && ms > 0)
		__atomic_store_n(&waited_ms[!pthread_equal(pthread_self(), tested)], ms, __ATOMIC_SEQ_CST);
	return (int)syscall(SYS_ppoll, pollers, count, ms < 0 ? NULL : &most, NULL, 0);
}

static void begin(unsigned replicas)
{
	rig_begin(&rig, replicas);
	rig_open(&rig, false, WAIT_MS);
}

/* Each block of @data has a number of its own. */
static void fill(unsigned first)
{
	for (unsigned i = 0; i < MOST; i++)
		memset(data + (size_t)i * BLOCK, (int)(first + i), BLOCK);
}

static void do_well(enum weir_io_kind kind, u64 vba, u32 blocks)
{
	void *memory = kind == WEIR_IO_READ ? there : data;

	if (kind == WEIR_IO_READ)
		memset(there, 0xee, sizeof(there));
	assert_int_equal(rig_do(&rig, kind, vba, blocks, kind > WEIR_IO_WRITE ? NULL : memory), 0);
}

static struct rig_block *block_of(u64 vba, unsigned replica)
{
	return &rig.engines[rig_replica(&rig, vba, replica)].blocks[vba - rig.first];
}

static struct rig_engine *engine_of(u64 vba, unsigned replica)
{
	return &rig.engines[rig_replica(&rig, vba, replica)];
}

static void overtake(u64 vba)
{
	for (unsigned r = 0; r < rig.replicas; r++)
		block_of(vba, r)->version = UINT64_MAX / 2;
}

/* All of the first unit but the second block has what was written last, in versions one behind the other. */
static void check_unit(bool is_data)
{
	for (unsigned r = 0; r < rig.replicas; r++)
		for (unsigned i = 0; i < UNIT; i++) {
			const void *expected = is_data ? data + (size_t)i * BLOCK : zeros;

			if (i == 1)
				continue;
			assert_memory_equal(block_of(i, r)->data, expected, BLOCK);
			assert_true(block_of(i, r)->version == block_of(0, 0)->version + i);
		}
}

/* One block of a change was overtaken, so that the others are changed one by one: each gets what is its own.
 */
static void changes_go_on_block_by_block(void **state)
{
	static const enum weir_io_kind kinds[] = { WEIR_IO_WRITE, WEIR_IO_ZERO, WEIR_IO_WRITE,
						   WEIR_IO_DISCARD };
	unsigned durable = 0;

	(void)state;
	begin(2);
	rig.durable = true;
	fill(1);
	do_well(WEIR_IO_WRITE, 0, UNIT);
	overtake(1);
	for (unsigned k = 0; k < 4; k++) {
		fill(10 + 10 * k);
		do_well(kinds[k], 0, UNIT);
		check_unit(kinds[k] == WEIR_IO_WRITE);
	}
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		durable += rig.engines[i].durable;
	assert_int_equal(durable, 2 + 3 * 2 * (1 + UNIT)); /* each command of all but the discard */
	rig_end(&rig);
}

/* The memory that blocks pass through has others' data from before. */
static void use_memory(void)
{
	fill(100);
	do_well(WEIR_IO_WRITE, UNIT, UNIT);
	do_well(WEIR_IO_READ, UNIT, UNIT);
}

/* No engine has all blocks of a read: each comes from one that has it, to its place. */
static void reads_go_on_block_by_block(void **state)
{
	(void)state;
	begin(2);
	use_memory();
	fill(1);
	do_well(WEIR_IO_WRITE, 0, UNIT);
	block_of(2, 0)->bad = block_of(1, 1)->bad = true;
	use_memory();
	do_well(WEIR_IO_READ, 0, UNIT);
	fill(1);
	assert_memory_equal(there, data, UNIT * BLOCK);
	rig_end(&rig);
}

/* The same where one was never written: it is zeros, between its neighbours. */
static void zeros_have_their_place(void **state)
{
	(void)state;
	begin(2);
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		rig.engines[i].rebuilding = true;
	for (u64 vba = 0; vba < UNIT; vba++) {
		fill(1 + (unsigned)vba);
		if (vba != 2)
			do_well(WEIR_IO_WRITE, vba, 1);
	}
	use_memory();
	do_well(WEIR_IO_READ, 0, UNIT);
	fill(1);
	memset(data + (size_t)2 * BLOCK, 0, BLOCK);
	assert_memory_equal(there, data, UNIT * BLOCK);
	rig_end(&rig);
}

static void await_reports(unsigned count)
{
	unsigned reports = 0;

	for (unsigned i = 0; i < MOST_POLLS && reports < count; i++) {
		rig_poll(&rig);
		pthread_mutex_lock(&rig.lock);
		reports = rig.reports;
		pthread_mutex_unlock(&rig.lock);
	}
	assert_int_equal(reports, count);
}

/* Two units from @vba on are written, read, zeroed and written again where they are placed. */
static void use_blocks(u64 vba)
{
	fill(1);
	do_well(WEIR_IO_WRITE, vba, MOST);
	for (unsigned i = 0; i < MOST; i++)
		for (unsigned r = 0; r < 2; r++)
			assert_memory_equal(block_of(vba + i, r)->data, data + (size_t)i * BLOCK, BLOCK);
	do_well(WEIR_IO_READ, vba, MOST);
	assert_memory_equal(there, data, sizeof(data));
	do_well(WEIR_IO_ZERO, vba, 1);
	do_well(WEIR_IO_DISCARD, vba + MOST - 1, 1);
	do_well(WEIR_IO_READ, vba, MOST);
	assert_memory_equal(there, zeros, BLOCK);
	assert_memory_equal(there + BLOCK, data + BLOCK, (MOST - 2) * BLOCK);
	assert_memory_equal(there + (size_t)(MOST - 1) * BLOCK, zeros, BLOCK);
}

/* The largest volume, around 4 GiB, 2^31 blocks, and its end of 2^32: no number is cut. */
static void volumes_are_as_large_as_they_may_be(void **state)
{
	const u64 most = 1ull << 32, middles[] = { 1ull << 20, most / 2, most - RIG_BLOCKS / 2 };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		u64 vba = middles[i] - UNIT;

		rig_begin(&rig, 2);
		rig.blocks = most;
		rig.first = middles[i] - RIG_BLOCKS / 2;
		rig_open(&rig, false, WAIT_MS);
		assert_true(rig.medium->bytes == most * BLOCK);
		assert_true(rig.medium->end_bytes == most * BLOCK);
		use_blocks(vba);
		use_blocks(rig.first + RIG_BLOCKS - MOST);
		assert_int_equal(rig_do(&rig, WEIR_IO_READ, most - 1, 2, there),
				 NVME_STATUS_LBA_OUT_OF_RANGE);
		assert_int_equal(rig_do(&rig, WEIR_IO_READ, most, 1, there), NVME_STATUS_LBA_OUT_OF_RANGE);
		block_of(vba, (vba >> RIG_UNIT_LOG2) % 2)->bad = true; /* which is asked first */
		do_well(WEIR_IO_READ, vba, 1);
		await_reports(1);
		assert_true(rig.reported_vba == (json_int_t)vba);
		rig_end(&rig);
	}
}

/* Channels are full until @is_full says otherwise. */
static void fill_channels(u64 vba, unsigned from_replica, bool is_full)
{
	for (unsigned r = from_replica; r < 2; r++)
		engine_of(vba, r)->room = is_full ? 0 : RIG_WAITING;
}

/* What a full channel does not take waits until it does: a write that one engine has is not acknowledged, and
 * no engine gets a command twice. */
static void a_full_channel_is_waited_for(void **state)
{
	struct weir_io io;

	(void)state;
	begin(2);
	fill(1);
	fill_channels(0, 1, true);
	rig_start(&rig, &io, WEIR_IO_WRITE, 0, 1, data);
	rig_poll(&rig);
	assert_false(rig_is_done(&io));
	assert_true(block_of(0, 0)->version && !block_of(0, 1)->version);
	fill_channels(0, 1, false);
	assert_int_equal(rig_wait(&rig, &io), 0);
	assert_true(block_of(0, 0)->version == block_of(0, 1)->version);
	fill_channels(0, 1, true);
	rig_start(&rig, &io, WEIR_IO_FLUSH, 0, 0, NULL);
	rig_poll(&rig);
	assert_false(rig_is_done(&io));
	fill_channels(0, 1, false);
	assert_int_equal(rig_wait(&rig, &io), 0);
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		assert_int_equal(rig.engines[i].flushes, 1);
	fill_channels(0, 0, true);
	rig_start(&rig, &io, WEIR_IO_READ, 0, 1, there);
	rig_poll(&rig);
	assert_false(rig_is_done(&io));
	fill_channels(0, 0, false);
	assert_int_equal(rig_wait(&rig, &io), 0);
	assert_memory_equal(there, data, BLOCK);
	rig_end(&rig);
}

/* Each thread has channels of its own, and waits for the blocks that another one changes. */
static void threads_wait_for_each_others_blocks(void **state)
{
	enum { ZEROS = 128, WRITTEN = 70 };
	struct weir_io zero, write;
	struct rig_engine *engine;

	(void)state;
	rig_begin(&rig, 1);
	rig.unit_log2 = 8;
	rig.threads = 2;
	rig_open(&rig, false, WAIT_MS);
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		assert_int_equal(rig.engines[i].opened, 2);
	engine = engine_of(0, 0);
	engine->held = true;
	fill(7);
	rig_start(&rig, &zero, WEIR_IO_ZERO, 0, ZEROS, NULL);
	rig.used_thread = 1;
	rig_start(&rig, &write, WEIR_IO_WRITE, WRITTEN, 1, data);
	rig_poll(&rig);
	assert_ptr_equal(weir_volume_from(rig.medium)->thread[1].first, &write); /* it was not sent */
	rig_release(&rig, rig_replica(&rig, 0, 0), false);
	assert_int_equal(rig_wait(&rig, &zero), 0);
	assert_int_equal(rig_wait(&rig, &write), 0);
	assert_memory_equal(engine->blocks[WRITTEN].data, data, BLOCK);
	do_well(WEIR_IO_READ, WRITTEN, 1);
	assert_memory_equal(there, data, BLOCK);
	rig_end(&rig);
}

/* What one engine refuses another one reads; of what all refuse, the request has their reason, and the next
 * one its own. */
static void reads_that_are_refused(void **state)
{
	(void)state;
	begin(2);
	fill(1);
	do_well(WEIR_IO_WRITE, 0, 1);
	engine_of(0, 0)->refuses = REFUSAL;
	do_well(WEIR_IO_READ, 0, 1);
	assert_memory_equal(there, data, BLOCK);
	engine_of(0, 1)->refuses = REFUSAL;
	assert_int_equal(rig_do(&rig, WEIR_IO_READ, 0, 1, there), REFUSAL);
	engine_of(0, 0)->refuses = engine_of(0, 1)->refuses = 0;
	block_of(0, 0)->bad = block_of(0, 1)->bad = true;
	assert_int_equal(rig_do(&rig, WEIR_IO_READ, 0, 1, there), UNREADABLE);
	rig_end(&rig);
	assert_int_equal(rig.releases, 1);
	assert_int_equal(rig.unequal, 0); /* nothing was changed */
}

/* A write that replica @refuses refuses, while replica @late answers when the other one has. */
static void write_refused(unsigned refuses, unsigned late)
{
	struct weir_io io;

	engine_of(0, refuses)->refuses = REFUSAL;
	engine_of(0, late)->held = true;
	rig_start(&rig, &io, WEIR_IO_WRITE, 0, 1, data);
	rig_poll(&rig);
	assert_false(rig_is_done(&io));
	rig_release(&rig, rig_replica(&rig, 0, late), false);
	assert_int_equal(rig_wait(&rig, &io), REFUSAL);
	engine_of(0, refuses)->refuses = 0;
}

/* What one engine refuses is not written, whoever answers first; the daemon hears that replicas differ. */
static void writes_that_are_refused(void **state)
{
	(void)state;
	begin(2);
	fill(1);
	for (unsigned i = 0; i < 4; i++) {
		write_refused(i / 2, i % 2);
		do_well(WEIR_IO_WRITE, 0, 1);
	}
	rig_end(&rig);
	assert_int_equal(rig.releases, 1);
	assert_int_equal(rig.unequal, 1);
}

/* Nothing is durable that one engine does not make so. */
static void flushes_that_are_refused(void **state)
{
	(void)state;
	begin(2);
	for (unsigned i = 0; i < RIG_ENGINES; i++) {
		rig.engines[i].refuses = REFUSAL;
		assert_int_equal(rig_do(&rig, WEIR_IO_FLUSH, 0, 0, NULL), REFUSAL);
		rig.engines[i].refuses = 0;
		do_well(WEIR_IO_FLUSH, 0, 0);
	}
	rig_end(&rig);
}

/* One engine is not reached, another one has not answered when the request's time is over: it may still use
 * the request's memory, and the request waits for that. */
static void a_late_request_waits_for_who_has_its_memory(void **state)
{
	enum { DAY_MS = 86400000 };
	struct weir_io io;

	(void)state;
	rig_begin(&rig, 2);
	rig.keeps_dead = true;
	rig.lease_ms = DAY_MS;
	__atomic_store_n(&engine_of(0, 1)->down, true, __ATOMIC_SEQ_CST);
	rig_open(&rig, false, WAIT_MS);
	weir_volume_from(rig.medium)->command_ms = DAY_MS;
	engine_of(0, 0)->held = true;
	fill(1);
	rig_start(&rig, &io, WEIR_IO_WRITE, 0, 1, data);
	rig_poll(&rig);
	pass(HOUR_S * S_NS);
	rig_poll(&rig);
	assert_false(rig_is_done(&io));
	rig_release(&rig, rig_replica(&rig, 0, 0), false);
	assert_int_equal(rig_wait(&rig, &io), NVME_STATUS_PATH_INACCESSIBLE);
	rig_end(&rig);
}

/* An engine that has a read gets the next one only if the others have as many. */
static void reads_go_to_who_has_the_fewest(void **state)
{
	struct weir_io held, next;

	(void)state;
	begin(2);
	fill(1);
	do_well(WEIR_IO_WRITE, 0, UNIT);
	engine_of(0, 0)->held = true;
	rig_start(&rig, &held, WEIR_IO_READ, 0, 1, there);
	for (unsigned i = 0; i < 3; i++) {
		rig_start(&rig, &next, WEIR_IO_READ, 1, 1, there + BLOCK);
		rig_poll(&rig);
		assert_true(rig_is_done(&next));
		assert_int_equal(rig_wait(&rig, &next), 0);
	}
	assert_false(rig_is_done(&held));
	rig_release(&rig, rig_replica(&rig, 0, 0), false);
	assert_int_equal(rig_wait(&rig, &held), 0);
	rig_end(&rig);
}

/* Two blocks of one engine are damaged: both are reported, and once more if they are after a second. */
static void each_damaged_block_is_reported(void **state)
{
	(void)state;
	begin(2);
	fill(1);
	do_well(WEIR_IO_WRITE, 0, UNIT);
	block_of(0, 0)->bad = block_of(1, 0)->bad = true;
	stop_clock(true);
	for (unsigned i = 0; i < 4; i++)
		do_well(WEIR_IO_READ, i % 2, 1);
	stop_clock(false);
	await_reports(2);
	pass(2 * S_NS);
	do_well(WEIR_IO_READ, 0, 1);
	await_reports(3);
	assert_int_equal(rig.reported_vba, 0);
	rig_end(&rig);
}

/* A client that wants a newer map all the while. */
static void want_maps(void)
{
	struct weir_session *session = weir_volume_from(rig.medium)->session;

	for (unsigned i = 0; i < LAPS; i++) {
		weir_session_want_map(session, rig.map.epoch);
		await_lap(&rig);
	}
}

/* However often a client wants something of a daemon that is gone, it tries to connect every fifth of a
 * second: a thousand clients of one that starts again leave it time. */
static void a_daemon_that_is_gone_is_tried_now_and_then(void **state)
{
	(void)state;
	begin(2);
	rig_stop_daemon(&rig);
	stop_clock(true);
	want_maps();
	__atomic_store_n(&connects, 0, __ATOMIC_SEQ_CST);
	for (unsigned i = 1; i < 4; i++) {
		pass(S_NS / 4);
		want_maps();
		assert_int_equal(__atomic_load_n(&connects, __ATOMIC_SEQ_CST), i);
	}
	stop_clock(false);
	rig_end(&rig);
}

/* How long an answer was waited for, by @thread; 0: it was there at once. */
static int waited(unsigned thread)
{
	return __atomic_load_n(&waited_ms[thread], __ATOMIC_SEQ_CST);
}

static void rest(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

/* The daemon may take ten seconds for an opening, and two for what a client asks every now and then, the
 * next map every fiftieth of a second. */
static void the_daemon_has_its_time(void **state)
{
	unsigned before, tries = 0;

	(void)state;
	waited_ms[0] = waited_ms[1] = 0;
	for (bool again = true; again; again = !waited(0)) {
		assert_true(tries++ < MOST_POLLS);
		rig_begin(&rig, 2);
		rig.on_lease = rest;
		rig_open(&rig, false, WAIT_MS);
		if (!waited(0))
			rig_end(&rig);
	}
	assert_in_range(waited(0), 5000, 10000); /* less what has gone by */
	stop_clock(true);
	want_maps();
	before = __atomic_load_n(&rig.maps, __ATOMIC_SEQ_CST);
	for (unsigned i = 1; i < 4; i++) {
		pass(S_NS / 40);
		want_maps();
		assert_int_equal(__atomic_load_n(&rig.maps, __ATOMIC_SEQ_CST), before + i);
	}
	for (tries = 0; !waited(1) && tries < MOST_POLLS; tries++) {
		pass(S_NS / 40);
		want_maps();
	}
	stop_clock(false);
	assert_int_equal(waited(1), 2000);
	rig_end(&rig);
}

/* An engine that does not answer is tried every tenth of a second. */
static void an_engine_is_tried_now_and_then(void **state)
{
	struct rig_engine *engine = &rig.engines[1];
	unsigned before;

	(void)state;
	rig_begin(&rig, 2);
	rig.keeps_dead = true;
	engine->down = true;
	rig_open(&rig, false, WAIT_MS);
	stop_clock(true);
	pass(S_NS);
	want_maps();
	before = __atomic_load_n(&engine->tried, __ATOMIC_SEQ_CST);
	for (unsigned i = 1; i < 4; i++) {
		want_maps();
		pass(S_NS / 8);
		want_maps();
		assert_int_equal(__atomic_load_n(&engine->tried, __ATOMIC_SEQ_CST), before + i);
	}
	stop_clock(false);
	rig_end(&rig);
}

/* All engines are others, as the daemon's next map says. */
static void exchange_engines(unsigned generation)
{
	pthread_mutex_lock(&rig.lock);
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		snprintf(rig.map.engines[i].nqn, sizeof(rig.map.engines[i].nqn), "nqn.e%u", generation);
	pthread_mutex_unlock(&rig.lock);
	rig_new_epoch(&rig, true, true);
}

/* A client has room for so many engines: what others have it does not reach, and says so. */
static void engines_without_room_are_not_reached(void **state)
{
	struct weir_io io;

	(void)state;
	begin(2);
	do_well(WEIR_IO_WRITE, 0, 1);
	for (unsigned i = 1; i < WEIR_SESSION_SLOTS / RIG_ENGINES; i++) {
		exchange_engines(i);
		do_well(WEIR_IO_READ, 0, 1);
	}
	exchange_engines(WEIR_SESSION_SLOTS);
	rig_start(&rig, &io, WEIR_IO_READ, 0, 1, there);
	rig_poll(&rig);
	assert_false(rig_is_done(&io));
	pass(HOUR_S * S_NS);
	assert_int_equal(rig_wait(&rig, &io), NVME_STATUS_PATH_INACCESSIBLE);
	assert_int_equal(weir_volume_from(rig.medium)->session->slot_count, WEIR_SESSION_SLOTS);
	rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_go_on_block_by_block),
		cmocka_unit_test(reads_go_on_block_by_block),
		cmocka_unit_test(zeros_have_their_place),
		cmocka_unit_test(volumes_are_as_large_as_they_may_be),
		cmocka_unit_test(a_full_channel_is_waited_for),
		cmocka_unit_test(threads_wait_for_each_others_blocks),
		cmocka_unit_test(reads_that_are_refused),
		cmocka_unit_test(writes_that_are_refused),
		cmocka_unit_test(flushes_that_are_refused),
		cmocka_unit_test(a_late_request_waits_for_who_has_its_memory),
		cmocka_unit_test(reads_go_to_who_has_the_fewest),
		cmocka_unit_test(each_damaged_block_is_reported),
		cmocka_unit_test(a_daemon_that_is_gone_is_tried_now_and_then),
		cmocka_unit_test(the_daemon_has_its_time),
		cmocka_unit_test(engines_without_room_are_not_reached),
		cmocka_unit_test(an_engine_is_tried_now_and_then),
	};

	tested = pthread_self();
	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("volume_blocks", tests, NULL, NULL);
}
