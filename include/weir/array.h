/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * array.h: a dataset of any size as an array that lanes read by index.
 *
 * Owns: indices to bytes of a storage, and errors to the context's fault record.
 * The model is BaM's storage-backed array (ASPLOS'23, section 3.5), the cache
 * underneath is core/cache/line.h, and core/cache/access.h for what is not in it. Indices and byte
 * offsets are 64-bit throughout.
 *
 * Every getter may be called by any subset of a wave's lanes. Its width must be the array's
 * element_bytes; an index past the end and another width are refused, here as in writer.h and gather.h. One
 * that fails returns zeros and records the first fault of the context, which weir_sync() turns into a
 * sentence; weir_array_failed() asks on the device.
 */
#ifndef WEIR_ARRAY_H
#define WEIR_ARRAY_H

#include <weir/core/share/access.h>

/** weir_array_failed() - true once any lane of the context has met an error */
WEIR_FN u32 weir_array_failed(WEIR_GLOBAL struct weir_array *array)
{
	/* relaxed: advice to stop early */
	return weir_load_u32_relaxed_dev(&weir_at(array->fault, struct weir_fault, 0)->claimed) != 0;
}

WEIR_FN u32 weir_array_offset(WEIR_GLOBAL struct weir_array *array, u64 byte)
{
	return (u32)(byte & (((u64)1 << weir_at(array->lines, struct weir_lines, 0)->line_log2) - 1));
}

/* Tell the context of an error with the line at storage byte @byte. */
WEIR_FN void weir_array_fault(WEIR_GLOBAL struct weir_array *array, u64 byte, weir_status status)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 line = byte >> lines->line_log2;
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(&array->extent, line);

	weir_fault_report(array->fault, status, disk->id, WEIR_FAULT_LBA,
			  weir_extent_lba(lines, &array->extent, line), disk->blocks);
}

/* Does the array's extent have no line for storage byte @byte? */
WEIR_FN u32 weir_array_outside(WEIR_GLOBAL struct weir_array *array, u64 byte)
{
	return byte >> weir_at(array->lines, struct weir_lines, 0)->line_log2 >= array->extent.lines;
}

/*
 * weir_lines_reach() of a line that the array has. Whatever made up the number of another one, a damaged
 * structure say, it is not touched: it is another storage's.
 */
WEIR_FN WEIR_FORCE_INLINE struct weir_words weir_array_reach(u64 wave, WEIR_GLOBAL struct weir_array *array,
							     u64 byte, u32 kind, struct weir_access access)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 line = byte >> lines->line_log2;
	struct weir_words words;

	if (weir_array_outside(array, byte)) {
		access.length = 0; /* it only helps the others */
		line = 0;
	}
	words = weir_lines_reach(wave, lines, &array->extent, line, kind, access);
	if (weir_array_outside(array, byte)) /* once more: no register is kept for it */
		words.status = WEIR_E_RANGE;
	if (words.status != WEIR_OK) {
		weir_status status = words.status;

		weir_array_fault(array, byte, status);
		words = weir_line_load(0, 0); /* whatever was loaded before a line went */
		words.status = status;
	}
	return words;
}

/* The words at storage byte @byte of a line that is not there; of lanes with @count 0 none, they only help.
 */
WEIR_FN struct weir_words weir_array_fetch(u64 wave, WEIR_GLOBAL struct weir_array *array, u64 byte,
					   u32 count)
{
	struct weir_access access;

	access.offset = weir_array_offset(array, byte);
	access.length = count;
	access.buffer = 0;
	access.value.low = 0;
	access.value.high = 0;
	return weir_array_reach(wave, array, byte, WEIR_ACCESS_LOAD, access);
}

/*
 * The words at storage byte @byte, which must all lie in one line. A miss works its
 * numbers out again, so that a hit keeps no register for it. Lanes that come together
 * leave together, and those that hit help those that miss: else they run ahead, and soon each
 * lane of the wave submits and waits by itself.
 */
