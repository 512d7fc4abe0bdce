/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs and disks of the machine and how far they are from each other, from hwloc's tree of the PCI bus.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hwloc.h>

#include "context.h"
#include "../backend/error.h"
#include "gpus.h"

/* Base classes of PCI: displays, which all GPUs of old are, and processing accelerators, which some newer
 * ones are. */
enum { CLASS_STORAGE_NVME = 0x0108, BASE_DISPLAY = 0x03, BASE_ACCELERATOR = 0x12 };

/** struct tree - hwloc's objects of a snapshot's entries, while it is made */
struct tree {
	hwloc_topology_t topology;
	hwloc_obj_t gpus[WEIR_MOST_GPUS];
	hwloc_obj_t disks[WEIR_MOST_DISKS];
};

static struct weir_pci address_of(hwloc_obj_t pci)
{
	return weir_pci_make(pci->attr->pcidev.domain, pci->attr->pcidev.bus, pci->attr->pcidev.dev,
			     pci->attr->pcidev.func);
}

static hwloc_obj_t near_memory(hwloc_topology_t topology, hwloc_obj_t object)
{
	return hwloc_get_non_io_ancestor_obj(topology, object);
}

static int32_t numa_node_of(hwloc_topology_t topology, hwloc_obj_t object)
{
	hwloc_obj_t location = near_memory(topology, object);

	if (!location || !location->nodeset || hwloc_bitmap_weight(location->nodeset) != 1)
		return -1;
	return hwloc_bitmap_first(location->nodeset);
}

static void copy_info(hwloc_obj_t object, const char *key, char *text, size_t bytes)
{
	const char *value = hwloc_obj_get_info_by_name(object, key);

	snprintf(text, bytes, "%s", value ? value : "");
}

/* The place of a new entry in a list that is kept in order. */
static uint32_t place_for(const struct weir_gpus *gpus, struct weir_pci address)
{
	uint32_t i = 0;

	while (i < gpus->count && gpus->gpus[i].address.packed < address.packed)
		i++;
	return i;
}

struct weir_gpu_location *weir_gpus_add(struct weir_gpus *gpus, struct weir_pci address)
{
	uint32_t at = place_for(gpus, address);
	struct weir_gpu_location *location = &gpus->gpus[at];

	if (at < gpus->count && location->address.packed == address.packed)
		return location;
	if (gpus->count == WEIR_MOST_GPUS)
		return NULL;
	memmove(location + 1, location, (gpus->count - at) * sizeof(*location));
	memmove(gpus->distances[at + 1], gpus->distances[at],
		(gpus->count - at) * sizeof(gpus->distances[0]));
	memset(gpus->distances[at], WEIR_DISTANCE_UNKNOWN, sizeof(gpus->distances[at]));
	gpus->count++;
	*location = (struct weir_gpu_location){ .address = address, .numa_node = -1 };
	return location;
}

static void read_gpus(struct weir_gpus *gpus, struct tree *tree)
{
	hwloc_obj_t pci = NULL;

	while ((pci = hwloc_get_next_pcidev(tree->topology, pci)) != NULL) {
		unsigned base = pci->attr->pcidev.class_id >> 8;
		struct weir_gpu_location *gpu;
		uint32_t at;

		if (base != BASE_DISPLAY && base != BASE_ACCELERATOR)
			continue;
		gpu = weir_gpus_add(gpus, address_of(pci));
		if (!gpu)
			return;
		at = (uint32_t)(gpu - gpus->gpus);
		memmove(&tree->gpus[at + 1], &tree->gpus[at], (gpus->count - 1 - at) * sizeof(tree->gpus[0]));
		tree->gpus[at] = pci;
		gpu->vendor_id = pci->attr->pcidev.vendor_id;
		gpu->device_id = pci->attr->pcidev.device_id;
		gpu->numa_node = numa_node_of(tree->topology, pci);
		copy_info(pci, "PCIVendor", gpu->vendor, sizeof(gpu->vendor));
		copy_info(pci, "PCIDevice", gpu->model, sizeof(gpu->model));
	}
}

static void add_disk(struct weir_gpus *gpus, struct tree *tree, hwloc_obj_t pci, const char *name)
{
	struct weir_disk_location disk = { .address = address_of(pci),
					   .numa_node = numa_node_of(tree->topology, pci) };
	uint32_t at = gpus->disk_count;

	if (gpus->disk_count == WEIR_MOST_DISKS)
		return;
	snprintf(disk.name, sizeof(disk.name), "%s", name);
	for (; at > 0; at--) {
		const struct weir_disk_location *before = &gpus->disks[at - 1];

		if (before->address.packed < disk.address.packed ||
		    (before->address.packed == disk.address.packed && strcmp(before->name, disk.name) <= 0))
			break;
		gpus->disks[at] = gpus->disks[at - 1];
		tree->disks[at] = tree->disks[at - 1];
	}
	gpus->disks[at] = disk;
	tree->disks[at] = pci;
	gpus->disk_count++;
}

