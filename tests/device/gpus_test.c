/* SPDX-License-Identifier: BSD-3-Clause */
/* GPUs of a machine out of a file, their disks; what names of GPUs mean, with backends that are none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/error.h"
#include "device/gpus.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

static void assert_says(const char *words)
{
	if (!strstr(weir_last_error(), words))
		fail_msg("\"%s\" does not say \"%s\"", weir_last_error(), words);
}

static void test_addresses(void **state)
{
	static const struct {
		const char *text, *printed;
	} good[] = {
		{ "0000:41:00.0", "0000:41:00.0" },   { "41:00.0", "0000:41:00.0" },
		{ "0000:C1:1f.7", "0000:c1:1f.7" },   { "1:2:3.4", "0001:02:03.4" },
		{ "10000:e1:00.0", "10000:e1:00.0" }, { "fffffff:ff:1f.7", "fffffff:ff:1f.7" },
	};
	static const char *const bad[] = {
		"",         "0",        "41:00",       "41:00.",        "41:00.8",
		"41:20.0",  "141:00.0", "0:41:00.0:1", ":41:00.0",      "41.00.0",
		"41:00.0 ", "41:00.00", "g1:00.0",     "0000:41:00.0x", "10000000:00:00.0",
		"::.",      "-1:00.0",  "0x41:00.0"
	};
	struct weir_pci address, other;
	char text[WEIR_PCI_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(weir_pci_parse(good[i].text, &address));
		weir_pci_print(address, text);
		assert_string_equal(text, good[i].printed);
		assert_true(weir_pci_parse(text, &other));
		assert_int_equal(other.packed, address.packed);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (weir_pci_parse(bad[i], &address))
			fail_msg("\"%s\" was taken for a PCI address", bad[i]);
}

static struct weir_gpus *machine(void)
{
	struct weir_gpus *gpus;

	assert_int_equal(setenv("HWLOC_XMLFILE", WEIR_TEST_MACHINE, 1), 0);
	must(weir_gpus_open(&gpus));
	assert_int_equal(unsetenv("HWLOC_XMLFILE"), 0);
	return gpus;
}

static void test_machine(void **state)
{
	struct weir_gpu gpu = { .size = sizeof(gpu) };
	struct weir_gpus *gpus = machine();

	(void)state;
	/* By address, though the file has them the other way round. */
	must(weir_gpu_at(gpus, 0, &gpu));
	assert_string_equal(gpu.pci_address, "0000:41:00.0");
	assert_int_equal(gpu.vendor_id, 0xabcd);
	assert_int_equal(gpu.device_id, 0x0c01);
	assert_string_equal(gpu.vendor, "");
	assert_int_equal(gpu.numa_node, 1);
	assert_string_equal(gpu.device, "");
	assert_string_equal(gpu.node, "");
	assert_int_equal(gpu.number, -1);
	assert_non_null(strstr(gpu.why, "out of a file"));
	must(weir_gpu_at(gpus, 1, &gpu));
	assert_string_equal(gpu.pci_address, "0000:c3:00.0");
	assert_int_equal(gpu.vendor_id, 0x1234);
	assert_string_equal(gpu.vendor, "Example Graphics");
	assert_string_equal(gpu.model, "E1000");
	assert_int_equal(gpu.numa_node, 0);
	assert_int_equal(weir_gpu_at(gpus, 2, &gpu), -ENOENT);
	gpu.size = 3;
	assert_int_equal(weir_gpu_at(gpus, 0, &gpu), -EINVAL);
	assert_says("weir_gpu_at");
	weir_gpus_close(gpus);
	weir_gpus_close(NULL);
}

