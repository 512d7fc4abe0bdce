/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat_snapshot_test.c: what weir-stat makes of queue pairs, which are laid out here word by word, and of the
 * files that contexts leave.
 *
 * Tickets have more than 32 bits, and those that are under way lie on both sides of a lap's end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/abi.h>
#include <weir/nvme.h>

#include "tools/weir-stat/snapshot.h"

enum { PAIRS = 2, DEPTH = 8, DEPTH_LOG2 = 3 };

#define TAIL  UINT64_C(0x123456789d) /* its lap begins five tickets before */
#define LBA   (UINT64_C(7) << 32)
#define FIRST (TAIL - 1000)              /* ticket of the storage */
#define AGE   UINT64_C(5000)             /* ns; a clock that has begun just now has more */
#define AHEAD UINT64_C(1000000000000000) /* ns */

/** struct rings - a storage's memory */
struct rings {
	struct weir_queue queue[PAIRS];
	struct weir_slot slots[PAIRS][DEPTH];
	struct nvme_cqe completions[PAIRS][DEPTH];
	struct nvme_sqe submissions[PAIRS][DEPTH];
	struct weir_tracker_seen seen[PAIRS][DEPTH];
	uint64_t recovered[4];
	uint64_t snapped;
};

static struct rings rings;
static struct note note;
static struct note_storage storage;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint32_t free_sequence(uint64_t ticket)
{
	return (uint32_t)(ticket >> DEPTH_LOG2 << 1);
}

/* The slot of @ticket: @filled with its command, or free for the next one that gets it. */
static void set_slot(unsigned pair, uint64_t ticket, bool filled)
{
	weir_store_u32_relaxed_sys(&rings.slots[pair][ticket % DEPTH].sequence,
				   filled ? free_sequence(ticket) + 1 : free_sequence(ticket + DEPTH));
}

/* One that is reserved, and not filled yet. */
static void set_reserved(unsigned pair, uint64_t ticket)
{
	weir_store_u32_relaxed_sys(&rings.slots[pair][ticket % DEPTH].sequence, free_sequence(ticket));
}

static void set_entry(unsigned pair, uint64_t ticket, uint32_t opcode, uint64_t lba, uint32_t blocks)
{
	struct nvme_sqe *entry = &rings.submissions[pair][ticket % DEPTH];

	entry->cdw0 = opcode | (uint32_t)ticket << 16;
	entry->cdw10 = (uint32_t)lba;
	entry->cdw11 = (uint32_t)(lba >> 32);
	entry->cdw12 = 0x40000000 | (blocks - 1); /* with FUA */
}

/* At @position of the completion ring: @ticket's of this lap, or what a lap before has left. */
static void set_completion(unsigned pair, uint64_t position, uint64_t ticket, bool of_this_lap)
{
	uint32_t phase = (position / DEPTH % 2 == 0) == of_this_lap;

	rings.completions[pair][position % DEPTH].dw3 = phase << 16 | (uint32_t)(ticket & 0xffff);
}

/* The watchdog has known @ticket's command since @since_ns. */
static void set_seen(unsigned pair, uint64_t ticket, uint64_t since_ns)
{
	rings.seen[pair][ticket % DEPTH] =
		(struct weir_tracker_seen){ .since_ns = since_ns, .sequence = free_sequence(ticket) + 1 };
}

static void set_words(unsigned pair, uint64_t tail, uint64_t committed, uint64_t head)
{
	struct weir_queue *queue = &rings.queue[pair];

	weir_store_u64_relaxed_sys(&queue->tail, tail);
	weir_store_u64_relaxed_sys(&queue->committed, committed);
	weir_store_u64_relaxed_sys(&queue->reap, head * 2 + 1);
	weir_store_u64_relaxed_sys(&queue->completed, head - FIRST);
}

