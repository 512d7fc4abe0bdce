/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * window.h: device memory that is a range of a window of the kernel module weir_p2p, mapped.
 *
 * Owns: the open node and its one range. Whoever has the node adds queue pairs to it (kmod-p2p/weir_p2p.h).
 */
#ifndef WEIR_WINDOW_H
#define WEIR_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct weir_window - all of a window
 * @node: its open node
 * @handle: of the range, on that file
 * @host: where it is mapped, which is also what lanes call it
 * @bytes: how much of it there is
 * @name: of the node, for sentences; valid as long as the caller's
 */
struct weir_window {
	int node;
	uint32_t handle;
	char *host;
	uint64_t bytes;
	const char *name;
};

/** weir_window_take() - register and map all of the window of the open @node; a negative errno with a
 * sentence */
int weir_window_take(int node, const char *name, struct weir_window *out);
/** weir_window_leave() - unmap it; closing the node gives it back. Nothing if it was not taken */
void weir_window_leave(struct weir_window *window);
/**
 * weir_window_locate() - where controllers see it, if no IOMMU translates
 * @bus_offset: what to add to an address of lanes, modulo 2^64
 *
 * Needs CAP_SYS_RAWIO. Return: 0 or a negative errno with a sentence.
 */
int weir_window_locate(const struct weir_window *window, uint64_t *bus_offset);
/** weir_window_reason() - why the last call on @node failed, which left errno, and it stays so; valid until
 * the thread's next call of this */
const char *weir_window_reason(int node);

#endif
