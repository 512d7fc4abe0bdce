/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Share Table's transitions, as docs/share.md prints them: each row is carried out, by this
 * thread as a wave of one lane, on a table and a cache in ordinary memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/share.h>

enum { LINE = 512, WORDS = LINE / 8, KEY = 7, ROWS = 17 };

/** struct rig - a cache of one set, a table of one bucket, a storage of one queue that nobody serves */
struct rig {
	struct weir_set words, entries;
	struct weir_set_policy policy;
	struct weir_share_slot slots[WEIR_WAYS];
	struct weir_share share;
	struct weir_lines lines;
	struct weir_extent extent;
	struct weir_disk disk;
	struct weir_queue queue;
	struct weir_slot queue_slots[4];
	struct nvme_sqe sq[4];
	struct nvme_cqe cq[4];
	uint32_t doorbells[2];
	uint64_t data[WEIR_WAYS][WORDS] __attribute__((aligned(64)));
	uint64_t buffer[WORDS] __attribute__((aligned(64)));
	uint64_t behind[WORDS];
	uint64_t position;
};

static weir_addr address_of(void *pointer)
{
	return (weir_addr)(uintptr_t)pointer;
}

static struct rig *open_rig(void)
{
	struct rig *rig = aligned_alloc(128, (sizeof(*rig) + 127) / 128 * 128);

	memset(rig, 0, sizeof(*rig));
	rig->queue.sq = address_of(rig->sq);
	rig->queue.cq = address_of(rig->cq);
	rig->queue.slots = address_of(rig->queue_slots);
	rig->queue.sq_doorbell = address_of(&rig->doorbells[0]);
	rig->queue.cq_doorbell = address_of(&rig->doorbells[1]);
	rig->queue.depth = 4;
	rig->queue.depth_log2 = 2;
	rig->queue.id = 1;
	rig->queue.block_log2 = 9;
	rig->queue.path = WEIR_PATH_DIRECT;
	rig->disk.queues = address_of(&rig->queue);
	rig->disk.queue_count = 1;
	rig->disk.block_log2 = 9;
	rig->disk.blocks = 64;
	rig->disk.max_blocks = 1;
	rig->disk.timeout_ns = 50000000;
	rig->extent.disks = address_of(&rig->disk);
	rig->extent.disk_count = 1;
	rig->extent.key_base = KEY;
	rig->extent.lines = 64;
	rig->share.buckets = 1;
	rig->share.words = address_of(&rig->entries);
	rig->share.slots = address_of(rig->slots);
	rig->lines.line_log2 = 9;
	rig->lines.sets = 1;
	rig->lines.set_magic = ~(uint64_t)0;
	rig->lines.words = address_of(&rig->words);
	rig->lines.policies = address_of(&rig->policy);
	rig->lines.data = address_of(rig->data);
	rig->lines.share = address_of(&rig->share);
	return rig;
}

/* Line 0 of the extent is in the cache, in state @state. */
static void put_line(struct rig *rig, uint32_t state)
{
	rig->words.word[1].value_ = (uint64_t)KEY << WEIR_LINE_KEY_SHIFT | state;
	for (unsigned i = 0; i < WORDS; i++)
		rig->data[1][i] = 1000 + i;
}

static uint64_t word_of(const struct rig *rig)
{
	return rig->entries.word[rig->position % WEIR_WAYS].value_;
}

/* Acquire: register the buffer, or join the entry. */
static void acquire(struct rig *rig)
{
	struct weir_share_found found = weir_share_find(&rig->share, KEY);

	if (found.word) {
		assert_int_equal(weir_share_try_join(&rig->share, found), 1);
	} else {
		struct weir_registered registered =
			weir_share_try_register(1, 1, &rig->lines, &rig->extent, 0, address_of(rig->buffer));

		assert_int_equal(registered.outcome, WEIR_SHARE_DONE);
		rig->position = registered.position;
	}
}

/* As the one command's completion does it. */
static void fill(struct rig *rig)
{
	if (weir_line_state(word_of(rig)) != WEIR_LINE_BUSY)
		return;
	assert_int_equal(rig->queue.tail.value_, 1);
	for (unsigned i = 0; i < WORDS; i++)
		rig->buffer[i] = 1000 + i;
	weir_complete(rig->queue_slots[0].target_kind, rig->queue_slots[0].target, rig->queue_slots[0].status,
		      WEIR_OK, WEIR_PATH_DIRECT);
}

