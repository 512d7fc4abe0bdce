/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include <weir/weir.h>

#include "gpus_list.h"
#include "tool_options.h"

/* By enum weir_distance. */
static const struct {
	const char *word, *words;
} distances[] = {
	{ "switch", "same switch" },         { "root-port", "same root port" },
	{ "numa-node", "same NUMA node" },   { "across", "across NUMA nodes" },
	{ "unknown", "distance not known" },
};

static size_t distance_index(const struct weir_gpu_disk *disk)
{
	return disk->distance < sizeof(distances) / sizeof(distances[0]) ? disk->distance
									 : WEIR_DISTANCE_UNKNOWN;
}

static void print_node(int32_t numa_node)
{
	if (numa_node < 0)
		printf("NUMA node not known");
	else
		printf("NUMA node %d", numa_node);
}

static void print_what(const struct weir_gpu *gpu)
{
	if (*gpu->vendor || *gpu->model)
		printf("%s%s%s ", gpu->vendor, *gpu->vendor && *gpu->model ? " " : "", gpu->model);
	if (gpu->vendor_id)
		printf("[%04x:%04x]\n", gpu->vendor_id, gpu->device_id);
	else
		printf("vendor not known\n");
}

static void print_disks(const struct weir_gpus *gpus, uint32_t index)
{
	struct weir_gpu_disk disk = { .size = sizeof(disk) };

	for (uint32_t i = 0; weir_gpu_disk_at(gpus, index, i, &disk) == 0; i++)
		printf("  %-8s %-16s PCI %s, %s\n", i ? "" : "disks",
		       *disk.name ? disk.name : "(no block dev.)", disk.pci_address,
		       distances[distance_index(&disk)].words);
}

static void print_gpu(const struct weir_gpus *gpus, uint32_t index, const struct weir_gpu *gpu)
{
	printf("GPU %s ", gpu->pci_address);
	print_what(gpu);
	if (gpu->number >= 0)
		printf("  name     gpu:%d, which is %s\n", gpu->number, gpu->device);
	else
		printf("  name     none, no backend can use it: %s\n", gpu->why);
	printf("  place    ");
	print_node(gpu->numa_node);
	printf("%s%s\n", *gpu->node ? ", " : "", gpu->node);
	print_disks(gpus, index);
}

void gpus_print(void)
{
	struct weir_gpu gpu = { .size = sizeof(gpu) };
	struct weir_gpus *gpus;
	uint32_t count = 0;

	if (weir_gpus_open(&gpus) != 0) {
		printf("GPUs: not known: %s\n", weir_last_error());
		return;
	}
	for (; weir_gpu_at(gpus, count, &gpu) == 0; count++)
		print_gpu(gpus, count, &gpu);
	if (!count)
		printf("no GPU can be seen on this machine\n");
	weir_gpus_close(gpus);
}

static json_t *node_json(int32_t numa_node)
{
	return numa_node < 0 ? json_null() : json_integer(numa_node);
}

static const char *given(const char *text)
{
	return *text ? text : NULL;
}

static json_t *disks_json(const struct weir_gpus *gpus, uint32_t index)
{
	struct weir_gpu_disk disk = { .size = sizeof(disk) };
	json_t *disks = json_array();

	for (uint32_t i = 0; weir_gpu_disk_at(gpus, index, i, &disk) == 0; i++)
		json_array_append_new(disks, json_pack("{s:s?, s:s, s:o, s:s}", "name", given(disk.name),
						       "pci_address", disk.pci_address, "numa_node",
						       node_json(disk.numa_node), "distance",
						       distances[distance_index(&disk)].word));
	return disks;
}

static json_t *gpu_json(const struct weir_gpus *gpus, uint32_t index, const struct weir_gpu *gpu)
{
	char vendor[8], device[8];

	snprintf(vendor, sizeof(vendor), "%04x", gpu->vendor_id & 0xffff);
	snprintf(device, sizeof(device), "%04x", gpu->device_id & 0xffff);
	return json_pack("{s:s, s:s?, s:s?, s:s?, s:s?, s:o, s:s?, s:s?, s:o, s:s?, s:o}", "pci_address",
			 gpu->pci_address, "vendor_id", gpu->vendor_id ? vendor : NULL, "device_id",
			 gpu->vendor_id ? device : NULL, "vendor", given(gpu->vendor), "model",
			 given(gpu->model), "numa_node", node_json(gpu->numa_node), "node", given(gpu->node),
			 "device", given(gpu->device), "number",
			 gpu->number < 0 ? json_null() : json_integer(gpu->number), "why", given(gpu->why),
			 "disks", disks_json(gpus, index));
}

json_t *gpus_json(void)
{
	struct weir_gpu gpu = { .size = sizeof(gpu) };
	struct weir_gpus *gpus;
	json_t *rows;

	if (weir_gpus_open(&gpus) != 0) {
		(void)tool_complain("%s", weir_last_error());
		return json_null();
	}
	rows = json_array();
	for (uint32_t i = 0; weir_gpu_at(gpus, i, &gpu) == 0; i++)
		json_array_append_new(rows, gpu_json(gpus, i, &gpu));
	weir_gpus_close(gpus);
	return rows;
}
