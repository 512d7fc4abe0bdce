/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_thread_test.c: several server threads, many connections, faults and timing of a storage, stopping
 * in between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>

#include "target/parts.h"
#include "target_host.h"
#include "../rig/leaks.h"

enum {
	HOSTS = 6,
	ROUNDS = 50,
	CONNECTS = 300,
	WARM = 10,
	OTHERS = 70,
	SHORT_MS = 200,
	SOME_MS = 10,
	STEPS = 1000
};

static struct host admins[HOSTS], queues[HOSTS];
static u16 served; /* the controller of serve_one() */

/** struct worker - a host thread with blocks of its own */
struct worker {
	struct weir_target *target;
	unsigned index;
	unsigned wrong;
	pthread_t handle;
};

static struct weir_target *serve(const char *uri, unsigned threads)
{
	const struct weir_target_namespace_options space = { .uri = uri };
	const struct weir_target_subsystem_options subsystem = { .nqn = HOST_SUBSYSTEM,
								 .namespaces = &space,
								 .namespace_count = 1 };
	struct weir_target_options options = {
		.size = sizeof(options), .subsystems = &subsystem, .subsystem_count = 1, .threads = threads
	};
	struct weir_target *target;

	assert_int_equal(weir_target_create(&options, &target), 0);
	assert_int_equal(weir_target_start(target), 0);
	return target;
}

static void end(struct weir_target *target)
{
	weir_target_stop(target, 10000);
	weir_target_destroy(target);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct host *queue = &queues[worker->index];
	u8 bytes[4096];
	u16 cntlid = host_admin(&admins[worker->index], worker->target, 0);

	host_queue(queue, worker->target, cntlid, 1, worker->index % 2 ? NVME_TCP_DDGST_ENABLE : 0, 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		u64 lba = worker->index * 8;

		memset(bytes, (int)(worker->index * ROUNDS + i), sizeof(bytes));
		worker->wrong += host_give(queue, host_io(queue, NVME_OPCODE_WRITE, 1, lba, 8), bytes,
					   sizeof(bytes), i % 2) != 0;
		worker->wrong +=
			host_take(queue, host_io(queue, NVME_OPCODE_READ, 1, lba, 8), sizeof(bytes)) != 0;
		worker->wrong += memcmp(queue->data, bytes, sizeof(bytes)) != 0;
	}
	close(queue->socket);
	close(admins[worker->index].socket);
	return NULL;
}