/* Queue pairs in which nothing is under way. */
static int begin(void **state)
{
	(void)state;
	memset(&rings, 0, sizeof(rings));
	rings.snapped = now_ns();
	for (unsigned i = 0; i < PAIRS; i++) {
		struct weir_queue *queue = &rings.queue[i];

		*queue = (struct weir_queue){ .sq = (uintptr_t)rings.submissions[i],
					      .cq = (uintptr_t)rings.completions[i],
					      .slots = (uintptr_t)rings.slots[i],
					      .depth = DEPTH,
					      .depth_log2 = DEPTH_LOG2,
					      .id = i + 1 };
		set_words(i, TAIL, TAIL, TAIL);
		for (uint64_t ticket = TAIL - DEPTH; ticket < TAIL; ticket++) {
			set_slot(i, ticket, false);
			set_completion(i, ticket + DEPTH, ticket, false);
		}
	}
	note = (struct note){ .pid = getpid(), .shared = true };
	storage = (struct note_storage){ .queues = (uintptr_t)rings.queue,
					 .count = PAIRS,
					 .depth = DEPTH,
					 .seen = (uintptr_t)rings.seen,
					 .snapped = (uintptr_t)&rings.snapped,
					 .copies = (uintptr_t)rings.queue,
					 .first_ticket = FIRST,
					 .recovered = (uintptr_t)rings.recovered };
	return 0;
}

static void take(struct snapshot_storage *snapshot, enum snapshot_words words)
{
	assert_int_equal(snapshot_at_storage(&note, &storage, snapshot), 0);
	assert_int_equal(snapshot->words, words);
}

static void expect_counts(const struct snapshot_queue *queue, uint32_t unannounced, uint32_t controller,
			  uint32_t answered, uint32_t reserved)
{
	assert_true(queue->counted && queue->steady);
	assert_int_equal(queue->count[SNAPSHOT_UNANNOUNCED], unannounced);
	assert_int_equal(queue->count[SNAPSHOT_CONTROLLER], controller);
	assert_int_equal(queue->count[SNAPSHOT_ANSWERED], answered);
	assert_int_equal(queue->reserved, reserved);
}

static void expect_oldest(const struct snapshot_queue *queue, enum snapshot_place location, uint64_t ticket)
{
	assert_true(queue->any);
	assert_int_equal(queue->oldest.location, location);
	assert_int_equal(queue->oldest.ticket, ticket);
	assert_int_equal(queue->oldest.slot, ticket % DEPTH);
	assert_int_equal(queue->oldest.cid, ticket & 0xffff);
}

static void test_nothing_is_under_way(void **state)
{
	struct snapshot_storage snapshot;

	(void)state;
	take(&snapshot, SNAPSHOT_LIVE);
	for (unsigned i = 0; i < PAIRS; i++) {
		expect_counts(&snapshot.queues[i], 0, 0, 0, 0);
		assert_false(snapshot.queues[i].any);
		assert_int_equal(snapshot.queues[i].id, i + 1);
		assert_int_equal(snapshot.queues[i].words.tail, TAIL);
	}
	snapshot_release(&snapshot);
}

/* Of the last eight tickets of @pair the first two are done, of four that were announced the second and the
 * fourth are answered, one is to be announced, and one is reserved. */
static void fill(unsigned pair)
{
	set_words(pair, TAIL, TAIL - 2, TAIL - 6);
	set_reserved(pair, TAIL - 1);
	for (uint64_t ticket = TAIL - 6; ticket < TAIL - 1; ticket++)
		set_slot(pair, ticket, true);
	set_completion(pair, TAIL - 6, TAIL - 3, true);
	set_completion(pair, TAIL - 5, TAIL - 5, true);
	for (uint64_t position = TAIL - 4; position < TAIL + 2; position++)
		set_completion(pair, position, position - DEPTH, false);
	set_entry(pair, TAIL - 6, NVME_OPCODE_WRITE, LBA, 65536);
}

