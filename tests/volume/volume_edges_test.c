/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume_edges_test.c: times, statuses and reports of a client of a volume. Leases and deadlines pass when a
 * case says so.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "volume_clock.h"
#include "volume_rig.h"

enum {
	BLOCK = NVME_VOLUME_BLOCK_BYTES,
	UNIT = 1 << RIG_UNIT_LOG2,
	HOUR_S = 3600,
	TRIES = 20,
	MOST_RESTS = 1000
};

static struct rig rig;
static unsigned char data[16 * BLOCK];
static uint64_t pending_ns; /* that pass before an answer comes that somebody waits for */

/* A client waits for one socket, the rig's daemon for several. */
int poll(struct pollfd *pollers, nfds_t count, int ms)
{
	const struct timespec most = { ms / 1000, ms % 1000 * 1000000 };
	int result = (int)syscall(SYS_ppoll, pollers, count, ms < 0 ? NULL : &most, NULL, 0);

	if (count == 1 && result > 0)
		pass(__atomic_exchange_n(&pending_ns, 0, __ATOMIC_SEQ_CST));
	return result;
}

static void answer_late(void)
{
	__atomic_store_n(&pending_ns, HOUR_S * S_NS / 4, __ATOMIC_SEQ_CST);
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

static u32 write_block(u64 vba, unsigned value)
{
	memset(data, (int)value, BLOCK);
	return rig_do(&rig, WEIR_IO_WRITE, vba, 1, data);
}

/* Whether the answer was waited for, so that it came late. */
static bool was_late(void)
{
	return __atomic_exchange_n(&pending_ns, 0, __ATOMIC_SEQ_CST) == 0;
}

static void begin_hour(void)
{
	memset(data, 0, sizeof(data));
	rig_begin(&rig, 2);
	rig.lease_ms = HOUR_S * 1000;
}

/* The daemon is gone: the lease ends by 7/8 of an hour from now. Return: whether its answer came late,
 * without which that says nothing. */
static bool lease_ends_in_time(void)
{
	bool late = was_late();

	rig_stop_daemon(&rig);
	pass(HOUR_S * S_NS * 5 / 8); /* a renewal is asked for in vain, which alone ends nothing */
	for (unsigned i = 0; i < 5; i++, rig_poll(&rig))
		assert_int_equal(write_block(0, 1), 0);
	pass(HOUR_S * S_NS / 4);
	assert_int_equal(write_block(0, 2), NVME_STATUS_VOLUME_STALE_LEASE | NVME_STATUS_DNR);
	rig_end(&rig);
	return late;
}

/* A quarter of the hour has passed when the lease comes. It ends an hour after it was asked for, since the
 * daemon may count from there; the daemon is gone, and renews nothing. */
static void a_lease_counts_from_the_question(void **state)
{
	bool late = false;

	(void)state;
	for (unsigned i = 0; i < TRIES && !late; i++) {
		begin_hour();
		rig.on_lease = answer_late;
		rig_open(&rig, false, 20000);
		late = lease_ends_in_time();
	}
	assert_true(late);
}

static void await_renewal(void)
{
	while (!__atomic_load_n(&rig.renewals, __ATOMIC_SEQ_CST))
		rig_poll(&rig);
}

/* The same of a renewal, behind half of the hour. */
static void a_renewal_counts_from_the_question(void **state)
{
	bool late = false;

	(void)state;
	for (unsigned i = 0; i < TRIES && !late; i++) {
		begin_hour();
		rig_open(&rig, false, 20000);
		rig.on_lease = answer_late;
		pass(HOUR_S * S_NS * 5 / 8);
		await_renewal();
		rig_poll(&rig);
		late = lease_ends_in_time();
	}
	assert_true(late);
}

/* No engine has the client's map, and no newer one comes: tried for all of wait_ms, and no longer. */
static void a_request_waits_as_long_as_it_may(void **state)
{
	struct weir_io io;

	(void)state;
	rig_begin(&rig, 2);
	rig_open(&rig, true, HOUR_S * 1000);
	rig_new_epoch(&rig, false, true);
	rig_start(&rig, &io, WEIR_IO_READ, 0, 1, data);
	for (unsigned i = 0; i < 7; i++) {
		rig_poll(&rig);
		assert_false(rig_is_done(&io));
		pass(HOUR_S * S_NS / 8);
	}
	rig_poll(&rig);
	assert_false(rig_is_done(&io));
	pass(HOUR_S * S_NS / 4);
	assert_int_equal(rig_wait(&rig, &io), NVME_STATUS_PATH_INACCESSIBLE);
	rig_end(&rig);
}

static void hold(bool held)
{
	for (unsigned i = 0; i < RIG_ENGINES; i++) {
		pthread_mutex_lock(&rig.engines[i].lock);
		rig.engines[i].held = held;
		pthread_mutex_unlock(&rig.engines[i].lock);
		if (!held)
			rig_release(&rig, i, false);
	}
}

/* Channels to engines, so far. */
static unsigned opened(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < RIG_ENGINES; i++) {
		pthread_mutex_lock(&rig.engines[i].lock);
		count += rig.engines[i].opened;
		pthread_mutex_unlock(&rig.engines[i].lock);
	}
	return count;
}

