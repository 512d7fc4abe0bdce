// SPDX-License-Identifier: GPL-2.0-only
/* The distance of two functions as the kernel's peer-to-peer DMA tells it. */
#include <linux/pci-p2pdma.h>

#include "p2p.h"

int weir_distance(struct pci_dev *gpu, struct pci_dev *ssd, int bridges, u32 *why)
{
	int distance = pci_p2pdma_distance(gpu, &ssd->dev, false);

	if (distance < 0)
		*why |= WEIR_P2P_WHY_KERNEL;
	return distance;
}
