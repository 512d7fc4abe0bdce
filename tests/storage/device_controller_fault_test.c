/* SPDX-License-Identifier: BSD-3-Clause */
/* The controller made of lanes: its timing model and its fault table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device_controller_rig.h"

static bool passed(uint64_t since_ns, uint64_t until_ns, uint64_t least_ns)
{
	return until_ns - since_ns >= least_ns;
}

static void run_reads(struct rig *rig, const struct rig_options *options)
{
	rig_open(rig, options);
	rig_fill_medium(rig);
	rig_run(rig, "test_device_controller_reads");
}

/* How many reads ended with @status; none gave wrong data. */
static uint32_t ended_with(struct rig *rig, uint32_t status)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rig_results(rig); i++) {
		struct device_controller_result result = rig_result(rig, i);

		assert_int_equal(result.wrong, 0);
		count += result.status == status;
	}
	return count;
}

/* Reads by lanes of 3 waves: none is done before its time, whoever else has how many under way. */
static void test_nothing_is_done_before_its_latency(void **state)
{
	(void)state;
	for (size_t i = 0; i < test_width_count(); i++) {
		struct rig_options options = { .width = test_width(i),
					       .queues = 2,
					       .depth_log2 = 4,
					       .controllers = 2,
					       .clients = 3,
					       .rounds = 3,
					       .latency_us = 3000,
					       .blocks = 1024 };
		struct rig rig;

		run_reads(&rig, &options);
		assert_int_equal(ended_with(&rig, WEIR_OK), rig_results(&rig));
		for (uint32_t r = 0; r < rig_results(&rig); r++) {
			struct device_controller_result result = rig_result(&rig, r);

			/* a device's clock may advance by a microsecond at a time */
			assert_true(passed(result.began_ns, result.ended_ns, 2999000));
		}
		weir_context_close(rig.context);
	}
}

/* The last of n reads at 2,000 per second is done (n - 1) x 0.5 ms after the first began, however many
 * queues. */
static void test_no_more_than_the_rate(void **state)
{
	(void)state;
	for (size_t i = 0; i < test_width_count(); i++) {
		struct rig_options options = { .width = test_width(i),
					       .queues = 3,
					       .depth_log2 = 3,
					       .controllers = 3,
					       .clients = 2,
					       .rounds = 2,
					       .iops = 2000,
					       .blocks = 512 };
		uint64_t first = ~0ull, last = 0;
		struct rig rig;

		run_reads(&rig, &options);
		assert_int_equal(ended_with(&rig, WEIR_OK), rig_results(&rig));
		for (uint32_t r = 0; r < rig_results(&rig); r++) {
			struct device_controller_result result = rig_result(&rig, r);

			first = result.began_ns < first ? result.began_ns : first;
			last = result.ended_ns > last ? result.ended_ns : last;
		}
		assert_true(passed(first, last, (rig_results(&rig) - 1) * 500000ull - 1000));
		weir_context_close(rig.context);
	}
}

/* Turns that nobody took are lost: after a rest, commands do not come faster for it. */
static void test_iterations_are_not_saved(void **state)
{
	struct rig_options options = one_wave(test_width(0));
	uint32_t served[MOST_ITERATIONS];
	struct rig rig;
	uint64_t word;

	(void)state;
	options.iops = 1000;
	rig_open(&rig, &options);
	announce(&rig, 0, 1, 1);
	take_iterations(&rig, 2, served);
	must(weir_copy_from_device(rig.context, &word, rig.args.controller.rate, sizeof(word)));
	word -= 10ull * 1000000000 << WEIR_CONTROLLER_TICKS_LOG2; /* as if that had been 10 s ago */
	rig_put(&rig, rig.args.controller.rate, &word, sizeof(word));
	announce(&rig, 1, 4, 1);
	take_iterations(&rig, 4, served);
	assert_int_equal(completion(&rig, 1).dw3 >> 16 & 1, 1);
	assert_int_equal(completion(&rig, 2).dw3 >> 16 & 1, 0);
	weir_context_close(rig.context);
}

