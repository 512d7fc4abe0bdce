// SPDX-License-Identifier: GPL-2.0-only
/*
 * Windows: claimed BARs, their nodes, and their end when the function loses its driver or goes. A window ends
 * in two steps: it loses its node and all mappings at once, and its pages when nobody has a reference to one
 * any more, which may be much later.
 */
#include <linux/slab.h>

#include "p2p.h"

/* How long the driver core is kept waiting, with the function's lock held, and in a removal that of all PCI.
 */
static unsigned int leave_s = 10;
module_param(leave_s, uint, 0644);
MODULE_PARM_DESC(leave_s, "seconds that the unbinding or removal of a GPU waits for users of its pages (10)");

struct workqueue_struct *weir_work; /* reapers, and drops of pages */
static DEFINE_MUTEX(weir_windows_lock);
static LIST_HEAD(weir_windows);
static LIST_HEAD(weir_lingering); /* ended, but for pages that somebody still has */
static u32 windows_count;         /* written under the lock; read without, as a figure */

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
		return ERR_PTR(weir_refuse(file, -EINVAL, "%04x:%02x:%02x.%x is no PCI address",
					   function->domain, function->bus, function->device,
					   function->function));
	pdev = pci_get_domain_bus_and_slot(function->domain, function->bus,
					   PCI_DEVFN(function->device, function->function));
	if (!pdev)
		return ERR_PTR(weir_refuse(file, -ENODEV, "there is no PCI function %04x:%02x:%02x.%x",
					   function->domain, function->bus, function->device,
					   function->function));
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
		weir_refuse(file, -ENXIO, "%s is no NVMe controller: its class is 0x%06x", pci_name(pdev),
			    pdev->class);
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
	if (bar > PCI_STD_RESOURCE_END || !(pci_resource_flags(pdev, bar) & IORESOURCE_MEM) ||
	    !pci_resource_len(pdev, bar))
		return weir_refuse(file, -ENXIO, "%s has no memory in BAR %d", pci_name(pdev), bar);
	if (pci_bus_address(pdev, bar) != pci_resource_start(pdev, bar))
		return weir_refuse(
			file, -ENXIO, "BAR %d of %s is at 0x%llx on the bus, but at 0x%llx for the CPU", bar,
			pci_name(pdev), (u64)pci_bus_address(pdev, bar), (u64)pci_resource_start(pdev, bar));
	return 0;
}

static struct weir_window *find_in(struct list_head *windows, const struct pci_dev *pdev, int bar)
{
	struct weir_window *window;

	list_for_each_entry(window, windows,
			    link) if (window->pdev == pdev && (bar < 0 || window->bar == bar)) return window;
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
		return weir_refuse(file, -EINVAL,
				   "%llu bytes from %llu are not in BAR %u of %s, which has %llu",
				   claim->bytes, claim->offset, claim->gpu.bar, pci_name(pdev), all);
	if (!IS_ALIGNED(first | claim->offset | claim->bytes, WEIR_WINDOW_ALIGN))
		return weir_refuse(file, -EINVAL,
				   "%llu bytes from %llu in BAR %u of %s, at 0x%llx, are no multiples of %lu",
				   claim->bytes, claim->offset, claim->gpu.bar, pci_name(pdev), first,
				   WEIR_WINDOW_ALIGN);
	return 0;
}

/* Nobody has a page of it: no range is left, and no node. */
static void window_drop(struct work_struct *work)
{
	struct weir_window *window = container_of(work, struct weir_window, drop);

	cancel_delayed_work_sync(&window->reaper);
	weir_pages_drop(window);
	mutex_lock(&weir_windows_lock);
	list_del(&window->link);
	mutex_unlock(&weir_windows_lock);
	dev_info(&window->pdev->dev, "weir_p2p: BAR %d given back\n", window->bar);
	complete_all(&window->dropped);
	weir_window_put(window);
}

/**
 * weir_window_live_put() - one fewer that keeps a window's pages
 * @window: which; not the caller's any more, unless it has a reference
 */
void weir_window_live_put(struct weir_window *window)
{
	if (atomic_dec_and_test(&window->live))
		queue_work(weir_work, &window->drop);
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
	atomic_set(&window->live, 1);
	INIT_WORK(&window->drop, window_drop);
	init_completion(&window->dropped);
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
	mutex_lock(&weir_windows_lock);
	list_add_tail(&window->link, &weir_windows);
	WRITE_ONCE(windows_count, windows_count + 1);
	mutex_unlock(&weir_windows_lock);
	dev_info(&pdev->dev, "weir_p2p: %llu bytes of BAR %d claimed\n", window->bytes, window->bar);
	return 0;

no_node:
	weir_pages_drop(window);
no_pages:
	weir_window_put(window);
	return error;
}

/* Its first step, under the function's lock; @window is among the lingering already. */
static void window_end(struct weir_window *window)
{
	misc_deregister(&window->misc);
	weir_ranges_end(window, NULL);
	weir_window_live_put(window);
}

