/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/volume/allocator.h: buffers for I/O, out of memory that is registered already.
 *
 * Owns: bitmaps of what is free, in three levels of units: pages of 4 KiB, 64 KiB and 1 MiB. A bit is set
 * while its unit is free as a whole, and then no bit of a smaller unit inside it is; so whoever clears a bit
 * owns the unit, and nothing is in two places. A unit whose 16 parts are free becomes one of the next level.
 * Nobody waits for anybody: a try that meets others goes on with another word, or fails.
 * Where memory comes from: runtime/volume/pool.c. Source: GNStor, section 4.2.
 */
#ifndef WEIR_CORE_ALLOCATOR_H
#define WEIR_CORE_ALLOCATOR_H

#include <weir/status.h>

enum {
	WEIR_POOL_LEVELS = 3,
	WEIR_POOL_TOP = WEIR_POOL_LEVELS - 1,
	WEIR_POOL_PAGE_LOG2 = 12,
	WEIR_POOL_PARTS_LOG2 = 4, /* units of a level that make one of the next */
	WEIR_POOL_CHUNK_PAGES = 1 << (WEIR_POOL_TOP * WEIR_POOL_PARTS_LOG2), /* of 1 MiB */
	WEIR_POOL_REGIONS = 16,
	WEIR_POOL_RUN = 64,  /* units that one allocation has at most, of its level: of the top one 64 MiB */
	WEIR_POOL_SWAPS = 8, /* tries to change one word, before another one is tried */
	WEIR_POOL_BRIEF = 4, /* tries of weir_pool_take() before it asks the host for memory */
};

/**
 * struct weir_pool_region - memory of a pool: contiguous, and registered
 * @data: device address of its first page
 * @words: u64 for each 64 units: all of level 0, then of level 1, then of level 2
 * @lengths: u32 for each page: pages of the allocation that begins there, else 0
 * @pages: a multiple of WEIR_POOL_CHUNK_PAGES
 * @free: bits of each level that are set
 */
struct weir_pool_region {
	weir_addr data;
	weir_addr words;
	weir_addr lengths;
	u32 pages;
	weir_shared_u32 free[WEIR_POOL_LEVELS];
	u64 reserved[3];
};

/**
 * struct weir_pool - buffers of a client
 * @region_count: of @regions; the host raises it while lanes run
 * @wanted: address of a word that the host polls: bytes that were not there; 0: it has no host that does
 * @refused: calls of weir_pool_take() that ended without memory
 */
struct weir_pool {
	weir_shared_u32 region_count;
	u32 reserved;
	weir_addr wanted;
	weir_shared_u64 refused;
	u64 reserved_words[5];
	struct weir_pool_region regions[WEIR_POOL_REGIONS];
};

WEIR_ASSERT_SIZE(struct weir_pool_region, 64);
WEIR_ASSERT_SIZE(struct weir_pool, 64 + 16 * 64);

/** weir_pool_level_words() - bitmap words of level @level of a region of @pages pages */
WEIR_FN u32 weir_pool_level_words(u32 pages, u32 level)
{
	return ((pages >> (level * WEIR_POOL_PARTS_LOG2)) + 63) / 64;
}

WEIR_FN WEIR_GLOBAL weir_shared_u64 *weir_pool_word(WEIR_GLOBAL struct weir_pool_region *region, u32 level,
						    u32 index)
{
	for (u32 below = 0; below < level; below++)
		index += weir_pool_level_words(region->pages, below);
	return weir_at(region->words, weir_shared_u64, index);
}

/* @count bits from bit @first on. */
WEIR_FN u64 weir_pool_mask(u32 first, u32 count)
{
	return (~(u64)0 >> (64 - count)) << first;
}

/* The lowest @count neighbours, 1 to 64, that are all set in @bits, as a mask; 0: there are none. */
WEIR_FN u64 weir_pool_run(u64 bits, u32 count)
{
	for (u32 have = 1; have < count;) {
		u32 step = have < count - have ? have : count - have;

		bits &= bits >> step;
		have += step;
	}
	return bits ? weir_pool_mask(weir_lowest_bit(bits), count) : 0;
}