static struct rig_options faulty(uint32_t width, struct weir_fault_row row)
{
	struct rig_options options = { .width = width,
				       .queues = 1,
				       .depth_log2 = 6,
				       .controllers = 2,
				       .clients = 2,
				       .rounds = 2,
				       .blocks = 512 };

	options.faults[0] = row;
	return options;
}

/* A row as those of a URI are made, for any command unless it says which. */
static struct weir_fault_row completed_row(struct weir_fault_row row)
{
	row.opcode = row.opcode ? row.opcode : WEIR_FAULT_ANY_OPCODE;
	row.every = row.every ? row.every : 1;
	row.of = row.of ? row.of : 1;
	row.cid = row.cid ? row.cid : 0x10000;
	return row;
}

#define ROW(...) completed_row((struct weir_fault_row){ __VA_ARGS__ })

static void run_statuses(uint32_t width)
{
	struct rig_options options = faulty(width, ROW(.kind = WEIR_VIRTUAL_FAULT_STATUS, .lba = 1,
						       .blocks = 2, .code = NVME_STATUS_UNRECOVERED_READ));
	uint32_t reads = 2 * width * 2, every = 0;
	struct rig rig;

	options.faults[1] = ROW(.kind = WEIR_VIRTUAL_FAULT_STATUS, .after = 1, .every = 3,
				.code = NVME_STATUS_INTERNAL_ERROR | NVME_STATUS_DNR);
	for (uint32_t number = 1; number < reads; number++)
		every += number % 3 == 0;
	run_reads(&rig, &options);
	assert_in_range(ended_with(&rig, weir_status_from_nvme(NVME_STATUS_UNRECOVERED_READ << 17)), 0, 2);
	assert_int_equal(
		ended_with(&rig, weir_status_from_nvme((NVME_STATUS_INTERNAL_ERROR | NVME_STATUS_DNR) << 17)),
		every);
	assert_in_range(ended_with(&rig, WEIR_OK), reads - every - 2, reads - every);
	weir_context_close(rig.context);
	options.faults[1].of = 0; /* the range alone */
	run_reads(&rig, &options);
	for (uint32_t lba = 0; lba < reads; lba++)
		assert_int_equal(rig_result(&rig, lba).status,
				 lba == 1 || lba == 2
					 ? weir_status_from_nvme(NVME_STATUS_UNRECOVERED_READ << 17)
					 : WEIR_OK);
	weir_context_close(rig.context);
}

static void test_statuses(void **state)
{
	(void)state;
	for_widths(run_statuses);
}

/* Three of the first reads never end; all others do, and the ring has room for them. */
static void run_drops(uint32_t width)
{
	uint32_t dropped = least(3, 2 * width);
	struct rig_options options = faulty(width, ROW(.kind = WEIR_VIRTUAL_FAULT_DROP, .count = 3));
	struct rig rig;

	options.rounds = 1;
	options.depth_log2 = 8;
	options.timeout_us = 300000;
	run_reads(&rig, &options);
	assert_int_equal(ended_with(&rig, WEIR_E_TIMEOUT), dropped);
	assert_int_equal(ended_with(&rig, WEIR_OK), 2 * width - dropped);
	weir_context_close(rig.context);
}

static void test_dropped_ones_never_end(void **state)
{
	(void)state;
	for_widths(run_drops);
}

/* What three dropped ones were promised in a ring of 8 is there for others. */
static void run_given_back(uint32_t width)
{
	struct rig_options options = one_wave(width);
	uint32_t served[MOST_ITERATIONS];
	struct rig rig;

	options.depth_log2 = 3;
	options.faults[0] = ROW(.kind = WEIR_VIRTUAL_FAULT_DROP, .count = 3);
	rig_open(&rig, &options);
	announce(&rig, 0, 7, 1);
	take_iterations(&rig, MOST_ITERATIONS, served);
	ring(&rig, rig.queues[0].cq_doorbell, 4);
	announce(&rig, 7, 6, 1);
	take_iterations(&rig, MOST_ITERATIONS, served);
	for (uint32_t i = 0; i < 6; i++)
		completed(&rig, 4 + i, 7 + i, 0, (completion(&rig, 4 + i).dw2 & 7));
	weir_context_close(rig.context);
}

