/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transport_nvme.c: nvme: is a controller on PCI Express, driven through VFIO, which storages of this process
 * share (nvme/shared.h); or beside the kernel's driver, which is nvme/transport_kernel.c.
 *
 * Registers as in the PCIe transport specification 1.0, section 3.1; by 32 bits, which
 * every controller takes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/nvme.h>

#include "../../backend/error.h"
#include "shared.h"
#include "transport_nvme.h"

enum { CAP_DSTRD_SHIFT = 32, CAP_DSTRD_MASK = 0xf, NOT_GIVEN = 99 };

/**
 * struct pcie_controller - an open controller, by itself
 * @uri: for sentences
 * @path: in words
 */
struct pcie_controller {
	struct weir_transport base;
	struct weir_vfio *vfio;
	volatile uint32_t *registers;
	char *uri;
	char path[80];
};

static struct pcie_controller *controller_of(struct weir_transport *transport)
{
	return (struct pcie_controller *)transport;
}

static uint32_t nvme_read32(struct weir_transport *transport, uint32_t offset)
{
	return controller_of(transport)->registers[offset / sizeof(uint32_t)];
}

static uint64_t nvme_read64(struct weir_transport *transport, uint32_t offset)
{
	uint64_t low = nvme_read32(transport, offset);

	return low | (uint64_t)nvme_read32(transport, offset + 4) << 32;
}

static void nvme_write32(struct weir_transport *transport, uint32_t offset, uint32_t value)
{
	controller_of(transport)->registers[offset / sizeof(uint32_t)] = value;
}

static void nvme_write64(struct weir_transport *transport, uint32_t offset, uint64_t value)
{
	nvme_write32(transport, offset, (uint32_t)value);
	nvme_write32(transport, offset + 4, (uint32_t)(value >> 32));
}

static uint64_t nvme_doorbell(struct weir_transport *transport, unsigned index)
{
	return (uint64_t)(uintptr_t)controller_of(transport)->registers + NVME_REGISTER_DOORBELLS +
	       (uint64_t)index * transport->doorbell_bytes;
}

static int nvme_restart(struct weir_transport *transport)
{
	return weir_vfio_restart(controller_of(transport)->vfio);
}

/* Bytes pass by the host unseen. */
static void nvme_stats(struct weir_transport *transport, struct weir_transport_stats *stats)
{
	(void)transport;
	*stats = (struct weir_transport_stats){ 0, 0, false };
}

static bool nvme_wanted(struct weir_transport *transport)
{
	return weir_vfio_wanted(controller_of(transport)->vfio);
}

static void nvme_give_way(struct weir_transport *transport)
{
	weir_vfio_give_way(controller_of(transport)->vfio);
}

static int nvme_halt(struct weir_transport *transport)
{
	int error = weir_vfio_halt(controller_of(transport)->vfio);

	/* One that was pulled out has no configuration space either. */
	return nvme_read32(transport, NVME_REGISTER_CSTS) == UINT32_MAX ? 0 : error;
}

static const char *nvme_path(struct weir_transport *transport)
{
	return controller_of(transport)->path;
}

static void nvme_close(struct weir_transport *transport)
{
	struct pcie_controller *controller = controller_of(transport);

	if (controller->vfio)
		weir_vfio_close(controller->vfio);
	free(controller->uri);
	free(controller);
}

