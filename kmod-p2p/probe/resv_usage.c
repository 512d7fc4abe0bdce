// SPDX-License-Identifier: GPL-2.0-only
/* Linux 5.19: fences of a dma-buf are waited for by what they are for. */
#include <linux/dma-resv.h>

long weir_probe(struct dma_resv *resv);
long weir_probe(struct dma_resv *resv)
{
	return dma_resv_wait_timeout(resv, DMA_RESV_USAGE_KERNEL, true, 1);
}