static void test_dropped_ones_give_their_room_back(void **state)
{
	(void)state;
	for_widths(run_given_back);
}

/* The one late read is the last to end, and not before its time. */
static void run_late(uint32_t width)
{
	struct rig_options options =
		faulty(width, ROW(.kind = WEIR_VIRTUAL_FAULT_LATE, .lba = 1, .blocks = 1, .us = 300000));
	struct device_controller_result late;
	struct rig rig;

	options.rounds = 1;
	options.depth_log2 = 8;
	options.blocks = 2 * width;
	run_reads(&rig, &options);
	late = rig_result(&rig, 1);
	assert_int_equal(ended_with(&rig, WEIR_OK), 2 * width);
	assert_true(passed(late.began_ns, late.ended_ns, 299999000));
	for (uint32_t i = 0; i < 2 * width; i++)
		if (i / width != 1 / width) /* lanes of one wave wait together */
			assert_true((int64_t)(late.ended_ns - rig_result(&rig, i).ended_ns) > 0);
	weir_context_close(rig.context);
}

static void test_a_late_one_holds_nobody_up(void **state)
{
	(void)state;
	for_widths(run_late);
}

/* What the ring holds after @count reads in a queue of 64 and @rows: identifiers, those of other queues as
 * 1000. */
static void posted(uint32_t width, uint32_t count, const struct weir_fault_row *rows,
		   const uint32_t *expected, uint32_t entries)
{
	struct rig_options options = one_wave(width);
	uint32_t served[MOST_ITERATIONS];
	struct rig rig;

	options.depth_log2 = 6;
	memcpy(options.faults, rows, sizeof(options.faults));
	rig_open(&rig, &options);
	announce(&rig, 0, count, 1);
	take_iterations(&rig, MOST_ITERATIONS, served);
	for (uint32_t i = 0; i < entries; i++) {
		struct nvme_cqe cqe = completion(&rig, i);
		uint32_t found = cqe.dw2 >> 16 == 1 ? cqe.dw3 & 0xffff : 1000;

		if (found != expected[i] || !(cqe.dw3 >> 16 & 1))
			fail_msg("width %u, entry %u: identifier %u with phase %u, %u expected", width, i,
				 found, cqe.dw3 >> 16 & 1, expected[i]);
	}
	assert_int_equal(completion(&rig, entries).dw3, 0);
	weir_context_close(rig.context);
}

static void run_extras(uint32_t width)
{
	posted(width, 5,
	       (struct weir_fault_row[RIG_ROWS]){
		       ROW(.kind = WEIR_VIRTUAL_FAULT_DUPLICATE, .every = 2),
		       ROW(.kind = WEIR_VIRTUAL_FAULT_STRAY, .after = 1, .count = 2, .cid = 77) },
	       (uint32_t[]){ 0, 77, 1, 1, 77, 2, 3, 3, 4 }, 9);
	posted(width, 2,
	       (struct weir_fault_row[RIG_ROWS]){ ROW(.kind = WEIR_VIRTUAL_FAULT_STRAY, .count = 1) },
	       (uint32_t[]){ 0x8000, 0, 1 }, 3);
	posted(width, 3,
	       (struct weir_fault_row[RIG_ROWS]){ ROW(.kind = WEIR_VIRTUAL_FAULT_MISROUTE, .after = 2) },
	       (uint32_t[]){ 0, 1, 1000 }, 3);
	posted(width, 4,
	       (struct weir_fault_row[RIG_ROWS]){ ROW(.kind = WEIR_VIRTUAL_FAULT_DROP, .every = 2) },
	       (uint32_t[]){ 0, 2 }, 2);
}

