/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of docs/cache.md about lines of a tier: what each event that one lane does by itself makes of
 * each state. */
#ifndef WEIR_TIER
#define WEIR_TIER
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/core/cache/flush.h>
#include <weir/core/share/sharing.h>

enum { KEY = 5, OTHER_KEY = 9, LINE_BYTES = 512, WAY = 2, CELLS = 12 };

/** struct cache - a set of a tier behind a set of a cache, whose other lines are being copied */
struct cache {
	struct weir_lines lines;
	struct weir_tier tier;
	struct weir_set set;
	unsigned char data[WEIR_WAYS * LINE_BYTES];
};

static struct cache cache __attribute__((aligned(128)));

static const struct {
	const char *name;
	u64 bits;
} states[] = {
	{ "INVALID", WEIR_LINE_INVALID },
	{ "BUSY", WEIR_LINE_BUSY },
	{ "READY", WEIR_LINE_READY },
	{ "pinned", WEIR_LINE_READY | WEIR_LINE_PIN },
};

enum { STATES = sizeof(states) / sizeof(*states) };

static weir_addr slot(void)
{
	return WEIR_ADDR(&cache.data[WAY * LINE_BYTES]);
}

static void lay_out(size_t state)
{
	u64 bits = states[state].bits;

	memset(&cache, 0, sizeof(cache));
	cache.tier = (struct weir_tier){ .sets = 1,
					 .words = WEIR_ADDR(&cache.set),
					 .data = WEIR_ADDR(cache.data) };
	cache.lines = (struct weir_lines){
		.line_log2 = 9, .sets = 1, .set_magic = ~(u64)0, .tier = WEIR_ADDR(&cache.tier)
	};
	for (u32 way = 0; way < WEIR_WAYS; way++)
		weir_store_u64_relaxed_dev(&cache.set.word[way],
					   (u64)(100 + way) << WEIR_LINE_KEY_SHIFT | WEIR_LINE_BUSY);
	weir_store_u64_relaxed_dev(&cache.set.word[WAY],
				   (bits == WEIR_LINE_INVALID ? 0 : (u64)KEY << WEIR_LINE_KEY_SHIFT) |
					   7 * WEIR_LINE_VERSION | bits);
}

static void event_reserved(void)
{
	weir_addr down =
		weir_tier_reserve(&cache.lines, 0, (u64)OTHER_KEY << WEIR_LINE_KEY_SHIFT | WEIR_LINE_READY);

	assert_true(down == slot() || down == WEIR_TIER_DROPPED);
}

static void event_given_back(void)
{
	weir_tier_unreserve(&cache.lines, slot());
}

static void event_consumed(void)
{
	weir_addr up = weir_tier_take(&cache.lines, 0, KEY, 0);

	assert_true(up == slot() || up == 0);
}

static void event_gone_up(void)
{
	weir_tier_consumed(&cache.lines, slot());
}

static void event_dropped(void)
{
	u64 word = weir_load_u64_relaxed_dev(&cache.set.word[WAY]);

	assert_int_equal(weir_tier_try_drop(&cache.lines, 0, KEY), weir_line_evictable(word));
}

static const struct {
	const char *name;
	void (*run)(void);
} events[] = {
	{ "reserved", event_reserved }, { "given back", event_given_back }, { "taken", event_consumed },
	{ "gone up", event_gone_up },   { "dropped", event_dropped },
};

enum { EVENTS = sizeof(events) / sizeof(*events) };

/* What the line is now, as the table calls it. */
static const char *state_now(void)
{
	u64 word = weir_load_u64_relaxed_dev(&cache.set.word[WAY]);

	for (size_t i = 0; i < STATES; i++)
		if ((word & (WEIR_LINE_STATE | WEIR_LINE_PINS)) == states[i].bits)
			return states[i].name;
	return "?";
}

static size_t split(char *line, char **cells)
{
	size_t count = 0;

	for (char *cell = strtok(line, "|\n"); cell && count < CELLS; cell = strtok(NULL, "|\n")) {
		cell += strspn(cell, " ");
		for (size_t length = strlen(cell); length && cell[length - 1] == ' ';)
			cell[--length] = 0;
		cells[count++] = cell;
	}
	return count;
}

