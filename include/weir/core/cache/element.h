/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/element.h: what a lane does with a line that is there.
 *
 * Owns: kinds of accesses, and what they do to one element. Never looks at a line's word: whoever calls has
 * the line pinned, and marks it afterwards (core/cache/access.h).
 */
#ifndef WEIR_CORE_ELEMENT_H
#define WEIR_CORE_ELEMENT_H

#include <weir/port.h>

/* What lanes do with a line; a constant wherever it is passed on, so that readers hold no code that writes.
 */
enum {
	WEIR_ACCESS_LOAD,  /* words of 8 bytes, by value */
	WEIR_ACCESS_STORE, /* an element of 1, 2, 4, 8 or 16 bytes */
	WEIR_ACCESS_ADD,   /* to an element of 4 or 8 bytes; its old value is the first word, as of the four
			      that follow */
	WEIR_ACCESS_READ,  /* bytes to a buffer */
	WEIR_ACCESS_WRITE, /* bytes from a buffer */
	WEIR_ACCESS_MIN,
	WEIR_ACCESS_MAX,
	WEIR_ACCESS_EXCHANGE,
	WEIR_ACCESS_CAS,
};

/**
 * struct weir_access - what one lane does with one line
 * @offset: first byte in the line; of WEIR_ACCESS_LOAD a multiple of 8, of elements one of their size
 * @length: bytes; of WEIR_ACCESS_LOAD words, 1 to WEIR_RUN. 0: nothing to do but to help the others
 * @buffer: WEIR_ACCESS_READ, _WRITE: this lane's
 * @value: of elements, in the low bits; WEIR_ACCESS_CAS: the new value in @value.low, the expected one in
 * @value.high
 */
struct weir_access {
	u32 offset;
	u32 length;
	weir_addr buffer;
	struct weir_u128 value;
};

/* What an element that is @old becomes. */
WEIR_FN WEIR_FORCE_INLINE u64 weir_access_changed(u32 kind, u64 old, struct weir_u128 value)
{
	if (kind == WEIR_ACCESS_MIN)
		return old < value.low ? old : value.low;
	if (kind == WEIR_ACCESS_MAX)
		return old > value.low ? old : value.low;
	if (kind == WEIR_ACCESS_CAS)
		return old == value.high ? value.low : old;
	return value.low;
}

/*
 * An atomic change that no port has a primitive for: tried until no other lane's came between. A lane fails
 * only if another one succeeded, so it waits for nobody. Return: what the element was.
 */
WEIR_FN WEIR_FORCE_INLINE u64 weir_access_change(u32 kind, weir_addr data, u32 bytes, struct weir_u128 value)
{
	u64 old = bytes == 4 ? weir_data_load_u32(data) : weir_data_load_u64(data), seen;

	do {
		u64 changed = weir_access_changed(kind, old, value);

		seen = old;
		if (changed != old || kind == WEIR_ACCESS_EXCHANGE)
			old = bytes == 4 ? weir_data_cas_u32(data, (u32)seen, (u32)changed)
					 : weir_data_cas_u64(data, seen, changed);
	} while (old != seen);
	return old;
}

/* Store, or change atomically, the element at @data. Return: of a change, what it was; else 0. */
WEIR_FN WEIR_FORCE_INLINE u64 weir_access_element(u32 kind, weir_addr data, struct weir_access access)
{
	if (kind == WEIR_ACCESS_ADD)
		return access.length == 4 ? weir_data_add_u32(data, (u32)access.value.low)
					  : weir_data_add_u64(data, access.value.low);
	if (kind != WEIR_ACCESS_STORE)
		return weir_access_change(kind, data, access.length, access.value);
	if (access.length == 1)
		weir_data_store_u8(data, (u8)access.value.low);
	else if (access.length == 2)
		weir_data_store_u16(data, (u16)access.value.low);
	else if (access.length == 4)
		weir_data_store_u32(data, (u32)access.value.low);
	else if (access.length == 8)
		weir_data_store_u64(data, access.value.low);
	else
		weir_data_store_u128(data, access.value);
	return 0;
}

#endif