/* Take @count neighbours of word @index of @level. Return: their mask; 0: there are none, or others were
 * faster every time. */
WEIR_FN u64 weir_pool_take_bits(WEIR_GLOBAL struct weir_pool_region *region, u32 level, u32 index, u32 count)
{
	WEIR_GLOBAL weir_shared_u64 *word = weir_pool_word(region, level, index);
	/* relaxed: only a guess; the compare-and-swap decides */
	u64 bits = weir_load_u64_relaxed_dev(word);

	for (u32 i = 0; i < WEIR_POOL_SWAPS; i++) {
		u64 mask = weir_pool_run(bits, count), seen;

		if (mask == 0)
			return 0;
		/* pool.P1: pairs with pool.P0: whoever had the unit before is done with it */
		seen = weir_cas_u64_acquire_dev(word, bits, bits & ~mask);
		if (seen == bits) {
			/* relaxed: a hint for lanes, and a figure for the host */
			(void)weir_add_u32_relaxed_dev(&region->free[level], (u32)0 - count);
			return mask;
		}
		bits = seen;
	}
	return 0;
}

/* The same in the whole level; waves begin at different words. Return: the first unit plus one; 0: none. */
WEIR_FN u32 weir_pool_take_units(WEIR_GLOBAL struct weir_pool_region *region, u32 level, u32 count)
{
	u32 words = weir_pool_level_words(region->pages, level), at = (u32)weir_wave() % words;

	/* relaxed: a hint; a level that is just being filled counts as empty */
	if (weir_load_u32_relaxed_dev(&region->free[level]) == 0)
		return 0;
	for (u32 i = 0; i < words; i++) {
		u64 mask = weir_pool_take_bits(region, level, at, count);

		if (mask)
			return at * 64 + weir_lowest_bit(mask) + 1;
		at = at + 1 < words ? at + 1 : 0;
	}
	return 0;
}

/* Sixteen neighbours from bit @first on are free, @bits says: make them one unit. Return: 1 if it is the
 * caller's now; 0: somebody took one of them, or made it. */
WEIR_FN u32 weir_pool_merge(WEIR_GLOBAL weir_shared_u64 *word, u64 bits, u32 first)
{
	u64 parts = weir_pool_mask(first, 1 << WEIR_POOL_PARTS_LOG2);

	/* each iteration but the last is one in which another lane got something done */
	while ((bits & parts) == parts) {
		/* pool.P1: pairs with pool.P0: whoever had its parts is done with them */
		u64 seen = weir_cas_u64_acquire_dev(word, bits, bits & ~parts);

		if (seen == bits)
			return 1;
		bits = seen;
	}
	return 0;
}

/*
 * Free the units @mask of word @index of @level, and what becomes whole by that of the levels above: whoever
 * frees the last part of a unit sees all parts, so that none stays in parts.
 */
WEIR_FN void weir_pool_give_bits(WEIR_GLOBAL struct weir_pool_region *region, u32 level, u32 index, u64 mask)
{
	while (mask) {
		WEIR_GLOBAL weir_shared_u64 *word = weir_pool_word(region, level, index);
		/* pool.P0: pairs with pool.P1: this lane is done with them, and what it acquired with them */
		u64 bits = weir_or_u64_acq_rel_dev(word, mask) | mask, made = 0;
		u32 parts = 0;

		for (u32 field = 0; level < WEIR_POOL_TOP && field < 4; field++) {
			u32 first = field << WEIR_POOL_PARTS_LOG2;

			if ((mask >> first & 0xffff) && weir_pool_merge(word, bits, first)) {
				made |= (u64)1 << field;
				parts += 1u << WEIR_POOL_PARTS_LOG2;
				bits &= ~weir_pool_mask(first, 1 << WEIR_POOL_PARTS_LOG2);
			}
		}
		/* relaxed: as above */
		(void)weir_add_u32_relaxed_dev(&region->free[level], weir_popcount(mask) - parts);
		mask = made << (index * 4 % 64);
		index /= 16;
		level++;
	}
}