/* An engine has eight seconds for an answer: then its channel is given up for another one, and not before. */
static void an_engine_has_its_time_to_answer(void **state)
{
	struct weir_io io;
	unsigned before;

	(void)state;
	rig_begin(&rig, 2);
	rig_open(&rig, true, HOUR_S * 1000);
	hold(true);
	before = opened();
	stop_clock(true);
	rig_start(&rig, &io, WEIR_IO_READ, 0, 1, data);
	pass(5 * S_NS);
	for (unsigned i = 0; i < TRIES; i++)
		rig_poll(&rig);
	assert_int_equal(opened(), before);
	stop_clock(false);
	pass(4 * S_NS);
	for (unsigned i = 0; i < 10 * TRIES && opened() == before; i++)
		rig_poll(&rig);
	assert_int_not_equal(opened(), before);
	hold(false);
	assert_int_equal(rig_wait(&rig, &io), 0);
	rig_end(&rig);
}

/* The same of one command, while the engine answers all others. */
static void each_command_has_its_time(void **state)
{
	struct weir_io io;
	unsigned before, engine;

	(void)state;
	rig_begin(&rig, 1);
	rig_open(&rig, true, HOUR_S * 1000);
	engine = rig_replica(&rig, 0, 0);
	rig.engines[engine].held = true;
	before = opened();
	stop_clock(true);
	rig_start(&rig, &io, WEIR_IO_READ, 0, 1, data);
	rig.engines[engine].held = false; /* for those that come: this one is never carried out */
	for (unsigned i = 0; i < 7; i++) {
		pass(S_NS);
		assert_int_equal(rig_do(&rig, WEIR_IO_READ, 1, 1, data + BLOCK), 0);
	}
	assert_int_equal(opened(), before);
	stop_clock(false);
	pass(2 * S_NS);
	for (unsigned i = 0; i < 10 * TRIES && opened() == before; i++) {
		assert_int_equal(rig_do(&rig, WEIR_IO_READ, 1, 1, data + BLOCK), 0);
		rig_poll(&rig);
	}
	assert_int_not_equal(opened(), before);
	assert_int_equal(rig_wait(&rig, &io), 0);
	rig_end(&rig);
}

/* An engine always has a command, and answers each within six seconds: it keeps its channel. If @refused, it
 * has long answered another one, which its neighbour refuses again and again. */
static void always_have_some(bool refused)
{
	enum { COMMANDS = 12 };
	static struct weir_io ios[COMMANDS], flush;
	unsigned before, engine, next;

	rig_begin(&rig, 1);
	rig_open(&rig, true, HOUR_S * 1000);
	engine = rig_replica(&rig, 0, 0);
	next = (engine + 1) % RIG_ENGINES;
	before = opened();
	stop_clock(true);
	rig.engines[next].map_epoch += refused;
	rig_start(&rig, &flush, WEIR_IO_FLUSH, 0, 0, NULL);
	rig_poll(&rig);
	assert_int_equal(rig_is_done(&flush), !refused);
	assert_int_equal(rig.engines[engine].flushes, 1);
	rig.engines[engine].slow = true; /* an answer a poll */
	rig_start(&rig, &ios[0], WEIR_IO_READ, 0, 1, data);
	for (unsigned i = 1; i < COMMANDS; i++) {
		rig_start(&rig, &ios[i], WEIR_IO_READ, 0, 1, data);
		pass(3 * S_NS);
		(void)rig.medium->ops->poll(rig.medium, 0);
		assert_true(rig_is_done(&ios[i - 1]));
		assert_false(rig_is_done(&ios[i]));
	}
	for (unsigned i = 0; i < COMMANDS; i++)
		assert_int_equal(rig_wait(&rig, &ios[i]), 0);
	for (unsigned i = 0; i < TRIES; i++)
		rig_poll(&rig);
	assert_int_equal(opened(), before);
	stop_clock(false);
	rig.engines[next].map_epoch -= refused;
	assert_int_equal(rig_wait(&rig, &flush), 0);
	rig_end(&rig);
}

