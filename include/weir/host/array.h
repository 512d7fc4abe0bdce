/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/array.h: arrays and writers of storages, made on the host; lanes use <weir/array.h>,
 * <weir/writer.h> and <weir/unaligned.h>.
 *
 * Owns: options, flushes of a range. Part of weir.h, whose rules hold here.
 */
#ifndef WEIR_HOST_ARRAY_H
#define WEIR_HOST_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include <weir/devices.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_storage;
struct weir_cache;
struct weir_array;
struct weir_writer;
struct weir_unaligned;

/**
 * struct weir_array_options - an array on storage
 * @size: sizeof the structure
 * @element_bytes: 1, 2, 4, 8, 16 or a multiple of 8
 * @first_byte: where element 0 lies; a multiple of min(element_bytes, 8), of 16 for 16
 * @count: elements; 0: as many as fit
 * @stripe_bytes: with several storages: bytes on one before the next one's turn, a
 *                power of two, at least a line; 0: 64 KiB
 */
struct weir_array_options {
	size_t size;
	uint32_t element_bytes;
	uint64_t first_byte;
	uint64_t count;
	uint64_t stripe_bytes;
};

/**
 * weir_array_open() - elements of one or several storages, read through a cache
 * @cache: the cache; arrays of the same storages, striped alike, share their lines in it
 * @storages: @storage_count storages; several are striped round-robin, each named once
 * @storage_count: 1 to 64
 * @options: what is in it
 * @array: struct weir_array of <weir/abi.h>, to put into kernel arguments
 *
 * Return: 0; -ERANGE if the elements do not fit the storage; -EBUSY if one of the storages
 * is written to through this cache with another layout; -EINVAL, also for a cache or a storage that is not
 * open.
 */
WEIR_API int weir_array_open(struct weir_cache *cache, struct weir_storage *const *storages,
			     unsigned storage_count, const struct weir_array_options *options,
			     struct weir_array *array);

/**
 * weir_unaligned_open() - the same of elements of any size that begin at any byte, for lanes that only read
 * @cache: the cache
 * @storages: as for weir_array_open()
 * @storage_count: 1 to 64
 * @options: what is in it; element_bytes is any but 0, first_byte any
 * @array: struct weir_unaligned of <weir/abi.h>, to put into kernel arguments
 *
 * For files as others have laid them out, read by <weir/unaligned.h>. Its lines are those of every array of
 * the same storages and stripe.
 *
 * Return: as weir_array_open().
 */
WEIR_API int weir_unaligned_open(struct weir_cache *cache, struct weir_storage *const *storages,
				 unsigned storage_count, const struct weir_array_options *options,
				 struct weir_unaligned *array);

/**
 * weir_writer_open() - the same, for lanes that write to it, too
 * @cache: the cache
 * @storages: as for weir_array_open(), none of them read-only
 * @storage_count: 1 to 64
 * @options: what is in it
 * @writer: struct weir_writer of <weir/abi.h>, to put into kernel arguments
 *
 * What lanes write (<weir/writer.h>) is seen at once through every array of the same storages and
 * stripe in this cache, and is on storage after a flush or weir_cache_destroy().
 *
 * Return: as weir_array_open(); -EROFS.
 */
WEIR_API int weir_writer_open(struct weir_cache *cache, struct weir_storage *const *storages,
			      unsigned storage_count, const struct weir_array_options *options,
			      struct weir_writer *writer);

/**
 * weir_array_flush() - write back the dirty lines of a range
 * @cache: the array's cache
 * @array: the array, or the one of a writer
 * @first: first element
 * @count: elements
 * @durable: not 0: also tell the array's storages to make it durable (NVMe Flush)
 *
 * Like weir_cache_flush(). Whole lines: what lies beside the range may be written, too.
 *
 * Return: as weir_cache_flush(); -EINVAL for an array of another cache, or of a storage that is closed;
 * -ERANGE.
 */
WEIR_API int weir_array_flush(struct weir_cache *cache, const struct weir_array *array, uint64_t first,
			      uint64_t count, int durable);

/**
 * weir_array_invalidate() - forget the lines of a range, so that they are read from storage again
 * @cache: the array's cache
 * @array: the array, or the one of a writer
 * @first: first element
 * @count: elements
 *
 * Drops what is dirty, too, unwritten, along with whatever else is in the same lines: flush
 * before if it is to stay. For storage that something else has written to.
 *
 * Return: 0; -EBUSY if a command on a line does not end; -EINVAL for an array of another cache, or of a
 * storage that is closed; -ERANGE.
 */
WEIR_API int weir_array_invalidate(struct weir_cache *cache, const struct weir_array *array, uint64_t first,
				   uint64_t count);

#ifdef __cplusplus
}
#endif
#endif
