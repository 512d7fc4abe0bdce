/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choice_test.c: which line of a set makes room, and whose write-back begins, one claim at a time: what every
 * policy may answer to whatever a set has, and what a claim makes of the answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <weir/core/cache/reserve.h>
#include <weir/weir.h>

/* What @policy answers where all it knows is @miss: no key was asked for before. */
static struct weir_choice answer_of(unsigned policy, struct weir_miss miss)
{
	struct weir_lines lines = { .policy = policy };
	struct weir_set_policy words;

	memset(&words, 0, sizeof(words));
	return weir_policy_choose(&lines, &words, miss);
}

enum { WAY_KINDS = 5, SETS_OF_KINDS = WAY_KINDS * WAY_KINDS * WAY_KINDS * WAY_KINDS, STATES = 96 };

/* Way by way: empty, to be had or pinned, and of the two latter read or not. */
static struct weir_miss miss_of(uint32_t kinds)
{
	struct weir_miss miss;

	memset(&miss, 0, sizeof(miss));
	for (uint32_t way = 0; way < WEIR_WAYS; way++, kinds /= WAY_KINDS) {
		uint32_t kind = kinds % WAY_KINDS;

		miss.empty |= (uint32_t)(kind == 0) << way;
		miss.evictable |= (uint32_t)(kind <= 2) << way;
		miss.used |= (uint32_t)(kind == 2 || kind == 4) << way;
	}
	return miss;
}

/* The @number-th of all orders of four ways with each of four hands. */
static uint32_t state_of(uint32_t number)
{
	uint32_t left[] = { 0, 1, 2, 3 }, order = 0, rest = number / WEIR_WAYS;

	for (uint32_t at = 0; at < WEIR_WAYS; at++) {
		uint32_t count = WEIR_WAYS - at, which = rest % count;

		rest /= count;
		order |= left[which] << (2 * at);
		memmove(&left[which], &left[which + 1], (count - 1 - which) * sizeof(*left));
	}
	return weir_order_state(order, number % WEIR_WAYS);
}

/* Whatever there is to choose from: an empty way if there is one, else one that may go; no mark goes that was
 * not there; and reads are listened to or not. */
static void test_every_choice_is_allowed(void **state)
{
	(void)state;
	for (unsigned policy = 0; policy < WEIR_POLICY_USER; policy++)
		for (uint32_t kinds = 0; kinds < SETS_OF_KINDS; kinds++)
			for (uint32_t number = 0; number < STATES; number++) {
				struct weir_miss miss = miss_of(kinds);
				uint32_t candidates = miss.empty ? miss.empty : miss.evictable;
				struct weir_choice choice;

				miss.state = state_of(number);
				miss.key = miss.round = number;
				if (policy == WEIR_POLICY_DIRECT)
					candidates = miss.evictable & 1u << number % WEIR_WAYS;
				choice = answer_of(policy, miss);
				if (choice.way > WEIR_WAYS ||
				    !(candidates ? candidates >> choice.way & 1 : choice.way == WEIR_WAYS))
					fail_msg("%s, ways %u, state %u: way %u", weir_policy_name(policy),
						 kinds, number, choice.way);
				assert_int_equal(choice.unmark & ~miss.used, 0);
				assert_int_equal(choice.mark, policy != WEIR_POLICY_LRU &&
								      policy != WEIR_POLICY_SIEVE &&
								      policy != WEIR_POLICY_FREQUENCY);
				if (policy == WEIR_POLICY_LRU || policy == WEIR_POLICY_FREQUENCY)
					assert_int_equal(choice.unmark, miss.used);
				else if (miss.empty ||
					 (policy != WEIR_POLICY_CLOCK && policy != WEIR_POLICY_SIEVE))
					assert_int_equal(choice.unmark, 0);
			}
}

/* The order that was, without @way; it comes last. */
static uint32_t renewed(uint32_t order, uint32_t way)
{
	uint32_t after = 0, at = 0;

	for (uint32_t i = 0; i < WEIR_WAYS; i++)
		if (weir_order_way(order, i) != way)
			after |= weir_order_way(order, i) << (2 * at++);
	return after | way << (2 * at);
}

