/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_association_test.c: associations one by one, without hosts: their numbers, which of them a host had
 * before, what is left of them; counts of several threads; and for how long a thread sleeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <sys/epoll.h>

#include "target/parts.h"
#include "target_host.h"

enum { CONNECTIONS = 8, STEPS = 1000, LATE_MS = 200, MS = 1000 * 1000 };

/* In place of the system's: how long a thread would wait; it does not. */
static u64 waited_ns;

int epoll_pwait2(int epoll, struct epoll_event *events, int most, const struct timespec *until,
		 const sigset_t *signals)
{
	waited_ns = until ? (u64)until->tv_sec * 1000 * MS + (u64)until->tv_nsec : UINT64_MAX;
	return epoll_pwait(epoll, events, most, 0, signals);
}

static void nothing(struct connection *connection)
{
	(void)connection;
}

static const struct target_wire wire = { .shutdown = nothing };
static const struct target_subsystem subsystem, another;
static struct weir_target target;
static struct target_server server;
static struct connection connections[CONNECTIONS];

static int begin(void **state)
{
	(void)state;
	target = (struct weir_target){ .queues = 4 };
	server = (struct target_server){ .target = &target };
	(void)pthread_mutex_init(&target.lock, NULL);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		connections[i] = (struct connection){ .wire = &wire, .server = &server, .socket = -1 };
	return 0;
}

static struct nvme_fabrics_connect_data host(u32 number)
{
	struct nvme_fabrics_connect_data data = { .hostnqn = HOST_NAME };

	memcpy(data.hostid, &number, sizeof(number));
	return data;
}

static struct target_controller *associate(struct connection *connection, u32 number,
					   const struct target_subsystem *of)
{
	struct nvme_fabrics_connect_data data = host(number);

	connection->qid = 0;
	return target_controller_create(connection, of, &data, 0);
}

/* Its connection is gone, and nothing of it is left. */
static void leave(struct connection *connection)
{
	target_controller_leave(connection);
	target_controller_drop(connection);
	assert_null(connection->controller);
}

/* Numbers go round: 0, and those from FFF0h on, are no controller's; one that is in use is passed over. */
static void test_numbers_go_round(void **state)
{
	static const u16 expected[] = { 0xffee, 0xffef, 1, 2 };

	(void)state;
	target.last_cntlid = 0xffed;
	for (unsigned i = 0; i < 4; i++) {
		assert_non_null(associate(&connections[i], i, &subsystem));
		assert_int_equal(connections[i].controller->cntlid, expected[i]);
	}
	target.last_cntlid = 0;
	assert_int_equal(associate(&connections[4], 4, &subsystem)->cntlid, 3);
	target.last_cntlid = 0xffff; /* as the first one is drawn */
	assert_int_equal(associate(&connections[5], 5, &subsystem)->cntlid, 4);
	for (unsigned i = 0; i < 6; i++)
		leave(&connections[i]);
	assert_null(target.controllers);
}

static u64 reconnects(void)
{
	return atomic_load(&server.counters.reconnects);
}

/* A host that lost an association has come again once: by the same name, to the same subsystem. */
static void test_a_host_comes_again_once(void **state)
{
	struct target_controller *first;

	(void)state;
	assert_non_null(associate(&connections[0], 1, &subsystem));
	leave(&connections[0]);
	assert_non_null(associate(&connections[0], 2, &subsystem));
	assert_non_null(associate(&connections[1], 1, &another));
	assert_int_equal(reconnects(), 0);
	first = associate(&connections[2], 1, &subsystem);
	assert_non_null(first);
	assert_int_equal(reconnects(), 1);
	assert_non_null(associate(&connections[3], 1, &subsystem));
	assert_int_equal(reconnects(), 1);
	first->cc = 1 << 14; /* it has shut down: nothing is lost */
	leave(&connections[2]);
	assert_non_null(associate(&connections[4], 1, &subsystem));
	assert_int_equal(reconnects(), 1);
	leave(&connections[0]), leave(&connections[1]), leave(&connections[3]), leave(&connections[4]);
}