static void test_distances(void **state)
{
	static const struct {
		const char *name, *address;
		int node;
		enum weir_distance distance;
	} expected[2][4] = {
		{ { "sda", "0000:41:00.1", 1, WEIR_DISTANCE_ROOT_PORT },
		  { "nvme1n1", "0000:42:00.0", 1, WEIR_DISTANCE_NUMA_NODE },
		  { "nvme0n1", "0000:c4:00.0", 0, WEIR_DISTANCE_ACROSS },
		  { "", "0000:c6:00.0", 0, WEIR_DISTANCE_ACROSS } },
		{ { "nvme0n1", "0000:c4:00.0", 0, WEIR_DISTANCE_SWITCH },
		  { "", "0000:c6:00.0", 0, WEIR_DISTANCE_NUMA_NODE },
		  { "sda", "0000:41:00.1", 1, WEIR_DISTANCE_ACROSS },
		  { "nvme1n1", "0000:42:00.0", 1, WEIR_DISTANCE_ACROSS } },
	};
	struct weir_gpu_disk disk = { .size = sizeof(disk) };
	struct weir_gpus *gpus = machine();

	(void)state;
	for (uint32_t g = 0; g < 2; g++) {
		for (uint32_t d = 0; d < 4; d++) {
			must(weir_gpu_disk_at(gpus, g, d, &disk));
			assert_string_equal(disk.name, expected[g][d].name);
			assert_string_equal(disk.pci_address, expected[g][d].address);
			assert_int_equal(disk.numa_node, expected[g][d].node);
			assert_int_equal(disk.distance, expected[g][d].distance);
		}
		assert_int_equal(weir_gpu_disk_at(gpus, g, 4, &disk), -ENOENT);
	}
	assert_int_equal(weir_gpu_disk_at(gpus, 2, 0, &disk), -ENOENT);
	disk.size = 1;
	assert_int_equal(weir_gpu_disk_at(gpus, 0, 0, &disk), -EINVAL);
	weir_gpus_close(gpus);
}

/* Whatever their distances, all disks are listed, once each: the nearest first, and last those of which
 * nobody knows where they are. */
static void test_all_distances(void **state)
{
	struct weir_gpus *gpus = machine();

	(void)state;
	assert_true(gpus->disk_count >= 4);
	for (uint32_t d = 0; d < gpus->disk_count; d++)
		gpus->distances[0][d] = (uint8_t)(WEIR_DISTANCE_UNKNOWN - d % 2);
	for (uint32_t i = 0; i < gpus->disk_count; i++) {
		struct weir_gpu_disk disk = { .size = sizeof(disk) };

		assert_int_equal(weir_gpu_disk_at(gpus, 0, i, &disk), 0);
		assert_int_equal(disk.distance, i < gpus->disk_count / 2 ? WEIR_DISTANCE_UNKNOWN - 1
									 : WEIR_DISTANCE_UNKNOWN);
	}
	assert_int_equal(weir_gpu_disk_at(gpus, 0, gpus->disk_count, &(struct weir_gpu_disk){ .size = 8 }),
			 -ENOENT);
	weir_gpus_close(gpus);
}

static void test_a_file_that_is_none(void **state)
{
	struct weir_gpus *gpus;

	(void)state;
	assert_int_equal(setenv("HWLOC_XMLFILE", "/dev/null", 1), 0);
	assert_true(weir_gpus_open(&gpus) < 0);
	assert_null(gpus);
	assert_says("HWLOC_XMLFILE");
	assert_int_equal(unsetenv("HWLOC_XMLFILE"), 0);
}

/* Backends that are none: two devices of the first kind, three of the second, one of them the first's too. */
static const char *const abacus_at[] = { "0000:c3:00.0", "0000:41:00.0" };
static const char *const beads_at[] = { "0000:41:00.0", "", "10000:01:00.0" };
static unsigned opened, closed;

static int abacus_devices(uint32_t *count)
{
	*count = 2;
	return 0;
}

static int abacus_address(uint32_t ordinal, char *text, size_t bytes)
{
	snprintf(text, bytes, "%s", abacus_at[ordinal]);
	return 0;
}

static int beads_devices(uint32_t *count)
{
	*count = 3;
	return 0;
}

/* Has to be opened to be asked. */
static struct beads {
	struct weir_backend base;
	unsigned long ordinal;
} beads;

static int beads_open(const char *selector, const struct weir_context_options *options,
		      struct weir_backend **out)
{
	assert_int_equal(options->size, sizeof(*options));
	beads.ordinal = strtoul(selector, NULL, 10);
	opened++;
	*out = &beads.base;
	return 0;
}

static void beads_close(struct weir_backend *backend)
{
	assert_ptr_equal(backend, &beads.base);
	closed++;
}

