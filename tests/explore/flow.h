/* SPDX-License-Identifier: BSD-3-Clause */
/* flow.h: basic blocks of the loaded kernels, by number, and where lanes join. */
#ifndef EXPLORE_FLOW_H
#define EXPLORE_FLOW_H

#include <stdbool.h>

#include <weir/types.h>

/* Not a block: the end of the kernel. */
#define FLOW_EXIT (~(u32)0)

/** flow_load() - once, after the kernels were loaded */
void flow_load(void);
/** flow_prepare() - find out about the blocks of kernel @function */
void flow_prepare(const void *function);
/** flow_block() - the block of a guard's number */
u32 flow_block(u32 guard);
/** flow_join() - where the ways out of @block join: its immediate post-dominator */
u32 flow_join(u32 block);
/** flow_position() - place of @block in an order with contiguous loops; @flipped: other sides first */
u32 flow_position(u32 block, bool flipped);
const void *flow_pc(u32 block);

#endif
