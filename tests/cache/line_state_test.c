/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of docs/cache.md, line by line: what each event makes of each state of a line. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/core/cache/flush.h>

enum {
	KEY = 5,
	OTHER_KEY = 9,
	LINE_BYTES = 512,
	WAY = 2,
	COLUMNS = 16,
	FAULT = WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | 0x280
};

/** struct cache - one set on the host, whose other lines are all pinned */
struct cache {
	struct weir_lines lines;
	struct weir_set set;
	struct weir_set_policy policy;
	struct weir_fault fault;
	unsigned char data[WEIR_WAYS * LINE_BYTES];
};

static struct cache cache __attribute__((aligned(128)));

static const struct {
	const char *name;
	u64 bits;
} states[] = {
	{ "INVALID", WEIR_LINE_INVALID },     { "BUSY", WEIR_LINE_BUSY },
	{ "FAILED", WEIR_LINE_FAILED },       { "READY", WEIR_LINE_READY },
	{ "MODIFIED", WEIR_LINE_MODIFIED },   { "WRITING", WEIR_LINE_WRITING },
	{ "REWRITTEN", WEIR_LINE_REWRITTEN }, { "unwritable", WEIR_LINE_MODIFIED },
};

enum { STATES = sizeof(states) / sizeof(*states) };

static WEIR_GLOBAL weir_shared_u64 *word(void)
{
	return &cache.set.word[WAY];
}

static u64 seen(void)
{
	return weir_load_u64_relaxed_dev(word());
}

/* BUSY is its issuer's, who holds a pin. */
static void lay_out(size_t state, u64 pins)
{
	u64 bits = states[state].bits;

	memset(&cache, 0, sizeof(cache));
	cache.lines = (struct weir_lines){ .line_log2 = 9,
					   .sets = 1,
					   .set_magic = ~(u64)0,
					   .words = WEIR_ADDR(&cache.set),
					   .policies = WEIR_ADDR(&cache.policy),
					   .data = WEIR_ADDR(cache.data),
					   .fault = WEIR_ADDR(&cache.fault) };
	for (u32 way = 0; way < WEIR_WAYS; way++)
		weir_store_u64_relaxed_dev(&cache.set.word[way], (u64)(100 + way) << WEIR_LINE_KEY_SHIFT |
									 WEIR_LINE_PIN | WEIR_LINE_READY);
	pins += bits == WEIR_LINE_BUSY;
	weir_store_u64_relaxed_dev(word(), (bits == WEIR_LINE_INVALID ? 0 : (u64)KEY << WEIR_LINE_KEY_SHIFT) |
						   7 * WEIR_LINE_VERSION | pins * WEIR_LINE_PIN | bits);
	if (!strcmp(states[state].name, "unwritable"))
		weir_store_u32_relaxed_dev(&cache.policy.status[WAY], FAULT);
	if (bits == WEIR_LINE_FAILED)
		weir_store_u32_relaxed_dev(&cache.policy.status[WAY], FAULT);
}

/* The events, as the core does them. */
static void event_reserve(void)
{
	(void)weir_set_try_reserve(&cache.lines, 0, OTHER_KEY, 0);
}

static void finish(u32 kind, weir_status status)
{
	weir_addr status_word = WEIR_ADDR(&cache.policy.status[WAY]);

	weir_line_outcome(kind, status_word, status);
	weir_fence_to_lanes();
	weir_complete(kind, WEIR_ADDR(word()), status_word, status, WEIR_PATH_DIRECT);
}

static void event_fetched(void)
{
	finish(WEIR_TARGET_LINE, WEIR_OK);
}

static void event_fetch_failed(void)
{
	finish(WEIR_TARGET_LINE, FAULT);
}

static void event_fetch_unsent(void)
{
	weir_line_cancel(&cache.lines, 0, WAY);
}

static void event_put(void)
{
	u64 pinned = weir_line_readable(seen()) ? weir_line_try_pin(word(), seen()) : 0;

	if (pinned)
		weir_line_modified(word(), pinned);
}