/* The PCI device that @object is or belongs to, or NULL. */
static hwloc_obj_t pci_of(hwloc_obj_t object)
{
	while (object && object->type != HWLOC_OBJ_PCI_DEVICE)
		object = object->parent;
	return object;
}

/* Block devices; then NVMe controllers that have none, because their driver is another, or none. */
static void read_disks(struct weir_gpus *gpus, struct tree *tree)
{
	hwloc_obj_t object = NULL;

	while ((object = hwloc_get_next_osdev(tree->topology, object)) != NULL)
		if (object->attr->osdev.type == HWLOC_OBJ_OSDEV_BLOCK && pci_of(object) && object->name)
			add_disk(gpus, tree, pci_of(object), object->name);
	while ((object = hwloc_get_next_pcidev(tree->topology, object)) != NULL) {
		bool known = false;

		for (uint32_t i = 0; i < gpus->disk_count; i++)
			known = known || tree->disks[i] == object;
		if (object->attr->pcidev.class_id == CLASS_STORAGE_NVME && !known)
			add_disk(gpus, tree, object, "");
	}
}

static bool is_pci_bridge(hwloc_obj_t object)
{
	return object && object->type == HWLOC_OBJ_BRIDGE &&
	       object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

static hwloc_obj_t common_ancestor(hwloc_obj_t a, hwloc_obj_t b)
{
	for (; a; a = a->parent)
		for (hwloc_obj_t other = b; other; other = other->parent)
			if (other == a)
				return a;
	return NULL;
}

/*
 * A bridge below a host bridge is a root port; a bridge below that one is a switch's. What meets at the host
 * bridge has root ports of its own.
 */
static enum weir_distance distance(hwloc_topology_t topology, hwloc_obj_t gpu, hwloc_obj_t disk)
{
	hwloc_obj_t meet = common_ancestor(gpu, disk);
	int32_t node = numa_node_of(topology, gpu), other = numa_node_of(topology, disk);

	if (is_pci_bridge(meet))
		return is_pci_bridge(meet->parent) ? WEIR_DISTANCE_SWITCH : WEIR_DISTANCE_ROOT_PORT;
	if (meet && (meet->type == HWLOC_OBJ_BRIDGE || meet->type == HWLOC_OBJ_PCI_DEVICE))
		return WEIR_DISTANCE_NUMA_NODE;
	if (node < 0 || other < 0)
		return WEIR_DISTANCE_UNKNOWN;
	return node == other ? WEIR_DISTANCE_NUMA_NODE : WEIR_DISTANCE_ACROSS;
}

static void read_tree(struct weir_gpus *gpus, struct tree *tree)
{
	read_gpus(gpus, tree);
	read_disks(gpus, tree);
	for (uint32_t g = 0; g < gpus->count; g++)
		for (uint32_t d = 0; d < gpus->disk_count; d++)
			gpus->distances[g][d] =
				(uint8_t)distance(tree->topology, tree->gpus[g], tree->disks[d]);
	/* A machine out of a file has no drivers here, and no backends. */
	gpus->elsewhere = !hwloc_topology_is_thissystem(tree->topology);
	if (!gpus->elsewhere)
		weir_gpus_drivers(gpus);
}

int weir_gpus_read(struct weir_gpus *gpus)
{
	const char *file = getenv("HWLOC_XMLFILE");
	struct tree *tree = calloc(1, sizeof(*tree));
	int error = 0;

	memset(gpus, 0, sizeof(*gpus));
	if (!tree || hwloc_topology_init(&tree->topology) != 0) {
		free(tree);
		return weir_fail(ENOMEM, "no memory for the machine's topology");
	}
	/* Named outright: of the variable alone some builds of hwloc take this machine instead, if the file
	 * is none. */
	if ((file && *file && hwloc_topology_set_xml(tree->topology, file) != 0) ||
	    hwloc_topology_set_io_types_filter(tree->topology, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
	    hwloc_topology_load(tree->topology) != 0)
		error = weir_fail(errno ? errno : EIO,
				  "hwloc cannot read the machine's topology: %s; is HWLOC_XMLFILE set?",
				  strerror(errno));
	else
		read_tree(gpus, tree);
	hwloc_topology_destroy(tree->topology);
	free(tree);
	return error;
}

int weir_gpus_open(struct weir_gpus **out)
{
	struct weir_gpus *gpus;
	int error = weir_given(out, "weir_gpus_open", "out");

	if (error)
		return error;
	*out = NULL;
	gpus = malloc(sizeof(*gpus));
	error = gpus ? weir_gpus_read(gpus) : weir_fail(ENOMEM, "no memory for a list of GPUs");
	if (!error)
		error = weir_handle_add(gpus, WEIR_HANDLE_GPUS, "");
	if (error) {
		free(gpus);
		return error;
	}
	if (gpus->elsewhere)
		snprintf(gpus->candidates.why, sizeof(gpus->candidates.why),
			 "the machine is one out of a file (HWLOC_XMLFILE)");
	else
		weir_gpu_candidates(weir_backend_at, &gpus->candidates);
	/* What a backend has is there, even if the system does not show it. */
	for (uint32_t i = 0; i < gpus->candidates.count; i++)
		(void)weir_gpus_add(gpus, gpus->candidates.list[i].address);
	*out = gpus;
	return 0;
}

int weir_gpus_close(struct weir_gpus *gpus)
{
	int error = gpus ? weir_handle_check(gpus, WEIR_HANDLE_GPUS, "weir_gpus_close") : 0;

	if (gpus && !error)
		weir_handle_retire(gpus);
	return error;
}

int weir_gpu_at(const struct weir_gpus *gpus, uint32_t index, struct weir_gpu *out)
{
	struct weir_gpu gpu = { .size = sizeof(gpu) };
	const struct weir_gpu_candidates *candidates;
	const struct weir_gpu_location *location;
	int error = weir_handle_check(gpus, WEIR_HANDLE_GPUS, "weir_gpu_at");

	if (error || (error = weir_given(out, "weir_gpu_at", "gpu")) != 0)
		return error;
	if (index >= gpus->count)
		return -ENOENT;
	location = gpus->gpus + index;
	candidates = &gpus->candidates;
	weir_pci_print(location->address, gpu.pci_address);
	gpu.vendor_id = location->vendor_id;
	gpu.device_id = location->device_id;
	memcpy(gpu.vendor, location->vendor, sizeof(gpu.vendor));
	memcpy(gpu.model, location->model, sizeof(gpu.model));
	memcpy(gpu.node, location->node, sizeof(gpu.node));
	gpu.numa_node = location->numa_node;
	gpu.number = weir_gpu_number(candidates, location->address);
	for (uint32_t i = candidates->count; i-- > 0;) /* the preferred backend's is the first */
		if (candidates->list[i].address.packed == location->address.packed)
			snprintf(gpu.device, sizeof(gpu.device), "%s:%u", candidates->list[i].backend,
				 candidates->list[i].ordinal);
	if (gpu.number < 0)
		snprintf(gpu.why, sizeof(gpu.why), "%s", candidates->why);
	return weir_result_give(out, &gpu, sizeof(gpu), "weir_gpu_at");
}

/* The disk that is number @index by distance from GPU @gpu; disks of one distance stay in their order. */
static uint32_t nearest(const struct weir_gpus *gpus, uint32_t gpu, uint32_t index)
{
	for (unsigned distance = 0; distance <= WEIR_DISTANCE_UNKNOWN; distance++)
		for (uint32_t d = 0; d < gpus->disk_count; d++)
			if (gpus->distances[gpu][d] == distance && index-- == 0)
				return d;
	return gpus->disk_count;
}

int weir_gpu_disk_at(const struct weir_gpus *gpus, uint32_t gpu, uint32_t index, struct weir_gpu_disk *out)
{
	struct weir_gpu_disk disk = { .size = sizeof(disk) };
	int error = weir_handle_check(gpus, WEIR_HANDLE_GPUS, "weir_gpu_disk_at");
	uint32_t at;

	if (error || (error = weir_given(out, "weir_gpu_disk_at", "disk")) != 0)
		return error;
	at = gpu < gpus->count ? nearest(gpus, gpu, index) : gpus->disk_count;
	if (at == gpus->disk_count)
		return -ENOENT;
	memcpy(disk.name, gpus->disks[at].name, sizeof(disk.name));
	weir_pci_print(gpus->disks[at].address, disk.pci_address);
	disk.numa_node = gpus->disks[at].numa_node;
	disk.distance = gpus->distances[gpu][at];
	return weir_result_give(out, &disk, sizeof(disk), "weir_gpu_disk_at");
}
