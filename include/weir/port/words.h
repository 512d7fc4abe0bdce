/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port/words.h: the integer names, in each of the five languages.
 *
 * Owns: the choice between the words a language brings along and <stdint.h>.
 * Needs no other header of weir; types.h is the one to include.
 */
#ifndef WEIR_PORT_WORDS_H
#define WEIR_PORT_WORDS_H

#ifdef __OPENCL_C_VERSION__
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

#endif
