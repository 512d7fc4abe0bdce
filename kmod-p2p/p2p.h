/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the module share. Objects, outermost first: a window over a BAR, a file (an open node),
 * its ranges and its imports.
 *
 * Locks, outermost first: device_lock() of a claimed function, that of an SSD, mmap_lock, weir_window.lock;
 * weir_windows_lock and those of lists are innermost. No user memory is touched under weir_window.lock, since
 * that may be a mapping of the window itself. Users keep pages as long as they like (RDMA registrations,
 * pipes): who waits for that has none of these locks, but for the notifier, around which the driver core
 * holds a device_lock(), and which waits no longer than leave_s (window.c).
 */
#ifndef WEIR_P2P_INTERNAL_H
#define WEIR_P2P_INTERNAL_H

#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/interval_tree.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "compat.h"
#include "shim.h"
#include "weir_p2p.h"

/* The part of an mmap() offset behind a range's number: ranges are smaller than that. */
#define WEIR_RANGE_SHIFT  40
#define WEIR_RANGES_MAX   (1U << 20)
#define WEIR_WINDOW_ALIGN (2UL << 20)
/* Of one open node: what it makes the kernel allocate is bounded. */
#define WEIR_RANGES_PER_FILE 65536

/**
 * struct weir_window - pages over a BAR, or a part of it
 * @refs: one until its pages are dropped, one per open file
 * @link: in weir_windows, then in weir_lingering, under weir_windows_lock
 * @pdev: the function, whatever its driver
 * @bar: which of its BARs
 * @offset: where in the BAR it begins
 * @bytes: its length
 * @pages: what pages_*.c keeps
 * @given: pages_p2pdma.c gave each page a reference, which it takes back
 * @first: its first page
 * @misc: its node
 * @name: of the node, below /dev/weir_p2p
 * @leaving: it is about to end, gets no queue pairs any more, and transfers of imports end, too
 * @lock: protects all below; faults hold it for reading
 * @gone: unclaimed; nothing can be registered or mapped any more
 * @ranges: by handle: those that can be mapped
 * @taken: which parts belong to ranges, until their I/O has ended
 * @dying: ranges given back whose I/O has not ended
 * @reaper: looks after those
 * @reap_after: how long it waits before it does so again, in jiffies
 * @reaped: woken whenever one of them is through
 * @live: one for being claimed, one per range that is not through, one per weir_window_hold()
 * @drop: drops the pages, once @live is 0
 * @dropped: that is done
 * @next: where the search for a free handle begins, so that they come again late
 */
struct weir_window {
	struct kref refs;
	struct list_head link;
	struct pci_dev *pdev;
	int bar;
	u64 offset;
	u64 bytes;
	void *pages;
	bool given;
	struct page *first;
	struct miscdevice misc;
	char name[48];
	bool leaving;
	struct rw_semaphore lock;
	bool gone;
	struct xarray ranges;
	struct rb_root_cached taken;
	struct list_head dying;
	struct delayed_work reaper;
	unsigned long reap_after;
	wait_queue_head_t reaped;
	atomic_t live;
	struct work_struct drop;
	struct completion dropped;
	u32 next;
};

/**
 * struct weir_piece - a part of a window that belongs to a range
 * @node: in weir_window.taken: its first and last byte
 * @range: which
 * @skip: bytes of the range that lie before it
 */
struct weir_piece {
	struct interval_tree_node node;
	struct weir_range *range;
	u64 skip;
};

/**
 * struct weir_range - what one call of WEIR_P2P_REGISTER took
 * @refs: its own, until it has ended and weir_p2p_revoked() is through with it; one per mapping; one per call
 *that waits for its end
 * @window: which; outlives its ranges' ends
 * @file: whose
 * @handle: its number; 0: it was never to be found under one
 * @bytes: its length
 * @dead: nothing more is mapped; under the window's lock
 * @ended: its pieces are free again
 * @busy: calls of WEIR_P2P_IO under way
 * @owner: the process that registered it
 * @quiet: pieces before that one are known to be free of references
 * @quiet_pages: pages of that piece, likewise: once dead, a page that nobody has stays so
 * @link: in weir_window.dying
 * @pin: what a vendor's shim has pinned
 * @count: number of pieces
 * @pieces: in order
 */
struct weir_range {
	struct kref refs;
	struct weir_window *window;
	struct weir_file *file;
	u32 handle;
	u64 bytes;
	bool dead;
	bool ended;
	atomic_t busy;
	struct pid *owner;
	u32 quiet;
	unsigned long quiet_pages;
	struct list_head link;
	struct weir_p2p_pin pin;
	u32 count;
	struct weir_piece *pieces;
};

/**
 * struct weir_file - an open node
 * @refs: one until it is closed, one per call of weir_p2p_revoked() that compares pairs with it
 * @window: which; NULL for the control node
 * @mapping: of the node's inode, where this file's mappings are found
 * @imports: by handle; of the control node's
 * @imports_lock: protects @imports
 * @ranges: how many it has that are not given back
 * @reason_lock: protects what follows
 * @error: of the last call that failed
 * @reason: why it did
 */
struct weir_file {
	struct kref refs;
	struct weir_window *window;
	struct address_space *mapping;
	struct xarray imports;
	struct mutex imports_lock;
	atomic_t ranges;
	struct mutex reason_lock;
	int error;
	char reason[WEIR_P2P_TEXT_BYTES];
};

/**
 * struct weir_extent - contiguous memory of an import
 * @address: where, as the CPU sees it
 * @bytes: length
 * @skip: bytes of the import that lie before it
 */
struct weir_extent {
	phys_addr_t address;
	u64 bytes;
	u64 skip;
};