static void modify(struct rig *rig)
{
	assert_true(weir_line_readable(word_of(rig)));
	(void)weir_share_changed(&rig->share, rig->position);
	rig->buffer[3] = 33;
}

static void let_go(struct rig *rig)
{
	assert_int_equal(weir_share_leave(1, 1, &rig->lines, &rig->extent, 0, rig->position), WEIR_OK);
}

/* To a state, the shortest way. */
static void bring_to(struct rig *rig, const char *state, unsigned holders)
{
	if (holders)
		acquire(rig);
	fill(rig);
	if (!strcmp(state, "Modified") || !strcmp(state, "Owned"))
		modify(rig);
	while (weir_share_refs(word_of(rig)) < holders)
		acquire(rig);
}

static const char *const NAMES[] = { "Invalid", "Exclusive", "Shared", "Modified", "Owned" };

static void expect_state(struct rig *rig, unsigned row, const char *state, unsigned holders)
{
	uint64_t word = weir_share_find(&rig->share, KEY).word;

	if (strcmp(NAMES[weir_share_state(word)], state) || weir_share_refs(word) != holders)
		fail_msg("row %u: %s with %u holders instead of %s with %u", row,
			 NAMES[weir_share_state(word)], weir_share_refs(word), state, holders);
}

/* Where the line is now: in the cache, the table, or neither; never in both. */
static void expect_place(struct rig *rig, unsigned row, const char *note)
{
	uint64_t line = weir_set_find(&rig->words, KEY).word, entry = weir_share_find(&rig->share, KEY).word;

	if (line && entry)
		fail_msg("row %u: the line is in the cache and in a buffer", row);
	if (strstr(note, "moves to the buffer"))
		assert_int_equal(rig->buffer[5], 1005);
	if (strstr(note, "a command fills"))
		assert_int_equal(rig->queue.tail.value_, 1);
	else if (!strstr(note, "goes to the cache"))
		assert_int_equal(line, 0);
	if (strstr(note, "goes to the cache")) {
		uint32_t way = weir_set_find(&rig->words, KEY).way;

		assert_int_equal(weir_line_state(line), WEIR_LINE_MODIFIED);
		assert_int_equal(rig->data[way][3], 33);
		assert_int_equal(rig->data[way][5], 1005);
	}
	assert_int_equal(rig->policy.lock.value_, 0);
}

static void do_row(unsigned row, char *cells[6])
{
	struct rig *rig = open_rig();

	if (strstr(cells[2], "in the cache"))
		put_line(rig, strstr(cells[2], "dirty") ? WEIR_LINE_MODIFIED : WEIR_LINE_READY);
	bring_to(rig, cells[0], (unsigned)atoi(cells[1]));
	expect_state(rig, row, cells[0], (unsigned)atoi(cells[1]));
	if (!strncmp(cells[2], "acquire", 7))
		acquire(rig);
	else if (!strcmp(cells[2], "modify"))
		modify(rig);
	else if (!strcmp(cells[2], "release"))
		let_go(rig);
	else
		fail_msg("row %u: what is \"%s\"?", row, cells[2]);
	expect_state(rig, row, cells[3], (unsigned)atoi(cells[4]));
	expect_place(rig, row, cells[5]);
	free(rig);
}

/* The cells of a row of the table; false for any other line. */
static int split(char *line, char *cells[6])
{
	char *at = line;

	if (*at++ != '|')
		return 0;
	for (unsigned i = 0; i < 6; i++) {
		char *end = strchr(at, '|');

		if (!end)
			return 0;
		cells[i] = at + strspn(at, " ");
		at = end + 1;
		while (end > cells[i] && end[-1] == ' ')
			end--;
		*end = 0;
	}
	for (unsigned i = 0; i < 5; i++)
		if (!strcmp(cells[0], NAMES[i]))
			return 1;
	return 0;
}

static void test_every_row_of_the_table(void **state)
{
	FILE *file = fopen(WEIR_DOCS "/share.md", "r");
	char line[512], *cells[6];
	unsigned rows = 0;

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (split(line, cells))
			do_row(++rows, cells);
	fclose(file);
	assert_int_equal(rows, ROWS);
}