static void an_engine_may_always_have_some(void **state)
{
	(void)state;
	always_have_some(false);
}

static void an_engine_that_has_answered_is_not_late(void **state)
{
	(void)state;
	always_have_some(true);
}

static unsigned durable_changes(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < RIG_ENGINES; i++)
		count += rig.engines[i].durable;
	return count;
}

/* A host of a target that exports the volume has something in the words where lanes have a version: it is no
 * version, and what is written later is newer. */
static void versions_come_from_lanes_alone(void **state)
{
	(void)state;
	rig_begin(&rig, 2);
	rig_open(&rig, false, 20000);
	rig.version = ((u64)RIG_LEASE_EPOCH << NVME_VOLUME_VERSION_EPOCH) + HOUR_S;
	assert_int_equal(write_block(0, 1), 0);
	rig.version = 0;
	assert_int_equal(write_block(0, 2), 0);
	assert_int_equal(rig_do(&rig, WEIR_IO_READ, 0, 1, data), 0);
	assert_int_equal(data[0], 2);
	rig.version = HOUR_S;
	assert_int_equal(rig_do(&rig, WEIR_IO_ZERO, 0, 1, NULL), 0);
	assert_int_equal(rig_do(&rig, WEIR_IO_READ, 0, 1, data), 0);
	assert_int_equal(data[0], 0);
	rig_end(&rig);
}

static unsigned attempts; /* to reach the engine that cannot be */

/* One engine is silent: a second passes until it is given up. Of the others each answers at once. */
static int open_or_wait(void *argument, const char *uri, void *memory, size_t bytes,
			struct weir_channel **out)
{
	if (strcmp(uri, rig.map.engines[0].address) != 0)
		return rig_channel_open(argument, uri, memory, bytes, out);
	pass(S_NS);
	__atomic_fetch_add(&attempts, 1, __ATOMIC_SEQ_CST);
	return -ETIMEDOUT;
}

/* A client of eight threads does not reach an engine that the daemon reaches: the time that this takes is not
 * that of its lease, of six seconds, however often it tries. */
static void an_engine_that_is_not_reached_costs_no_lease(void **state)
{
	struct weir_session_keys keys;
	u64 vba = 0;

	(void)state;
	tested = pthread_self();
	stop_clock(true);
	rig_begin(&rig, 1);
	rig.lease_ms = 6000;
	rig.keeps_dead = true;
	keys = rig_keys(&rig);
	assert_int_equal(weir_volume_medium_open(
				 &keys, 8, &(struct volume_options){ .open = open_or_wait, .argument = &rig },
				 &rig.medium),
			 0);
	while (rig_replica(&rig, vba, 0) == 0)
		vba += UNIT;
	while (__atomic_load_n(&attempts, __ATOMIC_SEQ_CST) < 64) {
		pass(S_NS / 8);
		await_lap(&rig);
	}
	assert_int_equal(write_block(vba, 1), 0);
	stop_clock(false);
	rig_end(&rig);
}

static unsigned retired;       /* maps */
static uint32_t retired_epoch; /* that threads still went by then */

static void note_retired(struct volume *volume, bool retire)
{
	if (!retire)
		return;
	retired_epoch = load_relaxed_u32(&volume->session->epoch);
	__atomic_fetch_add(&retired, 1, __ATOMIC_SEQ_CST);
}

/* Lanes go by no map before threads write by the next one: an engine that has not heard of that would give
 * them what was there before. */
static void lanes_leave_a_map_before_threads_have_the_next(void **state)
{
	struct volume *volume;
	uint32_t before;

	(void)state;
	rig_begin(&rig, 2);
	rig_open(&rig, false, 20000);
	volume = weir_volume_from(rig.medium);
	pthread_mutex_lock(&volume->lock);
	volume->update_lanes = note_retired;
	pthread_mutex_unlock(&volume->lock);
	before = rig.map.epoch;
	rig_new_epoch(&rig, true, true);
	assert_int_equal(write_block(0, 1), 0);
	assert_int_equal(load_relaxed_u32(&volume->session->epoch), before + 1);
	assert_int_equal(__atomic_load_n(&retired, __ATOMIC_SEQ_CST), 1);
	assert_int_equal(retired_epoch, before);
	rig_end(&rig);
}

