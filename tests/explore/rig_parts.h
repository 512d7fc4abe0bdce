/* SPDX-License-Identifier: BSD-3-Clause */
/* rig_parts.h: what the rig's files share: the medium's blocks, and which queue pairs die. */
#ifndef EXPLORE_RIG_PARTS_H
#define EXPLORE_RIG_PARTS_H

#include <stdbool.h>

#include <weir/abi.h>

#include "scenarios.h"

enum { LINE_LOG2 = 9 };

enum { RIG_BLOCKS_BYTES = SCENARIO_BLOCKS * SCENARIO_BLOCK_BYTES };

extern u64 (*rig_blocks)[SCENARIO_BLOCK_WORDS];

/* rig_cache.c */

void rig_lay_out_cache(void);

/* rig_nic.c */

/* What was laid out for the controller becomes the target's; lanes get others. */
void rig_lay_out_nic(struct weir_queue *queue, u32 index);
/* Return: one of them did something. */
bool rig_step_nics(void);

/* rig_placed.c */

struct weir_io;

void rig_lay_out_placed(void);
/* Return: a map changed. */
bool rig_step_placed(void);
void rig_note_placed(const struct weir_io *io);
/* The host waits until all engines have one map. */
bool rig_waits_placed(const struct weir_io *io);
/* Its NVMe status. */
u32 rig_move_placed(const struct weir_io *io);
void rig_check_placed(void);

/* The first of the queue pairs that end with the storage that dies. */
u32 rig_first_dying(void);

#endif
