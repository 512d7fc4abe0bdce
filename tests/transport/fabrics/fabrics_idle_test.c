/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_idle_test.c: a storage over the network that nobody uses for long, or whose target is gone for
 * long. The clock of the storage's thread and of the target's runs as fast as both of them read it.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "device/context.h"
#include "target/target.h"
#include "transport/fabrics/nvmf.h"
#include "../../rig/threads.h"

#define NQN "nqn.2026-11.org.example:disk1"

enum {
	LIMIT_MS = 600000, /* nobody is held up for so long */
	STEPS_PER_LIMIT = 4,
	LIMITS = 4,
	POLLS = 3,
	LOSS_S = 1000,
	LOST_POLLS = 30,
	STORAGES = 5,
	MOST_TRIES = 100000
};

/** enum thread - who reads the clock */
enum thread { OTHER, KEEPER, SERVER, THREADS };

static uint64_t ahead_ns;           /* of the system's clock */
static unsigned polls[THREADS];     /* how often each has read it */
static __thread enum thread reader; /* once it has its name */

static enum thread name_of_this(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	return !strncmp(name, "weir-keeper", 11) ? KEEPER : !strncmp(name, "weir-serve", 10) ? SERVER : OTHER;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int result = (int)syscall(SYS_clock_gettime, clock, time);
	uint64_t ahead;

	/* Atomic, since a thread's lanes are threads of their own to ThreadSanitizer. */
	if (__atomic_load_n(&reader, __ATOMIC_RELAXED) == OTHER)
		__atomic_store_n(&reader, name_of_this(), __ATOMIC_RELAXED);
	if (clock != CLOCK_MONOTONIC || __atomic_load_n(&reader, __ATOMIC_RELAXED) == OTHER)
		return result;
	ahead = __atomic_load_n(&ahead_ns, __ATOMIC_ACQUIRE) + (uint64_t)time->tv_nsec;
	time->tv_sec += (time_t)(ahead / 1000000000);
	time->tv_nsec = (long)(ahead % 1000000000);
	__atomic_fetch_add(&polls[__atomic_load_n(&reader, __ATOMIC_RELAXED)], 1, __ATOMIC_RELEASE);
	return result;
}

/* Time passes, and both have seen it: the thread that keeps the storage's connections a few times. */
static void step(void)
{
	unsigned before[THREADS];

	__atomic_fetch_add(&ahead_ns, (uint64_t)LIMIT_MS * 1000000 / STEPS_PER_LIMIT, __ATOMIC_RELEASE);
	for (enum thread i = KEEPER; i < THREADS; i++)
		before[i] = __atomic_load_n(&polls[i], __ATOMIC_ACQUIRE);
	for (enum thread i = KEEPER; i < THREADS; i++)
		while (__atomic_load_n(&polls[i], __ATOMIC_ACQUIRE) - before[i] < (i == KEEPER ? POLLS : 1))
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static void must(int error)
{
	if (error)
		fail_msg("%s", weir_last_error());
}

static struct weir_target *serve(void)
{
	static const struct weir_target_namespace_options space = { .uri = "virt:1M?block=512" };
	static const struct weir_target_subsystem_options subsystem = { .nqn = NQN,
									.namespaces = &space,
									.namespace_count = 1 };
	static const char *const listen = "tcp://127.0.0.1:0";
	const struct weir_target_options options = { .size = sizeof(options),
						     .listen = &listen,
						     .listen_count = 1,
						     .subsystems = &subsystem,
						     .subsystem_count = 1,
						     .threads = 1 };
	struct weir_target *target;

	must(weir_target_create(&options, &target));
	must(weir_target_start(target));
	return target;
}

/* Keep Alive comes often enough that the target keeps its host, many limits long. */
static void an_idle_host_is_kept(void **state)
{
	struct weir_target *target = serve();
	char uri[200], block[512] = { 1 };
	struct weir_context *context;
	struct weir_storage *storage;
	const struct nvmf_counters *counters;

	(void)state;
	must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context));
	snprintf(uri, sizeof(uri), "nvmf:%s/%s?connect_ms=60000&keep_alive_ms=%d",
		 weir_target_address(target, 0), NQN, LIMIT_MS);
	must(weir_storage_open(context, uri, WEIR_OPTIONS(storage, .queues = 1), &storage));
	counters = (const struct nvmf_counters *)storage->transport->network;
	must(weir_storage_write(storage, 0, block, sizeof(block)));
	for (unsigned i = 0; i < LIMITS * STEPS_PER_LIMIT; i++)
		step();
	must(weir_storage_write(storage, 0, block, sizeof(block)));
	assert_int_equal(load_relaxed_u64(&counters->reconnects), 0); /* relaxed: it stands for itself */
	must(weir_storage_close(storage));
	must(weir_context_close(context));
	weir_target_stop(target, 10000);
	weir_target_destroy(target);
}

