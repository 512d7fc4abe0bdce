// SPDX-License-Identifier: GPL-2.0-only
/* Windows: claimed BARs, their nodes, and their end when the function loses its driver or goes. */
#include <linux/slab.h>

#include "p2p.h"

static DEFINE_MUTEX(weir_windows_lock);
static LIST_HEAD(weir_windows);
static u32 windows_count; /* written under the lock; read without, as a figure */

u32 weir_windows_count(void)
{
	return READ_ONCE(windows_count);
}

void weir_window_get(struct weir_window *window)
{
	kref_get(&window->refs);
}

static void window_free(struct kref *refs)
{
	struct weir_window *window = container_of(refs, struct weir_window, refs);

	xa_destroy(&window->ranges);
	pci_dev_put(window->pdev);
	kfree(window);
}

void weir_window_put(struct weir_window *window)
{
	kref_put(&window->refs, window_free);
}

/**
 * weir_find() - a PCI function
 * @file: who asks
 * @function: which
 * Return: with a reference; or an error.
 */
struct pci_dev *weir_find(struct weir_file *file, const struct weir_p2p_function *function)
{
	struct pci_dev *pdev;

	if (function->device > 31 || function->function > 7 || function->domain > INT_MAX)
		return ERR_PTR(weir_refuse(file, -EINVAL, "%04x:%02x:%02x.%x is no PCI address", function->domain,
					   function->bus, function->device, function->function));
	pdev = pci_get_domain_bus_and_slot(function->domain, function->bus,
					   PCI_DEVFN(function->device, function->function));
	if (!pdev)
		return ERR_PTR(weir_refuse(file, -ENODEV, "there is no PCI function %04x:%02x:%02x.%x", function->domain,
					   function->bus, function->device, function->function));
	return pdev;
}

/**
 * weir_find_ssd() - a PCI function that is an NVMe controller
 * @file: who asks
 * @function: which
 * Return: with a reference; or an error.
 */
struct pci_dev *weir_find_ssd(struct weir_file *file, const struct weir_p2p_function *function)
{
	struct pci_dev *pdev = weir_find(file, function);

	if (!IS_ERR(pdev) && pdev->class != PCI_CLASS_STORAGE_EXPRESS) {
		weir_refuse(file, -ENXIO, "%s is no NVMe controller: its class is 0x%06x", pci_name(pdev), pdev->class);
		pci_dev_put(pdev);
		return ERR_PTR(-ENXIO);
	}
	return pdev;
}

/**
 * weir_check_bar() - whether a BAR can be what SSDs reach
 * @file: who asks
 * @pdev: the function
 * @bar: its number
 * Return: 0, or -ENXIO.
 */
int weir_check_bar(struct weir_file *file, struct pci_dev *pdev, int bar)
{
	if (bar > PCI_STD_RESOURCE_END || !(pci_resource_flags(pdev, bar) & IORESOURCE_MEM) || !pci_resource_len(pdev, bar))
		return weir_refuse(file, -ENXIO, "%s has no memory in BAR %d", pci_name(pdev), bar);
	if (pci_bus_address(pdev, bar) != pci_resource_start(pdev, bar))
		return weir_refuse(file, -ENXIO, "BAR %d of %s is at 0x%llx on the bus, but at 0x%llx for the CPU", bar,
				   pci_name(pdev), (u64)pci_bus_address(pdev, bar), (u64)pci_resource_start(pdev, bar));
	return 0;
}

static struct weir_window *find_window(struct pci_dev *pdev, int bar)
{
	struct weir_window *window;

	list_for_each_entry(window, &weir_windows, link)
		if (window->pdev == pdev && (bar < 0 || window->bar == bar))
			return window;
	return NULL;
}

/* The part of the BAR that is asked for; @claim's length is then that of it. */
static int check_part(struct weir_file *file, struct pci_dev *pdev, struct weir_p2p_claim *claim)
{
	u64 all = pci_resource_len(pdev, claim->gpu.bar);
	u64 first = pci_resource_start(pdev, claim->gpu.bar);

	if (claim->flags)
		return weir_refuse(file, -EINVAL, "flags 0x%x are not known", claim->flags);
	if (!claim->bytes && claim->offset < all)
		claim->bytes = all - claim->offset;
	if (!claim->bytes || claim->offset >= all || claim->bytes > all - claim->offset)
		return weir_refuse(file, -EINVAL, "%llu bytes from %llu are not in BAR %u of %s, which has %llu", claim->bytes,
				   claim->offset, claim->gpu.bar, pci_name(pdev), all);
	if (!IS_ALIGNED(first | claim->offset | claim->bytes, WEIR_WINDOW_ALIGN))
		return weir_refuse(file, -EINVAL, "%llu bytes from %llu in BAR %u of %s, at 0x%llx, are no multiples of %lu",
				   claim->bytes, claim->offset, claim->gpu.bar, pci_name(pdev), first, WEIR_WINDOW_ALIGN);
	return 0;
}

