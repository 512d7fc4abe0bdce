/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mounted.h: what is behind a mounted dataset, for the files of this folder.
 *
 * Owns: struct weir_dataset. cache.c has the sample cache, plan.c turns samples into reads and pieces,
 * batch.c the memory of mini-batches, stream.c their order, agree.c what ranks exchange, mount.c and files.c
 * the rest.
 */
#ifndef WEIR_DATASET_MOUNTED_H
#define WEIR_DATASET_MOUNTED_H

#include <weir/dataset.h>

#include "directory.h"
#include "load.h"
#include "manifest.h"
#include "order.h"

enum {
	WEIR_DATASET_MAX_BATCHES = 16,
	WEIR_DATASET_ROW_ALIGN = 16,
	WEIR_DATASET_SOURCE_SLACK = 16,
	WEIR_DATASET_SENTENCE_BYTES = 1024, /* that ranks send each other */
};

/** struct weir_dataset_storage - one storage of a dataset */
struct weir_dataset_storage {
	struct weir_storage *storage;
	char *manifest; /* its file, or NULL: in the storage */
	struct weir_dataset_header header;
	uint64_t bytes;
	uint32_t block_log2;
	uint32_t max_blocks;
};

enum weir_dataset_slot_state { WEIR_DATASET_SLOT_EMPTY, WEIR_DATASET_SLOT_LOADING, WEIR_DATASET_SLOT_READY };

/**
 * struct weir_dataset_slot - room for a chunk in the sample cache
 * @use: when it is used next, counted in groups of chunks over the epochs
 * @pins: batches that are under way and need it
 */
struct weir_dataset_slot {
	uint64_t chunk;
	uint64_t use;
	uint32_t pins;
	uint32_t state;
	uint32_t event_count;
};

/** struct weir_dataset_cache - chunks in memory */
struct weir_dataset_cache {
	struct weir_dataset_slot *slots;
	uint32_t count;
	uint32_t empty;    /* slots that were never used begin here */
	uint32_t *slot_of; /* [chunks] slot + 1; 0: not there */
	uint64_t memory;   /* device address of the chunks */
	void *host;        /* the same, or NULL */
	uint64_t events;   /* device address of struct weir_event[count][events_per_slot] */
	uint32_t events_per_slot;
};

/**
 * enum weir_dataset_batch_state - what becomes of a batch
 * @WEIR_DATASET_BATCH_FREE: no read has its memory
 * @WEIR_DATASET_BATCH_POSTED: its reads are launched
 * @WEIR_DATASET_BATCH_ASSEMBLED: its assembly is launched
 * @WEIR_DATASET_BATCH_RETURNED: its rows are the program's
 * @WEIR_DATASET_BATCH_OVERDUE: it is dropped, or failed, and reads into its rows or staging have not ended:
 * its memory and events are not used; its pieces are those that wait for these reads
 */
enum weir_dataset_batch_state {
	WEIR_DATASET_BATCH_FREE,
	WEIR_DATASET_BATCH_POSTED,
	WEIR_DATASET_BATCH_ASSEMBLED,
	WEIR_DATASET_BATCH_RETURNED,
	WEIR_DATASET_BATCH_OVERDUE
};

/** struct weir_dataset_loading - a mini-batch in memory, and its reads */
struct weir_dataset_loading {
	uint32_t state;
	uint32_t count;
	uint64_t first; /* index in the rank's share */
	uint64_t rows;
	void *host_rows;
	uint64_t staging; /* 0: none was needed yet */
	uint64_t control; /* requests, pieces, events, verdict, lengths and labels, for host and lanes */
	struct weir_dataset_request *requests;
	uint32_t request_count;
	struct weir_dataset_piece *pieces;
	uint32_t piece_count;
	uint64_t events; /* device address */
	uint32_t event_count;
	struct weir_dataset_verdict *verdict;
	uint32_t *lengths, *labels;
	uint64_t *samples;
	uint32_t *slots; /* that it has pinned */
	uint32_t slot_count;
	uint32_t *dirty; /* [rows] bytes of each row that may not be zero */
};

