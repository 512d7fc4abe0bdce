/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual_fault_driver.h: a virtual controller with a fault table, and a clock
 * that stands still until a test moves it.
 *
 * Owns: that clock, and short ways to post, to run and to reap.
 */
#ifndef WEIR_TESTS_VIRTUAL_FAULT_DRIVER_H
#define WEIR_TESTS_VIRTUAL_FAULT_DRIVER_H

#include "virtual_medium.h"

enum { BLOCK = 512, PAGE = NVME_PAGE_BYTES, NONE = 1 << 20 /* no identifier */ };

extern const char *weir_last_error(void);

/* Time that passes only when a test says so. */
static u64 virtual_ns;

static inline u64 virtual_clock(void *argument)
{
	assert_ptr_equal(argument, &virtual_ns);
	return virtual_ns;
}

static inline struct weir_virtual_options table(const struct weir_virtual_fault *rows, unsigned count)
{
	struct weir_virtual_options options = driver_defaults();

	options.faults = rows;
	options.fault_count = count;
	options.clock_ns = virtual_clock;
	options.clock_argument = &virtual_ns;
	virtual_ns = 1000;
	return options;
}

/* A controller with queue pair 1. */
static inline void open_with(struct driver *driver, struct weir_virtual_options options, u32 entries)
{
	driver_open(driver, options);
	driver_enable(driver);
	driver_add_queue(driver, 1, 1, entries, entries);
}

/* The same with a fault table as text. */
static inline void open_text(struct driver *driver, const char *text, u32 entries)
{
	struct weir_virtual_fault rows[8];
	unsigned count;

	if (weir_virtual_faults_parse(text, rows, 8, &count))
		fail_msg("%s", weir_last_error());
	open_with(driver, table(rows, count), entries);
}

/* Every command's data lies here. */
static inline unsigned char *data_of(struct driver *driver)
{
	return driver->arena + DRIVER_ARENA_BYTES - 2 * PAGE;
}

static inline void post_io(struct driver *driver, u32 sq, u32 opcode, u64 lba, u32 blocks, u32 cid)
{
	u64 data = driver_bus(data_of(driver));

	driver_post(driver, sq, driver_io(opcode, lba, blocks, data, 0), cid);
}

static inline void post_reads(struct driver *driver, u32 first, u32 count)
{
	for (u32 i = 0; i < count; i++)
		post_io(driver, 1, NVME_OPCODE_READ, i, 1, first + i);
}

static inline u32 run_io(struct driver *driver, u32 opcode, u64 lba, u32 blocks)
{
	u64 data = driver_bus(data_of(driver));

	return driver_command(driver, 1, driver_io(opcode, lba, blocks, data, 0), NULL);
}

/* The next completion's identifier, without waiting long; NONE if there is none. */
static inline u32 next_cid(struct driver *driver)
{
	struct nvme_cqe cqe;

	driver_steps(driver, 20);
	if (!driver_peek(driver, 1, &cqe))
		return NONE;
	driver_release(driver, 1);
	return driver_cid(&cqe);
}

static inline u64 faults_of(struct driver *driver)
{
	struct weir_virtual_stats stats;

	weir_virtual_stats(driver->controller, &stats);
	return stats.faults;
}

/* The queue goes on as if nothing had been. */
static inline void expect_clean(struct driver *driver)
{
	for (u32 i = 0; i < 40; i++)
		assert_int_equal(run_io(driver, NVME_OPCODE_READ, i, 1), 0);
}

#endif
