/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays and writers, the host's side: what fits, and which keys it has. */
#include <errno.h>
#include <string.h>

#include "cache.h"
#include "../backend/error.h"

enum {
	MOST_STORAGES = 64,
	DEFAULT_STRIPE_BYTES = 64 << 10,
};

/* What lanes do with an array. */
enum array_use { USE_READ, USE_WRITTEN, USE_UNALIGNED };

static int check_element(const struct weir_array_options *options, enum array_use use)
{
	uint32_t bytes = options->element_bytes;
	uint32_t alignment = bytes == 16 ? 16 : bytes < 8 ? bytes : 8;

	if (use == USE_UNALIGNED)
		return bytes ? 0 : weir_fail(EINVAL, "unaligned array: element_bytes is 0; give their size");
	if (bytes != 1 && bytes != 2 && bytes != 4 && (bytes == 0 || bytes % 8))
		return weir_fail(EINVAL, "array: element_bytes is %u; it must be 1, 2, 4 or a multiple of 8",
				 bytes);
	if (options->first_byte % alignment)
		return weir_fail(EINVAL,
				 "%s: first_byte %llu is not a multiple of %u, which its elements need; %s",
				 use == USE_WRITTEN ? "writer" : "array",
				 (unsigned long long)options->first_byte, alignment,
				 use == USE_WRITTEN ? "lanes write aligned elements only"
						    : "weir_unaligned_open() reads unaligned ones");
	return 0;
}