static void test_entries_too_many_and_too_few(void **state)
{
	(void)state;
	for_widths(run_extras);
}

/* 7 of 8 entries are promised to commands: the last one's duplicate has no room, and does not happen. */
static void run_full(uint32_t width)
{
	struct rig_options options = one_wave(width);
	uint32_t served[MOST_ITERATIONS];
	struct rig rig;

	options.depth_log2 = 3;
	options.faults[0] = ROW(.kind = WEIR_VIRTUAL_FAULT_DUPLICATE, .after = 6);
	rig_open(&rig, &options);
	announce(&rig, 0, 7, 1);
	take_iterations(&rig, MOST_ITERATIONS, served);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(completion(&rig, i).dw3, (i | 0x10000));
	assert_int_equal(completion(&rig, 7).dw3, 0);
	weir_context_close(rig.context);
}

static void test_no_extra_entry_without_room(void **state)
{
	(void)state;
	for_widths(run_full);
}

static void run_phase(uint32_t width)
{
	struct rig_options options = one_wave(width);
	uint32_t served[MOST_ITERATIONS];
	struct rig rig;

	options.faults[0] = ROW(.kind = WEIR_VIRTUAL_FAULT_PHASE, .after = 1, .count = 1);
	rig_open(&rig, &options);
	announce(&rig, 0, 3, 1);
	take_iterations(&rig, MOST_ITERATIONS, served);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(completion(&rig, i).dw3 & 0xffff, i);
		assert_int_equal(completion(&rig, i).dw3 >> 16 & 1, i != 1);
	}
	weir_context_close(rig.context);
}

static void test_a_wrong_phase(void **state)
{
	(void)state;
	for_widths(run_phase);
}

static void run_groups(uint32_t width)
{
	/* 2 and 5 wait for each other; of those that are fetched together, those that do not wait come first
	 */
	posted(width, 7,
	       (struct weir_fault_row[RIG_ROWS]){
		       ROW(.kind = WEIR_VIRTUAL_FAULT_BURST, .every = 3, .of = 2) },
	       width == 1 ? (uint32_t[]){ 0, 1, 3, 4, 2, 5, 6 } : (uint32_t[]){ 0, 1, 3, 4, 6, 2, 5 }, 7);
	/* nobody else comes: what is there is let go */
	posted(width, 3, (struct weir_fault_row[RIG_ROWS]){ ROW(.kind = WEIR_VIRTUAL_FAULT_BURST, .of = 9) },
	       (uint32_t[]){ 0, 1, 2 }, 3);
}

/* Of 24 reads all come, once, and not in their order. */
static void run_shuffle(uint32_t width)
{
	struct rig_options options = one_wave(width);
	uint32_t served[MOST_ITERATIONS], misplaced = 0;
	uint64_t seen = 0;
	struct rig rig;

	options.depth_log2 = 6;
	options.faults[0] = ROW(.kind = WEIR_VIRTUAL_FAULT_SHUFFLE, .of = 8, .seed = 3);
	rig_open(&rig, &options);
	announce(&rig, 0, 24, 1);
	take_iterations(&rig, MOST_ITERATIONS, served);
	take_iterations(&rig, MOST_ITERATIONS, served);
	for (uint32_t i = 0; i < 24; i++) {
		uint32_t cid = completion(&rig, i).dw3 & 0xffff;

		assert_true(cid < 24 && !(seen >> cid & 1) && (completion(&rig, i).dw3 >> 16 & 1));
		assert_int_equal(cid / 8, i / 8); /* the oldest eight are a group */
		seen |= 1ull << cid;
		misplaced += cid != i;
	}
	assert_true(misplaced > 8);
	weir_context_close(rig.context);
}

static void test_groups(void **state)
{
	(void)state;
	for_widths(run_groups);
	for_widths(run_shuffle);
}

