// SPDX-License-Identifier: GPL-2.0-only
/*
 * Imports: dma-bufs attached to an NVMe function, pinned, and known to lie where they should. An exporter may
 * give system memory in place of its own without saying so; where the bytes are is found out from the
 * addresses.
 */
#include <linux/dma-buf.h>
#include <linux/dma-direct.h>
#include <linux/eventfd.h>
#include <linux/iommu.h>
#include <linux/slab.h>

#include "p2p.h"

WEIR_IMPORT_NS_DMA_BUF;

#define IMPORTS_MAX 65536

static DEFINE_MUTEX(imports_lock); /* of the list alone: nobody waits under it */
static LIST_HEAD(imports);

/* Called by the exporter, which holds the dma-buf's lock. */
static void on_move(struct dma_buf_attachment *attach)
{
	struct weir_import *import = attach->importer_priv;

	/* Relaxed is enough: who has not seen it yet is as one who came before. */
	WRITE_ONCE(import->moved, true);
	if (import->signal)
		weir_eventfd_signal(import->signal);
}

static const struct dma_buf_attach_ops attach_ops = { .allow_peer2peer = true, .move_notify = on_move };

static void import_free(struct kref *refs)
{
	struct weir_import *import = container_of(refs, struct weir_import, refs);

	if (import->signal)
		eventfd_ctx_put(import->signal);
	pci_dev_put(import->ssd);
	kvfree(import->extents);
	kfree(import);
}

/* What import_attach() did, undone. Under its lock for writing, or before anybody knows it. */
static void import_detach(struct weir_import *import)
{
	if (!import->buffer)
		return;
	weir_prp_free(import);
	dma_resv_lock(import->buffer->resv, NULL);
	dma_buf_unmap_attachment(import->attach, import->table, DMA_BIDIRECTIONAL);
	dma_buf_unpin(import->attach);
	dma_resv_unlock(import->buffer->resv);
	dma_buf_detach(import->buffer, import->attach);
	dma_buf_put(import->buffer);
	import->buffer = NULL;
}

static int pin_and_map(struct weir_import *import, struct dma_buf *buffer)
{
	int error;

	dma_resv_lock(buffer->resv, NULL);
	error = dma_buf_pin(import->attach);
	if (error)
		goto out;
	import->table = dma_buf_map_attachment(import->attach, DMA_BIDIRECTIONAL);
	if (IS_ERR(import->table)) {
		error = PTR_ERR(import->table);
		dma_buf_unpin(import->attach);
	}
out:
	dma_resv_unlock(buffer->resv);
	return error;
}

/* If this fails, what it did is for import_detach() to undo. */
static int import_attach(struct weir_file *file, struct weir_import *import, struct dma_buf *buffer)
{
	long left;
	int error;

	import->attach = dma_buf_dynamic_attach(buffer, &import->ssd->dev, &attach_ops, import);
	if (IS_ERR(import->attach))
		return weir_refuse(file, PTR_ERR(import->attach),
				   "the dma-buf's exporter does not let %s have it", pci_name(import->ssd));
	error = pin_and_map(import, buffer);
	if (error) {
		dma_buf_detach(buffer, import->attach);
		return weir_refuse(file, error, "the dma-buf's exporter cannot map it for %s",
				   pci_name(import->ssd));
	}
	get_dma_buf(buffer);
	import->buffer = buffer;
	left = weir_resv_wait(buffer->resv);
	if (left < 0)
		return weir_refuse(file, -EINTR,
				   "a signal came before the dma-buf's exporter was through with it");
	return left ? 0 : weir_refuse(file, -ETIMEDOUT, "the dma-buf's exporter is not through with it");
}

/* Where the CPU sees what the function sees at an address. */
static phys_addr_t seen_at(struct weir_import *import, dma_addr_t address)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&import->ssd->dev);

	return domain ? iommu_iova_to_phys(domain, address) : dma_to_phys(&import->ssd->dev, address);
}

/**
 * struct extents - what find_extents() puts together
 * @to: where extents go; NULL: they are only counted
 * @count: of them
 * @last: the last one so far
 */
