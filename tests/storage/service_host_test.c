/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service_host_test.c: who reaps for everybody: a kernel that stays, or a thread. The device that has the
 * kernel is the test's; time passes where the host sleeps, and nowhere else.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/error.h"
#include "device/context.h"
#include "kernels/service.h"
#include "storage/service.h"

enum { QUEUES = 3, DEPTH = 8, MOST_REFUSED = 8, MOST_IDLE = 10000 };

#define SECOND_NS ((uint64_t)1000000000)
#define NEVER     UINT64_MAX

/**
 * struct device - the backend, and what it was asked for
 * @begins_ns: how long its kernel takes to begin
 * @refuses: nth allocation is refused; 0: none
 * @serves: what serve() returns
 * @running: kernels that stay
 * @stopped: of those that ended, how many had been told to
 */
static struct device {
	struct weir_backend base;
	uint64_t begins_ns;
	unsigned refuses, allocations, blocks;
	int serves;
	unsigned running, ended, stopped;
	uint32_t wave_lanes;
	bool shared;
	struct weir_service_args args;
	const char *kernel;
	uint32_t kernel_blocks, kernel_threads;
} device;

static uint64_t slept_ns;
static pthread_t this_thread;
static atomic_uint idle; /* how often the other thread found nothing to do */

int sched_yield(void)
{
	if (!pthread_equal(pthread_self(), this_thread))
		atomic_fetch_add(&idle, 1);
	return (int)syscall(SYS_sched_yield);
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	slept_ns += (uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_nsec;
	if (device.running && slept_ns >= device.begins_ns)
		weir_store_u32_release_sys(weir_at(device.args.started, weir_shared_u32, 0), 1);
	return 0;
}

static int allocate(struct weir_backend *backend, size_t bytes, enum weir_memory kind, void **host,
		    uint64_t *address)
{
	(void)backend;
	if (++device.allocations == device.refuses)
		return weir_fail(ENOMEM, "no memory");
	*host = aligned_alloc(NVME_PAGE_BYTES, bytes);
	memset(*host, 0, bytes);
	*address = WEIR_ADDR(*host);
	*host = kind == WEIR_MEMORY_HOST ? *host : NULL;
	device.blocks++;
	return 0;
}

static void release(struct weir_backend *backend, uint64_t address, size_t bytes, enum weir_memory kind)
{
	(void)backend, (void)bytes, (void)kind;
	free((void *)(uintptr_t)address);
	device.blocks--;
}

static int h2d(struct weir_backend *backend, uint64_t address, const void *host, size_t bytes)
{
	(void)backend;
	memcpy((void *)(uintptr_t)address, host, bytes);
	return 0;
}

static int serve(struct weir_backend *backend, const char *kernel, uint32_t blocks, uint32_t threads,
		 const void *args, size_t bytes, void **service)
{
	(void)backend;
	assert_int_equal(bytes, sizeof(device.args));
	memcpy(&device.args, args, bytes);
	device.kernel = kernel;
	device.kernel_blocks = blocks;
	device.kernel_threads = threads;
	if (device.serves)
		return weir_fail(-device.serves, "no kernel stays");
	device.running++;
	*service = &device;
	return 0;
}

static void serve_end(struct weir_backend *backend, void *service)
{
	(void)backend;
	assert_ptr_equal(service, &device);
	device.stopped += weir_load_u32_relaxed_sys(weir_at(device.args.stop, weir_shared_u32, 0)) != 0;
	device.ended++;
	device.running--;
}

static void properties(struct weir_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	out->wave_lanes = device.wave_lanes;
	out->shared_memory = device.shared;
}

static const struct weir_backend_ops with_kernels = { .size = sizeof(with_kernels),
						      .name = "noted",
						      .allocate = allocate,
						      .release = release,
						      .h2d = h2d,
						      .serve = serve,
						      .serve_end = serve_end,
						      .properties = properties },
				     without = { .size = sizeof(without),
						 .name = "noted",
						 .allocate = allocate,
						 .release = release,
						 .properties = properties };

static struct weir_context *context;
static struct weir_storage storage;
static struct weir_queue queues[QUEUES];

static void begin(const struct weir_backend_ops *ops, uint32_t waves)
{
	slept_ns = 0;
	device = (struct device){ .base = { .ops = ops }, .wave_lanes = 32 };
	context = calloc(1, sizeof(*context));
	context->backend = &device.base;
	context->service_waves = waves;
	assert_int_equal(weir_dma_map_create(&context->dma), 0);
	assert_int_equal(weir_handle_add(context, WEIR_HANDLE_CONTEXT, "noted"), 0);
	storage = (struct weir_storage){ .context = context,
					 .uri = (char *)"test:it",
					 .queues = WEIR_ADDR(queues),
					 .queue_count = QUEUES };
}

static void end(void)
{
	weir_service_stop(&storage);
	weir_service_stop(&storage); /* once more is nothing */
	assert_null(storage.service);
	assert_int_equal(device.running, 0);
	assert_int_equal(device.stopped, device.ended);
	assert_int_equal(device.blocks, 0);
	weir_dma_map_destroy(context->dma);
	context->dma = NULL;
	weir_handle_retire(context);
}

static void says(int result, int error, const char *words)
{
	assert_int_equal(result, error);
	if (!strstr(weir_last_error(), words))
		fail_msg("\"%s\" does not say \"%s\"", weir_last_error(), words);
}

/* As many blocks as hold the waves, each of so many lanes as its waves have, for all queue pairs. */
static void test_a_kernel_has_the_waves(void **state)
{
	static const struct {
		uint32_t waves, wave_lanes, blocks;
	} rows[] = { { 1, 32, 1 }, { 4, 32, 1 }, { 5, 32, 2 },  { 5, 64, 3 },
		     { 4, 64, 2 }, { 7, 1, 1 },  { 129, 1, 2 }, { 65536, 32, 16384 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(&with_kernels, rows[i].waves);
		device.wave_lanes = rows[i].wave_lanes;
		assert_int_equal(weir_service_start(&storage), 0);
		assert_string_equal(device.kernel, "weir_service");
		assert_int_equal(device.kernel_blocks, rows[i].blocks);
		assert_int_equal(device.kernel_threads, 128);
		assert_true(device.args.queues == storage.queues && device.args.stop);
		assert_int_equal(device.args.queue_count, QUEUES);
		end();
		assert_int_equal(device.ended, 1);
	}
}

/* A kernel has ten seconds to begin, no less and hardly more; one that has not is told to end all the same.
 */
static void test_a_kernel_has_ten_seconds(void **state)
{
	(void)state;
	begin(&with_kernels, 1);
	device.begins_ns = 10 * SECOND_NS - SECOND_NS / 10;
	assert_int_equal(weir_service_start(&storage), 0);
	assert_in_range(slept_ns, device.begins_ns, 10 * SECOND_NS);
	end();
	assert_int_equal(device.ended, 1);
	begin(&with_kernels, 1);
	device.begins_ns = NEVER;
	says(weir_service_start(&storage), -ETIMEDOUT, "test:it: kernel \"weir_service\" did not begin");
	assert_in_range(slept_ns, 10 * SECOND_NS, 11 * SECOND_NS);
	end();
	assert_int_equal(device.ended, 1);
}

/* Whatever is refused: nothing of it stays. */
static void test_what_fails_leaves_nothing(void **state)
{
	int error = -ENOMEM;

	(void)state;
	for (unsigned nth = 1; error && nth < MOST_REFUSED; nth++) {
		begin(&with_kernels, 1);
		device.refuses = nth;
		error = weir_service_start(&storage);
		assert_int_equal(error, nth > 2 ? 0 : -ENOMEM); /* it has two words */
		end();
		assert_int_equal(device.ended, !error);
	}
	assert_int_equal(error, 0);
	begin(&with_kernels, 1);
	device.serves = -EBUSY;
	says(weir_service_start(&storage), -EBUSY, "no kernel stays");
	end();
	assert_int_equal(device.ended, 0);
	begin(&without, 1);
	says(weir_service_start(&storage), -ENOTSUP, "service_waves=1: ");
	end();
}

/* One that nobody asked for is for lanes that move the data themselves, and is done without where it cannot
 * be. */
static void test_a_service_where_lanes_pull(void **state)
{
	(void)state;
	for (unsigned pull = 0; pull < 2; pull++)
		for (unsigned refused = 0; refused < 2; refused++) {
			begin(&with_kernels, WEIR_SERVICE_WHERE_PULLED);
			storage.pull = pull;
			device.serves = refused ? -EBUSY : 0;
			assert_int_equal(weir_service_start(&storage), 0);
			assert_int_equal(device.running, pull && !refused);
			assert_int_equal(storage.service != NULL, pull && !refused);
			assert_int_equal(device.blocks, pull && !refused ? 2 : 0);
			if (pull)
				assert_int_equal(device.kernel_blocks, 4); /* of sixteen waves */
			end();
		}
	begin(&without, WEIR_SERVICE_WHERE_PULLED);
	storage.pull = true;
	assert_int_equal(weir_service_start(&storage), 0);
	assert_null(storage.service);
	end();
	begin(&with_kernels, 0);
	storage.pull = true;
	assert_int_equal(weir_service_start(&storage), 0);
	assert_null(storage.service);
	end();
}

static struct weir_slot slots[QUEUES][DEPTH];
static struct nvme_cqe entries[QUEUES][DEPTH];
static struct weir_event events[QUEUES];
static uint32_t doorbells[QUEUES][2];

/* One command under way, and its completion there, of each queue pair. */
static void complete_one(unsigned i)
{
	queues[i].slots = WEIR_ADDR(slots[i]);
	queues[i].cq = WEIR_ADDR(entries[i]);
	queues[i].sq_doorbell = WEIR_ADDR(&doorbells[i][0]);
	queues[i].cq_doorbell = WEIR_ADDR(&doorbells[i][1]);
	queues[i].depth = DEPTH;
	queues[i].depth_log2 = 3;
	slots[i][0] = (struct weir_slot){ .target_kind = WEIR_TARGET_EVENT, .target = WEIR_ADDR(&events[i]) };
	weir_store_u32_relaxed_sys(&slots[i][0].sequence, 1);
	weir_store_u64_relaxed_sys(&queues[i].tail, 1);
	weir_store_u64_relaxed_sys(&queues[i].committed, 1);
	entries[i][0].dw3 = 1 << 16;
}

/* A thread takes the completions of every queue pair, though no lane looks at any. */
static void test_a_thread_reaps_all_queues(void **state)
{
	(void)state;
	this_thread = pthread_self();
	memset(queues, 0, sizeof(queues));
	memset(entries, 0, sizeof(entries));
	for (unsigned i = 0; i < QUEUES; i++)
		complete_one(i);
	begin(&without, 1);
	device.shared = true;
	assert_int_equal(weir_service_start(&storage), 0);
	for (unsigned i = 0; i < QUEUES; i++)
		for (unsigned were = 0; !(weir_load_u64_relaxed_sys(&events[i].word) & WEIR_EVENT_DONE);
		     were = atomic_load(&idle)) {
			assert_true(were < MOST_IDLE); /* it finds nothing more */
			sched_yield();
		}
	end();
	for (unsigned i = 0; i < QUEUES; i++) {
		assert_int_equal(weir_load_u64_relaxed_sys(&queues[i].completed), 1);
		assert_int_equal(weir_load_u64_relaxed_sys(&queues[i].reap), 2); /* unlocked, one further */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_kernel_has_the_waves),
		cmocka_unit_test(test_a_kernel_has_ten_seconds),
		cmocka_unit_test(test_what_fails_leaves_nothing),
		cmocka_unit_test(test_a_service_where_lanes_pull),
		cmocka_unit_test(test_a_thread_reaps_all_queues),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("service_host", tests, NULL, NULL);
}