static void test_a_last_holder_keeps_a_line_that_has_no_room(void **state)
{
	struct rig *rig = open_rig();

	(void)state;
	bring_to(rig, "Modified", 1);
	for (unsigned i = 0; i < WEIR_WAYS; i++) /* pinned by others */
		rig->words.word[i].value_ =
			(uint64_t)(KEY + 1 + i) << WEIR_LINE_KEY_SHIFT | WEIR_LINE_PIN | WEIR_LINE_READY;
	assert_int_equal(weir_share_leave(1, 1, &rig->lines, &rig->extent, 0, rig->position), WEIR_E_TIMEOUT);
	expect_state(rig, 0, "Modified", 1);
	rig->words.word[2].value_ -= WEIR_LINE_PIN;
	let_go(rig);
	assert_int_equal(weir_line_state(weir_set_find(&rig->words, KEY).word), WEIR_LINE_MODIFIED);
	free(rig);
}

/* The storage ends in the midst of the line: that much moves to the buffer and back, and no byte beside it,
 * in the buffer's memory or in the cache's. */
static void test_a_line_moves_as_far_as_its_storage_goes(void **state)
{
	(void)state;
	for (uint32_t line_state = WEIR_LINE_MODIFIED; line_state <= WEIR_LINE_READY; line_state += 2) {
		struct rig *rig = open_rig();

		rig->lines.line_log2 = 10;
		rig->disk.blocks = 1;
		rig->words.word[1].value_ = (uint64_t)KEY << WEIR_LINE_KEY_SHIFT | line_state;
		for (unsigned i = 0; i < WEIR_WAYS * WORDS; i++)
			rig->data[i / WORDS][i % WORDS] = 1000 + i;
		acquire(rig);
		assert_int_equal(rig->queue.tail.value_, 0);
		for (unsigned i = 0; i < WORDS; i++) {
			assert_int_equal(rig->buffer[i], 1000 + 2 * WORDS + i);
			assert_int_equal(rig->behind[i], 0);
		}
		expect_state(rig, 0, line_state == WEIR_LINE_READY ? "Exclusive" : "Modified", 1);
		modify(rig);
		memset(rig->data, 0x55, sizeof(rig->data));
		rig->words.word[2].value_ = rig->words.word[3].value_ =
			(uint64_t)(KEY + 1) << WEIR_LINE_KEY_SHIFT | WEIR_LINE_PIN | WEIR_LINE_READY;
		let_go(rig);
		for (unsigned i = 0; i < 2 * WORDS; i++) {
			uint32_t way = weir_set_find(&rig->words, KEY).way;
			uint64_t word = rig->data[2 * way + i / WORDS][i % WORDS];

			assert_int_equal(word, i >= WORDS ? 0x5555555555555555
					       : i == 3   ? 33
							  : rig->buffer[i]);
		}
		assert_int_equal(weir_load_u64_relaxed_dev(&rig->share.propagated), 1);
		free(rig);
	}
}

/* Every line of the set is dirty, and the buffer's last holder wants room. */
static struct rig *open_crowded(void)
{
	struct rig *rig = open_rig();

	rig->lines.extents.value_ = address_of(&rig->extent);
	rig->lines.extent_count.value_ = 1;
	bring_to(rig, "Modified", 1);
	for (unsigned i = 0; i < WEIR_WAYS; i++)
		rig->words.word[i].value_ =
			(uint64_t)(KEY + 1 + i) << WEIR_LINE_KEY_SHIFT | WEIR_LINE_MODIFIED;
	return rig;
}

/* One step of that holder, who is not done; @states: of the set's lines then, and the status of the first. */
static void expect_waiting(struct rig *rig, const uint32_t states[WEIR_WAYS], uint32_t status)
{
	assert_int_equal(weir_share_try_propagate(1, 1, &rig->lines, &rig->extent, 0, rig->position, 1),
			 WEIR_E_LOCKED);
	expect_state(rig, 0, "Modified", 1);
	assert_int_equal(rig->policy.lock.value_, 0);
	for (unsigned i = 0; i < WEIR_WAYS; i++) {
		assert_int_equal(weir_line_state(rig->words.word[i].value_), states[i]);
		assert_int_equal(rig->policy.status[i].value_, i ? WEIR_OK : status);
	}
}

/* A step that begins a write-back, or wants to read, and finds no slot or a dead storage leaves nothing
 * begun. */