struct weir_dataset {
	uint64_t magic;
	struct weir_context *context;
	struct weir_dataset_mount_options options;
	struct weir_dataset_communicator *communicator;
	struct weir_dataset_communicator alone;
	struct weir_dataset_storage *storages;
	uint32_t storage_count;
	uint64_t disks;       /* device address of struct weir_disk[storage_count] */
	uint32_t most_queues; /* of a storage */
	uint32_t wave_lanes;
	struct weir_dataset_directory directory;
	struct weir_dataset_file *files;
	uint32_t *file_storages;
	uint32_t file_count;
	uint64_t id;
	uint32_t default_buffer; /* weir_dataset_sequence_options.buffer_chunks where none are given */
	struct weir_dataset_info info;
	struct weir_dataset_stats stats;
	struct weir_dataset_cache cache;
	/* the epoch */
	struct weir_dataset_epoch epoch;
	struct weir_dataset_share all;   /* what was divided among the ranks */
	struct weir_dataset_share share; /* this rank's */
	uint64_t share_count;
	uint64_t used;    /* of the share, returned */
	uint64_t planned; /* of the share, in batches */
	bool begun;
	bool by_chunk;             /* samples come through the cache */
	bool reported_full;        /* a sentence has said that the cache is too small */
	bool late;                 /* a wait ended before its reads did, in this call */
	uint64_t now;              /* group that is being planned, counted over the epochs */
	uint64_t prefetched_group; /* up to here */
	uint64_t prefetched_chunks;
	/* batches */
	struct weir_dataset_loading batches[WEIR_DATASET_MAX_BATCHES];
	uint32_t batch_rows; /* that they have memory for; 0: none */
	uint32_t request_room;
	uint32_t head;     /* batch that is returned next */
	uint32_t posted;   /* batches from head on that are posted */
	uint32_t launched; /* of these, from head on, have their assembly launched */
};

#define WEIR_DATASET_MOUNTED UINT64_C(0x77656972646174)

/** weir_dataset_check() - @dataset is mounted. Return: 0 or -EINVAL with a sentence */
int weir_dataset_check(const struct weir_dataset *dataset, const char *call);

/* cache.c */
int weir_dataset_cache_open(struct weir_dataset *dataset);
void weir_dataset_cache_close(struct weir_dataset *dataset);
/** weir_dataset_cache_get() - slot of @chunk, which is there or on its way, with a pin; UINT32_MAX: it is not
 */
uint32_t weir_dataset_cache_get(struct weir_dataset *dataset, uint64_t chunk);
/** weir_dataset_cache_reserve() - a slot for @chunk, with no pin: the caller reads it; UINT32_MAX: all are in
 * use */
uint32_t weir_dataset_cache_reserve(struct weir_dataset *dataset, uint64_t chunk, uint64_t use);
/** weir_dataset_cache_ready() - the reads of a slot have ended, or were not submitted */
void weir_dataset_cache_ready(struct weir_dataset *dataset, uint32_t slot, bool good);
/** weir_dataset_cache_ahead() - some of the positions of @group are still to come for this rank */
bool weir_dataset_cache_ahead(const struct weir_dataset *dataset, uint64_t group);
/** weir_dataset_cache_use() - when @chunk is used next, in groups */
uint64_t weir_dataset_cache_use(struct weir_dataset *dataset, uint64_t chunk);
/** weir_dataset_cache_restart() - another epoch has begun: each chunk's next use is another */
void weir_dataset_cache_restart(struct weir_dataset *dataset);
uint64_t weir_dataset_cache_address(const struct weir_dataset *dataset, uint32_t slot);
uint64_t weir_dataset_cache_events(const struct weir_dataset *dataset, uint32_t slot);
/** weir_dataset_cache_slot_of() - the slot that the event at device address @event belongs to; UINT32_MAX:
 * it is none of the cache's */
