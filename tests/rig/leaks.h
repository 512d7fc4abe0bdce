/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leaks.h: what a process has, counted before and after something that must leave nothing behind.
 *
 * Owns: the counting: open files, address space, threads but those that serve an io_uring, and bytes that
 * malloc() gave. Whoever counts does the thing once before, so that what libraries keep for good is there
 * already; from the first count on threads that meet share an arena instead of getting one each, or address
 * space would depend on which of them did. A sanitizer keeps what is freed, and finds leaks of its own: there
 * memory is not counted.
 */
#ifndef WEIR_TESTS_LEAKS_H
#define WEIR_TESTS_LEAKS_H

#include <dirent.h>
#include <stdbool.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "threads.h"

#if defined(__has_feature)
#define TEST_FEATURE(name) __has_feature(name)
#else
#define TEST_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || TEST_FEATURE(address_sanitizer) ||      \
	TEST_FEATURE(thread_sanitizer)
enum { TEST_COUNTS_MEMORY = false };
#else
enum { TEST_COUNTS_MEMORY = true };
#endif

/** struct test_has - what a process has; @map_bytes: of address space */
struct test_has {
	unsigned files;
	unsigned threads;
	uint64_t map_bytes;
	uint64_t heap_bytes;
};

static inline unsigned test_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

static inline uint64_t test_map_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	(void)mallopt(M_ARENA_MAX, 1);
	if (file && fscanf(file, "%llu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * 4096;
}

/** test_has() - as of now; threads of the kernel that serve an io_uring come and go as they like */
static inline struct test_has test_has(void)
{
	struct test_has has = { test_files(), test_threads_named("iou-", true), test_map_bytes(), 0 };
	struct mallinfo2 heap = mallinfo2();

	has.heap_bytes = heap.uordblks + heap.hblkhd;
	return has;
}

/* A thread that was joined is on the list until the kernel has taken it off, which nobody can wait for: a
 * minute, or more. */
static inline struct test_has test_has_settled(unsigned threads)
{
	struct test_has has = test_has();

	for (unsigned tries = 0; tries < 60000 && has.threads > threads; tries++) {
		usleep(1000);
		has = test_has();
	}
	return has;
}

/** test_keeps() - files and threads are as many as before, and memory is no more than @slack_bytes above that
 */
#define test_keeps(before, slack_bytes)                                                                      \
	do {                                                                                                 \
		struct test_has before_ = (before), now_ = test_has_settled(before_.threads);                \
		if (now_.files > before_.files || now_.threads > before_.threads ||                          \
		    (TEST_COUNTS_MEMORY && (now_.map_bytes > before_.map_bytes + (slack_bytes) ||            \
					    now_.heap_bytes > before_.heap_bytes + (slack_bytes))))          \
			fail_msg("left behind: %d files, %d threads, %lld bytes of address space, %lld of "  \
				 "the heap",                                                                 \
				 (int)(now_.files - before_.files), (int)(now_.threads - before_.threads),   \
				 (long long)(now_.map_bytes - before_.map_bytes),                            \
				 (long long)(now_.heap_bytes - before_.heap_bytes));                         \
	} while (0)

#endif
