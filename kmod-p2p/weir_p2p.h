/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-3-Clause */
/*
 * What user space and the kernel module weir_p2p say to each other.
 *
 * /dev/weir_p2p/control answers about the machine, claims windows, imports dma-bufs and does file I/O on
 * them. /dev/weir_p2p/DDDD:BB:DD.F-N is the window over BAR N of one claimed function (a GPU): a range of it
 * is registered, then mapped; the pointer works with pread() of files opened with O_DIRECT, with io_uring and
 * with RDMA registration, and data moves between the SSD and the GPU's memory with no copy in host memory.
 *
 * Every structure begins with its size: a newer program may give a larger one as long as what this module
 * does not know is 0, and an older one a smaller. Each call returns 0 or -1 with errno; WEIR_P2P_REASON then
 * says what is wrong, where, and what to do. All lengths and offsets are in bytes and multiples of the page
 * size unless said otherwise. Everything a file has registered or imported ends with its last close.
 */
#ifndef WEIR_P2P_H
#define WEIR_P2P_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Grows when something here changes its meaning; never for additions. */
#define WEIR_P2P_ABI        1
#define WEIR_P2P_CONTROL    "/dev/weir_p2p/control"
#define WEIR_P2P_TEXT_BYTES 256

/**
 * struct weir_p2p_function - one PCI function, and perhaps one of its BARs
 * @domain: PCI domain
 * @bus: bus number
 * @device: device number, 0 to 31
 * @function: function number, 0 to 7
 * @bar: BAR number, 0 to 5; 0 where no BAR is meant
 */
struct weir_p2p_function {
	__u32 domain;
	__u8 bus;
	__u8 device;
	__u8 function;
	__u8 bar;
};

/* weir_p2p_info.features */
#define WEIR_P2P_FEATURE_WINDOWS (1ULL << 0) /* pages over BARs */
#define WEIR_P2P_FEATURE_P2PDMA                                                                              \
	(1ULL << 1) /* they are the kernel's P2PDMA pages; else generic device pages */
#define WEIR_P2P_FEATURE_IMPORT    (1ULL << 2)  /* dma-bufs can be imported */
#define WEIR_P2P_FEATURE_FILE_IO   (1ULL << 3)  /* WEIR_P2P_IO */
#define WEIR_P2P_FEATURE_PRP       (1ULL << 4)  /* WEIR_P2P_PRP */
#define WEIR_P2P_FEATURE_QUEUES    (1ULL << 16) /* WEIR_P2P_QUEUE_ADD */
#define WEIR_P2P_FEATURE_ADDRESSES (1ULL << 5)  /* a vendor's shim is loaded: WEIR_P2P_BY_ADDRESS works */

/**
 * struct weir_p2p_info - what this module, and this window, can do (WEIR_P2P_INFO, on every node)
 * @size: bytes of this structure
 * @abi: out: WEIR_P2P_ABI of the module
 * @features: out: WEIR_P2P_FEATURE_*
 * @page_bytes: out: what offsets and lengths are multiples of
 * @windows: out: number of claimed windows
 * @window: out: the window's function and BAR; 0 on the control node
 * @bytes: out: bytes of the window; 0 on the control node
 * @offset: out: where in the BAR the window begins
 * @address_align: out: what WEIR_P2P_BY_ADDRESS takes multiples of; 0: there is no shim for this window's GPU
 */
struct weir_p2p_info {
	__u32 size;
	__u32 abi;
	__u64 features;
	__u32 page_bytes;
	__u32 windows;
	struct weir_p2p_function window;
	__u64 bytes;
	__u64 offset;
	__u64 address_align;
};

/**
 * struct weir_p2p_claim - lay pages over a BAR, and make its node (WEIR_P2P_CLAIM and WEIR_P2P_UNCLAIM,
 * control node)
 * @size: bytes of this structure
 * @flags: 0
 * @gpu: function and BAR; whatever driver the function has keeps it
 * @offset: where in the BAR to begin, in multiples of 2 MiB; ignored by WEIR_P2P_UNCLAIM
 * @bytes: length, in multiples of 2 MiB; 0: to the end of the BAR; out: bytes claimed
 *
 * Needs CAP_SYS_ADMIN. WEIR_P2P_UNCLAIM ends all registrations as an unplugged device does: their users get
 * SIGBUS; it returns when nobody has a reference to a page of the window any more. Errors: EPERM; ENODEV: no
 * such function; ENXIO: it has no such memory BAR, or its bus addresses are not what the CPU uses; EEXIST:
 * claimed already; EBUSY: given back, but somebody still has pages of it; EINVAL: misaligned, empty or beyond
 * the BAR; ENOENT: (unclaim) not claimed; EINTR: (unclaim) a signal came while somebody had pages: the window
 * is given back, and its pages go when they are let go.
 */
