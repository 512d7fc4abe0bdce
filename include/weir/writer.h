/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writer.h: an array that lanes write to.
 *
 * Owns: elements, atomic changes of them, and spans into lines of the cache, and flushing them. What is
 * written is in the cache at once, for every lane that reads the same storage through it, and on storage when
 * its line is evicted or flushed (docs/cache.md). A struct weir_writer holds a struct weir_array; reading
 * goes by that: weir_array_get_u64(&writer->array, i).
 *
 * Every function may be called by any subset of a wave's lanes, with different arguments
 * in each. Errors are recorded in the context like those of reads. Elements are written
 * whole: who reads one meanwhile sees the old value or the new one (of 16-byte elements, of
 * each half).
 */
#ifndef WEIR_WRITER_H
#define WEIR_WRITER_H

#include <weir/array.h>
#include <weir/core/cache/flush.h>

/* @bytes bytes at storage byte @byte, which lie in one line: stored, or changed; of lanes without (@has)
 * nothing. Return: of a change, what they were. */
WEIR_FN WEIR_FORCE_INLINE u64 weir_writer_bytes(WEIR_GLOBAL struct weir_writer *writer, u64 byte, u32 has,
						u32 kind, u32 bytes, struct weir_u128 value)
{
	WEIR_GLOBAL struct weir_array *array = &writer->array;
	struct weir_access access;

	access.offset = weir_array_offset(array, byte);
	access.length = has ? bytes : 0;
	access.buffer = 0;
	access.value = value;
	return weir_array_reach(weir_active(), array, has ? byte : array->first_byte, kind, access).word[0];
}

/* Element @index: stored, or changed. Return: of a change, what it was. */
WEIR_FN WEIR_FORCE_INLINE u64 weir_writer_element(WEIR_GLOBAL struct weir_writer *writer, u64 index, u32 kind,
						  u32 bytes, struct weir_u128 value)
{
	WEIR_GLOBAL struct weir_array *array = &writer->array;

	return weir_writer_bytes(writer, array->first_byte + index * bytes,
				 weir_array_has_of(array, index, bytes), kind, bytes, value);
}

WEIR_FN WEIR_FORCE_INLINE u64 weir_writer_bits(WEIR_GLOBAL struct weir_writer *writer, u64 index, u32 kind,
					       u32 bytes, u64 value)
{
	struct weir_u128 wide;

	wide.low = value;
	wide.high = 0;
	return weir_writer_element(writer, index, kind, bytes, wide);
}

/**
 * weir_writer_put_u8() - write element @index of an array of 1-byte elements
 *
 * The line is fetched if it is not there: the rest of it must be known.
 */
WEIR_FN void weir_writer_put_u8(WEIR_GLOBAL struct weir_writer *writer, u64 index, u8 value)
{
	(void)weir_writer_bits(writer, index, WEIR_ACCESS_STORE, 1, value);
}

/** weir_writer_put_u16() - write element @index of an array of 2-byte elements */
WEIR_FN void weir_writer_put_u16(WEIR_GLOBAL struct weir_writer *writer, u64 index, u16 value)
{
	(void)weir_writer_bits(writer, index, WEIR_ACCESS_STORE, 2, value);
}

/** weir_writer_put_u32() - write element @index of an array of 4-byte elements */
WEIR_FN void weir_writer_put_u32(WEIR_GLOBAL struct weir_writer *writer, u64 index, u32 value)
{
	(void)weir_writer_bits(writer, index, WEIR_ACCESS_STORE, 4, value);
}

/** weir_writer_put_u64() - write element @index of an array of 8-byte elements */
WEIR_FN void weir_writer_put_u64(WEIR_GLOBAL struct weir_writer *writer, u64 index, u64 value)
{
	(void)weir_writer_bits(writer, index, WEIR_ACCESS_STORE, 8, value);
}

/** weir_writer_put_u128() - write element @index of an array of 16-byte elements */
WEIR_FN void weir_writer_put_u128(WEIR_GLOBAL struct weir_writer *writer, u64 index, struct weir_u128 value)
{
	(void)weir_writer_element(writer, index, WEIR_ACCESS_STORE, 16, value);
}

/**
 * weir_writer_add_u32() - add to element @index of an array of 4-byte elements
 *
 * Atomic among lanes; relaxed. Return: what it was before; 0 after an error.
 */
