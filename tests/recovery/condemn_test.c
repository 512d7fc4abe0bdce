/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recovery/condemn_test.c: what the watchdog writes to queue pairs of a controller that failed. The test is
 * the controller.
 *
 * Checked: lanes are told whether it may still touch memory; nothing is asked of it afterwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "recovery/watchdog.h"

enum { QUEUES = 3, DEPTH = 8, DEPTH_LOG2 = 3, READY = NVME_CSTS_READY };

static struct weir_queue queues[QUEUES];
static struct weir_slot slots[QUEUES][DEPTH];
static struct nvme_cqe entries[QUEUES][DEPTH];
static uint32_t csts; /* of the controller */
static int halt_error, halts;

static uint32_t read32(struct weir_transport *transport, uint32_t offset)
{
	(void)transport;
	assert_int_equal(offset, NVME_REGISTER_CSTS);
	return csts;
}

static int halt(struct weir_transport *transport)
{
	(void)transport;
	halts++;
	return halt_error;
}

static void properties(struct weir_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	*out = (struct weir_backend_properties){ .shared_memory = true };
}

static const struct weir_backend_ops backend_ops = { .size = sizeof(backend_ops), .properties = properties };
static const struct weir_transport_ops can_halt = { .size = sizeof(can_halt),
						    .read32 = read32,
						    .halt = halt };
static const struct weir_transport_ops cannot_halt = { .size = sizeof(cannot_halt), .read32 = read32 };

static uint32_t dead(uint32_t queue)
{
	return weir_load_u32_acquire_sys(&queues[queue].dead);
}

/* The controller's status is @status when the watchdog looks first. */
static void condemn(const struct weir_transport_ops *ops, uint32_t status, struct weir_storage *storage)
{
	struct weir_backend backend = { .ops = &backend_ops };
	struct weir_context context = { .backend = &backend, .shared_memory = true };
	struct weir_transport transport = { .ops = ops };
	static char uri[] = "test:";

	memset(queues, 0, sizeof(queues));
	halts = 0;
	csts = status;
	*storage = (struct weir_storage){ .context = &context,
					  .transport = &transport,
					  .uri = uri,
					  .queues = WEIR_ADDR(queues),
					  .queue_count = QUEUES,
					  .depth = DEPTH,
					  .created = QUEUES,
					  .enabled = true };
	for (uint32_t i = 0; i < QUEUES; i++) {
		queues[i].slots = WEIR_ADDR(slots[i]);
		queues[i].cq = WEIR_ADDR(entries[i]);
		queues[i].depth = DEPTH;
		queues[i].depth_log2 = DEPTH_LOG2;
	}
	assert_int_equal(weir_watchdog_start(storage, 0), 0);
	while (!dead(QUEUES - 1))
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	weir_watchdog_stop(storage);
}

static void check(const struct weir_transport_ops *ops, uint32_t status, weir_status is, bool unsafe)
{
	struct weir_storage storage;

	condemn(ops, status, &storage);
	assert_int_equal(storage.dead, is);
	for (uint32_t i = 0; i < QUEUES; i++) {
		assert_int_equal(dead(i) & WEIR_QUEUE_DEAD_STATUS, is);
		assert_int_equal((dead(i) & WEIR_QUEUE_UNSAFE) != 0, unsafe);
	}
	assert_int_equal(halts, ops->halt ? 1 : 0);
	assert_int_equal(storage.enabled, !ops->halt);
	assert_int_equal(storage.created, ops->halt ? 0 : QUEUES);
}

static void test_a_controller_that_is_kept_from_memory(void **state)
{
	(void)state;
	halt_error = 0;
	check(&can_halt, READY | NVME_CSTS_FATAL, WEIR_E_DEVICE_DEAD, false);
	check(&can_halt, UINT32_MAX, WEIR_E_DEVICE_GONE, false);
}

/* It may still write to what its commands had. */
static void test_a_controller_that_cannot_be_halted(void **state)
{
	(void)state;
	halt_error = -5;
	check(&can_halt, READY | NVME_CSTS_FATAL, WEIR_E_DEVICE_DEAD, true);
	check(&can_halt, UINT32_MAX, WEIR_E_DEVICE_GONE, true);
}

/* One that is gone touches nothing; one that failed may. */
static void test_a_transport_that_halts_nothing(void **state)
{
	(void)state;
	check(&cannot_halt, READY | NVME_CSTS_FATAL, WEIR_E_DEVICE_DEAD, true);
	check(&cannot_halt, UINT32_MAX, WEIR_E_DEVICE_GONE, false);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_controller_that_is_kept_from_memory),
		cmocka_unit_test(test_a_controller_that_cannot_be_halted),
		cmocka_unit_test(test_a_transport_that_halts_nothing),
	};

	return cmocka_run_group_tests_name("condemn", tests, NULL, NULL);
}