struct weir_p2p_claim {
	__u32 size;
	__u32 flags;
	struct weir_p2p_function gpu;
	__u64 offset;
	__u64 bytes;
};

/* weir_p2p_register.flags */
#define WEIR_P2P_BY_ADDRESS                                                                                  \
	(1U << 0) /* offset is an address of the GPU's, which its vendor's shim resolves and pins */

/**
 * struct weir_p2p_register - take a range of a window for this file alone (WEIR_P2P_REGISTER, window node)
 * @size: bytes of this structure
 * @flags: WEIR_P2P_BY_ADDRESS or 0
 * @offset: where in the window the range begins, or an address
 * @bytes: its length
 * @mmap_offset: out: the offset to give to mmap(), MAP_SHARED, of at most @bytes from there
 * @handle: out: names it, on this file
 * @wiped: out: 1 if the range was set to 0, because the caller lacks CAP_SYS_RAWIO and might read what others
 * left
 *
 * By offset nobody but the caller knows what the range is used for: only where the GPU has no driver, or with
 * CAP_SYS_RAWIO. Errors: EINVAL: misaligned, empty, unknown flags; ERANGE: beyond the window; EEXIST:
 * overlaps what this file has registered; EBUSY: overlaps somebody else's; EPERM; EOPNOTSUPP: no shim;
 * ENODEV: the function is gone; ENOSPC: too many, 65,536 of a file or 1,048,576 of a window; and those of the
 * vendor's driver.
 */
struct weir_p2p_register {
	__u32 size;
	__u32 flags;
	__u64 offset;
	__u64 bytes;
	__u64 mmap_offset;
	__u32 handle;
	__u32 wiped;
};

/**
 * struct weir_p2p_deregister - give back what WEIR_P2P_REGISTER or WEIR_P2P_IMPORT gave (the same node)
 * @size: bytes of this structure
 * @handle: which
 *
 * Takes mappings away (later accesses get SIGBUS), and waits for I/O in flight. Errors: ENOENT: no such
 * handle of this file, or given back already; EINTR: a signal came before the I/O ended: the range is given
 * back when it does, which the same call again waits for.
 */
struct weir_p2p_deregister {
	__u32 size;
	__u32 handle;
};

/* weir_p2p_verdict.verdict */
#define WEIR_P2P_NO      0 /* will not work, or must not */
#define WEIR_P2P_UNKNOWN 1 /* may work: try it with known contents first */
#define WEIR_P2P_YES     2 /* the kernel vouches for it, or all is behind one switch */

/* weir_p2p_verdict.topology */
#define WEIR_P2P_SAME_SWITCH    1 /* a switch below a root port joins them */
#define WEIR_P2P_SAME_ROOT_PORT 2 /* one root port, without a switch of several ports in between */
#define WEIR_P2P_HOST_BRIDGE    3 /* through the host bridge (root complex) they share */
#define WEIR_P2P_FAR            4 /* different host bridges */

/* weir_p2p_verdict.iommu */
#define WEIR_P2P_IOMMU_NONE       0
#define WEIR_P2P_IOMMU_IDENTITY   1 /* present, passes addresses through */
#define WEIR_P2P_IOMMU_TRANSLATES 2
#define WEIR_P2P_IOMMU_BLOCKED    3

/* weir_p2p_verdict.reasons */
#define WEIR_P2P_WHY_ACS         (1U << 0) /* access control services send peers' requests up to the root */
#define WEIR_P2P_WHY_HOST_BRIDGE (1U << 1) /* whether the host bridge forwards them is not known */
#define WEIR_P2P_WHY_IOMMU       (1U << 2) /* an IOMMU translates what the SSD sends */
#define WEIR_P2P_WHY_BUS_OFFSET  (1U << 3) /* bus addresses of the BAR are not what the CPU uses */
#define WEIR_P2P_WHY_NO_DRIVER   (1U << 4) /* the SSD has no driver: nothing can do its DMA */
#define WEIR_P2P_WHY_KERNEL      (1U << 5) /* the kernel's own check (P2PDMA) refuses */
#define WEIR_P2P_WHY_NO_P2PDMA   (1U << 6) /* this kernel has no check of its own */

