/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool_bench.k.c: lanes take buffers from the pool of core/volume/allocator.h, from a single bitmap of pages,
 * and from a buddy allocator behind a lock: the two peers are made for this measurement alone.
 */
#include "pool_bench.h"

enum { PAGE_LOG2 = WEIR_POOL_PAGE_LOG2, NONE = 0 };

WEIR_FN u64 next_random(u64 *state)
{
	u64 x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	return (x ^ x >> 27) * 0x94d049bb133111ebu >> 16;
}

/* Pages of a request: graphs 512 bytes to 8 KiB, KV caches 8 KiB to 4 MiB, training 1 to 4 MiB; the sizes'
 * logarithms evenly spread, and half of them no power of two. */
WEIR_FN u32 some_pages(u32 mix, u64 random)
{
	u32 low = 0, high = 1, log2, pages;

	if (mix == POOL_BENCH_ALL)
		mix = random >> 40 & 1   ? POOL_BENCH_GRAPH
		      : random >> 41 & 3 ? POOL_BENCH_CACHE
					 : POOL_BENCH_TRAINING;
	if (mix == POOL_BENCH_CACHE) {
		low = 1;
		high = 10;
	} else if (mix == POOL_BENCH_TRAINING) {
		low = 8;
		high = 10;
	}
	log2 = low + (u32)(random & 0xffff) % (high - low + 1);
	pages = 1u << log2;
	return log2 > low && (random >> 16 & 1) ? pages - (u32)(random >> 17 & 0xffff) % (pages / 2) : pages;
}

WEIR_FN WEIR_GLOBAL weir_shared_u64 *bitmap_word(WEIR_GLOBAL struct pool_bench_args *args, u32 index)
{
	return weir_at(args->words, weir_shared_u64, index);
}

WEIR_FN u64 bits_wanted(u32 pages, u32 word)
{
	u32 left = pages - word * 64;

	return weir_pool_mask(0, left < 64 ? left : 64);
}

WEIR_FN void bitmap_give(WEIR_GLOBAL struct pool_bench_args *args, u32 page, u32 pages)
{
	if (pages <= 64) {
		(void)weir_or_u64_acq_rel_dev(bitmap_word(args, page / 64), weir_pool_mask(page % 64, pages));
		return;
	}
	for (u32 i = 0; i * 64 < pages; i++)
		(void)weir_or_u64_acq_rel_dev(bitmap_word(args, page / 64 + i), bits_wanted(pages, i));
}

/* The first words of which the pages are free, from @index on; all or none. */
WEIR_FN u32 bitmap_take_words(WEIR_GLOBAL struct pool_bench_args *args, u32 index, u32 pages)
{
	u32 words = (pages + 63) / 64;

	for (u32 i = 0; i < words; i++) {
		u64 wanted = bits_wanted(pages, i),
		    bits = weir_load_u64_relaxed_dev(bitmap_word(args, index + i));

		if ((bits & wanted) == wanted &&
		    weir_cas_u64_acquire_dev(bitmap_word(args, index + i), bits, bits & ~wanted) == bits)
			continue;
		if (i)
			bitmap_give(args, index * 64, i * 64);
		return 0;
	}
	return index * 64 + 1;
}

WEIR_FN u32 bitmap_take(WEIR_GLOBAL struct pool_bench_args *args, u32 pages)
{
	u32 words = args->pages / 64, at = (u32)weir_wave() % words;

	for (u32 i = 0; i < words; i++) {
		WEIR_GLOBAL weir_shared_u64 *word = bitmap_word(args, at);
		u64 bits = weir_load_u64_relaxed_dev(word), mask;

		for (u32 tries = 0;
		     pages <= 64 && tries < WEIR_POOL_SWAPS && (mask = weir_pool_run(bits, pages)) != 0;
		     tries++) {
			u64 seen = weir_cas_u64_acquire_dev(word, bits, bits & ~mask);

			if (seen == bits)
				return at * 64 + weir_lowest_bit(mask) + 1;
			bits = seen;
		}
		if (pages > 64 && bits == ~(u64)0 && at + (pages + 63) / 64 <= words) {
			u32 page = bitmap_take_words(args, at, pages);

			if (page)
				return page;
		}
		at = at + 1 < words ? at + 1 : 0;
	}
	return 0;
}