/* Each engine that has a replica is asked to make it durable. */
static void force_unit_access_goes_to_all_replicas(void **state)
{
	(void)state;
	rig_begin(&rig, 3);
	rig_open(&rig, false, 20000);
	assert_int_equal(write_block(0, 1), 0);
	assert_int_equal(rig_do(&rig, WEIR_IO_ZERO, 0, 1, NULL), 0);
	assert_int_equal(durable_changes(), 0);
	rig.durable = true;
	assert_int_equal(write_block(0, 2), 0);
	assert_int_equal(durable_changes(), 3);
	assert_int_equal(rig_do(&rig, WEIR_IO_ZERO, 0, 1, NULL), 0);
	assert_int_equal(durable_changes(), 6);
	assert_int_equal(rig_do(&rig, WEIR_IO_WRITE, 0, 2 * UNIT, data), 0);
	assert_int_equal(durable_changes(), 12);
	rig_end(&rig);
}

static struct rig_block *block_of(u64 vba, unsigned replica)
{
	return &rig.engines[rig_replica(&rig, vba, replica)].blocks[vba];
}

static void await_reports(unsigned count)
{
	unsigned reports = 0;

	for (unsigned i = 0; i < MOST_RESTS && reports < count; i++) {
		rig_poll(&rig);
		pthread_mutex_lock(&rig.lock);
		reports = rig.reports;
		pthread_mutex_unlock(&rig.lock);
	}
	assert_int_equal(reports, count);
}

/* No replica has all four blocks, so that they are read one by one: the one that was damaged is reported. */
static void the_damaged_block_is_reported(void **state)
{
	(void)state;
	rig_begin(&rig, 2);
	rig_open(&rig, false, 20000);
	assert_int_equal(rig_do(&rig, WEIR_IO_WRITE, 0, 4, data), 0);
	block_of(2, 0)->bad = block_of(1, 1)->bad = true; /* of the first unit replica 0 is asked first */
	assert_int_equal(rig_do(&rig, WEIR_IO_READ, 0, 4, data), 0);
	await_reports(1);
	assert_int_equal(rig.reported_vba, 2);
	assert_int_equal(rig.reported_blocks, 1);
	assert_int_equal(rig.reported_id, rig.map.engines[rig_replica(&rig, 2, 0)].id);
	rig_end(&rig);
}

/* Of three replicas two cannot be read: both engines are to repair theirs. */
static void each_damaged_replica_is_reported(void **state)
{
	(void)state;
	rig_begin(&rig, 3);
	rig_open(&rig, false, 20000);
	assert_int_equal(write_block(0, 1), 0);
	block_of(0, 0)->bad = block_of(0, 1)->bad = true;
	assert_int_equal(rig_do(&rig, WEIR_IO_READ, 0, 1, data), 0);
	await_reports(2);
	rig_end(&rig);
	assert_int_equal(rig.reports, 2);
}

/* Two parts of a request fail, each in its way: the request has the status of the first. */
static void the_first_error_is_the_requests(void **state)
{
	struct weir_io io;
	u64 vba = 0;

	(void)state;
	rig_begin(&rig, 1);
	rig_open(&rig, true, HOUR_S * 1000);
	while (rig_replica(&rig, vba, 0) == rig_replica(&rig, vba + UNIT, 0))
		vba += UNIT;
	for (unsigned i = 0; i < UNIT; i++)
		block_of(vba + i, 0)->bad = true;
	rig.engines[rig_replica(&rig, vba + UNIT, 0)].map_epoch++;
	rig_start(&rig, &io, WEIR_IO_READ, vba, 2 * UNIT, data);
	rig_poll(&rig);
	assert_false(rig_is_done(&io));
	pass(2 * HOUR_S * S_NS);
	assert_int_equal(rig_wait(&rig, &io), NVME_STATUS_UNRECOVERED_READ | NVME_STATUS_DNR);
	rig_end(&rig);
}

/* A request's memory is in pieces, and its blocks go to several engines: each byte is in its place. */
static void memory_in_pieces(void **state)
{
	static const size_t pieces[] = { 512, 1000, BLOCK, BLOCK + 4, 3 * BLOCK - 8 };
	enum { FIRST = 1, BLOCKS = 3 * UNIT };
	static unsigned char there[BLOCKS * BLOCK];

	(void)state;
	rig_begin(&rig, 2);
	rig_open(&rig, false, 20000);
	for (unsigned i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		for (unsigned at = 0; at < sizeof(there); at++)
			data[at] = (unsigned char)(at * 7 + at / 251 + i);
		rig.piece_bytes = pieces[i];
		assert_int_equal(rig_do(&rig, WEIR_IO_WRITE, FIRST, BLOCKS, data), 0);
		rig.piece_bytes = 0;
		assert_int_equal(rig_do(&rig, WEIR_IO_READ, FIRST, BLOCKS, there), 0);
		assert_memory_equal(there, data, sizeof(there));
		memset(there, 0, sizeof(there));
		rig.piece_bytes = pieces[i];
		assert_int_equal(rig_do(&rig, WEIR_IO_READ, FIRST, BLOCKS, there), 0);
		assert_memory_equal(there, data, sizeof(there));
	}
	rig.piece_bytes = 0;
	rig_end(&rig);
}