/**
 * struct weir_p2p_verdict - can this SSD reach this BAR? (WEIR_P2P_VERDICT, control node)
 * @size: bytes of this structure
 * @flags: 0
 * @gpu: function and BAR
 * @ssd: the NVMe function
 * @verdict: out: WEIR_P2P_NO, _UNKNOWN or _YES
 * @topology: out: WEIR_P2P_SAME_SWITCH and so on
 * @iommu: out: WEIR_P2P_IOMMU_*, of the SSD
 * @reasons: out: WEIR_P2P_WHY_*
 * @distance: out: what the kernel's pci_p2pdma_distance() gives, negative if refused; else bridges in between
 * @reserved: 0
 * @text: out: the same in a sentence
 *
 * Errors: ENODEV: no such function; ENXIO: no such memory BAR, or the other is no NVMe function; EINVAL.
 */
struct weir_p2p_verdict {
	__u32 size;
	__u32 flags;
	struct weir_p2p_function gpu;
	struct weir_p2p_function ssd;
	__u32 verdict;
	__u32 topology;
	__u32 iommu;
	__u32 reasons;
	__s32 distance;
	__u32 reserved;
	char text[WEIR_P2P_TEXT_BYTES];
};

/* weir_p2p_import.flags */
#define WEIR_P2P_REQUIRE_VRAM (1U << 0) /* refuse unless every byte is in a BAR */

/**
 * struct weir_p2p_import - attach a dma-buf to an NVMe function (WEIR_P2P_IMPORT, control node)
 * @size: bytes of this structure
 * @flags: WEIR_P2P_REQUIRE_VRAM or 0
 * @ssd: the NVMe function that is to reach it
 * @fd: the dma-buf
 * @eventfd: signalled when the exporter moves or revokes the buffer; -1: none
 * @offset: where in the dma-buf to begin
 * @bytes: length; 0: to its end; out: bytes imported
 * @handle: out: names it, on this file
 * @in_vram: out: 1 if every byte lies in a BAR, 0 if some is system memory
 * @segments: out: ranges that are contiguous for the SSD
 * @reserved: 0
 *
 * Errors: EBADF, EINVAL: no dma-buf, misaligned; ERANGE: beyond its end; ENODEV, ENXIO: no such NVMe
 * function; EREMOTEIO: system memory where WEIR_P2P_REQUIRE_VRAM is asked for; EBUSY: the function belongs to
 * VFIO; ENOSPC; ETIMEDOUT: the exporter was not through with moving it after 30 s; EINTR: a signal came
 * before; and those of the exporter.
 */
struct weir_p2p_import {
	__u32 size;
	__u32 flags;
	struct weir_p2p_function ssd;
	__s32 fd;
	__s32 eventfd;
	__u64 offset;
	__u64 bytes;
	__u32 handle;
	__u32 in_vram;
	__u32 segments;
	__u32 reserved;
};

/**
 * struct weir_p2p_prp - the PRP entries of a transfer, for the controller of an import (WEIR_P2P_PRP, control
 * node)
 * @size: bytes of this structure
 * @handle: of an import
 * @offset: where in it the transfer begins, in multiples of 4
 * @bytes: its length, at most 2 MiB, a multiple of 4
 * @prp1: out: first entry
 * @prp2: out: 0, second entry, or the address of a list, which the kernel keeps until the import ends
 * @entries: out: entries in all
 * @reserved: 0
 *
 * What it gives are addresses as the controller sees them: whoever can ring its doorbells can use them. Needs
 * CAP_SYS_RAWIO. Errors: EPERM; ENOENT; EINVAL; ERANGE; ENOMEM; ENOSPC: too many lists; EIO: it
 * lies where PRP entries cannot tell; ESTALE: the exporter has moved or revoked it.
 */
struct weir_p2p_prp {
	__u32 size;
	__u32 handle;
	__u64 offset;
	__u64 bytes;
	__u64 prp1;
	__u64 prp2;
	__u32 entries;
	__u32 reserved;
};

/* weir_p2p_io.flags */
#define WEIR_P2P_WRITE (1U << 0) /* from the buffer to the file; else from the file to the buffer */