/* Each host reads its own bytes, whichever threads serve its connections. */
static void hosts_read_what_they_wrote(void **state)
{
	struct weir_target *target = serve("virt:1M?block=512", 3);
	struct worker workers[HOSTS];

	(void)state;
	for (unsigned i = 0; i < HOSTS; i++) {
		workers[i] = (struct worker){ .target = target, .index = i };
		assert_int_equal(pthread_create(&workers[i].handle, NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < HOSTS; i++) {
		pthread_join(workers[i].handle, NULL);
		assert_int_equal(workers[i].wrong, 0);
	}
	end(target);
}

/* WEIR_TEST_CONNECTS=10000 makes a long test of it. */
static unsigned connects(void)
{
	const char *times = getenv("WEIR_TEST_CONNECTS");

	return times ? (unsigned)strtoul(times, NULL, 10) : CONNECTS;
}

static void come_and_go(struct weir_target *target, unsigned i)
{
	u16 cntlid = host_admin(&admins[0], target, 0);

	host_queue(&queues[0], target, cntlid, 1, 0, 0);
	if (i % 3 == 0)
		host_send(&queues[0], "\x04\x00\x48\x00", i % 4);
	close(i % 2 ? queues[0].socket : admins[0].socket);
	close(i % 2 ? admins[0].socket : queues[0].socket);
}

static void wait_for_none(struct weir_target *target)
{
	struct weir_target_stats stats;

	do /* until the last have ended */
		weir_target_stats(target, &stats);
	while (stats.connections);
}

/* Associations come and go, some in the middle of a PDU; none is left. */
static void connections_come_and_go(void **state)
{
	struct weir_target *target = serve("virt:1M", 2);
	struct weir_target_stats stats;
	unsigned count = connects();
	struct test_has before;

	(void)state;
	for (unsigned i = 0; i < WARM; i++)
		come_and_go(target, i);
	wait_for_none(target);
	before = test_has();
	for (unsigned i = 0; i < count; i++)
		come_and_go(target, i);
	wait_for_none(target);
	test_keeps(before, 1 << 20);
	weir_target_stats(target, &stats);
	assert_int_equal(stats.accepted, 2 * (count + WARM));
	assert_in_range(stats.reconnects, count / 2, count + WARM - 1); /* some end behind the next one */
	end(target);
}

static struct weir_target *serve_one(const char *uri)
{
	struct weir_target *target = serve(uri, 1);

	served = host_admin(&admins[0], target, 0);
	host_queue(&queues[0], target, served, 1, 0, 0);
	return target;
}

static void end_one(struct weir_target *target)
{
	close(queues[0].socket);
	close(admins[0].socket);
	end(target);
}

/* The fault table of the storage befalls commands that came over the network. */
static void faults_befall_commands_of_the_network(void **state)
{
	struct weir_target *target = serve_one("virt:1M?fault=status:code=0x281&lat_us=100");

	(void)state;
	assert_int_equal(host_take(&queues[0], host_io(&queues[0], NVME_OPCODE_READ, 1, 0, 1), 512) &
				 NVME_STATUS_CODE_MASK,
			 NVME_STATUS_UNRECOVERED_READ);
	end_one(target);
}

static void a_command_may_be_answered_twice(void **state)
{
	struct weir_target *target = serve_one("virt:1M?fault=duplicate:count=1");
	struct nvme_sqe sqe;

	(void)state;
	sqe = host_command(&queues[0], NVME_OPCODE_FLUSH, 1);
	host_capsule(&queues[0], &sqe, NULL, 0);
	assert_int_equal(host_response(&queues[0], NULL), 0);
	assert_int_equal(host_response(&queues[0], NULL), 0);
	for (unsigned i = 0; i < 2; i++) { /* the next one in its slot is not */
		host_capsule(&queues[0], &sqe, NULL, 0);
		assert_int_equal(host_response(&queues[0], NULL), 0);
		assert_int_equal(host_take(&queues[0], host_io(&queues[0], NVME_OPCODE_READ, 1, 0, 1), 512),
				 0);
	}
	end_one(target);
}

/* One that is never answered ends with its connection, and not before the target could end. */
static void a_dropped_command_keeps_nothing(void **state)
{
	struct weir_target *target = serve_one("virt:1M?fault=drop:count=1");
	struct nvme_sqe sqe;

	(void)state;
	sqe = host_io(&queues[0], NVME_OPCODE_READ, 1, 0, 1);
	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 512);
	host_capsule(&queues[0], &sqe, NULL, 0);
	assert_int_equal(host_take(&queues[0], host_io(&queues[0], NVME_OPCODE_READ, 1, 0, 1), 512), 0);
	end_one(target);
}

/* One that the storage keeps for good does not keep the target from ending. */
static void a_stuck_command_lets_the_target_end(void **state)
{
	struct weir_target *target = serve_one("virt:1M?fault=stuck:count=1");
	struct nvme_sqe sqe;

	(void)state;
	sqe = host_io(&queues[0], NVME_OPCODE_READ, 1, 0, 1);
	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 512);
	host_capsule(&queues[0], &sqe, NULL, 0);
	assert_int_equal(host_take(&queues[0], host_io(&queues[0], NVME_OPCODE_READ, 1, 0, 1), 512), 0);
	weir_target_stop(target, 100);
	weir_target_destroy(target);
	close(queues[0].socket);
	close(admins[0].socket);
}

/* A queue's number is not given again while the storage still has a command of it. */
static void a_number_waits_for_its_commands(void **state)
{
	struct weir_target *target = serve_one("virt:1M?fault=stuck:count=1");
	struct weir_target_stats stats;
	struct nvme_sqe sqe;

	(void)state;
	sqe = host_io(&queues[0], NVME_OPCODE_READ, 1, 0, 1);
	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 512);
	host_capsule(&queues[0], &sqe, NULL, 0);
	assert_int_equal(host_take(&queues[0], host_io(&queues[0], NVME_OPCODE_READ, 1, 0, 1), 512), 0);
	close(queues[0].socket);
	do /* until its end is known */
		weir_target_stats(target, &stats);
	while (stats.connections > 1);
	host_adopt(&queues[0], target);
	host_hello(&queues[0], 0, 0);
	assert_int_equal(host_connect(&queues[0], 1, 31, served, 0, HOST_SUBSYSTEM, HOST_NAME, NULL),
			 NVME_STATUS_COMMAND_SEQUENCE);
	weir_target_stop(target, 100);
	weir_target_destroy(target);
	close(queues[0].socket);
	close(admins[0].socket);
}

