/* SPDX-License-Identifier: BSD-3-Clause */
/* What weir-info prints of devices and GPUs, and how it ends: stand-ins are the library, and each number and
 * text of theirs is another one. */
#include "capture.h"

#include <errno.h>

#include <weir/devices.h>
#include <weir/weir.h>

#include "backend/error.h"

enum { DEVICES = 3, GPUS = 2, DISKS = 6 };

/** library - what it knows, what fails of it, and how many contexts and lists are open */
static struct {
	struct weir_context_info info[DEVICES];
	struct weir_device device[DEVICES];
	unsigned devices, gpus;
	const char *refused; /* the device of which this call fails: "open" or "info" */
	const char *of;
	int open;
} library;

static int refuse(const char *what, const char *name)
{
	return library.refused && !strcmp(library.refused, what) && !strcmp(library.of, name)
		       ? weir_fail(ENODEV, "%s of %s is refused", what, name)
		       : 0;
}

static int get_device(uint32_t index, struct weir_device *device)
{
	if (index >= library.devices)
		return -ENOENT;
	assert_int_equal(device->size, sizeof(*device));
	*device = library.device[index];
	return 0;
}

/* By its number in the name. */
static int open_context(const char *name, const void *options, struct weir_context **out)
{
	assert_null(options);
	if (refuse("open", name))
		return -ENODEV;
	*out = (struct weir_context *)&library.info[name[strlen(name) - 1] - '0'];
	library.open++;
	return 0;
}

static int get_info(struct weir_context *context, struct weir_context_info *info)
{
	assert_int_equal(info->size, sizeof(*info));
	*info = *(const struct weir_context_info *)(const void *)context;
	return refuse("info", info->name);
}

static void close_context(struct weir_context *context)
{
	assert_non_null(context);
	library.open--;
}

static int open_gpus(struct weir_gpus **out)
{
	if (refuse("open", "gpus"))
		return -ENODEV;
	*out = (struct weir_gpus *)&library;
	library.open++;
	return 0;
}

static void close_gpus(struct weir_gpus *gpus)
{
	assert_non_null(gpus);
	library.open--;
}

static int get_gpu(const struct weir_gpus *gpus, uint32_t index, struct weir_gpu *gpu)
{
	static const struct weir_gpu all[GPUS] = {
		{ .pci_address = "0000:41:00.0",
		  .vendor_id = 0x1234,
		  .device_id = 0xbcd,
		  .vendor = "Vendor",
		  .model = "Model",
		  .numa_node = 3,
		  .node = "render",
		  .device = "some:5",
		  .number = 6 },
		{ .pci_address = "0000:42:00.0", .numa_node = -1, .number = -1, .why = "it is too old" },
	};

	(void)gpus;
	if (index >= library.gpus)
		return -ENOENT;
	*gpu = all[index];
	return 0;
}

static int get_disk(const struct weir_gpus *gpus, uint32_t gpu, uint32_t index, struct weir_gpu_disk *disk)
{
	(void)gpus;
	if (gpu != 0 || index >= DISKS)
		return -ENOENT;
	*disk = (struct weir_gpu_disk){ .numa_node = (int32_t)index - 1, .distance = index };
	snprintf(disk->pci_address, sizeof(disk->pci_address), "0000:5%u:00.0", index);
	if (index)
		snprintf(disk->name, sizeof(disk->name), "nvme%un1", index);
	return 0;
}

static int run_info(int count, char **words);

#define weir_device_at                 get_device
#define weir_context_open              open_context
#define weir_context_info(context, to) get_info(context, to)
#define weir_context_close             close_context
#define weir_gpus_open                 open_gpus
#define weir_gpus_close                close_gpus
#define weir_gpu_at                    get_gpu
#define weir_gpu_disk_at               get_disk
#define main                           run_info
#include "tools/weir-info/gpus_list.c"
#include "tools/weir-info/main.c"
#undef main

