/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unaligned.h: arrays whose elements begin at any byte of a storage, as in files that others have laid out.
 *
 * Owns: elements made of parts of aligned words, and of the words of two lines. All else is array.h's, whose
 * rules hold here: any subset of a wave's lanes may call, errors give zeros and are recorded. Aligned arrays
 * have no code for it.
 *
 * An element that lies in two lines is read from one after the other: where lanes write to the storage
 * meanwhile (by weir_writer), its two parts may be of two times. There is no writer of unaligned elements.
 */
#ifndef WEIR_UNALIGNED_H
#define WEIR_UNALIGNED_H

#include <weir/array.h>

/**
 * struct weir_unaligned_part - the words that hold the next elements
 * @word: storage byte of the first word, a multiple of 8
 * @shift: bits of it that come before the first element
 * @words: how many of one line, 1 to WEIR_RUN
 * @split: the first element ends in the line behind them, and is the only one
 * @count: elements; 0: there are none, and nothing is read
 */
struct weir_unaligned_part {
	u64 word;
	u32 shift;
	u32 words;
	u32 split;
	u32 count;
};

/* Where elements of 1 << @log2 bytes, 8 at most, from @index on lie: of @wanted as many as one look gives, or
 * one in two lines. */
WEIR_FN struct weir_unaligned_part weir_unaligned_part_of(WEIR_GLOBAL struct weir_unaligned *from, u64 index,
							  u64 wanted, u32 log2)
{
	u64 byte = from->array.first_byte + (index << log2);
	u32 in_line = (1u << weir_at(from->array.lines, struct weir_lines, 0)->line_log2) -
		      weir_array_offset(&from->array, byte);
	u32 skew = (u32)byte & 7, most = WEIR_RUN * 8 - skew;
	struct weir_unaligned_part part;

	most = (most < in_line ? most : in_line) >> log2;
	most = most < WEIR_RUN ? most : (u32)WEIR_RUN;
	part.word = byte - skew;
	part.shift = skew * 8;
	part.split = most == 0;
	part.count = part.split || wanted == 0 ? wanted != 0 : wanted < most ? (u32)wanted : most;
	part.words = part.split ? 1 : (skew + (part.count << log2) + 7) / 8;
	return part;
}

/* The 8 bytes that begin @shift bits into @low, @high following it. */
WEIR_FN u64 weir_unaligned_join(u64 low, u64 high, u32 shift)
{
	return (low >> shift) | ((high << 1) << (63 - shift));
}

/* What was read of @part, from its first element on; zeros after an error. */
WEIR_FN struct weir_words weir_unaligned_shifted(struct weir_words words, struct weir_unaligned_part part)
{
	u32 good = words.status == WEIR_OK;

	for (u32 i = 0; i < WEIR_RUN; i++) {
		u64 joined = weir_unaligned_join(words.word[i], i + 1 < WEIR_RUN ? words.word[i + 1] : 0,
						 part.shift);

		words.word[i] = good ? joined : 0;
	}
	return words;
}

/* The second line of an element, behind the last word of the first one. */
WEIR_FN struct weir_words weir_unaligned_append(struct weir_words words, struct weir_words next)
{
	words.word[1] = next.word[0];
	if (words.status == WEIR_OK)
		words.status = next.status;
	return words;
}

/*
 * The bytes of @part; of the two lines of an element one after the other, neither held for the other. A loop,
 * so that there is one miss path.
 */
WEIR_FN struct weir_words weir_unaligned_words(WEIR_GLOBAL struct weir_unaligned *from,
					       struct weir_unaligned_part part)
{
	u32 lines = part.count ? 1 + part.split : 0;
	struct weir_words words = weir_line_load(0, 0), next;

	for (u32 k = 0; k < lines; k++) {
		next = weir_array_words(&from->array, part.word + k * 8, part.words);
		words = k ? weir_unaligned_append(words, next) : next;
	}
	return weir_unaligned_shifted(words, part);
}

WEIR_FN struct weir_words weir_unaligned_try_word(WEIR_GLOBAL struct weir_unaligned *from, u64 byte,
						  u32 count)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(from->array.lines, struct weir_lines, 0);

	return weir_lines_try_read(lines, from->array.extent.key_base + (byte >> lines->line_log2),
				   weir_array_offset(&from->array, byte), count);
}

/* The same of what is in the cache. */
WEIR_FN struct weir_words weir_unaligned_try_words(WEIR_GLOBAL struct weir_unaligned *from,
						   struct weir_unaligned_part part)
{
	struct weir_words words =
		part.count ? weir_unaligned_try_word(from, part.word, part.words) : weir_line_load(0, 0);

