/* SPDX-License-Identifier: BSD-3-Clause */
/* Hazards: whatever wrote a line last, whatever reads it next sees it, by one lane and by two. */
#include "share_cases.h"

/** struct ending - a word of the storage after a flush; value 0: as it was */
struct ending {
	uint64_t line, at, value;
};

static void check_steps(const struct test_step *steps, size_t count, const struct ending *endings,
			size_t ending_count)
{
	for (size_t w = 0; w < test_width_count(); w++) {
		uint64_t words[WORDS];
		struct rig rig;
		int synced;

		open_rig(&rig, test_width(w), 4, 64);
		do_steps(&rig, &rig.writer, steps, count, &synced);
		if (synced)
			fail_msg("%s", weir_last_error());
		must(weir_cache_flush(rig.cache, 1));
		must(weir_storage_read(rig.storage, 0, words, BYTES));
		for (size_t i = 0; i < ending_count; i++) {
			uint64_t word = endings[i].line * LINE / 8 + endings[i].at;

			if (words[word] != (endings[i].value ? endings[i].value : test_word(1, word)))
				fail_msg("word %llu of line %llu is %#llx on storage",
					 (unsigned long long)endings[i].at,
					 (unsigned long long)endings[i].line,
					 (unsigned long long)words[word]);
		}
		close_rig(&rig);
	}
}

#define STEPS(...)                                                                                           \
	((const struct test_step[]){ __VA_ARGS__ }),                                                         \
		sizeof((const struct test_step[]){ __VA_ARGS__ }) / sizeof(struct test_step)
#define ENDINGS(...)                                                                                         \
	((const struct ending[]){ __VA_ARGS__ }),                                                            \
		sizeof((const struct ending[]){ __VA_ARGS__ }) / sizeof(struct ending)

/* Kind, buffer, line, word, value; see enum test_step_kind. */
#define HOLD(buffer, line)                                                                                   \
	{ TEST_STEP_ACQUIRE, buffer, line, 0, 1 /* WEIR_SHARED_OWNER */ },                                   \
		{ TEST_STEP_WAIT, buffer, line, 0, WEIR_OK },                                                \
	{                                                                                                    \
		TEST_STEP_MODIFY, buffer, line, 0, WEIR_OK                                                   \
	}

/* Whatever wrote the line last, whatever reads it next sees it. */
void test_read_after_write(void **state)
{
	(void)state;
	check_steps(STEPS(HOLD(0, 3), { TEST_STEP_STORE, 0, 3, 0, 100 }, /* buffer ... */
			  { TEST_STEP_GET, 0, 3, 0, 100 },               /* ... to element */
			  { TEST_STEP_COPY, 2, 3, 0, WEIR_PATH_SHARE },
			  { TEST_STEP_LOAD, 2, 3, 0, 100 }, /* ... to copy */
			  { TEST_STEP_PUT, 0, 3, 1, 101 },  /* element ... */
			  { TEST_STEP_LOAD, 0, 3, 1, 101 }, /* ... to buffer */
			  { TEST_STEP_ADD, 0, 3, 1, 101 }, { TEST_STEP_GET, 0, 3, 1, 102 },
			  { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK }, /* buffer to cache ... */
			  { TEST_STEP_COPY, 2, 3, 0, WEIR_PATH_CACHE },
			  { TEST_STEP_LOAD, 2, 3, 1, 102 }, /* ... to copy */
			  { TEST_STEP_ACQUIRE, 1, 3, 0, 1 }, { TEST_STEP_WAIT, 1, 3, 0, WEIR_OK },
			  { TEST_STEP_LOAD, 1, 3, 1, 102 }, /* ... to buffer */
			  { TEST_STEP_RELEASE, 1, 3, 0, WEIR_OK }),
		    ENDINGS({ 3, 0, 100 }, { 3, 1, 102 }, { 3, 2, 0 }));
}

/* What was read does not change with what is written later, and what was taken may change. */
void test_write_after_read(void **state)
{
	(void)state;
	check_steps(STEPS(HOLD(0, 31), { TEST_STEP_STORE, 0, 31, 0, 100 },
			  { TEST_STEP_COPY, 2, 31, 0, WEIR_PATH_SHARE }, { TEST_STEP_STORE, 0, 31, 0, 110 },
			  { TEST_STEP_LOAD, 2, 31, 0, 100 }, /* the copy is as it was */
			  { TEST_STEP_STORE, 2, 31, 1, 111 }, { TEST_STEP_WRITE, 2, 31, 0, WEIR_OK },
			  { TEST_STEP_STORE, 2, 31, 1, 112 }, /* its source is ours again */
			  { TEST_STEP_LOAD, 0, 31, 1, 111 }, { TEST_STEP_GET, 0, 31, 1, 111 },
			  { TEST_STEP_IN_USE, 0, 31, 0, 1 }, { TEST_STEP_RELEASE, 0, 31, 0, WEIR_OK },
			  { TEST_STEP_IN_USE, 0, 31, 0, 0 },
			  { TEST_STEP_STORE, 0, 31, 1, 113 }, /* so is the buffer */
			  { TEST_STEP_GET, 0, 31, 1, 111 },
			  { TEST_STEP_COPY, 3, 30, 0, test_pull() ? WEIR_PATH_PULL : WEIR_PATH_DIRECT },
			  { TEST_STEP_PUT, 0, 30, 5, 114 },
			  { TEST_STEP_LOAD, 3, 30, 5, test_word(1, 30 * LINE / 8 + 5) }),
		    ENDINGS({ 31, 0, 100 }, { 31, 1, 111 }, { 30, 5, 114 }));
}