#define OTHER_HOST "nqn.2014-08.org.nvmexpress:uuid:22222222-2222-3333-4444-555555555555"

static void connect_another_host(struct weir_target *target)
{
	u64 cntlid;

	host_adopt(&admins[1], target);
	host_hello(&admins[1], 0, 0);
	assert_int_equal(
		host_connect(&admins[1], 0, 31, NVME_CNTLID_DYNAMIC, 0, HOST_SUBSYSTEM, OTHER_HOST, &cntlid),
		0);
	assert_int_equal(host_property(&admins[1], true, NVME_PROPERTY_CC, 0,
				       NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16, NULL),
			 0);
	host_adopt(&queues[1], target);
	host_hello(&queues[1], 0, 0);
	assert_int_equal(host_connect(&queues[1], 1, 31, (u16)cntlid, 0, HOST_SUBSYSTEM, OTHER_HOST, NULL),
			 0);
}

static void begin_zeroing(struct host *host)
{
	struct nvme_sqe sqe = host_io(host, NVME_OPCODE_WRITE_ZEROES, 1, 0, 1);

	host_capsule(host, &sqe, NULL, 0);
}

/* Answered, and nothing before it. */
static void read_first(struct host *host)
{
	assert_int_equal(host_take(host, host_io(host, NVME_OPCODE_READ, 1, 0, 1), 512), 0);
	assert_int_equal(host->data_bytes, 512);
}

static void let_go(struct weir_target *target)
{
	pthread_mutex_lock(&target->lock);
	assert_non_null(target->ended);
	for (struct connection *at = target->ended->ended; at; at = at->sibling)
		atomic_store(&at->changing, 0);
	pthread_mutex_unlock(&target->lock);
}

/* A host that comes again writes behind what the storage still has of it, as long as that takes; it reads,
 * and other hosts write. */
static void what_was_left_comes_first(void **state)
{
	struct weir_target *target = serve_one("virt:1M?fault=stuck:count=1");

	(void)state;
	begin_zeroing(&queues[0]); /* this one the storage keeps */
	read_first(&queues[0]);
	close(queues[0].socket);
	close(admins[0].socket);
	served = host_admin(&admins[0], target, 0);
	host_queue(&queues[0], target, served, 1, 0, 0);
	begin_zeroing(&queues[0]);
	for (unsigned i = 0; i < ROUNDS; i++)
		read_first(&queues[0]);
	connect_another_host(target);
	begin_zeroing(&queues[1]);
	assert_int_equal(host_response(&queues[1], NULL), 0);
	read_first(&queues[0]);
	let_go(target); /* as if the storage had ended it */
	assert_int_equal(host_response(&queues[0], NULL), 0);
	weir_target_stop(target, 100);
	weir_target_destroy(target);
	for (unsigned i = 0; i < 2; i++) {
		close(queues[i].socket);
		close(admins[i].socket);
	}
}

static unsigned shut_down;

static void note_shutdown(struct connection *connection)
{
	(void)connection;
	shut_down++;
}

/* An association whose host has closed it ends before the host's next one is there, though its thread has
 * not come to that. One that is open stays, and so does another host's. */
