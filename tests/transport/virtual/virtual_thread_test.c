/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_thread_test.c: the time model, and controllers served by threads. */
#include "../../rig/leaks.h"
#include "virtual_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 512, PAGE = NVME_PAGE_BYTES };

static void test_latency(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct driver driver;
	u64 data, begin;

	(void)state;
	options.latency_us = 2000;
	driver_open(&driver, options);
	driver_enable(&driver);
	driver_add_queue(&driver, 1, 1, 8, 8);
	data = driver_bus(driver_pages(&driver, PAGE));
	for (u32 i = 0; i < 20; i++) {
		begin = driver_now_ns();
		assert_int_equal(driver_command(&driver, 1,
						driver_io(NVME_OPCODE_READ, i & 1 ? 0 : 1 << 30, 1, data, 0),
						NULL),
				 i & 1 ? 0 : (NVME_STATUS_LBA_OUT_OF_RANGE | DRIVER_REFUSED));
		assert_true(driver_now_ns() - begin >= 2000 * 1000);
	}
	driver_close(&driver);
}

static u64 hand_ns; /* a clock that is moved by hand */

static u64 hand_clock(void *argument)
{
	(void)argument;
	return hand_ns;
}

/* To the nanosecond, below and beyond what 32 bits of them hold. */
static void test_latency_by_the_clock(void **state)
{
	static const u32 latencies_us[] = { 1, 777, 4294968, 10000000 };

	(void)state;
	for (u32 i = 0; i < 4; i++) {
		struct weir_virtual_options options = driver_defaults();
		u64 due_ns = (u64)latencies_us[i] * 1000;
		struct driver driver;
		struct nvme_cqe cqe;

		options.latency_us = latencies_us[i];
		options.clock_ns = hand_clock;
		hand_ns = 1000;
		driver_open(&driver, options);
		driver_enable(&driver);
		driver_add_queue(&driver, 1, 1, 8, 8);
		driver_post(&driver, 1, (struct nvme_sqe){ .nsid = 1 }, 3);
		driver_steps(&driver, 5);
		hand_ns += due_ns - 1;
		assert_true(driver_nothing(&driver, 1));
		hand_ns += 1;
		driver_steps(&driver, 5);
		assert_true(driver_peek(&driver, 1, &cqe));
		driver_close(&driver);
	}
}

/* What each of several threads did is in the sum. */
static void test_stats_of_all_threads(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct weir_virtual_stats stats;
	struct driver driver;
	u64 data;

	(void)state;
	options.threads = 3;
	driver_open(&driver, options);
	driver_enable(&driver);
	data = driver_bus(driver_pages(&driver, PAGE));
	for (u32 queue = 1; queue <= 3; queue++) {
		driver_add_queue(&driver, queue, queue, 8, 8);
		assert_int_equal(
			driver_command(&driver, queue, driver_io(NVME_OPCODE_WRITE, 0, queue, data, 0), NULL),
			0);
		assert_int_equal(driver_command(&driver, queue,
						driver_io(NVME_OPCODE_READ, 0, 2 * queue, data, 0), NULL),
				 0);
	}
	weir_virtual_stats(driver.controller, &stats);
	assert_int_equal(stats.bytes_written, (1 + 2 + 3) * BLOCK);
	assert_int_equal(stats.bytes_read, 2 * (1 + 2 + 3) * BLOCK);
	assert_int_equal(stats.changes, 3);
	driver_close(&driver);
}