/* A cell: the state after the event, a dash if that stays, or nothing if the event cannot come. */
static unsigned check_cell(size_t state, const char *event, const char *cell)
{
	for (size_t e = 0; e < EVENTS && *cell; e++) {
		const char *expected = cell;

		if (strcmp(events[e].name, event) != 0)
			continue;
		lay_out(state);
		events[e].run();
		if (!strcmp(cell, "–"))
			expected = states[state].name;
		if (strncmp(expected, state_now(), strlen(state_now())) != 0)
			fail_msg("%s, %s: %s, not %s", states[state].name, event, state_now(), expected);
		return 1;
	}
	return 0;
}

static void test_the_table(void **unused)
{
	FILE *file = fopen(WEIR_DOCS "/cache.md", "r");
	char line[1024], header[1024] = "", *head[CELLS], *cells[CELLS];
	size_t columns = 0, rows = 0, checked = 0;

	(void)unused;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "| state | bits | reserved |", 27)) {
			memcpy(header, line, sizeof(line));
			columns = split(header, head);
		} else if (columns && *line == '|' && line[1] == ' ') {
			assert_int_equal(split(line, cells), columns);
			assert_string_equal(cells[0], states[rows].name);
			assert_int_equal(strtoul(cells[1], NULL, 10), states[rows].bits & WEIR_LINE_STATE);
			for (size_t c = 2; c < columns; c++)
				checked += check_cell(rows, head[c], cells[c]);
			rows++;
		} else if (columns && *line != '|') {
			break;
		}
	}
	fclose(file);
	assert_int_equal(rows, STATES);
	assert_int_equal(checked, 14);
}

/* Lines that come are newer than all others of their set, and the oldest one goes, wherever versions begin
 * and wrap. */
static void test_the_oldest_goes(void **unused)
{
	(void)unused;
	for (u64 begin = 0; begin <= 4095; begin += 819) {
		u64 words[WEIR_WAYS];
		struct weir_probe probe;

		for (u32 way = 0; way < WEIR_WAYS; way++)
			words[way] = begin * WEIR_LINE_VERSION | WEIR_LINE_INVALID;
		for (u64 step = 0; step < 9000; step++) {
			u32 way;

			probe.low.low = words[0];
			probe.low.high = words[1];
			probe.high.low = words[2];
			probe.high.high = words[3];
			way = weir_tier_choose(probe);
			assert_int_equal(way, step % WEIR_WAYS);
			words[way] =
				(step + 1) << WEIR_LINE_KEY_SHIFT | weir_tier_stamp(probe) | WEIR_LINE_READY;
			for (u32 i = 0; i < WEIR_WAYS; i++)
				assert_true(i == way || (words[i] & WEIR_LINE_VERSIONS) !=
								(words[way] & WEIR_LINE_VERSIONS));
		}
	}
}

/* A line that is copied up and stays is the newest from then on. */
static void test_who_is_used_stays(void **unused)
{
	(void)unused;
	for (u64 begin = 0; begin <= 4095; begin += 819)
		for (u32 used = 0; used < WEIR_WAYS; used++) {
			lay_out(0);
			for (u32 way = 0; way < WEIR_WAYS; way++)
				weir_store_u64_relaxed_dev(
					&cache.set.word[way],
					(u64)(100 + way) << WEIR_LINE_KEY_SHIFT |
						((begin + way) * WEIR_LINE_VERSION & WEIR_LINE_VERSIONS) |
						WEIR_LINE_READY);
			assert_int_equal(weir_tier_choose(weir_set_probe(&cache.set)), 0);
			assert_true(weir_tier_take(&cache.lines, 0, 100 + used, 0) ==
				    WEIR_ADDR(&cache.data[used * LINE_BYTES]));
			assert_true(weir_load_u64_relaxed_dev(&cache.set.word[used]) & WEIR_LINE_PINS);
			weir_store_u64_relaxed_dev(&cache.set.word[used],
						   weir_load_u64_relaxed_dev(&cache.set.word[used]) -
							   WEIR_LINE_PIN);
			for (u32 next = 0; next < WEIR_WAYS; next++) {
				u32 way = weir_tier_choose(weir_set_probe(&cache.set));

				assert_true(way < WEIR_WAYS && (way == used) == (next == WEIR_WAYS - 1));
				weir_add_u64_relaxed_dev(&cache.set.word[way], WEIR_LINE_PIN);
			}
		}
}