static int check_storage(const struct weir_cache *cache, const struct weir_storage *storage,
			 const struct weir_storage *first)
{
	uint64_t line_bytes = (uint64_t)1 << cache->line_log2;

	if (storage->context != cache->context)
		return weir_fail(EINVAL, "array: storage \"%s\" belongs to another context than the cache",
				 storage->uri);
	if (storage->disk.block_log2 > cache->line_log2)
		return weir_fail(
			EINVAL,
			"array: storage \"%s\" has blocks of %u bytes, more than the cache's lines of %llu",
			storage->uri, 1u << storage->disk.block_log2, (unsigned long long)line_bytes);
	if ((uint64_t)storage->disk.max_blocks << storage->disk.block_log2 < line_bytes)
		return weir_fail(
			EINVAL,
			"array: storage \"%s\" moves at most %u bytes at once, less than a line of %llu",
			storage->uri, storage->disk.max_blocks << storage->disk.block_log2,
			(unsigned long long)line_bytes);
	if (storage->disk.block_log2 != first->disk.block_log2)
		return weir_fail(
			EINVAL,
			"array: storages \"%s\" and \"%s\" have different block sizes and cannot be striped",
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
		return weir_storage_bytes(storages[0]);
	for (unsigned i = 0; i < count; i++) {
		uint64_t rows = weir_storage_bytes(storages[i]) / unit_bytes;
		uint64_t missing = rows * count + i;

		units = missing < units ? missing : units;
	}
	return units * unit_bytes;
}

/* How many elements there are, or a sentence if they do not fit. */
static int count_elements(const struct weir_array_options *options, uint64_t capacity, uint64_t *count)
{
	uint64_t room = options->first_byte > capacity
				? 0
				: (capacity - options->first_byte) / options->element_bytes;

	if (options->count > room || options->first_byte > capacity)
		return weir_fail(
			ERANGE,
			"array: %llu elements of %u bytes from byte %llu on do not fit %llu bytes of storage",
			(unsigned long long)options->count, options->element_bytes,
			(unsigned long long)options->first_byte, (unsigned long long)capacity);
	*count = options->count ? options->count : room;
	return 0;
}

/* A stripe that has a storage twice would keep two of its units in the same blocks. */
static int check_distinct(struct weir_storage *const *storages, unsigned last)
{
	for (unsigned i = 0; i < last; i++)
		if (storages[i] == storages[last])
			return weir_fail(EINVAL,
					 "array: storage \"%s\" is number %u and number %u of one stripe, "
					 "which would put different "
					 "elements into the same blocks; name each storage once",
					 storages[i]->uri, i, last);
	return 0;
}

static int check_array(struct weir_cache *cache, struct weir_storage *const *storages, unsigned count,
		       const struct weir_array_options *options, enum array_use use)
{
	uint64_t line_bytes = (uint64_t)1 << cache->line_log2;
	int error = check_element(options, use);

	if (!error && (count == 0 || count > MOST_STORAGES))
		return weir_fail(EINVAL, "array over %u storages; 1 to %d work", count, MOST_STORAGES);
	if (options->stripe_bytes < line_bytes || (options->stripe_bytes & (options->stripe_bytes - 1)))
		return weir_fail(
			EINVAL,
			"array: stripe_bytes is %llu; it must be a power of two, a line (%llu) at least",
			(unsigned long long)options->stripe_bytes, (unsigned long long)line_bytes);
	for (unsigned i = 0; i < count && !error; i++) {
		error = check_storage(cache, storages[i], storages[0]);
		error = error ? error : check_distinct(storages, i);
	}
	return error;
}

/* The handles, and the caller's structure, which comes out zeroed; it has @bytes. */
static int check_handles(const struct weir_cache *cache, struct weir_storage *const *storages, unsigned count,
			 void *out, size_t bytes, const char *call)
{
	int error = weir_given(out, call, "the array");

	if (!error)
		memset(out, 0, bytes);
	if (!error)
		error = weir_handle_check(cache, WEIR_HANDLE_CACHE, call);
	if (!error && count)
		error = weir_given(storages, call, "storages");
	for (unsigned i = 0; i < count && i < MOST_STORAGES && !error; i++)
		error = weir_handle_check(storages[i], WEIR_HANDLE_STORAGE, call);
	return error;
}

static int open_array(struct weir_cache *cache, struct weir_storage *const *storages, unsigned count,
		      const struct weir_array_options *given, enum array_use use, struct weir_array *array)
{
	struct weir_array_options options;
	struct weir_layout_request request = { .storages = storages,
					       .count = count,
					       .written = use == USE_WRITTEN };
	struct weir_cache_disks *disks;
	uint64_t capacity;
	int error = weir_options_take(&options, sizeof(options), given, "array options");

	if (!options.stripe_bytes)
		options.stripe_bytes = DEFAULT_STRIPE_BYTES;
	if (error || (error = check_array(cache, storages, count, &options, use)) != 0)
		return error;
	capacity = stripe_capacity(storages, count, options.stripe_bytes);
	if (!capacity && count > 1)
		return weir_fail(
			ERANGE,
			"array: storage \"%s\" has %llu bytes, less than the stripe_bytes of %llu; make "
			"these smaller",
			storages[0]->uri, (unsigned long long)weir_storage_bytes(storages[0]),
			(unsigned long long)options.stripe_bytes);
	error = count_elements(&options, capacity, &array->count);
	if (error)
		return error;
	request.lines = (capacity + ((uint64_t)1 << cache->line_log2) - 1) >> cache->line_log2;
	request.unit_log2 = (uint32_t)__builtin_ctzll(options.stripe_bytes) - cache->line_log2;
	error = weir_cache_layout(cache, &request, &disks);
	if (error)
		return error;
	array->extent = disks->extent;
	array->lines = cache->lines;
	array->fault = cache->context->fault;
	array->first_byte = options.first_byte;
	array->element_bytes = options.element_bytes;
	return 0;
}

int weir_array_open(struct weir_cache *cache, struct weir_storage *const *storages, unsigned storage_count,
		    const struct weir_array_options *options, struct weir_array *array)
{
	int error = check_handles(cache, storages, storage_count, array, sizeof(*array), "weir_array_open");

	return error ? error : open_array(cache, storages, storage_count, options, USE_READ, array);
}

int weir_unaligned_open(struct weir_cache *cache, struct weir_storage *const *storages,
			unsigned storage_count, const struct weir_array_options *options,
			struct weir_unaligned *array)
{
	int error =
		check_handles(cache, storages, storage_count, array, sizeof(*array), "weir_unaligned_open");

	return error ? error
		     : open_array(cache, storages, storage_count, options, USE_UNALIGNED, &array->array);
}

int weir_writer_open(struct weir_cache *cache, struct weir_storage *const *storages, unsigned storage_count,
		     const struct weir_array_options *options, struct weir_writer *writer)
{
	int error =
		check_handles(cache, storages, storage_count, writer, sizeof(*writer), "weir_writer_open");

	for (unsigned i = 0; i < storage_count && i < MOST_STORAGES && !error; i++)
		if (storages[i]->disk.flags & WEIR_DISK_READ_ONLY)
			return weir_fail(EROFS,
					 "writer: storage \"%s\" is read-only; open it for writing, or read "
					 "it by weir_array_open()",
					 storages[i]->uri);
	return error ? error
		     : open_array(cache, storages, storage_count, options, USE_WRITTEN, &writer->array);
}