WEIR_FN u32 weir_writer_add_u32(WEIR_GLOBAL struct weir_writer *writer, u64 index, u32 value)
{
	return (u32)weir_writer_bits(writer, index, WEIR_ACCESS_ADD, 4, value);
}

/** weir_writer_add_u64() - the same for 8-byte elements */
WEIR_FN u64 weir_writer_add_u64(WEIR_GLOBAL struct weir_writer *writer, u64 index, u64 value)
{
	return weir_writer_bits(writer, index, WEIR_ACCESS_ADD, 8, value);
}

/**
 * weir_writer_min_u32() - the smaller of element @index and @value, unsigned
 *
 * Of an array of 4-byte elements. Atomic among lanes; relaxed. Return: what it was before; 0 after an error.
 */
WEIR_FN u32 weir_writer_min_u32(WEIR_GLOBAL struct weir_writer *writer, u64 index, u32 value)
{
	return (u32)weir_writer_bits(writer, index, WEIR_ACCESS_MIN, 4, value);
}

/** weir_writer_min_u64() - the same for 8-byte elements */
WEIR_FN u64 weir_writer_min_u64(WEIR_GLOBAL struct weir_writer *writer, u64 index, u64 value)
{
	return weir_writer_bits(writer, index, WEIR_ACCESS_MIN, 8, value);
}

/**
 * weir_writer_max_u32() - the larger of the two
 *
 * Of an array of 4-byte elements. Atomic among lanes; relaxed. Return: what it was before; 0 after an error.
 */
WEIR_FN u32 weir_writer_max_u32(WEIR_GLOBAL struct weir_writer *writer, u64 index, u32 value)
{
	return (u32)weir_writer_bits(writer, index, WEIR_ACCESS_MAX, 4, value);
}

/** weir_writer_max_u64() - the same for 8-byte elements */
WEIR_FN u64 weir_writer_max_u64(WEIR_GLOBAL struct weir_writer *writer, u64 index, u64 value)
{
	return weir_writer_bits(writer, index, WEIR_ACCESS_MAX, 8, value);
}

/**
 * weir_writer_exchange_u32() - @value in place of element @index
 *
 * Of an array of 4-byte elements. Atomic among lanes; relaxed. Return: what it was before; 0 after an error.
 */
WEIR_FN u32 weir_writer_exchange_u32(WEIR_GLOBAL struct weir_writer *writer, u64 index, u32 value)
{
	return (u32)weir_writer_bits(writer, index, WEIR_ACCESS_EXCHANGE, 4, value);
}

/** weir_writer_exchange_u64() - the same for 8-byte elements */
WEIR_FN u64 weir_writer_exchange_u64(WEIR_GLOBAL struct weir_writer *writer, u64 index, u64 value)
{
	return weir_writer_bits(writer, index, WEIR_ACCESS_EXCHANGE, 8, value);
}

/* Compare-and-swap of an element of @bytes bytes. */
WEIR_FN u64 weir_writer_cas(WEIR_GLOBAL struct weir_writer *writer, u64 index, u32 bytes, u64 expected,
			    u64 value)
{
	struct weir_u128 both;

	both.low = value;
	both.high = expected;
	return weir_writer_element(writer, index, WEIR_ACCESS_CAS, bytes, both);
}

/**
 * weir_writer_cas_u32() - @value in place of element @index, if that is @expected
 *
 * Of an array of 4-byte elements. Atomic among lanes; relaxed: lanes that hand each other data by it need a
 * word of their own in device memory (<weir/port.h>) for that. Where the element is another one it stays as
 * it is, and yet its line counts as written.
 *
 * Return: what it was before, which is @expected if it was replaced; 0 after an error.
 */
WEIR_FN u32 weir_writer_cas_u32(WEIR_GLOBAL struct weir_writer *writer, u64 index, u32 expected, u32 value)
{
	return (u32)weir_writer_cas(writer, index, 4, expected, value);
}

/** weir_writer_cas_u64() - the same for 8-byte elements */
WEIR_FN u64 weir_writer_cas_u64(WEIR_GLOBAL struct weir_writer *writer, u64 index, u64 expected, u64 value)
{
	return weir_writer_cas(writer, index, 8, expected, value);
}

/**
 * WEIR_WRITER_STRUCT() - define weir_writer_put_NAME() for arrays of a structure
 * @name: suffix of the function
 * @type: the structure; its size and alignment must be multiples of 8, its size the array's element_bytes
 *
 * weir_writer_put_NAME(writer, index, value). As of WEIR_ARRAY_STRUCT(), each word of 8 bytes is written as a
 * whole, but a lane that reads the element meanwhile may see some words of the old one and some of the new.
 */