static void test_steps_that_come_to_nothing(void **state)
{
	static const uint32_t dirty[] = { WEIR_LINE_MODIFIED, WEIR_LINE_MODIFIED, WEIR_LINE_MODIFIED,
					  WEIR_LINE_MODIFIED };
	static const uint32_t begun[] = { WEIR_LINE_WRITING, WEIR_LINE_MODIFIED, WEIR_LINE_MODIFIED,
					  WEIR_LINE_MODIFIED };
	struct weir_registered registered;
	struct rig *rig = open_crowded();

	(void)state;
	rig->queue_slots[1].sequence.value_ = 1; /* another's command */
	expect_waiting(rig, dirty, WEIR_STATUS_UNSENT);
	assert_int_equal(weir_load_u64_relaxed_dev(&rig->lines.writebacks), 0);
	assert_int_equal(rig->queue.tail.value_, 1);
	rig->queue_slots[1].sequence.value_ = 0;
	expect_waiting(rig, begun, WEIR_STATUS_UNSENT);
	assert_int_equal(weir_load_u64_relaxed_dev(&rig->lines.writebacks), 1);
	assert_int_equal(rig->queue.tail.value_, 2);
	assert_int_equal(rig->sq[1].cdw0 & 0xff, NVME_OPCODE_WRITE);
	assert_int_equal(rig->sq[1].cdw10, 1);
	expect_waiting(rig, begun, WEIR_STATUS_UNSENT); /* one at a time */
	assert_int_equal(rig->queue.tail.value_, 2);
	free(rig);
	rig = open_crowded();
	rig->queue.dead.value_ = WEIR_E_DEVICE_DEAD;
	expect_waiting(rig, dirty, WEIR_E_DEVICE_DEAD);
	assert_int_equal(rig->queue.tail.value_, 1);
	free(rig);
	rig = open_rig();
	for (unsigned step = 0; step < 2; step++) { /* no slot; the set is another lane's */
		rig->queue_slots[0].sequence.value_ = step == 0;
		rig->policy.lock.value_ = step;
		registered =
			weir_share_try_register(1, 1, &rig->lines, &rig->extent, 0, address_of(rig->buffer));
		assert_int_equal(registered.outcome, WEIR_SHARE_RETRY);
		assert_int_equal(rig->policy.lock.value_, step);
		assert_int_equal(rig->queue.tail.value_, 0);
		for (unsigned i = 0; i < WEIR_WAYS; i++)
			assert_true((rig->entries.word[i].value_ & ~(uint64_t)WEIR_SHARE_VERSIONS) == 0);
	}
	free(rig);
}

static void test_references_and_buckets_are_bounded(void **state)
{
	struct rig *rig = open_rig();
	struct weir_registered registered;

	(void)state;
	bring_to(rig, "Shared", WEIR_SHARE_MOST);
	assert_int_equal(weir_share_try_join(&rig->share, weir_share_find(&rig->share, KEY)), 0);
	assert_int_equal(weir_share_refs(word_of(rig)), WEIR_SHARE_MOST);
	/* One more does not wait for any of them: it has a copy. */
	assert_int_equal(weir_share_try_guest(&rig->share, &rig->disk, weir_share_find(&rig->share, KEY),
					      weir_shared_none(0, WEIR_E_LOCKED), WEIR_FOREVER)
				 .kind,
			 WEIR_SHARED_COPY);
	assert_int_equal(weir_load_u64_relaxed_dev(&rig->share.unshared), 1);
	assert_int_equal(weir_share_refs(word_of(rig)), WEIR_SHARE_MOST);
	rig->disk.blocks = 64;
	for (unsigned line = 1; line < WEIR_WAYS; line++) {
		rig->words.word[0].value_ = (uint64_t)(KEY + line) << WEIR_LINE_KEY_SHIFT | WEIR_LINE_READY;
		registered = weir_share_try_register(1, 1, &rig->lines, &rig->extent, line,
						     address_of(rig->buffer));
		assert_int_equal(registered.outcome, WEIR_SHARE_DONE);
	}
	rig->words.word[0].value_ = (uint64_t)(KEY + 4) << WEIR_LINE_KEY_SHIFT | WEIR_LINE_READY;
	registered = weir_share_try_register(1, 1, &rig->lines, &rig->extent, 4, address_of(rig->buffer));
	assert_int_equal(registered.outcome, WEIR_SHARE_FULL);
	assert_int_equal(weir_line_state(rig->words.word[0].value_),
			 WEIR_LINE_READY); /* it stays in the cache */
	free(rig);
}

