// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs whose rings lie in ranges of a window. Programs create and delete them through the admin queue
 * of the kernel's own NVMe driver (NVME_IOCTL_ADMIN_CMD); this file knows of them, so that no range is
 * anybody else's while a controller may still write there: a file that ends with queue pairs left has their
 * controllers reset first.
 *
 * Locks, outermost first: device_lock() of the GPU, that of the SSD, pairs_lock. Rings in an SSD's own memory
 * (CMB) are refused, so that no lock of an SSD is taken while that of another one, or its own, is held.
 * Neither a mapping's lock nor a reset is waited for under the last one.
 */
#include <linux/capability.h>
#include <linux/io.h>
#include <linux/security.h>
#include <linux/slab.h>

#include "p2p.h"
#include "queue.h"

#define PAIRS_MAX 4096
#define QID_MAX   65535
#define CAP_HIGH  4
#define DSTRD     0xf /* of CAP's higher half */

static DEFINE_MUTEX(pairs_lock);
static DEFINE_XARRAY_ALLOC1(pairs);
static u32 next_handle;
static DECLARE_WAIT_QUEUE_HEAD(pair_ended);

static void pair_free(struct kref *refs)
{
	struct weir_pair *pair = container_of(refs, struct weir_pair, refs);

	mutex_destroy(&pair->lock);
	pci_dev_put(pair->ssd);
	kfree(pair);
}

void weir_pair_put(struct weir_pair *pair)
{
	kref_put(&pair->refs, pair_free);
}

/**
 * weir_pair_get() - a queue pair of a file
 * @file: whose
 * @handle: its number
 * Return: with a reference; NULL if there is none, or it is coming to its end.
 */
struct weir_pair *weir_pair_get(struct weir_file *file, u32 handle)
{
	struct weir_pair *pair;

	mutex_lock(&pairs_lock);
	pair = xa_load(&pairs, handle);
	if (pair && (pair->file != file || pair->ending))
		pair = NULL;
	if (pair)
		kref_get(&pair->refs);
	mutex_unlock(&pairs_lock);
	return pair;
}

/* The controller is to know it no more: nothing but what has ended is freed by that. */
static void pair_end(struct weir_pair *pair)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(pair->rings); i++)
		if (pair->rings[i])
			weir_range_idle(pair->rings[i]);
	mutex_lock(&pairs_lock);
	xa_erase(&pairs, pair->handle);
	mutex_unlock(&pairs_lock);
	wake_up_all(&pair_ended);
	weir_pair_put(pair);
}

/* So that no queue of ours is left: by a reset, of which the function's driver is told; else nothing it does
 * reaches memory. */
static void stop_controller(struct pci_dev *ssd)
{
	int error = pci_reset_function_locked(ssd);

	if (!error) {
		dev_info(&ssd->dev,
			 "weir_p2p: reset, since a program left it with queue pairs in a GPU's memory\n");
		return;
	}
	pci_clear_master(ssd);
	dev_err(&ssd->dev,
		"weir_p2p: a program left it with queue pairs in a GPU's memory, and it cannot be reset "
		"(%d): it does no DMA any more\n",
		error);
}

/* One reset is enough for all of a controller's. */
static void stop_all(struct list_head *batch)
{
	struct weir_pair *pair, *other;

	list_for_each_entry(pair, batch, batch) weir_doorbell_zap(pair);
	list_for_each_entry(pair, batch, batch)
	{
		device_lock(&pair->ssd->dev);
		if (!pair->gone)
			stop_controller(pair->ssd);
		list_for_each_entry(other, batch, batch) if (other->ssd == pair->ssd) other->gone = true;
		device_unlock(&pair->ssd->dev);
	}
}

struct weir_window_of {
	const struct pci_dev *gpu;
	int bar;
};

typedef bool (*weir_pair_is)(const struct weir_pair *pair, const void *of);

static void take_batch(weir_pair_is is, const void *of, struct list_head *batch)
{
	struct weir_pair *pair;
	unsigned long handle;

	mutex_lock(&pairs_lock);
	xa_for_each(&pairs, handle, pair) if (!pair->ending && is(pair, of))
	{
		pair->ending = true;
		list_add_tail(&pair->batch, batch);
	}
	mutex_unlock(&pairs_lock);
}

/* Without pairs_lock, since it is a condition of wait_event(): what is in the array stays until xa_lock is
 * free. */
static bool any_left(weir_pair_is is, const void *of)
{
	struct weir_pair *pair;
	unsigned long handle;
	bool found = false;

	xa_lock(&pairs);
	xa_for_each(&pairs, handle, pair) found |= is(pair, of);
	xa_unlock(&pairs);
	return found;
}