WEIR_FN struct weir_words weir_array_words(WEIR_GLOBAL struct weir_array *array, u64 byte, u32 count)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 wave = weir_active();
	struct weir_words words = weir_lines_try_read(lines,
						      array->extent.key_base + (byte >> lines->line_log2),
						      weir_array_offset(array, byte), count),
			  fetched;
	u32 there = words.status == WEIR_OK;

	if (weir_ballot(wave, !there) == 0)
		return words;
	fetched = weir_array_fetch(wave, weir_at(weir_opaque(WEIR_ADDR(array)), struct weir_array, 0),
				   weir_opaque(byte), there ? 0 : count);
	return there ? words : fetched;
}

/* Tell the context why there is no element @index of @bytes bytes. Rare, so that loops of loads keep no code
 * for it. */
WEIR_COLD void weir_array_refuse(WEIR_GLOBAL struct weir_array *array, u64 index, u32 bytes)
{
	u32 width = bytes != array->element_bytes;

	weir_fault_report(array->fault, width ? (u32)WEIR_E_WIDTH : (u32)WEIR_E_INDEX, 0,
			  width ? (u32)WEIR_FAULT_WIDTH : (u32)WEIR_FAULT_INDEX, width ? bytes : index,
			  width ? array->element_bytes : array->count);
}

/*
 * Is there an element @index, and have elements @bytes bytes? If not, a fault is recorded. An accessor of
 * another width would end in lines of another storage, index or no index.
 */
WEIR_FN u32 weir_array_has_of(WEIR_GLOBAL struct weir_array *array, u64 index, u32 bytes)
{
	if (index < array->count && bytes == array->element_bytes)
		return 1;
	weir_array_refuse(array, index, bytes);
	return 0;
}

/* The same of an access that is as wide as the array's elements, whatever they are. */
WEIR_FN u32 weir_array_has(WEIR_GLOBAL struct weir_array *array, u64 index)
{
	return weir_array_has_of(array, index, array->element_bytes);
}

/* The same for @count elements from @index on, 1 at least. */
WEIR_FN u32 weir_array_has_all(WEIR_GLOBAL struct weir_array *array, u64 index, u64 count)
{
	u64 last = index + count - 1;

	return weir_array_has(array, last < index ? ~(u64)0 : last);
}

/* Element @index of at most 8 bytes, in the low bits. */
WEIR_FN u64 weir_array_get_bits(WEIR_GLOBAL struct weir_array *array, u64 index, u32 element_bytes)
{
	u64 byte = array->first_byte + index * element_bytes;

	if (!weir_array_has_of(array, index, element_bytes))
		return 0;
	return weir_array_words(array, byte & ~(u64)7, 1).word[0] >> ((byte & 7) * 8);
}

/**
 * weir_array_get_u8() - element @index of an array of 1-byte elements
 *
 * Return: the element; 0 after an error (see the top of this file), such as an array of elements of another
 * size.
 */
WEIR_FN u8 weir_array_get_u8(WEIR_GLOBAL struct weir_array *array, u64 index)
{
	return (u8)weir_array_get_bits(array, index, 1);
}

/** weir_array_get_u16() - element @index of an array of 2-byte elements */
WEIR_FN u16 weir_array_get_u16(WEIR_GLOBAL struct weir_array *array, u64 index)
{
	return (u16)weir_array_get_bits(array, index, 2);
}

/** weir_array_get_u32() - element @index of an array of 4-byte elements */
WEIR_FN u32 weir_array_get_u32(WEIR_GLOBAL struct weir_array *array, u64 index)
{
	return (u32)weir_array_get_bits(array, index, 4);
}

/** weir_array_get_u64() - element @index of an array of 8-byte elements */
WEIR_FN u64 weir_array_get_u64(WEIR_GLOBAL struct weir_array *array, u64 index)
{
	return weir_array_get_bits(array, index, 8);
}

