/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual_medium.h: a medium that does what a test tells it: it holds requests,
 * ends them out of order, refuses, fails.
 *
 * Owns: the line of held requests; the bytes are a medium's in memory. Only for
 * controllers with one thread, polled by the test.
 */
#ifndef WEIR_TESTS_VIRTUAL_MEDIUM_H
#define WEIR_TESTS_VIRTUAL_MEDIUM_H

#include "virtual_driver.h"

enum { SLOW_HELD = 64, SLOW_NOTES = 64 };

/** struct slow_note - a request began, or @ended */
struct slow_note {
	enum weir_io_kind kind;
	uint64_t offset_bytes;
	bool ended;
};

/**
 * struct slow - such a medium
 * @inner: where the bytes are
 * @held: requests not begun
 * @count: how many
 * @hold: keep what comes until told
 * @one: one request ends in each poll
 * @refusals: how many submissions to refuse
 * @capacity: refuse while this many are held; 0 = no limit
 * @status: of the next requests, instead of doing them
 * @flushes: FLUSH requests seen
 * @forced: writes with force_unit_access seen
 * @changes: calls of memory_changed()
 * @notes: what began and ended, in that order
 * @note_count: how many, of which the first are kept
 * @on_submit: called at the next submission, or NULL
 */
struct slow {
	struct weir_medium medium;
	struct weir_medium *inner;
	struct weir_io *held[SLOW_HELD];
	unsigned count;
	bool hold;
	bool one;
	unsigned refusals;
	unsigned capacity;
	u16 status;
	unsigned flushes;
	unsigned forced;
	unsigned changes;
	struct slow_note notes[SLOW_NOTES];
	unsigned note_count;
	void (*on_submit)(struct slow *slow);
};

static inline void slow_note(struct slow *slow, const struct weir_io *io, bool ended)
{
	if (slow->note_count < SLOW_NOTES)
		slow->notes[slow->note_count++] = (struct slow_note){ io->kind, io->offset_bytes, ended };
}

/* Where in the notes that happened for the first time. */
static inline unsigned slow_when(const struct slow *slow, enum weir_io_kind kind, bool ended)
{
	for (unsigned i = 0; i < slow->note_count; i++)
		if (slow->notes[i].kind == kind && slow->notes[i].ended == ended)
			return i;
	fail_msg("no request of kind %d %s", (int)kind, ended ? "ended" : "began");
	return 0;
}

static inline void slow_end(struct slow *slow, struct weir_io *io)
{
	slow_note(slow, io, true);
	if (!slow->status) {
		slow->inner->ops->submit(slow->inner, io);
		return;
	}
	io->status = slow->status;
	io->done(io);
}

static inline bool slow_submit(struct weir_medium *medium, struct weir_io *io)
{
	struct slow *slow = (struct slow *)medium;

	assert_true(io->bytes || io->kind == WEIR_IO_FLUSH);
	if (slow->on_submit)
		slow->on_submit(slow);
	if (slow->refusals) {
		slow->refusals--;
		return false;
	}
	if (slow->count == SLOW_HELD || (slow->capacity && slow->count == slow->capacity))
		return false;
	slow_note(slow, io, false);
	slow->flushes += io->kind == WEIR_IO_FLUSH;
	slow->forced += io->force_unit_access;
	slow->held[slow->count++] = io;
	return true;
}

/* End the request at @index; the others keep their order. */
static inline void slow_end_one(struct slow *slow, unsigned index)
{
	struct weir_io *io = slow->held[index];

	slow->count--;
	memmove(&slow->held[index], &slow->held[index + 1], (slow->count - index) * sizeof(*slow->held));
	slow_end(slow, io);
}

static inline unsigned slow_poll(struct weir_medium *medium, unsigned thread)
{
	struct slow *slow = (struct slow *)medium;
	unsigned ended = 0;

	(void)thread;
	while (!slow->hold && slow->count) {
		slow_end_one(slow, slow->count - 1); /* the latest first */
		ended++;
		if (slow->one)
			break;
	}
	return ended;
}

static inline void slow_changed(struct weir_medium *medium, unsigned thread, const struct weir_dma_view *view)
{
	(void)thread;
	assert_true(view->count > 0);
	((struct slow *)medium)->changes++;
}

static inline void slow_close(struct weir_medium *medium)
{
	struct slow *slow = (struct slow *)medium;

	assert_int_equal(slow->count, 0);
	slow->inner->ops->close(slow->inner);
}

static const struct weir_medium_ops slow_ops = {
	.size = sizeof(slow_ops),
	.submit = slow_submit,
	.poll = slow_poll,
	.memory_changed = slow_changed,
	.close = slow_close,
};

static inline void slow_open(struct slow *slow, uint64_t bytes, uint32_t block_bytes)
{
	memset(slow, 0, sizeof(*slow));
	assert_int_equal(weir_medium_ram_open(bytes, block_bytes, NULL, &slow->inner), 0);
	slow->medium = *slow->inner;
	slow->medium.ops = &slow_ops;
}

/* A controller over @slow with queue pair 1 of the given sizes. */
static inline void slow_driver_open(struct driver *driver, struct slow *slow, u32 sq_entries, u32 cq_entries,
				    u32 latency_us)
{
	struct weir_virtual_options options = driver_defaults();

	slow_open(slow, 4 << 20, 512);
	options.medium = &slow->medium;
	options.latency_us = latency_us;
	driver_open(driver, options);
	driver_enable(driver);
	driver_add_queue(driver, 1, 1, sq_entries, cq_entries);
}

#endif