/* What is lost is remembered of so many, and of the newest of them. */
static void test_many_are_lost(void **state)
{
	(void)state;
	for (u32 i = 0; i < TARGET_LOST_KEPT + 2; i++) {
		assert_non_null(associate(&connections[0], i, &subsystem));
		leave(&connections[0]);
	}
	for (u32 i = 0; i < TARGET_LOST_KEPT + 2; i++) {
		u64 before = reconnects();

		assert_non_null(associate(&connections[0], i, &subsystem));
		assert_int_equal(reconnects() - before, i >= 2);
		connections[0].controller->cc = 1 << 14;
		leave(&connections[0]);
	}
}

static void test_as_many_as_there_may_be(void **state)
{
	struct connection *many = calloc(TARGET_CONTROLLERS_MAX + 1, sizeof(*many));

	(void)state;
	assert_non_null(many);
	for (u32 i = 0; i <= TARGET_CONTROLLERS_MAX; i++) {
		many[i] = (struct connection){ .wire = &wire, .server = &server, .socket = -1 };
		if (i == TARGET_CONTROLLERS_MAX)
			assert_null(associate(&many[i], i, &subsystem));
		else
			assert_non_null(associate(&many[i], i, &subsystem));
	}
	leave(&many[7]);
	assert_non_null(associate(&many[TARGET_CONTROLLERS_MAX], 7, &subsystem));
	for (u32 i = 0; i <= TARGET_CONTROLLERS_MAX; i++)
		if (i != 7)
			leave(&many[i]);
	free(many);
}

/* The first connection's association, and an I/O queue of it. */
static void open_queue(struct connection *admin, struct connection *queue, u32 number, u16 qid)
{
	struct nvme_fabrics_connect_data data = host(number);
	u32 offset;

	atomic_store(&admin->controller->ready, 1);
	data.cntlid = admin->controller->cntlid;
	assert_int_equal(target_controller_join(queue, &subsystem, &data, qid, &offset), 0);
	assert_int_equal(queue->qid, qid);
	assert_int_equal(queue->queue.id, qid);
}

static bool follows(const struct connection *admin)
{
	return target_controller_follows(&target, admin->controller);
}

/* A write follows what its host has left, on whichever of its connections that is, and whether their threads
 * have come to the end or not; another host's follows nothing. */
static void test_writes_follow_what_was_left(void **state)
{
	struct connection *left = &connections[0], *queue = &connections[1], *second = &connections[2];
	struct connection *again = &connections[3], *other = &connections[4];

	(void)state;
	assert_non_null(associate(left, 1, &subsystem));
	open_queue(left, queue, 1, 1);
	open_queue(left, second, 1, 2);
	assert_non_null(associate(again, 1, &subsystem));
	assert_non_null(associate(other, 2, &subsystem));
	atomic_store(&queue->changing, 1);
	assert_false(follows(again)); /* that association is still there */
	leave(left);
	assert_true(follows(again)); /* its threads have not come to that */
	assert_false(follows(other));
	queue->queue.inflight = second->queue.inflight = 1;
	target_controller_leave(queue);
	assert_true(follows(again)); /* the storage has it */
	target_controller_leave(second);
	assert_true(follows(again));
	assert_false(follows(other));
	atomic_store(&queue->changing, 0);
	assert_false(follows(again));
	atomic_store(&second->changing, 2);
	assert_true(follows(again));
	target_controller_drop(second);
	assert_false(follows(again));
	assert_non_null(target.ended);
	target_controller_drop(queue);
	assert_null(target.ended);
	assert_int_equal(atomic_load(&target.ended_count), 0);
	leave(again), leave(other);
}

/* When a target stops, the admin queue ends behind the others. */
static void test_the_admin_queue_ends_last(void **state)
{
	struct connection *admin = &connections[0], *queue = &connections[1], *second = &connections[2];

	(void)state;
	assert_true(target_controller_can_end(admin)); /* before Connect */
	assert_non_null(associate(admin, 1, &subsystem));
	assert_true(target_controller_can_end(admin));
	open_queue(admin, queue, 1, 1);
	assert_false(target_controller_can_end(admin));
	assert_true(target_controller_can_end(queue));
	open_queue(admin, second, 1, 2);
	leave(queue);
	assert_false(target_controller_can_end(admin));
	leave(second);
	assert_true(target_controller_can_end(admin));
	leave(admin);
}