/* Free @count pages from @page on, in the largest units that they fill. */
WEIR_FN void weir_pool_give_pages(WEIR_GLOBAL struct weir_pool_region *region, u32 page, u32 count)
{
	while (count) {
		u32 level = 0, unit, units, room;

		while (level < WEIR_POOL_TOP && count >> ((level + 1) * WEIR_POOL_PARTS_LOG2) &&
		       (page & ((1u << ((level + 1) * WEIR_POOL_PARTS_LOG2)) - 1)) == 0)
			level++;
		unit = page >> (level * WEIR_POOL_PARTS_LOG2);
		units = count >> (level * WEIR_POOL_PARTS_LOG2);
		/* up to where a larger unit begins, or another word */
		room = level == WEIR_POOL_TOP ? 64 - unit % 64 : 16 - unit % 16;
		units = units < room ? units : room;
		weir_pool_give_bits(region, level, unit / 64, weir_pool_mask(unit % 64, units));
		page += units << (level * WEIR_POOL_PARTS_LOG2);
		count -= units << (level * WEIR_POOL_PARTS_LOG2);
	}
}

/* Take @pages neighbours as units of @level, and give back what of the last one is too much. Return: the
 * first page plus one; 0: none. */
WEIR_FN u32 weir_pool_take_at(WEIR_GLOBAL struct weir_pool_region *region, u32 level, u32 pages)
{
	u32 log2 = level * WEIR_POOL_PARTS_LOG2, units = (pages + (1u << log2) - 1) >> log2;
	u32 unit = units <= WEIR_POOL_RUN ? weir_pool_take_units(region, level, units) : 0, page;

	if (unit == 0)
		return 0;
	page = (unit - 1) << log2;
	weir_pool_give_pages(region, page + pages, (units << log2) - pages);
	return page + 1;
}

/* The closest level first, then larger units, which are split; last neighbours of smaller ones. */
WEIR_FN u32 weir_pool_take_pages(WEIR_GLOBAL struct weir_pool_region *region, u32 pages)
{
	u32 closest = pages < 1u << WEIR_POOL_PARTS_LOG2 ? 0 : pages < (u32)WEIR_POOL_CHUNK_PAGES ? 1 : 2;
	u32 page = 0;

	for (u32 level = closest; page == 0 && level < WEIR_POOL_LEVELS; level++)
		page = weir_pool_take_at(region, level, pages);
	for (u32 level = closest; page == 0 && level > 0; level--)
		page = weir_pool_take_at(region, level - 1, pages);
	return page;
}

/**
 * weir_pool_try_take() - a buffer of contiguous memory
 * @pool: the pool
 * @bytes: its size, 1 to 64 MiB; rounded up to 4 KiB
 *
 * Any lane by itself; one pass, nothing waits. Acquire: whoever had the memory before is done with it.
 *
 * Return: device address, 4 KiB aligned; 0: there is none of that size, or other lanes were faster, or just
 * about to give some back (weir_pool_take() tries more than once).
 */
WEIR_FN weir_addr weir_pool_try_take(WEIR_GLOBAL struct weir_pool *pool, u64 bytes)
{
	/* pool.G1: pairs with pool.G0 (runtime/volume/pool.c): the region before the count */
	u32 count = weir_load_u32_acquire_sys(&pool->region_count);
	u64 pages = (bytes + (1u << WEIR_POOL_PAGE_LOG2) - 1) >> WEIR_POOL_PAGE_LOG2;

	if (pages == 0 || pages > (u32)WEIR_POOL_RUN * WEIR_POOL_CHUNK_PAGES)
		return 0;
	for (u32 i = 0; i < count; i++) {
		WEIR_GLOBAL struct weir_pool_region *region = &pool->regions[i];
		u32 page = weir_pool_take_pages(region, (u32)pages);

		if (page) {
			/* relaxed: the word of whoever has the memory */
			weir_store_u32_relaxed_dev(weir_at(region->lengths, weir_shared_u32, page - 1),
						   (u32)pages);
			return region->data + ((u64)(page - 1) << WEIR_POOL_PAGE_LOG2);
		}
	}
	return 0;
}

