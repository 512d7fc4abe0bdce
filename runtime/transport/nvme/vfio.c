/* SPDX-License-Identifier: BSD-3-Clause */
#include "vfio.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../backend/error.h"
#include "vfio_way.h"

enum { REGISTER_BYTES = 4096 }; /* of BAR 0 that software reads: doorbells follow */

int weir_vfio_kernel_says(const struct weir_vfio *vfio, const char *what)
{
	int error = errno;

	return weir_fail(error, "storage \"%s\": VFIO cannot %s of %s: %s", vfio->function.storage, what,
			 vfio->function.address, strerror(error));
}

int weir_vfio_open_node(const struct weir_vfio *vfio, const char *node, int *out)
{
	char path[WEIR_PCIE_PATH];

	snprintf(path, sizeof(path), "%s/dev/vfio/%s", vfio->function.root, node);
	*out = open(path, O_RDWR | O_CLOEXEC);
	return *out < 0 ? weir_pcie_vfio_fail(&vfio->function, node, errno) : 0;
}

static void close_file(int *file)
{
	if (*file >= 0)
		close(*file);
	*file = -1;
}

/* Of the function, nothing is left to us but its BAR's addresses. */
static void close_files(struct weir_vfio *vfio)
{
	bool open = vfio->device >= 0;

	close_file(&vfio->wanted);
	close_file(&vfio->device);
	if (open)
		weir_vfio_space_part(vfio);
}

int weir_vfio_map_bar(struct weir_vfio *vfio, void **out)
{
	struct weir_vfio_bar *bar = calloc(1, sizeof(*bar));
	int error = 0;

	if (!bar)
		return weir_fail(ENOMEM, "storage \"%s\": no memory", vfio->function.storage);
	pthread_mutex_lock(&vfio->lock);
	bar->address = mmap(NULL, vfio->bar_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, vfio->device,
			    (off_t)vfio->bar_offset);
	if (bar->address == MAP_FAILED) {
		error = weir_vfio_kernel_says(vfio, "map BAR 0");
		free(bar);
	} else {
		*out = bar->address;
		bar->next = vfio->bars;
		vfio->bars = bar;
	}
	pthread_mutex_unlock(&vfio->lock);
	return error;
}

static int map_registers(struct weir_vfio *vfio)
{
	void *first;
	struct vfio_region_info bar = { .argsz = sizeof(bar), .index = VFIO_PCI_BAR0_REGION_INDEX };
	struct vfio_region_info config = { .argsz = sizeof(config), .index = VFIO_PCI_CONFIG_REGION_INDEX };

	if (ioctl(vfio->device, VFIO_DEVICE_GET_REGION_INFO, &bar) != 0 ||
	    ioctl(vfio->device, VFIO_DEVICE_GET_REGION_INFO, &config) != 0)
		return weir_vfio_kernel_says(vfio, "describe the regions");
	vfio->config = config.offset;
	if (bar.size == 0 || !(bar.flags & VFIO_REGION_INFO_FLAG_MMAP))
		return weir_fail(ENOTSUP,
				 "storage \"%s\": VFIO does not map BAR 0 of %s (%" PRIu64
				 " bytes), where an NVMe "
				 "controller has its registers",
				 vfio->function.storage, vfio->function.address, (uint64_t)bar.size);
	vfio->bar_offset = bar.offset;
	vfio->bar_bytes = bar.size;
	return weir_vfio_map_bar(vfio, &first);
}

/* Whether the function may do DMA, and answers to its registers. */
static int set_master(struct weir_vfio *vfio, bool on)
{
	off_t at = (off_t)(vfio->config + PCI_COMMAND);
	uint16_t command;

	if (pread(vfio->device, &command, sizeof(command), at) != sizeof(command))
		return weir_vfio_kernel_says(vfio, "read the configuration space");
	command |= PCI_COMMAND_MEMORY | PCI_COMMAND_INTX_DISABLE;
	command = (uint16_t)(on ? command | PCI_COMMAND_MASTER : command & ~PCI_COMMAND_MASTER);
	if (pwrite(vfio->device, &command, sizeof(command), at) != sizeof(command))
		return weir_vfio_kernel_says(vfio, "write the configuration space");
	return 0;
}

/* Linux counts up an eventfd of ours when it wants the function back, again every ten seconds until it has
 * it. */
static int hear_of_removal(struct weir_vfio *vfio)
{
	union {
		struct vfio_irq_set set;
		char bytes[sizeof(struct vfio_irq_set) + sizeof(int32_t)];
	} request = { .set = { .argsz = sizeof(request),
			       .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
			       .index = VFIO_PCI_REQ_IRQ_INDEX,
			       .count = 1 } };
	int32_t file;

	vfio->wanted = file = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	memcpy(request.set.data, &file, sizeof(file));
	if (file < 0 || ioctl(vfio->device, VFIO_DEVICE_SET_IRQS, &request) != 0)
		return weir_vfio_kernel_says(vfio, "report the removal");
	return 0;
}

static int start_device(struct weir_vfio *vfio)
{
	int error = map_registers(vfio);

	if (!error)
		error = hear_of_removal(vfio);
	return error ? error : set_master(vfio, true);
}