/* After the first command nothing is fetched for so long; a claim that has it has others, too. */
static void run_stall(uint32_t width)
{
	struct rig_options options =
		faulty(width, ROW(.kind = WEIR_VIRTUAL_FAULT_STALL, .count = 1, .us = 100000));
	uint64_t first = ~0ull, last = 0;
	struct rig rig;

	run_reads(&rig, &options);
	assert_int_equal(ended_with(&rig, WEIR_OK), rig_results(&rig));
	for (uint32_t i = 0; i < rig_results(&rig); i++) {
		struct device_controller_result result = rig_result(&rig, i);

		first = result.began_ns < first ? result.began_ns : first;
		last = result.ended_ns > last ? result.ended_ns : last;
	}
	assert_true(passed(first, last, 99999000)); /* second rounds came after it */
	weir_context_close(rig.context);
}

static void test_a_stall(void **state)
{
	(void)state;
	for_widths(run_stall);
}

/* Everything at once that loses nothing: all reads end well. */
static void run_rude(uint32_t width)
{
	struct rig_options options = { .width = width,
				       .queues = 2,
				       .depth_log2 = 4,
				       .controllers = 3,
				       .clients = 3,
				       .rounds = 6,
				       .blocks = 3 * 64 * 6,
				       .latency_us = 20 };
	struct rig rig;
	uint64_t rogue = 0;

	options.faults[0] = ROW(.kind = WEIR_VIRTUAL_FAULT_LATE, .chance = 300, .us = 200);
	options.faults[1] = ROW(.kind = WEIR_VIRTUAL_FAULT_SHUFFLE, .every = 2, .of = 5, .seed = 1);
	options.faults[2] = ROW(.kind = WEIR_VIRTUAL_FAULT_DUPLICATE, .every = 3);
	options.faults[3] = ROW(.kind = WEIR_VIRTUAL_FAULT_STRAY, .every = 5);
	run_reads(&rig, &options);
	assert_int_equal(ended_with(&rig, WEIR_OK), rig_results(&rig));
	for (uint32_t q = 0; q < 2; q++) {
		struct weir_queue queue = rig_queue_after(&rig, q);

		rogue += weir_load_u64_relaxed_sys(&queue.rogue);
	}
	assert_true(rogue > 0);
	weir_context_close(rig.context);
}

static void test_rude_but_right(void **state)
{
	(void)state;
	for_widths(run_rude);
}

/* Of the rows of one kind that match a command the last one says how, whatever their numbers are. */
static void run_last_row(uint32_t width)
{
	struct rig_options options = one_wave(width);
	uint32_t served[MOST_ITERATIONS];
	struct rig rig;

	options.faults[0] = ROW(.kind = WEIR_VIRTUAL_FAULT_DROP, .after = 100);
	options.faults[1] = ROW(.kind = WEIR_VIRTUAL_FAULT_STATUS, .code = NVME_STATUS_UNRECOVERED_READ);
	options.faults[2] =
		ROW(.kind = WEIR_VIRTUAL_FAULT_STATUS, .every = 2, .code = NVME_STATUS_INTERNAL_ERROR);
	rig_open(&rig, &options);
	announce(&rig, 0, 4, 1);
	take_iterations(&rig, MOST_ITERATIONS, served);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(completion(&rig, i).dw3 >> 17,
				 i % 2 ? NVME_STATUS_INTERNAL_ERROR : NVME_STATUS_UNRECOVERED_READ);
	weir_context_close(rig.context);
}

static void test_the_last_row_of_a_kind(void **state)
{
	(void)state;
	for_widths(run_last_row);
}