static void beads_properties(struct weir_backend *backend, struct weir_backend_properties *out)
{
	snprintf(out->pci_address, sizeof(out->pci_address), "%s",
		 beads_at[((struct beads *)backend)->ordinal]);
}

static int quipu_devices(uint32_t *count)
{
	*count = 0;
	return weir_fail(ENODEV, "no knots in sight");
}

static const struct weir_backend_ops abacus = { .name = "abacus",
						.devices = abacus_devices,
						.pci_address = abacus_address };
static const struct weir_backend_ops beads_ops = { .name = "beads",
						   .devices = beads_devices,
						   .open = beads_open,
						   .close = beads_close,
						   .properties = beads_properties };
static const struct weir_backend_ops quipu = { .name = "quipu", .devices = quipu_devices };
static const struct weir_backend_ops fingers = { .name = "fingers" };

static const char *all_at(size_t index, const struct weir_backend_ops **ops)
{
	static const struct weir_backend_ops *const backends[] = { &abacus, &beads_ops, &quipu, &fingers };

	*ops = index < 4 ? backends[index] : NULL;
	if (index == 4)
		(void)weir_fail(ENODEV, "backend \"sand\" ran out");
	return index < 4 ? backends[index]->name : index == 4 ? "sand" : NULL;
}

static const char *none_at(size_t index, const struct weir_backend_ops **ops)
{
	return index < 2 ? all_at(index + 2, ops) : NULL;
}

static struct weir_gpu_candidates *all_candidates(void)
{
	static struct weir_gpu_candidates candidates;

	opened = closed = 0;
	weir_gpu_candidates(all_at, &candidates);
	return &candidates;
}

static void test_candidates(void **state)
{
	const struct weir_gpu_candidates *candidates = all_candidates();

	(void)state;
	assert_int_equal(candidates->count, 4); /* one of them is no PCI device */
	assert_int_equal(opened, 3);
	assert_int_equal(closed, 3);
	assert_string_equal(candidates->why, "this build has abacus (for 2 others), beads (for 2 others), "
					     "quipu (no knots in sight), fingers (not for "
					     "GPUs), sand (backend \"sand\" ran out)");
}

static void test_names(void **state)
{
	static const struct {
		const char *kind, *selector, *backend;
		uint32_t ordinal;
	} names[] = {
		{ "gpu", "", "abacus", 1 }, /* the lowest address, by the backend that is preferred */
		{ "gpu", "0", "abacus", 1 },
		{ "gpu", "1", "abacus", 0 },
		{ "gpu", "2", "beads", 2 }, /* 0000:41 counts once */
		{ "gpu", "0000:41:00.0", "abacus", 1 },
		{ "gpu", "41:00.0", "abacus", 1 },
		{ "gpu", "C3:00.0", "abacus", 0 },
		{ "gpu", "10000:1:0.0", "beads", 2 },
		{ "beads", "0000:41:00.0", "beads", 0 },
		{ "abacus", "c3:0.0", "abacus", 0 },
		{ "beads", "10000:01:00.0", "beads", 2 },
	};
	const struct weir_gpu_candidates *candidates = all_candidates();
	uint32_t index;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (weir_gpu_select(names[i].kind, names[i].selector, candidates, &index) != 0)
			fail_msg("%s:%s: nothing selected", names[i].kind, names[i].selector);
		assert_string_equal(candidates->list[index].backend, names[i].backend);
		assert_int_equal(candidates->list[index].ordinal, names[i].ordinal);
	}
}

static void test_malformed_names(void **state)
{
	static const struct {
		const char *kind, *selector, *words[2];
	} names[] = {
		{ "gpu", "41:00", { "\"gpu:41:00\" names no GPU", "gpu:0000:41:00.0" } },
		{ "gpu", "0000:41:00.9", { "0000:41:00.9", "gpu:N" } },
		{ "gpu", "first", { "\"gpu:first\"", "with a number" } },
		{ "gpu", "-1", { "\"gpu:-1\"", "with a number" } },
		{ "gpu", "0x1", { "\"gpu:0x1\"", "with a number" } },
		{ "abacus",
		  "41:00",
		  { "\"abacus:41:00\" has no PCI address", "abacus:41:00.0 in domain 0" } },
	};
	const struct weir_gpu_candidates *candidates = all_candidates();
	uint32_t index;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(weir_gpu_select(names[i].kind, names[i].selector, candidates, &index),
				 -EINVAL);
		assert_says(names[i].words[0]);
		assert_says(names[i].words[1]);
	}
}

