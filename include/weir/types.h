/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * types.h: the fixed-width words every weir structure is made of.
 *
 * Owns: the integer names and the two address types. Never touches memory.
 * Compiles as C11, C++17, CUDA, HIP and OpenCL C.
 */
#ifndef WEIR_TYPES_H
#define WEIR_TYPES_H

#ifdef __OPENCL_VERSION__
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef int i32;
typedef long i64;
#else
#include <stddef.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;
#endif

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

#define WEIR_CONCAT_(a, b) a##b
#define WEIR_CONCAT(a, b) WEIR_CONCAT_(a, b)

/* The one static assertion all five languages accept: a negative array size. */
#define WEIR_ASSERT_SIZE(type, bytes) \
	typedef char WEIR_CONCAT(weir_size_of_, __LINE__)[sizeof(type) == (bytes) ? 1 : -1] WEIR_UNUSED
#define WEIR_ASSERT_OFFSET(type, member, bytes)                                           \
	typedef char WEIR_CONCAT(weir_offset_of_, __LINE__)                               \
		[__builtin_offsetof(type, member) == (bytes) ? 1 : -1] WEIR_UNUSED
#define WEIR_UNUSED __attribute__((unused))

#endif