/* None of those is left when it returns, whoever else ends some of them. */
static void end_all(weir_pair_is is, const void *of)
{
	struct weir_pair *pair, *next;
	LIST_HEAD(batch);

	take_batch(is, of, &batch);
	stop_all(&batch);
	list_for_each_entry_safe(pair, next, &batch, batch) pair_end(pair);
	wait_event(pair_ended, !any_left(is, of));
}

static bool is_of_file(const struct weir_pair *pair, const void *of)
{
	return pair->file == of;
}

static bool is_of_window(const struct weir_pair *pair, const void *of)
{
	const struct weir_window_of *window = of;

	return pair->window->pdev == window->gpu && (window->bar < 0 || pair->window->bar == window->bar);
}

static bool is_of_ssd(const struct weir_pair *pair, const void *of)
{
	return pair->ssd == of;
}

/**
 * weir_pairs_end() - a file ends, or a vendor's driver takes back memory of one of its ranges
 * @file: which; only compared with
 */
void weir_pairs_end(const struct weir_file *file)
{
	end_all(is_of_file, file);
}

/**
 * weir_pairs_leave_gpu() - a GPU's windows are about to end
 * @gpu: which; locked
 * @bar: of this one; all, if negative
 */
void weir_pairs_leave_gpu(const struct pci_dev *gpu, int bar)
{
	const struct weir_window_of window = { gpu, bar };

	end_all(is_of_window, &window);
}

/* One more of an SSD's whose doorbells are mapped, with a reference. */
static struct weir_pair *next_to_zap(const struct pci_dev *ssd)
{
	struct weir_pair *pair, *found = NULL;
	unsigned long handle;

	mutex_lock(&pairs_lock);
	xa_for_each(&pairs, handle, pair) if (is_of_ssd(pair, ssd) && !READ_ONCE(pair->zapped)) found = pair;
	if (found)
		kref_get(&found->refs);
	mutex_unlock(&pairs_lock);
	return found;
}

/**
 * weir_pairs_leave() - an SSD is about to lose its driver: nobody rings any more
 * @ssd: which; locked
 */
void weir_pairs_leave(const struct pci_dev *ssd)
{
	struct weir_pair *pair;

	while ((pair = next_to_zap(ssd))) {
		weir_doorbell_zap(pair);
		weir_pair_put(pair);
	}
}

/**
 * weir_pairs_gone() - an SSD has lost its driver, which has switched the controller off
 * @ssd: which; locked
 */
void weir_pairs_gone(const struct pci_dev *ssd)
{
	struct weir_pair *pair;
	unsigned long handle;

	mutex_lock(&pairs_lock);
	xa_for_each(&pairs, handle, pair) if (is_of_ssd(pair, ssd)) pair->gone = true;
	mutex_unlock(&pairs_lock);
}

/**
 * weir_pairs_any() - whether a file has queue pairs
 * @file: which
 * Return: whether; its ranges then stay.
 */
bool weir_pairs_any(const struct weir_file *file)
{
	return any_left(is_of_file, file);
}

/* A ring in a range of the file's, which does not end before the pair. Return: its address for the
 * controller, or 0. */
static u64 take_ring(struct weir_file *file, const struct weir_p2p_ring *ring, struct weir_range **taken)
{
	struct weir_range *range = weir_range_busy(file, ring->handle);
	u64 contiguous = 0, address = 0;

	if (!range) {
		weir_refuse(file, -ENOENT, "this file has no range %u for a ring", ring->handle);
		return 0;
	}
	*taken = range;
	if (ring->offset < range->bytes)
		address = page_to_phys(weir_range_page(range, ring->offset, &contiguous));
	if (!address || !ring->bytes || !IS_ALIGNED(ring->offset, PAGE_SIZE) || ring->bytes > contiguous) {
		weir_refuse(file, -EINVAL,
			    "a ring of %llu bytes from %llu in range %u: it begins with no page, is not all "
			    "in the range, or not contiguous",
			    ring->bytes, ring->offset, ring->handle);
		return 0;
	}
	return address;
}

