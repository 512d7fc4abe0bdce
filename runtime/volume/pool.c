/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume/pool.c: memory for pools of buffers, and more of it.
 *
 * Owns: the regions of struct weir_pool, of which the host adds one when lanes want more than there is.
 * Never takes or frees a buffer: lanes do (core/volume/allocator.h). Source: GNStor, section 4.2.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/core/volume/allocator.h>
#include <weir/weir.h>

#include "../base/handles.h"
#include "../base/options.h"
#include "../backend/error.h"
#include "../device/context.h"

enum { CHUNK_BYTES = 1 << 20, DEFAULT_BYTES = 8 << 20, POLL_US = 200 };

static const uint64_t MOST_REGION_BYTES = (uint64_t)1 << 40;

/**
 * struct weir_buffer_pool - a pool's host side
 * @address: of the lanes' struct weir_pool, @lanes: what it has been given
 * @wanted: the word that lanes write their wish to, at @wanted_address
 * @bytes: of all regions
 * @own_bytes: besides data
 */
struct weir_buffer_pool {
	struct weir_context *context;
	uint64_t address;
	struct weir_pool lanes;
	weir_shared_u64 *wanted;
	uint64_t wanted_address;
	uint64_t bytes;
	uint64_t most_bytes;
	uint64_t own_bytes;
};

static uint32_t region_words(const struct weir_pool_region *region)
{
	uint32_t words = 0;

	for (uint32_t level = 0; level < WEIR_POOL_LEVELS; level++)
		words += weir_pool_level_words(region->pages, level);
	return words;
}

/* All chunks are free. */
static int free_chunks(struct weir_buffer_pool *pool, const struct weir_pool_region *region)
{
	uint32_t chunks = region->pages / WEIR_POOL_CHUNK_PAGES,
		 words = weir_pool_level_words(region->pages, WEIR_POOL_TOP);
	uint64_t *bits = malloc(words * sizeof(*bits));
	int error;

	if (!bits)
		return weir_fail(ENOMEM, "pool: no memory");
	for (uint32_t i = 0; i < words; i++)
		bits[i] = weir_pool_mask(0, chunks - i * 64 < 64 ? chunks - i * 64 : 64);
	error = weir_copy_to_device(pool->context,
				    region->words + (region_words(region) - words) * sizeof(*bits), bits,
				    words * sizeof(*bits));
	free(bits);
	return error;
}

static void put_region(struct weir_buffer_pool *pool, const struct weir_pool_region *region)
{
	(void)weir_memory_put(pool->context, region->data);
	(void)weir_memory_put(pool->context, region->words);
	(void)weir_memory_put(pool->context, region->lengths);
}

/* The region, then the count that lanes find it by. */
static int publish(struct weir_buffer_pool *pool, const struct weir_pool_region *region)
{
	uint32_t count = pool->lanes.region_count.value_;
	int error = weir_copy_to_device(
		pool->context, pool->address + offsetof(struct weir_pool, regions) + count * sizeof(*region),
		region, sizeof(*region));

	count++;
	/* pool.G0: pairs with pool.G1 (core/volume/allocator.h): a call of its own, behind the region's */
	if (!error)
		error = weir_copy_to_device(pool->context,
					    pool->address + offsetof(struct weir_pool, region_count), &count,
					    sizeof(count));
	if (!error)
		pool->lanes.region_count.value_ = count;
	return error;
}

static int add_region(struct weir_buffer_pool *pool, uint64_t bytes)
{
	struct weir_pool_region region = { .pages = (uint32_t)(bytes >> WEIR_POOL_PAGE_LOG2) };
	struct weir_context *context = pool->context;
	int error = weir_memory_get(context, bytes, &region.data);

	region.free[WEIR_POOL_TOP].value_ = region.pages / WEIR_POOL_CHUNK_PAGES;
	if (!error)
		error = weir_memory_get(context, region_words(&region) * sizeof(u64), &region.words);
	if (!error)
		error = weir_memory_get(context, region.pages * sizeof(u32), &region.lengths);
	if (!error)
		error = free_chunks(pool, &region);
	if (!error)
		error = publish(pool, &region);
	if (error) {
		put_region(pool, &region);
		return error;
	}
	pool->lanes.regions[pool->lanes.region_count.value_ - 1] = region;
	pool->bytes += bytes;
	pool->own_bytes += region_words(&region) * sizeof(u64) + region.pages * sizeof(u32);
	return 0;
}