/* Of lines that nobody read, with all of them there or one gone: who comes is the newest, the others keep
 * their order; and SIEVE's hand stays with the line that it is at, or goes on to the next. */
static void test_orders_and_hands(void **state)
{
	static const unsigned policies[] = { WEIR_POLICY_LRU, WEIR_POLICY_FIFO, WEIR_POLICY_SIEVE,
					     WEIR_POLICY_FREQUENCY };

	(void)state;
	for (size_t p = 0; p < sizeof(policies) / sizeof(*policies); p++)
		for (uint32_t number = 0; number < STATES; number++)
			for (uint32_t gone = 0; gone <= WEIR_WAYS; gone++) {
				struct weir_miss miss = { .evictable = WEIR_ALL_WAYS,
							  .empty = (1u << gone) & WEIR_ALL_WAYS,
							  .state = state_of(number) };
				struct weir_choice choice = answer_of(policies[p], miss);
				uint32_t order = weir_order_of(miss.state), hand = number % WEIR_WAYS,
					 next = choice.state >> WEIR_ORDER_BITS,
					 at = weir_order_way(order, hand);

				assert_int_equal(weir_order_of(choice.state), renewed(order, choice.way));
				if (policies[p] != WEIR_POLICY_SIEVE || at == gone)
					continue;
				if (gone == WEIR_WAYS) {
					assert_int_equal(choice.way, at);
					at = weir_order_way(order, (hand + 1) % WEIR_WAYS);
				}
				assert_int_equal(weir_order_way(weir_order_of(choice.state), next), at);
			}
}

/* A key has one set and one round, whatever the number of sets; where lines have one place each, the round is
 * it. */
static void test_sets_and_rounds(void **state)
{
	static const uint64_t counts[] = {
		1, 2, 3, 5, 7, 64, 1000, 4097, 1048583, UINT32_MAX, (uint64_t)1 << 33 | 1
	};
	static const uint64_t most = ((uint64_t)1 << WEIR_KEY_BITS) - 1;

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		struct weir_lines lines = { .sets = counts[i],
					    .set_magic = ~(uint64_t)0 / counts[i],
					    .policy = WEIR_POLICY_DIRECT };
		uint64_t multiple = most / counts[i] * counts[i], last = multiple - counts[i];
		const uint64_t keys[] = { 1,    2,        counts[i] - 1, counts[i], counts[i] + 1, last - 1,
					  last, last + 1, multiple - 1,  multiple,  most - 1,      most };

		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
			assert_int_equal(weir_lines_index(&lines, keys[k]), keys[k] % counts[i]);
			assert_int_equal(weir_lines_round(&lines, keys[k]), keys[k] / counts[i]);
			assert_int_equal(weir_policy_ways(&lines, keys[k]),
					 1u << keys[k] / counts[i] % WEIR_WAYS);
		}
	}
}

enum { COUNTERS = 64 };

static void read_sketch(struct weir_set_policy *policy, uint32_t counters[COUNTERS])
{
	for (uint32_t i = 0; i < COUNTERS; i++)
		counters[i] = weir_sketch_count(policy, i / 32, i % 32);
}

/* Who was added often is thought of as that, up to the most that a counter holds; and all of it is halved
 * once there were so many, each counter by itself. */
static void test_the_sketch(void **state)
{
	uint32_t before[COUNTERS], after[COUNTERS];
	struct weir_set_policy policy;

	(void)state;
	for (uint64_t key = 1; key < 1000; key += 37) {
		memset(&policy, 0, sizeof(policy));
		for (uint32_t i = 1; i <= WEIR_SKETCH_MOST + 3; i++) {
			weir_sketch_add(&policy, key);
			assert_int_equal(weir_sketch_ask(&policy, key),
					 i < WEIR_SKETCH_MOST ? i : WEIR_SKETCH_MOST);
		}
		for (uint32_t i = WEIR_SKETCH_MOST + 4; i < WEIR_SKETCH_SAMPLE; i++)
			weir_sketch_add(&policy, key + i % 21);
		read_sketch(&policy, before);
		weir_sketch_add(&policy, key + 5);
		read_sketch(&policy, after);
		for (uint32_t i = 0; i < COUNTERS; i++)
			assert_true(after[i] == before[i] / 2 || after[i] == (before[i] + 1) / 2);
		assert_int_equal(weir_load_u32_relaxed_dev(&policy.own[WEIR_SKETCH_ADDS]),
				 WEIR_SKETCH_SAMPLE / 2);
		assert_int_equal(weir_sketch_ask(&policy, key), WEIR_SKETCH_MOST / 2);
	}
}

