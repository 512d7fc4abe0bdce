/* SPDX-License-Identifier: GPL-2.0-only */
/* Pins that outlive the process's own release of the memory: nvidia_persistent.c, where the driver's header
 * has them. */
#ifndef WEIR_P2P_NVIDIA_H
#define WEIR_P2P_NVIDIA_H

#include <linux/types.h>

struct nvidia_p2p_page_table;

/**
 * weir_nvidia_persistent_pin() - pin, until weir_nvidia_persistent_unpin()
 * @address: the GPU's
 * @bytes: length
 * @table: out: where it lies
 * Return: 0; -EOPNOTSUPP: this driver has no such pins.
 */
int weir_nvidia_persistent_pin(u64 address, u64 bytes, struct nvidia_p2p_page_table **table);
/** weir_nvidia_persistent_unpin() - return: 0, or the driver's errno: it is still pinned */
int weir_nvidia_persistent_unpin(u64 address, struct nvidia_p2p_page_table *table);

#endif
