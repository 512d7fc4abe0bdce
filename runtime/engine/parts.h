/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/parts.h: what the parts of an engine offer one another; private to this folder.
 *
 * Who may touch what: all of struct weir_engine is under its lock, but for what is set when it is opened, and
 * for requests, which belong to the thread that submitted them.
 */
#ifndef WEIR_ENGINE_PARTS_H
#define WEIR_ENGINE_PARTS_H

#include <pthread.h>

#include "engine.h"

enum {
	ENGINE_BLOCK_BYTES = NVME_VOLUME_BLOCK_BYTES,
	ENGINE_BUCKET = 4,      /* slots of a bucket of the table */
	ENGINE_SPARE_ERASE = 2, /* erase blocks that only garbage collection may take */
	ENGINE_LOW_ERASE = 4,   /* with as many left, or fewer, garbage is collected */
	ENGINE_BUFFER_BYTES = 1 << 20,
	ENGINE_CHUNK_LOG2 = 12,
	ENGINE_CHUNK = 1 << ENGINE_CHUNK_LOG2, /* tombstones whose memory is allocated together */
};

#define ENGINE_NONE (~(u32)0)

/* States of a header. */
enum engine_state {
	ENGINE_FREE,
	ENGINE_BUSY,  /* being written */
	ENGINE_VALID, /* the table leads here */
	ENGINE_DEAD,  /* until its erase block is erased */
};

/**
 * struct engine_header - whose a block of the medium is; behind these of blocks, those of tombstones
 * @crc: CRC32C of its data
 * @damaged: it was read, and is not what was written: a write of the same version is not superfluous
 * @moved: as engine.moved says, if the table came to lead here, or left it, while a checkpoint was written;
 * on the medium 1 if so
 * @lap: that of engine.sweep, if the sweep has passed it, or it came afterwards; not on the medium
 *
 * There is one for each block of the medium: 20 bytes, without the 4 that a version would be aligned by.
 */
struct engine_header {
	u64 version;
	u32 vba;
	u32 crc;
	u16 vid;
	u8 state;
	u8 damaged : 1, moved : 6, lap : 1;
} __attribute__((packed, aligned(4)));

WEIR_ASSERT_SIZE(struct engine_header, 20);

/**
 * struct engine_noted - a header as the medium keeps it
 * @is: of a checkpoint's tombstone: its state is 1 if its block is in the second of its two buckets, else 0
 * @index: of it, there; in the journal 0: the record has it
 */
struct engine_noted {
	struct engine_header is;
	u32 index;
};

WEIR_ASSERT_SIZE(struct engine_noted, 24);

/** struct engine_shard - part of the table, which grows by itself; @slots: 4 for each of @buckets */
struct engine_shard {
	u32 *slots;
	u32 buckets;
};

/** struct engine_table - from [VID, VBA] to a header; @index_mask: bits of a slot that are a header's index
 */
struct engine_table {
	struct engine_shard *shards;
	u32 shard_count;
	u32 index_mask;
};

enum engine_erase_state {
	ENGINE_ERASE_FREE,
	ENGINE_ERASE_OPEN,
	ENGINE_ERASE_FULL,
	ENGINE_ERASE_LEAVING, /* nothing in it is valid; free once the journal says so, too */
	ENGINE_ERASE_BAD,     /* a block in use cannot be read: it stays as it is until that one is gone */
};

/**
 * struct engine_erase - an erase block
 * @sequence: grows with each that is opened: the order in which blocks were written
 * @erases: how often it was erased
 * @valid: of its blocks
 * @busy: of its blocks, being written
 * @readers: reads of it under way
 * @commit: after which it is free
 */
struct engine_erase {
	u64 sequence;
	u32 erases;
	u32 valid;
	u32 busy;
	u32 readers;
	u64 commit;
	u8 state;
};