/* How an entry comes to be empty again. */
enum { CLEAN, CHANGED, FAILED, UNSENT, WAYS_TO_GO };

static void come_and_go(struct rig *rig, unsigned way)
{
	if (way == UNSENT) {
		rig->queue_slots[0].sequence.value_ = 1; /* another's command */
		assert_int_equal(
			weir_share_try_register(1, 1, &rig->lines, &rig->extent, 0, address_of(rig->buffer))
				.outcome,
			WEIR_SHARE_RETRY);
		rig->queue_slots[0].sequence.value_ = 0;
		return;
	}
	acquire(rig);
	if (way == FAILED)
		weir_complete(rig->queue_slots[0].target_kind, rig->queue_slots[0].target,
			      rig->queue_slots[0].status, WEIR_E_RANGE, WEIR_PATH_DIRECT);
	else
		fill(rig);
	if (way == CHANGED)
		modify(rig);
	let_go(rig);
}

/* An empty entry keeps its version, however it became empty, and the next one there has another: who reads
 * without a hold sees by that that the buffer is not the one that it found, of the same line, too. */
static void test_an_entry_never_comes_again(void **state)
{
	static const uint64_t before[] = { 0, 5, 0xfe, 0xff };

	(void)state;
	for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++)
		for (unsigned way = 0; way < WAYS_TO_GO; way++) {
			struct rig *rig = open_rig();
			uint64_t next = ((before[i] + 1) * WEIR_SHARE_VERSION) & WEIR_SHARE_VERSIONS;
			struct weir_share_found found;

			for (unsigned k = 0; k < WEIR_WAYS; k++)
				rig->entries.word[k].value_ = before[i] * WEIR_SHARE_VERSION;
			come_and_go(rig, way);
			assert_true(word_of(rig) == next);
			acquire(rig);
			found = weir_share_find(&rig->share, KEY);
			assert_true((found.word & WEIR_SHARE_VERSIONS) ==
				    ((next + WEIR_SHARE_VERSION) & WEIR_SHARE_VERSIONS));
			found.word = (found.word & ~(uint64_t)WEIR_SHARE_VERSIONS) | next;
			assert_false(weir_share_unchanged(&rig->share, found));
			free(rig);
		}
}

/* A line that goes to a buffer, and a claim that comes to nothing, leave the version of the line. */
static void test_lines_that_go_keep_their_version(void **state)
{
	(void)state;
	for (uint32_t line_state = WEIR_LINE_MODIFIED; line_state <= WEIR_LINE_READY; line_state += 2) {
		struct rig *rig = open_rig();

		put_line(rig, line_state);
		rig->words.word[1].value_ += 7 * WEIR_LINE_VERSION;
		acquire(rig);
		assert_true(rig->words.word[1].value_ == 7 * WEIR_LINE_VERSION);
		put_line(rig, WEIR_LINE_BUSY);
		rig->words.word[1].value_ += 8 * WEIR_LINE_VERSION + WEIR_LINE_PIN;
		weir_line_unreserve(&rig->lines, 0, 1);
		assert_true(rig->words.word[1].value_ == 8 * WEIR_LINE_VERSION);
		free(rig);
	}
}

/* What is not there yet, or could not be had, is not changed. */
static void test_no_change_before_it_is_there(void **state)
{
	for (unsigned fails = 0; fails < 2; fails++) {
		struct rig *rig = open_rig();
		struct weir_writer writer = { .array = { .lines = address_of(&rig->lines),
							 .extent = rig->extent } };
		struct weir_shared hold = weir_shared_none(0, WEIR_OK);

		(void)state;
		acquire(rig);
		hold.kind = WEIR_SHARED_OWNER;
		hold.position = rig->position;
		assert_int_equal(weir_share_modify(&writer, hold), WEIR_E_LOCKED);
		expect_state(rig, 0, "Exclusive", 1);
		if (fails)
			weir_complete(rig->queue_slots[0].target_kind, rig->queue_slots[0].target,
				      rig->queue_slots[0].status, WEIR_E_RANGE, WEIR_PATH_DIRECT);
		else
			fill(rig);
		assert_int_equal(weir_share_modify(&writer, hold), fails ? WEIR_E_RANGE : WEIR_OK);
		expect_state(rig, 0, fails ? "Exclusive" : "Modified", 1);
		free(rig);
	}
}