/* Whether the BAR has a window, or still pages of one. */
static int check_unclaimed(struct weir_file *file, struct pci_dev *pdev, int bar)
{
	bool claimed, lingering;

	mutex_lock(&weir_windows_lock);
	claimed = find_in(&weir_windows, pdev, bar);
	lingering = find_in(&weir_lingering, pdev, bar);
	mutex_unlock(&weir_windows_lock);
	if (claimed)
		return weir_refuse(file, -EEXIST, "BAR %d of %s is claimed already", bar, pci_name(pdev));
	if (lingering)
		return weir_refuse(file, -EBUSY,
				   "BAR %d of %s was given back, but somebody still has pages of it: an RDMA "
				   "registration, a fixed buffer, a pipe",
				   bar, pci_name(pdev));
	return 0;
}

/* Else BUS_NOTIFY_REMOVED_DEVICE is under way, or was, and would not see a window of it. */
static bool is_on_bus(const struct pci_dev *pdev)
{
	struct pci_dev *found =
		pci_get_domain_bus_and_slot(pci_domain_nr(pdev->bus), pdev->bus->number, pdev->devfn);

	pci_dev_put(found);
	return found == pdev;
}

/* Under the function's lock. */
static int claim_locked(struct weir_file *file, struct pci_dev *pdev, struct weir_p2p_claim *claim)
{
	int error = weir_check_bar(file, pdev, claim->gpu.bar);

	if (!error)
		error = check_part(file, pdev, claim);
	if (error)
		return error;
	if (!is_on_bus(pdev))
		return weir_refuse(file, -ENODEV, "%s is being taken away", pci_name(pdev));
	error = check_unclaimed(file, pdev, claim->gpu.bar);
	if (error)
		return error;
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
	error = claim_locked(file, pdev, claim);
	device_unlock(&pdev->dev);
	pci_dev_put(pdev);
	return error;
}

/* Under the function's lock: it gets no others. */
static void mark_leaving(struct pci_dev *pdev, int bar)
{
	struct weir_window *window;

	mutex_lock(&weir_windows_lock);
	list_for_each_entry(window, &weir_windows,
			    link) if (window->pdev == pdev && (bar < 0 || window->bar == bar))
		WRITE_ONCE(window->leaving, true);
	mutex_unlock(&weir_windows_lock);
}

/* One more to be ended, which is among the lingering from then on. */
static struct weir_window *next_to_end(struct pci_dev *pdev, int bar)
{
	struct weir_window *window;

	mutex_lock(&weir_windows_lock);
	window = find_in(&weir_windows, pdev, bar);
	if (window) {
		list_move_tail(&window->link, &weir_lingering);
		WRITE_ONCE(windows_count, windows_count - 1);
	}
	mutex_unlock(&weir_windows_lock);
	return window;
}

/* End a function's window of that BAR, all of them if negative; under its lock. Return: how many; their pages
 * linger. */
static int end_windows(struct pci_dev *pdev, int bar)
{
	struct weir_window *window;
	int count = 0;

	mark_leaving(pdev, bar);
	weir_pairs_leave_gpu(pdev, bar);
	for (; (window = next_to_end(pdev, bar)); count++)
		window_end(window);
	return count;
}

/* One of a function's whose pages somebody has, with a reference; bar: negative: of any BAR. */
static struct weir_window *any_lingering(const struct pci_dev *pdev, int bar)
{
	struct weir_window *window;

	mutex_lock(&weir_windows_lock);
	window = find_in(&weir_lingering, pdev, bar);
	if (window)
		weir_window_get(window);
	mutex_unlock(&weir_windows_lock);
	return window;
}

/* Until nobody has pages of the function's ended windows. Return: 0; -EINTR: a signal came; no other lock of
 * ours is held. */
static int wait_lingering(struct pci_dev *pdev, int bar)
{
	struct weir_window *window;
	long left = 1;

	while (left >= 0 && (window = any_lingering(pdev, bar))) {
		left = wait_for_completion_interruptible_timeout(&window->dropped, 10 * HZ);
		if (!left)
			dev_warn(&pdev->dev, "weir_p2p: pages of BAR %d are still somebody's: %d ranges\n",
				 window->bar, atomic_read(&window->live));
		weir_window_put(window);
	}
	return left < 0 ? -EINTR : 0;
}

/*
 * The same, for the driver core, which has the function's lock, and in a removal that of all PCI: not for
 * longer than leave_s. Pages that are somebody's then stay so, and their DMA goes where the BAR was: before
 * another driver comes wait_for_driver() waits for them.
 */
