/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recovery/condemn_test.c: what the watchdog writes to queue pairs of a controller that failed. The test is
 * the controller.
 *
 * Checked: lanes are told whether it may still touch memory; nothing is asked of it afterwards.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "backend/error.h"
#include "recovery/watchdog.h"
#include "storage/doorbells.h"

enum { QUEUES = 3, DEPTH = 8, DEPTH_LOG2 = 3, READY = NVME_CSTS_READY };

static struct weir_queue queues[QUEUES];
static struct weir_slot slots[QUEUES][DEPTH];
static struct nvme_cqe entries[QUEUES][DEPTH];
static uint8_t admin_memory[WEIR_ADMIN_MEMORY_BYTES];
static uint32_t csts; /* of the controller */
static int halt_error, halts;
static unsigned writes; /* of its registers */

static uint32_t read32(struct weir_transport *transport, uint32_t offset)
{
	(void)transport;
	assert_int_equal(offset, NVME_REGISTER_CSTS);
	return csts;
}

static uint64_t read64(struct weir_transport *transport, uint32_t offset)
{
	(void)transport;
	(void)offset;
	return UINT64_MAX;
}

static void write32(struct weir_transport *transport, uint32_t offset, uint32_t value)
{
	(void)transport;
	(void)offset;
	(void)value;
	writes++;
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

static atomic_uint unmapped, untold; /* queue pairs whose lanes were not told by then that it is over */

static int map_registers(struct weir_backend *backend, void *host, size_t bytes, uint64_t *address)
{
	(void)backend;
	(void)host;
	(void)bytes;
	*address = 0x700000000000;
	return 0;
}

static void unmap_registers(struct weir_backend *backend, void *host, size_t bytes)
{
	(void)backend;
	(void)host;
	(void)bytes;
	for (uint32_t i = 0; i < QUEUES; i++)
		atomic_fetch_add(&untold, !weir_load_u32_acquire_sys(&queues[i].dead));
	atomic_fetch_add(&unmapped, 1);
}

static const struct weir_backend_ops backend_ops = { .size = sizeof(backend_ops),
						     .properties = properties,
						     .map_registers = map_registers,
						     .unmap_registers = unmap_registers };
static const struct weir_transport_ops can_halt = {
	.size = sizeof(can_halt), .read32 = read32, .read64 = read64, .write32 = write32, .halt = halt
};
static const struct weir_transport_ops cannot_halt = {
	.size = sizeof(cannot_halt), .read32 = read32, .read64 = read64, .write32 = write32
};

static uint32_t dead(uint32_t queue)
{
	return weir_load_u32_acquire_sys(&queues[queue].dead);
}

static unsigned given_ms; /* for the last admin command */

static int admin(struct weir_transport *transport, const struct nvme_sqe *command, unsigned ms,
		 uint32_t *result)
{
	(void)transport;
	(void)command;
	(void)result;
	given_ms = ms;
	return weir_fail(EIO, "no answer");
}

static int reset(struct weir_transport *transport)
{
	(void)transport;
	return weir_fail(EIO, "no reset");
}

/* It is not failed, and does nothing that it is asked. */
static const struct weir_transport_ops does_nothing = {
	.size = sizeof(does_nothing), .read32 = read32, .admin = admin, .reset = reset
};

/* Queue pairs without a command, as a storage has them. */
static void make_queues(uint64_t ring_addresses[QUEUES], uint64_t slot_addresses[QUEUES])
{
	memset(queues, 0, sizeof(queues));
	memset(slots, 0, sizeof(slots));
	for (uint32_t i = 0; i < QUEUES; i++) {
		queues[i].slots = WEIR_ADDR(slots[i]);
		queues[i].cq = WEIR_ADDR(entries[i]);
		queues[i].depth = DEPTH;
		queues[i].depth_log2 = DEPTH_LOG2;
		ring_addresses[i] = queues[i].cq - weir_queue_cq_offset(DEPTH);
		slot_addresses[i] = queues[i].slots;
	}
}

/* The controller's status is @status when the watchdog looks first. With @answer_ns the last queue pair has a
 * command that gets no answer. */
static void condemn(const struct weir_transport_ops *ops, uint32_t status, uint64_t answer_ns,
		    struct weir_storage *storage)
{
	struct weir_backend backend = { .ops = &backend_ops };
	struct weir_context context = { .backend = &backend, .shared_memory = true };
	struct weir_transport transport = { .ops = ops };
	uint64_t ring_addresses[QUEUES], slot_addresses[QUEUES];
	static char uri[] = "test:";

	make_queues(ring_addresses, slot_addresses);
	halts = 0;
	writes = 0;
	csts = status;
	*storage = (struct weir_storage){ .context = &context,
					  .transport = &transport,
					  .uri = uri,
					  .queues = WEIR_ADDR(queues),
					  .queue_count = QUEUES,
					  .depth = DEPTH,
					  .created = QUEUES,
					  .answer_ns = answer_ns,
					  .rings = ring_addresses,
					  .slots = slot_addresses,
					  .admin = { .transport = &transport, .memory = admin_memory },
					  .enabled = true };
	if (answer_ns) {
		weir_store_u32_relaxed_sys(&slots[QUEUES - 1][0].sequence, 1);
		weir_store_u64_relaxed_sys(&queues[QUEUES - 1].tail, 1);
		weir_store_u64_relaxed_sys(&queues[QUEUES - 1].committed, 1);
	}
	assert_int_equal(weir_watchdog_start(storage, 0), 0);
	while (!dead(QUEUES - 1))
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	weir_watchdog_stop(storage);
}

static void check(const struct weir_transport_ops *ops, uint32_t status, weir_status is, bool unsafe)
{
	struct weir_storage storage;

	condemn(ops, status, 0, &storage);
	assert_int_equal(storage.dead, is);
	for (uint32_t i = 0; i < QUEUES; i++) {
		assert_int_equal(dead(i) & WEIR_QUEUE_DEAD_STATUS, is);
		assert_int_equal((dead(i) & WEIR_QUEUE_UNSAFE) != 0, unsafe);
	}
	assert_int_equal(halts, ops->halt ? 1 : 0);
	assert_int_equal(writes, 0);
	assert_int_equal(storage.enabled, !ops->halt);
	assert_int_equal(storage.created, ops->halt ? 0 : QUEUES);
}

static void test_a_controller_that_is_kept_from_memory(void **state)
{
	(void)state;
	halt_error = 0;
	check(&can_halt, READY | NVME_CSTS_FATAL, WEIR_E_DEVICE_DEAD, false);
	check(&can_halt, NVME_CSTS_FATAL, WEIR_E_DEVICE_DEAD, false); /* and is not ready, either */
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

/* What a command has for its answer an admin command has, too, while it is recovered from. */
static void test_recovery_has_the_same_time(void **state)
{
	struct weir_storage storage;

	(void)state;
	given_ms = 0;
	condemn(&does_nothing, READY, 80000000, &storage);
	assert_int_equal(storage.dead, WEIR_E_DEVICE_DEAD);
	assert_int_equal(given_ms, 81);
}

static _Alignas(NVME_PAGE_BYTES) uint32_t registers[NVME_PAGE_BYTES];
static atomic_bool is_wanted;
static atomic_uint ways, ways_too_early; /* given to the system, and while lanes had the registers */

static uint64_t doorbell(struct weir_transport *transport, unsigned index)
{
	(void)transport;
	return WEIR_ADDR(&registers[index]);
}

static bool wanted(struct weir_transport *transport)
{
	(void)transport;
	return atomic_load(&is_wanted);
}

static void give_way(struct weir_transport *transport)
{
	(void)transport;
	if (!atomic_load(&is_wanted))
		return;
	atomic_fetch_add(&ways_too_early, !atomic_load(&unmapped));
	atomic_fetch_add(&ways, 1);
}

/* The system wants a controller whose registers a device's lanes store to: before it gets it what is under
 * way ends, and the device has them no longer; of one that failed before, too. */
static void test_registers_are_taken_back(void **state)
{
	static const struct weir_transport_ops ops = { .size = sizeof(ops),
						       .read32 = read32,
						       .doorbell = doorbell,
						       .wanted = wanted,
						       .give_way = give_way };

	(void)state;
	for (unsigned failed = 0; failed < 2; failed++) {
		struct weir_backend backend = { .ops = &backend_ops };
		struct weir_context context = { .backend = &backend, .shared_memory = true };
		struct weir_transport transport = { .ops = &ops, .registers = true, .doorbell_bytes = 4 };
		uint64_t ring_addresses[QUEUES], slot_addresses[QUEUES];
		struct weir_storage storage = { .context = &context,
						.transport = &transport,
						.uri = (char *)"test:",
						.queues = WEIR_ADDR(queues),
						.queue_count = QUEUES,
						.depth = DEPTH,
						.rings = ring_addresses,
						.slots = slot_addresses };

		make_queues(ring_addresses, slot_addresses);
		csts = failed ? READY | NVME_CSTS_FATAL : READY;
		atomic_store(&unmapped, 0);
		atomic_store(&untold, 0);
		atomic_store(&ways, 0);
		atomic_store(&ways_too_early, 0);
		atomic_store(&is_wanted, false);
		assert_int_equal(weir_doorbells_locate(&storage, QUEUES), 0);
		assert_true(weir_doorbells_mapped(&storage));
		assert_int_equal(weir_watchdog_start(&storage, 0), 0);
		while (failed && !dead(QUEUES - 1))
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		assert_int_equal(atomic_load(&unmapped), 0);
		atomic_store(&is_wanted, true);
		while (atomic_load(&ways) < 3)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		weir_watchdog_stop(&storage);
		assert_int_equal(atomic_load(&unmapped), 1);
		assert_int_equal(atomic_load(&untold), 0);
		assert_int_equal(atomic_load(&ways_too_early), 0);
		assert_int_equal(storage.dead, failed ? WEIR_E_DEVICE_DEAD : WEIR_E_DEVICE_GONE);
		for (uint32_t i = 0; i < QUEUES; i++)
			assert_int_equal(dead(i) & WEIR_QUEUE_DEAD_STATUS, storage.dead);
		weir_doorbells_end(&storage);
		assert_int_equal(atomic_load(&unmapped), 1);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_controller_that_is_kept_from_memory),
		cmocka_unit_test(test_a_controller_that_cannot_be_halted),
		cmocka_unit_test(test_a_transport_that_halts_nothing),
		cmocka_unit_test(test_recovery_has_the_same_time),
		cmocka_unit_test(test_registers_are_taken_back),
	};

	return cmocka_run_group_tests_name("condemn", tests, NULL, NULL);
}
