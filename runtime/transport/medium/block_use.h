/* SPDX-License-Identifier: BSD-3-Clause */
/* block_use.h: by what a block device is in use, for a sentence: the kernel has refused it (O_EXCL) already.
 */
#ifndef WEIR_TRANSPORT_BLOCK_USE_H
#define WEIR_TRANSPORT_BLOCK_USE_H

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_BLOCK_USE = 256 };

/**
 * weir_block_use() - what uses block device @device, a clause of which that is the subject
 *
 * Return: whether that is a mount, swap or another device; else it is a program.
 */
bool weir_block_use(uint64_t device, char use[WEIR_BLOCK_USE]);

#endif