/* Of writes by buffer, copy and element the last one counts, on storage, too. */
void test_write_after_write(void **state)
{
	(void)state;
	check_steps(STEPS(HOLD(0, 8), { TEST_STEP_STORE, 0, 8, 2, 120 },
			  { TEST_STEP_COPY, 2, 8, 0, WEIR_PATH_SHARE }, { TEST_STEP_STORE, 2, 8, 2, 121 },
			  { TEST_STEP_WRITE, 2, 8, 0, WEIR_OK },
			  { TEST_STEP_LOAD, 0, 8, 2, 121 },  /* copy over buffer */
			  { TEST_STEP_PUT, 0, 8, 2, 122 },   /* element over copy */
			  { TEST_STEP_STORE, 0, 8, 3, 123 }, /* buffer over copy */
			  { TEST_STEP_RELEASE, 0, 8, 0, WEIR_OK }, { TEST_STEP_GET, 0, 8, 2, 122 },
			  { TEST_STEP_STORE, 2, 8, 2, 124 }, { TEST_STEP_STORE, 2, 8, 3, 125 },
			  { TEST_STEP_WRITE, 2, 8, 0, WEIR_OK }, /* copy over cache */
			  { TEST_STEP_PUT, 0, 8, 3, 126 },       /* element over copy, in the cache */
			  { TEST_STEP_WRITE, 2, 9, 0, WEIR_OK }, /* over storage, which is not read */
			  { TEST_STEP_GET, 0, 9, 2, 124 }),
		    ENDINGS({ 8, 2, 124 }, { 8, 3, 126 }, { 9, 2, 124 }, { 9, 3, 125 }));
}

/* Lines in every state move to a buffer and back: clean, dirty, evicted meanwhile, and while the set is full.
 */
void test_lines_move_both_ways(void **state)
{
	(void)state;
	check_steps(STEPS({ TEST_STEP_PUT, 0, 4, 4, 140 }, /* dirty in the cache ... */
			  { TEST_STEP_ACQUIRE, 1, 4, 0, 1 }, { TEST_STEP_WAIT, 1, 4, 0, WEIR_OK },
			  { TEST_STEP_LOAD, 1, 4, 4, 140 }, /* ... in the buffer ... */
			  { TEST_STEP_PUT, 0, 5, 0, 150 }, { TEST_STEP_PUT, 0, 6, 0, 160 },
			  { TEST_STEP_PUT, 0, 7, 0, 170 },
			  { TEST_STEP_PUT, 0, 8, 0, 180 },         /* (all four lines dirty) */
			  { TEST_STEP_RELEASE, 1, 4, 0, WEIR_OK }, /* ... and back, unchanged there */
			  { TEST_STEP_GET, 0, 4, 4, 140 }, { TEST_STEP_GET, 0, 5, 0, 150 },
			  { TEST_STEP_GET, 0, 20, 0, test_word(1, 20 * LINE / 8) },
			  { TEST_STEP_ACQUIRE, 2, 20, 0, 1 }, /* clean in the cache: no command */
			  { TEST_STEP_WAIT, 2, 20, 0, WEIR_OK },
			  { TEST_STEP_ACQUIRE, 3, 20, 0, 2 },       /* a guest of its own */
			  { TEST_STEP_RELEASE, 2, 20, 0, WEIR_OK }, /* the owner goes first */
			  { TEST_STEP_IN_USE, 2, 20, 0, 1 }, { TEST_STEP_IN_USE, 3, 20, 0, 0 },
			  { TEST_STEP_MODIFY, 3, 20, 0, WEIR_OK },
			  { TEST_STEP_STORE, 2, 20, 1, 200 },       /* into the owner's memory */
			  { TEST_STEP_RELEASE, 3, 20, 0, WEIR_OK }, /* the guest propagates */
			  { TEST_STEP_IN_USE, 2, 20, 0, 0 }, { TEST_STEP_GET, 0, 20, 1, 200 }),
		    ENDINGS({ 4, 4, 140 }, { 5, 0, 150 }, { 6, 0, 160 }, { 7, 0, 170 }, { 8, 0, 180 },
			    { 20, 1, 200 }));
}

