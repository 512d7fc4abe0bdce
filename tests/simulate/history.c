/* SPDX-License-Identifier: BSD-3-Clause */
/* history.c: which of a block's writes a read may return. */
#include "history.h"

#include <stdlib.h>

static void append(struct history_block *block, struct history_write write)
{
	if (block->count == block->room) {
		block->room = block->room ? 2 * block->room : 8;
		block->writes = realloc(block->writes, block->room * sizeof(*block->writes));
		if (!block->writes)
			abort();
	}
	block->writes[block->count++] = write;
}

void history_create(struct history *history, u32 blocks)
{
	*history =
		(struct history){ .blocks = calloc(blocks, sizeof(*history->blocks)), .block_count = blocks };
	if (!history->blocks)
		abort();
	for (u32 i = 0; i < blocks; i++)
		append(&history->blocks[i], (struct history_write){ .state = HISTORY_ACKNOWLEDGED });
}

void history_destroy(struct history *history)
{
	for (u32 i = 0; i < history->block_count; i++)
		free(history->blocks[i].writes);
	free(history->blocks);
}

void history_granted(struct history *history, u32 epoch)
{
	if (epoch <= history->lease)
		return;
	history->lease = epoch;
	for (u32 i = 0; i < history->block_count; i++)
		history->blocks[i].settled = history->blocks[i].count;
}

u32 history_write_begin(struct history *history, u32 block, u32 epoch, u64 value)
{
	struct history_block *at = &history->blocks[block];

	append(at, (struct history_write){ .value = value,
					   .epoch = epoch,
					   .state = epoch < history->lease ? HISTORY_DEAD : HISTORY_OPEN });
	return at->count - 1;
}

const char *history_write_end(struct history *history, u32 block, u32 number, bool acknowledged)
{
	struct history_block *at = &history->blocks[block];
	struct history_write *write = &at->writes[number];

	if (write->state == HISTORY_DEAD || write->state == HISTORY_GONE)
		return acknowledged ? "a write is acknowledged under a lease that is over" : NULL;
	write->end = ++history->time;
	write->state = acknowledged ? HISTORY_ACKNOWLEDGED : HISTORY_FAILED;
	if (acknowledged && number > at->floor)
		at->floor = number;
	return NULL;
}

void history_write_durable(struct history *history, u32 block, u32 number)
{
	struct history_block *at = &history->blocks[block];

	if (number > at->durable)
		at->durable = number;
}

void history_flush_begin(const struct history *history, u32 *floors)
{
	for (u32 i = 0; i < history->block_count; i++)
		floors[i] = history->blocks[i].floor;
}

void history_flush_end(struct history *history, const u32 *floors)
{
	for (u32 i = 0; i < history->block_count; i++)
		history_write_durable(history, i, floors[i]);
}

void history_power_lost(struct history *history)
{
	history->losses++;
	for (u32 i = 0; i < history->block_count; i++) {
		struct history_block *at = &history->blocks[i];

		at->floor = at->durable;
		for (u32 j = at->durable + 1; j < at->count; j++)
			if (at->writes[j].state == HISTORY_ACKNOWLEDGED)
				at->writes[j].state = HISTORY_FAILED;
	}
}

struct history_read history_read_begin(struct history *history, u32 block)
{
	return (struct history_read){ ++history->time, history->losses, history->blocks[block].floor,
				      history->blocks[block].settled };
}

bool history_is_written(const struct history *history, u32 block, u64 value)
{
	const struct history_block *at = &history->blocks[block];

	for (u32 i = 0; i < at->count; i++)
		if (at->writes[i].value == value)
			return true;
	return false;
}

/* The read began after the grant that settled write @number: those behind it are not there. */
static void settle(struct history_block *at, u32 number)
{
	for (u32 i = number + 1; i < at->settled; i++)
		at->writes[i].state = HISTORY_GONE;
	if (number > at->floor)
		at->floor = number;
}

/* A read that began before the grant may have met what the grant removed. */
static bool is_decided_against(const struct history_block *at, u32 number, struct history_read begun)
{
	const struct history_write *write = &at->writes[number];

	return write->state == HISTORY_DEAD || (write->state == HISTORY_GONE && begun.settled == at->settled);
}

static bool may_be(const struct history *history, u32 block, u32 number, struct history_read begun, u64 value)
{
	const struct history_block *at = &history->blocks[block];
	const struct history_write *write = &at->writes[number];
	bool under_way = write->epoch == history->lease && (!write->end || write->end > begun.begin);

	return write->value == value && !is_decided_against(at, number, begun) &&
	       (number >= begun.floor || (number && under_way));
}

const char *history_read_end(struct history *history, u32 block, struct history_read begun, u64 value)
{
	struct history_block *at = &history->blocks[block];
	u32 found = 0, matches = 0;

	if (begun.losses != history->losses)
		return history_is_written(history, block, value) ? NULL
								 : "a read returns what was never written";
	for (u32 i = 0; i < at->count; i++)
		if (may_be(history, block, i, begun, value)) {
			found = i;
			matches++;
		}
	if (matches == 1 && begun.settled == at->settled && found < at->settled)
		settle(at, found);
	if (matches)
		return NULL;
	if (!history_is_written(history, block, value))
		return "a read returns what was never written";
	for (u32 i = begun.floor; i < at->count; i++)
		if (at->writes[i].value == value)
			return "a read returns a write that cannot be there";
	return "a read returns what was written over before it began";
}