static void event_overwritten(void)
{
	weir_line_modified(word(), seen());
}

static void event_write_back(void)
{
	if (weir_line_state(seen()) == WEIR_LINE_MODIFIED)
		(void)weir_line_try_write_back(&cache.lines, 0, WAY, seen());
}

static void event_written(void)
{
	finish(WEIR_TARGET_WRITTEN, WEIR_OK);
}

static void event_write_failed(void)
{
	finish(WEIR_TARGET_WRITTEN, FAULT);
}

static void event_write_unsent(void)
{
	weir_line_take_back(&cache.lines, 0, WAY);
}

static void event_drop(void)
{
	struct weir_sweeper lane = { .key = KEY };
	struct weir_found found = { .word = seen(), .way = WAY };

	(void)weir_sweep_drop(lane, &cache.lines, 0, found);
}

static const struct {
	const char *name;
	void (*happen)(void);
} events[] = {
	{ "reserve", event_reserve },
	{ "fetched", event_fetched },
	{ "fetch failed", event_fetch_failed },
	{ "fetch unsent", event_fetch_unsent },
	{ "put", event_put },
	{ "overwritten", event_overwritten },
	{ "write-back", event_write_back },
	{ "written", event_written },
	{ "write failed", event_write_failed },
	{ "write unsent", event_write_unsent },
	{ "drop", event_drop },
};

enum { EVENTS = sizeof(events) / sizeof(*events) };

static size_t state_named(const char *name)
{
	for (size_t i = 0; i < STATES; i++)
		if (!strcmp(states[i].name, name))
			return i;
	fail_msg("the table names a state \"%s\"", name);
	return 0;
}

/* The cells of a row of the table, trimmed, in place. Return: how many. */
static size_t split(char *row, char *cells[COLUMNS])
{
	size_t count = 0;

	for (char *at = row + 1, *end; (end = strchr(at, '|')) && count < COLUMNS; at = end + 1) {
		*end = '\0';
		while (isspace((unsigned char)*at))
			at++;
		for (char *last = end; last > at && isspace((unsigned char)last[-1]);)
			*--last = '\0';
		cells[count++] = at;
	}
	return count;
}

/* What the word must be afterwards, where the cell names a state. */
static void check(const char *row, const char *event, const char *cell, u64 before)
{
	u64 after = seen(), key = (u64)KEY << WEIR_LINE_KEY_SHIFT;
	size_t state = state_named(cell);

	if (weir_line_state(after) != states[state].bits)
		fail_msg("%s, %s: becomes %u, the table says %s", row, event, weir_line_state(after), cell);
	if (!strcmp(event, "reserve")) /* another block, the next version, a pin */
		assert_true(after == ((u64)OTHER_KEY << WEIR_LINE_KEY_SHIFT | 8 * WEIR_LINE_VERSION |
				      WEIR_LINE_PIN | WEIR_LINE_USED | WEIR_LINE_BUSY));
	else if (!strcmp(cell, "INVALID"))
		assert_true(after == 7 * WEIR_LINE_VERSION);
	else if (!strcmp(event, "overwritten"))
		assert_true(after == (key | 7 * WEIR_LINE_VERSION | WEIR_LINE_MODIFIED));
	else
		assert_true(((after ^ before) & ~(WEIR_LINE_STATE | WEIR_LINE_USED)) == 0);
	assert_int_equal(
		weir_load_u32_relaxed_dev(&cache.policy.status[WAY]),
		!strcmp(cell, "FAILED") || !strcmp(cell, "unwritable") || !strcmp(event, "write failed")
			? (u32)FAULT
		: !strcmp(event, "write unsent") ? WEIR_STATUS_UNSENT
		: !strcmp(event, "drop") && strcmp(row, "READY") && strcmp(row, "MODIFIED") ? (u32)FAULT
											    : 0);
}

