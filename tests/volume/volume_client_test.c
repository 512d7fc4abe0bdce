/* SPDX-License-Identifier: BSD-3-Clause */
/* volume_client_test.c: what a client of a volume acknowledges, where it reads, and what it does without. */
#include <errno.h>
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

#include "volume_rig.h"

enum {
	BLOCK = NVME_VOLUME_BLOCK_BYTES,
	UNIT = 1 << RIG_UNIT_LOG2,
	WAIT_MS = 20000,
	SHORT_MS = 1500, /* of requests that are to fail */
	LEASE_MS = 6000,
	TRIES = 40,
	MOST = 24,
	STEPS = 600,
	MOST_RESTS = 20000, /* of 1 ms */
};

#define assert_says(words)                                                                                   \
	do {                                                                                                 \
		if (!strstr(weir_last_error(), words))                                                       \
			fail_msg("'%s' is not in: %s", words, weir_last_error());                            \
	} while (0)

static struct rig rig;
static unsigned char model[RIG_BLOCKS], data[MOST * BLOCK];

static void fill(unsigned char *to, u32 blocks, unsigned value)
{
	memset(to, (int)value, (size_t)blocks * BLOCK);
}

static void assert_blocks(const unsigned char *from, u32 blocks, unsigned value)
{
	for (size_t i = 0; i < (size_t)blocks * BLOCK; i++)
		if (from[i] != value)
			fail_msg("byte %zu is %u instead of %u", i, from[i], value);
}

static void read_and_compare(u64 vba, u32 blocks)
{
	memset(data, 0xee, sizeof(data));
	assert_int_equal(rig_do(&rig, WEIR_IO_READ, vba, blocks, data), 0);
	for (u32 i = 0; i < blocks; i++)
		assert_blocks(data + (size_t)i * BLOCK, 1, model[vba + i]);
}

static void write_value(u64 vba, u32 blocks, unsigned value)
{
	fill(data, blocks, value);
	assert_int_equal(rig_do(&rig, WEIR_IO_WRITE, vba, blocks, data), 0);
	memset(model + vba, (int)value, blocks);
}

static void one_step(unsigned *seed)
{
	u32 blocks = 1 + (u32)rand_r(seed) % MOST, vba = (u32)rand_r(seed) % (RIG_BLOCKS - blocks);
	int what = rand_r(seed) % 10;

	if (what < 4) {
		write_value(vba, blocks, 1 + (unsigned)rand_r(seed) % 255);
	} else if (what < 6) {
		assert_int_equal(rig_do(&rig, what == 4 ? WEIR_IO_ZERO : WEIR_IO_DISCARD, vba, blocks, NULL),
				 0);
		memset(model + vba, 0, blocks);
	} else {
		read_and_compare(vba, blocks);
	}
}

/* What was acknowledged is on all replicas of the map, in one version. */
static void assert_replicas_equal(void)
{
	for (u32 vba = 0; vba < RIG_BLOCKS; vba++) {
		const struct rig_block *first = &rig.engines[rig_replica(&rig, vba, 0)].blocks[vba];

		for (unsigned r = 1; r < rig.replicas; r++) {
			unsigned index = rig_replica(&rig, vba, r);

			if (index == WEIR_PLACEMENT_NONE)
				continue;
			assert_int_equal(rig.engines[index].blocks[vba].version, first->version);
			assert_memory_equal(rig.engines[index].blocks[vba].data, first->data, BLOCK);
		}
	}
}

static void begin(unsigned replicas, unsigned wait_ms)
{
	memset(model, 0, sizeof(model));
	rig_begin(&rig, replicas);
	rig_open(&rig, false, wait_ms);
}

