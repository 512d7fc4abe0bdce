/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers as text: parsing that refuses rather than guesses, and printing that is quick. */
#ifndef WEIR_TOOLS_GRAPH_NUMBER_H
#define WEIR_TOOLS_GRAPH_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every file format here is little-endian and is read by copying words. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the graph tools copy little-endian words straight from files; this target needs byte swaps"
#endif

/** GRAPH_DECIMAL_BYTES - room for any u64 in decimal, without a terminating zero */
#define GRAPH_DECIMAL_BYTES 20

/** GRAPH_HUMAN_BYTES - room for graph_human_bytes() */
#define GRAPH_HUMAN_BYTES 32

/** graph_parse_u64() - the whole of @text as decimal digits; false on anything else or on overflow */
bool graph_parse_u64(const char *text, uint64_t *value);

/** graph_format_u64() - decimal digits into @text, no terminating zero; returns how many */
size_t graph_format_u64(uint64_t value, char text[GRAPH_DECIMAL_BYTES]);

/** graph_digits() - how many decimal digits @value has */
unsigned graph_digits(uint64_t value);

/** graph_human_bytes() - "4.3 GiB"; returns @text */
const char *graph_human_bytes(uint64_t bytes, char text[GRAPH_HUMAN_BYTES]);

/** graph_add(), graph_multiply() - false instead of wrapping around */
static inline bool graph_add(uint64_t a, uint64_t b, uint64_t *sum)
{
	return !__builtin_add_overflow(a, b, sum);
}

static inline bool graph_multiply(uint64_t a, uint64_t b, uint64_t *product)
{
	return !__builtin_mul_overflow(a, b, product);
}

#endif