/* Counts are those of all threads. */
static void test_counts_of_all_threads(void **state)
{
	static struct target_server servers[3];
	struct weir_target_stats stats;

	(void)state;
	target.servers = servers;
	target.threads = 3;
	for (u64 i = 0; i < 3; i++) {
		struct target_counters *counters = &servers[i].counters;

		atomic_store(&counters->open, 1 + i);
		atomic_store(&counters->accepted, (2 + i) << 32);
		atomic_store(&counters->refused, (3 + i) << 33);
		atomic_store(&counters->bad_pdus, (4 + i) << 34);
		atomic_store(&counters->commands, (5 + i) << 35);
		atomic_store(&counters->reconnects, (6 + i) << 36);
	}
	weir_target_stats(&target, &stats);
	assert_true(stats.connections == 6 && stats.accepted == (u64)9 << 32);
	assert_true(stats.refused == (u64)12 << 33 && stats.bad_pdus == (u64)15 << 34);
	assert_true(stats.commands == (u64)18 << 35 && stats.reconnects == (u64)21 << 36);
}

/* ---- sleep ---- */

static struct host admin, queue;

static u64 sleeps(struct weir_target *stepped, int ms)
{
	(void)weir_target_step(stepped, ms);
	return waited_ns;
}

static void begin_read(struct weir_target *stepped)
{
	struct nvme_sqe sqe = host_io(&queue, NVME_OPCODE_READ, 2, 0, 1);

	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 512);
	host_capsule(&queue, &sqe, NULL, 0);
	for (unsigned i = 0; i < STEPS && !stepped->servers[0].connections->running; i++)
		(void)weir_target_step(stepped, 0);
	assert_int_equal(stepped->servers[0].connections->running, 1);
}

/* A thread sleeps until it has something to do: for good, or while there are connections until their
 * deadlines are to be compared, or until a storage is due, whichever others have none under way, or what
 * waits can be tried again, or, when it stops, for a moment. */
static void test_a_thread_sleeps_until_it_has_something_to_do(void **state)
{
	struct weir_target *stepped =
		host_target_of(1, NULL, "virt:1M?block=512&lat_us=200000&fault=late:op=flush:us=1");
	struct virtual_queue *slow;

	(void)state;
	host_stepped = stepped;
	assert_true(sleeps(stepped, -1) == UINT64_MAX);
	assert_int_equal(sleeps(stepped, 3), 3 * MS);
	host_queue(&queue, stepped, host_admin(&admin, stepped, 0), 1, 0, 0);
	assert_in_range(sleeps(stepped, -1), 1, 1000 * MS);
	assert_int_equal(sleeps(stepped, 3), 3 * MS);
	begin_read(stepped);
	assert_in_range(sleeps(stepped, -1), 0, LATE_MS * (u64)MS);
	while (stepped->servers[0].connections->running) {
		(void)poll(NULL, 0, 10);
		(void)weir_target_step(stepped, 0);
	}
	slow = &stepped->servers[0].connections->queue;
	slow->resume_ns = UINT64_MAX; /* as a fault has it */
	begin_read(stepped);
	assert_non_null(stepped->servers[0].waiting.first);
	assert_in_range(sleeps(stepped, -1), 0, MS);
	slow->resume_ns = 0;
	atomic_store(&stepped->stopping, 1);
	assert_in_range(sleeps(stepped, -1), 0, 10 * MS);
	atomic_store(&stepped->stopping, 0);
	host_stepped = NULL;
	close(queue.socket), close(admin.socket);
	weir_target_destroy(stepped);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_numbers_go_round, begin),
		cmocka_unit_test_setup(test_a_host_comes_again_once, begin),
		cmocka_unit_test_setup(test_many_are_lost, begin),
		cmocka_unit_test_setup(test_as_many_as_there_may_be, begin),
		cmocka_unit_test_setup(test_writes_follow_what_was_left, begin),
		cmocka_unit_test_setup(test_the_admin_queue_ends_last, begin),
		cmocka_unit_test_setup(test_counts_of_all_threads, begin),
		cmocka_unit_test(test_a_thread_sleeps_until_it_has_something_to_do),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("target_association", tests, NULL, NULL);
}
