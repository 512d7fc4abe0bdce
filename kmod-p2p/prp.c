// SPDX-License-Identifier: GPL-2.0-only
/* PRP entries (NVM Express Base 2.0, 4.1.1) of transfers into an import, for who drives the controller. */
#include <linux/capability.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "p2p.h"

#define PRP_PAGE  4096U /* the controller's page size: all support it */
#define PRP_MOST  (2U << 20)
#define LISTS_MAX 4096

struct prp_list {
	struct list_head link;
	__le64 *entries;
	dma_addr_t address;
};

/**
 * struct place - a segment of an import, from which one goes on to the next
 * @sg: which, if there is one
 * @left: segments from it on
 * @skip: bytes of the dma-buf that lie before it
 */
struct location {
	struct scatterlist *sg;
	unsigned int left;
	u64 skip;
};

/* Where the function sees a byte of the import, and how many are contiguous from there; @location: not behind
 * it. */
static dma_addr_t address_of(const struct weir_import *import, struct location *location, u64 offset,
			     u64 *contiguous)
{
	u64 at = import->offset + offset;

	for (; location->left && at - location->skip >= sg_dma_len(location->sg); location->left--) {
		location->skip += sg_dma_len(location->sg);
		location->sg = sg_next(location->sg);
	}
	*contiguous = location->left ? sg_dma_len(location->sg) - (at - location->skip) : 0;
	return location->left ? sg_dma_address(location->sg) + (at - location->skip) : 0;
}

static struct prp_list *list_make(struct weir_import *import)
{
	struct prp_list *list = kzalloc(sizeof(*list), GFP_KERNEL_ACCOUNT);

	if (!list)
		return NULL;
	list->entries = dma_alloc_coherent(&import->ssd->dev, PRP_PAGE, &list->address, GFP_KERNEL);
	if (list->entries)
		return list;
	kfree(list);
	return NULL;
}

static void list_free(struct weir_import *import, struct prp_list *list)
{
	dma_free_coherent(&import->ssd->dev, PRP_PAGE, list->entries, list->address);
	kfree(list);
}

/**
 * weir_prp_free() - free an import's lists
 * @import: which; its end
 */
void weir_prp_free(struct weir_import *import)
{
	struct prp_list *list, *next;

	list_for_each_entry_safe(list, next, &import->lists, link) list_free(import, list);
	INIT_LIST_HEAD(&import->lists);
	import->lists_count = 0;
}

/* Keep a list until the import ends. */
static int list_keep(struct weir_import *import, struct prp_list *list)
{
	int error = -ENOSPC;

	mutex_lock(&import->lists_lock);
	if (import->lists_count < LISTS_MAX) {
		list_add(&list->link, &import->lists);
		import->lists_count++;
		error = 0;
	}
	mutex_unlock(&import->lists_lock);
	return error;
}

/*
 * All entries behind the first into @entries, if it is not NULL. Each but the first begins a page of the
 * controller's, and each but the last ends with one. Return: their number, or an errno.
 */
static int walk(struct weir_import *import, const struct weir_p2p_prp *arg, u64 *prp1, __le64 *entries)
{
	struct location location = { import->table->sgl, import->table->nents, 0 };
	u64 done = 0, contiguous, address, step;
	int count = 0;

	for (; done < arg->bytes; count++) {
		address = address_of(import, &location, arg->offset + done, &contiguous);
		if (!contiguous || (count && address % PRP_PAGE))
			return -EIO;
		if (!count)
			*prp1 = address;
		else if (entries)
			entries[count - 1] = cpu_to_le64(address);
		step = min_t(u64, PRP_PAGE - address % PRP_PAGE, contiguous);
		done += step;
		if (done < arg->bytes && (address + step) % PRP_PAGE)
			return -EIO;
	}
	return count;
}

static int with_list(struct weir_file *file, struct weir_import *import, struct weir_p2p_prp *arg)
{
	struct prp_list *list = list_make(import);
	int error;

	if (!list)
		return -ENOMEM;
	walk(import, arg, &arg->prp1, list->entries);
	arg->prp2 = list->address;
	error = list_keep(import, list);
	if (!error)
		return 0;
	list_free(import, list);
	return weir_refuse(file, error, "import %u has %u PRP lists", arg->handle, LISTS_MAX);
}

static int make_entries(struct weir_file *file, struct weir_import *import, struct weir_p2p_prp *arg)
{
	__le64 second = 0;
	int count;

	if (arg->offset >= import->bytes || arg->bytes > import->bytes - arg->offset)
		return weir_refuse(file, -ERANGE, "%llu bytes from %llu are not in import %u, which has %llu",
				   arg->bytes, arg->offset, arg->handle, import->bytes);
	count = walk(import, arg, &arg->prp1, NULL);
	if (count < 0)
		return weir_refuse(file, count, "import %u has segments that no PRP entries can tell",
				   arg->handle);
	arg->entries = count;
	if (count > 2)
		return with_list(file, import, arg);
	walk(import, arg, &arg->prp1, &second);
	arg->prp2 = le64_to_cpu(second);
	return 0;
}

int weir_prp(struct weir_file *file, struct weir_p2p_prp *arg)
{
	struct weir_import *import;
	int error;

	if (!capable(CAP_SYS_RAWIO))
		return weir_refuse(file, -EPERM,
				   "PRP entries are addresses of the controller: CAP_SYS_RAWIO");
	/* With an offset in the first page, a list of a page is full at that length. */
	if (!arg->bytes || arg->bytes > PRP_MOST || (arg->offset | arg->bytes) % 4 || arg->reserved)
		return weir_refuse(file, -EINVAL, "%llu bytes from %llu: at most %u, in multiples of 4",
				   arg->bytes, arg->offset, PRP_MOST);
	import = weir_import_enter(file, arg->handle);
	if (IS_ERR(import))
		return PTR_ERR(import);
	error = make_entries(file, import, arg);
	weir_import_leave(import);
	return error;
}