	if (part.count && part.split)
		words = weir_unaligned_append(words, weir_unaligned_try_word(from, part.word + 8, 1));
	return weir_unaligned_shifted(words, part);
}

WEIR_FN u64 weir_unaligned_bits(WEIR_GLOBAL struct weir_unaligned *from, u64 index, u32 log2)
{
	if (!weir_array_has_of(&from->array, index, 1u << log2))
		return 0;
	return weir_unaligned_words(from, weir_unaligned_part_of(from, index, 1, log2)).word[0];
}

/**
 * weir_unaligned_get_u16() - element @index of an array of 2-byte elements
 *
 * Return: the element; 0 after an error.
 */
WEIR_FN u16 weir_unaligned_get_u16(WEIR_GLOBAL struct weir_unaligned *from, u64 index)
{
	return (u16)weir_unaligned_bits(from, index, 1);
}

/** weir_unaligned_get_u32() - element @index of an array of 4-byte elements */
WEIR_FN u32 weir_unaligned_get_u32(WEIR_GLOBAL struct weir_unaligned *from, u64 index)
{
	return (u32)weir_unaligned_bits(from, index, 2);
}

/** weir_unaligned_get_u64() - element @index of an array of 8-byte elements */
WEIR_FN u64 weir_unaligned_get_u64(WEIR_GLOBAL struct weir_unaligned *from, u64 index)
{
	return weir_unaligned_bits(from, index, 3);
}

/* Elements from @index on, below @end, of 4 or 8 bytes; none, with a fault recorded, if they are not all
 * there. */
WEIR_FN struct weir_unaligned_part weir_unaligned_part_of_run(WEIR_GLOBAL struct weir_unaligned *from,
							      u64 index, u64 end)
{
	u32 narrow = from->array.element_bytes == 4;
	u32 there = index < end && weir_array_has_of(&from->array, end - 1, narrow ? 4 : 8);

	return weir_unaligned_part_of(from, there ? index : 0, there ? end - index : 0, narrow ? 2 : 3);
}

WEIR_FN struct weir_run weir_unaligned_run_of(WEIR_GLOBAL struct weir_unaligned *from,
					      struct weir_words words, u32 count)
{
	struct weir_run run;
	u32 narrow = from->array.element_bytes == 4;

	for (u32 i = 0; i < WEIR_RUN; i++)
		run.value[i] = narrow ? (u32)(words.word[i / 2] >> (i % 2 * 32)) : words.word[i];
	run.count = words.status == WEIR_OK ? count : 0;
	return run;
}

/**
 * weir_unaligned_run() - as many elements from @index on as one look can give
 * @from: array of 4-byte or 8-byte elements
 * @index: first element
 * @end: first element not wanted
 *
 * weir_array_run_u64() of unaligned elements; those of 4 bytes come as words whose high half is 0. One look
 * gives WEIR_RUN elements of 4 bytes, one less of 8 bytes, and stops at the end of a line; an element that
 * lies in two lines comes by itself.
 */
WEIR_FN struct weir_run weir_unaligned_run(WEIR_GLOBAL struct weir_unaligned *from, u64 index, u64 end)
{
	struct weir_unaligned_part part = weir_unaligned_part_of_run(from, index, end);

	return weir_unaligned_run_of(from, weir_unaligned_words(from, part), part.count);
}

/**
 * weir_unaligned_try_run() - weir_unaligned_run() of what is in the cache; of what is not, none
 * @from: array of 4-byte or 8-byte elements
 * @index: first element
 * @end: first element not wanted
 *
 * As weir_array_try_run_u64(): any lane by itself, and nothing waits.
 */
WEIR_FN struct weir_run weir_unaligned_try_run(WEIR_GLOBAL struct weir_unaligned *from, u64 index, u64 end)
{
	struct weir_unaligned_part part = weir_unaligned_part_of_run(from, index, end);

	return weir_unaligned_run_of(from, weir_unaligned_try_words(from, part), part.count);
}

/**
 * weir_unaligned_read() - copy @count elements from @index on
 * @from: array of elements of any size
 * @index: first element
 * @count: elements; 0: this lane reads nothing, but helps
 * @to: device address of room for them, of any alignment
 *
 * As weir_array_read(); of what lanes write to the storage meanwhile, bytes of one element may be of two
 * times.
 *
 * Return: WEIR_OK, or the first error, after which the rest was not read.
 */
WEIR_FN weir_status weir_unaligned_read(WEIR_GLOBAL struct weir_unaligned *from, u64 index, u64 count,
					weir_addr to)
{
	return weir_array_read(&from->array, index, count, to);
}

#endif
