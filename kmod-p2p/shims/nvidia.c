// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of NVIDIA's GPUs, pinned through nvidia_p2p_*. Compiled in the tests, against declarations of ours;
 * never run. Pins are persistent where the driver has those. Otherwise it takes memory back when its process
 * frees it, by a callback in which nothing but the page table is freed, and which nothing that put_pages()
 * may wait for is held across. A pin that the driver neither takes nor calls back for is given up after a
 * while, with what belongs to it.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/types.h> /* the next one uses its types, and includes nothing */

#include <nv-p2p.h>

#include "nvidia.h"
#include "shim.h"

#define NVIDIA_PAGE (64ULL << 10)
/* How long the driver has for a callback which it says is under way. */
#define CALLBACK_S 30

/**
 * struct pinned - a pin
 * @pin: the core's
 * @address: the GPU's
 * @table: the driver's
 * @persistent: how it was pinned
 * @called: the driver's callback has run, and left the freeing to unpin()
 * @over: who comes second frees it: unpin(), having given up, or the callback after that
 * @extents: for the core: what follows one another is one
 */
struct pinned {
	struct weir_p2p_pin *pin;
	u64 address;
	struct nvidia_p2p_page_table *table;
	bool persistent;
	struct completion called;
	atomic_t over;
	struct weir_p2p_extent *extents;
};

static void pinned_free(struct pinned *pinned)
{
	kvfree(pinned->extents);
	kfree(pinned);
}

/*
 * The driver takes the memory back. Once unpin() has given up the core's pin is gone; the module stays then,
 * for this. A pin that was not handed to the core yet is taken back by weir_p2p_revoked() all the same, since
 * the core has its state. The core lets go of the module as soon as the range has ended, which is before this
 * is through.
 */
static void on_free(void *data)
{
	struct pinned *pinned = data;

	__module_get(THIS_MODULE);
	if (atomic_read_acquire(&pinned->over) || weir_p2p_revoked(pinned->pin)) {
		nvidia_p2p_free_page_table(pinned->table);
		pinned_free(pinned);
	} else {
		complete(&pinned->called);
	}
	module_put(THIS_MODULE);
}

static int get_table(struct pinned *pinned, u64 bytes)
{
	pinned->persistent = !weir_nvidia_persistent_pin(pinned->address, bytes, &pinned->table);
	if (pinned->persistent)
		return 0;
	return nvidia_p2p_get_pages(0, 0, pinned->address, bytes, &pinned->table, on_free, pinned);
}

/*
 * The driver refuses to have it back, and does not call: its memory and ours stay, and so does the module, in
 * case it does call. Return: whether it may be freed.
 */
static bool give_up(struct pinned *pinned, int error)
{
	pr_err("weir_p2p: NVIDIA's driver does not take a pin back (%d): it is left, with the memory at "
	       "0x%llx\n",
	       error, pinned->address);
	__module_get(THIS_MODULE);
	atomic_set_release(&pinned->over, 1); /* pairs with on_free() */
	return false;
}

/* Return: whether @pinned may be freed. */
static bool put_table(struct pinned *pinned)
{
	int error;

	if (pinned->persistent) {
		error = weir_nvidia_persistent_unpin(pinned->address, pinned->table);
		return error ? give_up(pinned, error) : true;
	}
	error = nvidia_p2p_put_pages(0, 0, pinned->address, pinned->table);
	if (!error)
		return true;
	/* The driver was faster: its callback runs, or will. Any other error ends, too. */
	if (!wait_for_completion_timeout(&pinned->called, CALLBACK_S * HZ))
		return give_up(pinned, error);
	nvidia_p2p_free_page_table(pinned->table);
	return true;
}

/* Its layout is the one that this was compiled with, and its pages are as many as were asked for. */
static int check_table(const struct nvidia_p2p_page_table *table, u64 count)
{
	if (!NVIDIA_P2P_PAGE_TABLE_VERSION_COMPATIBLE(table)) {
		pr_err("weir_p2p: NVIDIA's driver has page tables of version 0x%x, this is compiled for "
		       "0x%x: compile it for that driver\n",
		       table->version, NVIDIA_P2P_PAGE_TABLE_VERSION);
		return -EPROTO;
	}
	return table->page_size == NVIDIA_P2P_PAGE_SIZE_64KB && table->entries == count ? 0 : -EOPNOTSUPP;
}

static bool goes_on(const struct nvidia_p2p_page_table *table, u64 i)
{
	return i && table->pages[i - 1]->physical_address + NVIDIA_PAGE == table->pages[i]->physical_address;
}

static int set_extents(struct pinned *pinned, u32 *count)
{
	const struct nvidia_p2p_page_table *table = pinned->table;
	struct weir_p2p_extent *extent;
	u64 i;

	for (*count = 0, i = 0; i < table->entries; i++)
		*count += !goes_on(table, i);
	pinned->extents = kvcalloc(*count, sizeof(*pinned->extents), GFP_KERNEL_ACCOUNT);
	if (!pinned->extents)
		return -ENOMEM;
	for (extent = pinned->extents - 1, i = 0; i < table->entries; i++) {
		if (!goes_on(table, i))
			(++extent)->address = table->pages[i]->physical_address;
		extent->bytes += NVIDIA_PAGE;
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
	pinned->address = address;
	init_completion(&pinned->called);
	error = get_table(pinned, bytes);
	if (error) {
		pinned_free(pinned);
		return error;
	}
	pin->private = pinned; /* whatever follows, unpin() has it: the driver may take it back at any time */
	error = check_table(pinned->table, bytes / NVIDIA_PAGE);
	if (!error)
		error = set_extents(pinned, &pin->count);
	if (!error)
		pin->extents = pinned->extents;
	return error;
}

static void unpin(struct weir_p2p_pin *pin)
{
	struct pinned *pinned = pin->private;

	if (put_table(pinned))
		pinned_free(pinned);
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