/** struct engine_volume - a volume and who may do what; @permissions: by client */
struct engine_volume {
	struct nvme_volume is;
	struct nvme_volume_permission *permissions;
	u32 permission_count;
};

/**
 * struct engine_shape - where things are on the medium behind, in blocks
 * @journal: ring of pages, @journal_blocks of them
 * @checkpoint: two, each of @checkpoint_blocks
 * @data: erase blocks: @erase_count of @erase_blocks
 * @user_blocks: that volumes can use
 * @tombstones: most of them; how many there is memory for is another matter (space.c)
 */
struct engine_shape {
	u64 journal;
	u64 checkpoint;
	u64 data;
	u32 journal_blocks;
	u32 checkpoint_blocks;
	u32 erase_blocks;
	u32 erase_count;
	u32 user_blocks;
	u32 tombstones;
};

enum {
	ENGINE_QUEUES = 64,         /* volumes whose numbers differ by a multiple of it have one in common */
	ENGINE_WINDOW_BLOCKS = 512, /* under way on the medium behind, of each thread: enough for any SSD */
};

/** struct engine_queue - requests of a volume that wait; @start: when the next one's turn is */
struct engine_queue {
	struct engine_request *first;
	struct engine_request *last;
	u64 start;
};

/**
 * struct engine_arbiter - who is next; a controller thread's own (arbiter.c)
 * @active: bit for each queue that has something
 * @now: turn of the request that began last, in blocks divided by weights
 * @blocks: under way on the medium behind
 * @stalled: begun, and not all given to the medium behind, which takes no more now
 * @pushing: a request is being given to it
 */
struct engine_arbiter {
	struct engine_queue queues[ENGINE_QUEUES];
	u64 active;
	u64 now;
	u32 blocks;
	bool pushing;
	struct engine_request *stalled;
};

/**
 * struct engine_sweep - blocks that are gone are being dropped (sweep.c)
 * @deleted: bit for each number of a volume whose blocks may be here, though it was deleted
 * @at: the header that is looked at next; @left: how many are left to look at; 0: nothing is to be dropped
 * @misplaced: blocks that the map places elsewhere are gone, but for those of this @lap, which came later
 */
struct engine_sweep {
	u8 deleted[NVME_VOLUME_MOST / 8 + 1];
	u32 at;
	u32 left;
	bool misplaced;
	u8 lap;
};

/** struct engine_thread - what a controller thread has under way; its own */
struct engine_thread {
	struct engine_arbiter arbiter;
	struct engine_request *waiting; /* for a commit */
	struct engine_request *waiting_last;
	unsigned finished;
} __attribute__((aligned(64)));

/**
 * struct weir_engine - an engine
 * @closing: it is being closed in order
 * @changed: signalled when @wanted grows, and when @committed does
 * @headers: of shape.erase_count * shape.erase_blocks blocks
 * @tombstones: headers of tombstones, ENGINE_CHUNK each, or NULL where there was no need for them yet;
 * @tombstone_room: for so many there is memory; @tombstone_count: so many there are
 * @open: erase block being written, or ENGINE_NONE; @fill: blocks of it that were given away
 * @coming: blocks being written that the table does not have yet
 * @tombstone_next: where the look for a free one begins
 * @records: of the journal, not written yet: @record_bytes
 * @wanted: commits that somebody waits for; @begun: of these; @committed: that are durable
 * @strays: blocks may be here that the map places elsewhere, and that the sweep passes over; while loading:
 * that no map has been asked for yet
 * @failed: the medium behind failed a write of the journal; nothing is changed any more
 */
