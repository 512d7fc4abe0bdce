/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/sparse.c: a medium of any size in host memory, whose contents are computed where nothing was
 * written.
 *
 * Owns: a tree of pages, which take memory as they are written. What was never written follows from the
 * address: each 8-byte word holds its own byte offset. Every request ends inside submit(); a page that came
 * to be stays, so that threads need nothing from each other but the order in which pages appear.
 */
#include <inttypes.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../backend/error.h"
#include "medium.h"
#include <weir/nvme.h>

enum { PAGE_LOG2 = 12, PAGE_BYTES = 1 << PAGE_LOG2, NODE_LOG2 = 9, NODE_ENTRIES = 1 << NODE_LOG2 };

/** struct node - @entries: nodes, or pages where it is one of the lowest */
struct node {
	void *entries[NODE_ENTRIES];
};

/**
 * struct sparse - the medium
 * @levels: of nodes
 * @root: the highest
 */
struct sparse {
	struct weir_medium medium;
	unsigned levels;
	struct node *root;
};

/** struct piece - the part of a request that lies in one page */
struct piece {
	uint64_t offset;
	uint64_t bytes;
	unsigned char *memory;
};

/* Stands for pages that were cleared and not written since; it is never written. */
static unsigned char cleared[PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));

static void compute(unsigned char *to, uint64_t offset, uint64_t bytes)
{
	while (bytes) {
		uint64_t word = offset & ~(uint64_t)7, skip = offset & 7,
			 part = 8 - skip < bytes ? 8 - skip : bytes;

		memcpy(to, (const unsigned char *)&word + skip, part);
		to += part;
		offset += part;
		bytes -= part;
	}
}

/* sparse.P0: pairs with sparse.P1. */
static void *probe(void **entry)
{
	return __atomic_load_n(entry, __ATOMIC_ACQUIRE);
}