/* The host is to add @bytes at least. Relaxed: it is a wish; of several the greatest is best, any does. */
WEIR_FN void weir_pool_want(WEIR_GLOBAL struct weir_pool *pool, u64 bytes)
{
	WEIR_GLOBAL weir_shared_u64 *wanted = weir_at(pool->wanted, weir_shared_u64, 0);

	if (pool->wanted && weir_load_u64_relaxed_sys(wanted) < bytes)
		weir_store_u64_relaxed_sys(wanted, bytes);
}

/**
 * weir_pool_take() - weir_pool_try_take() until there is memory, or the time is over
 * @pool: the pool
 * @bytes: as there; 0: this lane wants nothing, but goes along
 * @timeout_us: how long it may wait for other lanes, and for the host to add memory; 0: a few tries
 *
 * Any subset of a wave's lanes. Lanes of the own wave give nothing back meanwhile, so whoever has buffers
 * already does better with a timeout of 0 and less work in flight.
 *
 * Return: device address; 0: none.
 */
WEIR_FN weir_addr weir_pool_take(WEIR_GLOBAL struct weir_pool *pool, u64 bytes, u64 timeout_us)
{
	u64 wave = weir_active(), longest = (u64)1 << 53; /* with the clock's value still a number */
	u64 us = timeout_us < longest ? timeout_us : longest, deadline = us ? weir_clock_ns() + us * 1000 : 0;
	weir_addr address = 0;
	u32 done = bytes == 0;

	for (u32 iteration = 0; weir_ballot(wave, !done) != 0; iteration++) {
		weir_reconverge();
		if (!done) {
			address = weir_pool_try_take(pool, bytes);
			done = address != 0;
		}
		if (!done && iteration >= WEIR_POOL_BRIEF) {
			weir_pool_want(pool, bytes);
			done = weir_clock_ns() > deadline;
			if (done) /* relaxed: a figure for the host */
				(void)weir_add_u64_relaxed_dev(&pool->refused, 1);
		}
		weir_reconverge();
		if (weir_ballot(wave, !done) != 0)
			weir_relax(iteration);
	}
	return address;
}

/**
 * weir_pool_free() - give a buffer back
 * @pool: the pool
 * @address: from weir_pool_try_take() or weir_pool_take()
 *
 * Any lane by itself, not only the one that took it; nothing waits. Release: this lane is done with it, and
 * no command has it any more.
 *
 * Return: WEIR_OK; WEIR_E_POOL: no buffer begins there, or it was given back already: nothing was done.
 */
WEIR_FN weir_status weir_pool_free(WEIR_GLOBAL struct weir_pool *pool, weir_addr address)
{
	/* pool.G1: pairs with pool.G0 */
	u32 count = weir_load_u32_acquire_sys(&pool->region_count);

	for (u32 i = 0; i < count; i++) {
		WEIR_GLOBAL struct weir_pool_region *region = &pool->regions[i];
		u64 offset = address - region->data, page = offset >> WEIR_POOL_PAGE_LOG2;
		u32 pages;

		if (page >= region->pages)
			continue;
		if (offset & ((1u << WEIR_POOL_PAGE_LOG2) - 1))
			return WEIR_E_POOL;
		/* acquire and release: of two that give it back one finds its length */
		pages = weir_exchange_u32_acq_rel_dev(weir_at(region->lengths, weir_shared_u32, page), 0);
		if (pages == 0)
			return WEIR_E_POOL;
		weir_pool_give_pages(region, (u32)page, pages);
		return WEIR_OK;
	}
	return WEIR_E_POOL;
}

#endif
