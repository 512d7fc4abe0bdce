/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_io_cases.h: short ways to run an I/O command, and cases of virtual_io_test in other files. */
#ifndef WEIR_TESTS_VIRTUAL_IO_CASES_H
#define WEIR_TESTS_VIRTUAL_IO_CASES_H

#include "virtual_medium.h"

enum { BLOCK = 512, PAGE = NVME_PAGE_BYTES, BLOCKS = (4 << 20) / BLOCK, MOST_BLOCKS = 65536 };

/* Run a command on queue pair 1. Return: its status. */
u32 io(struct driver *driver, u32 opcode, u64 lba, u32 blocks, u64 prp1, u64 prp2);
/* The same for Dataset Management, by @ranges of the list at @list. */
u32 manage(struct driver *driver, u64 list, u32 ranges, u32 attributes);
/* Write a range into such a list. */
void put_range(void *list, u32 index, u64 lba, u32 blocks);

/* Cases of virtual_io_medium.c. */
void test_medium_errors(void **state);
void test_one_range_fails(void **state);
void test_medium_refuses(void **state);
void test_reported_ahead(void **state);
void test_any_order(void **state);
void test_an_end_with_requests_in_the_medium(void **state);
void test_cid_conflict(void **state);

#endif