/* A wait for a copy ends once its storage is dead and nobody writes to its event any more: with why, and long
 * before its time is over. */
static void test_a_copy_of_a_dead_storage(void **state)
{
	static const uint32_t marks[] = { WEIR_QUEUE_UNSAFE, WEIR_QUEUE_ENDED };

	(void)state;
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		struct weir_shared copy = weir_shared_none(0, WEIR_OK);
		struct rig *rig = open_rig();
		struct weir_array array = { .lines = address_of(&rig->lines), .extent = rig->extent };
		struct weir_event event;

		weir_event_reset(&event);
		copy.kind = WEIR_SHARED_COPY;
		copy.event = address_of(&event);
		assert_int_equal(weir_share_wait(&array, copy, 1000), WEIR_E_TIMEOUT);
		rig->queue.dead.value_ = WEIR_E_DEVICE_DEAD | marks[i];
		assert_int_equal(weir_share_wait(&array, copy, 100000), WEIR_E_DEVICE_DEAD);
		free(rig);
	}
}

/* What a wait for line 0 makes of its entry, which failed. */
static weir_status retry(struct rig *rig)
{
	struct weir_share_found found = weir_share_find(&rig->share, KEY);

	return weir_share_retry(1, weir_share_probe(&rig->share, found), found, &rig->lines, &rig->extent, 0,
				WEIR_FOREVER);
}

/* The command of an entry that the controller refused for now is submitted again, to the same buffer, as
 * often as its storage allows. A try that finds no slot is none. */
static void test_a_refused_entry_has_all_its_tries(void **state)
{
	enum { TRIES = 2 };
	weir_status refused = (uint32_t)WEIR_STATUS_NVME | (uint32_t)WEIR_GROUP_REQUEST |
			      (uint32_t)NVME_STATUS_NAMESPACE_NOT_READY;
	struct rig *rig = open_rig();

	(void)state;
	rig->disk.retry = TRIES;
	acquire(rig);
	for (unsigned tries = 0; tries <= TRIES; tries++) {
		WEIR_GLOBAL struct weir_slot *slot = &rig->queue_slots[tries];

		assert_int_equal(rig->queue.tail.value_, tries + 1);
		assert_int_equal(rig->sq[tries].cdw0 & 0xff, NVME_OPCODE_READ);
		assert_true(rig->sq[tries].prp1 == address_of(rig->buffer));
		weir_complete(slot->target_kind, slot->target, slot->status, refused, WEIR_PATH_DIRECT);
		slot->sequence.value_ = 2;
		for (unsigned vain = 0; tries < TRIES && vain < 5; vain++) {
			rig->queue_slots[tries + 1].sequence.value_ = 1; /* another's command */
			assert_int_equal(retry(rig), WEIR_E_LOCKED);
			rig->queue_slots[tries + 1].sequence.value_ = 0;
			assert_int_equal(weir_line_state(word_of(rig)), WEIR_LINE_FAILED);
			assert_int_equal(rig->queue.retried.value_, tries);
		}
		assert_int_equal(retry(rig), tries < TRIES ? (uint32_t)WEIR_E_LOCKED : refused);
		assert_int_equal(weir_line_state(word_of(rig)),
				 tries < TRIES ? WEIR_LINE_BUSY : WEIR_LINE_FAILED);
		assert_int_equal(rig->queue.retried.value_, tries < TRIES ? tries + 1 : TRIES);
		assert_int_equal(weir_share_refs(word_of(rig)), 1);
	}
	free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_row_of_the_table),
		cmocka_unit_test(test_a_last_holder_keeps_a_line_that_has_no_room),
		cmocka_unit_test(test_a_line_moves_as_far_as_its_storage_goes),
		cmocka_unit_test(test_steps_that_come_to_nothing),
		cmocka_unit_test(test_references_and_buckets_are_bounded),
		cmocka_unit_test(test_an_entry_never_comes_again),
		cmocka_unit_test(test_lines_that_go_keep_their_version),
		cmocka_unit_test(test_no_change_before_it_is_there),
		cmocka_unit_test(test_a_copy_of_a_dead_storage),
		cmocka_unit_test(test_a_refused_entry_has_all_its_tries),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("share_table", tests, NULL, NULL);
}