/* The storage's thread alone, until it has polled some times or given up: the target has ended. Return: it
 * has. */
static bool gives_up(const struct nvmf *nvmf, uint64_t seconds)
{
	unsigned before;
	bool given_up = false;

	__atomic_fetch_add(&ahead_ns, seconds * 1000000000, __ATOMIC_RELEASE);
	before = __atomic_load_n(&polls[KEEPER], __ATOMIC_ACQUIRE);
	while (!given_up && __atomic_load_n(&polls[KEEPER], __ATOMIC_ACQUIRE) - before < LOST_POLLS) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		given_up = load_relaxed_u32(&nvmf->registers.csts) == UINT32_MAX; /* relaxed: a state alone */
	}
	return given_up;
}

/* A target that is gone is looked for as long as ctrl_loss_s says, and no longer. */
static void a_lost_target_is_given_up_in_time(void **state)
{
	struct weir_target *target = serve();
	struct weir_context *context;
	struct weir_storage *storage;
	const struct nvmf *nvmf;
	char uri[200];

	(void)state;
	must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context));
	snprintf(uri, sizeof(uri), "nvmf:%s/%s?ctrl_loss_s=%d&keep_alive_ms=600000&connect_ms=60000",
		 weir_target_address(target, 0), NQN, LOSS_S);
	must(weir_storage_open(context, uri, WEIR_OPTIONS(storage, .queues = 1), &storage));
	nvmf = (const struct nvmf *)(const void *)((const char *)storage->transport->network -
						   offsetof(struct nvmf, counters));
	weir_target_stop(target, 10000);
	weir_target_destroy(target);
	while (load_relaxed_u32(&nvmf->registers.connected)) /* relaxed: it stands for itself */
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_false(gives_up(nvmf, LOSS_S * 3 / 4));
	assert_true(gives_up(nvmf, LOSS_S / 2));
	(void)weir_storage_close(storage);
	must(weir_context_close(context));
}

/* A thread that was joined is on the list until the kernel has taken it off. */
static void expect_threads(const char *name, unsigned count)
{
	for (unsigned tries = 0; tries < MOST_TRIES && test_threads_named(name, false) > count; tries++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(test_threads_named(name, false), count);
}

/* Half as many movers as cores move for all storages, and end with the last of them. */
static void storages_share_movers(void **state)
{
	struct weir_target *target = serve();
	struct weir_storage *storages[STORAGES];
	struct weir_context *context;
	char uri[200], block[512] = { 1 }, back[512];
	unsigned most;
	cpu_set_t set;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	most = CPU_COUNT(&set) < 4 ? 1 : (unsigned)CPU_COUNT(&set) / 2;
	must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context));
	snprintf(uri, sizeof(uri), "nvmf:%s/%s?connect_ms=60000", weir_target_address(target, 0), NQN);
	for (unsigned i = 0; i < STORAGES; i++) {
		must(weir_storage_open(context, uri, WEIR_OPTIONS(storage, .queues = 1), &storages[i]));
		expect_threads("weir-mover", i < most ? i + 1 : most);
		expect_threads("weir-keeper", i + 1);
	}
	for (unsigned i = 0; i < STORAGES; i++) {
		memset(block, (int)i + 1, sizeof(block));
		must(weir_storage_write(storages[i], i * sizeof(block), block, sizeof(block)));
		must(weir_storage_read(storages[STORAGES - 1], i * sizeof(block), back, sizeof(back)));
		assert_memory_equal(back, block, sizeof(block));
		must(weir_storage_close(storages[i]));
	}
	expect_threads("weir-mover", 0);
	expect_threads("weir-keeper", 0);
	must(weir_context_close(context));
	weir_target_stop(target, 10000);
	weir_target_destroy(target);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_host_is_kept),
		cmocka_unit_test(a_lost_target_is_given_up_in_time),
		cmocka_unit_test(storages_share_movers),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("fabrics_idle", tests, NULL, NULL);
}