/**
 * struct weir_p2p_io - file I/O on a registered or imported buffer, done by the kernel (WEIR_P2P_IO, both
 * nodes)
 * @size: bytes of this structure
 * @flags: WEIR_P2P_WRITE or 0
 * @handle: of the buffer, on this file
 * @fd: a file opened with O_DIRECT
 * @file_offset: where in the file, in multiples of its block size
 * @buffer_offset: where in the buffer, in multiples of 512
 * @bytes: length, in multiples of the file's block size
 * @done: out: bytes done, fewer at the end of the file, after a signal, and if the buffer comes to its end
 * meanwhile; what is under way is waited for then
 *
 * For kernels and file systems that refuse a user pointer to such pages. Buffers that are not in a claimed
 * window have no pages and are refused. Errors: ENOENT; EBADF: no file, not open for that, or to be written
 * and O_APPEND; EINVAL: misaligned, or the file is not O_DIRECT; ERANGE: beyond the buffer; ENOTBLK: the
 * buffer has no pages; ESTALE: moved or revoked; and those of reading and writing.
 */
struct weir_p2p_io {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__s32 fd;
	__u64 file_offset;
	__u64 buffer_offset;
	__u64 bytes;
	__u64 done;
};

/**
 * struct weir_p2p_ring - a queue's ring
 * @handle: of a range, on this file
 * @reserved: 0
 * @offset: where in it the ring begins
 * @bytes: its length, not rounded
 */
struct weir_p2p_ring {
	__u32 handle;
	__u32 reserved;
	__u64 offset;
	__u64 bytes;
};

/**
 * struct weir_p2p_queue - say that this file is about to have a queue pair (WEIR_P2P_QUEUE_ADD, window node)
 * @size: bytes of this structure
 * @flags: 0
 * @ssd: the NVMe function, which keeps the kernel's driver
 * @qid: number of both queues; which are free, the driver's queue_count and Get Features (Number of Queues)
 * tell
 * @handle: out: names it, on this file
 * @sq: ring of the submission queue
 * @cq: ring of the completion queue
 * @sq_address: out: where the controller sees the one
 * @cq_address: out: and the other
 * @mmap_offset: out: the offset to give to mmap(), MAP_SHARED, for the doorbells
 * @mmap_bytes: out: what to map of it: all
 * @doorbell: out: where in that the submission queue's doorbell is
 * @doorbell_stride: out: the completion queue's is so many bytes behind it
 * @reserved: 0
 *
 * The program then creates both queues itself, the completion queue first, by NVME_IOCTL_ADMIN_CMD on the
 * controller's device file: physically contiguous, no interrupts, @addr the pointer to the ring's first page,
 * of a page's length. Having deleted both it calls WEIR_P2P_QUEUE_REMOVE, which waits where the SSD's driver
 * is leaving: it may not have switched the controller off yet. Until then no range of this file is given back
 * (EBUSY). Where a program ends without that, where the GPU's window ends or its driver takes memory back,
 * the controller is reset, which the kernel's driver is told of. Doorbells are mapped once, by whom has
 * CAP_SYS_RAWIO; once the SSD loses its driver they give SIGBUS.
 *
 * Needs CAP_SYS_RAWIO: whoever rings reaches all memory that the controller does, every block, and all other
 * queues. Errors: EPERM; EINVAL; ENOENT: no such range; ENODEV, ENXIO: no such NVMe function, or it has no
 * driver; EREMOTEIO: an IOMMU translates, or it cannot reach the GPU; EOPNOTSUPP: it cannot be reset; ERANGE:
 * no doorbells for that number, or none in pages of their own; EEXIST: this file has it; EBUSY: somebody else
 * does; EOPNOTSUPP: the window is over an SSD's memory.
 */
struct weir_p2p_queue {
	__u32 size;
	__u32 flags;
	struct weir_p2p_function ssd;
	__u32 qid;
	__u32 handle;
	struct weir_p2p_ring sq;
	struct weir_p2p_ring cq;
	__u64 sq_address;
	__u64 cq_address;
	__u64 mmap_offset;
	__u64 mmap_bytes;
	__u32 doorbell;
	__u32 doorbell_stride;
	__u64 reserved;
};

