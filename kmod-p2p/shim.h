/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a vendor's shim gives to weir_p2p: a small module of its own that pins memory of that vendor's GPUs.
 * It is apart because symbols it needs may cost it, and only it, the kernel's GPL-only symbols.
 */
#ifndef WEIR_P2P_SHIM_H
#define WEIR_P2P_SHIM_H

#include <linux/module.h>
#include <linux/pci.h>
#include <linux/types.h>

struct weir_p2p_shim;

/**
 * struct weir_p2p_extent - memory of a GPU that is contiguous in its BAR
 * @address: where, as the CPU sees it
 * @bytes: length
 */
struct weir_p2p_extent {
	phys_addr_t address;
	u64 bytes;
};

/**
 * struct weir_p2p_pin - memory of a GPU that is pinned
 * @shim: by whom; NULL if it is not
 * @extents: out of pin(): the shim's; where it lies, in order
 * @count: out of pin(): their number
 * @private: the shim's
 * @state: the core's; bit 0: the vendor's driver has taken it back, or it is given back
 */
struct weir_p2p_pin {
	const struct weir_p2p_shim *shim;
	const struct weir_p2p_extent *extents;
	u32 count;
	void *private;
	unsigned long state;
};

/**
 * struct weir_p2p_shim - a vendor's shim
 * @owner: THIS_MODULE
 * @name: of the vendor, for messages
 * @vendor: its PCI vendor number
 * @align: of addresses and lengths it can pin
 * @pin: pin [address, address + bytes) of the calling process's memory on @gpu; may sleep. Return: 0 or an
 *errno; weir_p2p_revoked() may come before it returns: what is pinned, but of no use, is not unpinned by it,
 *but left to unpin(), which follows a failure, too, if weir_p2p_pin.private is set
 * @flush: have @gpu see what others wrote to its memory until now; may sleep; NULL: it needs none, or there
 *is no such thing
 * @unpin: undo it, and return when weir_p2p_revoked() neither runs nor will be called; it may be called
 *meanwhile, but not if weir_p2p_revoked() came first
 */
struct weir_p2p_shim {
	struct module *owner;
	const char *name;
	u16 vendor;
	u64 align;
	int (*pin)(struct pci_dev *gpu, u64 address, u64 bytes, struct weir_p2p_pin *pin);
	void (*unpin)(struct weir_p2p_pin *pin);
	int (*flush)(struct pci_dev *gpu);
};

/**
 * weir_p2p_add_shim() - make a shim known
 * @shim: which; one per vendor
 * Return: 0, or -EEXIST.
 */
int weir_p2p_add_shim(const struct weir_p2p_shim *shim);

/**
 * weir_p2p_remove_shim() - forget a shim, from its module's exit: no pin of it is left then
 * @shim: which
 */
void weir_p2p_remove_shim(const struct weir_p2p_shim *shim);

/**
 * weir_p2p_revoked() - the vendor's driver takes memory back
 * @pin: which
 *
 * Called by the shim from the vendor's callback; sleeps, at most for the module's parameter revoke_s, and as
 * long as resetting a controller takes. When it returns nobody maps the memory and no I/O on it is in flight,
 * unless the process that registered it has kept pages (RDMA registration, fixed buffers) for revoke_s: it is
 * killed, and has them until it has ended. The core's reference to the shim's module goes meanwhile, so the
 * callback holds one of its own. Return: true: the core has forgotten @pin, and the shim is to free
 * what it has of it; false: unpin() was called, or is about to be, and frees it.
 */
bool weir_p2p_revoked(struct weir_p2p_pin *pin);

#endif