struct weir_engine {
	struct weir_medium medium;
	struct weir_medium *behind;
	struct weir_medium_ops ops;
	char *manager;
	char path[160];
	unsigned threads;
	struct engine_thread *per_thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t worker;
	bool started;
	bool stop;
	bool closing;
	bool want_space;
	u32 want_blocks; /* of the last write that there was no room for; 0: it has it */
	bool blocked;    /* no garbage can be collected before a reader leaves, or more of it comes */
	struct engine_shape shape;
	struct engine_table table;
	struct engine_header *headers;
	struct engine_header **tombstones;
	u32 tombstone_room;
	u32 tombstone_count;
	struct engine_erase *erases;
	u64 sequence;
	u32 open;
	u32 fill;
	u32 free_erases;
	u32 leaving;
	u32 coming;
	u32 tombstone_next;
	struct engine_volume *volumes[NVME_VOLUME_MOST + 1];
	struct nvme_volume_map map;
	struct engine_sweep sweep;
	bool strays;
	u64 entries;  /* volumes and permissions */
	bool has_map; /* since it was opened */
	u32 *placement;
	u8 *records;
	u64 record_bytes;
	u64 record_room;
	u64 wanted;
	u64 begun;
	u64 committed;
	u64 journal_head;  /* sequence number of the next page */
	u64 journal_since; /* of the first that the newest checkpoint does not cover */
	u64 journal_least; /* while loading: it cannot have ended before */
	u64 generation;    /* of that checkpoint */
	u8 moved;          /* while one is written: a number of its own, more or less; else 0 */
	u64 format;        /* a random number, of when it was formatted */
	bool read_only;
	bool anew; /* it is formatted whatever is there */
	struct nvme_volume_map loading;
	bool failed;
	u8 *buffer; /* of the worker: ENGINE_BUFFER_BYTES */
	struct nvme_volume_engine_status status;
};

static inline void engine_lock(struct weir_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
}

static inline void engine_unlock(struct weir_engine *engine)
{
	pthread_mutex_unlock(&engine->lock);
}

static inline u32 engine_blocks(const struct weir_engine *engine)
{
	return engine->shape.erase_blocks * engine->shape.erase_count;
}

static inline bool engine_is_tombstone(const struct weir_engine *engine, u32 index)
{
	return index >= engine_blocks(engine);
}

/** engine_header() - header @index, which there is memory for */
static inline struct engine_header *engine_header(const struct weir_engine *engine, u32 index)
{
	u32 blocks = engine_blocks(engine);

	if (index < blocks)
		return &engine->headers[index];
	index -= blocks;
	return &engine->tombstones[index >> ENGINE_CHUNK_LOG2][index & (ENGINE_CHUNK - 1)];
}

/** engine_state() - of header @index, ENGINE_FREE where there is no memory for it */
static inline u8 engine_state(const struct weir_engine *engine, u32 index)
{
	u32 blocks = engine_blocks(engine);

	if (index >= blocks && !engine->tombstones[(index - blocks) >> ENGINE_CHUNK_LOG2])
		return ENGINE_FREE;
	return engine_header(engine, index)->state;
}

static inline struct engine_erase *engine_erase_of(struct weir_engine *engine, u32 index)
{
	return &engine->erases[index / engine->shape.erase_blocks];
}

/** engine_at() - byte of the medium behind where block @index is */
static inline u64 engine_at(const struct weir_engine *engine, u32 index)
{
	return (engine->shape.data + index) * ENGINE_BLOCK_BYTES;
}

/** weir_engine_of() - the engine whose medium it is */
static inline struct weir_engine *weir_engine_of(struct weir_medium *medium)
{
	return (struct weir_engine *)medium;
}

/* engine.c */

/** engine_forget() - what was read of a checkpoint that is not whole; 0 or -ENOMEM with a sentence */
int engine_forget(struct weir_engine *engine);
/** engine_want_space() - garbage is to be collected; under the lock */
void engine_want_space(struct weir_engine *engine);

/* pages.c */

/** engine_pause() - let others have their turn */
void engine_pause(void);

/* table.c: under the lock */

/** engine_table_create() - with room for @entries before it grows, that lead to headers 0 to @indices - 1;
 * 0 or -ENOMEM with a sentence */