static int take_keys(struct weir_uri *uri, struct weir_transport *base, struct weir_nvme_keys *keys)
{
	static const char *const ways[] = { "auto", "group", "iommufd", NULL };   /* enum weir_vfio_choice */
	static const char *const movers[] = { "auto", "direct", "pull", NULL };   /* enum weir_mover */
	static const char *const memories[] = { "none", "data", "queues", NULL }; /* enum weir_gpu_memory */
	static const char *const shadows[] = { "auto", "off", "on", NULL };       /* enum weir_shadow */
	static const char *const doorbells[] = { "auto", "lanes", "host", NULL }; /* enum weir_doorbell */
	static const char *const owners[] = { "vfio", "kernel", NULL };           /* enum weir_nvme_owner */
	static const char *const uses[] = { "refuse", "allow", NULL };            /* enum weir_nvme_in_use */
	uint64_t nsid = 0, queues = 0, read_only = 0;
	unsigned owner = WEIR_NVME_OWNER_VFIO, in_use = WEIR_NVME_IN_USE_REFUSE;
	unsigned mover = WEIR_MOVER_AUTO, way = WEIR_VFIO_AUTO, shadow = WEIR_SHADOW_AUTO;
	unsigned doorbell = WEIR_DOORBELL_AUTO;
	unsigned memory = NOT_GIVEN;
	int error;

	if (!weir_pci_parse(uri->body, &keys->address))
		return weir_fail(
			EINVAL,
			"storage \"%s\": \"%s\" is no PCI address; write nvme:0000:65:00.0 or nvme:65:00.0",
			uri->text, uri->body);
	if ((error = weir_uri_take_u64(uri, "nsid", 1, NVME_NSID_BROADCAST - 1, &nsid)) != 0 ||
	    (error = weir_uri_take_u64(uri, "queues", 1, WEIR_NVME_MOST_QUEUES, &queues)) != 0 ||
	    (error = weir_uri_take_u64(uri, "ro", 0, 1, &read_only)) != 0 ||
	    (error = weir_uri_take_choice(uri, "driver", owners, &owner)) != 0 ||
	    (error = weir_uri_take_choice(uri, "in_use", uses, &in_use)) != 0 ||
	    (error = weir_uri_take_choice(uri, "mover", movers, &mover)) != 0 ||
	    (error = weir_uri_take_choice(uri, "shadow", shadows, &shadow)) != 0 ||
	    (error = weir_uri_take_choice(uri, "doorbell", doorbells, &doorbell)) != 0 ||
	    (error = weir_uri_take_choice(uri, "gpu_memory", memories, &memory)) != 0 ||
	    (error = weir_uri_take_choice(uri, "vfio", ways, &way)) != 0)
		return error;
	base->nsid = (uint32_t)nsid;
	base->most_queues = (uint32_t)queues;
	base->mover = (enum weir_mover)mover;
	base->shadow = (enum weir_shadow)shadow;
	base->doorbell = (enum weir_doorbell)doorbell;
	base->gpu_memory = memory == NOT_GIVEN ? WEIR_GPU_MEMORY_NONE : (enum weir_gpu_memory)memory;
	base->read_only = read_only != 0;
	base->registers = true;
	keys->memory_given = memory != NOT_GIVEN;
	keys->owner = (enum weir_nvme_owner)owner;
	keys->in_use = (enum weir_nvme_in_use)in_use;
	keys->choice = (enum weir_vfio_choice)way;
	return weir_uri_finish(uri, "nsid, queues, ro, mover, shadow, doorbell, gpu_memory, driver, in_use, "
				    "vfio, timeout_ms, retries");
}

/* CAP.DSTRD, and how many pairs of doorbells BAR 0 has room for behind the admin queue's. */
static int place_doorbells(struct pcie_controller *controller, size_t bytes)
{
	struct weir_transport *base = &controller->base;
	uint64_t cap, pairs;

	if (bytes < NVME_REGISTER_DOORBELLS + 4 * sizeof(uint32_t))
		return weir_fail(ENOTSUP,
				 "storage \"%s\": BAR 0 has %zu bytes, too few for an NVMe controller",
				 controller->uri, bytes);
	cap = nvme_read64(base, NVME_REGISTER_CAP);
	base->doorbell_bytes = 4u << ((cap >> CAP_DSTRD_SHIFT) & CAP_DSTRD_MASK);
	pairs = (bytes - NVME_REGISTER_DOORBELLS) / (2 * base->doorbell_bytes);
	if (cap != UINT64_MAX && pairs < 2)
		return weir_fail(
			ENOTSUP,
			"storage \"%s\": BAR 0 of %zu bytes has no room for doorbells %u bytes apart",
			controller->uri, bytes, base->doorbell_bytes);
	if (pairs < 2) /* a controller that is gone: its start will say so */
		pairs = 2;
	if (!base->most_queues || pairs - 1 < base->most_queues)
		base->most_queues =
			pairs - 1 < WEIR_NVME_MOST_QUEUES ? (uint32_t)(pairs - 1) : WEIR_NVME_MOST_QUEUES;
	return 0;
}

/** struct vfio_source - what weir_nvme_shared_open() is given for a controller through VFIO */
struct vfio_source {
	struct weir_transport_request *request;
	const struct weir_transport *base;
	const struct weir_nvme_keys *keys;
	struct weir_pcie function;
};

/*
 * Another device's memory is mapped by the group's way alone: pages are what iommufd asks for, and a BAR has
 * none. Nobody tells VFIO when it goes, which is why it is to be asked for.
 */
static int check_memory(const struct vfio_source *source)
{
	const struct weir_transport *base = source->base;
	const char *uri = source->request->uri->text;

	if (base->gpu_memory == WEIR_GPU_MEMORY_NONE)
		return 0;
	if (!source->request->peer_memory)
		return weir_fail(ENOTSUP,
				 "storage \"%s\": gpu_memory is for a context whose device memory is a "
				 "device's BAR, mapped "
				 "(cpu:memory=FILE); leave it out",
				 uri);
	if (base->mover == WEIR_MOVER_PULL && base->gpu_memory == WEIR_GPU_MEMORY_DATA)
		return weir_fail(EINVAL,
				 "storage \"%s\": mover=pull leaves the controller no data to reach in the "
				 "device's memory; leave "
				 "out that or gpu_memory=data",
				 uri);
	if (source->keys->choice == WEIR_VFIO_IOMMUFD)
		return weir_fail(
			ENOTSUP,
			"storage \"%s\": iommufd maps no BARs; leave out vfio=iommufd, or gpu_memory", uri);
	return 0;
}