/* What the host is told of lines that came and went: as much as happened, less what came to nothing. */
static void check_counts(const char *row, const char *event, const char *cell)
{
	u64 unsent = !strcmp(event, "fetch unsent");
	const struct {
		WEIR_GLOBAL weir_shared_u64 *counter;
		u64 expected;
	} counts[] = {
		{ &cache.lines.misses, 0 - unsent },
		{ &cache.lines.retracted, unsent },
		{ &cache.lines.evictions, !strcmp(event, "reserve") && !strcmp(row, "READY") },
		{ &cache.lines.writebacks, (u64)!strcmp(cell, "WRITING") - !strcmp(event, "write unsent") },
		{ &cache.lines.write_errors, 0 },
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		if (weir_load_u64_relaxed_dev(counts[i].counter) != counts[i].expected)
			fail_msg("%s, %s: count %zu is %lld", row, event, i,
				 (long long)weir_load_u64_relaxed_dev(counts[i].counter));
}

static void check_cell(char *const *cells, char *const *head, size_t column)
{
	for (size_t e = 0; e < EVENTS; e++) {
		u64 before;

		if (strcmp(events[e].name, head[column]) || !*cells[column])
			continue;
		lay_out(state_named(cells[0]), 0);
		before = seen();
		events[e].happen();
		check_counts(cells[0], head[column], cells[column]);
		if (strcmp(cells[column], "–"))
			check(cells[0], head[column], cells[column], before);
		else if (seen() != before)
			fail_msg("%s, %s: %#llx becomes %#llx, the table says nothing happens", cells[0],
				 head[column], (unsigned long long)before, (unsigned long long)seen());
		return;
	}
	if (*cells[column])
		fail_msg("the table has an event \"%s\"", head[column]);
}

static void test_the_table(void **state)
{
	FILE *file = fopen(WEIR_DOCS "/cache.md", "r");
	char line[1024], header[1024] = "", *head[COLUMNS], *cells[COLUMNS];
	size_t columns = 0, rows = 0;

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "| state | bits |", 16)) {
			memcpy(header, line, sizeof(line));
			columns = split(header, head);
		} else if (columns && *line == '|' && line[1] == ' ') {
			assert_int_equal(split(line, cells), columns);
			assert_int_equal(strtoul(cells[1], NULL, 10), states[state_named(cells[0])].bits);
			for (size_t c = 2; c < columns; c++)
				check_cell(cells, head, c);
			rows++;
		} else if (columns && *line != '|') {
			break;
		}
	}
	fclose(file);
	assert_int_equal(columns, EVENTS + 2);
	assert_int_equal(rows, STATES);
}

/* Nothing that a claim or a drop may take is pinned, and nobody has more than 255 pins. */
static void test_pins(void **state)
{
	(void)state;
	for (size_t s = 0; s < STATES; s++) {
		u64 before;

		lay_out(s, 1);
		before = seen();
		event_reserve();
		event_drop();
		assert_true(seen() == before);
	}
	lay_out(state_named("READY"), 254);
	assert_true(weir_line_try_pin(word(), seen()) != 0);
	assert_true(weir_line_try_pin(word(), seen()) == 0);
}

/* An error is told once; then the line can be written back again, whose outcome takes its place. */
static void test_errors_are_consumed(void **state)
{
	(void)state;
	lay_out(state_named("unwritable"), 0);
	assert_int_equal(weir_line_take_error(&cache.lines, 0, WAY), FAULT);
	assert_int_equal(weir_line_take_error(&cache.lines, 0, WAY), FAULT);
	assert_int_equal(weir_load_u64_relaxed_dev(&cache.lines.write_errors), 1);
	event_write_back();
	assert_int_equal(weir_line_state(seen()), WEIR_LINE_WRITING);
	event_put(); /* by the way: two changes where somebody else was in between */
	assert_int_equal(weir_line_state(seen()), WEIR_LINE_REWRITTEN);
	event_written();
	assert_int_equal(weir_line_state(seen()), WEIR_LINE_MODIFIED);
	assert_int_equal(weir_line_take_error(&cache.lines, 0, WAY), WEIR_OK);
}

