/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/pages.h: pages of records, of the journal and of checkpoints; private to this folder.
 *
 * Owns: the format of both. A page is wholly there or not: its checksum covers all of it.
 */
#ifndef WEIR_ENGINE_PAGES_H
#define WEIR_ENGINE_PAGES_H

#include "parts.h"

/* "weirjrnl", "weirckpt", "weirckhd", "weirsupr" */
#define ENGINE_MAGIC_JOURNAL    0x6c6e726a72696577u
#define ENGINE_MAGIC_CHECKPOINT 0x74706b6372696577u
#define ENGINE_MAGIC_HEAD       0x64686b6372696577u
#define ENGINE_MAGIC_SUPER      0x7270757372696577u

enum {
	ENGINE_PAGE_HEAD = 48,
	ENGINE_PAGE_ROOM = ENGINE_BLOCK_BYTES - ENGINE_PAGE_HEAD,
	ENGINE_PAGES = ENGINE_BUFFER_BYTES / ENGINE_BLOCK_BYTES, /* of a buffer */
	ENGINE_PARTS = 64,                                       /* most of a checkpoint */
};

/**
 * struct engine_page - a page
 * @format: of the engine that wrote it
 * @sequence: of the journal: grows with each page; of a checkpoint: 0, 1, ...
 * @mark: of the journal: all pages before this one were durable when it was written; of a checkpoint: its
 *        generation
 * @bytes: of records; of a checkpoint's head: of the numbers of the pages where its parts begin, if it has
 * any
 * @crc: CRC32C of the page with 0 here
 */
struct engine_page {
	u64 magic;
	u64 format;
	u64 sequence;
	u64 mark;
	u32 bytes;
	u32 crc;
	u64 reserved;
	u8 records[ENGINE_PAGE_ROOM];
};

WEIR_ASSERT_SIZE(struct engine_page, ENGINE_BLOCK_BYTES);

/** struct engine_record - what begins a record; @bytes of data follow, padded to 8 */
struct engine_record {
	u16 kind;
	u16 bytes;
	u32 index;
};

static inline u32 engine_record_size(const struct engine_record *record)
{
	return (u32)sizeof(*record) + (record->bytes + 7u) / 8 * 8;
}

/** engine_page_seal() - all but the checksum is filled */
void engine_page_seal(struct engine_page *page);
/** engine_page_is() - whether it is whole, and of that kind and format */
bool engine_page_is(struct engine_page *page, u64 magic, u64 format);
/** engine_page_add() - false: it is full */
bool engine_page_add(struct engine_page *page, const struct engine_record *record);
/** engine_page_apply() - replay its records; false: one is none */
bool engine_page_apply(struct weir_engine *engine, const struct engine_page *page);

/** struct engine_ask - what is asked of the medium behind: @blocks from block @block on; @thread: who asks */
struct engine_ask {
	enum weir_io_kind kind;
	u64 block;
	void *data;
	u32 blocks;
	bool durable;
	unsigned thread;
};

/** engine_ask() - ask the medium behind and wait; an NVMe status */
u32 engine_ask(struct weir_engine *engine, const struct engine_ask *ask);
/** engine_io() - the same, by the worker */
u32 engine_io(struct weir_engine *engine, enum weir_io_kind kind, u64 block, void *data, u32 blocks,
	      bool durable);
/** engine_io_failed() - @status of block @block as an errno with a sentence */
int engine_io_failed(u32 status, u64 block);
/** engine_damaged() - the same where @what is not what was written */
int engine_damaged(const char *what, u64 block);

#endif