static void keeps_what_was_written(void **state)
{
	(void)state;
	for (unsigned replicas = 1; replicas <= 4; replicas++) {
		unsigned seed = replicas, reads = 0;

		begin(replicas, WAIT_MS);
		for (unsigned i = 0; i < STEPS; i++)
			one_step(&seed);
		assert_replicas_equal();
		for (unsigned i = 0; i < RIG_ENGINES; i++)
			reads += rig.engines[i].reads > STEPS / 40;
		assert_int_equal(reads, RIG_ENGINES); /* each takes its share */
		rig_end(&rig);
		assert_int_equal(rig.releases, 1);
	}
}

static void ends_where_the_volume_does(void **state)
{
	static const u64 firsts[] = { RIG_BLOCKS - 1, RIG_BLOCKS, RIG_BLOCKS + 1, UINT64_MAX / BLOCK };

	(void)state;
	begin(2, WAIT_MS);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(rig_do(&rig, WEIR_IO_READ, firsts[i], 2, data),
				 NVME_STATUS_LBA_OUT_OF_RANGE);
		assert_int_equal(rig_do(&rig, WEIR_IO_WRITE, firsts[i], 2, data),
				 NVME_STATUS_LBA_OUT_OF_RANGE);
	}
	write_value(RIG_BLOCKS - 2, 2, 3);
	read_and_compare(RIG_BLOCKS - 2, 2);
	rig_end(&rig);
}

static void many_requests_at_a_time(void **state)
{
	enum { REQUESTS = 200 };
	static struct weir_io ios[REQUESTS];
	static unsigned char own[REQUESTS][3 * BLOCK];

	(void)state;
	begin(2, WAIT_MS);
	for (unsigned i = 0; i < REQUESTS; i++) {
		fill(own[i], 2, i + 1);
		rig_start(&rig, &ios[i], WEIR_IO_WRITE, 2 * i, 2, own[i]);
	}
	for (unsigned i = 0; i < REQUESTS; i++) {
		assert_int_equal(rig_wait(&rig, &ios[i]), 0);
		memset(model + 2 * (size_t)i, (int)(i + 1), 2);
	}
	for (unsigned i = 0; i < REQUESTS; i++)
		read_and_compare(2 * i, 2);
	rig_end(&rig);
}

static void acknowledges_what_all_replicas_have(void **state)
{
	struct weir_io io;

	(void)state;
	begin(3, WAIT_MS);
	for (unsigned r = 0; r < 3; r++) {
		unsigned slow = rig_replica(&rig, 8, r);

		rig.engines[slow].held = true;
		fill(data, 1, r + 1);
		rig_start(&rig, &io, WEIR_IO_WRITE, 8, 1, data);
		rig_poll(&rig);
		assert_false(rig_is_done(&io));
		rig_release(&rig, slow, false);
		assert_int_equal(rig_wait(&rig, &io), 0);
	}
	rig_end(&rig);
}

static void versions_grow(void **state)
{
	u64 last = 0;

	(void)state;
	begin(2, WAIT_MS);
	for (unsigned i = 0; i < 20; i++) {
		write_value(4, 4, i + 1);
		for (u32 b = 0; b < 4; b++) {
			u64 version = rig.engines[rig_replica(&rig, 4, 0)].blocks[4 + b].version;

			assert_int_equal(version >> NVME_VOLUME_VERSION_EPOCH, RIG_LEASE_EPOCH);
			assert_true(version > last);
			last = version;
		}
		read_and_compare(4, 4);
	}
	rig_end(&rig);
}

/* One block of a write was overtaken, by what was repeated after another map, say: the others count. */
static void overtaken_writes_lose_no_block(void **state)
{
	(void)state;
	begin(2, WAIT_MS);
	write_value(0, 4, 1);
	for (unsigned r = 0; r < 2; r++)
		rig.engines[rig_replica(&rig, 0, r)].blocks[1].version = UINT64_MAX / 2;
	fill(data, 4, 2);
	assert_int_equal(rig_do(&rig, WEIR_IO_WRITE, 0, 4, data), 0);
	memcpy(model, (unsigned char[]){ 2, 1, 2, 2 }, 4);
	read_and_compare(0, 4);
	assert_replicas_equal();
	rig_end(&rig);
}