struct extents {
	struct weir_extent *to;
	u32 count;
	struct weir_extent last;
};

static void add_extent(struct extents *extents, phys_addr_t address, u64 bytes)
{
	struct weir_extent *last = &extents->last;

	if (extents->count && last->address + last->bytes == address)
		last->bytes += bytes;
	else
		*last = (struct weir_extent){ address, bytes,
					      extents->count++ ? last->skip + last->bytes : 0 };
	if (extents->to)
		extents->to[extents->count - 1] = *last;
}

/* Page by page, since an IOMMU makes contiguous what is not. */
static void add_segment(struct weir_import *import, struct extents *extents, dma_addr_t address, u64 bytes)
{
	u64 done, step;

	for (done = 0; done < bytes; done += step) {
		step = min_t(u64, bytes - done, PAGE_SIZE - offset_in_page(address + done));
		add_extent(extents, seen_at(import, address + done), step);
	}
}

/* Once over the imported part. Return: 0; -EIO: there is less of it. */
static int walk_extents(struct weir_import *import, struct extents *extents)
{
	u64 at = 0, end = import->offset + import->bytes;
	struct scatterlist *sg;
	unsigned int i;

	import->segments = 0;
	for_each_sgtable_dma_sg(import->table, sg, i)
	{
		u64 first = max(at, import->offset), last = min_t(u64, at + sg_dma_len(sg), end);

		if (first < last) {
			add_segment(import, extents, sg_dma_address(sg) + (first - at), last - first);
			import->segments++;
		}
		at += sg_dma_len(sg);
		cond_resched();
	}
	return at < end ? -EIO : 0;
}

/* Where the imported part lies: counted first, so that no more is allocated than that takes. */
static int find_extents(struct weir_import *import)
{
	struct extents extents = {};
	int error = walk_extents(import, &extents);

	if (error)
		return error;
	import->extents = kvcalloc(extents.count, sizeof(*import->extents), GFP_KERNEL_ACCOUNT);
	if (!import->extents)
		return -ENOMEM;
	extents = (struct extents){ .to = import->extents };
	error = walk_extents(import, &extents);
	import->count = extents.count;
	return error;
}

static bool in_function(struct pci_dev *pdev, const struct weir_extent *extent)
{
	int bar;

	for (bar = 0; bar <= PCI_STD_RESOURCE_END; bar++) {
		u64 start = pci_resource_start(pdev, bar), bytes = pci_resource_len(pdev, bar);

		if (pci_resource_flags(pdev, bar) & IORESOURCE_MEM && extent->address >= start &&
		    extent->address - start < bytes && extent->bytes <= bytes - (extent->address - start))
			return true;
	}
	return false;
}

static bool in_some_bar(const struct weir_extent *extent)
{
	struct pci_dev *pdev = NULL;

	for_each_pci_dev(pdev) if (in_function(pdev, extent))
	{
		pci_dev_put(pdev);
		return true;
	}
	return false;
}

static int find_where(struct weir_file *file, struct weir_import *import, u32 flags)
{
	int error = find_extents(import);
	u32 i;

	if (error)
		return error == -EIO
			       ? weir_refuse(file, error, "the dma-buf's exporter mapped less than its size")
			       : error;
	import->in_vram = true;
	for (i = 0; i < import->count; i++)
		import->in_vram &= in_some_bar(&import->extents[i]);
	if (!import->in_vram && flags & WEIR_P2P_REQUIRE_VRAM)
		return weir_refuse(file, -EREMOTEIO,
				   "the dma-buf's exporter gave %s system memory: it holds peer-to-peer DMA "
				   "to be impossible here",
				   pci_name(import->ssd));
	return 0;
}

