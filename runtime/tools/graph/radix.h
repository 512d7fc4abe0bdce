/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorting records in memory. */
#ifndef WEIR_TOOLS_GRAPH_RADIX_H
#define WEIR_TOOLS_GRAPH_RADIX_H

#include <stddef.h>
#include <stdint.h>

/**
 * graph_radix_sort() - sort @count records by their key, then by their weight
 * @records: @words u64 each: the key, then, when @words is 2, a weight below 2^32
 * @scratch: as large as @records
 *
 * Return: @records or @scratch, whichever holds the sorted records; the other one holds garbage.
 */
uint64_t *graph_radix_sort(uint64_t *records, uint64_t *scratch, size_t count, unsigned words);

#endif
