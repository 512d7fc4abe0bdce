/* SPDX-License-Identifier: BSD-3-Clause */
/* Caches and arrays, the host's side: sizes, memory, keys. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "error.h"

enum {
	DEFAULT_LINE_BYTES = 4096,
	LEAST_LINE_BYTES = 512,
	MOST_LINE_BYTES = 65536,
	MOST_STORAGES = 64,
	DEFAULT_STRIPE_BYTES = 64 << 10,
};

/** struct weir_cache_disks - the device table of one array's storages */
struct weir_cache_disks {
	struct weir_cache_disks *next;
	uint64_t address;
};

static uint64_t set_bytes(uint64_t line_bytes)
{
	return WEIR_WAYS * line_bytes + sizeof(struct weir_set) + sizeof(struct weir_set_policy);
}

/* Sets that fit the options; 0 with a sentence if not one does. */
static uint64_t count_sets(const struct weir_cache_options *options, uint64_t line_bytes)
{
	uint64_t sets = options->lines ? (options->lines + WEIR_WAYS - 1) / WEIR_WAYS :
					 (options->bytes - (options->bytes > sizeof(struct weir_lines) ?
								    sizeof(struct weir_lines) : options->bytes)) /
						 set_bytes(line_bytes);

	if (options->lines && options->bytes)
		(void)weir_fail(EINVAL, "cache: give bytes or lines, not both");
	else if (!options->lines && !options->bytes)
		(void)weir_fail(EINVAL, "cache of zero lines: give bytes, or lines of 4 at least");
	else if (!sets)
		(void)weir_fail(EINVAL, "cache of %llu bytes: one set of %d lines of %llu bytes needs %llu",
				(unsigned long long)options->bytes, WEIR_WAYS, (unsigned long long)line_bytes,
				(unsigned long long)(set_bytes(line_bytes) + sizeof(struct weir_lines)));
	else
		return sets;
	return 0;
}

static int check_line_bytes(uint64_t line_bytes)
{
	if (line_bytes < LEAST_LINE_BYTES || line_bytes > MOST_LINE_BYTES || (line_bytes & (line_bytes - 1)))
		return weir_fail(EINVAL, "cache: line_bytes is %llu; it must be a power of two from %d to %d",
				 (unsigned long long)line_bytes, LEAST_LINE_BYTES, MOST_LINE_BYTES);
	return 0;
}

static int allocate(struct weir_cache *cache, const struct weir_cache_options *options)
{
	struct weir_context *context = cache->context;
	struct weir_lines lines;
	int error = weir_alloc(context, sizeof(lines), &cache->lines);

	if (!error)
		error = weir_alloc(context, cache->sets * sizeof(struct weir_set), &cache->words);
	if (!error)
		error = weir_alloc(context, cache->sets * sizeof(struct weir_set_policy), &cache->policies);
	if (!error)
		error = weir_alloc(context, (cache->sets * WEIR_WAYS) << cache->line_log2, &cache->data);
	if (error)
		return error;
	memset(&lines, 0, sizeof(lines));
	lines.abi_version = WEIR_ABI_VERSION;
	lines.line_log2 = cache->line_log2;
	lines.sets = cache->sets;
	lines.set_magic = UINT64_MAX / cache->sets;
	lines.words = cache->words;
	lines.policies = cache->policies;
	lines.data = cache->data;
	lines.policy = options->policy;
	lines.policy_parameter = options->policy_parameter;
	return weir_copy_in(context, cache->lines, &lines, sizeof(lines));
}

static void release(struct weir_cache *cache)
{
	while (cache->disks) {
		struct weir_cache_disks *next = cache->disks->next;

		(void)weir_free(cache->context, cache->disks->address);
		free(cache->disks);
		cache->disks = next;
	}
	(void)weir_free(cache->context, cache->data);
	(void)weir_free(cache->context, cache->policies);
	(void)weir_free(cache->context, cache->words);
	(void)weir_free(cache->context, cache->lines);
	free(cache);
}

int weir_cache_create(struct weir_context *context, const struct weir_cache_options *given,
		      struct weir_cache **out)
{
	struct weir_cache_options options;
	uint64_t line_bytes;
	struct weir_cache *cache;
	int error = weir_options_take(&options, sizeof(options), given, "cache options");