/* A line that is being copied is no place; an empty one is the first. */
static void test_places(void **unused)
{
	struct weir_probe probe;

	(void)unused;
	probe.low.low = (u64)1 << WEIR_LINE_KEY_SHIFT | WEIR_LINE_BUSY;
	probe.low.high = (u64)2 << WEIR_LINE_KEY_SHIFT | WEIR_LINE_READY | WEIR_LINE_PIN;
	probe.high.low = probe.low.low;
	probe.high.high = probe.low.high;
	assert_int_equal(weir_tier_choose(probe), WEIR_WAYS);
	probe.high.low = (u64)3 << WEIR_LINE_KEY_SHIFT | WEIR_LINE_READY;
	assert_int_equal(weir_tier_choose(probe), 2);
	probe.high.high = 7 * WEIR_LINE_VERSION;
	assert_int_equal(weir_tier_choose(probe), 3);
}

/* Every set of a cache has sets of its tier, and all of them are some set's; where they are fewer, several
 * share one. */
static void test_shares_of_the_tier(void **unused)
{
	(void)unused;
	for (u64 sets = 1; sets <= 40; sets++)
		for (u64 behind = 1; behind <= 200; behind += 7) {
			u64 end = 0;

			lay_out(0);
			cache.lines.sets = sets;
			cache.lines.set_magic = ~(u64)0 / sets;
			cache.tier.sets = behind;
			for (u64 index = 0; index < sets; index++) {
				u64 first = weir_tier_first(&cache.lines, index),
				    count = weir_tier_count(&cache.lines, index);

				assert_true(first == end || (behind < sets && first + 1 == end));
				assert_true(count >= behind / sets && count <= behind / sets + 1);
				end = first + count;
			}
			assert_int_equal(end, behind);
		}
}

static void expect_counts(u64 hits, u64 kept, u64 dropped)
{
	assert_int_equal(weir_load_u64_relaxed_dev(&cache.tier.hits), hits);
	assert_int_equal(weir_load_u64_relaxed_dev(&cache.tier.kept), kept);
	assert_int_equal(weir_load_u64_relaxed_dev(&cache.tier.dropped), dropped);
}

/* What becomes of a line that makes room, in each state of the tier's: it goes down, or is there still, or is
 * lost, and is counted as that once it has made room. */
static void test_what_becomes_of_a_line(void **unused)
{
	static const struct {
		u64 key;
		const char *state;
		weir_addr down;
	} cases[] = {
		{ OTHER_KEY, "INVALID", 0 },
		{ OTHER_KEY, "READY", 0 },
		{ OTHER_KEY, "BUSY", WEIR_TIER_DROPPED },
		{ OTHER_KEY, "pinned", WEIR_TIER_DROPPED },
		{ KEY, "READY", WEIR_TIER_KEPT },
		{ KEY, "pinned", WEIR_TIER_KEPT },
		{ KEY, "BUSY", WEIR_TIER_KEPT },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		u64 old = cases[i].key << WEIR_LINE_KEY_SHIFT, before;
		weir_addr down;
		size_t state = 0;

		while (strcmp(states[state].name, cases[i].state) != 0)
			state++;
		lay_out(state);
		assert_true(weir_tier_reserve(&cache.lines, 0, old | WEIR_LINE_FAILED) == 0); /* of no use */
		before = weir_load_u64_relaxed_dev(&cache.set.word[WAY]);
		down = weir_tier_reserve(&cache.lines, 0, old | WEIR_LINE_READY);
		assert_true(down == (cases[i].down ? cases[i].down : slot()));
		expect_counts(0, 0, 0);
		assert_true(weir_tier_leaves(&cache.lines, down) == (cases[i].down ? 0 : slot()));
		expect_counts(0, cases[i].down == WEIR_TIER_KEPT, cases[i].down == WEIR_TIER_DROPPED);
		assert_true((weir_load_u64_relaxed_dev(&cache.set.word[WAY]) == before) ==
			    (cases[i].down != 0));
		weir_tier_unreserve(&cache.lines, down);
		assert_true(cases[i].down ||
			    weir_line_empty(weir_load_u64_relaxed_dev(&cache.set.word[WAY])));
		assert_true(!cases[i].down || weir_load_u64_relaxed_dev(&cache.set.word[WAY]) == before);
	}
	lay_out(3);
	weir_tier_consumed(&cache.lines, slot());
	expect_counts(1, 0, 0);
}

/* A set gives up its lines of a range, and those of its tier, but for what is in use: that is told, to be
 * come back for. */
