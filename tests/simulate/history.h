/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * history.h: what the blocks of a volume may hold: a regular register with one writer at a time for each.
 *
 * Owns: for each block the writes in the order of their versions, and which of them a read may return:
 *
 * - nothing older than the last write that was acknowledged before the read began, but for older writes that
 * are still under way themselves;
 * - nothing that was not begun before the read ended;
 * - of writes that were not acknowledged, any, until the next lease is granted: from then on all reads agree;
 * - after a loss of power everywhere, nothing older than the last write that was durable; of later ones any;
 * - of writes that began after a newer lease was granted, none, and none of them is acknowledged.
 *
 * Knows nothing of the simulator.
 */
#ifndef WEIR_SIMULATE_HISTORY_H
#define WEIR_SIMULATE_HISTORY_H

#include <stdbool.h>

#include <weir/types.h>

/** enum history_state - of a write; gone: a read has shown that the next lease found it nowhere; dead: it
 * began when its lease was over */
enum history_state { HISTORY_OPEN, HISTORY_ACKNOWLEDGED, HISTORY_FAILED, HISTORY_GONE, HISTORY_DEAD };

/** struct history_write - @value: 0: zeros; @end: when it ended, 0: it has not; @epoch: of the lease; @state:
 * enum history_state */
struct history_write {
	u64 value;
	u64 end;
	u32 epoch;
	u8 state;
};

/** struct history_block - @floor: the oldest write that may be read; @durable: likewise, after a loss of
 * power; writes up to @settled are decided */
struct history_block {
	struct history_write *writes;
	u32 count;
	u32 room;
	u32 floor;
	u32 durable;
	u32 settled;
};

/** struct history - @lease: the newest that was granted; @time: counts begins and ends; @losses: of power */
struct history {
	struct history_block *blocks;
	u32 block_count;
	u32 lease;
	u64 time;
	u32 losses;
};

/** struct history_read - what was so when a read began */
struct history_read {
	u64 begin;
	u32 losses;
	u32 floor;
	u32 settled;
};

void history_create(struct history *history, u32 blocks);
void history_destroy(struct history *history);
/** history_granted() - a lease was granted; what was not acknowledged under older ones is decided */
void history_granted(struct history *history, u32 epoch);
/** history_write_begin() - its number */
u32 history_write_begin(struct history *history, u32 block, u32 epoch, u64 value);
/** history_write_end() - NULL, or what is wrong */
const char *history_write_end(struct history *history, u32 block, u32 number, bool acknowledged);
/** history_write_durable() - it is acknowledged, and was forced */
void history_write_durable(struct history *history, u32 block, u32 number);
/** history_flush_begin() - what history_flush_end() wants for each block, in @floors */
void history_flush_begin(const struct history *history, u32 *floors);
/** history_flush_end() - it succeeded */
void history_flush_end(struct history *history, const u32 *floors);
/** history_power_lost() - everywhere */
void history_power_lost(struct history *history);
struct history_read history_read_begin(struct history *history, u32 block);
/** history_read_end() - NULL, or what is wrong */
const char *history_read_end(struct history *history, u32 block, struct history_read begun, u64 value);
/** history_is_written() - whether @value was ever written to @block, or it is 0 */
bool history_is_written(const struct history *history, u32 block, u64 value);

#endif
