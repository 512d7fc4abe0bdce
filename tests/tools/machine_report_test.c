/* SPDX-License-Identifier: BSD-3-Clause */
/* What weir-check prints of a machine, of lanes, SSDs and pairs of them: each number and text is another one.
 * And how reasons make an answer, and answers an exit status. */
#include "capture.h"

#include <errno.h>
#include <stdlib.h>

#include "tools/machine/report.h"

static struct machine machine;
static struct lanes lanes;
static struct ssd ssd;
static struct pair pair;

static int run_machine(int count, char **words)
{
	(void)count;
	(void)words;
	text_machine(&machine);
	return 0;
}

static int run_lanes(int count, char **words)
{
	(void)count;
	(void)words;
	text_lanes(&lanes);
	return 0;
}

static int run_ssd(int count, char **words)
{
	(void)count;
	(void)words;
	text_ssd(&ssd);
	return 0;
}

static int run_pair(int count, char **words)
{
	(void)count;
	(void)words;
	text_pair(&pair);
	return 0;
}

static void expect_text(int (*run)(int count, char **words), const char *expected)
{
	assert_int_equal(capture_run(run, ""), 0);
	assert_string_equal(captured, expected);
}

static void expect_json(json_t *object, const char *expected)
{
	char *text = json_dumps(object, 0);

	assert_non_null(text);
	capture_expect_json(text, expected);
	free(text);
	json_decref(object);
}

static void put_function(struct tree_function *function, const char *address, const char *id,
			 const char *driver, const char *group)
{
	put_text(function->address, TREE_NAME_BYTES, "%s", address);
	put_text(function->id, TREE_NAME_BYTES, "%s", id);
	put_text(function->driver, TREE_NAME_BYTES, "%s", driver);
	put_text(function->group, TREE_NAME_BYTES, "%s", group);
}

static void fill_machine(void)
{
	machine = (struct machine){ .kernel = "6.1",
				    .config_file = "/boot/config",
				    .config = { 'y', 'm', 'n', 'y', 'n', 'm', 'y', 'm', 'n' },
				    .pci = true,
				    .iommu = IOMMU_MIXED,
				    .groups = 17,
				    .iommu_options = "iommu=pt",
				    .vfio_pci = YES,
				    .vfio_type1 = NO,
				    .vfio_node = EACCES,
				    .memlock_bytes = UINT64_C(5) << 30,
				    .module = YES,
				    .module_version = "0.2",
				    .peer_cpu = YES,
				    .uring = NO };
}

static void fill_lanes(void)
{
	lanes = (struct lanes){ .name = "gpu:3",
				.device = "some:4",
				.vendor = "Vendor",
				.model = "Model",
				.usable = YES,
				.why = "why",
				.group_type = "DMA-FQ",
				.driver_version = "550",
				.numa_node = 5,
				.bars = { { 0, 16 << 20 }, { 2, UINT64_C(8) << 30 } },
				.bar_count = 2,
				.could_bytes = UINT64_C(32) << 30,
				.memory_bytes = UINT64_C(24) << 30,
				.visible = NO,
				.dma_buf = YES,
				.peer_dma = NO,
				.registers = NO,
				.registers_why = "told not to",
				.export = NO,
				.export_why = "too old" };
	put_function(&lanes.function, "0000:41:00.0", "1234:5678", "driver_a", "14");
}

static void fill_ssd(void)
{
	ssd = (struct ssd){ .model = "Example",
			    .firmware = "FW7",
			    .group_type = "identity",
			    .numa_node = 6,
			    .others = { .name = { "0000:03:00.1", "0000:03:00.2" }, .count = 2 },
			    .nodes = { { "nvme0n1", true, true, false, TREE_TAKEN, "nvme0n1 is part of md0" },
				       { "nvme0n2", true, true, true, TREE_FREE, "" },
				       { "nvme0n3", true, false, false, TREE_FREE, "" },
				       { "nvme0n4", false, false, false, TREE_FREE, "" } },
			    .node_count = 4,
			    .used = "it is used",
			    .iommu_bits = 48 };
	put_function(&ssd.function, "0000:03:00.0", "144d:a80a", "nvme", "13");
}