/* It doubles, or grows by what is wanted if that is more. Return: 1: it grew; 0: it may not; or a negative
 * errno. */
static int grow(struct weir_buffer_pool *pool, uint64_t wanted)
{
	uint64_t room = pool->most_bytes > pool->bytes
				? (pool->most_bytes - pool->bytes) / CHUNK_BYTES * CHUNK_BYTES
				: 0;
	uint64_t bytes = (wanted + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES;
	int error;

	bytes = bytes > pool->bytes ? bytes : pool->bytes;
	bytes = bytes < room ? bytes : room;
	if (bytes < wanted || bytes == 0 || pool->lanes.region_count.value_ == WEIR_POOL_REGIONS)
		return 0;
	error = add_region(pool, bytes);
	return error ? error : 1;
}

int weir_pool_serve(struct weir_buffer_pool *pool, uint64_t us)
{
	int error = weir_handle_check(pool, WEIR_HANDLE_POOL, "weir_pool_serve"), grew = 0;

	if (!error) /* else its memory went with the context */
		error = weir_handle_check(pool->context, WEIR_HANDLE_CONTEXT, "weir_pool_serve");
	for (uint64_t waited = 0; !error; waited += POLL_US) {
		uint64_t wanted = weir_load_u64_relaxed_sys(pool->wanted); /* relaxed: a number alone */

		if (wanted) {
			int result = grow(pool, wanted);

			error = result < 0 ? result : 0;
			grew += result > 0;
			/* a wish that comes meanwhile is made again, by whoever waits */
			weir_store_u64_relaxed_sys(pool->wanted, 0);
		}
		if (waited >= us)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = POLL_US * 1000 }, NULL);
	}
	return error ? error : grew;
}

static int lay_out(struct weir_buffer_pool *pool, uint64_t bytes)
{
	void *wanted;
	int error = weir_memory_get(pool->context, sizeof(pool->lanes), &pool->address);

	if (!error)
		error = weir_alloc_host(pool->context, sizeof(u64), &pool->wanted_address, &wanted);
	if (error)
		return error;
	pool->wanted = wanted;
	pool->own_bytes = sizeof(pool->lanes);
	if (pool->most_bytes > bytes)
		pool->lanes.wanted = pool->wanted_address;
	error = weir_copy_to_device(pool->context, pool->address, &pool->lanes, sizeof(pool->lanes));
	return error ? error : add_region(pool, bytes);
}

static void release(struct weir_buffer_pool *pool)
{
	for (uint32_t i = 0; i < pool->lanes.region_count.value_; i++)
		put_region(pool, &pool->lanes.regions[i]);
	(void)weir_free(pool->context, pool->wanted_address);
	(void)weir_memory_put(pool->context, pool->address);
}