	*out = NULL;
	line_bytes = options.line_bytes ? options.line_bytes : DEFAULT_LINE_BYTES;
	if (error || (error = check_line_bytes(line_bytes)) != 0 || (error = weir_policy_check(&options)) != 0)
		return error;
	cache = calloc(1, sizeof(*cache));
	if (!cache)
		return weir_fail(ENOMEM, "no memory for a cache");
	cache->next_key = 1; /* 0 is nobody's */
	cache->context = context;
	cache->line_log2 = (uint32_t)__builtin_ctzll(line_bytes);
	cache->sets = count_sets(&options, line_bytes);
	cache->bytes = cache->sets * set_bytes(line_bytes) + sizeof(struct weir_lines);
	error = cache->sets ? allocate(cache, &options) : -EINVAL;
	if (error) {
		release(cache);
		return error;
	}
	context->caches++;
	*out = cache;
	return 0;
}

void weir_cache_destroy(struct weir_cache *cache)
{
	if (!cache)
		return;
	(void)cache->context->backend->ops->synchronise(cache->context->backend);
	cache->context->caches--;
	release(cache);
}

int weir_cache_stats(struct weir_cache *cache, struct weir_cache_stats *stats)
{
	struct weir_lines lines;
	struct weir_cache_stats filled;
	int error = weir_copy_out(cache->context, &lines, cache->lines, sizeof(lines));

	if (error)
		return error;
	filled.lines = cache->sets * WEIR_WAYS;
	filled.line_bytes = (uint64_t)1 << cache->line_log2;
	filled.bytes = cache->bytes;
	filled.misses = weir_load_u64_relaxed_sys(&lines.misses);
	filled.evictions = weir_load_u64_relaxed_sys(&lines.evictions);
	filled.retracted = weir_load_u64_relaxed_sys(&lines.retracted);
	return weir_result_give(stats, &filled, sizeof(filled), "weir_cache_stats");
}

static int check_element(const struct weir_array_options *options)
{
	uint32_t bytes = options->element_bytes;
	uint32_t alignment = bytes == 16 ? 16 : bytes < 8 ? bytes : 8;

	if (bytes != 1 && bytes != 2 && bytes != 4 && (bytes == 0 || bytes % 8))
		return weir_fail(EINVAL, "array: element_bytes is %u; it must be 1, 2, 4 or a multiple of 8", bytes);
	if (options->first_byte % alignment)
		return weir_fail(EINVAL, "array: first_byte %llu is not a multiple of %u, which its elements need",
				 (unsigned long long)options->first_byte, alignment);
	return 0;
}

static int check_storage(const struct weir_cache *cache, const struct weir_storage *storage,
			 const struct weir_storage *first)
{
	uint64_t line_bytes = (uint64_t)1 << cache->line_log2;

	if (storage->context != cache->context)
		return weir_fail(EINVAL, "array: storage \"%s\" belongs to another context than the cache", storage->uri);
	if (storage->disk.block_log2 > cache->line_log2)
		return weir_fail(EINVAL, "array: storage \"%s\" has blocks of %u bytes, more than the cache's lines of %llu",
				 storage->uri, 1u << storage->disk.block_log2, (unsigned long long)line_bytes);
	if ((uint64_t)storage->disk.max_blocks << storage->disk.block_log2 < line_bytes)
		return weir_fail(EINVAL, "array: storage \"%s\" moves at most %u bytes at once, less than a line of %llu",
				 storage->uri, storage->disk.max_blocks << storage->disk.block_log2,
				 (unsigned long long)line_bytes);
	if (storage->disk.block_log2 != first->disk.block_log2)
		return weir_fail(EINVAL, "array: storages \"%s\" and \"%s\" have different block sizes and cannot be striped",
				 first->uri, storage->uri);
	return 0;
}

/*
 * Bytes of the stripe, up to the first unit that its member does not hold; all of
 * a single storage.
 */
static uint64_t stripe_capacity(struct weir_storage *const *storages, unsigned count, uint64_t unit_bytes)
{
	uint64_t units = UINT64_MAX;

	if (count == 1)
		return storages[0]->disk.blocks << storages[0]->disk.block_log2;
	for (unsigned i = 0; i < count; i++) {
		uint64_t rows = (storages[i]->disk.blocks << storages[i]->disk.block_log2) / unit_bytes;
		uint64_t missing = rows * count + i;

		units = missing < units ? missing : units;
	}
	return units * unit_bytes;
}