/* Selects, so that the elements stay in registers. */
WEIR_FN u64 weir_four_pick(struct weir_four four, u32 which)
{
	u64 low = which == 0 ? four.value[0] : four.value[1],
	    high = which == 2 ? four.value[2] : four.value[3];

	return which < 2 ? low : high;
}

WEIR_FN struct weir_four weir_four_put(struct weir_four four, u32 which, u64 value)
{
	for (u32 k = 0; k < 4; k++)
		four.value[k] = k == which ? value : four.value[k];
	return four;
}

/**
 * weir_array_get_four_u64() - four 8-byte elements, wherever they are
 * @array: array of 8-byte elements
 * @index: theirs
 *
 * All four looks are on their way at once, where four calls of weir_array_get_u64()
 * wait for one after the other.
 *
 * Return: the elements; 0 for those that met an error.
 */
WEIR_FN struct weir_four weir_array_get_four_u64(WEIR_GLOBAL struct weir_array *array, struct weir_four index)
{
	/* without elements of 8 bytes: byte 0, which 8-byte accesses may go to */
	u64 count = array->element_bytes == 8 ? array->count : 0, first = count ? array->first_byte : 0;
	struct weir_hits hits;
	struct weir_four byte;

	for (u32 k = 0; k < 4; k++)
		byte.value[k] = first + (index.value[k] < count ? index.value[k] : 0) * 8;
	hits = weir_lines_try_four(weir_at(array->lines, struct weir_lines, 0), array->extent.key_base, byte);
	for (u32 k = 0; k < 4; k++)
		hits.missing |= (u32)(index.value[k] >= count) << k;
	for (; hits.missing; hits.missing &= hits.missing - 1) {
		u32 which = weir_lowest_bit(hits.missing);
		u64 at = weir_four_pick(index, which);

		hits.four = weir_four_put(hits.four, which, weir_array_get_bits(array, weir_opaque(at), 8));
	}
	return hits.four;
}

/** weir_array_get_u128() - element @index of an array of 16-byte elements */
WEIR_FN struct weir_u128 weir_array_get_u128(WEIR_GLOBAL struct weir_array *array, u64 index)
{
	struct weir_u128 element;
	struct weir_words words;

	element.low = element.high = 0;
	if (!weir_array_has_of(array, index, 16))
		return element;
	words = weir_array_words(array, array->first_byte + index * 16, 2);
	element.low = words.word[0];
	element.high = words.word[1];
	return element;
}

/**
 * WEIR_ARRAY_STRUCT() - define weir_array_get_NAME() for arrays of a structure
 * @name: suffix of the getter
 * @type: the structure; its size and alignment must be multiples of 8, its size the array's element_bytes
 *
 * The words of one element are each good, but an element that spans two lines may
 * be read across a concurrent write.
 */
#define WEIR_ARRAY_STRUCT(name, type)                                                                        \
	WEIR_FN type weir_array_get_##name(WEIR_GLOBAL struct weir_array *array, u64 index)                  \
	{                                                                                                    \
		typedef char weir_whole_words[sizeof(type) % 8 == 0 ? 1 : -1] WEIR_UNUSED;                   \
		union {                                                                                      \
			u64 words[sizeof(type) / 8];                                                         \
			type value;                                                                          \
		} element;                                                                                   \
		u64 byte = array->first_byte + index * sizeof(type);                                         \
		u32 there = weir_array_has_of(array, index, sizeof(type));                                   \
                                                                                                             \
		for (u32 i = 0; i < sizeof(type) / 8; i++)                                                   \
			element.words[i] = there ? weir_array_words(array, byte + i * 8, 1).word[0] : 0;     \
		return element.value;                                                                        \
	}

/**
 * struct weir_run - consecutive 8-byte elements
 * @value: the elements; from @count on anything
 * @count: how many of them are good, 0 after an error
 */
struct weir_run {
	u64 value[WEIR_RUN];
	u32 count;
};

/* How many 8-byte elements from @index on one look can give, of those below @end; 0, with a fault recorded,
 * if they are not all there. */
