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

#include "../error.h"
#include "vfio_way.h"

enum { REGISTER_BYTES = 4096 }; /* of BAR 0 that software reads: doorbells follow */

int weir_vfio_kernel_says(const struct weir_vfio *vfio, const char *what)
{
	int error = errno;

	return weir_fail(error, "storage \"%s\": VFIO cannot %s of %s: %s", vfio->function.storage, what, vfio->function.address,
			 strerror(error));
}

int weir_vfio_open_node(const struct weir_vfio *vfio, const char *node, int *out)
{
	char path[WEIR_PCIE_PATH];

	snprintf(path, sizeof(path), "%s/dev/vfio/%s", vfio->function.root, node);
	*out = open(path, O_RDWR | O_CLOEXEC);
	return *out < 0 ? weir_pcie_vfio_fail(&vfio->function, node, errno) : 0;
}

static int map_registers(struct weir_vfio *vfio)
{
	struct vfio_region_info bar = { .argsz = sizeof(bar), .index = VFIO_PCI_BAR0_REGION_INDEX };
	struct vfio_region_info config = { .argsz = sizeof(config), .index = VFIO_PCI_CONFIG_REGION_INDEX };

	if (ioctl(vfio->device, VFIO_DEVICE_GET_REGION_INFO, &bar) != 0 ||
	    ioctl(vfio->device, VFIO_DEVICE_GET_REGION_INFO, &config) != 0)
		return weir_vfio_kernel_says(vfio, "describe the regions");
	vfio->config = config.offset;
	if (bar.size == 0 || !(bar.flags & VFIO_REGION_INFO_FLAG_MMAP))
		return weir_fail(ENOTSUP, "storage \"%s\": VFIO does not map BAR 0 of %s (%" PRIu64 " bytes), where an NVMe "
				 "controller has its registers", vfio->function.storage, vfio->function.address,
				 (uint64_t)bar.size);
	vfio->bar = mmap(NULL, bar.size, PROT_READ | PROT_WRITE, MAP_SHARED, vfio->device, (off_t)bar.offset);
	if (vfio->bar == MAP_FAILED) {
		vfio->bar = NULL;
		return weir_vfio_kernel_says(vfio, "map BAR 0");
	}
	vfio->bar_bytes = bar.size;
	return 0;
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

/* Linux counts up an eventfd of ours when it wants the function back, again every ten seconds until it has it. */
static int hear_of_removal(struct weir_vfio *vfio)
{
	union {
		struct vfio_irq_set set;
		char bytes[sizeof(struct vfio_irq_set) + sizeof(int32_t)];
	} request = { .set = { .argsz = sizeof(request), .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
			       .index = VFIO_PCI_REQ_IRQ_INDEX, .count = 1 } };
	int32_t file;

	vfio->wanted = file = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	memcpy(request.set.data, &file, sizeof(file));
	if (file < 0 || ioctl(vfio->device, VFIO_DEVICE_SET_IRQS, &request) != 0)
		return weir_vfio_kernel_says(vfio, "tell of the removal");
	return 0;
}

static int start_device(struct weir_vfio *vfio)
{
	int error = map_registers(vfio);

	if (!error)
		error = hear_of_removal(vfio);
	return error ? error : set_master(vfio, true);
}

static int map_fail(const struct weir_vfio *vfio, uint64_t address, uint64_t bytes, int error)
{
	const char *storage = vfio->function.storage;

	if (address + (bytes - 1) > vfio->highest)
		return weir_fail(ERANGE, "storage \"%s\": memory lies at %#" PRIx64 ", and the IOMMU takes addresses up to %#" PRIx64
				 " only; weir needs one with 48 bits", storage, address, vfio->highest);
	if (error == ENOMEM)
		return weir_fail(error, "storage \"%s\": cannot pin %" PRIu64 " bytes for its controller; raise the limit of locked "
				 "memory (ulimit -l)", storage, bytes);
	if (error == ENOSPC)
		return weir_fail(error, "storage \"%s\": too many allocations to map for its controller; raise dma_entry_limit of "
				 "vfio_iommu_type1, or allocate fewer, larger ones", storage);
	return weir_fail(error, "storage \"%s\": cannot map %" PRIu64 " bytes at %#" PRIx64 " for its controller: %s", storage, bytes,
			 address, strerror(error));
}

static int map(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes)
{
	struct weir_vfio *vfio = (struct weir_vfio *)mapper;
	int error = 0;

	pthread_mutex_lock(&vfio->lock);
	if (!vfio->left && vfio->way->map(vfio, address, bytes) != 0)
		error = map_fail(vfio, address, bytes, errno);
	pthread_mutex_unlock(&vfio->lock);
	return error;
}

static void unmap(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes)
{
	struct weir_vfio *vfio = (struct weir_vfio *)mapper;

	pthread_mutex_lock(&vfio->lock);
	if (!vfio->left && vfio->way->unmap(vfio, address, bytes) != 0)
		fprintf(stderr, "weir: storage \"%s\": VFIO cannot unmap %" PRIu64 " bytes at %#" PRIx64 ": %s\n",
			vfio->function.storage, bytes, address, strerror(errno));
	pthread_mutex_unlock(&vfio->lock);
}

static const struct weir_vfio_way *choose(const struct weir_pcie *function, enum weir_vfio_choice choice)
{
	if (choice == WEIR_VFIO_AUTO)
		choice = weir_pcie_iommufd_permitted(function) ? WEIR_VFIO_IOMMUFD : WEIR_VFIO_GROUP;
	return choice == WEIR_VFIO_IOMMUFD ? &weir_vfio_iommufd : &weir_vfio_group;
}

int weir_vfio_open(const struct weir_pcie *function, enum weir_vfio_choice choice, struct weir_vfio **out)
{
	struct weir_vfio *vfio = calloc(1, sizeof(*vfio));
	int error;

	if (!vfio)
		return weir_fail(ENOMEM, "storage \"%s\": no memory", function->storage);
	*vfio = (struct weir_vfio){ .mapper = { .map = map, .unmap = unmap }, .function = *function,
				    .way = choose(function, choice), .highest = UINT64_MAX,
				    .iommu = -1, .group = -1, .device = -1, .wanted = -1 };
	pthread_mutex_init(&vfio->lock, NULL);
	error = vfio->way->open(vfio);
	if (!error)
		error = start_device(vfio);
	if (error) {
		weir_vfio_close(vfio, false);
		return error;
	}
	*out = vfio;
	return 0;
}

const char *weir_vfio_way(const struct weir_vfio *vfio)
{
	return vfio->way->name;
}

volatile uint32_t *weir_vfio_registers(struct weir_vfio *vfio, size_t *bytes)
{
	*bytes = vfio->bar_bytes;
	return vfio->bar;
}

struct weir_dma_mapper *weir_vfio_mapper(struct weir_vfio *vfio)
{
	return &vfio->mapper;
}

int weir_vfio_restart(struct weir_vfio *vfio)
{
	if (vfio->left)
		return weir_fail(ENODEV, "storage \"%s\": the system took %s away", vfio->function.storage, vfio->function.address);
	return set_master(vfio, true);
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
	close_file(&vfio->wanted);
	close_file(&vfio->device);
	close_file(&vfio->group);
	close_file(&vfio->iommu);
}

/*
 * Memory in place of BAR 0, in one step: a lane that rings a doorbell meanwhile reaches either. The mapping
 * would keep the device's file open otherwise.
 */
static bool replace_registers(struct weir_vfio *vfio)
{
	size_t ones = vfio->bar_bytes < REGISTER_BYTES ? vfio->bar_bytes : REGISTER_BYTES;
	void *memory = mmap(NULL, vfio->bar_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	memset(memory, 0xff, ones);
	if (mremap(memory, vfio->bar_bytes, vfio->bar_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, vfio->bar) != MAP_FAILED)
		return true;
	munmap(memory, vfio->bar_bytes);
	return false;
}

/* DMA ends first, so that nothing arrives in the buffer of a request that has ended. */
static void leave(struct weir_vfio *vfio)
{
	(void)set_master(vfio, false);
	if (!replace_registers(vfio)) {
		fprintf(stderr, "weir: storage \"%s\": no memory to take the place of the registers of %s, which the system has "
				"to wait for until it is closed\n", vfio->function.storage, vfio->function.address);
		return;
	}
	pthread_mutex_lock(&vfio->lock);
	vfio->left = true;
	close_files(vfio);
	pthread_mutex_unlock(&vfio->lock);
	fprintf(stderr, "weir: storage \"%s\": the system takes %s away; weir let go of it\n", vfio->function.storage,
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

void weir_vfio_close(struct weir_vfio *vfio, bool keep_addresses)
{
	if (vfio->bar && !vfio->left)
		(void)set_master(vfio, false);
	if (vfio->bar && (!keep_addresses || (!vfio->left && !replace_registers(vfio))))
		munmap(vfio->bar, vfio->bar_bytes);
	close_files(vfio);
	pthread_mutex_destroy(&vfio->lock);
	free(vfio);
}