static void flush_goes_to_all_engines(void **state)
{
	(void)state;
	begin(1, WAIT_MS);
	assert_int_equal(rig_do(&rig, WEIR_IO_FLUSH, 0, 0, NULL), 0);
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		assert_int_equal(rig.engines[i].flushes, 1);
	rig_end(&rig);
}

static void goes_on_when_an_engine_dies(void **state)
{
	(void)state;
	for (unsigned replicas = 2; replicas <= 3; replicas++) {
		unsigned seed = 77;

		begin(replicas, WAIT_MS);
		for (unsigned i = 0; i < RIG_BLOCKS; i += MOST / 2)
			write_value(i, i + MOST / 2 <= RIG_BLOCKS ? MOST / 2 : RIG_BLOCKS - i, 9);
		for (unsigned i = 0; i < STEPS / 2; i++) {
			if (i == STEPS / 6)
				__atomic_store_n(&rig.engines[1].down, true, __ATOMIC_SEQ_CST);
			if (i < STEPS / 6)
				one_step(&seed);
			else /* what was not written again is on fewer engines, and not rebuilt here */
				write_value((u64)rand_r(&seed) % (RIG_BLOCKS - 4), 4, 1 + i % 250);
		}
		for (u32 i = 0; i < RIG_BLOCKS; i++)
			for (unsigned r = 0; r < replicas; r++)
				rig.engines[rig_replica(&rig, i, r)].rebuilding = true;
		for (u32 i = 0; i + 4 <= RIG_BLOCKS; i += 4)
			read_and_compare(i, 4);
		assert_int_equal(rig.map.epoch, 8);
		rig_end(&rig);
	}
}

/* Commands that an engine had when it died end, too. */
static void repeats_what_a_dead_engine_had(void **state)
{
	unsigned dead;
	struct weir_io io;

	(void)state;
	begin(2, WAIT_MS);
	dead = rig_replica(&rig, 12, 1);
	rig.engines[dead].held = true;
	fill(data, 2, 5);
	rig_start(&rig, &io, WEIR_IO_WRITE, 12, 2, data);
	rig_poll(&rig);
	assert_false(rig_is_done(&io));
	__atomic_store_n(&rig.engines[dead].down, true, __ATOMIC_SEQ_CST);
	assert_int_equal(rig_wait(&rig, &io), 0);
	memset(model + 12, 5, 2);
	read_and_compare(12, 2);
	for (unsigned r = 0; r < 2; r++)
		assert_int_not_equal(rig.engines[rig_replica(&rig, 12, r)].blocks[12].version, 0);
	rig_end(&rig);
}

static void gets_the_map_that_engines_have(void **state)
{
	(void)state;
	begin(2, WAIT_MS);
	write_value(0, 8, 3);
	rig_new_epoch(&rig, true, true);
	read_and_compare(0, 8);
	rig_new_epoch(&rig, true, true);
	write_value(0, 8, 4);
	read_and_compare(0, 8);
	rig_end(&rig);
}

/* @behind: the daemon's map is older than the client's. */
static void end_without_a_map(u32 behind)
{
	unsigned refused = 0;
	u32 status = NVME_STATUS_PATH_INACCESSIBLE;

	begin(2, SHORT_MS);
	rig_new_epoch(&rig, false, true);
	rig_daemon_behind(&rig, behind);
	fill(data, 1, 1);
	assert_int_equal(rig_do(&rig, WEIR_IO_WRITE, 0, 1, data), NVME_STATUS_PATH_INACCESSIBLE);
	for (unsigned i = 0; i < RIG_ENGINES; i++) {
		refused += rig.engines[i].stale;
		assert_int_equal(rig.engines[i].backward, 0);
	}
	assert_in_range(refused, 1, 2 * (SHORT_MS / 32 + 6)); /* tried less and less often */
	assert_int_equal(rig_do(&rig, WEIR_IO_READ, 0, 1, data), NVME_STATUS_PATH_INACCESSIBLE);
	for (u32 i = 0; i <= behind; i++)
		rig_new_epoch(&rig, true, false);
	for (unsigned i = 0; i < TRIES && status == NVME_STATUS_PATH_INACCESSIBLE; i++)
		status = rig_do(&rig, WEIR_IO_WRITE, 0, 1, data); /* the map comes by other threads */
	assert_int_equal(status, 0);
	rig_end(&rig);
}