static int take_options(struct weir_pool_options *options, const struct weir_pool_options *given)
{
	int error = weir_options_take(options, sizeof(*options), given, "pool options");

	if (error)
		return error;
	options->bytes = options->bytes ? options->bytes : DEFAULT_BYTES;
	if (options->bytes > MOST_REGION_BYTES || options->most_bytes > MOST_REGION_BYTES)
		return weir_fail(EINVAL, "pool of %llu bytes: at most %llu",
				 (unsigned long long)(options->bytes > options->most_bytes
							      ? options->bytes
							      : options->most_bytes),
				 (unsigned long long)MOST_REGION_BYTES);
	options->bytes = (options->bytes + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES;
	return 0;
}

int weir_pool_create(struct weir_context *context, const struct weir_pool_options *given,
		     struct weir_buffer_pool **out)
{
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_pool_create");
	struct weir_pool_options options;
	struct weir_buffer_pool *pool;

	if (error || (error = weir_given(out, "weir_pool_create", "out")) != 0 ||
	    (error = take_options(&options, given)) != 0)
		return error;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return weir_fail(ENOMEM, "pool: no memory");
	pool->context = context;
	pool->most_bytes = options.most_bytes;
	error = lay_out(pool, options.bytes);
	if (!error)
		error = weir_handle_add(pool, WEIR_HANDLE_POOL, "");
	if (error) {
		release(pool);
		free(pool);
		return error;
	}
	*out = pool;
	return 0;
}

uint64_t weir_pool_address(const struct weir_buffer_pool *pool)
{
	return weir_handle_check(pool, WEIR_HANDLE_POOL, "weir_pool_address") ? 0 : pool->address;
}

/* The longest run of set bits in one of @words words. */
static uint32_t longest_run(const uint64_t *words, uint32_t count)
{
	uint32_t longest = 0;

	for (uint32_t i = 0; i < count; i++)
		while (longest < 64 && weir_pool_run(words[i], longest + 1))
			longest++;
	return longest;
}

static int read_region(struct weir_buffer_pool *pool, const struct weir_pool_region *region,
		       struct weir_pool_stats *stats)
{
	uint32_t words = region_words(region), at = 0;
	uint64_t *bits = malloc(words * sizeof(*bits));
	int error = bits ? weir_copy_from_device(pool->context, bits, region->words, words * sizeof(*bits))
			 : weir_fail(ENOMEM, "pool: no memory");

	for (uint32_t level = 0; !error && level < WEIR_POOL_LEVELS; level++) {
		uint32_t count = weir_pool_level_words(region->pages, level),
			 log2 = WEIR_POOL_PAGE_LOG2 + level * WEIR_POOL_PARTS_LOG2;
		uint64_t largest = (uint64_t)longest_run(bits + at, count) << log2;

		for (uint32_t i = 0; i < count; i++)
			stats->free_bytes += (uint64_t)weir_popcount(bits[at + i]) << log2;
		stats->largest_bytes = largest > stats->largest_bytes ? largest : stats->largest_bytes;
		at += count;
	}
	free(bits);
	return error;
}

int weir_pool_stats(struct weir_buffer_pool *pool, struct weir_pool_stats *stats)
{
	int error = weir_handle_check(pool, WEIR_HANDLE_POOL, "weir_pool_stats");
	struct weir_pool_stats now = { .size = sizeof(now) };
	struct weir_pool lanes;

	if (!error)
		error = weir_given(stats, "weir_pool_stats", "stats");
	if (!error)
		error = weir_copy_from_device(pool->context, &lanes, pool->address, sizeof(lanes));
	for (uint32_t i = 0; !error && i < lanes.region_count.value_; i++) {
		now.bytes += (uint64_t)lanes.regions[i].pages << WEIR_POOL_PAGE_LOG2;
		now.own_bytes +=
			region_words(&lanes.regions[i]) * sizeof(u64) + lanes.regions[i].pages * sizeof(u32);
		error = read_region(pool, &lanes.regions[i], &now);
	}
	if (error)
		return error;
	now.regions = lanes.region_count.value_;
	now.refused = lanes.refused.value_;
	now.own_bytes += sizeof(lanes);
	return weir_result_give(stats, &now, sizeof(now), "pool statistics");
}

int weir_pool_destroy(struct weir_buffer_pool *pool)
{
	int error = pool ? weir_handle_check(pool, WEIR_HANDLE_POOL, "weir_pool_destroy") : 0;

	if (!pool || error)
		return error;
	error = weir_handle_check(pool->context, WEIR_HANDLE_CONTEXT, "weir_pool_destroy");
	if (error)
		return error; /* its memory went with the context */
	for (uint32_t i = 0; i < pool->lanes.region_count.value_; i++) {
		const struct weir_pool_region *region = &pool->lanes.regions[i];

		error = weir_inflight_check(pool->context, region->data,
					    (size_t)region->pages << WEIR_POOL_PAGE_LOG2);
		if (error)
			return error;
	}
	release(pool);
	weir_handle_retire(pool);
	return 0;
}