static void fill_pair(void)
{
	pair = (struct pair){
		.lanes = &lanes,
		.ssd = &ssd,
		.location = LOCATION_NUMA_NODE,
		.meet = "0000:00:01.0",
		.hops = { { "0000:02:08.0", NO }, { "0000:02:10.0", YES }, { "0000:02:18.0", UNKNOWN } },
		.hop_count = 3,
		.acs = YES,
		.bridges = { { "0000:00:00.0", "8086:2f00", YES, NO },
			     { "0000:80:00.0", "8086:9999", NO, UNKNOWN } }
	};
	verdict_start(&pair.peer);
	for (unsigned i = 0; i < PATHS; i++) {
		verdict_start(&pair.paths[i]);
		put_text(pair.paths[i].use, CHECK_TEXT, "use %u", i);
	}
	verdict_add(&pair.peer, UNKNOWN, "try %d", "whether %s", "so");
	verdict_add(&pair.paths[PATH_MODULE], NO, "remedy a", "why a");
	verdict_add(&pair.paths[PATH_MODULE], UNKNOWN, "", "why b");
	verdict_add(&pair.paths[PATH_PULL], UNKNOWN, "remedy c", "why c");
}

static int fill(void **state)
{
	(void)state;
	fill_machine();
	fill_lanes();
	fill_ssd();
	fill_pair();
	return 0;
}

static void test_a_machine(void **state)
{
	(void)state;
	expect_json(
		json_machine(&machine),
		"{\"kernel\": \"6.1\", \"config_file\": \"/boot/config\", \"config\": {\"PCI_P2PDMA\": \"y\","
		" \"ZONE_DEVICE\": \"m\", \"DMA_SHARED_BUFFER\": \"n\", \"DMABUF_MOVE_NOTIFY\": \"y\","
		" \"IOMMU_API\": \"n\", \"IOMMUFD\": \"m\", \"VFIO\": \"y\", \"VFIO_PCI\": \"m\","
		" \"VFIO_IOMMU_TYPE1\": \"n\"}, \"pci\": true, \"iommu\": \"mixed\", \"iommu_groups\": 17,"
		" \"iommu_options\": \"iommu=pt\", \"vfio_pci\": \"yes\", \"vfio_iommu_type1\": \"no\","
		" \"vfio_node\": \"Permission denied\", \"memlock_bytes\": 5368709120, \"module\": \"yes\","
		" \"module_version\": \"0.2\", \"io_uring\": \"no\"}");
	expect_text(run_machine,
		    "machine\n  kernel   6.1\n  config   /boot/config: PCI_P2PDMA=y ZONE_DEVICE=m "
		    "DMA_SHARED_BUFFER=n DMABUF_MOVE_NOTIFY=y IOMMU_API=n IOMMUFD=m VFIO=y VFIO_PCI=m "
		    "VFIO_IOMMU_TYPE1=n\n  IOMMU    mixed, 17 groups; booted with iommu=pt\n"
		    "  VFIO     driver vfio-pci yes, vfio_iommu_type1 no, /dev/vfio/vfio cannot be opened: "
		    "Permission denied\n  memory   5.0 GiB may be locked\n"
		    "  module   weir_p2p loaded: yes, version 0.2\n");
}