/* A mark that finds the word changed since it was pinned. */
static void test_a_mark_that_meets_another(void **state)
{
	u64 pinned;

	(void)state;
	lay_out(state_named("READY"), 0);
	pinned = weir_line_try_pin(word(), seen());
	event_put(); /* somebody else's */
	event_write_back();
	weir_line_modified(word(), pinned);
	assert_int_equal(weir_line_state(seen()), WEIR_LINE_REWRITTEN);
	assert_int_equal(seen() & WEIR_LINE_PINS, 0);
}

/* A flush saw the line, which has been written back since, and has made room for one that cannot be read. */
static void test_a_flush_takes_no_error_of_another(void **state)
{
	struct weir_disk disk = { .block_log2 = 9 };
	struct weir_extent extent = {
		.disks = WEIR_ADDR(&disk), .disk_count = 1, .key_base = 1, .lines = 100
	};
	struct weir_sweep sweep = { .first_key = 1, .end_key = 101, .kind = WEIR_SWEEP_FLUSH };
	struct weir_sweeper lane = { .key = KEY, .deadline = ~(u64)0 };
	struct weir_found found = { .way = WAY };

	(void)state;
	for (u32 joined = 0; joined < 2; joined++) {
		lay_out(state_named("MODIFIED"), 0);
		weir_store_u64_relaxed_dev(&cache.lines.extents, WEIR_ADDR(&extent));
		weir_store_u32_relaxed_dev(&cache.lines.extent_count, 1);
		found.word = seen();
		event_write_back();
		event_written();
		event_reserve();
		event_fetch_failed();
		weir_line_unpin(&cache.set, WAY);
		lane.joined = joined;
		lane = weir_sweep_flush(lane, &cache.lines, sweep, 0, found);
		assert_int_equal(lane.result.status, WEIR_OK);
		assert_int_equal(lane.key, KEY); /* to be looked for again */
		assert_int_equal(weir_load_u32_relaxed_dev(&cache.policy.status[WAY]), FAULT);
		assert_int_equal(weir_load_u64_relaxed_dev(&cache.lines.write_errors), 0);
		lane = weir_sweep_iteration(lane, &cache.lines, sweep, 0);
		assert_int_equal(lane.key, 0);
		assert_int_equal(lane.result.status, WEIR_OK);
		lane.key = KEY;
	}
}

/* Four reads at once: of lines that are there the policy hears, and of no other. */
static void test_four_reads_are_heard_of(void **state)
{
	struct weir_four at = { { KEY * LINE_BYTES + 16, OTHER_KEY * LINE_BYTES, KEY * LINE_BYTES,
				  (KEY + 1) * LINE_BYTES } };
	struct weir_hits hits;

	(void)state;
	for (size_t i = 0; i < STATES; i++) {
		u64 before;
		u32 readable;

		lay_out(i, 0);
		before = seen();
		readable = before != 0 && weir_line_readable(before);
		cache.data[WAY * LINE_BYTES + 16] = 77;
		hits = weir_lines_try_four(&cache.lines, 0, at);
		assert_int_equal(hits.missing, readable ? 10 : 15);
		assert_true(!readable || hits.four.value[0] == 77);
		assert_true(seen() == (readable ? before | WEIR_LINE_USED : before));
		for (u32 way = 0; way < WEIR_WAYS; way++)
			assert_true(way == WAY ||
				    !(weir_load_u64_relaxed_dev(&cache.set.word[way]) & WEIR_LINE_USED));
	}
}

/* Of lines that are dirty, or there at all, a sweep takes those of its range, up to the last one. */
static void test_a_sweep_keeps_to_its_range(void **state)
{
	static const u32 kinds[] = { WEIR_SWEEP_FLUSH, WEIR_SWEEP_DROP };

	(void)state;
	for (u32 i = 0; i < 2; i++) {
		struct weir_sweep sweep = { .first_key = KEY, .end_key = KEY + 2, .kind = kinds[i] };

		for (u64 key = 1; key < 2 * KEY; key++)
			assert_int_equal(
				weir_sweep_minds(sweep, key << WEIR_LINE_KEY_SHIFT | WEIR_LINE_MODIFIED) != 0,
				key == KEY || key == KEY + 1);
	}
}