static void test_sets_are_dropped(void **unused)
{
	static const struct {
		u64 key, bits;
		u32 goes;
	} cases[] = {
		{ KEY, WEIR_LINE_READY, 1 },
		{ KEY + 1, WEIR_LINE_READY | WEIR_LINE_USED, 1 },
		{ KEY, WEIR_LINE_MODIFIED, 1 },
		{ KEY, WEIR_LINE_FAILED, 1 },
		{ KEY, WEIR_LINE_READY | WEIR_LINE_PIN, 0 },
		{ KEY + 1, WEIR_LINE_BUSY | WEIR_LINE_PIN, 0 },
		{ KEY, WEIR_LINE_WRITING, 0 },
		{ KEY - 1, WEIR_LINE_READY, 0 },
		{ KEY + 2, WEIR_LINE_READY, 0 },
	};
	static struct weir_set words;
	static struct weir_set_policy policy;
	struct weir_sweep sweep = { .first_key = KEY, .end_key = KEY + 2, .kind = WEIR_SWEEP_DROP };

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (u32 place = 0; place < 2 * WEIR_WAYS; place++) {
			weir_shared_u64 *word =
				place < WEIR_WAYS ? &words.word[place] : &cache.set.word[place - WEIR_WAYS];
			u64 seen =
				cases[i].key << WEIR_LINE_KEY_SHIFT | 9 * WEIR_LINE_VERSION | cases[i].bits;
			u32 within = cases[i].key == KEY || cases[i].key == KEY + 1;

			lay_out(0);
			memset(&words, 0, sizeof(words));
			cache.lines.words = WEIR_ADDR(&words);
			cache.lines.policies = WEIR_ADDR(&policy);
			weir_store_u64_relaxed_dev(word, seen);
			weir_store_u32_relaxed_dev(&policy.lock, 1); /* another lane's */
			assert_int_equal(weir_set_try_drop(&cache.lines, sweep, 0), KEY);
			assert_true(weir_load_u64_relaxed_dev(word) == seen);
			weir_store_u32_relaxed_dev(&policy.lock, 0);
			assert_int_equal(weir_set_try_drop(&cache.lines, sweep, 0),
					 within && !cases[i].goes ? cases[i].key : 0);
			assert_true(weir_load_u64_relaxed_dev(word) ==
				    (cases[i].goes ? 9 * WEIR_LINE_VERSION : seen));
			assert_int_equal(weir_load_u32_relaxed_dev(&policy.lock), 0);
		}
}

/* A line on its way into the tier has a copy there soon: it goes to no shared buffer until that can be
 * dropped. */
static void test_shared_once_it_is_down(void **unused)
{
	static const struct {
		size_t state;
		u32 outcome;
	} cases[] = { { 0, WEIR_SHARE_DONE }, { 1, WEIR_SHARE_RETRY }, { 2, WEIR_SHARE_DONE } };
	static struct weir_set words, entries;
	static struct weir_share_slot slots[WEIR_WAYS];
	static unsigned char buffer[LINE_BYTES];

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct weir_share share = { .buckets = 1,
					    .words = WEIR_ADDR(&entries),
					    .slots = WEIR_ADDR(slots) };
		struct weir_share_take take;
		u32 used = 0;

		lay_out(cases[i].state);
		memset(&words, 0, sizeof(words));
		memset(&entries, 0, sizeof(entries));
		cache.lines.words = WEIR_ADDR(&words);
		cache.lines.share = WEIR_ADDR(&share);
		take = weir_share_take_locked(&cache.lines, 0, KEY, WEIR_ADDR(buffer));
		assert_int_equal(take.outcome, cases[i].outcome);
		assert_true(take.tier == (cases[i].state == 2 ? slot() : 0));
		for (u32 way = 0; way < WEIR_WAYS; way++)
			used += weir_load_u64_relaxed_dev(&entries.word[way]) != 0;
		assert_int_equal(used, cases[i].outcome == WEIR_SHARE_DONE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_table),          cmocka_unit_test(test_the_oldest_goes),
		cmocka_unit_test(test_who_is_used_stays),  cmocka_unit_test(test_places),
		cmocka_unit_test(test_shares_of_the_tier), cmocka_unit_test(test_what_becomes_of_a_line),
		cmocka_unit_test(test_sets_are_dropped),   cmocka_unit_test(test_shared_once_it_is_down),
	};

	return cmocka_run_group_tests_name("tier_state", tests, NULL, NULL);
}