/* Two devices with everything, each the other way round, and one that cannot be used. */
static int begin(void **state)
{
	(void)state;
	memset(&library, 0, sizeof(library));
	library.devices = DEVICES;
	library.gpus = GPUS;
	for (unsigned i = 0; i < DEVICES; i++) {
		struct weir_context_info *info = &library.info[i];
		uint32_t odd = i % 2;

		snprintf(library.device[i].name, sizeof(library.device[i].name), "dev%u", i);
		*info = (struct weir_context_info){ .wave_lanes = 32 + i,
						    .workers = 7 + i,
						    .block_lanes = i ? UINT32_MAX : 1024,
						    .memory_bytes = (uint64_t)(24 + i) << 30,
						    .memory_free_bytes = i ? 0 : UINT64_C(5) << 30,
						    .numa_node = odd ? -1 : 2,
						    .dma_buf = odd,
						    .peer_dma = !odd,
						    .peer_writes = WEIR_PEER_WRITES_FLUSHED,
						    .map_registers = odd,
						    .register_host = !odd,
						    .export_memory = odd };
		snprintf(info->name, sizeof(info->name), "dev%u", i);
		if (!odd)
			snprintf(info->pci_address, sizeof(info->pci_address), "0000:0%u:00.0", i);
		snprintf(odd ? info->register_host_why : info->map_registers_why, 160, "why %u", i);
		if (!odd)
			snprintf(info->export_memory_why, sizeof(info->export_memory_why), "because %u", i);
	}
	library.device[2].error = -EBUSY;
	snprintf(library.device[2].why, sizeof(library.device[2].why), "somebody has it");
	return 0;
}

/* It ends with @status, and nothing is left open. */
static void run_line(const char *line, int status)
{
	assert_int_equal(capture_run(run_info, line), status);
	assert_int_equal(library.open, 0);
}

#define FIRST                                                                                                \
	"{\"device\": \"dev0\", \"usable\": true, \"name\": \"dev0\", \"workers\": 7, \"wave_lanes\": 32,"   \
	" \"block_lanes\": 1024, \"memory_bytes\": 25769803776, \"memory_free_bytes\": 5368709120,"          \
	" \"pci_address\": \"0000:00:00.0\", \"numa_node\": 2, \"dma_buf\": false, \"peer_dma\": true,"      \
	" \"peer_writes\": \"flushed\", \"map_registers\": false, \"map_registers_why\": \"why 0\","         \
	" \"register_host\": true, \"register_host_why\": \"\", \"export_memory\": false,"                   \
	" \"export_memory_why\": \"because 0\"}"
#define SECOND                                                                                               \
	"{\"device\": \"dev1\", \"usable\": true, \"name\": \"dev1\", \"workers\": 8, \"wave_lanes\": 33,"   \
	" \"block_lanes\": 4294967295, \"memory_bytes\": 26843545600, \"memory_free_bytes\": 0,"             \
	" \"pci_address\": null, \"numa_node\": null, \"dma_buf\": true, \"peer_dma\": false,"               \
	" \"peer_writes\": \"flushed\", \"map_registers\": true, \"map_registers_why\": \"\","               \
	" \"register_host\": false, \"register_host_why\": \"why 1\", \"export_memory\": true,"              \
	" \"export_memory_why\": \"\"}"
#define THIRD                                                                                                \
	"{\"device\": \"dev2\", \"usable\": false, \"error\": \"Device or resource busy\", \"why\": "        \
	"\"somebody has it\"}"

/* Without the version, which is the build's. */
static void expect_json(const char *expected)
{
	json_t *object = json_loads(captured, 0, NULL);
	char *text;

	assert_string_equal(json_string_value(json_object_get(object, "version")), weir_version());
	json_object_del(object, "version");
	text = json_dumps(object, 0);
	capture_expect_json(text, expected);
	free(text);
	json_decref(object);
}

static void test_every_key_has_its_value(void **state)
{
	(void)state;
	run_line("weir-info --json", 0);
	expect_json("{\"devices\": [" FIRST ", " SECOND ", " THIRD "], \"gpus\": ["
		    "{\"pci_address\": \"0000:41:00.0\", \"vendor_id\": \"1234\", \"device_id\": \"0bcd\","
		    " \"vendor\": \"Vendor\", \"model\": \"Model\", \"numa_node\": 3, \"node\": \"render\","
		    " \"device\": \"some:5\", \"number\": 6, \"why\": null, \"disks\": ["
		    "{\"name\": null, \"pci_address\": \"0000:50:00.0\", \"numa_node\": null,"
		    " \"distance\": \"switch\"},"
		    "{\"name\": \"nvme1n1\", \"pci_address\": \"0000:51:00.0\", \"numa_node\": 0,"
		    " \"distance\": \"root-port\"},"
		    "{\"name\": \"nvme2n1\", \"pci_address\": \"0000:52:00.0\", \"numa_node\": 1,"
		    " \"distance\": \"numa-node\"},"
		    "{\"name\": \"nvme3n1\", \"pci_address\": \"0000:53:00.0\", \"numa_node\": 2,"
		    " \"distance\": \"across\"},"
		    "{\"name\": \"nvme4n1\", \"pci_address\": \"0000:54:00.0\", \"numa_node\": 3,"
		    " \"distance\": \"unknown\"},"
		    "{\"name\": \"nvme5n1\", \"pci_address\": \"0000:55:00.0\", \"numa_node\": 4,"
		    " \"distance\": \"unknown\"}]},"
		    "{\"pci_address\": \"0000:42:00.0\", \"vendor_id\": null, \"device_id\": null,"
		    " \"vendor\": null, \"model\": null, \"numa_node\": null, \"node\": null,"
		    " \"device\": null, \"number\": null, \"why\": \"it is too old\", \"disks\": []}]}");
}

