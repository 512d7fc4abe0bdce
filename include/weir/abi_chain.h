/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * abi_chain.h: the structures of locks and of the lock chain, which host and lanes share.
 *
 * Owns: their layout, and nothing else. Part of abi.h, whose rules hold here; WEIR_ABI_VERSION changes with
 * them, too.
 */
#ifndef WEIR_ABI_CHAIN_H
#define WEIR_ABI_CHAIN_H

#include <weir/port.h>

/**
 * struct weir_lock - a lock of the user's that lanes try; zeroed is free
 * @word: 0 while free; held: 1, or in lanes built with WEIR_LOCK_CHAIN the holder's
 *        thread + 1 in 31:0 and its count of takes in 63:32
 */
struct weir_lock {
	weir_shared_u64 word;
};

WEIR_ASSERT_SIZE(struct weir_lock, 8);

enum { WEIR_CHAIN_HOLDS = 8, WEIR_CHAIN_LINKS = 8 };

/**
 * struct weir_chain_lane - which locks one lane holds and wants (core/debug/chain.h)
 * @want: the struct weir_lock it waits for, or 0
 * @generation: waits it has ended
 * @wave: its weir_wave()
 * @want_name: name of @want
 * @held: entries of @hold, its own like all that follow
 * @trying: the lock it failed to take last
 * @seen: the word it saw there while a lane of its own wave held it
 * @tries: how often in a row, up to weir_chain.timeout
 * @streak: how often in a row @seen was the same
 * @takes: locks it ever took
 * @hold: locks it holds; those past the eighth are not listed
 * @holder_name: their names
 */
struct weir_chain_lane {
	weir_shared_u64 want;
	weir_shared_u64 generation;
	weir_shared_u64 wave;
	weir_shared_u32 want_name;
	u32 held;
	weir_addr trying;
	u64 seen;
	u32 tries;
	u32 streak;
	u32 takes;
	u32 padding;
	weir_addr hold[WEIR_CHAIN_HOLDS];
	u32 holder_name[WEIR_CHAIN_HOLDS];
	u64 reserved[4];
};

WEIR_ASSERT_SIZE(struct weir_chain_lane, 192);

/** struct weir_chain_link - one lane of a report: a lock it holds, and the one it wants */
struct weir_chain_link {
	u64 lane;
	u64 wave;
	u32 holds;
	u32 wants;
};

WEIR_ASSERT_SIZE(struct weir_chain_link, 24);

/* What weir_chain.kind reports. */
enum {
	WEIR_CHAIN_CYCLE = 1, /* each lane wants what the next one holds, the last what the first holds */
	WEIR_CHAIN_WAVE = 2,  /* link[0] wants what link[1], a lane of its own wave, holds */
};

/**
 * struct weir_chain - the lock chain's table: all lanes' records, and one report
 * @abi_version: WEIR_ABI_VERSION of the host that made it
 * @retry_limit: failed tries in a row, nothing else tried or freed, that make a wait
 * @lanes: records; lanes past them are not recorded
 * @records: struct weir_chain_lane[lanes]
 * @own_wave: report waits for lanes of the same wave too
 * @kind: the report: WEIR_CHAIN_...
 * @length: the report: lanes in it; the first WEIR_CHAIN_LINKS have a link
 * @claimed: 0 no report, 1 being checked and written, 2 complete
 * @past: 0, or 1 + the index of a lane that has no record
 * @link: the report: lanes in the order in which they wait
 */
struct weir_chain {
	u32 abi_version;
	u32 retry_limit;
	u64 lanes;
	weir_addr records;
	u32 own_wave;
	u32 kind;
	u64 length;
	weir_shared_u32 claimed;
	u32 padding;
	weir_shared_u64 past;
	u64 reserved;
	struct weir_chain_link link[WEIR_CHAIN_LINKS];
};

WEIR_ASSERT_SIZE(struct weir_chain, 256);

#endif
