/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache.h: a cache as the runtime's own files see it.
 *
 * Owns: which storages' lines a cache may hold: one table per layout, shared by the arrays
 * that have it, so that they see the same lines.
 */
#ifndef WEIR_RUNTIME_CACHE_H
#define WEIR_RUNTIME_CACHE_H

#include "../device/context.h"

/** struct weir_cache_member - one storage of a table: the lanes' view of it, and its name */
struct weir_cache_member {
	struct weir_disk disk;
	char *uri;
};

/**
 * struct weir_cache_disks - a storage, or a stripe of several, whose lines a cache may hold
 * @extent: as lanes see it
 * @written: some writer has it
 * @closed: one of its storages is closed, and so none of its lines can be had
 * @late: then some line was not forgotten, since a command had it
 * @members: @extent.disk_count
 */
struct weir_cache_disks {
	struct weir_cache_disks *next;
	struct weir_extent extent;
	bool written;
	bool closed;
	bool late;
	struct weir_cache_member members[];
};

struct weir_cache {
	struct weir_context *context;
	struct weir_cache *next;
	uint64_t lines; /* device: struct weir_lines */
	uint64_t words;
	uint64_t policies;
	uint64_t data;
	uint64_t share; /* device: struct weir_share, or 0 */
	uint64_t tier;  /* device: struct weir_tier, or 0 */
	uint64_t tier_words;
	uint64_t tier_data;       /* host */
	uint64_t extents;         /* device: struct weir_extent[extent_room], the table in use */
	uint64_t old_extents[64]; /* those before it: lanes may be looking at them */
	unsigned old_extent_count;
	uint32_t extent_count;
	uint32_t extent_room;
	uint64_t sets;
	uint32_t line_log2;
	uint64_t bytes;
	uint64_t next_key;
	bool written;     /* some array of it has a writer */
	bool invalidates; /* a flush drops the lines that it covers */
	struct weir_cache_disks *disks;
};

/**
 * struct weir_layout_request - what an array is of
 * @storages: @count of them
 * @unit_log2: lines per stripe unit as a power of two
 * @lines: lines of all of it
 * @written: by a writer
 */
struct weir_layout_request {
	struct weir_storage *const *storages;
	unsigned count;
	uint32_t unit_log2;
	uint64_t lines;
	bool written;
};

/**
 * weir_cache_layout() - the table of these storages, made if there is none yet
 *
 * Return: 0; -EBUSY if another layout has one of them, and either is written; -ERANGE, -ENOMEM.
 */
int weir_cache_layout(struct weir_cache *cache, const struct weir_layout_request *request,
		      struct weir_cache_disks **out);

/** weir_cache_layouts_free() - all tables of a cache, and the lanes' copies; @lanes: but for those that
 * arrays may still look at */
void weir_cache_layouts_free(struct weir_cache *cache, bool lanes);

/**
 * weir_cache_drain() - write everything back and wait for whatever is under way
 * @cache: the cache
 * @quiet: comes out false if something still is: its memory must stay
 *
 * Return: 0; -EIO with a sentence that counts and names what could not be written.
 */
int weir_cache_drain(struct weir_cache *cache, bool *quiet);

/**
 * weir_cache_settle() - write the dirty lines of @disks back, wait for whatever is under way, then forget all
 * of them; @disks->late: a command still had one, so none is forgotten
 *
 * Return: 0; -EIO with a sentence that counts and names what could not be written.
 */
int weir_cache_settle(struct weir_cache *cache, struct weir_cache_disks *disks);

/** weir_cache_forget() - forget all lines of @disks, the dirty ones, too: no command has any */
void weir_cache_forget(struct weir_cache *cache, struct weir_cache_disks *disks);

/** weir_cache_dirty() - lines that storage does not have yet, as far as the host sees them */
int weir_cache_dirty(struct weir_cache *cache, uint64_t *dirty);

#endif
