// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of AMD's GPUs, pinned through the peerdirect interface of amdgpu-dkms. Compiled in the tests,
 * against declarations of ours; never run. Its callback is known not to be called: a pin ends with the range,
 * at the latest with its file.
 */
#include <linux/device.h>
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/types.h>

#include <amd_rdma.h>

#include "shim.h"

static const struct amd_rdma_interface *rdma;

/**
 * struct pinned - a pin
 * @pin: the core's
 * @info: the driver's
 * @pid: whose memory
 * @extents: for the core
 */
struct pinned {
	struct weir_p2p_pin *pin;
	struct amd_p2p_info *info;
	struct pid *pid;
	struct weir_p2p_extent *extents;
};

static void pinned_free(struct pinned *pinned)
{
	put_pid(pinned->pid);
	kvfree(pinned->extents);
	kfree(pinned);
}

/* The core lets go of the module as soon as the range has ended, which is before this is through. */
static void on_free(void *data)
{
	struct pinned *pinned = data;

	__module_get(THIS_MODULE);
	if (weir_p2p_revoked(pinned->pin))
		pinned_free(pinned);
	module_put(THIS_MODULE);
}

/* What the driver gives are addresses for the GPU itself; where that has an IOMMU's, it knows what is behind.
 */
static phys_addr_t behind(struct pci_dev *gpu, dma_addr_t address)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&gpu->dev);

	return domain ? iommu_iova_to_phys(domain, address) : address;
}

static int set_extents(struct pci_dev *gpu, struct pinned *pinned)
{
	struct sg_table *table = pinned->info->pages;
	struct scatterlist *sg;
	unsigned int i;

	pinned->extents = kvcalloc(table->nents, sizeof(*pinned->extents), GFP_KERNEL_ACCOUNT);
	if (!pinned->extents)
		return -ENOMEM;
	for_each_sgtable_dma_sg(table, sg, i)
	{
		pinned->extents[i].address = behind(gpu, sg_dma_address(sg));
		pinned->extents[i].bytes = sg_dma_len(sg);
	}
	return 0;
}

static int pin(struct pci_dev *gpu, u64 address, u64 bytes, struct weir_p2p_pin *pin)
{
	struct pinned *pinned = kzalloc(sizeof(*pinned), GFP_KERNEL_ACCOUNT);
	int error;

	if (!pinned)
		return -ENOMEM;
	pinned->pin = pin;
	pinned->pid = get_task_pid(current, PIDTYPE_TGID);
	error = rdma->get_pages(address, bytes, pinned->pid, &gpu->dev, &pinned->info, on_free, pinned);
	if (error)
		goto no_pages;
	error = set_extents(gpu, pinned);
	if (error)
		goto no_extents;
	pin->extents = pinned->extents;
	pin->count = pinned->info->pages->nents; /* the core makes one of those that follow one another */
	pin->private = pinned;
	return 0;

no_extents:
	rdma->put_pages(&pinned->info);
no_pages:
	pinned_free(pinned);
	return error;
}

static void unpin(struct weir_p2p_pin *pin)
{
	struct pinned *pinned = pin->private;

	int error = rdma->put_pages(&pinned->info);

	if (error)
		pr_err("weir_p2p: AMD's driver does not take a pin back (%d)\n", error);
	pinned_free(pinned);
}

static const struct weir_p2p_shim shim = {
	.owner = THIS_MODULE,
	.name = "AMD",
	.vendor = 0x1002,
	.align = PAGE_SIZE,
	.pin = pin,
	.unpin = unpin,
};

static int __init begin(void)
{
	int error = amdkfd_query_rdma_interface(&rdma);

	return error ? error : weir_p2p_add_shim(&shim);
}

static void __exit end(void)
{
	weir_p2p_remove_shim(&shim);
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("weir_p2p: memory of AMD's GPUs by its addresses");
MODULE_AUTHOR("the weir authors");
MODULE_LICENSE("GPL");
