/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes take buffers of a pool, write all pages of them, and give them back. */
#include "pool.h"

enum { PAGE = 1 << WEIR_POOL_PAGE_LOG2, GOT = 0, REFUSED = 1, WRONG = 2, STATUSES = 3 };

WEIR_FN u64 page_word(u32 page, u32 r)
{
	return (weir_thread() + 1) << 32 | (u64)r << 16 | page;
}

WEIR_FN void write_pages(weir_addr buffer, u32 pages, u32 r)
{
	for (u32 page = 0; page < pages; page++) {
		*weir_at(buffer + (u64)page * PAGE, u64, 0) = page_word(page, r);
		*weir_at(buffer + (u64)page * PAGE, u64, PAGE / 8 - 1) = page_word(page, r);
	}
}

WEIR_FN u32 wrong_words(weir_addr buffer, u32 pages, u32 r)
{
	u32 wrong = 0;

	for (u32 page = 0; page < pages; page++) {
		wrong += *weir_at(buffer + (u64)page * PAGE, u64, 0) != page_word(page, r);
		wrong += *weir_at(buffer + (u64)page * PAGE, u64, PAGE / 8 - 1) != page_word(page, r);
	}
	return wrong;
}

/* Some number of pages, 1 to @most: mostly few. */
WEIR_FN u32 some_pages(u32 r, u32 most)
{
	u64 x = (weir_thread() * 0x9e3779b97f4a7c15u + r) * 0xbf58476d1ce4e5b9u;

	x = (x ^ x >> 29) * 0x94d049bb133111ebu;
	return 1 + (u32)(x >> 40) % (x >> 33 & 3 ? (most + 15) / 16 : most);
}

/* Two buffers at a time, the older one given back first. */
WEIR_KERNEL(test_pool, struct test_pool_args)
{
	WEIR_GLOBAL struct weir_pool *pool = weir_at(args->pool, struct weir_pool, 0);
	WEIR_GLOBAL u64 *result = weir_at(args->results, u64, weir_thread() * 4);
	weir_addr old = 0;
	u32 old_pages = 0;

	for (u32 r = 0; r < args->rounds; r++) {
		u32 pages = some_pages(r, args->pages);
		weir_addr buffer = weir_pool_take(pool, (u64)pages * PAGE, args->timeout_us);

		if (buffer)
			write_pages(buffer, pages, r);
		result[buffer ? GOT : REFUSED]++;
		if (old) {
			result[WRONG] += wrong_words(old, old_pages, r - 1);
			result[STATUSES] += weir_pool_free(pool, old) != WEIR_OK;
		}
		old = buffer;
		old_pages = pages;
		weir_reconverge();
	}
	if (old)
		result[STATUSES] += weir_pool_free(pool, old) != WEIR_OK;
}

/* Each lane takes a buffer, which the pool has to grow for, and keeps it. */
WEIR_KERNEL(test_pool_hold, struct test_pool_args)
{
	WEIR_GLOBAL struct weir_pool *pool = weir_at(args->pool, struct weir_pool, 0);
	WEIR_GLOBAL u64 *result = weir_at(args->results, u64, weir_thread() * 4);
	weir_addr buffer = weir_pool_take(pool, (u64)args->pages * PAGE, args->timeout_us);

	result[buffer ? GOT : REFUSED]++;
	*weir_at(args->held, weir_addr, weir_thread()) = buffer;
	if (buffer)
		write_pages(buffer, args->pages, 0);
}

/* What each lane kept has what it wrote; now it gives it back. */
WEIR_KERNEL(test_pool_release, struct test_pool_args)
{
	WEIR_GLOBAL struct weir_pool *pool = weir_at(args->pool, struct weir_pool, 0);
	WEIR_GLOBAL u64 *result = weir_at(args->results, u64, weir_thread() * 4);
	weir_addr buffer = *weir_at(args->held, weir_addr, weir_thread());

	if (buffer) {
		result[WRONG] += wrong_words(buffer, args->pages, 0);
		result[STATUSES] += weir_pool_free(pool, buffer) != WEIR_OK;
	}
}

/* What is not a buffer, or not one any more, is refused; sizes that no pool has give none. No lane takes
 * anything meanwhile: what one has given back another one could have. */
WEIR_KERNEL(test_pool_refusals, struct test_pool_args)
{
	WEIR_GLOBAL struct weir_pool *pool = weir_at(args->pool, struct weir_pool, 0);
	WEIR_GLOBAL u64 *result = weir_at(args->results, u64, weir_thread() * 4);
	weir_addr buffer = *weir_at(args->held, weir_addr, weir_thread());

	result[STATUSES] += weir_pool_free(pool, buffer + PAGE) != WEIR_E_POOL;
	result[STATUSES] += weir_pool_free(pool, buffer + 4) != WEIR_E_POOL;
	result[STATUSES] += weir_pool_free(pool, 0) != WEIR_E_POOL;
	if (args->given_back)
		result[STATUSES] += weir_pool_free(pool, buffer) != WEIR_E_POOL;
	result[STATUSES] += weir_pool_try_take(pool, 0) != 0;
	result[STATUSES] += weir_pool_try_take(pool, ((u64)64 << 20) + 1) != 0;
	result[STATUSES] += weir_pool_try_take(pool, ~(u64)0) != 0;
	for (u32 log2 = 32; log2 < 64; log2++) /* few pages, for who looks at some of the bits alone */
		result[STATUSES] += weir_pool_try_take(pool, ((u64)1 << log2) + PAGE) != 0;
}
