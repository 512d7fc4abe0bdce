/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock chain step by step: this thread plays one lane after the other, and may
 * let others move between any two loads of a lane that looks for a cycle.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <weir/port.h>
#include <weir/weir.h>

static u64 between_loads(weir_shared_u64 *word);

/* Every load of the chain's own goes through the test. */
#define weir_load_u64_acquire_dev(word) (between_loads(word), (weir_load_u64_acquire_dev)(word))
#define weir_load_u64_relaxed_dev(word) (between_loads(word), (weir_load_u64_relaxed_dev)(word))
#include <weir/lock.h>

enum { LANES = 8, LOCKS = 11, WAVE = 4, STEPS = 32, MOVES = 3 };

/** struct stage - lanes, their locks and their table; what happens between loads */
struct stage {
	struct weir_context *context;
	uint64_t chain;
	struct weir_lock *locks;
	struct weir_cpu_lane lane[LANES];
	uint32_t loads;
	uint32_t at[MOVES];
	const char *const *moves;
};

static struct stage stage;

static weir_status act(const char *step);
static void act_all(const char *steps);

/* The moves that fall due at this load; while one is made, its own loads do not count. */
static u64 between_loads(weir_shared_u64 *word)
{
	const char *const *moves = stage.moves;
	struct weir_cpu_lane *self = weir_cpu_self;

	(void)word;
	if (!moves)
		return 0;
	stage.moves = NULL;
	for (int i = 0; i < MOVES && moves[i]; i++)
		if (stage.at[i] == stage.loads)
			act_all(moves[i]);
	stage.loads++;
	stage.moves = moves;
	weir_cpu_self = self;
	return 0;
}

/* "2+c ": lane 2 tries lock c; - frees it; . quits. */
static weir_status act(const char *step)
{
	uint32_t lock = (uint32_t)(step[2] - 'a');

	weir_cpu_self = &stage.lane[step[0] - '0'];
	if (step[1] == '+')
		return weir_lock_try(&stage.locks[lock], stage.chain, lock);
	if (step[1] == '-')
		weir_lock_free(&stage.locks[lock], stage.chain);
	else
		weir_lock_quit(stage.chain);
	return WEIR_OK;
}

static int open_context(void **state)
{
	(void)state;
	return weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &stage.context);
}

static int close_context(void **state)
{
	(void)state;
	weir_context_close(stage.context);
	return 0;
}

static void set_stage(const struct weir_chain_options *options)
{
	uint64_t locks;

	assert_int_equal(weir_chain_create(stage.context, options, &stage.chain), 0);
	assert_int_equal(weir_alloc(stage.context, LOCKS * sizeof(struct weir_lock), &locks), 0);
	stage.locks = (struct weir_lock *)(uintptr_t)locks;
	stage.loads = 0;
	for (uint32_t i = 0; i < LANES; i++)
		stage.lane[i] = (struct weir_cpu_lane){
			.lane = i % WAVE, .lanes = WAVE, .thread = i, .threads = LANES, .wave = i / WAVE
		};
}