WEIR_FN WEIR_GLOBAL weir_shared_u64 *buddy_word(WEIR_GLOBAL struct pool_bench_args *args, u32 order, u32 unit)
{
	return bitmap_word(args, order * (args->pages / 64) + unit / 64);
}

WEIR_FN void buddy_set(WEIR_GLOBAL struct pool_bench_args *args, u32 order, u32 unit)
{
	WEIR_GLOBAL weir_shared_u64 *word = buddy_word(args, order, unit);

	/* relaxed, like all of the buddy's words: the lock orders them */
	weir_store_u64_relaxed_dev(word, weir_load_u64_relaxed_dev(word) | (u64)1 << unit % 64);
}

WEIR_FN u32 buddy_clear(WEIR_GLOBAL struct pool_bench_args *args, u32 order, u32 unit)
{
	WEIR_GLOBAL weir_shared_u64 *word = buddy_word(args, order, unit);
	u64 bits = weir_load_u64_relaxed_dev(word), bit = (u64)1 << unit % 64;

	weir_store_u64_relaxed_dev(word, bits & ~bit);
	return (bits & bit) != 0;
}

WEIR_FN u32 order_of(u32 pages)
{
	u32 order = 0;

	while (1u << order < pages)
		order++;
	return order;
}

/* With the lock: a unit of the smallest order that has one, halved as often as needed. */
WEIR_FN u32 buddy_take(WEIR_GLOBAL struct pool_bench_args *args, u32 pages)
{
	u32 wanted = order_of(pages);

	for (u32 order = wanted; order < POOL_BENCH_ORDERS; order++)
		for (u32 i = 0; i < (args->pages >> order) + 63 && i < args->pages; i += 64) {
			u64 bits = weir_load_u64_relaxed_dev(buddy_word(args, order, i));
			u32 unit;

			if (bits == 0)
				continue;
			unit = i + weir_lowest_bit(bits);
			(void)buddy_clear(args, order, unit);
			for (u32 part = order; part > wanted; part--) {
				unit *= 2;
				buddy_set(args, part - 1, unit + 1);
			}
			return (unit << wanted) + 1;
		}
	return 0;
}

WEIR_FN void buddy_give(WEIR_GLOBAL struct pool_bench_args *args, u32 page, u32 pages)
{
	u32 order = order_of(pages), unit = page >> order;

	while (order + 1 < POOL_BENCH_ORDERS && buddy_clear(args, order, unit ^ 1)) {
		unit /= 2;
		order++;
	}
	buddy_set(args, order, unit);
}

/* Take, or give @page back if that is not 0; one lane after the other. Return: page plus one; 0: none. */
WEIR_FN u32 buddy_locked(WEIR_GLOBAL struct pool_bench_args *args, u32 page, u32 pages)
{
	WEIR_GLOBAL weir_shared_u64 *lock = weir_at(args->lock, weir_shared_u64, 0);
	u64 wave = weir_active();
	u32 done = 0, result = 0;

	for (u32 iteration = 0; weir_ballot(wave, !done) != 0; iteration++) {
		weir_reconverge();
		if (!done && weir_load_u64_relaxed_dev(lock) == 0 &&
		    weir_cas_u64_acquire_dev(lock, 0, 1) == 0) {
			if (page)
				buddy_give(args, page - 1, pages);
			else
				result = buddy_take(args, pages);
			weir_store_u64_release_dev(lock, 0);
			done = 1;
		}
		weir_reconverge();
		/* briefly, always: with rests that grow the lock is free most of the time, and nobody takes
		 * it */
		if (weir_ballot(wave, !done) != 0)
			weir_relax(iteration % 64);
	}
	return result;
}

