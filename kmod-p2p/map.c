// SPDX-License-Identifier: GPL-2.0-only
/* Ranges of windows, mapped: page by page, by faults, until the range is dead. */
#include "p2p.h"

/* A fault maps the whole block of so many bytes around it: I/O on a buffer then does not fault for each page.
 */
#define FAULT_AROUND (256UL << 10)
/* So many at a time, as one call that takes the page table's lock once. */
#define FAULT_BATCH 64

static void on_open(struct vm_area_struct *vma)
{
	struct weir_range *range = vma->vm_private_data;

	kref_get(&range->refs);
}

static void on_close(struct vm_area_struct *vma)
{
	weir_range_put(vma->vm_private_data);
}

/* Where in its range a place in a mapping is. */
static u64 offset_of(pgoff_t pgoff)
{
	return ((u64)pgoff << PAGE_SHIFT) & ((1ULL << WEIR_RANGE_SHIFT) - 1);
}

/* The range's pages at an address of a mapping and behind it. */
static void find_pages(struct weir_range *range, struct vm_area_struct *vma, unsigned long address,
		       struct page **pages, unsigned long count)
{
	u64 offset = offset_of(vma->vm_pgoff) + (address - vma->vm_start), contiguous = 0;
	struct page *page = NULL;
	unsigned long i;

	for (i = 0; i < count; i++, offset += PAGE_SIZE, contiguous -= PAGE_SIZE) {
		page = contiguous ? page + 1 : weir_range_page(range, offset, &contiguous);
		pages[i] = page;
	}
}

/* Pages that are mapped already stay so: another thread may have done that meanwhile. */
static int map_pages(struct weir_range *range, struct vm_area_struct *vma, unsigned long address,
		     unsigned long end)
{
	struct page *pages[FAULT_BATCH];
	int error = 0;

	while (address < end && (!error || error == -EBUSY)) {
		unsigned long count = min_t(unsigned long, FAULT_BATCH, (end - address) >> PAGE_SHIFT),
			      left = count;

		find_pages(range, vma, address, pages, count);
		error = vm_insert_pages(vma, address, pages, &left);
		address += (count - left + (error == -EBUSY)) << PAGE_SHIFT;
	}
	return error == -EBUSY ? 0 : error;
}

static vm_fault_t map_around(struct weir_range *range, struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long wanted = vmf->address & PAGE_MASK;
	unsigned long block = wanted & ~(FAULT_AROUND - 1);
	unsigned long address = max(block, vma->vm_start);
	unsigned long end = min(block + FAULT_AROUND, vma->vm_end);
	int error = map_pages(range, vma, address, end);

	/* The others are for later; what cannot be mapped now will fault. */
	if (error)
		error = map_pages(range, vma, wanted, wanted + PAGE_SIZE);
	return error ? vmf_error(error) : VM_FAULT_NOPAGE;
}

static vm_fault_t on_fault(struct vm_fault *vmf)
{
	struct weir_range *range = vmf->vma->vm_private_data;
	struct weir_window *window = range->window;
	vm_fault_t result = VM_FAULT_SIGBUS;

	down_read(&window->lock);
	if (!range->dead)
		result = map_around(range, vmf);
	up_read(&window->lock);
	return result;
}

static const struct vm_operations_struct range_vm_ops = {
	.open = on_open,
	.close = on_close,
	.fault = on_fault,
};

static int check_map(struct weir_file *file, struct weir_range *range, struct vm_area_struct *vma)
{
	u64 offset = offset_of(vma->vm_pgoff);
	u64 bytes = vma->vm_end - vma->vm_start;

	if (!range)
		return weir_refuse(file, -ENOENT, "nothing is registered under this offset by this file");
	if (offset >= range->bytes || bytes > range->bytes - offset)
		return weir_refuse(file, -ERANGE, "%llu bytes from %llu are not in range %u, which has %llu",
				   bytes, offset, range->handle, range->bytes);
	if (!(vma->vm_flags & VM_SHARED))
		return weir_refuse(file, -EINVAL,
				   "a private mapping would be a copy in host memory: use MAP_SHARED");
	if (vma->vm_flags & VM_EXEC)
		return weir_refuse(file, -EACCES, "nothing is executed from there");
	return 0;
}

/**
 * weir_map() - map a range, or a part of it
 * @file: whose
 * @vma: the mapping
 * Return: 0, or an errno.
 */
int weir_map(struct weir_file *file, struct vm_area_struct *vma)
{
	struct weir_range *range;
	int error;

	down_read(&file->window->lock);
	range = weir_range_find(file, vma->vm_pgoff >> (WEIR_RANGE_SHIFT - PAGE_SHIFT));
	error = check_map(file, range, vma);
	if (!error) {
		kref_get(&range->refs);
		vma->vm_private_data = range;
		vma->vm_ops = &range_vm_ops;
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
		vm_flags_set(vma, VM_MIXEDMAP | VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
		vm_flags_clear(vma, VM_MAYEXEC); /* nor by mprotect() */
	}
	up_read(&file->window->lock);
	return error;
}