/* So are commands, errors, faults and doorbells: of each thread as many as it has. */
static void test_counters_of_all_threads(void **state)
{
	struct weir_virtual_fault row = { .kind = WEIR_VIRTUAL_FAULT_STATUS,
					  .code = NVME_STATUS_UNRECOVERED_READ,
					  .opcode = WEIR_VIRTUAL_FAULT_READ };
	struct weir_virtual_options options = driver_defaults();
	struct weir_virtual_stats before, after;
	struct driver driver;
	u64 data;

	(void)state;
	options.threads = 3;
	options.faults = &row;
	options.fault_count = 1;
	driver_open(&driver, options);
	driver_enable(&driver);
	data = driver_bus(driver_pages(&driver, PAGE));
	for (u32 queue = 1; queue <= 3; queue++)
		driver_add_queue(&driver, queue, queue, 8, 8);
	weir_virtual_stats(driver.controller, &before);
	for (u32 queue = 1; queue <= 3; queue++) {
		for (u32 i = 0; i < queue; i++) {
			assert_int_equal(driver_command(&driver, queue,
							driver_io(NVME_OPCODE_WRITE, i, 1, data, 0), NULL),
					 0);
			assert_int_equal(driver_command(&driver, queue,
							driver_io(NVME_OPCODE_READ, i, 1, data, 0), NULL),
					 NVME_STATUS_UNRECOVERED_READ);
		}
		driver_doorbell(&driver, 2 * queue, 8);
		driver_steps(&driver, 10);
	}
	weir_virtual_stats(driver.controller, &after);
	assert_int_equal(after.commands - before.commands, 2 * (1 + 2 + 3));
	assert_int_equal(after.errors - before.errors, 1 + 2 + 3);
	assert_int_equal(after.faults - before.faults, 1 + 2 + 3);
	assert_int_equal(after.changes - before.changes, 1 + 2 + 3);
	assert_int_equal(after.bad_doorbells - before.bad_doorbells, 3);
	assert_int_equal(after.bytes_written - before.bytes_written, (1 + 2 + 3) * BLOCK);
	assert_int_equal(after.bytes_read, before.bytes_read);
	driver_close(&driver);
}

/* At a rate one command ends when the one before it has had its time, to the nanosecond and whoever serves
 * it; a pause saves nothing up. */
static void test_rate_by_the_clock(void **state)
{
	static const struct {
		u64 iops, spacing_ns;
	} rates[] = { { 1000000, 1000 }, { 3, 333333334 }, { 1, 1000000000 } };

	(void)state;
	for (u32 i = 0; i < 6; i++) {
		struct weir_virtual_options options = driver_defaults();
		u64 spacing_ns = rates[i / 2].spacing_ns;
		struct driver driver;
		struct nvme_cqe cqe;

		options.iops = rates[i / 2].iops;
		options.clock_ns = hand_clock;
		options.threads = 1 + i % 2;
		hand_ns = 1000;
		driver_open(&driver, options);
		driver_enable(&driver);
		driver_add_queue(&driver, 1, 1, 16, 16);
		driver_add_queue(&driver, 2, 2, 16, 16);
		for (u32 burst = 0; burst < 2; burst++) {
			for (u32 k = 0; k < 6; k++)
				driver_post(&driver, 1 + k % 2, (struct nvme_sqe){ .nsid = 1 }, k);
			for (u32 k = 0; k < 6; k++) {
				u32 ended = 0;

				hand_ns += k ? spacing_ns - 1 : 0;
				driver_steps(&driver, 20);
				assert_true(k == 0 || (!driver_peek(&driver, 1, &cqe) &&
						       !driver_peek(&driver, 2, &cqe)));
				hand_ns += k ? 1 : 0;
				driver_steps(&driver, 20);
				for (u32 queue = 1; queue <= 2; queue++)
					while (driver_peek(&driver, queue, &cqe)) {
						driver_release(&driver, queue);
						ended++;
					}
				assert_int_equal(ended, 1);
			}
			hand_ns += 100 * spacing_ns;
		}
		driver_close(&driver);
	}
}

/* The last of n cannot come sooner than n - 1 spacings after the first was posted. */
static void check_rate(unsigned threads, u32 latency_us)
{
	struct weir_virtual_options options = driver_defaults();
	const u32 each = 500, queues = 4;
	u32 done[5] = { 0 }, total = 0, posted[5] = { 0 };
	struct driver driver;
	struct nvme_cqe cqe;
	bool halfway = false;
	u64 begin;

	options.iops = 20000;
	options.latency_us = latency_us;
	options.threads = threads;
	driver_open(&driver, options);
	driver_enable(&driver);
	for (u32 queue = 1; queue <= queues; queue++)
		driver_add_queue(&driver, queue, queue, 1024, 1024);
	begin = driver_now_ns();
	while (total < each * queues) {
		for (u32 queue = 1; queue <= queues; queue++) {
			while (posted[queue] < each)
				driver_post(&driver, queue, (struct nvme_sqe){ .nsid = 1 }, posted[queue]++);
			while (driver_peek(&driver, queue, &cqe)) {
				assert_int_equal(driver_status(&cqe), 0);
				driver_release(&driver, queue);
				done[queue]++;
				total++;
			}
		}
		driver_step(&driver);
		assert_true(total == 0 || driver_now_ns() - begin >= (total - 1) * 50000ull);
		if (halfway || threads > 1 || total < each * queues / 2)
			continue;
		halfway = true; /* all had their share */
		for (u32 queue = 1; queue <= queues; queue++)
			assert_in_range(done[queue], each / 2 - 100, each / 2 + 100);
	}
	driver_close(&driver);
}

