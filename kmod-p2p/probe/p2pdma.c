// SPDX-License-Identifier: GPL-2.0-only
/* Whether the kernel has its own peer-to-peer DMA; without CONFIG_PCI_P2PDMA the header has stand-ins that
 * fail. */
#include <linux/pci-p2pdma.h>

#if !IS_ENABLED(CONFIG_PCI_P2PDMA)
#error "not configured"
#endif

int weir_probe(struct pci_dev *pdev);
int weir_probe(struct pci_dev *pdev)
{
	return pci_p2pdma_add_resource(pdev, 0, 4096, 0) + !pci_alloc_p2pmem(pdev, 4096);
}