static void test_everything_as_text(void **state)
{
	char expected[4096];

	(void)state;
	run_line("weir-info", 0);
	snprintf(expected, sizeof(expected),
		 "weir %s\n"
		 "dev0       dev0\n"
		 "  lanes    7 groups at once, waves of 32, blocks of 1024 at most\n"
		 "  memory   24.0 GiB, 5.0 of them free\n"
		 "  place    PCI 0000:00:00.0, NUMA node 2\n"
		 "  sharing  dma-buf no; other PCI devices reach its memory\n"
		 "           the host has to flush their writes before lanes read them\n"
		 "  doorbell no: why 0\n"
		 "  host     lanes can use pages that others allocated\n"
		 "  export   no: because 0\n"
		 "dev1       dev1\n"
		 "  lanes    8 groups at once, waves of 33\n"
		 "  memory   25.0 GiB\n"
		 "  place    no PCI device, no NUMA node\n"
		 "  sharing  dma-buf yes; other PCI devices do not reach its memory\n"
		 "  doorbell lanes can ring those of other PCI devices\n"
		 "  host     no: why 1\n"
		 "  export   any part of its memory as a dma-buf\n"
		 "dev2       none: somebody has it\n"
		 "GPU 0000:41:00.0 Vendor Model [1234:0bcd]\n"
		 "  name     gpu:6, which is some:5\n"
		 "  place    NUMA node 3, render\n"
		 "  disks    (no block dev.)  PCI 0000:50:00.0, same switch\n"
		 "           nvme1n1          PCI 0000:51:00.0, same root port\n"
		 "           nvme2n1          PCI 0000:52:00.0, same NUMA node\n"
		 "           nvme3n1          PCI 0000:53:00.0, across NUMA nodes\n"
		 "           nvme4n1          PCI 0000:54:00.0, distance not known\n"
		 "           nvme5n1          PCI 0000:55:00.0, distance not known\n"
		 "GPU 0000:42:00.0 vendor not known\n"
		 "  name     none, no backend can use it: it is too old\n"
		 "  place    NUMA node not known\n",
		 weir_version());
	assert_string_equal(captured, expected);
}

static void test_what_lanes_see_of_others_writes(void **state)
{
	static const char *const words[] = { "unknown", "flushed", "ordered", "ordered-all", "unknown" };
	char expected[64];

	(void)state;
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		library.info[0].peer_writes = i;
		run_line("weir-info --json dev0", 0);
		snprintf(expected, sizeof(expected), "\"peer_writes\": \"%s\"", words[i]);
		assert_non_null(strstr(captured, expected));
	}
}

/* One of those that were named that cannot be used is a failure; of all, one that can is enough. */
static void test_how_it_ends(void **state)
{
	(void)state;
	run_line("weir-info --json dev1 dev0", 0);
	expect_json("{\"devices\": [" SECOND ", " FIRST "]}");
	for (unsigned i = 0; i < 2; i++) {
		library.refused = i ? "info" : "open";
		library.of = "dev0";
		run_line("weir-info --json dev0 dev1", 1);
		assert_non_null(strstr(captured, i ? "\"why\": \"info of dev0 is refused\""
						   : "\"why\": \"open of dev0 is refused\""));
		assert_non_null(strstr(captured, "\"error\": \"No such device\""));
		assert_non_null(strstr(captured, "\"workers\": 8"));
		run_line("weir-info dev1 dev0", 1);
		run_line("weir-info dev1", 0);
		run_line("weir-info", 0);
		library.devices = 1;
		run_line("weir-info", 1);
		library.devices = DEVICES;
	}
	library.devices = library.gpus = 0;
	run_line("weir-info", 1);
	assert_non_null(strstr(captured, "no GPU can be seen on this machine\n"));
	library.refused = "open";
	library.of = "gpus";
	run_line("weir-info", 1);
	assert_non_null(strstr(captured, "GPUs: not known: open of gpus is refused\n"));
	run_line("weir-info --json", 1);
	expect_json("{\"devices\": [], \"gpus\": null}");
	assert_string_equal(captured_errors, "weir-info: open of gpus is refused\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_every_key_has_its_value, begin),
		cmocka_unit_test_setup(test_everything_as_text, begin),
		cmocka_unit_test_setup(test_what_lanes_see_of_others_writes, begin),
		cmocka_unit_test_setup(test_how_it_ends, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
