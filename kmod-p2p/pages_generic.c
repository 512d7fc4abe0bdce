// SPDX-License-Identifier: GPL-2.0-only
/* Pages over a BAR where the kernel has no peer-to-peer DMA of its own: generic device pages, which pass for
 * memory. */
#include <linux/memremap.h>
#include <linux/slab.h>

#include "p2p.h"

const u64 weir_pages_feature; /* none */

int weir_pages_make(struct weir_file *file, struct weir_window *window)
{
	struct dev_pagemap *map = kzalloc(sizeof(*map), GFP_KERNEL);
	void *memory;

	if (!map)
		return -ENOMEM;
	map->type = MEMORY_DEVICE_GENERIC;
	map->nr_range = 1;
	map->range.start = pci_resource_start(window->pdev, window->bar) + window->offset;
	map->range.end = map->range.start + window->bytes - 1;
	memory = memremap_pages(map, dev_to_node(&window->pdev->dev));
	if (IS_ERR(memory)) {
		kfree(map);
		return weir_refuse(file, PTR_ERR(memory), "no pages over BAR %d of %s", window->bar,
				   pci_name(window->pdev));
	}
	window->pages = map;
	window->first = pfn_to_page(PHYS_PFN(map->range.start));
	return 0;
}

void weir_pages_drop(struct weir_window *window)
{
	memunmap_pages(window->pages);
	kfree(window->pages);
}
