/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * types.h: the fixed-width words every weir structure is made of.
 *
 * Owns: the two address types and layout assertions; the integer names come from
 * port/words.h. Never touches memory. Compiles in all five languages.
 */
#ifndef WEIR_TYPES_H
#define WEIR_TYPES_H

#include <weir/port/words.h>

/**
 * typedef weir_addr - an address a lane may dereference
 *
 * Structures shared between host and device hold these words, never pointers,
 * so that their layout is the same for every compiler.
 */
typedef u64 weir_addr;

/**
 * struct weir_bus - an address as the controller sees it
 * @address: bus address, in bytes
 *
 * Its own type, so that a lane address cannot slip into a PRP entry unmapped.
 */
struct weir_bus {
	u64 address;
};

/** struct weir_u128 - 16 bytes that move together, though not as one access */
struct weir_u128 {
	u64 low;
	u64 high;
} __attribute__((aligned(16)));

/* One name out of two, after both were expanded. */
#define WEIR_CONCAT_(a, b) a##b
#define WEIR_CONCAT(a, b)  WEIR_CONCAT_(a, b)

/*
 * The one static assertion all five languages accept: a negative array size. Its
 * name counts, because two headers may assert on the same line.
 */
#define WEIR_ASSERT_SIZE(type, bytes)                                                                        \
	typedef char WEIR_CONCAT(weir_size_of_, __COUNTER__)[sizeof(type) == (bytes) ? 1 : -1] WEIR_UNUSED
#define WEIR_ASSERT_OFFSET(type, member, bytes)                                                              \
	typedef char WEIR_CONCAT(                                                                            \
		weir_offset_of_,                                                                             \
		__COUNTER__)[__builtin_offsetof(type, member) == (bytes) ? 1 : -1] WEIR_UNUSED
#define WEIR_UNUSED __attribute__((unused))

#endif