/* CAP.DSTRD, and where the doorbells are by that. */
static int find_doorbells(struct weir_file *file, struct weir_pair *pair)
{
	u64 bytes = pci_resource_len(pair->ssd, 0), end;
	void __iomem *registers = ioremap(pci_resource_start(pair->ssd, 0), PAGE_SIZE);
	u32 high;

	if (!registers)
		return -ENOMEM;
	high = readl(registers + CAP_HIGH);
	iounmap(registers);
	if (high == U32_MAX)
		return weir_refuse(file, -ENODEV, "%s does not answer: its registers read as all ones",
				   pci_name(pair->ssd));
	pair->stride = 4u << (high & DSTRD);
	pair->doorbell = WEIR_DOORBELLS + 2ULL * pair->qid * pair->stride;
	end = pair->doorbell + 2ULL * pair->stride;
	if (end > bytes)
		return weir_refuse(file, -ERANGE, "%s has no doorbells for queue %u: BAR 0 has %llu bytes",
				   pci_name(pair->ssd), pair->qid, bytes);
	if (!PAGE_ALIGNED(pci_resource_start(pair->ssd, 0)) || PAGE_ALIGN(end) > bytes)
		return weir_refuse(
			file, -ERANGE,
			"BAR 0 of %s shares a page with something else, which would be mapped, too: "
			"pages are of %lu bytes",
			pci_name(pair->ssd), PAGE_SIZE);
	return 0;
}

static int check_reach(struct weir_file *file, struct pci_dev *ssd)
{
	struct weir_p2p_verdict verdict = { .gpu.bar = file->window->bar };

	if (!ssd->dev.driver)
		return weir_refuse(file, -ENODEV, "%s has no driver, through which its queues are created",
				   pci_name(ssd));
	if (!ssd->reset_methods[0])
		return weir_refuse(file, -EOPNOTSUPP,
				   "%s cannot be reset by itself, as a program that ends without deleting "
				   "its queues needs it to be",
				   pci_name(ssd));
	weir_judge(&verdict, file->window->pdev, ssd);
	if (verdict.iommu == WEIR_P2P_IOMMU_TRANSLATES)
		return weir_refuse(file, -EREMOTEIO,
				   "an IOMMU translates for %s: what maps a ring would end with the command "
				   "that creates its queue; have it pass through (iommu=pt), or use VFIO",
				   pci_name(ssd));
	if (verdict.verdict == WEIR_P2P_NO)
		return weir_refuse(file, -EREMOTEIO, "%s", verdict.text);
	return 0;
}

static int check_qid(struct weir_file *file, const struct weir_pair *new)
{
	struct weir_pair *pair;
	unsigned long handle;

	xa_for_each(&pairs, handle,
		    pair) if (pair->ssd == new->ssd &&
			      pair->qid == new->qid) return weir_refuse(file,
									pair->file == file ? -EEXIST : -EBUSY,
									"queue %u of %s is %s already",
									new->qid, pci_name(new->ssd),
									pair->file == file
										? "this file's"
										: "somebody else's");
	return 0;
}

/* Whoever takes memory back marks its range, then looks for pairs. */
static bool is_dying(const struct weir_pair *pair)
{
	return READ_ONCE(pair->window->leaving) || READ_ONCE(pair->rings[0]->dead) ||
	       READ_ONCE(pair->rings[1]->dead);
}

static int pair_show(struct weir_file *file, struct weir_pair *pair)
{
	int error;

	mutex_lock(&pairs_lock);
	error = is_dying(pair) ? -ENODEV : check_qid(file, pair);
	if (!error)
		error = xa_alloc_cyclic(&pairs, &pair->handle, pair, XA_LIMIT(1, WEIR_RANGES_MAX - 1),
					&next_handle, GFP_KERNEL_ACCOUNT);
	mutex_unlock(&pairs_lock);
	return min(error, 0);
}

static struct weir_pair *pair_alloc(struct weir_file *file, struct pci_dev *ssd, u32 qid)
{
	struct weir_pair *pair = kzalloc(sizeof(*pair), GFP_KERNEL_ACCOUNT);

	if (!pair)
		return NULL;
	kref_init(&pair->refs);
	mutex_init(&pair->lock);
	pair->file = file;
	pair->window = file->window;
	pair->mapping = file->mapping;
	pair->ssd = pci_dev_get(ssd);
	pair->qid = qid;
	return pair;
}

static int fill_in(struct weir_file *file, struct weir_pair *pair, struct weir_p2p_queue *arg)
{
	int error = find_doorbells(file, pair);

	if (error)
		return error;
	arg->sq_address = take_ring(file, &arg->sq, &pair->rings[0]);
	arg->cq_address = arg->sq_address ? take_ring(file, &arg->cq, &pair->rings[1]) : 0;
	if (!arg->cq_address)
		return pair->rings[arg->sq_address ? 1 : 0] ? -EINVAL : -ENOENT;
	error = pair_show(file, pair);
	if (error)
		return error;
	arg->handle = pair->handle;
	arg->doorbell_stride = pair->stride;
	arg->mmap_offset = WEIR_DOORBELL_OFFSETS | (u64)pair->handle << WEIR_RANGE_SHIFT;
	arg->mmap_bytes = weir_doorbell_bytes(pair);
	arg->doorbell = offset_in_page(pair->doorbell);
	return 0;
}