static enum weir_vfio_choice choice_of(const struct vfio_source *source)
{
	return source->base->gpu_memory == WEIR_GPU_MEMORY_NONE ? source->keys->choice : WEIR_VFIO_GROUP;
}

static int reach(struct pcie_controller *controller, const struct vfio_source *source)
{
	size_t bytes;
	int error = weir_vfio_open(&source->function, choice_of(source), &controller->vfio);

	if (error)
		return error;
	controller->registers = weir_vfio_registers(controller->vfio, &bytes);
	snprintf(controller->path, sizeof(controller->path), "NVMe controller %s through VFIO and %s",
		 source->function.address, weir_vfio_way(controller->vfio));
	return place_doorbells(controller, bytes);
}

static int map_registers(struct weir_transport *transport, void **registers)
{
	return weir_vfio_map_bar(controller_of(transport)->vfio, registers);
}

static void unmap_registers(struct weir_transport *transport, void *registers, bool keep_addresses)
{
	weir_vfio_unmap_bar(controller_of(transport)->vfio, registers, keep_addresses);
}

static int open_vfio(void *of, struct weir_nvme_raw *out)
{
	const struct vfio_source *source = of;
	struct pcie_controller *controller = calloc(1, sizeof(*controller));
	int error;

	if (!controller || !(controller->uri = strdup(source->request->uri->text))) {
		free(controller);
		return weir_fail(ENOMEM, "storage \"%s\": no memory", source->request->uri->text);
	}
	controller->base.ops = &weir_transport_nvme;
	error = reach(controller, source);
	if (error) {
		nvme_close(&controller->base);
		return error;
	}
	*out = (struct weir_nvme_raw){ .transport = &controller->base,
				       .dma = weir_vfio_map(controller->vfio),
				       .map_registers = map_registers,
				       .unmap_registers = unmap_registers };
	return 0;
}

static int join_vfio(void *of, const struct weir_nvme_raw *raw)
{
	const struct vfio_source *source = of;
	struct weir_vfio *vfio = controller_of(raw->transport)->vfio;
	enum weir_vfio_choice choice = choice_of(source);

	if (choice == WEIR_VFIO_AUTO || (choice == WEIR_VFIO_GROUP) == weir_vfio_by_group(vfio))
		return 0;
	return weir_fail(EBUSY,
			 "storage \"%s\": another storage of this process has %s open by way of %s, and not "
			 "as %s asks for here; write "
			 "vfio=%s in both",
			 source->request->uri->text, source->function.address, weir_vfio_way(vfio),
			 source->keys->choice == WEIR_VFIO_AUTO ? "gpu_memory" : "vfio=",
			 choice == WEIR_VFIO_GROUP ? "group" : "iommufd");
}

static int share_vfio(struct weir_transport_request *request, const struct weir_transport *base,
		      const struct weir_nvme_keys *keys, struct weir_transport **out)
{
	struct vfio_source vfio = { .request = request, .base = base, .keys = keys };
	char name[64];
	int error = check_memory(&vfio);

	if (!error)
		error = weir_pcie_read("", request->uri->text, keys->address, &vfio.function);
	if (error)
		return error;
	snprintf(name, sizeof(name), "NVMe controller %s", vfio.function.address);
	return weir_nvme_shared_open(request, base,
				     &(struct weir_nvme_source){ .key = vfio.function.address,
								 .name = name,
								 .of = &vfio,
								 .open = open_vfio,
								 .join = join_vfio },
				     out);
}

static int nvme_open(struct weir_transport_request *request, struct weir_transport **out)
{
	struct weir_transport base = { .ops = NULL };
	struct weir_nvme_keys keys;
	int error = take_keys(request->uri, &base, &keys);

	if (error)
		return error;
	return keys.owner == WEIR_NVME_OWNER_KERNEL ? weir_nvme_kernel_open(request, &base, &keys, out)
						    : share_vfio(request, &base, &keys, out);
}

const struct weir_transport_ops weir_transport_nvme = {
	.size = sizeof(struct weir_transport_ops),
	.scheme = "nvme",
	.open = nvme_open,
	.read64 = nvme_read64,
	.read32 = nvme_read32,
	.write64 = nvme_write64,
	.write32 = nvme_write32,
	.doorbell = nvme_doorbell,
	.restart = nvme_restart,
	.halt = nvme_halt,
	.stats = nvme_stats,
	.wanted = nvme_wanted,
	.give_way = nvme_give_way,
	.path = nvme_path,
	.close = nvme_close,
};