static struct weir_window *window_alloc(struct pci_dev *pdev, const struct weir_p2p_claim *claim)
{
	struct weir_window *window = kzalloc(sizeof(*window), GFP_KERNEL);

	if (!window)
		return NULL;
	kref_init(&window->refs);
	window->pdev = pci_dev_get(pdev);
	window->bar = claim->gpu.bar;
	window->offset = claim->offset;
	window->bytes = claim->bytes;
	init_rwsem(&window->lock);
	xa_init_flags(&window->ranges, XA_FLAGS_ALLOC1);
	window->taken = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&window->dying);
	INIT_DELAYED_WORK(&window->reaper, weir_reap);
	init_waitqueue_head(&window->reaped);
	atomic_set(&window->live, 0);
	return window;
}

static int make_node(struct weir_window *window)
{
	snprintf(window->name, sizeof(window->name), "weir_p2p/%s-%d", pci_name(window->pdev), window->bar);
	window->misc.minor = MISC_DYNAMIC_MINOR;
	window->misc.name = window->name + strlen("weir_p2p/");
	window->misc.nodename = window->name;
	window->misc.fops = &weir_window_fops;
	window->misc.parent = &window->pdev->dev;
	window->misc.mode = 0600;
	return misc_register(&window->misc);
}

static int window_make(struct weir_file *file, struct pci_dev *pdev, const struct weir_p2p_claim *claim)
{
	struct weir_window *window = window_alloc(pdev, claim);
	int error;

	if (!window)
		return -ENOMEM;
	error = weir_pages_make(file, window);
	if (error)
		goto no_pages;
	error = make_node(window);
	if (error)
		goto no_node;
	list_add_tail(&window->link, &weir_windows);
	WRITE_ONCE(windows_count, windows_count + 1);
	dev_info(&pdev->dev, "weir_p2p: %llu bytes of BAR %d claimed\n", window->bytes, window->bar);
	return 0;

no_node:
	weir_pages_drop(window);
no_pages:
	weir_window_put(window);
	return error;
}

/* Under the lock of the function and that of windows: nobody has the pages when it returns. */
static void window_end(struct weir_window *window)
{
	list_del(&window->link);
	WRITE_ONCE(windows_count, windows_count - 1);
	misc_deregister(&window->misc);
	weir_ranges_end(window, NULL);
	weir_ranges_wait(window);
	cancel_delayed_work_sync(&window->reaper);
	weir_pages_drop(window);
	dev_info(&window->pdev->dev, "weir_p2p: BAR %d given back\n", window->bar);
	weir_window_put(window);
}

static int claim_locked(struct weir_file *file, struct pci_dev *pdev, struct weir_p2p_claim *claim)
{
	int error = weir_check_bar(file, pdev, claim->gpu.bar);

	if (!error)
		error = check_part(file, pdev, claim);
	if (error)
		return error;
	if (!device_is_registered(&pdev->dev))
		return weir_refuse(file, -ENODEV, "%s is being taken away", pci_name(pdev));
	if (find_window(pdev, claim->gpu.bar))
		return weir_refuse(file, -EEXIST, "BAR %u of %s is claimed already", claim->gpu.bar, pci_name(pdev));
	return window_make(file, pdev, claim);
}

int weir_claim(struct weir_file *file, struct weir_p2p_claim *claim)
{
	struct pci_dev *pdev;
	int error;

	if (!capable(CAP_SYS_ADMIN))
		return weir_refuse(file, -EPERM, "claiming a BAR needs CAP_SYS_ADMIN");
	pdev = weir_find(file, &claim->gpu);
	if (IS_ERR(pdev))
		return PTR_ERR(pdev);
	device_lock(&pdev->dev);
	mutex_lock(&weir_windows_lock);
	error = claim_locked(file, pdev, claim);
	mutex_unlock(&weir_windows_lock);
	device_unlock(&pdev->dev);
	pci_dev_put(pdev);
	return error;
}

/* Under the function's lock: it gets no others. */
static void mark_leaving(struct pci_dev *pdev, int bar)
{
	struct weir_window *window;

	mutex_lock(&weir_windows_lock);
	list_for_each_entry(window, &weir_windows, link)
		if (window->pdev == pdev && (bar < 0 || window->bar == bar))
			WRITE_ONCE(window->leaving, true);
	mutex_unlock(&weir_windows_lock);
}

