/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several devices in one process: the list of them, what is told of each, and two
 * contexts open at once, on two devices of a kind or, if there is one only, on that.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../rig/context.h"
#include "../rig/kernels.h"

enum { SIDES = 2, LANES = 64, ROUNDS = 6, BLOCK = 512, TIMEOUT_US = 5000000 };

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

/** struct side - one of the two contexts and what it works with */
struct side {
	char name[64];
	struct weir_context *context;
	struct weir_storage *storage;
	struct test_blocks_args args;
	uint64_t done; /* requests so far */
	const char *trouble;
};

/* @index of the devices of the kind under test; false behind the last. */
static bool device_of_kind(uint32_t index, struct weir_device *device)
{
	size_t length = strcspn(test_context_name(), ":");
	uint32_t seen = 0;

	device->size = sizeof(*device);
	for (uint32_t i = 0; weir_device_at(i, device) == 0; i++)
		if (!strncmp(device->name, test_context_name(), length) &&
		    strcspn(device->name, ":") == length && seen++ == index)
			return true;
	return false;
}

static void test_list(void **state)
{
	struct weir_device device = { .size = sizeof(device) }, small;
	uint32_t count = 0;
	bool cpu = false;
	uint64_t bytes;

	(void)state;
	assert_int_equal(weir_parse_bytes("12Q", &bytes), -EINVAL);
	for (; weir_device_at(count, &device) == 0; count++) {
		assert_int_equal(device.size, sizeof(device));
		assert_true(*device.name);
		assert_true(!device.error == !*device.why);
		cpu = cpu || (!strcmp(device.name, "cpu") && !device.error);
	}
	assert_true(cpu);
	assert_int_equal(weir_device_at(count, &device), -ENOENT);
	assert_non_null(strstr(weir_last_error(), "12Q")); /* what a row says of itself is no failure */
	small.size = 3;
	assert_int_equal(weir_device_at(0, &small), -EINVAL);
	assert_non_null(strstr(weir_last_error(), "weir_device_at"));
}

/* Each one that the list calls usable opens under the name it is listed by. */
static void test_each_opens(void **state)
{
	struct weir_device device = { .size = sizeof(device) };
	struct weir_context *context;

	(void)state;
	for (uint32_t i = 0; weir_device_at(i, &device) == 0; i++) {
		int error = weir_context_open(device.name, NULL, &context);

		if (error != device.error)
			fail_msg("%s: listed with %d, opened with %d", device.name, device.error, error);
		if (!error)
			weir_context_close(context);
	}
}

static bool is_pci_address(const char *text)
{
	unsigned domain, bus, slot, function;
	char behind;

	return sscanf(text, "%4x:%2x:%2x.%1x%c", &domain, &bus, &slot, &function, &behind) == 4;
}

static void test_properties(void **state)
{
	struct {
		struct weir_context_info info;
		char behind[8];
	} old = { .behind = "1234567" };
	struct weir_context_info info = { .size = sizeof(info) };
	struct weir_context *context;
	uint64_t address;

	(void)state;
	must(weir_context_open(test_context_name(), NULL, &context));
	must(weir_context_info(context, &info));
	assert_true(info.memory_bytes > 0);
	assert_true(info.memory_free_bytes <= info.memory_bytes); /* 0: not known */
	assert_true(info.numa_node >= -1);
	assert_true(info.dma_buf <= 1 && info.peer_dma <= 1);
	assert_true(info.peer_writes <= WEIR_PEER_WRITES_ORDERED_ALL);
	/* Lanes that are threads of the host are on no bus, and blocks of them have no bound. */
	assert_true(info.block_lanes == UINT32_MAX ? !*info.pci_address : is_pci_address(info.pci_address));
	/* A caller of the version that ended before memory_bytes gets no byte more. */
	memset(&old.info, 0x5a, sizeof(old.info));
	old.info.size = offsetof(struct weir_context_info, memory_bytes);
	must(weir_context_info(context, &old.info));
	assert_int_equal(old.info.block_lanes, info.block_lanes);
	assert_int_equal(old.info.memory_bytes, (uint64_t)0x5a5a5a5a5a5a5a5a);
	/* What is taken is no longer free: on a device of its own memory. */
	must(weir_alloc(context, 64 << 20, &address));
	if (info.memory_free_bytes && *info.pci_address) {
		uint64_t before = info.memory_free_bytes;

		must(weir_context_info(context, &info));
		assert_true(info.memory_free_bytes < before);
	}
	weir_context_close(context);
}

static void open_side(struct side *side)
{
	struct test_blocks_args *args = &side->args;

	must(weir_context_open(side->name, WEIR_OPTIONS(context, .workers = 1), &side->context));
	must(test_storage_open(
		side->context, "virt:1M",
		WEIR_OPTIONS(storage, .queues = 2, .depth = 16, .timeout_us = test_patient_us(TIMEOUT_US)),
		&side->storage));
	must(weir_storage_disk(side->storage, &args->disk[0]));
	args->disk_count = args->blocks = args->outstanding = args->rounds = 1;
	args->path = test_pull() ? WEIR_PATH_PULL : WEIR_PATH_DIRECT;
	args->span = 4096;
	must(weir_alloc(side->context, LANES * args->span, &args->buffers));
	must(weir_alloc(side->context, LANES * sizeof(struct weir_event), &args->events));
	must(weir_alloc(side->context, sizeof(struct test_verdict), &args->verdict));
}