/* What could not be written is told by the storage and its block there, whatever lines and stripes are. */
static void test_which_blocks_could_not_be_written(void **state)
{
	enum { LINES = WEIR_SWEEP_NAMED + 2 };
	struct weir_disk disks[2] = { { .id = 3, .block_log2 = 9, .blocks = 1000 },
				      { .id = 7, .block_log2 = 9, .blocks = 2000 } };
	struct weir_extent extent = {
		.disks = WEIR_ADDR(disks), .disk_count = 2, .unit_log2 = 1, .key_base = 10, .lines = 100
	};
	struct weir_sweep_note note;
	struct weir_sweep sweep = {
		.first_key = 10, .end_key = 110, .kind = WEIR_SWEEP_FLUSH, .note = WEIR_ADDR(&note)
	};
	struct weir_sweeper lane = { .key = 0 };

	(void)state;
	memset(&note, 0, sizeof(note));
	lay_out(state_named("MODIFIED"), 0);
	cache.lines.line_log2 = 12;
	weir_store_u64_relaxed_dev(&cache.lines.extents, WEIR_ADDR(&extent));
	weir_store_u32_relaxed_dev(&cache.lines.extent_count, 1);
	for (u32 line = 0; line < LINES; line++) {
		lane.key = 10 + line;
		lane = weir_sweep_error(lane, &cache.lines, sweep, FAULT + line);
		assert_int_equal(lane.key, 0);
	}
	assert_int_equal(lane.result.key, 10);
	assert_int_equal(lane.result.status, FAULT);
	assert_int_equal(weir_load_u64_relaxed_dev(&note.failed), LINES);
	for (u32 line = 0; line < WEIR_SWEEP_NAMED; line++) {
		assert_int_equal(note.named[line].disk, line / 2 % 2 ? 7 : 3);
		assert_int_equal(note.named[line].status, FAULT + line);
		assert_int_equal(note.named[line].lba, (line / 4 * 2 + line % 2) * 8);
	}
	weir_line_blame(&cache.lines, 10 + 7, FAULT); /* the context tells of it likewise */
	assert_int_equal(cache.fault.disk, 7);
	assert_int_equal(cache.fault.source, WEIR_FAULT_WRITE);
	assert_int_equal(cache.fault.status, FAULT);
	assert_int_equal(cache.fault.position, 3 * 8);
	assert_int_equal(cache.fault.limit, 2000);
	/* those that are not named leave no trace in what lies behind the names */
	assert_true(weir_load_u64_relaxed_dev(&note.late) == 0);
	for (u32 i = 0; i < WEIR_SWEEP_LATE; i++)
		assert_int_equal(weir_load_u32_relaxed_dev(&note.waited[i]), 0);
}

/* Which lines a sweep has to do with, by their states; and of which one that gives up has lost something. */
static void test_which_lines_concern_a_sweep(void **state)
{
	struct weir_sweep sweep = { .first_key = 1, .end_key = 101 };

	(void)state;
	for (size_t s = 0; s < STATES; s++)
		for (sweep.kind = WEIR_SWEEP_FLUSH; sweep.kind <= WEIR_SWEEP_DROP; sweep.kind++) {
			u64 bits = states[s].bits;
			u32 unwritten = (bits & WEIR_LINE_BIT_READY) && bits != WEIR_LINE_READY,
			    drops = sweep.kind == WEIR_SWEEP_DROP;
			struct weir_sweeper lane = weir_sweep_begin(sweep);

			lay_out(s, 0);
			assert_int_equal(weir_sweep_minds(sweep, seen()) != 0,
					 drops ? bits != WEIR_LINE_INVALID
					       : unwritten || (bits == WEIR_LINE_BUSY &&
							       sweep.kind == WEIR_SWEEP_DRAIN));
			lane.key = KEY;
			lane = weir_sweep_give_up(lane, &cache.lines, sweep, 0, WEIR_E_TIMEOUT);
			assert_int_equal(lane.key, 0);
			assert_int_equal(lane.result.status,
					 unwritten || drops ? (u32)WEIR_E_TIMEOUT : WEIR_OK);
		}
}