/* Kind, buffer, line, word, value; and which block's lane does it. */
#define BY(block, kind, buffer, line, at, value)                                                             \
	{                                                                                                    \
		TEST_STEP_##kind + (block)*TEST_STEP_BLOCK, buffer, line, at, value                          \
	}

/*
 * What one lane stores into a buffer that it shares another lane finds there, whoever of them owns it: after
 * a store, after a load and after another store to the same word. The owner goes last.
 */
void test_a_store_is_seen_by_another_lane(void **state)
{
	(void)state;
	if (!test_blocks_together())
		skip();
	check_steps(STEPS(BY(0, ACQUIRE, 0, 3, 0, 1 /* WEIR_SHARED_OWNER */), BY(0, WAIT, 0, 3, 0, WEIR_OK),
			  BY(1, ACQUIRE, 1, 3, 0, 2 /* WEIR_SHARED_GUEST */), BY(1, WAIT, 1, 3, 0, WEIR_OK),
			  BY(1, SEE, 1, 3, 0, test_word(1, 3 * LINE / 8)), BY(0, MODIFY, 0, 3, 0, WEIR_OK),
			  BY(0, SEND, 0, 3, 0, 100), BY(1, SEE, 1, 3, 0, 100), /* owner to guest */
			  BY(1, MODIFY, 1, 3, 0, WEIR_OK), BY(1, SEND, 1, 3, 1, 101),
			  BY(0, SEE, 0, 3, 1, 101),                               /* guest to owner */
			  BY(1, SEND, 1, 3, 0, 102), BY(0, SEE, 0, 3, 0, 102),    /* over the owner's */
			  BY(0, SEND, 0, 3, 1, 103), BY(1, SEE, 1, 3, 1, 103),    /* over the guest's */
			  BY(0, PUT, 0, 3, 127, 104), BY(1, SEE, 1, 3, 127, 104), /* as an element */
			  BY(1, SEND, 1, 3, 126, 105), BY(0, GET, 0, 3, 126, 105),
			  BY(1, RELEASE, 1, 3, 0, WEIR_OK), BY(0, IN_USE, 0, 3, 0, 1),
			  BY(0, SEND, 0, 3, 2, 106), BY(0, RELEASE, 0, 3, 0, WEIR_OK),
			  BY(1, GET, 0, 3, 0, 102), BY(1, GET, 0, 3, 1, 103), BY(1, GET, 0, 3, 2, 106)),
		    ENDINGS({ 3, 0, 102 }, { 3, 1, 103 }, { 3, 2, 106 }, { 3, 126, 105 }, { 3, 127, 104 },
			    { 3, 3, 0 }));
}

/* The owner goes first: guests share its memory, and the last of them brings all changes to the cache. */
void test_stores_are_seen_after_the_owner_left(void **state)
{
	(void)state;
	if (!test_blocks_together())
		skip();
	check_steps(
		STEPS(BY(0, ACQUIRE, 0, 9, 0, 1), BY(0, WAIT, 0, 9, 0, WEIR_OK),
		      BY(0, MODIFY, 0, 9, 0, WEIR_OK), BY(1, ACQUIRE, 1, 9, 0, 2),
		      BY(1, WAIT, 1, 9, 0, WEIR_OK), BY(0, SEND, 0, 9, 0, 200),
		      BY(0, RELEASE, 0, 9, 0, WEIR_OK), BY(0, IN_USE, 0, 9, 0, 1),
		      BY(1, SEE, 1, 9, 0, 200), /* of the owner that left */
		      BY(1, MODIFY, 1, 9, 0, WEIR_OK), BY(1, SEND, 1, 9, 1, 201), BY(0, ACQUIRE, 2, 9, 0, 2),
		      BY(0, WAIT, 2, 9, 0, WEIR_OK), /* it comes back as a guest */
		      BY(0, SEE, 2, 9, 1, 201), BY(0, MODIFY, 2, 9, 0, WEIR_OK), BY(0, SEND, 2, 9, 1, 202),
		      BY(1, SEE, 1, 9, 1, 202), BY(1, SEND, 1, 9, 2, 203), BY(1, RELEASE, 1, 9, 0, WEIR_OK),
		      BY(0, SEE, 2, 9, 2, 203), BY(0, IN_USE, 0, 9, 0, 1), BY(0, RELEASE, 2, 9, 0, WEIR_OK),
		      BY(0, IN_USE, 0, 9, 0, 0), BY(0, GET, 0, 9, 0, 200), BY(1, GET, 0, 9, 1, 202),
		      BY(1, GET, 0, 9, 2, 203)),
		ENDINGS({ 9, 0, 200 }, { 9, 1, 202 }, { 9, 2, 203 }, { 9, 3, 0 }));
}