static void test_each_command_is_where_it_is(void **state)
{
	struct snapshot_storage snapshot;

	(void)state;
	for (unsigned pair = 0; pair < PAIRS; pair++) {
		begin(NULL);
		fill(pair);
		take(&snapshot, SNAPSHOT_LIVE);
		expect_counts(&snapshot.queues[pair], 1, 2, 2, 1);
		expect_counts(&snapshot.queues[1 - pair], 0, 0, 0, 0);
		expect_oldest(&snapshot.queues[pair], SNAPSHOT_CONTROLLER, TAIL - 6);
		assert_true(snapshot.queues[pair].oldest.read);
		assert_int_equal(snapshot.queues[pair].oldest.opcode, NVME_OPCODE_WRITE);
		assert_int_equal(snapshot.queues[pair].oldest.lba, LBA);
		assert_int_equal(snapshot.queues[pair].oldest.blocks, 65536);
		snapshot_release(&snapshot);
	}
}

/* All of a ring's commands are answered, from one lap into the next. */
static void test_a_whole_lap_is_answered(void **state)
{
	struct snapshot_storage snapshot;

	(void)state;
	set_words(0, TAIL, TAIL, TAIL - DEPTH);
	for (uint64_t ticket = TAIL - DEPTH; ticket < TAIL; ticket++) {
		set_slot(0, ticket, true);
		set_completion(0, ticket, ticket, true);
	}
	take(&snapshot, SNAPSHOT_LIVE);
	expect_counts(&snapshot.queues[0], 0, 0, DEPTH, 0);
	expect_oldest(&snapshot.queues[0], SNAPSHOT_ANSWERED, TAIL - DEPTH);
	assert_false(snapshot.queues[0].oldest.read); /* the entry there is another command's */
	snapshot_release(&snapshot);
}

/* What the controller has goes before what is older and is not there. */
static void test_the_oldest_is_the_controllers(void **state)
{
	struct snapshot_storage snapshot;

	(void)state;
	set_words(0, TAIL, TAIL - 1, TAIL - 4);
	for (uint64_t ticket = TAIL - 4; ticket < TAIL; ticket++)
		set_slot(0, ticket, true);
	set_completion(0, TAIL - 4, TAIL - 4, true);
	set_completion(0, TAIL - 3, TAIL - 3, true);
	for (uint64_t position = TAIL - 2; position < TAIL + 4; position++)
		set_completion(0, position, position - DEPTH, false);
	set_entry(0, TAIL - 2, NVME_OPCODE_FLUSH, 0, 7);
	take(&snapshot, SNAPSHOT_LIVE);
	expect_counts(&snapshot.queues[0], 1, 1, 2, 0);
	expect_oldest(&snapshot.queues[0], SNAPSHOT_CONTROLLER, TAIL - 2);
	assert_true(snapshot.queues[0].oldest.read && snapshot.queues[0].oldest.blocks == 0);
	snapshot_release(&snapshot);
}

static void expect_age(unsigned pair, bool aged)
{
	struct snapshot_storage snapshot;
	uint64_t before = now_ns(), since = rings.seen[pair][(TAIL - 6) % DEPTH].since_ns;

	take(&snapshot, SNAPSHOT_LIVE);
	assert_int_equal(snapshot.queues[pair].oldest.aged, aged);
	if (aged)
		assert_in_range(snapshot.queues[pair].oldest.age_ns, before - since, now_ns() - since);
	else
		assert_int_equal(snapshot.queues[pair].oldest.age_ns, 0);
	snapshot_release(&snapshot);
}

/* By what the watchdog knows of that command, of that queue pair. */
static void test_a_command_has_its_own_age(void **state)
{
	(void)state;
	for (unsigned pair = 0; pair < PAIRS; pair++) {
		begin(NULL);
		fill(pair);
		expect_age(pair, false);
		set_seen(1 - pair, TAIL - 6, now_ns() - AGE);
		expect_age(pair, false);
		set_seen(pair, TAIL - 6 - DEPTH, now_ns() - AGE); /* the slot's last one */
		expect_age(pair, false);
		set_seen(pair, TAIL - 6, now_ns() + AHEAD); /* by a clock that is ahead */
		expect_age(pair, false);
		set_seen(pair, TAIL - 6, 0);
		expect_age(pair, false);
		set_seen(pair, TAIL - 6, now_ns() - AGE);
		expect_age(pair, true);
		storage.seen = 0;
		expect_age(pair, false);
	}
}