/* Under the SSD's lock: it keeps its driver. */
static int add_locked(struct weir_file *file, struct pci_dev *ssd, struct weir_p2p_queue *arg)
{
	struct weir_pair *pair;
	int error = check_reach(file, ssd), i;

	if (error)
		return error;
	pair = pair_alloc(file, ssd, arg->qid);
	if (!pair)
		return -ENOMEM;
	error = fill_in(file, pair, arg);
	if (!error)
		return 0;
	for (i = 0; i < ARRAY_SIZE(pair->rings); i++)
		if (pair->rings[i])
			weir_range_idle(pair->rings[i]);
	weir_pair_put(pair);
	return error;
}

int weir_queue_add(struct weir_file *file, struct weir_p2p_queue *arg)
{
	struct pci_dev *ssd;
	int error;

	if (!capable(CAP_SYS_RAWIO))
		return weir_refuse(file, -EPERM,
				   "a queue pair reaches all memory and every block: it needs CAP_SYS_RAWIO");
	if (security_locked_down(LOCKDOWN_PCI_ACCESS))
		return weir_refuse(file, -EPERM,
				   "the kernel is locked down: nobody but it has controllers do DMA");
	if (arg->flags || arg->qid < 1 || arg->qid > QID_MAX)
		return weir_refuse(file, -EINVAL, "flags 0x%x, queue %u: unknown, or not from 1 to %u",
				   arg->flags, arg->qid, QID_MAX);
	if (arg->reserved || arg->sq.reserved || arg->cq.reserved)
		return weir_refuse(file, -EINVAL, "what is reserved is not 0: 0x%llx, 0x%x, 0x%x",
				   arg->reserved, arg->sq.reserved, arg->cq.reserved);
	if (file->window->pdev->class == PCI_CLASS_STORAGE_EXPRESS)
		return weir_refuse(file, -EOPNOTSUPP,
				   "%s is an SSD: rings lie in a GPU's memory, not in a controller's",
				   pci_name(file->window->pdev));
	ssd = weir_find_ssd(file, &arg->ssd);
	if (IS_ERR(ssd))
		return PTR_ERR(ssd);
	device_lock(&ssd->dev);
	error = add_locked(file, ssd, arg);
	device_unlock(&ssd->dev);
	pci_dev_put(ssd);
	return error;
}

int weir_queue_remove(struct weir_file *file, u32 handle)
{
	struct weir_pair *pair;
	struct pci_dev *ssd;

	mutex_lock(&pairs_lock);
	pair = xa_load(&pairs, handle);
	if (pair && (pair->file != file || pair->ending))
		pair = NULL;
	if (pair)
		pair->ending = true;
	mutex_unlock(&pairs_lock);
	if (!pair)
		return weir_refuse(file, -ENOENT, "this file has no queue pair %u", handle);
	ssd = pci_dev_get(pair->ssd);
	device_lock(&ssd->dev);
	/* Its driver has begun to go, and may not be through: nothing is believed then. */
	if (pair->zapped && !pair->gone)
		stop_controller(ssd);
	weir_doorbell_zap(pair);
	pair_end(pair);
	device_unlock(&ssd->dev);
	pci_dev_put(ssd);
	return 0;
}

int weir_locate(struct weir_file *file, struct weir_p2p_locate *arg)
{
	struct weir_range *range;
	int error = 0;

	if (!capable(CAP_SYS_RAWIO))
		return weir_refuse(file, -EPERM, "bus addresses need CAP_SYS_RAWIO");
	range = weir_range_busy(file, arg->handle);
	if (!range)
		return weir_refuse(file, -ENOENT, "this file has no range %u", arg->handle);
	if (arg->offset >= range->bytes || !IS_ALIGNED(arg->offset, PAGE_SIZE))
		error = weir_refuse(file, -ERANGE,
				    "byte %llu is not in range %u, which has %llu, or begins no page",
				    arg->offset, arg->handle, range->bytes);
	else
		arg->address = page_to_phys(weir_range_page(range, arg->offset, &arg->bytes));
	weir_range_idle(range);
	return error;
}