WEIR_FN u32 weir_array_run_length(WEIR_GLOBAL struct weir_array *array, u64 index, u64 end)
{
	u64 line_bytes = (u64)1 << weir_at(array->lines, struct weir_lines, 0)->line_log2;
	u64 in_line = (line_bytes - ((array->first_byte + index * 8) & (line_bytes - 1))) / 8;
	u64 wanted = end - index;

	if (index >= end || !weir_array_has_of(array, end - 1, 8))
		return 0;
	if (wanted > in_line)
		wanted = in_line;
	return wanted < WEIR_RUN ? (u32)wanted : (u32)WEIR_RUN;
}

WEIR_FN struct weir_run weir_run_of(struct weir_words words, u32 count)
{
	struct weir_run run;

	for (u32 i = 0; i < WEIR_RUN; i++)
		run.value[i] = words.word[i];
	run.count = words.status == WEIR_OK ? count : 0;
	return run;
}

/**
 * weir_array_run_u64() - as many 8-byte elements from @index on as one look can give
 * @array: array of 8-byte elements
 * @index: first element
 * @end: first element not wanted
 *
 * One probe for up to WEIR_RUN elements; stops at the end of a line. The values
 * may be acted on at once: the line was there as long as they were loaded. Where lanes write to
 * it meanwhile, each value is good, but they need not be of one time.
 */
WEIR_FN struct weir_run weir_array_run_u64(WEIR_GLOBAL struct weir_array *array, u64 index, u64 end)
{
	u32 count = weir_array_run_length(array, index, end);

	return weir_run_of(count ? weir_array_words(array, array->first_byte + index * 8, count)
				 : weir_line_load(0, 0),
			   count);
}

/**
 * weir_array_try_run_u64() - weir_array_run_u64() of what is in the cache; of what is not, none
 * @array: array of 8-byte elements
 * @index: first element
 * @end: first element not wanted
 *
 * Any lane by itself, and nothing waits. It holds no code for misses: a loop over what is there, followed by
 * another one that asks weir_array_run_u64() for the rest, has the registers that a miss takes for itself
 * (docs/guide/runs.md).
 */
WEIR_FN struct weir_run weir_array_try_run_u64(WEIR_GLOBAL struct weir_array *array, u64 index, u64 end)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 byte = array->first_byte + index * 8;
	u32 count = weir_array_run_length(array, index, end);

	return weir_run_of(count ? weir_lines_try_read(lines,
						       array->extent.key_base + (byte >> lines->line_log2),
						       weir_array_offset(array, byte), count)
				 : weir_line_load(0, 0),
			   count);
}

/*
 * @count elements from @index on, to or from @buffer. Lanes that call together go from line to line
 * together, so that all of them move each one's bytes.
 */
WEIR_FN WEIR_FORCE_INLINE weir_status weir_array_span(WEIR_GLOBAL struct weir_array *array, u64 index,
						      u64 count, weir_addr buffer, u32 kind)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 wave = weir_active(), byte = array->first_byte + index * array->element_bytes;
	u64 left = count * array->element_bytes;
	weir_status status = WEIR_OK;
	struct weir_words words;

	if (count && !weir_array_has_all(array, index, count)) {
		status = WEIR_E_INDEX;
		left = 0;
	}
	while (weir_ballot(wave, left != 0)) {
		u64 at = left ? byte : 0; /* who only helps: a byte that all storages have */
		u32 room = (u32)(((u64)1 << lines->line_log2) - weir_array_offset(array, at));
		struct weir_access access;

		weir_reconverge();
		access.offset = weir_array_offset(array, at);
		access.length = left < room ? (u32)left : room;
		access.buffer = buffer;
		access.value.low = 0;
		access.value.high = 0;
		words = weir_array_reach(wave, array, at, kind, access);
		status = words.status == WEIR_OK ? status : words.status;
		left = words.status == WEIR_OK ? left - access.length : 0;
		byte += access.length;
		buffer += access.length;
	}
	return status;
}

