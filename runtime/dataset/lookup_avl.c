/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lookup_avl.c: entries by their key, through the balanced tree of the paper (DLFS, section III-B).
 *
 * Children are indices of entries, so that an entry stays at 16 bytes: 9 bytes more per sample.
 */
#include <stdlib.h>

#include "directory.h"

#define NONE UINT32_MAX

struct weir_dataset_lookup_index {
	const struct weir_dataset_entry *entries;
	uint64_t count;
	uint32_t root;
	uint32_t (*child)[2];
	uint8_t *height;
};

static uint8_t height_of(const struct weir_dataset_lookup_index *tree, uint32_t node)
{
	return node == NONE ? 0 : tree->height[node];
}

static void measure(struct weir_dataset_lookup_index *tree, uint32_t node)
{
	uint8_t left = height_of(tree, tree->child[node][0]), right = height_of(tree, tree->child[node][1]);

	tree->height[node] = (uint8_t)((left > right ? left : right) + 1);
}

/* The child on @side comes up. Return: it. */
static uint32_t rotate(struct weir_dataset_lookup_index *tree, uint32_t node, unsigned side)
{
	uint32_t up = tree->child[node][side];

	tree->child[node][side] = tree->child[up][!side];
	tree->child[up][!side] = node;
	measure(tree, node);
	measure(tree, up);
	return up;
}

static uint32_t balance(struct weir_dataset_lookup_index *tree, uint32_t node)
{
	int lean = height_of(tree, tree->child[node][0]) - height_of(tree, tree->child[node][1]);
	unsigned side = lean < 0;
	uint32_t child = tree->child[node][side];

	if (lean >= -1 && lean <= 1) {
		measure(tree, node);
		return node;
	}
	if (height_of(tree, tree->child[child][!side]) > height_of(tree, tree->child[child][side]))
		tree->child[node][side] = rotate(tree, child, !side);
	return rotate(tree, node, side);
}

/* As deep as the tree is high: 36 levels for 2^32 samples and less. */
static uint32_t insert(struct weir_dataset_lookup_index *tree, uint32_t node, uint32_t added)
{
	unsigned side;

	if (node == NONE)
		return added;
	side = weir_dataset_entry_key(tree->entries[added]) >= weir_dataset_entry_key(tree->entries[node]);
	tree->child[node][side] = insert(tree, tree->child[node][side], added);
	return balance(tree, node);
}

static void free_tree(struct weir_dataset_lookup_index *tree)
{
	free(tree->child);
	free(tree->height);
	free(tree);
}

static struct weir_dataset_lookup_index *build(const struct weir_dataset_entry *entries, uint64_t count,
					       bool by_key)
{
	struct weir_dataset_lookup_index *tree = calloc(1, sizeof(*tree));

	(void)by_key;
	if (!tree)
		return NULL;
	tree->entries = entries;
	tree->count = count;
	tree->root = NONE;
	tree->child = malloc((count + 1) * sizeof(*tree->child));
	tree->height = malloc(count + 1);
	if (!tree->child || !tree->height) {
		free_tree(tree);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++) {
		tree->child[i][0] = tree->child[i][1] = NONE;
		tree->height[i] = 1;
		tree->root = insert(tree, tree->root, i);
	}
	return tree;
}

static uint64_t find(const struct weir_dataset_lookup_index *tree, const struct weir_dataset_entry *entries,
		     uint64_t key)
{
	uint32_t node = tree->root;

	while (node != NONE && weir_dataset_entry_key(entries[node]) != key)
		node = tree->child[node][key > weir_dataset_entry_key(entries[node])];
	return node == NONE ? UINT64_MAX : node;
}

static void expect(const struct weir_dataset_lookup_index *tree, const struct weir_dataset_entry *entries,
		   uint64_t key)
{
	(void)tree; /* each step needs the one before */
	(void)entries;
	(void)key;
}

static uint64_t bytes_of(const struct weir_dataset_lookup_index *tree)
{
	return sizeof(*tree) + (tree->count + 1) * (sizeof(*tree->child) + 1);
}

const struct weir_dataset_lookup_kind weir_dataset_lookup_avl = {
	.name = "avl",
	.build = build,
	.find = find,
	.expect = expect,
	.bytes = bytes_of,
	.free = free_tree,
};