static void ends_when_nobody_has_the_map(void **state)
{
	(void)state;
	end_without_a_map(0);
	end_without_a_map(1);
}

/* Not acknowledged by those that are left, while the map says that the dead one has it, too. */
static void waits_for_a_map_without_the_dead(void **state)
{
	(void)state;
	begin(2, SHORT_MS);
	rig.keeps_dead = true;
	__atomic_store_n(&rig.engines[rig_replica(&rig, 0, 0)].down, true, __ATOMIC_SEQ_CST);
	fill(data, 1, 1);
	assert_int_equal(rig_do(&rig, WEIR_IO_WRITE, 0, 1, data), NVME_STATUS_PATH_INACCESSIBLE);
	rig_end(&rig);
}

/* Until the daemon has taken it out, or it has room again; of one replica nobody else has the block. */
static void waits_for_a_medium_that_fails(void **state)
{
	struct weir_io io;

	(void)state;
	begin(2, WAIT_MS);
	rig.engines[rig_replica(&rig, 0, 0)].faulty = true;
	fill(data, 1, 1);
	rig_start(&rig, &io, WEIR_IO_WRITE, 0, 1, data);
	rig_poll(&rig);
	assert_false(rig_is_done(&io));
	rig.engines[rig_replica(&rig, 0, 0)].faulty = false;
	assert_int_equal(rig_wait(&rig, &io), 0);
	rig_end(&rig);
	begin(1, WAIT_MS);
	rig.engines[rig_replica(&rig, 0, 0)].faulty = true;
	assert_int_equal(rig_do(&rig, WEIR_IO_WRITE, 0, 1, data), NVME_STATUS_WRITE_FAULT);
	rig_end(&rig);
}

static void stops_with_its_lease(void **state)
{
	(void)state;
	begin(2, WAIT_MS);
	write_value(0, 2, 6);
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		rig.engines[i].lease_epoch++;
	fill(data, 1, 1);
	assert_int_equal(rig_do(&rig, WEIR_IO_WRITE, 0, 1, data),
			 NVME_STATUS_VOLUME_STALE_LEASE | NVME_STATUS_DNR);
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		rig.engines[i].lease_epoch--;
	assert_int_equal(rig_do(&rig, WEIR_IO_ZERO, 0, 1, NULL),
			 NVME_STATUS_VOLUME_STALE_LEASE | NVME_STATUS_DNR);
	read_and_compare(0, 2);
	rig_end(&rig);
}

/* An engine that answers some of what it has is not lost. */
static void a_channel_is_opened_once(void **state)
{
	struct weir_io io[8];

	(void)state;
	begin(2, WAIT_MS);
	for (unsigned e = 0; e < RIG_ENGINES; e++)
		rig.engines[e].slow = true;
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 8; i++)
			rig_start(&rig, &io[i], WEIR_IO_READ, i * 16, 16, data);
		for (unsigned i = 0; i < 8; i++)
			assert_int_equal(rig_wait(&rig, &io[i]), 0);
	}
	for (unsigned e = 0; e < RIG_ENGINES; e++)
		assert_int_equal(__atomic_load_n(&rig.engines[e].opened, __ATOMIC_RELAXED), 1);
	rig_end(&rig);
}