/**
 * weir_array_read() - copy @count elements from @index on
 * @array: the array, of elements of any size
 * @index: first element
 * @count: elements; 0: this lane reads nothing, but helps
 * @to: device address of room for them, of any alignment
 *
 * The lanes of a wave that call together move all their spans together. Each line's part
 * is copied while the line is there; of what lanes write to it meanwhile, each element comes
 * as a whole.
 *
 * Return: WEIR_OK, or the first error, after which the rest was not read.
 */
WEIR_FN weir_status weir_array_read(WEIR_GLOBAL struct weir_array *array, u64 index, u64 count, weir_addr to)
{
	return weir_array_span(array, index, count, to, WEIR_ACCESS_READ);
}

/**
 * struct weir_view - a look at the resident line around an element
 * @data: device address of the first element of the view
 * @first: its index
 * @count: elements in the view; 0 if the line did not stay long enough to look at
 * @set: address of the line's set
 * @found: the word seen and its way
 * @array: address of its struct weir_array
 * @element_bytes: of its elements
 */
struct weir_view {
	weir_addr data;
	u64 first;
	u64 count;
	weir_addr set;
	struct weir_found found;
	weir_addr array;
	u32 element_bytes;
};

/**
 * struct weir_view_u64 - a view of 8-byte elements that all lanes of a wave load through
 * @own: this lane's
 */
struct weir_view_u64 {
	struct weir_view own;
};

/* A view that starts at element @index, which is there if @has. */
WEIR_FN struct weir_view weir_view_open(u64 wave, WEIR_GLOBAL struct weir_array *array, u64 index, u32 has)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u32 there;
	u64 byte = array->first_byte + (has ? index : 0) * array->element_bytes;
	u64 key = array->extent.key_base + (byte >> lines->line_log2);
	u64 position = weir_lines_index(lines, key);
	u32 offset = weir_array_offset(array, byte);
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, position);
	struct weir_view view;

	view.first = index;
	view.count = 0;
	view.data = 0;
	view.set = WEIR_ADDR(set);
	view.array = WEIR_ADDR(array);
	view.element_bytes = array->element_bytes;
	view.found = weir_set_find(set, key);
	there = !has || weir_line_readable(view.found.word);
	if (weir_ballot(wave, !there)) { /* as in weir_array_words() */
		(void)weir_array_fetch(wave, weir_at(weir_opaque(WEIR_ADDR(array)), struct weir_array, 0),
				       weir_opaque(byte & ~(u64)7), there ? 0 : 1);
		view.found = there ? view.found : weir_set_find(set, key);
	}
	weir_wave_sync(wave); /* what a lane's look guards (line.L1) is all lanes' to load */
	if (!has || !weir_line_readable(view.found.word))
		return view;
	weir_policy_hit(set, view.found.way, view.found.word);
	view.data = weir_line_data(lines, position, view.found.way) + offset;
	view.count = (((u64)1 << lines->line_log2) - offset) / array->element_bytes;
	if (view.count > array->count - index)
		view.count = array->count - index;
	return view;
}

/**
 * weir_array_view() - open a view that starts at element @index
 *
 * One probe here, one weir_view_valid() after the loads: for streaming. The view
 * does not keep the line: what was loaded through it counts only if
 * weir_view_valid() says so afterwards. When a view stays empty or keeps turning
 * invalid (a cache smaller than what runs at once), read by weir_array_get_* or
 * weir_array_run_u64, which always get there.
 */
WEIR_FN struct weir_view weir_array_view(WEIR_GLOBAL struct weir_array *array, u64 index)
{
	return weir_view_open(weir_active(), array, index, weir_array_has(array, index));
}

/* May elements of @bytes bytes be loaded through @view? If not, a fault is recorded, and nothing is loaded.
 */
WEIR_FN u32 weir_view_has_of(struct weir_view view, u32 bytes)
{
	if (view.element_bytes == bytes)
		return 1;
	weir_array_refuse(weir_at(view.array, struct weir_array, 0), 0, bytes);
	return 0;
}

