/* SPDX-License-Identifier: GPL-2.0-only */
/* What kernels from 5.15 on differ in, as found out by compiling probe/NAME.c: WEIR_HAS_NAME. Nowhere else.
 */
#ifndef WEIR_P2P_COMPAT_H
#define WEIR_P2P_COMPAT_H

#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>

#ifndef WEIR_HAS_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

#ifdef WEIR_HAS_NAMESPACE_WORD
#define WEIR_IMPORT_NS_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#else
#define WEIR_IMPORT_NS_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#endif

#ifdef WEIR_HAS_EVENTFD_SIGNAL_ONE
#define weir_eventfd_signal(context) eventfd_signal(context)
#else
#define weir_eventfd_signal(context) eventfd_signal(context, 1)
#endif

/* A function that is called when a kiocb is through, with its result. */
#ifdef WEIR_HAS_KIOCB_RESULT
#define WEIR_KIOCB_COMPLETE(name) static void name(struct kiocb *kiocb, long result)
#else
#define WEIR_KIOCB_COMPLETE(name) static void name(struct kiocb *kiocb, long result, long unused)
#endif

/* Until the exporter has moved a buffer to where it is pinned. */
#ifdef WEIR_HAS_RESV_USAGE
#define weir_resv_wait(resv) dma_resv_wait_timeout(resv, DMA_RESV_USAGE_KERNEL, true, 30 * HZ)
#else
#define weir_resv_wait(resv) dma_resv_wait_timeout(resv, false, true, 30 * HZ)
#endif

#endif