static int check_part(struct weir_file *file, struct weir_import *import, const struct dma_buf *buffer)
{
	if (!IS_ALIGNED(import->offset | import->bytes, PAGE_SIZE))
		return weir_refuse(file, -EINVAL, "%llu bytes from %llu are no multiples of %lu",
				   import->bytes, import->offset, PAGE_SIZE);
	if (!import->bytes && import->offset < buffer->size)
		import->bytes = buffer->size - import->offset;
	if (!import->bytes || import->offset >= buffer->size || import->bytes > buffer->size - import->offset)
		return weir_refuse(file, -ERANGE,
				   "%llu bytes from %llu are not in the dma-buf, which has %zu",
				   import->bytes, import->offset, buffer->size);
	return 0;
}

static bool has_other_domain(struct pci_dev *ssd)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&ssd->dev);

	return domain && domain->type == IOMMU_DOMAIN_UNMANAGED;
}

/* Under the lock of the SSD, whose driver stays meanwhile; @import is attached then, unless this fails. */
static int import_make(struct weir_file *file, struct weir_import *import, struct dma_buf *buffer, u32 flags)
{
	int error = check_part(file, import, buffer);

	if (error)
		return error;
	if (!import->ssd->dev.driver)
		return weir_refuse(file, -ENODEV, "%s has no driver: nothing has set up its DMA",
				   pci_name(import->ssd));
	if (has_other_domain(import->ssd))
		return weir_refuse(file, -EBUSY,
				   "%s belongs to VFIO: what is mapped for it here would not be what it sees",
				   pci_name(import->ssd));
	error = import_attach(file, import, buffer);
	if (!error)
		error = find_where(file, import, flags);
	if (error) {
		import_detach(import);
		return error;
	}
	mutex_lock(&imports_lock);
	list_add(&import->all, &imports);
	mutex_unlock(&imports_lock);
	return 0;
}

static struct weir_import *import_alloc(struct pci_dev *ssd, const struct weir_p2p_import *arg)
{
	struct weir_import *import = kzalloc(sizeof(*import), GFP_KERNEL_ACCOUNT);

	if (!import)
		return NULL;
	kref_init(&import->refs);
	INIT_LIST_HEAD(&import->all);
	INIT_LIST_HEAD(&import->lists);
	init_rwsem(&import->lock);
	mutex_init(&import->lists_lock);
	import->ssd = pci_dev_get(ssd);
	import->offset = arg->offset;
	import->bytes = arg->bytes;
	return import;
}

static int set_signal(struct weir_file *file, struct weir_import *import, int fd)
{
	struct eventfd_ctx *signal;

	if (fd < 0)
		return 0;
	signal = eventfd_ctx_fdget(fd);
	if (IS_ERR(signal))
		return weir_refuse(file, PTR_ERR(signal), "%d is no eventfd", fd);
	import->signal = signal;
	return 0;
}

/*
 * Nobody else begins to use it; who does comes to an end soon, and is waited for, with no lock of ours held
 * but the import's own. It is in the list until then, so that whoever unbinds the SSD waits, too.
 */
static void detach_when_idle(struct weir_import *import)
{
	WRITE_ONCE(import->leaving, true); /* relaxed: who does not see it yet moves some MiB more */
	down_write(&import->lock);
	import_detach(import);
	up_write(&import->lock);
	mutex_lock(&imports_lock);
	import->detached = true;
	list_del_init(&import->all);
	mutex_unlock(&imports_lock);
}

static void import_end(struct weir_import *import)
{
	detach_when_idle(import);
	kref_put(&import->refs, import_free);
}

static int import_show(struct weir_file *file, struct weir_import *import, struct weir_p2p_import *arg)
{
	int error;

	mutex_lock(&file->imports_lock);
	error = xa_alloc(&file->imports, &import->handle, import, XA_LIMIT(1, IMPORTS_MAX),
			 GFP_KERNEL_ACCOUNT);
	if (!error) {
		arg->handle = import->handle;
		arg->bytes = import->bytes;
		arg->in_vram = import->in_vram;
		arg->segments = import->segments;
	}
	mutex_unlock(&file->imports_lock);
	if (error == -EBUSY)
		return weir_refuse(file, -ENOSPC, "this file has %u imports", IMPORTS_MAX);
	return error;
}