static void test_rate(void **state)
{
	(void)state;
	check_rate(1, 0);
	check_rate(2, 0);
	check_rate(2, 5000);
}

/**
 * struct client - a thread that writes and reads back through one queue
 */
struct client {
	struct driver *driver;
	u32 queue;
	u32 rounds;
	unsigned char *memory;
	u32 bad;
	pthread_t handle;
};

enum { CLIENT_DEPTH = 15 };

static void client_pass(struct client *client, u32 opcode, u64 first_lba)
{
	struct nvme_cqe cqe;

	for (u32 i = 0; i < CLIENT_DEPTH; i++) {
		struct nvme_sqe sqe =
			driver_io(opcode, first_lba + i, 1, driver_bus(client->memory + i * BLOCK), 0);

		driver_set_cid(&sqe, i);
		driver_put(client->driver, client->queue, &sqe);
		if (i % 4 == 3 || i + 1 == CLIENT_DEPTH)
			driver_ring(client->driver, client->queue);
	}
	for (u32 i = 0; i < CLIENT_DEPTH; i++) {
		while (!driver_peek(client->driver, client->queue, &cqe))
			sched_yield();
		driver_release(client->driver, client->queue);
		client->bad += driver_status(&cqe) != 0;
	}
}

static void *client_run(void *argument)
{
	struct client *client = argument;
	u64 first = (client->queue - 1) * 512;

	for (u32 round = 1; round <= client->rounds; round++) {
		u64 lba = first + round * 7 % 480;

		for (u32 i = 0; i < CLIENT_DEPTH; i++)
			driver_fill(client->memory + i * BLOCK, lba + i, BLOCK, round);
		client_pass(client, NVME_OPCODE_WRITE, lba);
		memset(client->memory, 0, CLIENT_DEPTH * BLOCK);
		client_pass(client, NVME_OPCODE_READ, lba);
		for (u32 i = 0; i < CLIENT_DEPTH; i++)
			client->bad += !driver_holds(client->memory + i * BLOCK, lba + i, BLOCK, round);
	}
	return NULL;
}

static void run_clients(struct driver *driver, struct client *clients, u32 count, u32 rounds)
{
	for (u32 i = 0; i < count; i++) {
		clients[i] = (struct client){ .driver = driver, .queue = i + 1, .rounds = rounds };
		clients[i].memory = driver_pages(driver, 2 * PAGE);
		assert_int_equal(pthread_create(&clients[i].handle, NULL, client_run, &clients[i]), 0);
	}
}

static void join_clients(struct client *clients, u32 count)
{
	for (u32 i = 0; i < count; i++) {
		pthread_join(clients[i].handle, NULL);
		assert_int_equal(clients[i].bad, 0);
	}
}

/* Threads and queues in several proportions, with the admin queue in use beside them. */
static void test_threads(void **state)
{
	static const unsigned threads[] = { 1, 2, 3 };
	struct client clients[8];
	struct driver driver;

	(void)state;
	for (u32 i = 0; i < 3; i++) {
		struct weir_virtual_options options = driver_defaults();

		options.threads = threads[i];
		options.latency_us = i == 2 ? 30 : 0;
		driver_open(&driver, options);
		driver_start(&driver);
		driver_enable(&driver);
		for (u32 queue = 1; queue <= 6; queue++)
			driver_add_queue(&driver, queue, queue, 16, queue & 1 ? 16 : 5);
		run_clients(&driver, clients, 6, 60);
		for (u32 round = 0; round < 10; round++) {
			driver_add_queue(&driver, 7, 7, 8, 8);
			assert_int_equal(driver_command(&driver, 7, (struct nvme_sqe){ .nsid = 1 }, NULL), 0);
			assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_SQ, 7)), 0);
			assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_CQ, 7)), 0);
		}
		join_clients(clients, 6);
		driver_disable(&driver);
		driver_stop(&driver);
		driver_close(&driver);
	}
}