/** struct claims - one set on the host */
struct claims {
	struct weir_lines lines;
	struct weir_set set;
	struct weir_set_policy policy;
};

enum { KEY = 9, FAULT = WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | NVME_STATUS_WRITE_FAULT };

/* A letter for each way: . empty, r clean, m dirty, u dirty and read lately, x dirty and not to be written, w
 * being written back, b being read, f failed; capital letters: the same, pinned; f: KEY, which failed. */
static void lay_out(struct claims *claims, const char *ways)
{
	memset(claims, 0, sizeof(*claims));
	claims->lines = (struct weir_lines){ .line_log2 = 9,
					     .sets = 1,
					     .set_magic = ~(uint64_t)0,
					     .words = WEIR_ADDR(&claims->set),
					     .policies = WEIR_ADDR(&claims->policy) };
	for (uint32_t way = 0; way < WEIR_WAYS; way++) {
		uint64_t key = (uint64_t)(ways[way] == 'f' ? KEY : 100 + way) << WEIR_LINE_KEY_SHIFT,
			 word = 0;

		switch (ways[way]) {
		case 'r': word = key | WEIR_LINE_READY; break;
		case 'R': word = key | WEIR_LINE_READY | WEIR_LINE_PIN; break;
		case 'm':
		case 'x': word = key | WEIR_LINE_MODIFIED; break;
		case 'u': word = key | WEIR_LINE_MODIFIED | WEIR_LINE_USED; break;
		case 'M': word = key | WEIR_LINE_MODIFIED | WEIR_LINE_PIN; break;
		case 'w': word = key | WEIR_LINE_WRITING; break;
		case 'B': word = key | WEIR_LINE_BUSY | WEIR_LINE_PIN; break;
		case 'f': word = key | WEIR_LINE_FAILED; break;
		default: break;
		}
		weir_store_u64_relaxed_dev(&claims->set.word[way], word);
		if (ways[way] == 'x' || ways[way] == 'f')
			weir_store_u32_relaxed_dev(&claims->policy.status[way], FAULT);
	}
}

/* Which line makes room, and whose write-back begins: only clean ones go; of dirty ones one at a time is
 * written back, one ahead of need once a single clean line is left; not what cannot be written. */
static const struct claim {
	const char *ways;
	uint32_t writing; /* 1: may write back; 2: even beside another; 4: the whole line is overwritten */
	uint32_t way, written;
} CLAIMS[] = {
	{ "....", 1, 0, WEIR_WAYS },
	{ "rmRR", 1, 0, 1 },
	{ "rmRR", 0, 0, WEIR_WAYS },
	{ "rmRR", 5, 0, 1 },
	{ ".mRR", 1, 0, 1 },
	{ "rrmR", 1, 0, 2 },
	{ "rrrm", 1, 0, WEIR_WAYS },
	{ "rxmR", 1, 0, 2 },
	{ "rxRR", 3, 0, WEIR_WAYS },
	{ "rumR", 1, 0, 2 },
	{ "ruuR", 1, 0, 1 },
	{ "mrRR", 1, 1, 0 },
	{ "mmmr", 0, 3, WEIR_WAYS },
	{ "rwmR", 1, 0, WEIR_WAYS },
	{ "rwmR", 3, 0, 2 },
	{ "mmmm", 1, WEIR_WAYS, 0 },
	{ "mmmm", 0, WEIR_WAYS, WEIR_WAYS },
	{ "mmmm", 4, WEIR_WAYS, WEIR_WAYS },
	{ "xmmm", 1, WEIR_WAYS, 1 },
	{ "xMmm", 1, WEIR_WAYS, 2 },
	{ "wmmm", 1, WEIR_WAYS, WEIR_WAYS },
	{ "wmmm", 3, WEIR_WAYS, 1 },
	{ "xxxM", 3, WEIR_WAYS, WEIR_WAYS },
	{ "RRRR", 3, WEIR_WAYS, WEIR_WAYS },
	{ "BBBR", 3, WEIR_WAYS, WEIR_WAYS },
	{ "rfRR", 1, 1, WEIR_WAYS },
	{ "mfRR", 1, 1, 0 },
};