static void what_was_closed_ends_before_the_next(void **state)
{
	static const struct target_subsystem subsystem;
	static const struct target_wire wire = { .shutdown = note_shutdown };
	static struct weir_target target = { .lock = PTHREAD_MUTEX_INITIALIZER };
	static struct target_server server = { .target = &target };
	struct nvme_fabrics_connect_data data = { .hostid = { 1 }, .hostnqn = HOST_NAME };
	struct nvme_fabrics_connect_data other = { .hostid = { 2 }, .hostnqn = OTHER_HOST };
	struct connection connections[4];
	struct target_controller *made[4];
	int pairs[4][2];

	(void)state;
	for (unsigned i = 0; i < 4; i++) { /* the second is closed, and another host's third */
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
		connections[i] =
			(struct connection){ .wire = &wire, .server = &server, .socket = pairs[i][0] };
		made[i] = target_controller_create(&connections[i], &subsystem, i == 2 ? &other : &data, 0);
		assert_non_null(made[i]);
		if (i == 1 || i == 2)
			close(pairs[i][1]);
	}
	assert_int_equal(shut_down, 1);
	assert_ptr_equal(target.ended, made[1]);
	assert_null(made[1]->next);
	assert_int_equal(atomic_load(&target.ended_count), 1);
	for (unsigned i = 0; i < 4; i++) {
		close(pairs[i][0]);
		if (i == 0 || i == 3)
			close(pairs[i][1]);
		target_controller_leave(&connections[i]);
		target_controller_drop(&connections[i]);
	}
	assert_null(target.ended);
	assert_null(target.controllers);
	assert_int_equal(atomic_load(&target.ended_count), 0);
}

/* A controller that has failed says so in CSTS. */
static void a_failed_storage_is_in_csts(void **state)
{
	struct weir_target *target = serve_one("virt:1M?fault=fatal");
	struct nvme_sqe sqe;
	u64 csts = 0;

	(void)state;
	sqe = host_command(&queues[0], NVME_OPCODE_FLUSH, 1);
	host_capsule(&queues[0], &sqe, NULL, 0);
	while (!(csts & NVME_CSTS_FATAL))
		assert_int_equal(host_property(&admins[0], false, NVME_PROPERTY_CSTS, 0, 0, &csts), 0);
	end_one(target);
}

/* What was begun is answered although the target is stopped meanwhile. */
static void stopping_answers_what_was_begun(void **state)
{
	struct weir_target *target = serve_one("virt:1M?lat_us=200000");
	struct nvme_sqe sqe;

	(void)state;
	sqe = host_command(&queues[0], NVME_OPCODE_FLUSH, 1);
	host_capsule(&queues[0], &sqe, NULL, 0);
	sqe = host_io(&queues[0], NVME_OPCODE_READ, 1, 0, 1);
	host_sgl(&sqe, NVME_SGL_KEYED, 512);
	host_capsule(&queues[0], &sqe, NULL, 0); /* refused at once: the flush before it was begun */
	assert_int_equal(host_response(&queues[0], NULL), NVME_STATUS_SGL_INVALID_TYPE | NVME_STATUS_DNR);
	weir_target_stop(target, HOST_TIMEOUT_S * 1000);
	assert_int_equal(host_response(&queues[0], NULL), 0);
	assert_false(host_receive(&queues[0]));
	close(queues[0].socket);
	close(admins[0].socket);
	weir_target_destroy(target);
}

static void begin(struct host *host, struct nvme_sqe sqe)
{
	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 0);
	host_capsule(host, &sqe, NULL, 0);
}

/*
 * A thread that was not here for longer than a host may be silent finds more than it takes at a time. The
 * Keep Alive that is behind all else was sent in time, and counts before its connection is ended.
 */
static void what_waits_to_be_read_is_no_silence(void **state)
{
	struct weir_target *stepped = host_target(1, NULL);
	struct target_server *server = &stepped->servers[0];
	static struct host others[OTHERS];
	struct target_controller *controller;
	u64 heard_ms;

	(void)state;
	host_stepped = stepped;
	for (unsigned i = 0; i < OTHERS; i++)
		(void)host_admin(&others[i], stepped, 0);
	(void)host_admin(&admins[0], stepped, 0);
	(void)host_admin(&queues[0], stepped, 0); /* or epoll has the one that was last first once more */
	controller = server->connections->next->controller;
	heard_ms = server->now_ms;
	for (unsigned i = 0; i < OTHERS; i++)
		begin(&others[i], host_command(&others[i], NVME_ADMIN_KEEP_ALIVE, 0));
	begin(&admins[0], host_command(&admins[0], NVME_ADMIN_KEEP_ALIVE, 0));
	controller->kato_ms = SHORT_MS; /* not before: it must not be silent for that long until here */
	while (!target_controller_expired(controller, heard_ms)) {
		(void)poll(NULL, 0, SOME_MS);
		heard_ms = target_now_ms();
	}
	assert_int_equal(host_response(&admins[0], NULL), 0);
	for (unsigned i = 0; i < OTHERS; i++)
		close(others[i].socket);
	close(queues[0].socket), close(admins[0].socket);
	for (unsigned i = 0; i < STEPS && server->connections; i++)
		(void)weir_target_step(stepped, 0);
	assert_null(server->connections);
	host_stepped = NULL;
	weir_target_destroy(stepped);
}

