/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gather.h: many elements of an array: a cursor that keeps its line, lists, strides.
 *
 * Owns: the order of accesses, nothing else; all of it is array.h underneath. Every
 * function may be called by any subset of a wave's lanes, with different arguments in
 * each, and records errors as the getters do.
 */
#ifndef WEIR_GATHER_H
#define WEIR_GATHER_H

#include <weir/array.h>

/**
 * struct weir_cursor - where a lane read last, and what
 * @view: the line around it, as it was then
 * @value: the element asked for last
 *
 * BaM's bam_ptr (ASPLOS'23, section 3.5) keeps a reference to the line of the last access; a cursor
 * keeps none: it looks whether its line is still the same one after each load, so that it
 * holds nothing, and never gives an element of another line.
 */
struct weir_cursor {
	struct weir_view view;
	u64 value;
};

/** weir_cursor_none() - a cursor that stands nowhere yet */
WEIR_FN struct weir_cursor weir_cursor_none(void)
{
	struct weir_cursor cursor;

	cursor.view.data = 0;
	cursor.view.first = 0;
	cursor.view.count = 0;
	cursor.view.set = 0;
	cursor.view.found.word = 0;
	cursor.view.found.way = 0;
	cursor.view.array = 0;
	cursor.view.element_bytes = 0;
	cursor.value = 0;
	return cursor;
}

/* Element @index of at most 8 bytes through a view, if it lies in it. */
WEIR_FN u64 weir_cursor_load(struct weir_view view, u64 index, u32 element_bytes)
{
	u64 i = index - view.first;

	return element_bytes == 8 ? weir_view_u64(view, i) : weir_view_u32(view, i);
}

WEIR_FN struct weir_cursor weir_cursor_get(struct weir_cursor cursor, WEIR_GLOBAL struct weir_array *array,
					   u64 index, u32 element_bytes)
{
	cursor.value = 0;
	if (index - cursor.view.first >= cursor.view.count) {
		if (!weir_array_has_of(array, index, element_bytes))
			return cursor;
		/* From the line's first element on, so that steps back stay in it, too. */
		u64 before =
			weir_array_offset(array, array->first_byte + index * element_bytes) / element_bytes;

		cursor.view = weir_array_view(array, index - (before < index ? before : index));
	}
	if (index - cursor.view.first < cursor.view.count) {
		cursor.value = weir_cursor_load(cursor.view, index, element_bytes);
		if (weir_view_valid_by(cursor.view, cursor.value))
			return cursor;
	}
	cursor.view.count = 0; /* another line by now: as if nothing had been read before */
	cursor.value =
		weir_array_get_bits(array, index, element_bytes) & (~(u64)0 >> (64 - element_bytes * 8));
	return cursor;
}

/**
 * weir_cursor_u64() - element @index of an array of 8-byte elements
 * @cursor: what the last call returned, for this array; at first weir_cursor_none()
 * @array: the array
 * @index: any element; those on the line of the last one cost no look into the set
 *
 * Return: the cursor, now there; the element is its @value, 0 after an error.
 */
WEIR_FN struct weir_cursor weir_cursor_u64(struct weir_cursor cursor, WEIR_GLOBAL struct weir_array *array,
					   u64 index)
{
	return weir_cursor_get(cursor, array, index, 8);
}

/** weir_cursor_u32() - the same for 4-byte elements, in the low half of @value */
WEIR_FN struct weir_cursor weir_cursor_u32(struct weir_cursor cursor, WEIR_GLOBAL struct weir_array *array,
					   u64 index)
{
	return weir_cursor_get(cursor, array, index, 4);
}

/**
 * struct weir_indices - which elements: those of a list, or every one so far from the last
 * @list: device address of u64[@count], indices; 0: none
 * @first: without a list: the first index
 * @stride: from one to the next
 * @count: how many
 */
struct weir_indices {
	weir_addr list;
	u64 first;
	u64 stride;
	u64 count;
};

WEIR_FN u64 weir_indices_at(struct weir_indices indices, u64 i)
{
	return indices.list ? *weir_at(indices.list, u64, i) : indices.first + i * indices.stride;
}

/* Four at a time, so that their looks are under way together. */
WEIR_FN void weir_gather_indices_u64(WEIR_GLOBAL struct weir_array *array, struct weir_indices indices,
				     weir_addr to)
{
	for (u64 i = 0; i < indices.count; i += 4) {
		struct weir_four at, got;

		for (u32 k = 0; k < 4; k++) /* past the end: the last one once more */
			at.value[k] =
				weir_indices_at(indices, i + k < indices.count ? i + k : indices.count - 1);
		got = weir_array_get_four_u64(array, at);
		for (u32 k = 0; k < 4; k++)
			if (i + k < indices.count)
				*weir_at(to, u64, i + k) = got.value[k];
	}
}

WEIR_FN void weir_gather_indices_u32(WEIR_GLOBAL struct weir_array *array, struct weir_indices indices,
				     weir_addr to)
{
	struct weir_cursor cursor = weir_cursor_none();

	for (u64 i = 0; i < indices.count; i++) {
		cursor = weir_cursor_u32(cursor, array, weir_indices_at(indices, i));
		*weir_at(to, u32, i) = (u32)cursor.value;
	}
}

WEIR_FN struct weir_indices weir_indices_list(weir_addr list, u64 count)
{
	struct weir_indices indices;

	indices.list = list;
	indices.first = 0;
	indices.stride = 0;
	indices.count = count;
	return indices;
}

WEIR_FN struct weir_indices weir_indices_strided(u64 first, u64 stride, u64 count)
{
	struct weir_indices indices;

	indices.list = 0;
	indices.first = first;
	indices.stride = stride;
	indices.count = count;
	return indices;
}

/**
 * weir_array_gather_u64() - elements of a list, by this lane
 * @array: array of 8-byte elements
 * @list: device address of u64[@count], their indices, in any order, also twice
 * @count: how many
 * @to: device address of u64[@count]; gets 0 where an index is none
 */
WEIR_FN void weir_array_gather_u64(WEIR_GLOBAL struct weir_array *array, weir_addr list, u64 count,
				   weir_addr to)
{
	weir_gather_indices_u64(array, weir_indices_list(list, count), to);
}

/** weir_array_gather_u32() - the same for 4-byte elements; @list is of u64, @to of u32 */
WEIR_FN void weir_array_gather_u32(WEIR_GLOBAL struct weir_array *array, weir_addr list, u64 count,
				   weir_addr to)
{
	weir_gather_indices_u32(array, weir_indices_list(list, count), to);
}

/**
 * weir_array_strided_u64() - every @stride-th element, by this lane
 * @array: array of 8-byte elements
 * @first: index of the first one
 * @stride: from one to the next
 * @count: how many
 * @to: device address of u64[@count]
 */
WEIR_FN void weir_array_strided_u64(WEIR_GLOBAL struct weir_array *array, u64 first, u64 stride, u64 count,
				    weir_addr to)
{
	weir_gather_indices_u64(array, weir_indices_strided(first, stride, count), to);
}

/** weir_array_strided_u32() - the same for 4-byte elements */
WEIR_FN void weir_array_strided_u32(WEIR_GLOBAL struct weir_array *array, u64 first, u64 stride, u64 count,
				    weir_addr to)
{
	weir_gather_indices_u32(array, weir_indices_strided(first, stride, count), to);
}

#endif