/**
 * struct weir_import - a dma-buf attached to an NVMe function
 * @refs: the file's, and one per call on it
 * @all: in the list of all imports, until it is detached; they end when their SSD loses its driver
 * @ssd: the function
 * @lock: held for reading by calls on it, for writing by its end; outside of the dma-buf's own lock
 * @buffer: the dma-buf; NULL once it has ended
 * @attach: to the function
 * @table: where it lies, for the function
 * @handle: its number
 * @leaving: it is to end: who uses it comes to an end soon
 * @detached: it has; under imports_lock
 * @moved: the exporter has moved or revoked it
 * @in_vram: all of it lies in BARs
 * @segments: contiguous parts, as the function sees them
 * @signal: whom to tell; NULL: nobody
 * @offset: where in the dma-buf it begins
 * @bytes: its length
 * @count: number of extents
 * @extents: where it lies, as the CPU sees it
 * @lists: PRP lists, under @lists_lock
 * @lists_count: how many
 */
struct weir_import {
	struct kref refs;
	struct list_head all;
	struct pci_dev *ssd;
	struct rw_semaphore lock;
	struct dma_buf *buffer;
	struct dma_buf_attachment *attach;
	struct sg_table *table;
	u32 handle;
	bool leaving;
	bool detached;
	bool moved;
	bool in_vram;
	u32 segments;
	struct eventfd_ctx *signal;
	u64 offset;
	u64 bytes;
	u32 count;
	struct weir_extent *extents;
	struct mutex lists_lock;
	struct list_head lists;
	u32 lists_count;
};

/* file.c */
extern const struct file_operations weir_control_fops;
extern const struct file_operations weir_window_fops;
__printf(3, 4) int weir_refuse(struct weir_file *file, int error, const char *format, ...);
void weir_file_put(struct weir_file *file);

/* window.c */
struct pci_dev *weir_find(struct weir_file *file, const struct weir_p2p_function *function);
struct pci_dev *weir_find_ssd(struct weir_file *file, const struct weir_p2p_function *function);
int weir_check_bar(struct weir_file *file, struct pci_dev *pdev, int bar);
int weir_claim(struct weir_file *file, struct weir_p2p_claim *claim);
int weir_unclaim(struct weir_file *file, struct weir_p2p_claim *claim);
extern struct workqueue_struct *weir_work;
int weir_windows_begin(void);
void weir_windows_end(void);
u32 weir_windows_count(void);
void weir_window_get(struct weir_window *window);
void weir_window_put(struct weir_window *window);
bool weir_window_has(const struct weir_window *window, phys_addr_t address, u64 bytes);
struct weir_window *weir_window_hold(phys_addr_t address, u64 bytes);
void weir_window_live_put(struct weir_window *window);
void weir_window_release(struct weir_window *window);

/* range.c */
int weir_register(struct weir_file *file, struct weir_p2p_register *arg);
int weir_deregister(struct weir_file *file, u32 handle);
void weir_ranges_end(struct weir_window *window, struct weir_file *file);
void weir_reap(struct work_struct *work);
struct weir_range *weir_range_busy(struct weir_file *file, u32 handle);
void weir_range_idle(struct weir_range *range);
struct weir_range *weir_range_find(struct weir_file *file, u32 handle);
void weir_range_put(struct weir_range *range);
struct page *weir_range_page(const struct weir_range *range, u64 offset, u64 *contiguous);

/* map.c */
int weir_map(struct weir_file *file, struct vm_area_struct *vma);

/* import.c */
int weir_import(struct weir_file *file, struct weir_p2p_import *arg);
int weir_unimport(struct weir_file *file, u32 handle);
void weir_imports_end(struct weir_file *file);
void weir_imports_leave(struct pci_dev *ssd);
struct weir_import *weir_import_enter(struct weir_file *file, u32 handle);
void weir_import_leave(struct weir_import *import);

/* prp.c */
int weir_prp(struct weir_file *file, struct weir_p2p_prp *arg);
void weir_prp_free(struct weir_import *import);

/* io.c */
int weir_io(struct weir_file *file, struct weir_p2p_io *arg);

/* queue.c, doorbell.c */
int weir_queue_add(struct weir_file *file, struct weir_p2p_queue *arg);
int weir_queue_remove(struct weir_file *file, u32 handle);
int weir_locate(struct weir_file *file, struct weir_p2p_locate *arg);
bool weir_pairs_any(const struct weir_file *file);
void weir_pairs_end(const struct weir_file *file);
void weir_pairs_leave_gpu(const struct pci_dev *gpu, int bar);
void weir_pairs_leave(const struct pci_dev *ssd);
void weir_pairs_gone(const struct pci_dev *ssd);
bool weir_doorbell_meant(const struct vm_area_struct *vma);
int weir_doorbell_map(struct weir_file *file, struct vm_area_struct *vma);

/* pages_generic.c or pages_p2pdma.c */
extern const u64 weir_pages_feature;
int weir_pages_make(struct weir_file *file, struct weir_window *window);
void weir_pages_drop(struct weir_window *window);

/* verdict.c, and distance_walk.c or distance_p2pdma.c */
int weir_verdict(struct weir_file *file, struct weir_p2p_verdict *arg);
void weir_judge(struct weir_p2p_verdict *arg, struct pci_dev *gpu, struct pci_dev *ssd);
int weir_distance(struct pci_dev *gpu, struct pci_dev *ssd, int bridges, u32 *why);

/* shim.c */
int weir_shim_pin(struct weir_file *file, struct weir_window *window, u64 address, u64 bytes,
		  struct weir_p2p_pin *pin);
bool weir_shim_any(void);
u64 weir_shim_align(u16 vendor);
int weir_flush(struct weir_file *file, struct weir_p2p_flush *arg);
bool weir_shim_release(struct weir_p2p_pin *pin);

#endif