static void open_sides(struct side sides[SIDES])
{
	struct weir_device device;

	memset(sides, 0, SIDES * sizeof(*sides));
	for (uint32_t i = 0; i < SIDES; i++) {
		bool there = device_of_kind(i, &device);

		snprintf(sides[i].name, sizeof(sides[i].name), "%s",
			 there ? device.name : test_context_name());
	}
	for (uint32_t i = 0; i < SIDES; i++)
		open_side(&sides[i]);
	printf("# on %s and %s\n", sides[0].name, sides[1].name);
}

static void close_side(struct side *side)
{
	weir_storage_close(side->storage);
	weir_context_close(side->context);
}

/* The first sentence that something went wrong, or NULL; for threads, where cmocka cannot fail. */
static const char *start(struct side *side)
{
	return weir_launch(side->context, "test_blocks", 2, LANES / 2, &side->args, sizeof(side->args))
		       ? weir_last_error()
		       : NULL;
}

static const char *finish(struct side *side)
{
	struct test_verdict verdict;

	if (weir_sync(side->context) ||
	    weir_copy_from_device(side->context, &verdict, side->args.verdict, sizeof(verdict)))
		return weir_last_error();
	side->done += LANES;
	if (weir_load_u64_relaxed_sys(&verdict.bad))
		return "lanes found wrong data";
	return weir_load_u64_relaxed_sys(&verdict.good) == side->done ? NULL : "not every lane was done";
}

/* The host's own reads and writes, of another part of the storage than the lanes'. */
static const char *host_io(struct side *side, unsigned round)
{
	uint8_t out[BLOCK], in[BLOCK];
	uint64_t offset = (1 << 20) - BLOCK * (1 + round);

	memset(out, (int)(round * SIDES + (side->name[0] & 1)), sizeof(out));
	if (weir_storage_write(side->storage, offset, out, sizeof(out)) ||
	    weir_storage_read(side->storage, offset, in, sizeof(in)))
		return weir_last_error();
	return memcmp(out, in, sizeof(in)) ? "the host read something else than it wrote" : NULL;
}

static void fine(const struct side *side, const char *trouble)
{
	if (trouble)
		fail_msg("%s: %s", side->name, trouble);
}

/* Each call goes to the other context than the one before. */
static void test_in_iterations(void **state)
{
	struct side sides[SIDES];

	(void)state;
	open_sides(sides);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < SIDES; i++)
			fine(&sides[i], start(&sides[i]));
		for (unsigned i = 0; i < SIDES; i++)
			fine(&sides[i], finish(&sides[i]));
		for (unsigned i = 0; i < SIDES; i++)
			fine(&sides[i], host_io(&sides[i], round));
	}
	close_side(&sides[0]);
	fine(&sides[1], start(&sides[1])); /* the other one's end is none of its business */
	fine(&sides[1], finish(&sides[1]));
	close_side(&sides[1]);
}

static void *run_side(void *argument)
{
	struct side *side = argument;

	for (unsigned round = 0; round < ROUNDS && !side->trouble; round++) {
		side->trouble = start(side);
		if (!side->trouble)
			side->trouble = finish(side);
		if (!side->trouble)
			side->trouble = host_io(side, round);
		if (side->trouble) /* the sentence is this thread's and goes with it */
			printf("# %s: %s\n", side->name, side->trouble);
	}
	return NULL;
}

static void test_in_two_threads(void **state)
{
	struct side sides[SIDES];
	pthread_t threads[SIDES];

	(void)state;
	open_sides(sides);
	for (unsigned i = 0; i < SIDES; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_side, &sides[i]), 0);
	for (unsigned i = 0; i < SIDES; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < SIDES; i++)
		assert_null(sides[i].trouble);
	for (unsigned i = SIDES; i > 0; i--)
		close_side(&sides[i - 1]);
}

/* A persistent kernel in one context hinders no other: not its kernels, its memory, its end. */
static void test_with_a_persistent_one(void **state)
{
	struct side sides[SIDES];
	struct weir_storage *persistent;
	uint64_t address;
	int error;

	(void)state;
	open_sides(sides);
	error = weir_storage_open(sides[0].context, "virt:1M?on=device", WEIR_OPTIONS(storage, .queues = 2),
				  &persistent);
	if (error == -ENOTSUP) {
		close_side(&sides[0]);
		close_side(&sides[1]);
		skip(); /* kernels do not run side by side here */
	}
	must(error);
	fine(&sides[1], start(&sides[1]));
	fine(&sides[1], finish(&sides[1]));
	must(weir_alloc(sides[1].context, 1 << 20, &address));
	must(weir_free(sides[1].context, address));
	must(weir_alloc(sides[0].context, 1 << 20, &address)); /* perhaps what the other one has just freed */
	must(weir_free(sides[0].context, address));
	close_side(&sides[1]);
	fine(&sides[0], start(&sides[0]));
	fine(&sides[0], finish(&sides[0]));
	weir_storage_close(persistent);
	close_side(&sides[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),           cmocka_unit_test(test_each_opens),
		cmocka_unit_test(test_properties),     cmocka_unit_test(test_in_iterations),
		cmocka_unit_test(test_in_two_threads), cmocka_unit_test(test_with_a_persistent_one),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