/* What ends with a row's status moves nothing, neither way; what is never completed was carried out. */
static void run_moved(uint32_t width)
{
	struct rig_options options = one_wave(width);
	uint32_t served[MOST_ITERATIONS];
	uint64_t mark = 77, buffer, medium;
	struct rig rig;

	options.faults[0] = ROW(.kind = WEIR_VIRTUAL_FAULT_STATUS, .lba = 1, .blocks = 2, .code = 0x281);
	options.faults[1] = ROW(.kind = WEIR_VIRTUAL_FAULT_DROP, .lba = 3, .blocks = 1);
	rig_open(&rig, &options);
	rig_fill_medium(&rig);
	buffer = rig.args.buffers;
	medium = rig.args.controller.medium;
	rig_put(&rig, buffer, &mark, sizeof(mark));
	put_command(&rig, 0, NVME_OPCODE_WRITE, 1, 1, buffer, 0);
	put_command(&rig, 1, NVME_OPCODE_READ, 2, 1, buffer, 0);
	put_command(&rig, 2, NVME_OPCODE_WRITE, 3, 1, buffer, 0);
	put_command(&rig, 3, NVME_OPCODE_WRITE, 4, 1, buffer, 0);
	ring(&rig, rig.queues[0].sq_doorbell, 4);
	take_iterations(&rig, MOST_ITERATIONS, served);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(completion(&rig, i).dw3 & 0xffff, i < 2 ? i : 3);
		assert_int_equal(completion(&rig, i).dw3 >> 17, i < 2 ? 0x281 : 0);
	}
	for (uint32_t lba = 1; lba < 5; lba++) {
		uint64_t word;

		must(weir_copy_from_device(rig.context, &word, medium + lba * 512, sizeof(word)));
		assert_int_equal(word, lba < 3 ? device_controller_word(lba, 0) : mark);
	}
	must(weir_copy_from_device(rig.context, &mark, buffer, sizeof(mark)));
	assert_int_equal(mark, 77);
	weir_context_close(rig.context);
}

static void test_what_is_carried_out(void **state)
{
	(void)state;
	for_widths(run_moved);
}

/* What did not happen for want of room does not count: the row has it for a later command. */
static void run_spared(uint32_t width)
{
	static const struct {
		uint32_t kind, entries[2];
	} kinds[] = { { WEIR_VIRTUAL_FAULT_DUPLICATE, { 7, 7 } }, { WEIR_VIRTUAL_FAULT_STRAY, { 77, 7 } } };

	for (size_t k = 0; k < 2; k++) {
		struct rig_options options = one_wave(width);
		uint32_t served[MOST_ITERATIONS];
		struct rig rig;

		options.depth_log2 = 3;
		options.faults[0] = ROW(.kind = kinds[k].kind, .after = 6, .count = 1, .cid = 77);
		rig_open(&rig, &options);
		announce(&rig, 0, 7, 1);
		take_iterations(&rig, MOST_ITERATIONS, served);
		for (uint32_t i = 0; i < 7; i++)
			assert_int_equal(completion(&rig, i).dw3 & 0xffff, i);
		ring(&rig, rig.queues[0].cq_doorbell, 7);
		announce(&rig, 7, 2, 1);
		take_iterations(&rig, MOST_ITERATIONS, served);
		for (uint32_t i = 0; i < 2; i++)
			assert_int_equal(completion(&rig, 7 + i).dw3 & 0xffff, kinds[k].entries[i]);
		assert_int_equal(completion(&rig, 9).dw3 & 0xffff, 8); /* once */
		weir_context_close(rig.context);
	}
}

static void test_spared_ones_do_not_count(void **state)
{
	(void)state;
	for_widths(run_spared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_done_before_its_latency),
		cmocka_unit_test(test_no_more_than_the_rate),
		cmocka_unit_test(test_iterations_are_not_saved),
		cmocka_unit_test(test_statuses),
		cmocka_unit_test(test_dropped_ones_never_end),
		cmocka_unit_test(test_dropped_ones_give_their_room_back),
		cmocka_unit_test(test_a_late_one_holds_nobody_up),
		cmocka_unit_test(test_entries_too_many_and_too_few),
		cmocka_unit_test(test_no_extra_entry_without_room),
		cmocka_unit_test(test_a_wrong_phase),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_a_stall),
		cmocka_unit_test(test_rude_but_right),
		cmocka_unit_test(test_the_last_row_of_a_kind),
		cmocka_unit_test(test_what_is_carried_out),
		cmocka_unit_test(test_spared_ones_do_not_count),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("device_controller_fault", tests, NULL, NULL);
}
