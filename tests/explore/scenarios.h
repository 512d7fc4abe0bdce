/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenarios.h: what scenarios' host side and kernels share.
 */
#ifndef EXPLORE_SCENARIOS_H
#define EXPLORE_SCENARIOS_H

#include <weir/abi.h>

enum { SCENARIO_BLOCK_BYTES = 512, SCENARIO_BLOCK_WORDS = 64, SCENARIO_BLOCKS = 64, SCENARIO_BAD_LBA = 5 };

/* What a write that must fail ends with, and how often that happens at most. */
enum { SCENARIO_WRITE_FAULT = 0x280, SCENARIO_WRITE_FAULTS = 5 };

/* The partner's block whose commands never end, where some do not. */
enum { SCENARIO_STUCK_LBA = 3 };

/* Modes of the kernel that puts. */
enum {
	SCENARIO_FLUSHES = 1,    /* lanes flush what they put, now and then, and look for it on storage */
	SCENARIO_DIRTY = 2,      /* the cache begins with a set of dirty lines, of generation 1 */
	SCENARIO_READS = 4,      /* lanes read other lines than those, and put nothing */
	SCENARIO_UNWRITABLE = 8, /* write-backs may fail; a put that says so has not happened */
	SCENARIO_DROPS = 16,     /* of tier_two: a block is written past the cache, and forgotten */
	SCENARIO_UNSAFE = 32,    /* of partner: lines of a dead storage may be lost to the other one, too */
};

/* Modes of the kernel of writes beside another storage's. */
enum {
	SCENARIO_STUCK = 1, /* one of its write-backs never ends */
	SCENARIO_LOST,      /* it dies */
};

/* Modes of the kernels of transfers and of holds. */
enum {
	SCENARIO_ONCE = 1, /* one line for all lanes */
	SCENARIO_FULL,     /* more blocks than a bucket of the table has entries */
	SCENARIO_COPIED,   /* one block, that some waves copy */
};

/* Modes of the kernel of datasets. */
enum {
	SCENARIO_DATASET_ENQUEUE = 1, /* batches are enqueued, and kernels behind them */
	SCENARIO_DATASET_SMALL = 2,   /* the sample cache has room for some of the chunks */
	SCENARIO_DATASET_BLOCKS = 4,  /* each sample's own blocks are read */
	SCENARIO_DATASET_LATE = 8,    /* a wait ends at its deadline, and the read it was for later */
	SCENARIO_DATASET_REFUSED = 16 /* some launches are refused, for want of memory */
};

/**
 * struct scenario_args - the kernels' one argument
 * @disk: struct weir_disk
 * @events: struct weir_event[lanes][requests]
 * @buffers: blocks, [lanes][requests]
 * @array: struct weir_array over the whole disk
 * @requests: per lane
 * @salt: varies which blocks are read
 * @tolerant: requests may fail (faults are on); data of those that do not is checked
 * @writer: struct weir_writer over the whole disk
 * @mode: SCENARIO_..., of the kernel that puts
 * @other: struct weir_array over the whole partner, whose blocks are the same; 0: there is none
 * @marks: u64[lanes][SCENARIO_BLOCKS]: the newest generation each lane wrote to its word of each block
 * @finished: lanes that are done
 * @pool: struct weir_pool, whose one region begins at SCENARIO_POOL_DATA, where there is no memory
 * @owners: u64 for each of its pages, of the lane that has it
 * @batches: struct weir_batches of the disk
 * @stream: struct dataset_stream
 * @disks: of how many storages @disk is the first
 * @choice: of all that the host's program decides
 */
struct scenario_args {
	weir_addr disk;
	weir_addr events;
	weir_addr buffers;
	weir_addr array;
	u32 requests;
	u32 salt;
	u32 tolerant;
	weir_shared_u32 finished;
	u32 mode;
	u32 padding;
	weir_addr writer;
	weir_addr other;
	weir_addr marks;
	weir_addr pool;
	weir_addr owners;
	weir_addr batches;
	weir_addr stream;
	u32 disks;
	u32 choice;
};

/* Pages below it are not the pool's; the second chunk's addresses end with it. */
#define SCENARIO_POOL_DATA ((weir_addr)1 << 40)

/* Modes of the kernel of the pool: sizes that lanes take. */
enum {
	SCENARIO_POOL_PAGES = 1,  /* one page, or a few */
	SCENARIO_POOL_LEVELS = 2, /* of all levels */
	SCENARIO_POOL_TWICE = 4,  /* another lane gives the same buffer back */
};

/* Word @word of block @lba in generation @generation. Part of the kernel: a function of its own is another
 * graph. */
static inline __attribute__((always_inline)) u64 scenario_word(u64 lba, u64 generation, u64 word)
{
	return (lba + 1) << 32 | generation << 16 | (word + 1);
}

#endif
