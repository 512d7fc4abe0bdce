// SPDX-License-Identifier: GPL-2.0-only
/*
 * A shim for the fake GPU, for tests: what the GPU calls address A lies in its BAR in another order, chunks
 * of 64 KiB with their places turned in pairs; addresses begin at 2^32. Writing to the parameter revoke takes
 * all pins back, as a vendor's driver does when a process frees memory.
 */
#include <linux/list.h>
#include <linux/slab.h>

#include "shim.h"

enum { BAR = 2, CHUNK = 64 << 10 };

#define FIRST (1ULL << 32)

struct pinned {
	struct list_head link;
	struct weir_p2p_pin *pin;
	bool revoking;
	struct weir_p2p_extent extents[];
};

static DEFINE_MUTEX(lock);
static LIST_HEAD(all);
static DECLARE_WAIT_QUEUE_HEAD(revoked);
static unsigned int pins;
static bool lie;
module_param(lie, bool, 0644);
MODULE_PARM_DESC(lie, "chunks are said to be where their neighbours are");
module_param(pins, uint, 0444);
MODULE_PARM_DESC(pins, "how many there are");

static int error;
module_param(error, int, 0644);
MODULE_PARM_DESC(error, "what pinning fails with, positive; 0: it does not");

static unsigned int flushes;
module_param(flushes, uint, 0444);
MODULE_PARM_DESC(flushes, "how often it was asked to flush");

static int flush(struct pci_dev *gpu)
{
	mutex_lock(&lock);
	flushes++;
	mutex_unlock(&lock);
	return 0;
}

static int pin(struct pci_dev *gpu, u64 address, u64 bytes, struct weir_p2p_pin *pin)
{
	u64 count = bytes / CHUNK, i, all_bytes = pci_resource_len(gpu, BAR);
	struct pinned *pinned;

	if (error)
		return -error;
	if (address < FIRST || address - FIRST >= all_bytes || bytes > all_bytes - (address - FIRST))
		return -EFAULT;
	pinned = kvzalloc(struct_size(pinned, extents, count), GFP_KERNEL);
	if (!pinned)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		u64 chunk = ((address - FIRST) / CHUNK + i) ^ !lie;

		pinned->extents[i].address = pci_resource_start(gpu, BAR) + chunk * CHUNK;
		pinned->extents[i].bytes = CHUNK;
	}
	pinned->pin = pin;
	pin->extents = pinned->extents;
	pin->count = count;
	pin->private = pinned;
	mutex_lock(&lock);
	list_add(&pinned->link, &all);
	pins++;
	mutex_unlock(&lock);
	return 0;
}

static void forget(struct pinned *pinned)
{
	mutex_lock(&lock);
	list_del(&pinned->link);
	pins--;
	mutex_unlock(&lock);
	kvfree(pinned);
	wake_up_all(&revoked);
}

static bool quiet(struct pinned *pinned)
{
	bool is;

	mutex_lock(&lock);
	is = !pinned->revoking;
	mutex_unlock(&lock);
	return is;
}

static void unpin(struct weir_p2p_pin *pin)
{
	struct pinned *pinned = pin->private;

	wait_event(revoked, quiet(pinned));
	forget(pinned);
}

static struct pinned *next_to_revoke(void)
{
	struct pinned *pinned;

	mutex_lock(&lock);
	pinned = list_first_entry_or_null(&all, struct pinned, link);
	if (pinned)
		pinned->revoking = true;
	mutex_unlock(&lock);
	return pinned;
}

static void not_revoking(struct pinned *pinned)
{
	mutex_lock(&lock);
	pinned->revoking = false;
	mutex_unlock(&lock);
	wake_up_all(&revoked);
}

/* One that is being unpinned at the same moment is its unpin()'s to forget. */
static int set_revoke(const char *text, const struct kernel_param *param)
{
	struct pinned *pinned = next_to_revoke();

	for (; pinned; pinned = next_to_revoke())
		if (weir_p2p_revoked(pinned->pin))
			forget(pinned);
		else
			not_revoking(pinned);
	return 0;
}

static const struct kernel_param_ops revoke_ops = { .set = set_revoke };
module_param_cb(revoke, &revoke_ops, NULL, 0200);
MODULE_PARM_DESC(revoke, "written: all pins are taken back");

static const struct weir_p2p_shim shim = {
	.owner = THIS_MODULE,
	.name = "fake",
	.vendor = 0x1af4,
	.align = CHUNK,
	.pin = pin,
	.unpin = unpin,
	.flush = flush,
};

static int __init begin(void)
{
	return weir_p2p_add_shim(&shim);
}

static void __exit end(void)
{
	weir_p2p_remove_shim(&shim);
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("A fake GPU's memory by its addresses, for tests");
MODULE_LICENSE("GPL");