int engine_table_create(struct engine_table *table, u64 entries, u64 indices);
void engine_table_destroy(struct engine_table *table);
/** engine_table_bytes() - memory that it takes */
u64 engine_table_bytes(const struct engine_table *table);
/** engine_table_prefetch() - it will soon be asked for; without the lock, too */
void engine_table_prefetch(const struct weir_engine *engine, u32 vid, u32 vba);
/** engine_table_expect() - the same, under the lock: its header, too, and if it @reads, its data */
void engine_table_expect(const struct weir_engine *engine, u32 vid, u32 vba, bool reads);
/** engine_table_find() - the header of a block, or ENGINE_NONE */
u32 engine_table_find(const struct weir_engine *engine, u32 vid, u32 vba);
/** engine_table_put() - it leads to header @index, which is filled; @was: where it led before, or
 * ENGINE_NONE; false: there is no memory for one more */
bool engine_table_put(struct weir_engine *engine, u32 index, u32 *was);
/** engine_table_remove() - it leads no more to header @index */
void engine_table_remove(struct weir_engine *engine, u32 index);

/** engine_shard_index() - the header that slot @at of @shard leads to, or ENGINE_NONE; @shard may be a copy
 */
u32 engine_shard_index(const struct weir_engine *engine, const struct engine_shard *shard, u32 at);
/** engine_shard_is_second() - whether slot @at is in the second bucket of the two of @header's block */
bool engine_shard_is_second(const struct engine_shard *shard, u32 at, const struct engine_header *header);
/** engine_shard_clear() - slot @at leads nowhere */
void engine_shard_clear(struct engine_shard *shard, u32 at);

/* While the engine is loaded; not under the lock, by one thread for each shard. false: it cannot be so, or
 * there is no memory */

/** engine_shard_resize() - shard @number has so many @buckets; it is empty, or had as many */
bool engine_shard_resize(struct weir_engine *engine, u32 number, u32 buckets);
/** engine_shard_fill() - its slots from @first on are @slots, which lead to blocks or nowhere */
bool engine_shard_fill(struct weir_engine *engine, u32 number, u32 first, const u32 *slots, u32 count);
/** engine_shard_add() - header @index, which is filled, is in the second bucket of its two, or in the first
 */
bool engine_shard_add(struct weir_engine *engine, u32 number, u32 index, bool second);

/* space.c: erase blocks and what is in them; under the lock */

/** engine_take() - a block to write to; ENGINE_NONE: none is free now. @collecting: garbage collection asks
 */
u32 engine_take(struct weir_engine *engine, bool collecting);
/** engine_can_take() - whether engine_take() would succeed @blocks times for a user */
bool engine_can_take(const struct weir_engine *engine, u32 blocks);
/** engine_give_back() - a block that was taken has not been written, or in vain */
void engine_give_back(struct weir_engine *engine, u32 index);
/** engine_reserve_tombstones() - memory for header @index; false: there is none */
bool engine_reserve_tombstones(struct weir_engine *engine, u32 index);
/** engine_take_tombstone() - ENGINE_NONE: there are too many */
u32 engine_take_tombstone(struct weir_engine *engine);
/** engine_install() - the table leads to header @index, which is filled, and no more to where it led */
bool engine_install(struct weir_engine *engine, u32 index);
/** engine_drop() - the block whose header is @index is gone */
void engine_drop(struct weir_engine *engine, u32 index);

/* sweep.c: under the lock */

/** engine_is_gone() - whether valid @header is of a block that is to be dropped */
bool engine_is_gone(const struct weir_engine *engine, const struct engine_header *header);
/** engine_is_here() - whether header @index is valid, and its block not to be dropped: that is done then */
bool engine_is_here(struct weir_engine *engine, u32 index);
/** engine_find() - the header of a block that is here, or ENGINE_NONE */
u32 engine_find(struct weir_engine *engine, u32 vid, u32 vba);
/** engine_sweep_volume() - volume @vid is no more: its blocks are gone */
void engine_sweep_volume(struct weir_engine *engine, u32 vid);
/** engine_sweep_map() - the map is another one: blocks that it places elsewhere are gone, if it is settled */
void engine_sweep_map(struct weir_engine *engine);
/** engine_may_add() - whether no block of a former volume @vid is left; false: after some more calls */
bool engine_may_add(struct weir_engine *engine, u32 vid);
/** engine_may_map() - whether no block is left that must not be here when @next takes the place of the map;
 * false: after some more calls */
