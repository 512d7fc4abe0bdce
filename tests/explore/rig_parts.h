/* SPDX-License-Identifier: BSD-3-Clause */
/* rig_parts.h: what the rig's files share: the medium's blocks, and which queue pairs die. */
#ifndef EXPLORE_RIG_PARTS_H
#define EXPLORE_RIG_PARTS_H

#include <weir/abi.h>

#include "scenarios.h"

enum { LINE_LOG2 = 9 };

extern u64 rig_blocks[SCENARIO_BLOCKS][SCENARIO_BLOCK_WORDS];

/* The first of the queue pairs that end with the storage that dies. */
u32 rig_first_dying(void);

#endif