/* A write waits for what changes its block: for zeros of more blocks than a word of bits has. */
static void a_write_waits_for_zeros_before_it(void **state)
{
	enum { ZEROS = 128, WRITTEN = 70 };
	struct weir_io zeros, written;
	unsigned index;

	(void)state;
	rig_begin(&rig, 1);
	rig.unit_log2 = 8;
	rig_open(&rig, false, 20000);
	index = rig_replica(&rig, 0, 0);
	rig.engines[index].held = true;
	rig_start(&rig, &zeros, WEIR_IO_ZERO, 0, ZEROS, NULL);
	memset(data, 7, BLOCK);
	rig_start(&rig, &written, WEIR_IO_WRITE, WRITTEN, 1, data);
	rig_poll(&rig);
	assert_ptr_equal(weir_volume_from(rig.medium)->thread[0].first, &written); /* it was not sent */
	rig_release(&rig, index, false);
	assert_int_equal(rig_wait(&rig, &zeros), 0);
	assert_int_equal(rig_wait(&rig, &written), 0);
	assert_memory_equal(rig.engines[index].blocks[WRITTEN].data, data, BLOCK);
	rig_end(&rig);
}

/* An engine is the same one in every map: a client has room for so many, and maps come as long as it lives.
 */
static void engines_are_known_again(void **state)
{
	(void)state;
	rig_begin(&rig, 2);
	rig_open(&rig, false, 20000);
	for (unsigned i = 0; i < 2 * WEIR_SESSION_SLOTS; i++) {
		rig_new_epoch(&rig, true, true);
		assert_int_equal(write_block(i % 4 * UNIT, i), 0);
	}
	rig_end(&rig);
}

/* Who is to write and has no lease would write as nobody, whom no engine can fence off. */
static void a_writer_wants_a_lease(void **state)
{
	(void)state;
	rig_begin(&rig, 2);
	rig.gives_no_lease = true;
	assert_int_equal(rig_try(&rig, false, 20000), -EPROTO);
	assert_non_null(strstr(weir_last_error(), "gives no lease"));
	rig_open(&rig, true, 20000); /* who only reads needs none */
	rig_end(&rig);
}

static void readers_take_no_lease(void **state)
{
	(void)state;
	rig_begin(&rig, 2);
	rig_open(&rig, true, 20000);
	assert_true(rig.medium->read_only);
	assert_int_equal(rig_do(&rig, WEIR_IO_READ, 0, 8, data), 0);
	assert_int_equal(rig_do(&rig, WEIR_IO_ZERO, 0, 1, NULL),
			 NVME_STATUS_VOLUME_STALE_LEASE | NVME_STATUS_DNR);
	rig_end(&rig);
	assert_int_equal(rig.releases, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_writer_wants_a_lease),
		cmocka_unit_test(readers_take_no_lease),
		cmocka_unit_test(a_lease_counts_from_the_question),
		cmocka_unit_test(a_renewal_counts_from_the_question),
		cmocka_unit_test(a_request_waits_as_long_as_it_may),
		cmocka_unit_test(an_engine_has_its_time_to_answer),
		cmocka_unit_test(each_command_has_its_time),
		cmocka_unit_test(an_engine_may_always_have_some),
		cmocka_unit_test(an_engine_that_has_answered_is_not_late),
		cmocka_unit_test(versions_come_from_lanes_alone),
		cmocka_unit_test(an_engine_that_is_not_reached_costs_no_lease),
		cmocka_unit_test(lanes_leave_a_map_before_threads_have_the_next),
		cmocka_unit_test(force_unit_access_goes_to_all_replicas),
		cmocka_unit_test(the_damaged_block_is_reported),
		cmocka_unit_test(each_damaged_replica_is_reported),
		cmocka_unit_test(the_first_error_is_the_requests),
		cmocka_unit_test(memory_in_pieces),
		cmocka_unit_test(a_write_waits_for_zeros_before_it),
		cmocka_unit_test(engines_are_known_again),
		cmocka_unit_test(a_channel_that_is_not_halted_keeps_its_memory),
		cmocka_unit_test(an_engine_that_is_out_is_not_waited_for),
		cmocka_unit_test(a_newer_map_is_asked_for_at_once),
		cmocka_unit_test(opens_that_fail_leave_nothing_behind),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("volume_edges", tests, NULL, NULL);
}