#define WEIR_WRITER_STRUCT(name, type)                                                                       \
	WEIR_FN void weir_writer_put_##name(WEIR_GLOBAL struct weir_writer *writer, u64 index, type value)   \
	{                                                                                                    \
		typedef char weir_whole_words[sizeof(type) % 8 == 0 ? 1 : -1] WEIR_UNUSED;                   \
		union {                                                                                      \
			u64 words[sizeof(type) / 8];                                                         \
			type value;                                                                          \
		} element;                                                                                   \
		u64 byte = writer->array.first_byte + index * sizeof(type);                                  \
		u32 has = weir_array_has_of(&writer->array, index, sizeof(type));                            \
		struct weir_u128 word;                                                                       \
                                                                                                             \
		element.value = value;                                                                       \
		word.high = 0;                                                                               \
		for (u32 i = 0; i < sizeof(type) / 8; i++) {                                                 \
			word.low = element.words[i];                                                         \
			(void)weir_writer_bytes(writer, byte + i * 8, has, WEIR_ACCESS_STORE, 8, word);      \
		}                                                                                            \
	}

/**
 * weir_writer_write() - write @count elements from @index on
 * @writer: the array
 * @index: first element
 * @count: elements; 0: this lane writes nothing, but helps
 * @from: device address of as many elements, of any alignment
 *
 * The lanes of a wave that call together move all their spans together. A line that is
 * overwritten as a whole is not read from storage first.
 *
 * Return: WEIR_OK, or the first error, after which the rest was not written.
 */
WEIR_FN weir_status weir_writer_write(WEIR_GLOBAL struct weir_writer *writer, u64 index, u64 count,
				      weir_addr from)
{
	return weir_array_span(&writer->array, index, count, from, WEIR_ACCESS_WRITE);
}

/**
 * weir_writer_flush() - write back what was written to a range
 * @writer: the array
 * @index: first element
 * @count: elements
 * @durable: address of a struct weir_event of this lane, or 0. If given, storages are told to make
 *           it durable (NVMe Flush), by way of that event, which stays theirs if they do not answer in time
 *
 * Each lane sweeps its own range; to share a large one, give each lane a part.
 *
 * Return: WEIR_OK: all that this lane wrote to the range before, and all that it knows others
 * wrote, is on storage. Else the first error, which is recorded in the context, too; the
 * line stays dirty, and the next flush tries again.
 */
WEIR_FN weir_status weir_writer_flush(WEIR_GLOBAL struct weir_writer *writer, u64 index, u64 count,
				      weir_addr durable)
{
	WEIR_GLOBAL struct weir_array *array = &writer->array;
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 wave = weir_active(), begin = array->first_byte + index * array->element_bytes;
	u32 some = count && weir_array_has_all(array, index, count);
	u32 unserved = WEIR_ONLY_SERVICE && some &&
		       !(weir_at(array->extent.disks, struct weir_disk, 0)->flags & WEIR_DISK_SERVICE);
	struct weir_swept swept;
	struct weir_sweep sweep;

	sweep.first_key = array->extent.key_base + (some ? begin >> lines->line_log2 : 0);
	sweep.end_key = some && !unserved
				? array->extent.key_base + 1 +
					  ((begin + count * array->element_bytes - 1) >> lines->line_log2)
				: sweep.first_key;
	sweep.first = 0;
	sweep.stride = 1;
	sweep.kind = WEIR_SWEEP_FLUSH;
	sweep.flags = 0;
	sweep.note = 0;
	swept = weir_lines_sweep(wave, lines, sweep);
	if (unserved) { /* a write-back would end by nobody's hand */
		swept.status = WEIR_E_SERVICE;
		swept.key = sweep.first_key;
	}
	if (swept.status != WEIR_OK)
		weir_line_blame(lines, swept.key, swept.status);
	if (count && !some)
		swept.status = WEIR_E_INDEX;
	if (!durable || swept.status != WEIR_OK)
		return swept.status;
	for (u32 i = 0; i < array->extent.disk_count && swept.status == WEIR_OK; i++)
		swept.status = weir_flush(weir_at(array->extent.disks, struct weir_disk, i),
					  weir_at(durable, struct weir_event, 0), 0);
	if (swept.status != WEIR_OK)
		weir_line_blame(lines, sweep.first_key, swept.status);
	return swept.status;
}

#endif