bool engine_may_map(struct weir_engine *engine, const struct nvme_volume_map *next);
/** engine_sweep_some() - drop some of what is gone; false: there was nothing */
bool engine_sweep_some(struct weir_engine *engine);
/** engine_sweep() - drop some of what is gone; the worker's, not under the lock; 0: there was nothing */
unsigned engine_sweep(struct weir_engine *engine);

/* While the engine is loaded */

/** engine_drop_volume() - all blocks of volume @vid are gone */
void engine_drop_volume(struct weir_engine *engine, u32 vid);
/** engine_map_comes() - @next takes the place of the map: drop what was dropped when it did; 0 or a negative
 * errno with a sentence */
int engine_map_comes(struct weir_engine *engine, const struct nvme_volume_map *next);
/** engine_sweep_loaded() - volumes and map are those of before: what was gone then is dropped; 0 or a
 * negative errno with a sentence */
int engine_sweep_loaded(struct weir_engine *engine);

/* volumes.c: volumes, rights, the map; under the lock */

struct engine_volume *engine_volume_find(const struct weir_engine *engine, u32 vid);
/** engine_volume_weight() - 1 of a volume that is no more */
u32 engine_volume_weight(const struct weir_engine *engine, u32 vid);
/** engine_volume_set() - 0, or an NVMe status: COMMAND_INTERRUPTED: after some more calls */
u32 engine_volume_set(struct weir_engine *engine, const struct nvme_volume *volume);
/** engine_volume_delete() - its blocks are another matter (sweep.c) */
void engine_volume_delete(struct weir_engine *engine, u32 vid);
u32 engine_permission_set(struct weir_engine *engine, const struct nvme_volume_permission *permission);
const struct nvme_volume_permission *engine_permission_find(const struct engine_volume *volume, u32 client);
/** engine_permission_from() - of the first client whose number is at least @client; NULL: there is none */
const struct nvme_volume_permission *engine_permission_from(const struct engine_volume *volume, u32 client);
u32 engine_lease_set(struct weir_engine *engine, u32 vid, u32 epoch, u32 client);
/** engine_map_set() - 0, or an NVMe status: COMMAND_INTERRUPTED: after some more calls */
u32 engine_map_set(struct weir_engine *engine, const struct nvme_volume_map *map);
/** engine_fence() - admin commands of a lower epoch are a former daemon's */
u32 engine_fence(const struct weir_engine *engine);
void engine_volumes_release(struct weir_engine *engine);

/* admit.c */

/** engine_still() - whether a request that was admitted under @epochs still may be carried out; under the
 * lock */
u32 engine_still(const struct weir_engine *engine, u32 vid, u64 epochs);

/* request.c: what the medium is asked; the submitting thread */

bool engine_submit(struct weir_medium *medium, struct weir_io *io);
unsigned engine_poll(struct weir_medium *medium, unsigned thread);

/* journal.c */

enum engine_record_kind {
	ENGINE_RECORD_BLOCK = 1, /* struct engine_noted, index */
	ENGINE_RECORD_ERASE,     /* sequence and erases of an erase block */
	ENGINE_RECORD_VOLUME,
	ENGINE_RECORD_DELETE,
	ENGINE_RECORD_PERMISSION,
	ENGINE_RECORD_MAP, /* half of one */
	ENGINE_RECORD_STATUS,
	/* of checkpoints */
	ENGINE_RECORD_SLOTS,      /* struct engine_shard_noted and slots, its number */
	ENGINE_RECORD_TOMBSTONES, /* struct engine_shard_noted and struct engine_noted, its number */
	ENGINE_RECORD_HEADERS,    /* struct engine_header of blocks, the first one's index */
};

