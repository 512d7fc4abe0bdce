/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scarce.h: memory, mappings, threads, rings and files that are not to be had.
 *
 * scarce.c stands before the system's functions. Of those that libweir and libweir-dataset themselves call it
 * counts each, lets the one fail that is asked for, and keeps what was given and not yet taken back.
 */
#ifndef WEIR_TESTS_SCARCE_H
#define WEIR_TESTS_SCARCE_H

#include <stdbool.h>
#include <stddef.h>

struct weir_context;

/** scarce_begin() - from now on call @nth fails, counted from 1; @and_later: all behind it, too; 0: none does
 */
void scarce_begin(size_t nth, bool and_later);

/** scarce_alone() - from now on only calls of this thread count: none of controllers, lanes and watchdogs
 * fail */
void scarce_alone(void);

/** scarce_end() - no more calls fail. Return: how many there were */
size_t scarce_end(void);

/** scarce_kept() - how many things the library has and did not give back; @where: who asked for one, as an
 * offset in the library */
size_t scarce_kept(size_t *where);

/** scarce_blocks() - how many allocations a context has, its users' and the runtime's own */
size_t scarce_blocks(const struct weir_context *context);

#endif