static bool has_connection(const struct target_server *server, const struct connection *connection)
{
	const struct connection *at = server->connections;

	while (at && at != connection)
		at = at->next;
	return at;
}

/* One that asks to disconnect, and is gone before it can be answered: what still has something to send is
 * there. */
static void a_host_is_gone_before_its_last_answer(void **state)
{
	struct weir_target *stepped = host_target(1, NULL);
	const struct target_server *server = &stepped->servers[0];
	const struct nvme_sqe leave = { .cdw0 = NVME_OPCODE_FABRICS, .nsid = NVME_FCTYPE_DISCONNECT };

	(void)state;
	host_stepped = stepped;
	host_queue(&queues[0], stepped, host_admin(&admins[0], stepped, 0), 1, 0, 0);
	host_capsule(&queues[0], &leave, NULL, 0);
	close(queues[0].socket);
	for (unsigned i = 0; i < STEPS && server->connections->next; i++) {
		(void)weir_target_step(stepped, 0);
		assert_true(!server->unsent || has_connection(server, server->unsent));
	}
	assert_null(server->connections->next);
	host_stepped = NULL;
	close(admins[0].socket);
	weir_target_destroy(stepped);
}

/* A host has its whole Keep Alive time before it counts as silent, and not for ever. */
static void silence_takes_the_whole_time(void **state)
{
	enum { HEARD_MS = 5000 };
	static const u32 times[] = { 1, 1000, 60000, TARGET_KATO_MS_MAX };
	struct target_controller controller = { .kato_ms = 0 };

	(void)state;
	atomic_init(&controller.alive_ms, HEARD_MS);
	assert_false(target_controller_expired(&controller, UINT64_MAX));
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		controller.kato_ms = times[i];
		assert_false(target_controller_expired(&controller, HEARD_MS - 1)); /* heard meanwhile */
		assert_false(target_controller_expired(&controller, HEARD_MS + (u64)times[i]));
		assert_true(target_controller_expired(&controller, HEARD_MS + 2 * (u64)times[i] + 2000));
	}
}

/* A thread whose clock is behind, since its iteration takes long, makes no host silent that another heard. */
static void an_older_clock_makes_nobody_silent(void **state)
{
	enum { HEARD_MS = 5000 };
	struct target_controller controller = { .kato_ms = 0 };
	struct target_server server = { .now_ms = HEARD_MS - 1 };
	struct connection connection = { .server = &server, .controller = &controller };

	(void)state;
	atomic_init(&controller.alive_ms, HEARD_MS);
	target_connection_heard(&connection);
	assert_int_equal(atomic_load(&controller.alive_ms), HEARD_MS);
	server.now_ms = HEARD_MS + 1;
	target_connection_heard(&connection);
	assert_int_equal(atomic_load(&controller.alive_ms), HEARD_MS + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_read_what_they_wrote),
		cmocka_unit_test(connections_come_and_go),
		cmocka_unit_test(faults_befall_commands_of_the_network),
		cmocka_unit_test(a_command_may_be_answered_twice),
		cmocka_unit_test(a_dropped_command_keeps_nothing),
		cmocka_unit_test(a_stuck_command_lets_the_target_end),
		cmocka_unit_test(a_number_waits_for_its_commands),
		cmocka_unit_test(what_was_left_comes_first),
		cmocka_unit_test(what_was_closed_ends_before_the_next),
		cmocka_unit_test(a_failed_storage_is_in_csts),
		cmocka_unit_test(stopping_answers_what_was_begun),
		cmocka_unit_test(what_waits_to_be_read_is_no_silence),
		cmocka_unit_test(a_host_is_gone_before_its_last_answer),
		cmocka_unit_test(silence_takes_the_whole_time),
		cmocka_unit_test(an_older_clock_makes_nobody_silent),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
