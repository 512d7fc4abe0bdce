/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow.c: the control-flow graph of a kernel, as the compiler's coverage
 * instrumentation tells it, and what a wavefront makes of it.
 *
 * Owns: blocks by number; each block's immediate post-dominator, where a stack of
 * reconvergence points joins diverged lanes; and an order in which loops are
 * contiguous: running the earliest waiting block first is what a structured EXEC
 * mask does (a loop runs until its last lane has left it).
 */
#include <stdio.h>
#include <stdlib.h>

#include "flow.h"

enum { NONE = 0x7fffffff };

struct block {
	uintptr_t pc;
	u32 *next; /* successors */
	u32 next_count;
	u32 join;        /* immediate post-dominator, FLOW_EXIT if only the end is one */
	u32 position[2]; /* [1]: the other side of every branch first */
	/* scratch of the walks below */
	u32 number, low, part, group;
	bool on_stack, known;
};

static struct block *blocks;
static u32 block_count;
static u32 *by_pc; /* block numbers, sorted by address */
static const uintptr_t *pcs, *cfs, *cfs_end;

/* The kernel at hand: its blocks in the order of a depth-first walk's ends. */
static u32 *members, member_count;

void __sanitizer_cov_trace_pc_guard_init(u32 *start, u32 *stop);
void __sanitizer_cov_trace_pc_guard_init(u32 *start, u32 *stop)
{
	for (u32 i = 0; start + i < stop; i++)
		start[i] = i + 1;
}

void __sanitizer_cov_pcs_init(const uintptr_t *first, const uintptr_t *end);
void __sanitizer_cov_pcs_init(const uintptr_t *first, const uintptr_t *end)
{
	pcs = first; /* pairs: address, flags; in the order of the guards */
	block_count = (u32)((end - first) / 2);
}

void __sanitizer_cov_cfs_init(const uintptr_t *first, const uintptr_t *end);
void __sanitizer_cov_cfs_init(const uintptr_t *first, const uintptr_t *end)
{
	cfs = first; /* block, successors, 0, callees, 0 */
	cfs_end = end;
}

static int compare_pc(const void *a, const void *b)
{
	uintptr_t left = blocks[*(const u32 *)a].pc, right = blocks[*(const u32 *)b].pc;

	return left < right ? -1 : left > right;
}

static u32 find(uintptr_t pc)
{
	u32 low = 0, high = block_count;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (blocks[by_pc[middle]].pc < pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < block_count && blocks[by_pc[low]].pc == pc)
		return by_pc[low];
	fprintf(stderr, "weir-explore: block %#lx has no guard; were the kernels built with no-prune?\n",
		(unsigned long)pc);
	exit(2);
}

static void read_successors(void)
{
	const uintptr_t *at = cfs;

	while (at < cfs_end) {
		struct block *block = &blocks[find(*at++)];
		const uintptr_t *first = at;

		while (*at)
			at++;
		block->next = calloc((size_t)(at - first) + 1, sizeof(u32));
		for (; first < at; first++)
			block->next[block->next_count++] = find(*first);
		for (at++; *at; at++)
			; /* callees */
		at++;
	}
}

void flow_load(void)
{
	blocks = calloc(block_count + 1u, sizeof(*blocks));
	by_pc = calloc(block_count + 1u, sizeof(u32));
	members = calloc(block_count + 1u, sizeof(u32));
	for (u32 i = 0; i < block_count; i++) {
		blocks[i].pc = pcs[2 * i];
		blocks[i].join = FLOW_EXIT;
		by_pc[i] = i;
	}
	qsort(by_pc, block_count, sizeof(u32), compare_pc);
	read_successors();
}

u32 flow_block(u32 guard)
{
	return guard - 1;
}

const void *flow_pc(u32 block)
{
	return block < block_count ? (const void *)blocks[block].pc : NULL;
}

u32 flow_join(u32 block)
{
	return blocks[block].join;
}

u32 flow_position(u32 block, bool flipped)
{
	return blocks[block].position[flipped];
}

static u32 successor(const struct block *block, u32 n, bool flipped)
{
	return block->next[flipped ? block->next_count - 1 - n : n];
}

/* Every block after all blocks it leads to, ways back aside; members[] in that order. */
static void collect(u32 self)
{
	struct block *block = &blocks[self];

	block->known = true;
	for (u32 n = 0; n < block->next_count; n++)
		if (!blocks[block->next[n]].known)
			collect(block->next[n]);
	block->number = member_count;
	members[member_count++] = self;
}

/* The nearest common post-dominator (Cooper, Harvey, Kennedy: a simple, fast dominance algorithm). */
static u32 intersect(u32 a, u32 b)
{
	while (a != b) {
		if (a == FLOW_EXIT || b == FLOW_EXIT)
			return FLOW_EXIT;
		if (blocks[a].number > blocks[b].number)
			a = blocks[a].join;
		else
			b = blocks[b].join;
	}
	return a;
}

/*
 * Post-dominators need an order in which a block comes after the blocks behind it;
 * with loops a depth-first walk is only nearly one, so repeat until nothing moves.
 * intersect() climbs by number, so numbers come from a walk of the reversed graph.
 */
