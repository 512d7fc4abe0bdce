/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_verbs.h: librdmacm and libibverbs of one process: connections within it, keys checked as a device
 * does.
 *
 * A program that links fake_verbs.c has these functions in the place of the libraries'. What is sent is there
 * at once; keys, ranges and rights are checked; a queue pair in error flushes what was posted.
 */
#ifndef WEIR_TESTS_FAKE_VERBS_H
#define WEIR_TESTS_FAKE_VERBS_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct fake_verbs - under a lock of its own; a test sets it while nothing moves
 * @break_in: posts until a connection breaks; 0: none does
 * @late: completions of sends come behind those of receives
 * @no_device: no address leads to a device
 * @damage_request, @damage_accept: changes private data on its way; NULL: nobody does
 * @registrations: so far
 * @live: objects that exist
 * @bad_accesses: of memory under a wrong key, outside its range, or without the right
 * @broken: connections, by @break_in
 * @invalidated: the last key that a message ended
 */
struct fake_verbs {
	unsigned break_in;
	bool late;
	bool no_device;
	void (*damage_request)(void *data, size_t *bytes);
	void (*damage_accept)(void *data, size_t *bytes);
	unsigned registrations;
	int live;
	unsigned bad_accesses;
	unsigned broken;
	unsigned invalidated;
};

extern struct fake_verbs fake_verbs;

#endif
