/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* /dev/fake_gpu: what a GPU's driver does, for the tests of the kernel module weir_p2p. */
#ifndef WEIR_TESTS_FAKE_GPU_H
#define WEIR_TESTS_FAKE_GPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Where an exported buffer lies: in the BAR; in system memory, though nobody says so; both by turns of 64
 * KiB. */
#define FAKE_GPU_VRAM   0
#define FAKE_GPU_SYSTEM 1
#define FAKE_GPU_MIXED  2

/* What the GPU calls the beginning of its memory, by read() and write(), too; its chunks are in another order
 * in the BAR. */
#define FAKE_GPU_FIRST (1ULL << 32)

/** struct fake_gpu_export - a dma-buf; @fd: out */
struct fake_gpu_export {
	__u64 offset;
	__u64 bytes;
	__u32 kind;
	__s32 fd;
};

#define FAKE_GPU_EXPORT _IOWR(0xEC, 0, struct fake_gpu_export)
/* All exported buffers' importers are told that they move. */
#define FAKE_GPU_MOVE _IO(0xEC, 1)

#endif