/* Of words that the watchdog copied, commands are those that it knows of. */
static void test_words_that_were_copied(void **state)
{
	struct snapshot_storage snapshot;

	(void)state;
	fill(1);
	note.shared = false;
	set_seen(1, TAIL - 6, now_ns() - AGE);
	set_seen(1, TAIL - 4, now_ns() - 2 * AGE);
	set_seen(1, TAIL - 8, now_ns() - 3 * AGE);
	rings.seen[1][(TAIL - 8) % DEPTH].sequence++; /* that one has ended */
	rings.snapped = now_ns() - AGE;
	take(&snapshot, SNAPSHOT_COPY);
	assert_true(snapshot.snapped && snapshot.polled_ns >= AGE);
	assert_false(snapshot.queues[0].any || snapshot.queues[1].counted);
	assert_int_equal(snapshot.queues[1].words.committed, TAIL - 2);
	expect_oldest(&snapshot.queues[1], SNAPSHOT_CONTROLLER, TAIL - 6);
	assert_true(snapshot.queues[1].oldest.aged && snapshot.queues[1].oldest.age_ns >= AGE);
	assert_int_equal(snapshot.queues[1].oldest.lba, LBA);
	snapshot_release(&snapshot);
	weir_store_u64_relaxed_sys(&rings.queue[1].completed, TAIL - 2 - FIRST); /* all have */
	take(&snapshot, SNAPSHOT_COPY);
	assert_false(snapshot.queues[1].any);
	snapshot_release(&snapshot);
	rings.snapped = 0; /* never */
	take(&snapshot, SNAPSHOT_NONE);
	snapshot_release(&snapshot);
	rings.snapped = now_ns() + AHEAD;
	take(&snapshot, SNAPSHOT_NONE);
	snapshot_release(&snapshot);
	rings.snapped = now_ns();
	storage.copies = 0;
	take(&snapshot, SNAPSHOT_NONE);
	snapshot_release(&snapshot);
}

static void test_what_moved(void **state)
{
	struct snapshot_storage snapshot;

	(void)state;
	take(&snapshot, SNAPSHOT_LIVE);
	for (unsigned i = 0; i < PAIRS; i++)
		assert_int_equal(snapshot.queues[i].moved, SNAPSHOT_MOVED_UNKNOWN);
	weir_store_u64_relaxed_sys(&rings.queue[1].completed, TAIL);
	snapshot_again(&note, &storage, &snapshot);
	assert_int_equal(snapshot.queues[0].moved, SNAPSHOT_STOOD);
	assert_int_equal(snapshot.queues[1].moved, SNAPSHOT_MOVED);
	rings.queue[0].id = 0; /* no longer one: what is there has not moved, it is something else */
	weir_store_u64_relaxed_sys(&rings.queue[0].completed, TAIL);
	weir_store_u64_relaxed_sys(&rings.queue[1].completed, TAIL - FIRST);
	snapshot_again(&note, &storage, &snapshot);
	assert_int_equal(snapshot.queues[0].moved, SNAPSHOT_STOOD);
	assert_int_equal(snapshot.queues[1].moved, SNAPSHOT_STOOD);
	snapshot_release(&snapshot);
}

/* Memory that has become something else since. */
static void test_what_is_no_queue_pair(void **state)
{
	uint32_t *const words[] = { &rings.queue[1].id, &rings.queue[1].depth, &rings.queue[1].depth_log2 };
	struct snapshot_storage snapshot;

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		begin(NULL);
		++*words[i];
		take(&snapshot, SNAPSHOT_NONE);
		snapshot_release(&snapshot);
	}
	begin(NULL);
	storage.depth = 2 * DEPTH;
	take(&snapshot, SNAPSHOT_NONE);
	snapshot_release(&snapshot);
}