static void wait_leave_s(struct pci_dev *pdev)
{
	unsigned long end = jiffies + READ_ONCE(leave_s) * HZ;
	struct weir_window *window;
	long left = 1;

	while (left > 0 && (window = any_lingering(pdev, -1))) {
		left = max_t(long, end - jiffies, 1);
		left = wait_for_completion_timeout(&window->dropped, left);
		if (!left)
			dev_err(&pdev->dev,
				"weir_p2p: BAR %d goes while somebody has pages of it (an RDMA registration, "
				"a fixed buffer, a pipe): DMA of theirs still goes there\n",
				window->bar);
		weir_window_put(window);
	}
}

/* Its memory is to be another driver's: only the function's own lock is held, and no signal ends it. */
static void wait_for_driver(struct pci_dev *pdev)
{
	struct weir_window *window;

	while ((window = any_lingering(pdev, -1))) {
		if (!wait_for_completion_timeout(&window->dropped, 10 * HZ))
			dev_warn(&pdev->dev, "weir_p2p: no driver before nobody has pages of BAR %d\n",
				 window->bar);
		weir_window_put(window);
	}
}

static bool lingers(const struct pci_dev *pdev, int bar)
{
	struct weir_window *window = any_lingering(pdev, bar);

	if (window)
		weir_window_put(window);
	return window;
}

int weir_unclaim(struct weir_file *file, struct weir_p2p_claim *claim)
{
	struct pci_dev *pdev;
	int count, error = 0;

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
	if (!count && !lingers(pdev, claim->gpu.bar))
		error = weir_refuse(file, -ENOENT, "BAR %u of %s is not claimed", claim->gpu.bar,
				    pci_name(pdev));
	else if (wait_lingering(pdev, claim->gpu.bar))
		error = weir_refuse(file, -EINTR,
				    "BAR %u of %s is given back, but somebody still has pages of it",
				    claim->gpu.bar, pci_name(pdev));
	pci_dev_put(pdev);
	return error;
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

	return address >= first && address - first < window->bytes &&
	       bytes <= window->bytes - (address - first);
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
	list_for_each_entry(window, &weir_windows, link) if (weir_window_has(window, address, bytes)) found =
		window;
	if (found) {
		weir_window_get(found);
		atomic_inc(&found->live);
	}
	mutex_unlock(&weir_windows_lock);
	return found;
}

void weir_window_release(struct weir_window *window)
{
	weir_window_live_put(window);
	weir_window_put(window);
}

/* The function's driver is about to come or to go, or the function to go, before its BARs are anybody else's;
 * under its lock. */
static void leave(struct pci_dev *pdev)
{
	weir_imports_leave(pdev);
	weir_pairs_leave(pdev);
	end_windows(pdev, -1);
}

/* The driver core has the function's lock where its driver comes or goes, but not where it goes itself. */
static int on_bus(struct notifier_block *block, unsigned long event, void *data)
{
	struct pci_dev *pdev = to_pci_dev(data);

	switch (event) {
	case BUS_NOTIFY_BIND_DRIVER: /* who registered parts by offset did so because there was none */
		leave(pdev);
		wait_for_driver(pdev);
		break;
	case BUS_NOTIFY_UNBIND_DRIVER:
		leave(pdev);
		wait_leave_s(pdev);
		break;
	case BUS_NOTIFY_UNBOUND_DRIVER: weir_pairs_gone(pdev); break;
	case BUS_NOTIFY_DEL_DEVICE:
	case BUS_NOTIFY_REMOVED_DEVICE: /* again, for what was claimed in between */
		device_lock(&pdev->dev);
		leave(pdev);
		if (event == BUS_NOTIFY_REMOVED_DEVICE)
			weir_pairs_gone(pdev);
		device_unlock(&pdev->dev);
		wait_leave_s(pdev);
	}
	return NOTIFY_DONE;
}

static struct notifier_block bus_notifier = { .notifier_call = on_bus };

int weir_windows_begin(void)
{
	int error;

	weir_work = alloc_workqueue("weir_p2p", 0, 0);
	if (!weir_work)
		return -ENOMEM;
	error = bus_register_notifier(&pci_bus_type, &bus_notifier);
	if (error)
		destroy_workqueue(weir_work);
	return error;
}

/* The function of some window of that list, with a reference. */
static struct pci_dev *any_of(struct list_head *windows)
{
	struct weir_window *window;
	struct pci_dev *pdev = NULL;

	mutex_lock(&weir_windows_lock);
	window = list_first_entry_or_null(windows, struct weir_window, link);
	if (window)
		pdev = pci_dev_get(window->pdev);
	mutex_unlock(&weir_windows_lock);
	return pdev;
}

void weir_windows_end(void)
{
	struct pci_dev *pdev;

	while ((pdev = any_of(&weir_windows))) {
		device_lock(&pdev->dev);
		end_windows(pdev, -1);
		device_unlock(&pdev->dev);
		pci_dev_put(pdev);
	}
	while ((pdev = any_of(&weir_lingering))) {
		wait_for_driver(pdev);
		pci_dev_put(pdev);
	}
	bus_unregister_notifier(&pci_bus_type, &bus_notifier);
	destroy_workqueue(weir_work); /* window_drop() is through then */
}