/* Reset by one thread while others serve; then all of it again. */
static void test_reset_under_threads(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct client clients[4];
	struct driver driver;

	(void)state;
	options.threads = 2;
	driver_open(&driver, options);
	driver_start(&driver);
	for (u32 round = 0; round < 10; round++) {
		driver_enable(&driver);
		for (u32 queue = 1; queue <= 4; queue++)
			driver_add_queue(&driver, queue, queue, 64, 64);
		for (u32 queue = 1; queue <= 4; queue++) {
			u64 data = driver_bus(driver_pages(&driver, PAGE));

			for (u32 i = 0; i < 63; i++)
				driver_post(&driver, queue,
					    driver_io(NVME_OPCODE_WRITE, queue * 64 + i, 1, data, 0), i);
		}
		driver_disable(&driver);
		memset(driver.arena, 0, 1 << 20); /* TSan: nobody writes it any more */
	}
	driver_enable(&driver);
	for (u32 queue = 1; queue <= 4; queue++)
		driver_add_queue(&driver, queue, queue, 16, 16);
	run_clients(&driver, clients, 4, 20);
	join_clients(clients, 4);
	driver_stop(&driver);
	driver_start(&driver); /* and once more with new threads */
	assert_int_equal(driver_command(&driver, 1, (struct nvme_sqe){ .nsid = 1 }, NULL), 0);
	driver_close(&driver);
}

/* Threads that do not end in time: the @late-th that is waited for, counted from 1; and until when all are.
 */
static struct {
	unsigned joins, late;
	struct timespec until;
	bool clock_stands;
} halt;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (!halt.clock_stands || clock != CLOCK_REALTIME)
		return (int)syscall(SYS_clock_gettime, clock, now);
	*now = (struct timespec){ .tv_sec = 1000, .tv_nsec = 999000000 };
	return 0;
}

int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
	halt.until = *until;
	return ++halt.joins == halt.late ? ETIMEDOUT : pthread_join(thread, value);
}

/* A controller has stopped when all of its threads have, of which each has the same time; and those that have
 * are not waited for again. */
static void test_halt(void **state)
{
	enum { THREADS = 3 };
	struct weir_virtual_options options = driver_defaults();
	struct driver driver;

	(void)state;
	options.threads = THREADS;
	for (unsigned late = 0; late <= THREADS; late++) {
		driver_open(&driver, options);
		assert_int_equal(weir_virtual_halt(driver.controller, 1999), 0); /* none runs */
		driver_start(&driver);
		halt.joins = 0;
		halt.late = late;
		halt.clock_stands = true;
		assert_int_equal(weir_virtual_halt(driver.controller, 1999), late ? -ETIMEDOUT : 0);
		halt.clock_stands = false;
		assert_int_equal(halt.joins, THREADS);
		assert_int_equal(halt.until.tv_sec, 1002);
		assert_int_equal(halt.until.tv_nsec, 998000000);
		if (late)
			assert_int_equal(weir_virtual_halt(driver.controller, 1), 0);
		assert_int_equal(halt.joins, THREADS + (late != 0));
		driver_close(&driver);
	}
}

static unsigned threads_to_be_had; /* so many, less one, before one is not; 0: any number */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
	if (threads_to_be_had && !--threads_to_be_had)
		return EAGAIN;
	return next(thread, attributes, run, argument);
}

/* A controller of which a thread cannot be started has none, and nothing of them; later it may have them all.
 */
static void test_a_thread_that_is_not_to_be_had(void **state)
{
	enum { THREADS = 3 };
	struct weir_virtual_options options = driver_defaults();
	struct test_has before;
	struct driver driver;

	(void)state;
	options.threads = THREADS;
	for (unsigned woken = 0; woken < 2; woken++) {
		options.woken = woken;
		driver_open(&driver, options);
		driver_start(&driver);
		driver_stop(&driver); /* once, for what libraries keep */
		before = test_has();
		for (unsigned good = 0; good < THREADS; good++) {
			threads_to_be_had = good + 1;
			assert_int_equal(weir_virtual_start(driver.controller), -EAGAIN);
			assert_int_equal(threads_to_be_had, 0);
			test_keeps(before, 1 << 20);
		}
		driver_start(&driver);
		driver_enable(&driver);
		driver_add_queue(&driver, 3, 3, 8, 8);
		assert_int_equal(driver_command(&driver, 3, (struct nvme_sqe){ .nsid = 1 }, NULL), 0);
		driver_stop(&driver);
		test_keeps(before, 1 << 20);
		driver_close(&driver);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_latency),
		cmocka_unit_test(test_latency_by_the_clock),
		cmocka_unit_test(test_stats_of_all_threads),
		cmocka_unit_test(test_counters_of_all_threads),
		cmocka_unit_test(test_rate_by_the_clock),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_reset_under_threads),
		cmocka_unit_test(test_halt),
		cmocka_unit_test(test_a_thread_that_is_not_to_be_had),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
