// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of NVIDIA's GPUs, pinned through nvidia_p2p_*. Compiled in the tests, against declarations of ours; never run.
 * Pins are persistent where the driver has those. Otherwise it takes memory back when its process frees it, by a callback in
 * which nothing but the page table is freed, and which nothing that put_pages() may wait for is held across.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>

#include <nv-p2p.h>

#include "nvidia.h"
#include "shim.h"

#define NVIDIA_PAGE (64ULL << 10)

/**
 * struct pinned - a pin
 * @pin: the core's
 * @address: the GPU's
 * @table: the driver's
 * @persistent: how it was pinned
 * @called: the driver's callback has run, and left the freeing to unpin()
 * @extents: for the core
 */
struct pinned {
	struct weir_p2p_pin *pin;
	u64 address;
	struct nvidia_p2p_page_table *table;
	bool persistent;
	struct completion called;
	struct weir_p2p_extent extents[];
};

/* The driver takes the memory back. */
static void on_free(void *data)
{
	struct pinned *pinned = data;

	if (weir_p2p_revoked(pinned->pin)) {
		nvidia_p2p_free_page_table(pinned->table);
		kvfree(pinned);
	} else {
		complete(&pinned->called);
	}
}

static int get_table(struct pinned *pinned, u64 bytes)
{
	pinned->persistent = !weir_nvidia_persistent_pin(pinned->address, bytes, &pinned->table);
	if (pinned->persistent)
		return 0;
	return nvidia_p2p_get_pages(0, 0, pinned->address, bytes, &pinned->table, on_free, pinned);
}

static void put_table(struct pinned *pinned)
{
	if (pinned->persistent) {
		weir_nvidia_persistent_unpin(pinned->address, pinned->table);
	} else if (nvidia_p2p_put_pages(0, 0, pinned->address, pinned->table)) {
		/* The driver was faster: its callback runs, or will. */
		wait_for_completion(&pinned->called);
		nvidia_p2p_free_page_table(pinned->table);
	}
}

static int check_table(const struct nvidia_p2p_page_table *table, u64 count)
{
	return table->page_size == NVIDIA_P2P_PAGE_SIZE_64KB && table->entries == count ? 0 : -EOPNOTSUPP;
}

static int pin(struct pci_dev *gpu, u64 address, u64 bytes, struct weir_p2p_pin *pin)
{
	u64 count = bytes / NVIDIA_PAGE, i;
	struct pinned *pinned = kvzalloc(struct_size(pinned, extents, count), GFP_KERNEL);
	int error;

	if (!pinned)
		return -ENOMEM;
	pinned->pin = pin;
	pinned->address = address;
	init_completion(&pinned->called);
	error = get_table(pinned, bytes);
	if (error)
		goto no_table;
	error = check_table(pinned->table, count);
	if (error)
		goto no_use;
	for (i = 0; i < count; i++) {
		pinned->extents[i].address = pinned->table->pages[i]->physical_address;
		pinned->extents[i].bytes = NVIDIA_PAGE;
	}
	pin->extents = pinned->extents;
	pin->count = count;
	pin->private = pinned;
	return 0;

no_use:
	put_table(pinned);
no_table:
	kvfree(pinned);
	return error;
}

static void unpin(struct weir_p2p_pin *pin)
{
	put_table(pin->private);
	kvfree(pin->private);
}

static const struct weir_p2p_shim shim = {
	.owner = THIS_MODULE,
	.name = "NVIDIA",
	.vendor = 0x10de,
	.align = NVIDIA_PAGE,
	.pin = pin,
	.unpin = unpin,
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
MODULE_DESCRIPTION("weir_p2p: memory of NVIDIA's GPUs by its addresses");
MODULE_AUTHOR("the weir authors");
MODULE_LICENSE("GPL");