/* Until the lease as it was opened is over, and @renewals came. */
static void wait_past_the_lease(unsigned renewals)
{
	uint64_t lease_ns = rig.lease_ms * 1000000ull, begin_ns = weir_session_now_ns();

	while (weir_session_now_ns() < begin_ns + 3 * lease_ns / 2 ||
	       (__atomic_load_n(&rig.renewals, __ATOMIC_RELAXED) < renewals &&
		weir_session_now_ns() < begin_ns + 10 * lease_ns))
		rig_poll(&rig);
}

/* Whether a client still writes behind a lease of @ms. */
static bool is_renewed(unsigned ms)
{
	u32 status;

	rig_begin(&rig, 2);
	rig.lease_ms = ms;
	rig_open(&rig, false, WAIT_MS);
	wait_past_the_lease(2);
	status = rig_do(&rig, WEIR_IO_WRITE, 0, 1, data);
	rig_end(&rig);
	return status == 0 && rig.renewals >= 2;
}

/* A client that is held up for half of a lease loses it, which shows nothing: then with a longer one. */
static void renews_its_lease(void **state)
{
	(void)state;
	assert_true(is_renewed(LEASE_MS) || is_renewed(5 * LEASE_MS));
}

static void stops_when_the_daemon_is_gone(void **state)
{
	(void)state;
	memset(model, 0, sizeof(model));
	rig_begin(&rig, 2);
	rig.lease_ms = LEASE_MS;
	rig_open(&rig, false, WAIT_MS);
	write_value(0, 1, 1);
	rig_stop_daemon(&rig);
	wait_past_the_lease(0);
	assert_int_equal(rig_do(&rig, WEIR_IO_WRITE, 0, 1, data),
			 NVME_STATUS_VOLUME_STALE_LEASE | NVME_STATUS_DNR);
	read_and_compare(0, 1);
	rig_end(&rig);
}

static void stops_when_renewal_is_refused(void **state)
{
	(void)state;
	rig_begin(&rig, 2);
	rig.lease_ms = LEASE_MS;
	rig_open(&rig, false, WAIT_MS);
	rig.refuse_renewal = true;
	wait_past_the_lease(0);
	assert_int_equal(rig_do(&rig, WEIR_IO_WRITE, 0, 1, data),
			 NVME_STATUS_VOLUME_STALE_LEASE | NVME_STATUS_DNR);
	rig_end(&rig);
	assert_int_equal(rig.releases, 0);
}

static struct rig_block *block_of(u64 vba, unsigned replica)
{
	return &rig.engines[rig_replica(&rig, vba, replica)].blocks[vba];
}

static void reads_damaged_blocks_from_others(void **state)
{
	(void)state;
	begin(2, WAIT_MS);
	write_value(0, 4, 8);
	block_of(0, 0)->bad = true;
	read_and_compare(0, 4);
	block_of(1, 1)->bad = true; /* none has all four */
	read_and_compare(0, 4);
	block_of(0, 1)->bad = true;
	assert_int_equal(rig_do(&rig, WEIR_IO_READ, 0, 4, data),
			 NVME_STATUS_UNRECOVERED_READ | NVME_STATUS_DNR);
	rig_end(&rig);
}

static unsigned reports_of(void)
{
	unsigned reports;

	pthread_mutex_lock(&rig.lock);
	reports = rig.reports;
	pthread_mutex_unlock(&rig.lock);
	return reports;
}

