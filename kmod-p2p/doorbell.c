// SPDX-License-Identifier: GPL-2.0-only
/*
 * Doorbells of queue pairs, mapped: the page of an NVMe function's BAR 0 that has them, which other queues'
 * lie in, too. All of it is there from mmap() on, since a GPU's driver looks at it, not through faults. Once
 * taken away it gives SIGBUS.
 */
#include <linux/capability.h>
#include <linux/sched/mm.h>

#include "p2p.h"
#include "queue.h"

static u64 first_page(const struct weir_pair *pair)
{
	return pair->doorbell & PAGE_MASK;
}

/**
 * weir_doorbell_bytes() - how much is mapped for both doorbells
 * @pair: of which queue pair
 * Return: whole pages.
 */
u64 weir_doorbell_bytes(const struct weir_pair *pair)
{
	return PAGE_ALIGN(pair->doorbell + 2 * pair->stride) - first_page(pair);
}

static void on_open(struct vm_area_struct *vma)
{
	struct weir_pair *pair = vma->vm_private_data;

	kref_get(&pair->refs);
	mutex_lock(&pair->lock);
	pair->maps++;
	mutex_unlock(&pair->lock);
}

static void on_close(struct vm_area_struct *vma)
{
	struct weir_pair *pair = vma->vm_private_data;
	struct mm_struct *mm = NULL;

	mutex_lock(&pair->lock);
	if (!--pair->maps)
		swap(mm, pair->mm);
	mutex_unlock(&pair->lock);
	if (mm)
		mmdrop(mm);
	weir_pair_put(pair);
}

/* A part of it would be a mapping of its own. */
static int on_split(struct vm_area_struct *vma, unsigned long address)
{
	return -EINVAL;
}

static int on_move(struct vm_area_struct *vma)
{
	return -EINVAL;
}

/* All of it was there at first: it was taken away. */
static vm_fault_t on_fault(struct vm_fault *vmf)
{
	return VM_FAULT_SIGBUS;
}

static const struct vm_operations_struct doorbell_vm_ops = {
	.open = on_open,
	.close = on_close,
	.may_split = on_split,
	.mremap = on_move,
	.fault = on_fault,
};

/**
 * weir_doorbell_zap() - take the mapping away, and give out none any more
 * @pair: whose
 *
 * Once the lock of its memory was held, an mmap() that came before is where unmap_mapping_range() looks.
 */
void weir_doorbell_zap(struct weir_pair *pair)
{
	struct mm_struct *mm;

	mutex_lock(&pair->lock);
	WRITE_ONCE(pair->zapped, true);
	mm = pair->mm;
	if (mm && !mmget_not_zero(mm))
		mm = NULL;
	mutex_unlock(&pair->lock);
	if (!mm)
		return;
	mmap_read_lock(mm);
	mmap_read_unlock(mm);
	unmap_mapping_range(pair->mapping, WEIR_DOORBELL_OFFSETS | (loff_t)pair->handle << WEIR_RANGE_SHIFT,
			    weir_doorbell_bytes(pair), 1);
	mmput_async(mm);
}

static int check_map(struct weir_file *file, struct weir_pair *pair, struct vm_area_struct *vma)
{
	u64 bytes = vma->vm_end - vma->vm_start;

	if (!capable(CAP_SYS_RAWIO))
		return weir_refuse(
			file, -EPERM,
			"a doorbell page rings all queues that have theirs there: it needs CAP_SYS_RAWIO");
	if (bytes != weir_doorbell_bytes(pair) ||
	    vma->vm_pgoff & ((1UL << (WEIR_RANGE_SHIFT - PAGE_SHIFT)) - 1))
		return weir_refuse(file, -EINVAL, "doorbells of queue %u are mapped as a whole: %llu bytes",
				   pair->qid, weir_doorbell_bytes(pair));
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC)
		return weir_refuse(file, -EINVAL,
				   "doorbells are mapped with MAP_SHARED, and without PROT_EXEC");
	if (pair->zapped)
		return weir_refuse(file, -ENODEV, "%s is gone", pci_name(pair->ssd));
	if (pair->mm)
		return weir_refuse(file, -EBUSY, "doorbells of queue %u are mapped already", pair->qid);
	return 0;
}

static int map_locked(struct weir_file *file, struct weir_pair *pair, struct vm_area_struct *vma)
{
	int error = check_map(file, pair, vma);

	if (error)
		return error;
	vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
	vm_flags_clear(vma, VM_MAYEXEC); /* nor by mprotect() */
	error = io_remap_pfn_range(vma, vma->vm_start,
				   PHYS_PFN(pci_resource_start(pair->ssd, 0) + first_page(pair)),
				   vma->vm_end - vma->vm_start, vma->vm_page_prot);
	if (error)
		return error;
	kref_get(&pair->refs);
	mmgrab(vma->vm_mm);
	pair->mm = vma->vm_mm;
	pair->maps = 1;
	vma->vm_private_data = pair;
	vma->vm_ops = &doorbell_vm_ops;
	return 0;
}

/**
 * weir_doorbell_map() - map doorbells
 * @file: whose
 * @vma: the mapping; its offset tells of which queue pair
 * Return: 0, or an errno.
 */
int weir_doorbell_map(struct weir_file *file, struct vm_area_struct *vma)
{
	u64 offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) & ~WEIR_DOORBELL_OFFSETS;
	struct weir_pair *pair = weir_pair_get(file, offset >> WEIR_RANGE_SHIFT);
	int error;

	if (!pair)
		return weir_refuse(file, -ENOENT, "this file has no queue pair under this offset");
	mutex_lock(&pair->lock);
	error = map_locked(file, pair, vma);
	mutex_unlock(&pair->lock);
	weir_pair_put(pair);
	return error;
}

bool weir_doorbell_meant(const struct vm_area_struct *vma)
{
	return vma->vm_pgoff & (WEIR_DOORBELL_OFFSETS >> PAGE_SHIFT);
}