static void test_absent(void **state)
{
	static struct weir_gpu_candidates nobody;
	static const struct weir_gpus empty;
	const struct weir_gpu_candidates *candidates = all_candidates();
	struct weir_gpus *gpus = machine();
	uint32_t index;

	(void)state;
	assert_int_equal(weir_gpu_select("gpu", "3", candidates, &index), -ENODEV);
	assert_int_equal(weir_gpu_absent("gpu", "3", candidates, gpus), -ENODEV);
	assert_says("there is no gpu:3: backends can use 3, gpu:0 is abacus:1 at 0000:41:00.0, gpu:1 is "
		    "abacus:0 at 0000:c3:00.0, "
		    "gpu:2 is beads:2 at 10000:01:00.0");
	assert_int_equal(weir_gpu_select("gpu", "55:00.0", candidates, &index), -ENODEV);
	assert_int_equal(weir_gpu_absent("gpu", "55:00.0", candidates, gpus), -ENODEV);
	assert_says("there is no GPU at 0000:55:00.0: this machine has 0000:41:00.0 (vendor abcd), "
		    "0000:c3:00.0 (Example Graphics, "
		    "vendor 1234)");
	assert_int_equal(weir_gpu_select("beads", "c3:00.0", candidates, &index), -ENODEV);
	assert_int_equal(weir_gpu_absent("beads", "c3:00.0", candidates, gpus), -ENODEV);
	assert_says("beads has no device at c3:00.0: beads:0 at 0000:41:00.0, beads:2 at 10000:01:00.0");
	weir_gpu_candidates(none_at, &nobody);
	assert_int_equal(weir_gpu_select("gpu", "c3:00.0", &nobody, &index), -ENODEV);
	assert_int_equal(weir_gpu_absent("gpu", "c3:00.0", &nobody, gpus), -ENODEV);
	assert_says("GPU 0000:c3:00.0 (Example Graphics, vendor 1234) is there, but no backend can use it: "
		    "this build has "
		    "quipu (no knots in sight), fingers (not for GPUs)");
	assert_int_equal(weir_gpu_absent("gpu", "0", &nobody, gpus), -ENODEV);
	assert_says("no GPU that a backend can use: this machine has 0000:41:00.0");
	assert_says("quipu (no knots in sight)");
	assert_int_equal(weir_gpu_absent("gpu", "0", &nobody, &empty), -ENODEV);
	assert_says("no GPU can be seen on this machine");
	assert_int_equal(weir_gpu_absent("gpu", "41:00.0", &nobody, &empty), -ENODEV);
	assert_says("there is no GPU at 0000:41:00.0: no GPU can be seen on this machine");
	weir_gpus_close(gpus);
}

/* What a backend has is named by the one that is preferred, with its number; a GPU that the system does not
 * show finds its place among the others, whose disks stay as near as they were. */
static void test_numbers_and_places(void **state)
{
	static const struct {
		const char *address, *device;
		int number;
		uint32_t before; /* its place in the machine; 2: it was not there */
	} rows[] = {
		{ "0000:41:00.0", "abacus:1", 0, 0 },
		{ "0000:c3:00.0", "abacus:0", 1, 1 },
		{ "10000:01:00.0", "beads:2", 2, 2 },
	};
	struct weir_gpus *gpus = machine(), *were = machine();
	struct weir_gpu gpu = { .size = sizeof(gpu) };
	struct weir_pci first = weir_pci_make(0, 1, 2, 3);

	(void)state;
	gpus->candidates = *all_candidates();
	for (uint32_t i = 0; i < gpus->candidates.count; i++)
		assert_non_null(weir_gpus_add(gpus, gpus->candidates.list[i].address));
	assert_ptr_equal(weir_gpus_add(gpus, first), &gpus->gpus[0]);
	assert_ptr_equal(weir_gpus_add(gpus, first), &gpus->gpus[0]); /* it is there already */
	assert_int_equal(gpus->count, 4);
	must(weir_gpu_at(gpus, 0, &gpu));
	assert_string_equal(gpu.pci_address, "0000:01:02.3");
	assert_int_equal(gpu.number, -1);
	assert_string_equal(gpu.device, "");
	for (uint32_t i = 0; i < 3; i++) {
		must(weir_gpu_at(gpus, i + 1, &gpu));
		assert_string_equal(gpu.pci_address, rows[i].address);
		assert_string_equal(gpu.device, rows[i].device);
		assert_int_equal(gpu.number, rows[i].number);
		assert_string_equal(gpu.why, "");
		for (uint32_t d = 0; d < gpus->disk_count; d++)
			assert_int_equal(gpus->distances[i + 1][d],
					 rows[i].before < 2 ? were->distances[i][d] : WEIR_DISTANCE_UNKNOWN);
	}
	weir_gpus_close(gpus);
	weir_gpus_close(were);
}