/* A line's tries, and the write-back that it waits for, are no other line's. */
static void test_each_line_of_a_sweep_begins_anew(void **state)
{
	struct weir_disk disk = { .block_log2 = 9, .timeout_ns = 1000 };
	struct weir_extent extent = {
		.disks = WEIR_ADDR(&disk), .disk_count = 1, .key_base = 1, .lines = 100
	};
	struct weir_sweep sweep = { .first_key = 1, .end_key = 101, .stride = 1, .kind = WEIR_SWEEP_FLUSH };
	struct weir_sweeper lane = weir_sweep_begin(sweep);

	(void)state;
	lay_out(state_named("MODIFIED"), 0);
	weir_store_u64_relaxed_dev(&cache.lines.extents, WEIR_ADDR(&extent));
	weir_store_u32_relaxed_dev(&cache.lines.extent_count, 1);
	lane.again = 1 + 2 * WEIR_RETRY_ONE;
	lane.joined = 1;
	lane.deadline = 1;
	lane = weir_sweep_next(lane, &cache.lines, sweep, weir_sweep_slots(&cache.lines, sweep));
	assert_int_equal(lane.key, KEY);
	assert_int_equal(lane.slot, WAY + 1);
	assert_int_equal(lane.again, 0);
	assert_int_equal(lane.joined, 0);
	assert_true(lane.deadline > 1);
	lane.key = 0;
	lane = weir_sweep_next(lane, &cache.lines, sweep, WEIR_WAYS);
	assert_int_equal(lane.key, 0);
	assert_int_equal(lane.slot, WEIR_WAYS);
}

/* A storage that did not answer in time is the one that is noted, wherever its number falls, and no other. */
static void test_who_was_late(void **state)
{
	static const u32 late[] = { 0, 1, 5, WEIR_SWEEP_LATE - 1, 2 * WEIR_SWEEP_LATE + 5, 9 };
	struct weir_sweep_note note;
	struct weir_sweep sweep = { .note = WEIR_ADDR(&note) };

	(void)state;
	memset(&note, 0, sizeof(note));
	for (size_t i = 0; i < sizeof(late) / sizeof(*late); i++) {
		assert_int_equal(weir_sweep_expired(sweep, late[i]), 0);
		weir_sweep_was_expired(sweep, late[i]);
		for (u32 id = 0; id < 3 * WEIR_SWEEP_LATE; id++) {
			u32 noted = 0;

			for (size_t k = 0; k <= i; k++)
				noted |= late[k] == id;
			assert_int_equal(weir_sweep_expired(sweep, id), noted);
		}
	}
	assert_true(weir_load_u64_relaxed_dev(&note.late) != 0);
	sweep.note = 0;
	weir_sweep_was_expired(sweep, 1);
	assert_int_equal(weir_sweep_expired(sweep, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_table),
		cmocka_unit_test(test_pins),
		cmocka_unit_test(test_errors_are_consumed),
		cmocka_unit_test(test_a_mark_that_meets_another),
		cmocka_unit_test(test_a_flush_takes_no_error_of_another),
		cmocka_unit_test(test_four_reads_are_heard_of),
		cmocka_unit_test(test_a_sweep_keeps_to_its_range),
		cmocka_unit_test(test_which_blocks_could_not_be_written),
		cmocka_unit_test(test_which_lines_concern_a_sweep),
		cmocka_unit_test(test_each_line_of_a_sweep_begins_anew),
		cmocka_unit_test(test_who_was_late),
	};

	return cmocka_run_group_tests_name("line_state", tests, NULL, NULL);
}