static const char *const NAMES[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k" };

static void clear_stage(int expected)
{
	assert_int_equal(weir_chain_report(stage.context, stage.chain, NAMES, LOCKS), expected);
	assert_int_equal(weir_free(stage.context, stage.chain), 0);
	assert_int_equal(weir_free(stage.context, (uintptr_t)stage.locks), 0);
}

/* Steps, each with the letter of its outcome: O has it, L locked, D deadlock. */
static const struct play {
	const char *what, *steps, *report;
	uint32_t retry_limit, own_wave;
} PLAYS[] = {
	{ "two lanes, the second try of the second", "0+aO 1+bO 0+bL 0+bL 1+aL 1+aD 0+bD",
	  "lock cycle: lane 0 (wave 0) holds \"a\" and wants \"b\"; lane 1 (wave 0) holds \"b\" and wants "
	  "\"a\"",
	  0, 0 },
	{ "patience counts for every lane", "0+aO 5+bO 0+bL 0+bL 0+bL 0+bL 5+aL 5+aL 5+aL 5+aD 0-aO 5+aO",
	  "lock cycle: lane 0 (wave 0) holds \"a\" and wants \"b\"; lane 5 (wave 1) holds \"b\" and wants "
	  "\"a\"",
	  4, 0 },
	{ "three lanes, found by the one in the middle", "0+aO 1+bO 4+cO 0+bL 0+bL 4+aL 4+aL 1+cL 1+cD",
	  "lock cycle: lane 0 (wave 0) holds \"a\" and wants \"b\"; lane 1 (wave 0) holds \"b\" and wants "
	  "\"c\"; "
	  "lane 4 (wave 1) holds \"c\" and wants \"a\"",
	  0, 0 },
	{ "a lane by itself", "3+cO 3+cL 3+cD", "lock cycle: lane 3 (wave 0) holds \"c\" and wants \"c\"", 0,
	  0 },
	{ "one try and another lock is no wait",
	  "0+aO 1+bO 1+cO 0+bL 0+cL 0+bL 0+cL 1+aL 1+aL 1+aL 1-bO 1-cO 0-aO", NULL, 0, 0 },
	{ "trying another lock ends a wait", "0+aO 1+bO 2+cO 0+bL 0+bL 0+cL 1+aL 1+aL 1+aL 2-cO 1-bO 0-aO",
	  NULL, 0, 0 },
	{ "taking another lock ends a wait", "0+aO 1+bO 0+bL 0+bL 0+cO 1+aL 1+aL 1+aL 0-aO 0-cO 1-bO", NULL,
	  0, 0 },
	{ "freeing another lock ends a wait", "0+aO 0+cO 1+bO 0+bL 0+bL 0-cO 1+aL 1+aL 1+aL 0-aO 1-bO", NULL,
	  0, 0 },
	{ "after a free, patience starts again", "0+aO 0+cO 1+bO 0+bL 0-cO 0+bL 1+aL 1+aL 1+aL 0-aO 1-bO",
	  NULL, 0, 0 },
	{ "quitting ends a wait", "0+aO 1+bO 0+bL 0+bL 0._O 1+aL 1+aL 1+aL 0-aO 1-bO", NULL, 0, 0 },
	{ "getting the lock ends a wait: patience starts again", "1+bO 0+bL 0+bL 1-bO 0+bO 0+bL 0-bO", NULL,
	  0, 0 },
	{ "a chain that ends", "0+aO 1+bO 4+cO 0+bL 0+bL 1+cL 1+cL 0+bL 4-cO 1+cO 1-bO 0+bO 0-aO 0-bO 1-cO",
	  NULL, 1, 0 },
	{ "a cycle seen from outside is not the one who looks's",
	  "0+aO 1+bO 0+bL 4+aL 4+aL 4+aL 0-aO 4+aO 4-aO 1-bO", NULL, 1, 0 },
	{ "a lock freed and taken again is a new hold",
	  "0+aO 1+aL 1+aL 0-aO 0+aO 1+aL 1+aL 0-aO 2+aO 1+aL 1+aL 2-aO", NULL, 3, 1 },
	{ "a lane of another wave may hold on", "0+aO 4+aL 4+aL 4+aL 4+aL 0-aO", NULL, 3, 1 },
	{ "a lane of the same wave may not", "0+aO 1+aL 1+aL 1+aD",
	  "lock wait within a wave: lane 1 (wave 0) wants \"a\", which lane 0 of the same wave keeps", 3, 1 },
	{ "unless nobody asked", "0+aO 1+aL 1+aL 1+aL 1+aL 0-aO", NULL, 3, 0 },
	{ "more locks than a record lists",
	  "0+aO 0+bO 0+cO 0+dO 0+eO 0+fO 0+gO 0+hO 0+iO 0+jO 1+kO 0+kL 0+kL 1+jL 1+jD",
	  "lock cycle: lane 0 (wave 0) holds \"j\" and wants \"k\"; lane 1 (wave 0) holds \"k\" and wants "
	  "\"j\"",
	  0, 0 },
	{ "of these, one is kept",
	  "0+aO 0+bO 0+cO 0+dO 0+eO 0+fO 0+gO 0+hO 0+iO 0+jO 0-jO 0-iO 0-bO 0-cO 0-dO 0-eO 0-fO 0-gO 0-hO",
	  "lane 0 (wave 0) ended and kept \"a\"", 0, 0 },
	{ "of three, the one that was taken last", "0+aO 0+bO 0+cO 0-aO 0-bO",
	  "lane 0 (wave 0) ended and kept \"c\"", 0, 0 },
	{ "of three, the one in the middle", "0+aO 0+bO 0+cO 0-cO 0-aO",
	  "lane 0 (wave 0) ended and kept \"b\"", 0, 0 },
	{ "of two lanes, the first that kept one", "1+bO 1+cO 4+aO 1-bO",
	  "lane 1 (wave 0) ended and kept \"c\"; other lanes kept locks too", 0, 0 },
	{ "all were freed, in the order they were taken", "0+aO 0+bO 0+cO 0-aO 0-bO 0-cO", NULL, 0, 0 },
};

static char outcome(weir_status status)
{
	return status == WEIR_OK           ? 'O'
	       : status == WEIR_E_LOCKED   ? 'L'
	       : status == WEIR_E_DEADLOCK ? 'D'
					   : '?';
}

static void play(const struct play *play)
{
	struct weir_cpu_lane *before = weir_cpu_self;

	set_stage(WEIR_OPTIONS(chain, .lanes = LANES, .retry_limit = play->retry_limit,
			       .own_wave = play->own_wave));
	for (const char *step = play->steps;; step += 5) {
		char got = outcome(act(step));

		if (got != step[3])
			fail_msg("%s: at \"%.4s\" (%u): %c", play->what, step,
				 (unsigned)(step - play->steps) / 5, got);
		if (!step[4])
			break;
	}
	weir_cpu_self = before;
	clear_stage(!play->report ? 0 : strstr(play->report, "kept") ? -EOWNERDEAD : -EDEADLK);
	if (play->report)
		assert_string_equal(weir_last_error(), play->report);
}

static void test_plays(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(PLAYS) / sizeof(PLAYS[0]); i++)
		play(&PLAYS[i]);
}