/* As many as there is room for, and no more. */
static void test_many_gpus(void **state)
{
	struct weir_gpus *gpus = machine();

	(void)state;
	for (uint32_t i = gpus->count; i < WEIR_MOST_GPUS; i++)
		assert_non_null(weir_gpus_add(gpus, weir_pci_make(1, 0xff - i, 0, 0)));
	assert_null(weir_gpus_add(gpus, weir_pci_make(0, 1, 2, 3)));
	assert_non_null(weir_gpus_add(gpus, weir_pci_make(0, 0x41, 0, 0))); /* which is there */
	assert_int_equal(gpus->count, WEIR_MOST_GPUS);
	for (uint32_t i = 1; i < gpus->count; i++)
		assert_true(gpus->gpus[i - 1].address.packed < gpus->gpus[i].address.packed);
	weir_gpus_close(gpus);
}

/* The public way, on this machine, and on the one out of the file, whose GPUs no backend here has. */
static void test_contexts(void **state)
{
	struct weir_gpu gpu = { .size = sizeof(gpu) };
	struct weir_context *context;
	struct weir_gpus *gpus;
	int error;

	(void)state;
	must(weir_gpus_open(&gpus));
	error = weir_context_open("gpu", NULL, &context);
	if (gpus->candidates.count) {
		char name[64];

		must(error);
		weir_context_close(context);
		for (uint32_t i = 0; weir_gpu_at(gpus, i, &gpu) == 0; i++) {
			snprintf(name, sizeof(name), "gpu:%s", gpu.pci_address);
			assert_int_equal(weir_context_open(name, NULL, &context),
					 gpu.number < 0 ? -ENODEV : 0);
			weir_context_close(context);
		}
	} else {
		assert_int_equal(error, -ENODEV);
		assert_null(context);
		assert_says(gpus->count ? "no GPU that a backend can use: this machine has"
					: "no GPU can be seen on this machine");
		assert_says("cpu (not for GPUs)");
	}
	weir_gpus_close(gpus);
	assert_int_equal(weir_context_open("gpu:not", NULL, &context), -EINVAL);
	assert_int_equal(weir_context_open("gpu:fffffff:ff:1f.7", NULL, &context), -ENODEV);
	assert_says("there is no GPU at fffffff:ff:1f.7");
	assert_int_equal(weir_context_open("gpus:0", NULL, &context), -ENODEV);
	assert_says("no backend \"gpus\"");
	assert_int_equal(weir_context_open("cpu:41:00.0", NULL, &context), -ENODEV);
	assert_says("only one cpu");
	assert_int_equal(setenv("HWLOC_XMLFILE", WEIR_TEST_MACHINE, 1), 0);
	assert_int_equal(weir_context_open("gpu:C3:00.0", NULL, &context), -ENODEV);
	assert_says("GPU 0000:c3:00.0 (Example Graphics, vendor 1234) is there, but no backend can use it: "
		    "this build has");
	assert_int_equal(unsetenv("HWLOC_XMLFILE"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_machine),
		cmocka_unit_test(test_distances),
		cmocka_unit_test(test_all_distances),
		cmocka_unit_test(test_a_file_that_is_none),
		cmocka_unit_test(test_candidates),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_malformed_names),
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_numbers_and_places),
		cmocka_unit_test(test_many_gpus),
		cmocka_unit_test(test_contexts),
	};

	return cmocka_run_group_tests_name("gpus", tests, NULL, NULL);
}