/** weir_view_u64() - 8-byte element @i of the view; good only if the view is valid afterwards */
WEIR_FN u64 weir_view_u64(struct weir_view view, u64 i)
{
	if (!weir_view_has_of(view, 8))
		return 0;
	return weir_data_load_u64(view.data + i * 8);
}

/** weir_view_u32() - 4-byte element @i of the view; good only if the view is valid afterwards */
WEIR_FN u32 weir_view_u32(struct weir_view view, u64 i)
{
	if (!weir_view_has_of(view, 4))
		return 0;
	return weir_data_load_u32(view.data + i * 4);
}

/**
 * weir_view_u128() - 16-byte element @i of the view; good only if the view is valid afterwards
 *
 * One wide access where the device has it: what a wave streams whole lines with.
 */
WEIR_FN struct weir_u128 weir_view_u128(struct weir_view view, u64 i)
{
	struct weir_u128 none;

	none.low = none.high = 0;
	if (!weir_view_has_of(view, 16))
		return none;
	return weir_data_load_u128(view.data + i * 16);
}

/**
 * weir_view_valid_by() - weir_view_valid() without a fence
 * @view: the view
 * @seen: a value made of everything loaded through it, such as a sum
 */
WEIR_FN u32 weir_view_valid_by(struct weir_view view, u64 seen)
{
	WEIR_GLOBAL struct weir_set *set = weir_at(view.set, struct weir_set, 0);

	/* line.L2, as in weir_line_unchanged_by() */
	return view.count != 0 &&
	       weir_line_same(weir_load_u64_relaxed_dev(&set->word[weir_depend(view.found.way, seen)]),
			      view.found.word);
}

/**
 * weir_array_view_by() - weir_array_view() by lanes that load through each other's views afterwards
 * @wave: the lanes, all of which call
 * @array: the array, of 8-byte elements
 * @index: first element of this lane's
 *
 * Of an array of other elements the view is empty, and a fault is recorded.
 */
WEIR_FN struct weir_view_u64 weir_array_view_by(u64 wave, WEIR_GLOBAL struct weir_array *array, u64 index)
{
	struct weir_view_u64 view;

	view.own = weir_view_open(wave, array, index, weir_array_has_of(array, index, 8));
	return view;
}

/**
 * weir_view_u64_of() - 8-byte element @i of the view that another lane has open
 * @wave: lanes calling together
 * @view: this lane's own
 * @lane: whose, one of @wave and the same in all lanes; its view must have more than @i elements
 * @i: which, of each lane another one
 *
 * For rows scattered over an array: each lane opens a view at one of them by weir_array_view_by(), and then
 * the wave loads row after row, its lanes side by side. Good only if weir_view_valid_by_all() of @lane says
 * so afterwards.
 */
WEIR_FN u64 weir_view_u64_of(u64 wave, struct weir_view_u64 view, u32 lane, u64 i)
{
	return weir_data_load_u64(weir_shuffle_u64(wave, view.own.data, lane) + i * 8);
}

/**
 * weir_view_valid_by_all() - weir_view_valid_by() of a view that all lanes of @wave have loaded through
 * @wave: lanes calling together, those of weir_view_u64_of()
 * @view: this lane's own
 * @seen: a value made of everything that this lane loaded, through whoever's view
 */
WEIR_FN u32 weir_view_valid_by_all(u64 wave, struct weir_view_u64 view, u64 seen)
{
	u64 loaded = weir_ballot(wave, weir_depend(1, seen)); /* no lane votes before it has loaded */

	weir_wave_sync(wave); /* line.L2: every lane's loads before this lane's second look */
	return weir_view_valid_by(view.own, loaded);
}

/** weir_view_valid() - everything loaded through @view so far is good */
WEIR_FN u32 weir_view_valid(struct weir_view view)
{
	return view.count != 0 && weir_line_unchanged(weir_at(view.set, struct weir_set, 0), view.found);
}

#endif