/* End a function's window of that BAR, all of them if negative. Return: how many there were. */
static int end_windows(struct pci_dev *pdev, int bar)
{
	struct weir_window *window;
	int count = 0;

	mark_leaving(pdev, bar);
	weir_pairs_leave_gpu(pdev, bar);
	mutex_lock(&weir_windows_lock);
	while ((window = find_window(pdev, bar))) {
		window_end(window);
		count++;
	}
	mutex_unlock(&weir_windows_lock);
	return count;
}

int weir_unclaim(struct weir_file *file, struct weir_p2p_claim *claim)
{
	struct pci_dev *pdev;
	int count;

	if (!capable(CAP_SYS_ADMIN))
		return weir_refuse(file, -EPERM, "giving back a BAR needs CAP_SYS_ADMIN");
	if (claim->flags)
		return weir_refuse(file, -EINVAL, "flags 0x%x are not known", claim->flags);
	pdev = weir_find(file, &claim->gpu);
	if (IS_ERR(pdev))
		return PTR_ERR(pdev);
	device_lock(&pdev->dev);
	count = end_windows(pdev, claim->gpu.bar);
	device_unlock(&pdev->dev);
	if (!count)
		weir_refuse(file, -ENOENT, "BAR %u of %s is not claimed", claim->gpu.bar, pci_name(pdev));
	pci_dev_put(pdev);
	return count ? 0 : -ENOENT;
}

/**
 * weir_window_has() - whether memory lies in a window
 * @window: which
 * @address: as the CPU sees it
 * @bytes: of it
 * Return: whether all of it does.
 */
bool weir_window_has(const struct weir_window *window, phys_addr_t address, u64 bytes)
{
	phys_addr_t first = page_to_phys(window->first);

	return address >= first && address - first < window->bytes && bytes <= window->bytes - (address - first);
}

/**
 * weir_window_hold() - the window that memory lies in, which is not to end
 * @address: as the CPU sees it
 * @bytes: of it
 * Return: to be given to weir_window_release(); NULL if it is not all in one window.
 */
struct weir_window *weir_window_hold(phys_addr_t address, u64 bytes)
{
	struct weir_window *window, *found = NULL;

	mutex_lock(&weir_windows_lock);
	list_for_each_entry(window, &weir_windows, link)
		if (weir_window_has(window, address, bytes))
			found = window;
	if (found) {
		weir_window_get(found);
		atomic_inc(&found->live);
	}
	mutex_unlock(&weir_windows_lock);
	return found;
}

void weir_window_release(struct weir_window *window)
{
	atomic_dec(&window->live);
	wake_up_all(&window->reaped);
	weir_window_put(window);
}

/* The function's driver is about to come or to go, or the function to go: under its lock, before its BARs are anybody else's. */
static int on_bus(struct notifier_block *block, unsigned long event, void *data)
{
	switch (event) {
	case BUS_NOTIFY_BIND_DRIVER: /* who registered parts by offset did so because there was none */
	case BUS_NOTIFY_UNBIND_DRIVER:
	case BUS_NOTIFY_DEL_DEVICE:
	case BUS_NOTIFY_REMOVED_DEVICE: /* again, for what was claimed in between */
		weir_imports_leave(to_pci_dev(data));
		weir_pairs_leave(to_pci_dev(data));
		end_windows(to_pci_dev(data), -1);
	}
	if (event == BUS_NOTIFY_UNBOUND_DRIVER || event == BUS_NOTIFY_REMOVED_DEVICE)
		weir_pairs_gone(to_pci_dev(data));
	return NOTIFY_DONE;
}

static struct notifier_block bus_notifier = { .notifier_call = on_bus };

int weir_windows_begin(void)
{
	return bus_register_notifier(&pci_bus_type, &bus_notifier);
}

static struct pci_dev *any_claimed(void)
{
	struct weir_window *window;
	struct pci_dev *pdev = NULL;

	mutex_lock(&weir_windows_lock);
	window = list_first_entry_or_null(&weir_windows, struct weir_window, link);
	if (window)
		pdev = pci_dev_get(window->pdev);
	mutex_unlock(&weir_windows_lock);
	return pdev;
}

void weir_windows_end(void)
{
	struct pci_dev *pdev;

	while ((pdev = any_claimed())) {
		device_lock(&pdev->dev);
		end_windows(pdev, -1);
		device_unlock(&pdev->dev);
		pci_dev_put(pdev);
	}
	bus_unregister_notifier(&pci_bus_type, &bus_notifier);
}