uint32_t weir_dataset_cache_slot_of(const struct weir_dataset *dataset, uint64_t event);
/** weir_dataset_cache_loading() - slots whose reads are not known to have ended */
uint32_t weir_dataset_cache_loading(const struct weir_dataset *dataset);

/* plan.c */
/** weir_dataset_plan() - fill @batch's requests and pieces for the next @count samples of the share */
int weir_dataset_plan(struct weir_dataset *dataset, struct weir_dataset_loading *batch, uint32_t count);
/** weir_dataset_chunk_range() - bytes of its storage that @chunk is read from, in whole blocks */
void weir_dataset_chunk_range(const struct weir_dataset *dataset, uint64_t chunk, uint32_t *storage,
			      uint64_t *begin, uint64_t *end);

/* batch.c */
int weir_dataset_batches_open(struct weir_dataset *dataset, uint32_t rows);
void weir_dataset_batches_close(struct weir_dataset *dataset);
int weir_dataset_staging_open(struct weir_dataset *dataset, struct weir_dataset_loading *batch);
uint64_t weir_dataset_staging_stride(const struct weir_dataset *dataset);

/**
 * weir_dataset_batch_finish() - the assembly of @batch has ended: its pins go
 *
 * A slot that a read still has stays as it is, loading: who needs its chunk waits for that read. The batch is
 * returned then, or overdue.
 *
 * Return: 0 or -EIO with a sentence.
 */
int weir_dataset_batch_finish(struct weir_dataset *dataset, struct weir_dataset_loading *batch);
/** weir_dataset_batch_drop() - nobody waits for the reads of @batch, which are posted: its pins go; it is
 * free then, or overdue */
void weir_dataset_batch_drop(struct weir_dataset *dataset, struct weir_dataset_loading *batch);
/** weir_dataset_batch_overdue() - wait for the reads of @batch, which is overdue: then it is free. Return: 0;
 * -EIO with a sentence: they have not ended */
int weir_dataset_batch_overdue(struct weir_dataset *dataset, struct weir_dataset_loading *batch);
/** weir_dataset_batch_post() - plan the next @count samples into @batch and launch their reads; after an
 * error nothing is reserved or planned */
int weir_dataset_batch_post(struct weir_dataset *dataset, struct weir_dataset_loading *batch, uint32_t count);
/** weir_dataset_batch_assemble() - launch the assembly of @batch */
int weir_dataset_batch_assemble(struct weir_dataset *dataset, struct weir_dataset_loading *batch);
/** weir_dataset_batch_started() - wait until the assembly of @batch runs: what was launched before it has
 * ended */
int weir_dataset_batch_started(struct weir_dataset *dataset, const struct weir_dataset_loading *batch);

/* stream.c */
/** weir_dataset_drain() - wait for all that is under way, and drop it */
int weir_dataset_drain(struct weir_dataset *dataset);

/* failure.c */
/** weir_dataset_sample_failed() - the sentence for a sample that could not be read. Return: -EIO */
int weir_dataset_sample_failed(struct weir_dataset *dataset, uint64_t number, uint32_t status);

/** struct weir_dataset_parts - what all ranks sent: @all, of malloc(), where the part of one rank begins at
 * @begin and has @bytes */
struct weir_dataset_parts {
	void *all;
	size_t begin, bytes;
};

/* agree.c */
/** weir_dataset_gather() - the communicator's gather; @parts has where the part of @rank is. Return: 0, or a
 * negative errno and nothing in @parts */
int weir_dataset_gather(struct weir_dataset_communicator *communicator, const void *mine, size_t bytes,
			uint32_t rank, struct weir_dataset_parts *parts);

/** weir_dataset_alike() - what makes the order is the same on all ranks: -EINVAL with a sentence if chunks
 * are not as long; the default buffer is made to be so */
int weir_dataset_alike(struct weir_dataset *dataset);

/* communicator.c */
void weir_dataset_communicator_alone(struct weir_dataset_communicator *communicator);

#endif