static u32 *walk_back(u32 *count)
{
	u32 *order = calloc(member_count + 1u, sizeof(u32)), *heads = calloc(block_count + 1u, sizeof(u32));
	u32 *links, *targets, edges = 0, depth = 0, *stack, *cursor;

	for (u32 i = 0; i < member_count; i++)
		edges += blocks[members[i]].next_count;
	links = calloc(edges + 1u, sizeof(u32));
	targets = calloc(edges + 1u, sizeof(u32));
	stack = calloc(member_count + 1u, sizeof(u32));
	cursor = calloc(block_count + 1u, sizeof(u32));
	edges = 0;
	for (u32 i = 0; i < member_count; i++) {
		const struct block *block = &blocks[members[i]];

		for (u32 n = 0; n < block->next_count; n++) { /* list of predecessors */
			targets[++edges] = members[i];
			links[edges] = heads[block->next[n]];
			heads[block->next[n]] = edges;
		}
	}
	for (u32 i = 0; i < member_count; i++)
		blocks[members[i]].on_stack = false, cursor[members[i]] = heads[members[i]];
	*count = 0;
	for (u32 i = 0; i < member_count; i++) {
		if (blocks[members[i]].next_count)
			continue;
		stack[depth++] = members[i];
		blocks[members[i]].on_stack = true;
		while (depth) {
			u32 self = stack[depth - 1], edge = cursor[self];

			if (!edge) {
				order[(*count)++] = self; /* ends of the walk: furthest from the exit first */
				depth--;
				continue;
			}
			cursor[self] = links[edge];
			if (!blocks[targets[edge]].on_stack) {
				blocks[targets[edge]].on_stack = true;
				stack[depth++] = targets[edge];
			}
		}
	}
	free(heads), free(links), free(targets), free(stack), free(cursor);
	return order;
}

static void find_joins(void)
{
	u32 count, *order = walk_back(&count);
	bool changed = true;

	for (u32 i = 0; i < member_count; i++)
		blocks[members[i]].join = NONE;
	for (u32 i = 0; i < count; i++)
		blocks[order[i]].number = count - 1 - i; /* 0 is nearest to the exit */
	while (changed) {
		changed = false;
		for (u32 i = count; i-- > 0;) {
			struct block *block = &blocks[order[i]];
			u32 join = block->next_count ? (u32)NONE : FLOW_EXIT;

			for (u32 n = 0; n < block->next_count; n++) {
				u32 next = block->next[n];

				if (blocks[next].join == NONE)
					continue;
				join = join == NONE ? next : intersect(join, next);
			}
			changed |= join != block->join;
			block->join = join;
		}
	}
	for (u32 i = 0; i < member_count; i++) /* no way to the end: nowhere to join */
		if (blocks[members[i]].join == NONE)
			blocks[members[i]].join = FLOW_EXIT;
	free(order);
}

/** struct order - a walk that finds strongly connected groups (Tarjan) of one part */
struct order {
	u32 *stack;
	u32 depth, counter, groups, part, header;
	bool flipped;
};

static void connect(struct order *order, u32 self)
{
	struct block *block = &blocks[self];
	u32 other;

	block->number = block->low = ++order->counter;
	block->on_stack = true;
	order->stack[order->depth++] = self;
	for (u32 n = 0; n < block->next_count; n++) {
		struct block *next = &blocks[successor(block, n, order->flipped)];

		if (next->part != order->part || (u32)(next - blocks) == order->header)
			continue;
		if (!next->number)
			connect(order, (u32)(next - blocks));
		if (next->on_stack && next->low < block->low)
			block->low = next->low;
	}
	if (block->low != block->number)
		return;
	do {
		other = order->stack[--order->depth];
		blocks[other].on_stack = false;
		blocks[other].group = order->groups;
	} while (other != self);
	order->groups++;
}

static int compare_group(const void *a, const void *b)
{
	const struct block *left = &blocks[*(const u32 *)a], *right = &blocks[*(const u32 *)b];

	if (left->group != right->group) /* Tarjan finds the last group first */
		return left->group > right->group ? -1 : 1;
	return left->number < right->number ? -1 : 1;
}

/*
 * Give positions from @position on to the @count blocks in @list, all of one part,
 * entered at the first of them: the header of a loop, then groups in order, each
 * loop among them placed whole.
 */
static u32 location(u32 *list, u32 count, u32 position, bool flipped, bool loop, u32 *parts)
{
	struct order order = { .stack = calloc(count + 1u, sizeof(u32)),
			       .part = ++*parts,
			       .header = FLOW_EXIT,
			       .flipped = flipped };

	for (u32 i = 0; i < count; i++) {
		blocks[list[i]].part = order.part;
		blocks[list[i]].number = 0;
	}
	if (loop) {
		blocks[list[0]].position[flipped] = position++;
		blocks[list[0]].part = 0;
		order.header = list[0];
		list++;
		count--;
	}
	for (u32 i = 0; i < count; i++)
		if (!blocks[list[i]].number)
			connect(&order, list[i]);
	free(order.stack);
	qsort(list, count, sizeof(u32), compare_group);
	for (u32 first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && blocks[list[end]].group == blocks[list[first]].group;
		     end++)
			;
		if (end - first == 1) {
			blocks[list[first]].position[flipped] = position++;
			continue;
		}
		/* groups behind this one keep their order: list[] is sorted already */
		position = location(list + first, end - first, position, flipped, true, parts);
	}
	return position;
}

static void find_positions(u32 entry, bool flipped)
{
	u32 *list = calloc(member_count + 1u, sizeof(u32)), parts = 0, count = 0;

	list[count++] = entry;
	for (u32 i = member_count; i-- > 0;)
		if (members[i] != entry)
			list[count++] = members[i];
	location(list, count, 0, flipped, false, &parts);
	free(list);
}

void flow_prepare(const void *function)
{
	u32 entry = find((uintptr_t)function);

	if (blocks[entry].known)
		return;
	member_count = 0;
	collect(entry);
	find_joins();
	find_positions(entry, false);
	find_positions(entry, true);
}