/* As often as the pool tries. */
WEIR_FN u32 bitmap_tried(WEIR_GLOBAL struct pool_bench_args *args, u32 pages)
{
	u64 wave = weir_active();
	u32 page = 0;

	for (u32 i = 0; i <= WEIR_POOL_BRIEF && weir_ballot(wave, page == 0) != 0; i++) {
		weir_reconverge();
		if (page == 0)
			page = bitmap_take(args, pages);
		if (weir_ballot(wave, page == 0) != 0)
			weir_relax(i);
	}
	return page;
}

WEIR_FN u32 take(WEIR_GLOBAL struct pool_bench_args *args, u32 pages)
{
	WEIR_GLOBAL struct weir_pool *pool = weir_at(args->pool, struct weir_pool, 0);
	weir_addr buffer;

	if (args->allocator == POOL_BENCH_BITMAP)
		return bitmap_tried(args, pages);
	if (args->allocator == POOL_BENCH_BUDDY)
		return buddy_locked(args, 0, pages);
	buffer = weir_pool_take(pool, (u64)pages << PAGE_LOG2, 0);
	return buffer ? (u32)((buffer - pool->regions[0].data) >> PAGE_LOG2) + 1 : 0;
}

WEIR_FN u32 give(WEIR_GLOBAL struct pool_bench_args *args, u32 page, u32 pages)
{
	WEIR_GLOBAL struct weir_pool *pool = weir_at(args->pool, struct weir_pool, 0);

	if (args->allocator == POOL_BENCH_BUDDY)
		return buddy_locked(args, page, pages);
	if (args->allocator == POOL_BENCH_BITMAP)
		bitmap_give(args, page - 1, pages);
	else
		return weir_pool_free(pool, pool->regions[0].data + ((u64)(page - 1) << PAGE_LOG2)) !=
		       WEIR_OK;
	return 0;
}

/* Some slots for buffers: a round empties a slot that is chosen by chance, or fills it. */
WEIR_KERNEL(pool_bench, struct pool_bench_args)
{
	WEIR_GLOBAL weir_shared_u64 *used = weir_at(args->used, weir_shared_u64, 0);
	WEIR_GLOBAL u64 *result = weir_at(args->results, u64, weir_thread() * POOL_BENCH_RESULTS);
	u64 random = weir_thread() << 32 | args->mix;
	u32 page[POOL_BENCH_LIVE], pages[POOL_BENCH_LIVE];

	for (u32 i = 0; i < POOL_BENCH_LIVE; i++)
		page[i] = pages[i] = 0;
	for (u32 r = 0; r < args->rounds + POOL_BENCH_LIVE; r++) {
		u32 last = r >= args->rounds;
		u32 slot = last ? r - args->rounds : (u32)next_random(&random) % POOL_BENCH_LIVE;
		u32 wanted = some_pages(args->mix, next_random(&random));
		u32 had = page[slot], given;

		weir_relax(0); /* as for the I/O that a buffer is for: other lanes have theirs meanwhile */
		weir_reconverge();
		if (had) {
			result[5] += give(args, had, pages[slot]);
			given = args->allocator == POOL_BENCH_BUDDY ? 1u << order_of(pages[slot])
								    : pages[slot];
			(void)weir_add_u64_relaxed_dev(used, (u64)0 - given);
			page[slot] = 0;
		} else if (!last) {
			page[slot] = take(args, wanted);
			pages[slot] = wanted;
			given = args->allocator == POOL_BENCH_BUDDY ? 1u << order_of(wanted) : wanted;
			if (page[slot]) {
				(void)weir_add_u64_relaxed_dev(used, given);
				result[0]++;
				result[3] += wanted;
				result[4] += given;
			} else {
				result[1]++;
				result[2] += weir_load_u64_relaxed_dev(used) + wanted <= args->pages;
			}
		}
		weir_reconverge();
	}
}
