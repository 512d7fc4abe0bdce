// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages over a BAR where the kernel has peer-to-peer DMA: its own pages, which it checks when an SSD is to
 * reach them. They go with the function's driver, so there has to be one; until then they are kept, and taken
 * again.
 */
#include <linux/pci-p2pdma.h>

#include "p2p.h"

const u64 weir_pages_feature = WEIR_P2P_FEATURE_P2PDMA;

/* All of the pages, if they are those of the window. */
static void *take_pages(struct weir_window *window)
{
	phys_addr_t first = pci_resource_start(window->pdev, window->bar) + window->offset;
	void *memory = pci_alloc_p2pmem(window->pdev, window->bytes);

	if (memory && page_to_phys(virt_to_page(memory)) == first)
		return memory;
	if (memory)
		pci_free_p2pmem(window->pdev, memory, window->bytes);
	return NULL;
}

/* Besides memory's own, which a section has for holes, too. */
static bool is_device_page(unsigned long pfn)
{
	return pfn_valid(pfn) && is_zone_device_page(pfn_to_page(pfn));
}

/* Whether another driver has made pages there: that of an SSD over its own memory (CMB), say. */
static bool has_pages(const struct weir_window *window)
{
	unsigned long first = PHYS_PFN(pci_resource_start(window->pdev, window->bar) + window->offset);

	return is_device_page(first) || is_device_page(first + PHYS_PFN(window->bytes) - 1);
}

/* From Linux 6.15 on they begin without a reference, and are to be given back so. */
static void give_references(struct weir_window *window)
{
	unsigned long i;

	window->given = !page_ref_count(window->first);
	for (i = 0; window->given && i < PHYS_PFN(window->bytes); i++)
		set_page_count(window->first + i, 1);
}

static void take_references(struct weir_window *window)
{
	unsigned long i;

	for (i = 0; window->given && i < PHYS_PFN(window->bytes); i++)
		set_page_count(window->first + i, 0);
}

int weir_pages_make(struct weir_file *file, struct weir_window *window)
{
	int error;

	if (!window->pdev->dev.driver)
		return weir_refuse(file, -ENODEV,
				   "%s has no driver, with which its pages would go: bind one, then claim",
				   pci_name(window->pdev));
	window->pages = take_pages(window);
	if (!window->pages && !has_pages(window)) {
		error = pci_p2pdma_add_resource(window->pdev, window->bar, window->bytes, window->offset);
		if (error)
			return weir_refuse(file, error, "no pages over BAR %d of %s", window->bar,
					   pci_name(window->pdev));
		window->pages = take_pages(window);
	}
	if (!window->pages)
		return weir_refuse(file, -EBUSY, "somebody else has pages over a BAR of %s",
				   pci_name(window->pdev));
	window->first = virt_to_page(window->pages);
	give_references(window);
	return 0;
}

void weir_pages_drop(struct weir_window *window)
{
	take_references(window);
	pci_free_p2pmem(window->pdev, window->pages, window->bytes);
}