/* What ends before all of it was read was not read. */
static void test_memory_that_ends(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct snapshot_storage snapshot;

	(void)state;
	assert_true(memory != MAP_FAILED && mprotect(memory + page, page, PROT_NONE) == 0);
	storage.recovered = (uintptr_t)(memory + page - sizeof(uint64_t));
	take(&snapshot, SNAPSHOT_LIVE);
	assert_false(snapshot.recovered_read);
	snapshot_release(&snapshot);
	begin(NULL);
	memcpy(memory + page - sizeof(rings.queue[0]), rings.queue, sizeof(rings.queue[0]));
	storage.queues = (uintptr_t)(memory + page - sizeof(rings.queue[0])); /* the second one is missing */
	take(&snapshot, SNAPSHOT_NONE);
	assert_true(snapshot.recovered_read);
	snapshot_release(&snapshot);
	munmap(memory, 2 * page);
}

/* ---- files ---- */

static char file_name[64];

static void write_note(const char *text)
{
	FILE *file = fopen(file_name, "we");

	assert_non_null(file);
	fprintf(file, "weir-context %d\nabi %d\npid 77\nstart 12884901893\nnumber 5\n%s", WEIR_PUBLISH_LAYOUT,
		WEIR_ABI_VERSION, text);
	assert_int_equal(fclose(file), 0);
}

static void read_note(struct note *read, enum note_state expected)
{
	assert_true(note_read(file_name, 77, read));
	assert_int_equal(read->state, expected);
}

static void test_a_file_says_all_of_a_context(void **state)
{
	struct note read;

	(void)state;
	write_note("device a%25b%0ac\nshared 1\nstorage file:/x%25y %z%4\nqueues 0xfedcba9876543210 "
		   "65536 65536\n"
		   "late 0xa000000001 0xa000000002 0xa000000003 12884901889\nrecovered 0xa000000004\n"
		   "network 0xa000000005\nfacts 4096 1 0 12884901890 12884901891\nstorage second\n"
		   "queues 0xa000000006 1 2\nfacts 512 0 1 8 9\ncache 0xa000000007 512 12884901892\n"
		   "cache 0xa000000008 4096 11\nend\n");
	read_note(&read, NOTE_GOOD);
	assert_true(read.pid == 77 && read.start == 12884901893 && read.number == 5 && read.shared);
	assert_string_equal(read.device, "a%b\nc");
	assert_int_equal(read.storage_count, 2);
	assert_string_equal(read.storages[0].uri, "file:/x%y %z%4");
	assert_true(read.storages[0].queues == 0xfedcba9876543210 && read.storages[0].count == 65536 &&
		    read.storages[0].depth == 65536);
	assert_true(read.storages[0].seen == 0xa000000001 && read.storages[0].snapped == 0xa000000002 &&
		    read.storages[0].copies == 0xa000000003 && read.storages[0].first_ticket == 12884901889);
	assert_true(read.storages[0].recovered == 0xa000000004 && read.storages[0].network == 0xa000000005);
	assert_true(read.storages[0].block_bytes == 4096 && read.storages[0].pull &&
		    !read.storages[0].service && read.storages[0].wait_ms == 12884901890 &&
		    read.storages[0].answer_ms == 12884901891);
	assert_string_equal(read.storages[1].uri, "second");
	assert_true(read.storages[1].queues == 0xa000000006 && read.storages[1].count == 1 &&
		    read.storages[1].depth == 2 && read.storages[1].seen == 0);
	assert_true(read.storages[1].block_bytes == 512 && !read.storages[1].pull &&
		    read.storages[1].service && read.storages[1].wait_ms == 8 &&
		    read.storages[1].answer_ms == 9);
	assert_int_equal(read.cache_count, 2);
	assert_true(read.caches[0].lines == 0xa000000007 && read.caches[0].line_bytes == 512 &&
		    read.caches[0].bytes == 12884901892 && read.caches[1].lines == 0xa000000008 &&
		    read.caches[1].line_bytes == 4096 && read.caches[1].bytes == 11);
	assert_int_equal(read.target, 0);
	note_release(&read);
	write_note("device t\nshared 0\ntarget 0xa000000009 64 12884901894\nend\n");
	read_note(&read, NOTE_GOOD);
	assert_true(!read.shared && read.target == 0xa000000009 && read.target_threads == 64 &&
		    read.target_stride == 12884901894);
	note_release(&read);
}