static void test_a_machine_of_which_little_is_known(void **state)
{
	static const struct {
		enum iommu_mode mode;
		const char *word;
	} modes[] = { { IOMMU_UNKNOWN, "unknown" },
		      { IOMMU_OFF, "off" },
		      { IOMMU_TRANSLATED, "translated" },
		      { IOMMU_PASSTHROUGH, "passthrough" } };

	(void)state;
	machine = (struct machine){ .memlock_bytes = MEMLOCK_UNKNOWN };
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		json_t *object;

		machine.iommu = modes[i].mode;
		object = json_machine(&machine);
		assert_string_equal(json_string_value(json_object_get(object, "iommu")), modes[i].word);
		assert_true(json_is_null(json_object_get(object, "memlock_bytes")));
		assert_true(json_is_false(json_object_get(object, "pci")));
		assert_string_equal(json_string_value(json_object_get(object, "vfio_node")), "ok");
		json_decref(object);
	}
	expect_text(run_machine,
		    "machine\n  kernel   not known\n  config   not known: there is no /proc/config.gz or "
		    "/boot/config-VERSION that can be read\n  IOMMU    passthrough\n"
		    "  VFIO     driver vfio-pci unknown, vfio_iommu_type1 unknown, /dev/vfio/vfio yes\n"
		    "  memory   how much may be locked is not known\n  module   weir_p2p loaded: unknown\n"
		    "  PCI      the bus cannot be seen: no /sys/bus/pci/devices\n");
	machine.memlock_bytes = MEMLOCK_UNLIMITED;
	assert_int_equal(capture_run(run_machine, ""), 0);
	assert_non_null(strstr(captured, "\n  memory   all may be locked\n"));
}

static void test_lanes(void **state)
{
	(void)state;
	expect_json(json_lanes(&lanes),
		    "{\"lanes\": \"0000:41:00.0\", \"pci_address\": \"0000:41:00.0\", \"name\": \"gpu:3\","
		    " \"device\": \"some:4\", \"usable\": \"yes\", \"why\": \"why\", \"vendor\": \"Vendor\","
		    " \"model\": \"Model\", \"id\": \"1234:5678\", \"driver\": \"driver_a\","
		    " \"driver_version\": \"550\", \"iommu_group\": \"14\", \"iommu_group_type\": \"DMA-FQ\","
		    " \"numa_node\": 5, \"bars\": [{\"index\": 0, \"bytes\": 16777216}, {\"index\": 2, "
		    "\"bytes\": "
		    "8589934592}], \"bar_could_bytes\": 34359738368, \"memory_bytes\": 25769803776,"
		    " \"memory_visible\": \"no\", \"dma_buf\": \"yes\", \"peer_dma\": \"no\","
		    " \"map_registers\": \"no\", \"map_registers_why\": \"told not to\","
		    " \"export_memory\": \"no\", \"export_memory_why\": \"too old\"}");
	expect_text(
		run_lanes,
		"GPU 0000:41:00.0  Vendor [1234:5678]\n  model    Model\n  name     gpu:3, which is some:4\n"
		"  driver   driver_a 550\n  BARs     0: 16.0 MiB, 2: 8.0 GiB; one could have 32.0 GiB\n"
		"  memory   24.0 GiB, all of it in a BAR: no\n"
		"  sharing  dma-buf yes; other devices reach its memory: no\n"
		"  doorbell a host thread rings them for its lanes: told not to\n"
		"  export   no dma-buf of its memory: too old\n"
		"  place    NUMA node 5, IOMMU group 14 (DMA-FQ)\n");
	lanes.registers = lanes.export = YES;
	lanes.usable = NO;
	assert_int_equal(capture_run(run_lanes, ""), 0);
	assert_non_null(strstr(captured, "\n  name     none, no backend can use it: why\n"));
	assert_non_null(
		strstr(captured, "\n  doorbell its lanes ring them\n  export   its memory as a dma-buf\n"));
	lanes = (struct lanes){ .host = true, .name = "cpu", .device = "cpu", .usable = YES };
	expect_json(json_lanes(&lanes),
		    "{\"lanes\": \"cpu\", \"pci_address\": null, \"name\": \"cpu\", \"device\": "
		    "\"cpu\", \"usable\": \"yes\", \"why\": null}");
	expect_text(run_lanes, "cpu\n  lanes    on the host's processors\n");
}