/* A lock's word names its holder however often that lane has taken locks, and no two takes alike. */
static void test_takes_wrap(void **state)
{
	struct weir_cpu_lane *before = weir_cpu_self;
	struct weir_chain *chain;
	u64 last = 0;

	(void)state;
	set_stage(WEIR_OPTIONS(chain, .lanes = LANES));
	chain = weir_at(stage.chain, struct weir_chain, 0);
	weir_chain_at(chain, 5)->takes = UINT32_MAX - 2;
	for (int i = 0; i < 5; i++) {
		u64 word;

		assert_int_equal(act("5+a"), WEIR_OK);
		word = weir_load_u64_relaxed_dev(&stage.locks[0].word);
		assert_int_equal(weir_chain_holder(chain, word), 5);
		assert_true(word != last);
		last = word;
		act("5-a");
		assert_int_equal(weir_chain_holder(chain, weir_load_u64_relaxed_dev(&stage.locks[0].word)),
				 LANES);
	}
	weir_cpu_self = before;
	clear_stage(0);
}

/*
 * Lane 0 holds a and waits for b while others move. At no moment is there a cycle,
 * but parts of one, seen at different times, make up a whole.
 */
static const struct motion {
	const char *start, *moves[MOVES];
} MOTIONS[] = {
	/* lane 1 holds b and wants nothing, or has freed it and waits for a */
	{ "0+a 1+b 0+b ", { "1-b 1+a 1+a ", "1.. 1+b ", "1-b 1+a 1+a " } },
	/* the same, and b goes to lane 2 meanwhile */
	{ "0+a 1+b 0+b ", { "1-b 2+b 1+a 1+a ", "1.. 2-b 1+b ", "1-b 2+b 1+a 1+a " } },
	/* lanes 1 and 2 keep b and c, but wait for the next lock in turns, never both */
	{ "0+a 1+b 2+c 0+b 1+c 1+c ", { "1.. 2+a 2+a ", "2.. 1+c 1+c ", "1.. 2+a 2+a " } },
	{ "0+a 1+b 2+c 0+b 2+a 2+a ", { "2.. 1+c 1+c ", "1.. 2+a 2+a ", "2.. 1+c 1+c " } },
};

static void act_all(const char *steps)
{
	for (; *steps; steps += 4)
		act(steps);
}

static void poll_during(const struct motion *motion, const uint32_t at[MOVES])
{
	struct weir_cpu_lane *before = weir_cpu_self;
	weir_status status;

	set_stage(WEIR_OPTIONS(chain, .lanes = LANES));
	act_all(motion->start);
	memcpy(stage.at, at, sizeof(stage.at));
	stage.moves = motion->moves;
	status = act("0+b");
	stage.moves = NULL;
	if (status == WEIR_E_DEADLOCK)
		fail_msg("%s, moves at loads %u, %u, %u: a cycle that never was", motion->start, at[0], at[1],
			 at[2]);
	if (status == WEIR_E_LOCKED)
		assert_in_range(stage.loads, 4, STEPS);
	weir_cpu_self = before;
	clear_stage(-EOWNERDEAD);
}

static void test_lanes_that_move_are_no_cycle(void **state)
{
	(void)state;
	for (size_t m = 0; m < sizeof(MOTIONS) / sizeof(MOTIONS[0]); m++)
		for (uint32_t i = 0; i < STEPS; i++)
			for (uint32_t j = i; j <= STEPS; j++)
				for (uint32_t k = j; k <= STEPS; k++)
					poll_during(&MOTIONS[m], (uint32_t[]){ i, j, k });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plays),
		cmocka_unit_test(test_takes_wrap),
		cmocka_unit_test(test_lanes_that_move_are_no_cycle),
	};

	return cmocka_run_group_tests_name("chain_script", tests, open_context, close_context);
}