/* Numbers by which more would be read than there can be, lines that are missing, come twice, or are none. */
static void test_files_that_are_damaged(void **state)
{
	static const char *const texts[] = {
		"device a\nstorage b\nqueues 0x10 1 1\nend\n",
		"device a\nstorage b\nqueues 0x10 1 0\nend\n",
		"device a\nstorage b\nqueues 0x10 1 6\nend\n",
		"device a\nstorage b\nqueues 0x10 1 131072\nend\n",
		"device a\nstorage b\nqueues 0x10 65537 8\nend\n",
		"device a\nstorage b\nend\n",
		"device a\nstorage b\nqueues 0x10 1 8\nstorage c\nend\n",
		"device a\nstorage b\nstorage c\nqueues 0x10 1 8\nend\n",
		"device a\nqueues 0x10 1 8\nend\n",
		"device a\nfacts 512 0 0 1 1\nend\n",
		"device a\nstorage b\nqueues 0x10 1 8\nfacts 512 0 0 1\nend\n",
		"device a\nstorage b\nqueues 0x10 1 8\nlate 0x1 0x2 0x3\nend\n",
		"device a\nstorage b\nqueues 0x10 1 8\nrecovered x\nend\n",
		"device a\nstorage b\nqueues 0x10 1 8\nnetwork x\nend\n",
		"device a\ncache 0x10 512\nend\n",
		"device a\ntarget 0x10 65 8\nend\n",
		"device a\ntarget 0x10 1\nend\n",
		"device a\ndevice b\nend\n",
		"device a\nunheard of\nend\n",
		"device a\nshared x\nend\n",
		"device a\npid 78\nend\n",
		"device a\nstart x\nend\n",
		"device a\nstart 0\nend\n",
		"device a\n\nend\n",
		"device a\n",
		"end\n",
	};
	struct note read;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		write_note(texts[i]);
		assert_true(note_read(file_name, 77, &read));
		if (read.state != NOTE_DAMAGED)
			fail_msg("is taken for whole:\n%s", texts[i]);
		note_release(&read);
	}
}

static void test_a_file_that_is_another_one(void **state)
{
	struct note read;

	(void)state;
	write_note("device a\nend\n");
	read_note(&read, NOTE_GOOD);
	assert_false(note_changed(&read));
	read.was.st_mtim.tv_nsec ^= 1;
	assert_true(note_changed(&read));
	read.was.st_mtim.tv_nsec ^= 1;
	read.was.st_mtim.tv_sec--;
	assert_true(note_changed(&read));
	read.was.st_mtim.tv_sec++;
	read.was.st_ino++;
	assert_true(note_changed(&read));
	read.was.st_ino--;
	assert_false(note_changed(&read));
	assert_int_equal(unlink(file_name), 0);
	assert_true(note_changed(&read));
	note_release(&read);
	assert_false(note_read(file_name, 77, &read));
	assert_int_equal(symlink("/etc/passwd", file_name), 0); /* anybody's, and none of a context */
	assert_false(note_read(file_name, 77, &read));
	assert_int_equal(unlink(file_name), 0);
}

static int name_file(void **state)
{
	(void)state;
	snprintf(file_name, sizeof(file_name), "stat_snapshot_test.%d", (int)getpid());
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	(void)unlink(file_name);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_nothing_is_under_way, begin),
		cmocka_unit_test_setup(test_each_command_is_where_it_is, begin),
		cmocka_unit_test_setup(test_a_whole_lap_is_answered, begin),
		cmocka_unit_test_setup(test_the_oldest_is_the_controllers, begin),
		cmocka_unit_test_setup(test_a_command_has_its_own_age, begin),
		cmocka_unit_test_setup(test_words_that_were_copied, begin),
		cmocka_unit_test_setup(test_what_moved, begin),
		cmocka_unit_test_setup(test_what_is_no_queue_pair, begin),
		cmocka_unit_test_setup(test_memory_that_ends, begin),
		cmocka_unit_test(test_a_file_says_all_of_a_context),
		cmocka_unit_test(test_files_that_are_damaged),
		cmocka_unit_test(test_a_file_that_is_another_one),
	};

	return cmocka_run_group_tests_name("stat_snapshot", tests, name_file, remove_file);
}