int weir_vfio_open(const struct weir_pcie *function, enum weir_vfio_choice choice, struct weir_vfio **out)
{
	struct weir_vfio *vfio = calloc(1, sizeof(*vfio));
	int error;

	if (!vfio)
		return weir_fail(ENOMEM, "storage \"%s\": no memory", function->storage);
	*vfio = (struct weir_vfio){ .function = *function, .device = -1, .wanted = -1 };
	pthread_mutex_init(&vfio->lock, NULL);
	error = weir_vfio_space_join(vfio, choice);
	if (!error) {
		error = vfio->space->way->open(vfio);
		if (error) /* before the space's files */
			close_file(&vfio->device);
		weir_vfio_space_joined(vfio, !error);
	}
	if (!error)
		error = start_device(vfio);
	if (error) {
		weir_vfio_close(vfio);
		return error;
	}
	*out = vfio;
	return 0;
}

const char *weir_vfio_way(const struct weir_vfio *vfio)
{
	return vfio->space->way->name;
}

bool weir_vfio_by_group(const struct weir_vfio *vfio)
{
	return vfio->space->way == &weir_vfio_group;
}

volatile uint32_t *weir_vfio_registers(struct weir_vfio *vfio, size_t *bytes)
{
	*bytes = vfio->bar_bytes;
	return vfio->bars->address; /* the only one, just after it was opened */
}

struct weir_dma_map *weir_vfio_map(struct weir_vfio *vfio)
{
	return vfio->space->map;
}

int weir_vfio_restart(struct weir_vfio *vfio)
{
	if (vfio->left)
		return weir_fail(ENODEV, "storage \"%s\": the system took %s away", vfio->function.storage,
				 vfio->function.address);
	return set_master(vfio, true);
}

/*
 * Memory in place of BAR 0, in one step: a lane that rings a doorbell meanwhile reaches either. The mapping
 * would keep the device's file open otherwise.
 */
static bool replace_registers(const struct weir_vfio *vfio, void *bar)
{
	size_t ones = vfio->bar_bytes < REGISTER_BYTES ? vfio->bar_bytes : REGISTER_BYTES;
	void *memory =
		mmap(NULL, vfio->bar_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	memset(memory, 0xff, ones);
	if (mremap(memory, vfio->bar_bytes, vfio->bar_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, bar) !=
	    MAP_FAILED)
		return true;
	munmap(memory, vfio->bar_bytes);
	return false;
}

static bool replace_all_registers(const struct weir_vfio *vfio)
{
	bool all = true;

	for (const struct weir_vfio_bar *bar = vfio->bars; bar; bar = bar->next)
		all = replace_registers(vfio, bar->address) && all;
	return all;
}

/* DMA ends first, so that nothing arrives in the buffer of a request that has ended. */
static void leave(struct weir_vfio *vfio)
{
	bool all;

	(void)set_master(vfio, false);
	pthread_mutex_lock(&vfio->lock);
	all = replace_all_registers(vfio);
	vfio->left = all;
	pthread_mutex_unlock(&vfio->lock);
	if (!all) {
		weir_report("storage \"%s\": no memory to take the place of the registers of %s, which the "
			    "system has "
			    "to wait for until it is closed",
			    vfio->function.storage, vfio->function.address);
		return;
	}
	close_files(vfio);
	weir_report("storage \"%s\": the system takes %s away; weir let go of it", vfio->function.storage,
		    vfio->function.address);
}

bool weir_vfio_wanted(struct weir_vfio *vfio)
{
	uint64_t times;

	if (!vfio->left && read(vfio->wanted, &times, sizeof(times)) == sizeof(times))
		vfio->asked = true;
	return !vfio->left && vfio->asked;
}

void weir_vfio_give_way(struct weir_vfio *vfio)
{
	if (weir_vfio_wanted(vfio))
		leave(vfio);
	vfio->asked = false; /* the kernel asks again, every ten seconds */
}

int weir_vfio_halt(struct weir_vfio *vfio)
{
	return vfio->left ? 0 : set_master(vfio, false);
}

void weir_vfio_unmap_bar(struct weir_vfio *vfio, void *address, bool keep_addresses)
{
	struct weir_vfio_bar **link = &vfio->bars, *bar;

	pthread_mutex_lock(&vfio->lock);
	while (*link && (*link)->address != address)
		link = &(*link)->next;
	bar = *link;
	if (bar) {
		*link = bar->next;
		if (!keep_addresses || (!vfio->left && !replace_registers(vfio, address)))
			munmap(address, vfio->bar_bytes);
		free(bar);
	}
	pthread_mutex_unlock(&vfio->lock);
}

void weir_vfio_close(struct weir_vfio *vfio)
{
	if (vfio->bars && !vfio->left)
		(void)set_master(vfio, false);
	while (vfio->bars)
		weir_vfio_unmap_bar(vfio, vfio->bars->address, false);
	if (vfio->space) {
		close_files(vfio);
		weir_vfio_space_leave(vfio);
	}
	pthread_mutex_destroy(&vfio->lock);
	free(vfio);
}