/**
 * struct weir_p2p_locate - where controllers see memory of a range, if no IOMMU translates (WEIR_P2P_LOCATE,
 * window node)
 * @size: bytes of this structure
 * @handle: of the range
 * @offset: a page in it
 * @address: out: of that
 * @bytes: out: contiguous from there
 *
 * Needs CAP_SYS_RAWIO. Errors: EPERM; ENOENT; ERANGE: beyond the range, or not where a page begins.
 */
struct weir_p2p_locate {
	__u32 size;
	__u32 handle;
	__u64 offset;
	__u64 address;
	__u64 bytes;
};

/**
 * struct weir_p2p_flush - have the GPU see what others wrote to its memory (WEIR_P2P_FLUSH, window node)
 * @size: bytes of this structure
 * @flags: 0
 *
 * By the vendor's shim. Errors: EOPNOTSUPP: none is loaded, or it has no flush; EINVAL; and those of the
 * vendor's driver.
 */
struct weir_p2p_flush {
	__u32 size;
	__u32 flags;
};

/**
 * struct weir_p2p_reason - why the last call on this file that failed did (WEIR_P2P_REASON, every node)
 * @size: bytes of this structure
 * @error: out: its errno, positive; 0: none failed
 * @text: out: a sentence
 */
struct weir_p2p_reason {
	__u32 size;
	__u32 error;
	char text[WEIR_P2P_TEXT_BYTES];
};

#define WEIR_P2P_MAGIC        0xEB
#define WEIR_P2P_INFO         _IOWR(WEIR_P2P_MAGIC, 0, struct weir_p2p_info)
#define WEIR_P2P_CLAIM        _IOWR(WEIR_P2P_MAGIC, 1, struct weir_p2p_claim)
#define WEIR_P2P_UNCLAIM      _IOWR(WEIR_P2P_MAGIC, 2, struct weir_p2p_claim)
#define WEIR_P2P_REGISTER     _IOWR(WEIR_P2P_MAGIC, 3, struct weir_p2p_register)
#define WEIR_P2P_DEREGISTER   _IOWR(WEIR_P2P_MAGIC, 4, struct weir_p2p_deregister)
#define WEIR_P2P_VERDICT      _IOWR(WEIR_P2P_MAGIC, 5, struct weir_p2p_verdict)
#define WEIR_P2P_IMPORT       _IOWR(WEIR_P2P_MAGIC, 6, struct weir_p2p_import)
#define WEIR_P2P_PRP          _IOWR(WEIR_P2P_MAGIC, 7, struct weir_p2p_prp)
#define WEIR_P2P_IO           _IOWR(WEIR_P2P_MAGIC, 8, struct weir_p2p_io)
#define WEIR_P2P_REASON       _IOWR(WEIR_P2P_MAGIC, 9, struct weir_p2p_reason)
#define WEIR_P2P_QUEUE_ADD    _IOWR(WEIR_P2P_MAGIC, 16, struct weir_p2p_queue)
#define WEIR_P2P_QUEUE_REMOVE _IOWR(WEIR_P2P_MAGIC, 17, struct weir_p2p_deregister)
#define WEIR_P2P_LOCATE       _IOWR(WEIR_P2P_MAGIC, 18, struct weir_p2p_locate)
#define WEIR_P2P_FLUSH        _IOWR(WEIR_P2P_MAGIC, 19, struct weir_p2p_flush)

#ifdef __cplusplus
#define WEIR_P2P_SIZE(type, bytes) static_assert(sizeof(struct type) == (bytes), "ABI")
#else
#define WEIR_P2P_SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "ABI")
#endif
WEIR_P2P_SIZE(weir_p2p_function, 8);
WEIR_P2P_SIZE(weir_p2p_info, 56);
WEIR_P2P_SIZE(weir_p2p_claim, 32);
WEIR_P2P_SIZE(weir_p2p_register, 40);
WEIR_P2P_SIZE(weir_p2p_deregister, 8);
WEIR_P2P_SIZE(weir_p2p_verdict, 304);
WEIR_P2P_SIZE(weir_p2p_import, 56);
WEIR_P2P_SIZE(weir_p2p_prp, 48);
WEIR_P2P_SIZE(weir_p2p_io, 48);
WEIR_P2P_SIZE(weir_p2p_reason, 264);
WEIR_P2P_SIZE(weir_p2p_ring, 24);
WEIR_P2P_SIZE(weir_p2p_queue, 120);
WEIR_P2P_SIZE(weir_p2p_locate, 32);
WEIR_P2P_SIZE(weir_p2p_flush, 8);

#endif