static void test_an_ssd(void **state)
{
	(void)state;
	expect_json(
		json_ssd(&ssd),
		"{\"pci_address\": \"0000:03:00.0\", \"id\": \"144d:a80a\", \"model\": \"Example\","
		" \"firmware\": \"FW7\", \"driver\": \"nvme\", \"iommu_group\": \"13\","
		" \"iommu_group_type\": \"identity\", \"iommu_group_others\": [\"0000:03:00.1\","
		" \"0000:03:00.2\"], \"iommu_bits\": 48, \"numa_node\": 6, \"blocks\": ["
		"{\"name\": \"nvme0n1\", \"there\": true, \"readable\": true, \"writable\": false, \"used\": "
		"\"nvme0n1 is part of md0\"},"
		"{\"name\": \"nvme0n2\", \"there\": true, \"readable\": true, \"writable\": true, \"used\": "
		"null},"
		"{\"name\": \"nvme0n3\", \"there\": true, \"readable\": false, \"writable\": false, "
		"\"used\": null},"
		"{\"name\": \"nvme0n4\", \"there\": false, \"readable\": false, \"writable\": false, "
		"\"used\": "
		"null}], \"used\": \"it is used\"}");
	expect_text(run_ssd,
		    "SSD 0000:03:00.0  Example [144d:a80a]\n  driver   nvme; firmware FW7\n"
		    "  disks    nvme0n1: this user may read; nvme0n1 is part of md0\n"
		    "           nvme0n2: this user may read and write\n"
		    "           nvme0n3: this user may neither read nor write\n"
		    "           nvme0n4: not in /dev\n"
		    "  place    NUMA node 6, IOMMU group 13 (identity)\n"
		    "  group    shared with 0000:03:00.1 0000:03:00.2\n  IOMMU    addresses of 48 bits\n");
}

static void test_a_pair(void **state)
{
	(void)state;
	expect_json(
		json_pair(&pair),
		"{\"lanes\": \"0000:41:00.0\", \"ssd\": \"0000:03:00.0\", \"way\": {\"place\": \"numa-node\","
		" \"meet\": \"0000:00:01.0\", \"acs\": \"yes\", \"bridges\": ["
		"{\"pci_address\": \"0000:02:08.0\", \"redirects\": \"no\"},"
		"{\"pci_address\": \"0000:02:10.0\", \"redirects\": \"yes\"},"
		"{\"pci_address\": \"0000:02:18.0\", \"redirects\": \"unknown\"}], \"host_bridges\": ["
		"{\"pci_address\": \"0000:00:00.0\", \"id\": \"8086:2f00\", \"listed\": \"yes\", "
		"\"listed_apart\": "
		"\"no\"}, {\"pci_address\": \"0000:80:00.0\", \"id\": \"8086:9999\", \"listed\": \"no\","
		" \"listed_apart\": \"unknown\"}], \"peers\": {\"answer\": \"unknown\", \"use\": null, "
		"\"reasons\": ["
		"{\"answer\": \"unknown\", \"why\": \"whether so\", \"remedy\": \"try %d\"}]}}, \"paths\": {"
		"\"direct\": {\"answer\": \"yes\", \"use\": \"use 0\", \"reasons\": []},"
		" \"module\": {\"answer\": \"no\", \"use\": null, \"reasons\": ["
		"{\"answer\": \"no\", \"why\": \"why a\", \"remedy\": \"remedy a\"},"
		"{\"answer\": \"unknown\", \"why\": \"why b\", \"remedy\": null}]},"
		" \"pull\": {\"answer\": \"unknown\", \"use\": null, \"reasons\": ["
		"{\"answer\": \"unknown\", \"why\": \"why c\", \"remedy\": \"remedy c\"}]},"
		" \"proxy\": {\"answer\": \"yes\", \"use\": \"use 3\", \"reasons\": []}}, \"status\": 0}");
	expect_text(
		run_pair,
		"\n0000:41:00.0 with SSD 0000:03:00.0\n"
		"  way      below different host bridges of one NUMA node, 0000:00:01.0; bridges redirect "
		"(ACS): yes 0000:02:10.0\n"
		"  bridge   8086:2f00 and 8086:9999 let peers talk, says Linux: no, unknown\n"
		"  peers    unknown\n    ? whether so\n      > try %d\n  direct   yes: use 0\n"
		"  module   no\n    - why a\n      > remedy a\n    ? why b\n"
		"  pull     unknown\n    ? why c\n      > remedy c\n  proxy    yes: use 3\n");
	pair.bridges[1] = pair.bridges[0];
	assert_int_equal(capture_run(run_pair, ""), 0);
	assert_non_null(strstr(captured, "\n  bridge   8086:2f00 lets peers talk, says Linux: yes\n"));
}