/* Keys for @lines lines from the cache's space of 2^40. */
static int take_keys(struct weir_cache *cache, uint64_t lines, uint64_t *base)
{
	if (lines > ((uint64_t)1 << WEIR_KEY_BITS) - cache->next_key)
		return weir_fail(ERANGE, "array: %llu lines of %u bytes exceed what one cache can name (2^%d); use longer lines",
				 (unsigned long long)lines, 1u << cache->line_log2, WEIR_KEY_BITS);
	*base = cache->next_key;
	cache->next_key += lines;
	return 0;
}

/* The storages' device structures in a table lanes can index. */
static int make_table(struct weir_cache *cache, struct weir_storage *const *storages, unsigned count,
		      uint64_t *address)
{
	struct weir_cache_disks *table = calloc(1, sizeof(*table));
	int error;

	if (!table)
		return weir_fail(ENOMEM, "array: no memory");
	error = weir_alloc(cache->context, count * sizeof(struct weir_disk), &table->address);
	for (unsigned i = 0; i < count && !error; i++)
		error = weir_copy_in(cache->context, table->address + i * sizeof(struct weir_disk), &storages[i]->disk,
				     sizeof(struct weir_disk));
	if (error) {
		(void)weir_free(cache->context, table->address);
		free(table);
		return error;
	}
	table->next = cache->disks;
	cache->disks = table;
	*address = table->address;
	return 0;
}

/* How many elements there are, or a sentence if they do not fit. */
static int count_elements(const struct weir_array_options *options, uint64_t capacity, uint64_t *count)
{
	uint64_t room = options->first_byte > capacity ? 0 : (capacity - options->first_byte) / options->element_bytes;

	if (options->count > room || options->first_byte > capacity)
		return weir_fail(ERANGE, "array: %llu elements of %u bytes from byte %llu on do not fit %llu bytes of storage",
				 (unsigned long long)options->count, options->element_bytes,
				 (unsigned long long)options->first_byte, (unsigned long long)capacity);
	*count = options->count ? options->count : room;
	return 0;
}

static int check_array(struct weir_cache *cache, struct weir_storage *const *storages, unsigned count,
		       const struct weir_array_options *options)
{
	uint64_t line_bytes = (uint64_t)1 << cache->line_log2;
	int error = check_element(options);

	if (!error && (count == 0 || count > MOST_STORAGES))
		return weir_fail(EINVAL, "array over %u storages; 1 to %d work", count, MOST_STORAGES);
	if (options->stripe_bytes < line_bytes || (options->stripe_bytes & (options->stripe_bytes - 1)))
		return weir_fail(EINVAL, "array: stripe_bytes is %llu; it must be a power of two, a line (%llu) at least",
				 (unsigned long long)options->stripe_bytes, (unsigned long long)line_bytes);
	for (unsigned i = 0; i < count && !error; i++)
		error = check_storage(cache, storages[i], storages[0]);
	return error;
}

int weir_array_open(struct weir_cache *cache, struct weir_storage *const *storages, unsigned storage_count,
		    const struct weir_array_options *given, struct weir_array *array)
{
	struct weir_array_options options;
	uint64_t capacity;
	int error = weir_options_take(&options, sizeof(options), given, "array options");

	memset(array, 0, sizeof(*array));
	if (!options.stripe_bytes)
		options.stripe_bytes = DEFAULT_STRIPE_BYTES;
	if (error || (error = check_array(cache, storages, storage_count, &options)) != 0)
		return error;
	capacity = stripe_capacity(storages, storage_count, options.stripe_bytes);
	error = count_elements(&options, capacity, &array->count);
	if (error)
		return error;
	array->extent.lines = (capacity + ((uint64_t)1 << cache->line_log2) - 1) >> cache->line_log2;
	error = take_keys(cache, array->extent.lines, &array->extent.key_base);
	if (!error)
		error = make_table(cache, storages, storage_count, &array->extent.disks);
	if (error)
		return error;
	array->extent.disk_count = storage_count;
	array->extent.unit_log2 = (uint32_t)__builtin_ctzll(options.stripe_bytes) - cache->line_log2;
	array->lines = cache->lines;
	array->fault = cache->context->fault;
	array->first_byte = options.first_byte;
	array->element_bytes = options.element_bytes;
	return 0;
}