/* Once, whatever is read again meanwhile; what no engine can read, nobody can repair. */
static void reports_damaged_blocks(void **state)
{
	(void)state;
	begin(2, WAIT_MS);
	write_value(0, 8, 8);
	block_of(2, 0)->bad = block_of(2, 1)->bad = true;
	assert_int_equal(rig_do(&rig, WEIR_IO_READ, 2, 1, data),
			 NVME_STATUS_UNRECOVERED_READ | NVME_STATUS_DNR);
	block_of(5, 1)->bad = true; /* of the second unit the second replica is asked first */
	for (unsigned i = 0; i < 8; i++)
		read_and_compare(5, 2);
	for (unsigned i = 0; i < MOST_RESTS && !reports_of(); i++) {
		rig_poll(&rig);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	assert_int_equal(reports_of(), 1);
	pthread_mutex_lock(&rig.lock);
	assert_int_equal(rig.reported_id, rig.map.engines[rig_replica(&rig, 5, 1)].id);
	assert_int_equal(rig.reported_vba, 5);
	assert_int_equal(rig.reported_blocks, 2);
	pthread_mutex_unlock(&rig.lock);
	rig_end(&rig);
	assert_int_equal(rig.reports, 1);
}

static void asks_another_for_what_is_not_here(void **state)
{
	(void)state;
	begin(2, WAIT_MS);
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		rig.engines[i].rebuilding = true;
	read_and_compare(0, 4); /* nobody has it: zeros */
	write_value(0, 4, 8);
	block_of(2, 0)->version = 0;
	read_and_compare(0, 4);
	block_of(1, 1)->version = 0; /* none has all four */
	read_and_compare(0, 4);
	block_of(1, 0)->bad = true; /* the only one that there is of this block */
	assert_int_equal(rig_do(&rig, WEIR_IO_READ, 0, 4, data),
			 NVME_STATUS_UNRECOVERED_READ | NVME_STATUS_DNR);
	rig_end(&rig);
}

/* Whoever cannot be asked may have it. */
static void takes_no_silence_for_zeros(void **state)
{
	unsigned has;

	(void)state;
	begin(2, SHORT_MS);
	write_value(0, 1, 8);
	rig.keeps_dead = true;
	has = rig_replica(&rig, 0, 0);
	block_of(0, 1)->version = 0;
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		rig.engines[i].rebuilding = true;
	__atomic_store_n(&rig.engines[has].down, true, __ATOMIC_SEQ_CST);
	assert_int_equal(rig_do(&rig, WEIR_IO_READ, 0, 1, data), NVME_STATUS_PATH_INACCESSIBLE);
	rig_end(&rig);
}

static void says_why_it_cannot_be_opened(void **state)
{
	struct weir_session_keys keys;
	struct weir_medium *medium;

	(void)state;
	rig_begin(&rig, 2);
	rig.refuse_open = true;
	keys = rig_keys(&rig);
	assert_int_equal(weir_volume_medium_open(&keys, 1, NULL, &medium), -EBUSY);
	assert_says("refuses volume_open: another client has the lease");
	rig_stop_daemon(&rig);
	assert_int_equal(weir_volume_medium_open(&keys, 1, NULL, &medium), -ECONNREFUSED);
	assert_says("does weir-volumed run?");
	rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_was_written),
		cmocka_unit_test(ends_where_the_volume_does),
		cmocka_unit_test(many_requests_at_a_time),
		cmocka_unit_test(a_channel_is_opened_once),
		cmocka_unit_test(acknowledges_what_all_replicas_have),
		cmocka_unit_test(versions_grow),
		cmocka_unit_test(overtaken_writes_lose_no_block),
		cmocka_unit_test(flush_goes_to_all_engines),
		cmocka_unit_test(goes_on_when_an_engine_dies),
		cmocka_unit_test(repeats_what_a_dead_engine_had),
		cmocka_unit_test(gets_the_map_that_engines_have),
		cmocka_unit_test(ends_when_nobody_has_the_map),
		cmocka_unit_test(waits_for_a_map_without_the_dead),
		cmocka_unit_test(waits_for_a_medium_that_fails),
		cmocka_unit_test(stops_with_its_lease),
		cmocka_unit_test(renews_its_lease),
		cmocka_unit_test(stops_when_the_daemon_is_gone),
		cmocka_unit_test(stops_when_renewal_is_refused),
		cmocka_unit_test(reads_damaged_blocks_from_others),
		cmocka_unit_test(reports_damaged_blocks),
		cmocka_unit_test(asks_another_for_what_is_not_here),
		cmocka_unit_test(takes_no_silence_for_zeros),
		cmocka_unit_test(says_why_it_cannot_be_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