static void test_places_by_their_words(void **state)
{
	static const char *const words[] = { "unknown",     "switch",    "root-port",
					     "host-bridge", "numa-node", "across" };

	(void)state;
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		json_t *object, *location;

		pair.location = (enum location)i;
		object = json_pair(&pair);
		location = json_object_get(json_object_get(object, "way"), "place");
		assert_string_equal(json_string_value(location), words[i]);
		json_decref(object);
	}
}

/* No weighs more than unknown, and that more than yes, in whatever order, and however many there are. */
static void test_reasons_make_an_answer(void **state)
{
	static const enum answer rows[][3] = {
		{ YES, UNKNOWN, UNKNOWN }, { YES, NO, NO },     { UNKNOWN, UNKNOWN, UNKNOWN },
		{ UNKNOWN, NO, NO },       { NO, UNKNOWN, NO }, { NO, NO, NO },
	};
	struct verdict verdict, joined;

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		verdict_start(&verdict);
		assert_int_equal(verdict.answer, YES);
		if (rows[i][0] != YES)
			verdict_add(&verdict, rows[i][0], "", "first");
		verdict_add(&verdict, rows[i][1], "", "second");
		assert_int_equal(verdict.answer, rows[i][2]);
	}
	verdict_start(&verdict);
	for (unsigned i = 0; i < CHECK_REASONS + 2; i++)
		verdict_add(&verdict, i == CHECK_REASONS + 1 ? NO : UNKNOWN, "", "reason %u", i);
	assert_int_equal(verdict.count, CHECK_REASONS);
	assert_int_equal(verdict.answer, NO);
	assert_string_equal(verdict.reasons[CHECK_REASONS - 1].why, "reason 15");
	verdict_start(&joined);
	verdict_add(&joined, UNKNOWN, "do", "own");
	verdict_add(&joined, NO, "do %s", "100%%");
	verdict_start(&verdict);
	verdict_join(&verdict, &joined);
	assert_int_equal(verdict.answer, NO);
	assert_int_equal(verdict.count, 2);
	assert_string_equal(verdict.reasons[1].why, "100%");
	assert_string_equal(verdict.reasons[1].remedy, "do %s");
	assert_int_equal(verdict.reasons[0].answer, UNKNOWN);
}

/* Of 81 combinations: lanes that drive the SSD are fast, others slow; what is not known counts for nothing.
 */
static void test_paths_make_a_status(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 81; i++) {
		unsigned rest = i, expected;

		for (unsigned path = 0; path < PATHS; path++, rest /= 3)
			pair.paths[path].answer = (enum answer)(rest % 3);
		expected = pair.paths[PATH_DIRECT].answer == YES || pair.paths[PATH_MODULE].answer == YES ? 0
			   : pair.paths[PATH_PULL].answer == YES || pair.paths[PATH_PROXY].answer == YES  ? 1
													  : 3;
		assert_int_equal(pair_status(&pair), expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_machine, fill),
		cmocka_unit_test_setup(test_a_machine_of_which_little_is_known, fill),
		cmocka_unit_test_setup(test_lanes, fill),
		cmocka_unit_test_setup(test_an_ssd, fill),
		cmocka_unit_test_setup(test_a_pair, fill),
		cmocka_unit_test_setup(test_places_by_their_words, fill),
		cmocka_unit_test_setup(test_reasons_make_an_answer, fill),
		cmocka_unit_test_setup(test_paths_make_a_status, fill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
