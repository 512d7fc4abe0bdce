// SPDX-License-Identifier: GPL-2.0-only
/*
 * Vendors' shims: who pins memory of a GPU by its address. What they use is exported to all, since a vendor's
 * driver may cost its shim the symbols that are for the GPL alone.
 */
#include <linux/module.h>

#include "p2p.h"

static DEFINE_MUTEX(shims_lock);
static const struct weir_p2p_shim *shims[4];

int weir_p2p_add_shim(const struct weir_p2p_shim *shim)
{
	int i, error = -ENOSPC;

	mutex_lock(&shims_lock);
	for (i = ARRAY_SIZE(shims) - 1; i >= 0; i--)
		if (shims[i] && shims[i]->vendor == shim->vendor)
			error = -EEXIST;
	for (i = 0; error == -ENOSPC && i < ARRAY_SIZE(shims); i++)
		if (!shims[i]) {
			WRITE_ONCE(shims[i], shim);
			error = 0;
		}
	mutex_unlock(&shims_lock);
	return error;
}
EXPORT_SYMBOL(weir_p2p_add_shim);

void weir_p2p_remove_shim(const struct weir_p2p_shim *shim)
{
	int i;

	mutex_lock(&shims_lock);
	for (i = 0; i < ARRAY_SIZE(shims); i++)
		if (shims[i] == shim)
			WRITE_ONCE(shims[i], NULL);
	mutex_unlock(&shims_lock);
}
EXPORT_SYMBOL(weir_p2p_remove_shim);

/* A hint for WEIR_P2P_INFO. */
bool weir_shim_any(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(shims); i++)
		if (READ_ONCE(shims[i]))
			return true;
	return false;
}

/* The vendor's shim, which stays until module_put(). */
static const struct weir_p2p_shim *get_shim(u16 vendor)
{
	const struct weir_p2p_shim *shim = NULL;
	int i;

	mutex_lock(&shims_lock);
	for (i = 0; i < ARRAY_SIZE(shims); i++)
		if (shims[i] && shims[i]->vendor == vendor && try_module_get(shims[i]->owner))
			shim = shims[i];
	mutex_unlock(&shims_lock);
	return shim;
}

/* A vendor's shim pins multiples of that; 0: there is no such shim. */
u64 weir_shim_align(u16 vendor)
{
	const struct weir_p2p_shim *shim = get_shim(vendor);
	u64 align = 0;

	if (shim) {
		align = shim->align;
		module_put(shim->owner);
	}
	return align;
}

/* Vendors' drivers give numbers that are the kernel's own (ENOTSUPP, ERESTARTSYS), or not errnos at all. */
static int errno_of(int error)
{
	if (error == -ENOTSUPP)
		return -EOPNOTSUPP;
	if (error <= -ERESTARTSYS && error >= -ERESTART_RESTARTBLOCK)
		return -EINTR;
	return error < 0 && error >= -EHWPOISON ? error : -EIO;
}

/**
 * weir_shim_pin() - pin memory of the window's GPU
 * @file: who asks
 * @window: whose GPU
 * @address: the GPU's
 * @bytes: length
 * @pin: to be filled in; for weir_shim_release() also if this fails
 * Return: 0, or an errno.
 */
int weir_shim_pin(struct weir_file *file, struct weir_window *window, u64 address, u64 bytes,
		  struct weir_p2p_pin *pin)
{
	const struct weir_p2p_shim *shim = get_shim(window->pdev->vendor);
	int error;

	if (!shim)
		return weir_refuse(file, -EOPNOTSUPP, "no shim for PCI vendor 0x%04x is loaded",
				   window->pdev->vendor);
	if (!IS_ALIGNED(address | bytes, shim->align)) {
		module_put(shim->owner);
		return weir_refuse(file, -EINVAL,
				   "%llu bytes at 0x%llx: %s memory is pinned in multiples of %llu", bytes,
				   address, shim->name, shim->align);
	}
	error = shim->pin(window->pdev, address, bytes, pin);
	if (error)
		weir_refuse(file, errno_of(error), "%s's driver does not pin %llu bytes at 0x%llx",
			    shim->name, bytes, address);
	if (error && !pin->private)
		module_put(shim->owner);
	else
		pin->shim = shim;
	return error ? errno_of(error) : 0;
}

/**
 * weir_shim_release() - unpin, if anything is pinned, and the vendor's driver has not taken it back
 * @pin: which
 * Return: whether the caller goes on to own what @pin is in; else weir_p2p_revoked() does.
 */
bool weir_shim_release(struct weir_p2p_pin *pin)
{
	const struct weir_p2p_shim *shim = pin->shim;
	bool mine;

	if (!shim)
		return true;
	mine = !test_and_set_bit(0, &pin->state);
	if (mine)
		shim->unpin(pin);
	module_put(shim->owner);
	return mine;
}

int weir_flush(struct weir_file *file, struct weir_p2p_flush *arg)
{
	struct pci_dev *gpu = file->window->pdev;
	const struct weir_p2p_shim *shim;
	int error;

	if (arg->flags)
		return weir_refuse(file, -EINVAL, "flags 0x%x are not known", arg->flags);
	shim = get_shim(gpu->vendor);
	if (!shim)
		return weir_refuse(file, -EOPNOTSUPP, "no shim for PCI vendor 0x%04x is loaded", gpu->vendor);
	error = shim->flush ? shim->flush(gpu) : -EOPNOTSUPP;
	if (error)
		error = weir_refuse(file, errno_of(error),
				    shim->flush ? "%s's driver does not flush" : "%s's shim has no flush",
				    shim->name);
	module_put(shim->owner);
	return error;
}
