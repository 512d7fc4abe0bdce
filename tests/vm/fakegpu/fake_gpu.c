// SPDX-License-Identifier: GPL-2.0-only
/*
 * A driver for QEMU's ivshmem-plain, whose BAR 2 passes for a GPU's memory: it exports parts of it as
 * dma-bufs, and other memory as if it were; and it copies to and from the GPU's addresses, where fake_shim.c
 * has them. For tests alone.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "fake_gpu.h"

enum { BAR = 2, CHUNK = 64 << 10 };

WEIR_IMPORT_NS_DMA_BUF;

/* An exported buffer, in chunks; those in system memory have pages. */
struct buffer {
	struct list_head link;
	struct dma_buf *dmabuf;
	phys_addr_t address;
	u64 count;
	int pins;
	struct page **pages;
};

static struct pci_dev *gpu;
static DEFINE_MUTEX(lock);
static LIST_HEAD(buffers);

static dma_addr_t map_chunk(struct buffer *buffer, struct device *device, u64 i)
{
	if (buffer->pages[i])
		return dma_map_page(device, buffer->pages[i], 0, CHUNK, DMA_BIDIRECTIONAL);
	return dma_map_resource(device, buffer->address + i * CHUNK, CHUNK, DMA_BIDIRECTIONAL,
				DMA_ATTR_SKIP_CPU_SYNC);
}

static void unmap_chunk(struct buffer *buffer, struct device *device, u64 i, dma_addr_t address)
{
	if (buffer->pages[i])
		dma_unmap_page(device, address, CHUNK, DMA_BIDIRECTIONAL);
	else
		dma_unmap_resource(device, address, CHUNK, DMA_BIDIRECTIONAL, DMA_ATTR_SKIP_CPU_SYNC);
}

static void unmap(struct dma_buf_attachment *attach, struct sg_table *table,
		  enum dma_data_direction direction)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(table, sg, i) if (sg_dma_len(sg))
		unmap_chunk(attach->dmabuf->priv, attach->dev, i, sg_dma_address(sg));
	sg_free_table(table);
	kfree(table);
}

static int map_chunks(struct dma_buf_attachment *attach, struct sg_table *table)
{
	struct buffer *buffer = attach->dmabuf->priv;
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(table, sg, i)
	{
		dma_addr_t address = map_chunk(buffer, attach->dev, i);

		if (dma_mapping_error(attach->dev, address))
			return -EIO;
		sg_dma_address(sg) = address;
		sg_dma_len(sg) = CHUNK;
	}
	return 0;
}

static struct sg_table *map(struct dma_buf_attachment *attach, enum dma_data_direction direction)
{
	struct buffer *buffer = attach->dmabuf->priv;
	struct sg_table *table = kzalloc(sizeof(*table), GFP_KERNEL);
	int error;

	if (!table)
		return ERR_PTR(-ENOMEM);
	error = buffer->pages[0] || attach->peer2peer ? sg_alloc_table(table, buffer->count, GFP_KERNEL)
						      : -EOPNOTSUPP;
	if (error) {
		kfree(table);
		return ERR_PTR(error);
	}
	error = map_chunks(attach, table);
	if (error) {
		unmap(attach, table, direction);
		return ERR_PTR(error);
	}
	return table;
}

static int pin(struct dma_buf_attachment *attach)
{
	struct buffer *buffer = attach->dmabuf->priv;

	buffer->pins++;
	return 0;
}

static void unpin(struct dma_buf_attachment *attach)
{
	struct buffer *buffer = attach->dmabuf->priv;

	WARN_ON(--buffer->pins < 0);
}

static void buffer_free(struct buffer *buffer)
{
	u64 i;

	for (i = 0; i < buffer->count; i++)
		if (buffer->pages[i])
			__free_pages(buffer->pages[i], get_order(CHUNK));
	kfree(buffer->pages);
	kfree(buffer);
}

static void release(struct dma_buf *dmabuf)
{
	struct buffer *buffer = dmabuf->priv;

	WARN_ON(buffer->pins);
	mutex_lock(&lock);
	list_del(&buffer->link);
	mutex_unlock(&lock);
	buffer_free(buffer);
}

static const struct dma_buf_ops dmabuf_ops = {
	.pin = pin,
	.unpin = unpin,
	.map_dma_buf = map,
	.unmap_dma_buf = unmap,
	.release = release,
};

static struct buffer *buffer_make(const struct fake_gpu_export *export)
{
	struct buffer *buffer = kzalloc(sizeof(*buffer), GFP_KERNEL);
	u64 i;

	if (!buffer)
		return NULL;
	buffer->address = pci_resource_start(gpu, BAR) + export->offset;
	buffer->pages = kcalloc(export->bytes / CHUNK, sizeof(*buffer->pages), GFP_KERNEL);
	if (!buffer->pages)
		goto no_memory;
	buffer->count = export->bytes / CHUNK;
	for (i = 0; i < buffer->count; i++) {
		if (export->kind == FAKE_GPU_VRAM || (export->kind == FAKE_GPU_MIXED && i % 2 == 0))
			continue;
		buffer->pages[i] = alloc_pages(GFP_KERNEL | __GFP_ZERO, get_order(CHUNK));
		if (!buffer->pages[i])
			goto no_memory;
	}
	return buffer;
no_memory:
	buffer_free(buffer);
	return NULL;
}