/* sparse.P1: pairs with sparse.P0: what @with points to is complete. Return: what is there now. */
static void *put(void **entry, void *before, void *with)
{
	return __atomic_compare_exchange_n(entry, &before, with, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
		       ? with
		       : before;
}

/* The node below @entry; with @make it is made, and NULL means no memory. */
static struct node *below(void **entry, bool make)
{
	struct node *there = probe(entry), *made;

	if (there || !make)
		return there;
	made = calloc(1, sizeof(*made));
	there = made ? put(entry, NULL, made) : NULL;
	if (there != made)
		free(made);
	return there;
}

/* Where the page of @offset stands in the tree; NULL if nobody wrote near it, or for want of memory. */
static void **entry_of(const struct sparse *sparse, uint64_t offset, bool make)
{
	uint64_t number = offset >> PAGE_LOG2;
	struct node *node = sparse->root;

	for (unsigned level = sparse->levels - 1; node && level > 0; level--)
		node = below(&node->entries[number >> (level * NODE_LOG2) & (NODE_ENTRIES - 1)], make);
	return node ? &node->entries[number & (NODE_ENTRIES - 1)] : NULL;
}

/* A page that can be written, NULL for want of memory. */
static unsigned char *writable(const struct sparse *sparse, uint64_t offset)
{
	void **entry = entry_of(sparse, offset, true), *there = entry ? probe(entry) : NULL;
	unsigned char *made;

	if (!entry || (there && there != cleared))
		return there;
	made = malloc(PAGE_BYTES);
	while (made && (!there || there == cleared)) { /* another thread may clear it meanwhile, once */
		if (there)
			memset(made, 0, PAGE_BYTES);
		else
			compute(made, offset & ~(uint64_t)(PAGE_BYTES - 1), PAGE_BYTES);
		there = put(entry, there, made);
	}
	if (there != made)
		free(made);
	return made ? there : NULL;
}

static bool read_piece(const struct sparse *sparse, const struct piece *piece)
{
	void **entry = entry_of(sparse, piece->offset, false);
	const unsigned char *page = entry ? probe(entry) : NULL;

	if (page)
		memcpy(piece->memory, page + piece->offset % PAGE_BYTES, piece->bytes);
	else
		compute(piece->memory, piece->offset, piece->bytes);
	return true;
}

static bool write_piece(const struct sparse *sparse, const struct piece *piece)
{
	unsigned char *page = writable(sparse, piece->offset);

	if (page)
		memcpy(page + piece->offset % PAGE_BYTES, piece->memory, piece->bytes);
	return page;
}

static bool clear_piece(const struct sparse *sparse, const struct piece *piece)
{
	void **entry = piece->bytes == PAGE_BYTES ? entry_of(sparse, piece->offset, true) : NULL;
	unsigned char *page = entry ? probe(entry) : NULL;

	if (entry && !page)
		page = put(entry, NULL, cleared);
	if (page == cleared)
		return true;
	page = page ? page : writable(sparse, piece->offset);
	if (page)
		memset(page + piece->offset % PAGE_BYTES, 0, piece->bytes);
	return page;
}

/* @bytes from @offset on, page by page; @memory may be NULL. */
static bool each_page(const struct sparse *sparse, uint64_t offset, unsigned char *memory, uint64_t bytes,
		      bool (*act)(const struct sparse *sparse, const struct piece *piece))
{
	while (bytes) {
		uint64_t room = PAGE_BYTES - offset % PAGE_BYTES;
		struct piece piece = { offset, bytes < room ? bytes : room, memory };

		if (!act(sparse, &piece))
			return false;
		offset += piece.bytes;
		memory = memory ? memory + piece.bytes : NULL;
		bytes -= piece.bytes;
	}
	return true;
}

/* From @offset on, bytes that nobody wrote near, as the tree says without being walked page by page; 0: there
 * is a page. */
static uint64_t untouched(const struct sparse *sparse, uint64_t offset)
{
	struct node *node = sparse->root;

	for (unsigned level = sparse->levels; level-- > 0;) {
		unsigned log2 = PAGE_LOG2 + level * NODE_LOG2;

		node = probe(&node->entries[offset >> log2 & (NODE_ENTRIES - 1)]);
		if (!node)
			return ((uint64_t)1 << log2) - (offset & (((uint64_t)1 << log2) - 1));
	}
	return 0;
}

/* What nobody wrote stays as it is, so that a discard of any size takes no memory. */
static bool discard(const struct sparse *sparse, uint64_t offset, uint64_t bytes)
{
	bool done = true;

	while (bytes && done) {
		uint64_t skip = untouched(sparse, offset), room = PAGE_BYTES - offset % PAGE_BYTES,
			 part = skip ? skip : room;

		part = part < bytes ? part : bytes;
		if (!skip)
			done = clear_piece(sparse, &(struct piece){ .offset = offset, .bytes = part });
		offset += part;
		bytes -= part;
	}
	return done;
}

static bool move(const struct sparse *sparse, const struct weir_io *io)
{
	uint64_t offset = io->offset_bytes;
	bool done = true;

	for (unsigned i = 0; i < io->iov_count && done; i++) {
		done = each_page(sparse, offset, io->iov[i].iov_base, io->iov[i].iov_len,
				 io->kind == WEIR_IO_WRITE ? write_piece : read_piece);
		offset += io->iov[i].iov_len;
	}
	return done;
}

static bool carry_out(const struct sparse *sparse, const struct weir_io *io)
{
	switch (io->kind) {
	case WEIR_IO_READ:
	case WEIR_IO_WRITE: return move(sparse, io);
	case WEIR_IO_ZERO: return each_page(sparse, io->offset_bytes, NULL, io->bytes, clear_piece);
	case WEIR_IO_DISCARD: return discard(sparse, io->offset_bytes, io->bytes);
	case WEIR_IO_FLUSH: break;
	}
	return true;
}

static bool sparse_submit(struct weir_medium *medium, struct weir_io *io)
{
	if (io->kind != WEIR_IO_FLUSH &&
	    (io->offset_bytes > medium->bytes || io->bytes > medium->bytes - io->offset_bytes))
		io->status = NVME_STATUS_LBA_OUT_OF_RANGE;
	else
		io->status = carry_out((struct sparse *)medium, io) ? NVME_STATUS_SUCCESS
								    : NVME_STATUS_CAPACITY_EXCEEDED;
	io->done(io);
	return true;
}

static unsigned sparse_poll(struct weir_medium *medium, unsigned thread)
{
	(void)medium;
	(void)thread;
	return 0;
}

static void free_below(struct node *node, unsigned level)
{
	for (unsigned i = 0; i < NODE_ENTRIES; i++) {
		void *entry = node->entries[i];

		if (entry && level)
			free_below(entry, level - 1);
		else if (entry != cleared)
			free(entry);
	}
	free(node);
}

static void sparse_close(struct weir_medium *medium)
{
	struct sparse *sparse = (struct sparse *)medium;

	free_below(sparse->root, sparse->levels - 1);
	free(sparse);
}

static const struct weir_medium_ops sparse_ops = {
	.size = sizeof(sparse_ops),
	.submit = sparse_submit,
	.poll = sparse_poll,
	.close = sparse_close,
};

static unsigned levels_of(uint64_t bytes)
{
	uint64_t last = (bytes - 1) >> PAGE_LOG2;
	unsigned levels = 1;

	while (last >>= NODE_LOG2)
		levels++;
	return levels;
}

int weir_medium_sparse_open(uint64_t bytes, uint32_t block_bytes, struct weir_medium **out)
{
	int error = weir_medium_check_shape(bytes, block_bytes);
	struct sparse *sparse;

	if (error)
		return error;
	sparse = calloc(1, sizeof(*sparse));
	if (sparse)
		sparse->root = calloc(1, sizeof(*sparse->root));
	if (!sparse || !sparse->root) {
		free(sparse);
		return weir_fail(ENOMEM, "no memory for a medium");
	}
	sparse->medium = (struct weir_medium){ .ops = &sparse_ops,
					       .bytes = bytes,
					       .end_bytes = bytes,
					       .block_bytes = block_bytes,
					       .path = "ram, contents by address" };
	sparse->levels = levels_of(bytes);
	*out = &sparse->medium;
	return 0;
}