static void test_who_makes_room(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(CLAIMS) / sizeof(*CLAIMS); i++) {
		const struct claim *claim = &CLAIMS[i];
		struct weir_reservation reservation;
		static struct claims claims;

		lay_out(&claims, claim->ways);
		reservation = weir_set_try_reserve(&claims.lines, 0, KEY, claim->writing);
		if (reservation.way != claim->way ||
		    reservation.writing != (claim->written == WEIR_WAYS ? 0 : claim->written + 1))
			fail_msg("%s, %u: way %u, write-back %u", claim->ways, claim->writing,
				 reservation.way, reservation.writing);
		assert_int_equal(reservation.unwritable, WEIR_OK);
		assert_int_equal(weir_load_u32_relaxed_dev(&claims.policy.lock), 0);
		assert_int_equal(weir_load_u64_relaxed_dev(&claims.lines.writebacks),
				 claim->written < WEIR_WAYS);
		for (uint32_t way = 0; way < WEIR_WAYS; way++) {
			uint64_t word = weir_load_u64_relaxed_dev(&claims.set.word[way]);

			assert_int_equal(weir_line_state(word) == WEIR_LINE_WRITING,
					 way == claim->written || claim->ways[way] == 'w');
			assert_int_equal(word >> WEIR_LINE_KEY_SHIFT == KEY, way == claim->way);
		}
		if (claim->way == WEIR_WAYS)
			continue;
		assert_int_equal(weir_load_u64_relaxed_dev(&claims.lines.evictions),
				 claim->ways[claim->way] == 'r');
		assert_int_equal(weir_load_u32_relaxed_dev(&claims.policy.status[claim->way]), 0);
		/* whose fetch failed comes again where it was, and the hand does not move for it */
		assert_int_equal(weir_load_u32_relaxed_dev(&claims.policy.state),
				 claim->ways[claim->way] == 'f' ? 0 : claim->way + 1);
	}
}

/* A set in which nothing can be written tells why; a line that is there, or comes, is not claimed again. */
static void test_who_makes_no_room(void **state)
{
	struct weir_reservation reservation;
	static struct claims claims;

	(void)state;
	lay_out(&claims, "xxxx");
	reservation = weir_set_try_reserve(&claims.lines, 0, KEY, 3);
	assert_int_equal(reservation.way, WEIR_WAYS);
	assert_int_equal(reservation.unwritable, FAULT);
	assert_int_equal(reservation.word >> WEIR_LINE_KEY_SHIFT, 100);
	for (const char *kind = "rRmMuxwB"; *kind; kind++) {
		char ways[] = "r.rr";

		ways[1] = *kind;
		lay_out(&claims, ways);
		reservation = weir_set_try_reserve(&claims.lines, 0, 101, 7);
		assert_int_equal(reservation.way, WEIR_WAYS);
		assert_int_equal(reservation.writing, 0);
		assert_int_equal(reservation.unwritable, WEIR_OK);
	}
	lay_out(&claims, "rrrr");
	weir_store_u32_relaxed_dev(&claims.policy.lock, 1); /* another lane's */
	reservation = weir_set_try_reserve(&claims.lines, 0, KEY, 3);
	assert_int_equal(reservation.way, WEIR_WAYS);
	assert_int_equal(weir_load_u32_relaxed_dev(&claims.policy.lock), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_choice_is_allowed), cmocka_unit_test(test_orders_and_hands),
		cmocka_unit_test(test_sets_and_rounds),         cmocka_unit_test(test_the_sketch),
		cmocka_unit_test(test_who_makes_room),          cmocka_unit_test(test_who_makes_no_room),
	};

	return cmocka_run_group_tests_name("choice", tests, NULL, NULL);
}