static int export_locked(struct fake_gpu_export *export)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct buffer *buffer;
	u64 all = pci_resource_len(gpu, BAR);

	if (!export->bytes || (export->offset | export->bytes) % CHUNK || export->offset > all ||
	    export->bytes > all - export->offset || export->kind > FAKE_GPU_MIXED)
		return -EINVAL;
	buffer = buffer_make(export);
	if (!buffer)
		return -ENOMEM;
	info.ops = &dmabuf_ops;
	info.size = export->bytes;
	info.flags = O_RDWR;
	info.priv = buffer;
	buffer->dmabuf = dma_buf_export(&info);
	if (IS_ERR(buffer->dmabuf)) {
		int error = PTR_ERR(buffer->dmabuf);

		buffer_free(buffer);
		return error;
	}
	list_add(&buffer->link, &buffers);
	export->fd = dma_buf_fd(buffer->dmabuf, O_CLOEXEC);
	return export->fd < 0 ? export->fd : 0;
}

static void move_all(void)
{
	struct buffer *buffer;

	list_for_each_entry(buffer, &buffers, link)
	{
		dma_resv_lock(buffer->dmabuf->resv, NULL);
		dma_buf_move_notify(buffer->dmabuf);
		dma_resv_unlock(buffer->dmabuf->resv);
	}
}

static long on_ioctl(struct file *file, unsigned int call, unsigned long address)
{
	struct fake_gpu_export export;
	int error = -ENOTTY;

	if (call == FAKE_GPU_EXPORT && copy_from_user(&export, (void __user *)address, sizeof(export)))
		return -EFAULT;
	mutex_lock(&lock);
	if (call == FAKE_GPU_MOVE) {
		move_all();
		error = 0;
	} else if (call == FAKE_GPU_EXPORT) {
		error = gpu ? export_locked(&export) : -ENODEV;
	}
	mutex_unlock(&lock);
	if (!error && call == FAKE_GPU_EXPORT &&
	    copy_to_user((void __user *)address, &export, sizeof(export)))
		return -EFAULT;
	return error;
}

/* Up to the end of a chunk: the next one is elsewhere in the BAR. The caching that a window's pages have
 * wins. */
static ssize_t copy_chunk(char __user *user, const char __user *from, size_t bytes, loff_t *address)
{
	u64 all = pci_resource_len(gpu, BAR), at = *address - FAKE_GPU_FIRST, location = at ^ CHUNK;
	unsigned long left;
	void *memory;

	bytes = min_t(size_t, bytes, CHUNK - at % CHUNK);
	if (*address < FAKE_GPU_FIRST || at >= all)
		return -EFAULT;
	memory = memremap(pci_resource_start(gpu, BAR) + location, bytes, MEMREMAP_WB);
	if (!memory)
		return -ENOMEM;
	left = user ? copy_to_user(user, memory, bytes) : copy_from_user(memory, from, bytes);
	memunmap(memory);
	if (left)
		return -EFAULT;
	*address += bytes;
	return bytes;
}

static ssize_t copy_locked(char __user *user, const char __user *from, size_t bytes, loff_t *address)
{
	ssize_t copied;

	mutex_lock(&lock);
	copied = gpu ? copy_chunk(user, from, bytes, address) : -ENODEV;
	mutex_unlock(&lock);
	return copied;
}

static ssize_t on_read(struct file *file, char __user *user, size_t bytes, loff_t *address)
{
	return copy_locked(user, NULL, bytes, address);
}

static ssize_t on_write(struct file *file, const char __user *user, size_t bytes, loff_t *address)
{
	return copy_locked(NULL, user, bytes, address);
}

static const struct file_operations fops = {
	.owner = THIS_MODULE, .unlocked_ioctl = on_ioctl, .read = on_read, .write = on_write
};
static struct miscdevice misc = { .minor = MISC_DYNAMIC_MINOR, .name = "fake_gpu", .fops = &fops };

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int error = pcim_enable_device(pdev);

	mutex_lock(&lock);
	if (!error && !gpu)
		gpu = pdev;
	mutex_unlock(&lock);
	return error;
}

static void gone(struct pci_dev *pdev)
{
	mutex_lock(&lock);
	if (gpu == pdev)
		gpu = NULL;
	mutex_unlock(&lock);
}

static const struct pci_device_id ids[] = { { PCI_DEVICE(0x1af4, 0x1110) }, {} };
static struct pci_driver driver = { .name = "fake_gpu", .id_table = ids, .probe = probe, .remove = gone };

static int __init begin(void)
{
	int error = pci_register_driver(&driver);

	if (error)
		return error;
	error = misc_register(&misc);
	if (error)
		pci_unregister_driver(&driver);
	return error;
}

static void __exit end(void)
{
	misc_deregister(&misc);
	pci_unregister_driver(&driver);
}

module_init(begin);
module_exit(end);
MODULE_DEVICE_TABLE(pci, ids);
MODULE_DESCRIPTION("A fake GPU's driver, for tests");
MODULE_LICENSE("GPL");