static int import_for(struct weir_file *file, struct pci_dev *ssd, struct dma_buf *buffer,
		      struct weir_p2p_import *arg)
{
	struct weir_import *import = import_alloc(ssd, arg);
	int error;

	if (!import)
		return -ENOMEM;
	error = set_signal(file, import, arg->eventfd);
	if (!error) {
		device_lock(&ssd->dev);
		error = import_make(file, import, buffer, arg->flags);
		device_unlock(&ssd->dev);
	}
	if (error) {
		kref_put(&import->refs, import_free);
		return error;
	}
	error = import_show(file, import, arg);
	if (error)
		import_end(import);
	return error;
}

int weir_import(struct weir_file *file, struct weir_p2p_import *arg)
{
	struct dma_buf *buffer;
	struct pci_dev *ssd;
	int error;

	if (arg->flags & ~WEIR_P2P_REQUIRE_VRAM || arg->reserved)
		return weir_refuse(file, -EINVAL, "flags 0x%x are not known", arg->flags | arg->reserved);
	ssd = weir_find_ssd(file, &arg->ssd);
	if (IS_ERR(ssd))
		return PTR_ERR(ssd);
	buffer = dma_buf_get(arg->fd);
	if (IS_ERR(buffer)) {
		error = weir_refuse(file, PTR_ERR(buffer), "%d is no dma-buf", arg->fd);
	} else {
		error = import_for(file, ssd, buffer, arg);
		dma_buf_put(buffer);
	}
	pci_dev_put(ssd);
	return error;
}

static struct weir_import *take_out(struct weir_file *file, unsigned long handle)
{
	struct weir_import *import;

	mutex_lock(&file->imports_lock);
	import = xa_erase(&file->imports, handle);
	mutex_unlock(&file->imports_lock);
	return import;
}

int weir_unimport(struct weir_file *file, u32 handle)
{
	struct weir_import *import = take_out(file, handle);

	if (!import)
		return weir_refuse(file, -ENOENT, "this file has no import %u", handle);
	import_end(import);
	return 0;
}

void weir_imports_end(struct weir_file *file)
{
	struct weir_import *import;
	unsigned long handle;

	xa_for_each(&file->imports, handle, import) import_end(take_out(file, handle));
}

/* One of an SSD's that is not detached, with a reference. */
static struct weir_import *any_attached(const struct pci_dev *ssd)
{
	struct weir_import *import, *found = NULL;

	mutex_lock(&imports_lock);
	list_for_each_entry(import, &imports, all) if (import->ssd == ssd && !import->detached) found =
		import;
	if (found)
		kref_get(&found->refs);
	mutex_unlock(&imports_lock);
	return found;
}

/**
 * weir_imports_leave() - an SSD is about to lose its driver, and its DMA with it
 * @ssd: which; locked
 */
void weir_imports_leave(struct pci_dev *ssd)
{
	struct weir_import *import;

	while ((import = any_attached(ssd))) {
		detach_when_idle(import);
		kref_put(&import->refs, import_free);
	}
}

/**
 * weir_import_enter() - begin to use an import
 * @file: whose
 * @handle: its number
 * Return: to be given to weir_import_leave(); or an error.
 */
struct weir_import *weir_import_enter(struct weir_file *file, u32 handle)
{
	struct weir_import *import;

	mutex_lock(&file->imports_lock);
	import = xa_load(&file->imports, handle);
	if (import)
		kref_get(&import->refs);
	mutex_unlock(&file->imports_lock);
	if (!import)
		return ERR_PTR(weir_refuse(file, -ENOENT, "this file has no import %u", handle));
	down_read(&import->lock);
	if (!import->buffer || READ_ONCE(import->moved)) {
		weir_import_leave(import);
		return ERR_PTR(weir_refuse(file, -ESTALE,
					   "the exporter has moved or revoked import %u, or its SSD is gone",
					   handle));
	}
	return import;
}

void weir_import_leave(struct weir_import *import)
{
	up_read(&import->lock);
	kref_put(&import->refs, import_free);
}