/** struct engine_shard_noted - a shard, of which as much follows as the record has room for; @first: slot */
struct engine_shard_noted {
	u32 buckets;
	u32 first;
};

/** engine_record() - note a change; under the lock; at most ENGINE_RECORD_MOST bytes */
void engine_record(struct weir_engine *engine, enum engine_record_kind kind, u32 index, const void *data,
		   u32 bytes);
/** engine_noted_of() - header @index as the medium keeps it */
struct engine_noted engine_noted_of(const struct weir_engine *engine, u32 index);
void engine_record_block(struct weir_engine *engine, u32 index);
void engine_record_map(struct weir_engine *engine);
void engine_record_erase(struct weir_engine *engine, u32 index);
/** engine_want_commit() - number of the commit after which all that was noted is durable; under the lock */
u64 engine_want_commit(struct weir_engine *engine);
/** engine_wait_commit() - wait for it; not under the lock; false: the medium failed */
bool engine_wait_commit(struct weir_engine *engine, u64 number);
/** engine_kept_status() - as the medium keeps it: whoever reads it after anything but an orderly end must
 * doubt; under the lock */
struct nvme_volume_engine_status engine_kept_status(const struct weir_engine *engine);
/** engine_commit() - make durable what was noted; the worker's; 0: nobody wants it */
unsigned engine_commit(struct weir_engine *engine);

/* divide.c: while the engine is loaded */

/** struct engine_hand - one of the threads: @thread: its number for the medium behind; @buffer: of its own,
 * ENGINE_BUFFER_BYTES */
struct engine_hand {
	unsigned thread;
	u8 *buffer;
};

typedef void engine_work(void *argument, u32 part, const struct engine_hand *hand);

/** engine_divide() - do @work for parts 0 to @parts - 1, by as many threads as there may be; returns when all
 * is done. Not under the lock */
void engine_divide(struct weir_engine *engine, u32 parts, engine_work *work, void *argument);

/* checkpoint.c, checkpoint_read.c, load.c; the worker's */

/** engine_checkpoint() - write one; an NVMe status */
u32 engine_checkpoint(struct weir_engine *engine);
/** engine_checkpoint_slot() - first block of the one of @generation */
u64 engine_checkpoint_slot(const struct weir_engine *engine, u64 generation);
/** engine_checkpoint_reserve() - bytes that volumes and permissions may have in it */
u64 engine_checkpoint_reserve(const struct weir_engine *engine);

/** engine_checkpoint_blocks() - room for one of a medium of @blocks */
u32 engine_checkpoint_blocks(u32 blocks);
/** engine_checkpoint_parts() - of its shards, and as many of its headers, each on pages of its own; a power
 * of two
 */
u32 engine_checkpoint_parts(const struct weir_engine *engine);
/** engine_checkpoint_read() - the newest that is whole; 0 or a negative errno with a sentence */
int engine_checkpoint_read(struct weir_engine *engine);
/** engine_load() - from what the medium behind has; 0 or a negative errno with a sentence */
int engine_load(struct weir_engine *engine);
/** engine_finish() - it is closed: all is made durable */
void engine_finish(struct weir_engine *engine);

/* collect.c; the worker's */

/** engine_collect() - make room; 0: there was no need */
unsigned engine_collect(struct weir_engine *engine);
/** engine_is_out_of_space() - garbage was looked for, there is none that can be collected, and none is
 * coming; under the lock */
bool engine_is_out_of_space(const struct weir_engine *engine);

/* shape.c */

/** engine_shape_of() - of a medium of @bytes; 0 or a negative errno with a sentence */
int engine_shape_of(u64 bytes, struct engine_shape *shape);

#endif
