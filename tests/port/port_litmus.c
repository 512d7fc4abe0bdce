/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The litmus tests' host side: who plays what, and which of the outcomes may not be.
 *
 * "Holds" is a promise of docs/porting.md: one forbidden outcome fails it. "Counted" is what the ports leave
 * open, and shows what the device does. A device that does not run the players side by side skips them.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../rig/context.h"
#include "port.h"
#include "port_table.h"

enum {
	LAUNCHES = 4,
	CPU_ITERATIONS = 4096,
	DEVICE_ITERATIONS = 512,
	MOST_TEAMS_OF_BLOCKS = 8,
	ATTEMPTS = 3,
	WIDTH_STEP = 2, /* of the cpu's, single lanes and waves of 32 */
	LOCK_BLOCKS = 4,
	LOCK_LANES = 64,
	LOCK_ROUNDS = 40,
	LETTERS = 4000,
};

#define GUARD              0x5a5a5a5au
#define CPU_TIMEOUT_NS     2000000000u
#define DEVICE_TIMEOUT_NS  300000000u
#define PACE_NS            200000000u
#define LOCK_TIMEOUT_NS    20000000000u
#define MESSAGE_TIMEOUT_NS 10000000000u

/** struct litmus - a row; @counted: nothing is promised */
struct litmus {
	const char *name;
	uint32_t shape, players, publish, observe, data, placement;
	bool counted;
};

/* What one player's notes of a row were, over all launches. */
struct tally {
	uint64_t iterations;
	uint64_t newest;    /* saw this iteration's store or a later one */
	uint64_t older;     /* saw an earlier one's, or nothing */
	uint64_t forbidden; /* or counted */
	uint64_t unfenced;  /* players that had no fence to try */
};

/** struct stage - one launch's memory and its teams */
struct stage {
	struct weir_context *context;
	struct port_litmus_args args;
	uint32_t blocks, teams;
	size_t seats_bytes, elements_bytes, notes_bytes;
	struct port_note *notes;
	void *zeros;
};

static const struct litmus MESSAGES[] = {
#define MESSAGE(name, publish, observe, data)                                                                \
	{                                                                                                    \
		name, PORT_MESSAGE, 2, PORT_##publish, PORT_##observe, PORT_DATA_##data, PORT_BLOCKS, false  \
	}
	MESSAGE("message: store_release, load_acquire", STORE_RELEASE, LOAD_ACQUIRE, WORD),
	MESSAGE("message: store_release, load_acquire, plain data", STORE_RELEASE, LOAD_ACQUIRE, PLAIN),
	MESSAGE("message: store_release, load_acquire, u8", STORE_RELEASE, LOAD_ACQUIRE, U8),
	MESSAGE("message: store_release, load_acquire, u16", STORE_RELEASE, LOAD_ACQUIRE, U16),
	MESSAGE("message: store_release, load_acquire, u128", STORE_RELEASE, LOAD_ACQUIRE, U128),
	MESSAGE("message: store_release_sys, load_acquire_sys", STORE_RELEASE_SYS, LOAD_ACQUIRE_SYS, U64),
	MESSAGE("message: store_release u32, load_acquire u32", STORE_RELEASE_U32, LOAD_ACQUIRE_U32, U32),
	MESSAGE("message: store_release_sys u32, load_acquire_sys u32", STORE_RELEASE_U32_SYS,
		LOAD_ACQUIRE_U32_SYS, U128),
	MESSAGE("message: store_release, cas_acquire", STORE_RELEASE, CAS_ACQUIRE, U64),
	MESSAGE("message: store_release, cas_acquire, plain data", STORE_RELEASE, CAS_ACQUIRE, PLAIN),
	MESSAGE("message: fence_to_lanes + store_fenced u32", STORE_FENCED_U32, LOAD_ACQUIRE_U32, U16),
	MESSAGE("message: fence_to_lanes + data_store", DATA_FENCED, LOAD_ACQUIRE, WORD),
	MESSAGE("message: store_fenced, data_load + order_loads", STORE_FENCED, DATA_ORDER_LOADS, U32),
	MESSAGE("message: fence_to_lanes + store_fenced", STORE_FENCED, LOAD_ACQUIRE, U64),
	MESSAGE("message: fence_to_lanes + or_fenced", OR_FENCED, LOAD_ACQUIRE, WORD),
	MESSAGE("message: fence_to_lanes + and_fenced", AND_FENCED, LOAD_ACQUIRE, U32),
	MESSAGE("message: or_acq_rel, poll", OR_ACQ_REL, POLL, U64),
	MESSAGE("message: or_fenced, poll", OR_FENCED, POLL, U128),
	MESSAGE("message: exchange_acq_rel, load_acquire", EXCHANGE, LOAD_ACQUIRE, WORD),
	MESSAGE("message: add_acq_rel, add_acq_rel", ADD, ADD, U64),
	MESSAGE("message: cas_acq_rel, load_acquire", CAS, LOAD_ACQUIRE, WORD),
	MESSAGE("message: store_release, order_loads", STORE_RELEASE, ORDER_LOADS, WORD),
	MESSAGE("message: store_fenced, order_loads, u128", STORE_FENCED, ORDER_LOADS, U128),
	MESSAGE("message: store_release, after, u64", STORE_RELEASE, AFTER, U64),
	MESSAGE("message: store_release, after, u8", STORE_RELEASE, AFTER, U8),
	MESSAGE("message: store_fenced, after, u128", STORE_FENCED, AFTER, U128),
	MESSAGE("message: to_controller, from_controller", TO_CONTROLLER, FROM_CONTROLLER, U64),
	MESSAGE("message: to_controller + mmio, load_acquire", MMIO, LOAD_ACQUIRE_U32, U64),
	{ "message: waves of one block, store_release", PORT_MESSAGE, 2, PORT_STORE_RELEASE,
	  PORT_LOAD_ACQUIRE, PORT_DATA_U64, PORT_WAVES, false },
	{ "message: a wave's data, wave_sync, store_release", PORT_MESSAGE_WAVES, 2, PORT_STORE_RELEASE,
	  PORT_LOAD_ACQUIRE, PORT_DATA_U64, PORT_BLOCKS, false },
	{ "message: a wave's data, wave_sync, store_fenced", PORT_MESSAGE_WAVES, 2, PORT_STORE_FENCED,
	  PORT_LOAD_ACQUIRE, PORT_DATA_U128, PORT_BLOCKS, false },
	{ "chain of three: store_release, load_acquire", PORT_CHAIN, 3, PORT_STORE_RELEASE, PORT_LOAD_ACQUIRE,
	  PORT_DATA_WORD, PORT_BLOCKS, false },
	{ "chain of three: exchange_acq_rel, load_acquire", PORT_CHAIN, 3, PORT_EXCHANGE, PORT_LOAD_ACQUIRE,
	  PORT_DATA_U64, PORT_BLOCKS, false },
	{ "chain of three: store_fenced, load_acquire", PORT_CHAIN, 3, PORT_STORE_FENCED, PORT_LOAD_ACQUIRE,
	  PORT_DATA_U32, PORT_BLOCKS, false },
	{ "message: relaxed, relaxed", PORT_MESSAGE, 2, PORT_RELAXED, PORT_RELAXED, PORT_DATA_WORD,
	  PORT_BLOCKS, true },
#undef MESSAGE
};

static const struct litmus SHAPES[] = {
	{ "coherence (CoRR): relaxed word", PORT_COHERENCE, 2, PORT_RELAXED, PORT_RELAXED, PORT_DATA_WORD,
	  PORT_BLOCKS, false },
	{ "coherence (CoRR): data u64", PORT_COHERENCE, 2, PORT_RELAXED, PORT_RELAXED, PORT_DATA_U64,
	  PORT_BLOCKS, false },
	{ "load buffering (LB): acquire, release", PORT_LOADS, 2, PORT_STORE_RELEASE, PORT_LOAD_ACQUIRE, 0,
	  PORT_BLOCKS, false },
	{ "load buffering (LB): relaxed", PORT_LOADS, 2, PORT_RELAXED, PORT_RELAXED, 0, PORT_BLOCKS, true },
	{ "store buffering (SB): relaxed", PORT_STORES, 2, PORT_RELAXED, PORT_RELAXED, 0, PORT_BLOCKS, true },
	{ "store buffering (SB): release, acquire", PORT_STORES, 2, PORT_STORE_RELEASE, PORT_LOAD_ACQUIRE, 0,
	  PORT_BLOCKS, true },
	{ "store buffering (SB): fence_to_controller", PORT_STORES, 2, PORT_TO_CONTROLLER, PORT_LOAD_ACQUIRE,
	  0, PORT_BLOCKS, true },
	{ "store buffering (SB): exchange_acq_rel", PORT_STORES, 2, PORT_EXCHANGE, PORT_LOAD_ACQUIRE, 0,
	  PORT_BLOCKS, true },
	{ "store buffering (SB): fence_with_controller", PORT_STORES, 2, PORT_WITH_CONTROLLER,
	  PORT_WITH_CONTROLLER, 0, PORT_BLOCKS, false },
	{ "store buffering (SB): fence_with_controller, waves", PORT_STORES, 2, PORT_WITH_CONTROLLER,
	  PORT_WITH_CONTROLLER, 0, PORT_WAVES, false },
	{ "two writers, two readers (IRIW): acquire", PORT_LOOKERS, 4, PORT_STORE_RELEASE, PORT_LOAD_ACQUIRE,
	  0, PORT_BLOCKS, true },
	{ "two writers, two readers (IRIW): relaxed", PORT_LOOKERS, 4, PORT_RELAXED, PORT_RELAXED, 0,
	  PORT_BLOCKS, true },
};

/* Blocks, lanes and iterations for a row on this device. */
static void size_stage(struct stage *stage, const struct litmus *litmus, uint32_t width)
{
	struct port_litmus_args *args = &stage->args;
	uint32_t side_by_side = test_on_cpu() ? litmus->players : test_device()->workers;
	uint32_t groups = side_by_side / litmus->players;

	groups = groups < 1 || litmus->placement == PORT_WAVES ? 1
		 : groups > MOST_TEAMS_OF_BLOCKS               ? MOST_TEAMS_OF_BLOCKS
							       : groups;
	args->shape = litmus->shape;
	args->players = litmus->players;
	args->publish = litmus->publish;
	args->observe = litmus->observe;
	args->data = litmus->data;
	args->placement = litmus->placement;
	args->block_threads = litmus->placement == PORT_WAVES ? (uint64_t)width * litmus->players : width;
	args->iterations = test_on_cpu() ? CPU_ITERATIONS / width : DEVICE_ITERATIONS;
	args->timeout_ns = test_on_cpu() ? CPU_TIMEOUT_NS : DEVICE_TIMEOUT_NS;
	args->pace_ns = PACE_NS;
	stage->blocks = litmus->placement == PORT_WAVES ? 1 : groups * litmus->players;
	stage->teams = groups * width;
	stage->seats_bytes = (size_t)stage->teams * PORT_MOST_PLAYERS * sizeof(struct port_seat);
	stage->elements_bytes = (size_t)stage->teams * (args->iterations + 1) * 16;
	stage->notes_bytes =
		(size_t)stage->teams * PORT_MOST_PLAYERS * (args->iterations + 1) * sizeof(struct port_note);
}

static void open_stage(struct stage *stage, const struct litmus *litmus, uint32_t width)
{
	memset(stage, 0, sizeof(*stage));
	stage->context = port_context(width, litmus->players);
	size_stage(stage, litmus, width);
	must(weir_alloc(stage->context, sizeof(struct port_gate), &stage->args.gate));
	must(weir_alloc(stage->context, stage->seats_bytes, &stage->args.seats));
	must(weir_alloc(stage->context, stage->elements_bytes, &stage->args.elements));
	must(weir_alloc(stage->context, stage->notes_bytes, &stage->args.notes));
	stage->notes = malloc(stage->notes_bytes);
	stage->zeros = calloc(1, stage->elements_bytes + stage->seats_bytes);
	assert_non_null(stage->notes);
	assert_non_null(stage->zeros);
}

static void close_stage(struct stage *stage)
{
	free(stage->zeros);
	free(stage->notes);
	weir_context_close(stage->context);
}

/* Everything at 0, the kernel, its notes. Return: the players were there at once. */
static bool perform(struct stage *stage, uint64_t salt)
{
	struct port_litmus_args *args = &stage->args;
	struct port_gate gate;

	args->salt = salt << 32;
	must(weir_copy_to_device(stage->context, args->gate, stage->zeros, sizeof(gate)));
	must(weir_copy_to_device(stage->context, args->seats, stage->zeros, stage->seats_bytes));
	must(weir_copy_to_device(stage->context, args->elements, stage->zeros, stage->elements_bytes));
	must(weir_launch(stage->context, "port_litmus", stage->blocks, (uint32_t)args->block_threads, args,
			 sizeof(*args)));
	must(weir_sync(stage->context));
	must(weir_copy_from_device(stage->context, &gate, args->gate, sizeof(gate)));
	must(weir_copy_from_device(stage->context, stage->notes, args->notes, stage->notes_bytes));
	return weir_load_u64_relaxed_sys(&gate.state) == PORT_TOGETHER;
}

static const struct port_note *note_of(const struct stage *stage, uint32_t team, uint32_t role, uint64_t i)
{
	return &stage->notes[((size_t)team * PORT_MOST_PLAYERS + role) * (stage->args.iterations + 1) + i];
}

/* Is what was read of the data as old as what was read of the flag, at least? */
static bool message_good(const struct stage *stage, const struct port_note *note)
{
	if (note->first == 0) /* nothing was published yet, or weir_depend() gave the first element */
		return true;
	if (stage->args.data == PORT_DATA_WORD)
		return note->second >= note->first;
	return note->second == port_element(stage->args.data, note->first);
}

/* The outcome that the shape is about, in iteration @i; what is new in it goes to @tally. */
static bool special(const struct stage *stage, uint32_t team, uint64_t i, struct tally *tally)
{
	const struct port_note *a = note_of(stage, team, 0, i), *b = note_of(stage, team, 1, i);
	const struct port_note *c = note_of(stage, team, 2, i), *d = note_of(stage, team, 3, i);

	switch (stage->args.shape) {
	case PORT_MESSAGE:
	case PORT_MESSAGE_WAVES: tally->newest += b->first >= i; return !message_good(stage, b);
	case PORT_CHAIN: tally->newest += c->first >= i; return !message_good(stage, c);
	case PORT_STORES:
		tally->newest += a->first >= i || b->first >= i;
		return a->first < i && b->first < i;
	case PORT_LOADS:
		tally->newest += a->first >= i || b->first >= i;
		return a->first >= i && b->first >= i;
	case PORT_LOOKERS:
		tally->newest += c->first >= i || d->first >= i;
		return c->first >= i && c->second < i && d->first >= i && d->second < i;
	default: tally->newest += b->second != b->first || b->first >= i; return b->second < b->first;
	}
}

static void report(const struct stage *stage, const struct litmus *litmus, uint32_t team, uint64_t i,
		   struct port_row *row)
{
	const struct port_note *n[PORT_MOST_PLAYERS];

	for (uint32_t role = 0; role < PORT_MOST_PLAYERS; role++)
		n[role] = note_of(stage, team, role, i);
	port_wrong(row,
		   "team %u, iteration %llu, publish %u, observe %u: players saw %#x %#x, %#x %#x, %#x %#x, "
		   "%#x %#x",
		   team, (unsigned long long)i, litmus->publish, litmus->observe, n[0]->first, n[0]->second,
		   n[1]->first, n[1]->second, n[2]->first, n[2]->second, n[3]->first, n[3]->second);
}

static void judge(const struct stage *stage, const struct litmus *litmus, struct tally *tally,
		  struct port_row *row)
{
	for (uint32_t team = 0; team < stage->teams; team++)
		for (uint64_t i = 1; i <= stage->args.iterations; i++) {
			uint64_t newest = tally->newest;
			bool is_special = special(stage, team, i, tally);

			tally->iterations++;
			tally->unfenced += note_of(stage, team, 0, i)->first == PORT_NO_FENCE;
			tally->older += tally->newest == newest;
			tally->forbidden += is_special;
			if (is_special && !litmus->counted)
				report(stage, litmus, team, i, row);
		}
}

/* Blocks may come to run side by side now and then only: as worker threads of a busy machine do. */
static bool perform_at_last(struct stage *stage, uint64_t salt)
{
	for (int i = 0; i < ATTEMPTS; i++)
		if (perform(stage, salt))
			return true;
	return false;
}

/* Some launches at one wave width. Return: in one of them at least the players were there at once. */
static bool run_width(const struct litmus *litmus, uint32_t width, struct tally *tally, struct port_row *row)
{
	uint64_t before = tally->iterations;
	struct stage stage;

	open_stage(&stage, litmus, width);
	for (uint64_t launch = 1; launch <= LAUNCHES && perform_at_last(&stage, launch); launch++)
		judge(&stage, litmus, tally, row);
	close_stage(&stage);
	return tally->iterations > before;
}

static bool can_play(const struct litmus *litmus, uint32_t width)
{
	return litmus->placement == PORT_BLOCKS || litmus->players * width <= test_device()->block_lanes;
}

/* @apart: by placement and players, found not to run side by side: no need to find out again. */
static void run_litmus(const struct litmus *litmus, bool apart[2][PORT_MOST_PLAYERS + 1])
{
	struct port_row *row = port_row("%s", litmus->name);
	struct tally tally = { .iterations = 0 };
	bool *known = &apart[litmus->placement][litmus->players];

	for (size_t w = 0; w < test_width_count() && !*known; w += WIDTH_STEP)
		*known = !can_play(litmus, test_width(w)) || !run_width(litmus, test_width(w), &tally, row);
	row->iterations = tally.iterations;
	if (*known && row->result == PORT_HOLDS) {
		row->result = PORT_SKIPPED;
		port_saw(row, "%s do not run side by side here",
			 litmus->placement == PORT_BLOCKS ? "blocks" : "waves of a block");
		/* Worker threads do. */
		if (test_on_cpu())
			port_wrong(row, "%u workers did not meet within %u ms", litmus->players,
				   CPU_TIMEOUT_NS / 1000000);
		return;
	}
	if (tally.unfenced) {
		row->result = PORT_SKIPPED;
		port_saw(row, "this port does without that fence");
		return;
	}
	if (litmus->counted && row->result == PORT_HOLDS)
		row->result = PORT_COUNTED;
	port_saw(row, "%llu saw the newest, %llu older; %llu %s", (unsigned long long)tally.newest,
		 (unsigned long long)tally.older, (unsigned long long)tally.forbidden,
		 litmus->counted ? "that no single order explains" : "forbidden");
}

void port_test_messages(void **state)
{
	bool apart[2][PORT_MOST_PLAYERS + 1] = { { false } };
	unsigned first = port_table.count;

	(void)state;
	for (size_t i = 0; i < sizeof(MESSAGES) / sizeof(MESSAGES[0]); i++)
		if (port_wanted(MESSAGES[i].name))
			run_litmus(&MESSAGES[i], apart);
	port_end_case(first);
}

void port_test_shapes(void **state)
{
	bool apart[2][PORT_MOST_PLAYERS + 1] = { { false } };
	unsigned first = port_table.count;

	(void)state;
	for (size_t i = 0; i < sizeof(SHAPES) / sizeof(SHAPES[0]); i++)
		if (port_wanted(SHAPES[i].name))
			run_litmus(&SHAPES[i], apart);
	port_end_case(first);
}

void port_test_lock(void **state)
{
	struct port_row *row = port_row("lock: cas_acquire, store_release");
	unsigned first = port_table.count - 1;

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct weir_context *context = port_context(test_width(w), 2);
		struct port_lock_args args = { .rounds = LOCK_ROUNDS, .timeout_ns = LOCK_TIMEOUT_NS };
		uint64_t counts[2][16];

		must(weir_alloc(context, 128 + sizeof(counts), &args.lock));
		must(weir_alloc(context, sizeof(struct test_verdict), &args.verdict));
		must(weir_launch(context, "port_lock", LOCK_BLOCKS, LOCK_LANES, &args, sizeof(args)));
		(void)port_verdict(context, args.verdict, row);
		must(weir_copy_from_device(context, counts, args.lock + 128, sizeof(counts)));
		for (int i = 0; i < 2; i++)
			if (counts[i][0] != LOCK_BLOCKS * LOCK_LANES * LOCK_ROUNDS)
				port_wrong(row, "counted to %llu under the lock, not to %d",
					   (unsigned long long)counts[i][0],
					   LOCK_BLOCKS * LOCK_LANES * LOCK_ROUNDS);
		row->iterations += LOCK_BLOCKS * LOCK_LANES * LOCK_ROUNDS;
		weir_context_close(context);
	}
	port_saw(row, "every count under it was kept");
	port_end_case(first);
}

/** struct post_office - a host thread that reads a lane's letters and answers */
struct post_office {
	struct port_message *message;
	struct port_row *row;
	bool by_doorbell;
	_Atomic bool closed;
	uint64_t last; /* letter that was read */
	uint64_t reads;
};

static uint64_t poll_for_message(struct post_office *office)
{
	uint32_t doorbell;

	/* As a controller does: acquire, which pairs with the lane's fence or release. */
	if (!office->by_doorbell)
		return weir_load_u64_acquire_sys(&office->message->flag);
	doorbell = __atomic_load_n(&office->message->doorbell, __ATOMIC_ACQUIRE);
	return doorbell ? (uint64_t)doorbell - PORT_FIRST_RING : 0;
}

static void read_message(struct post_office *office, uint64_t number)
{
	struct port_message *message = office->message;
	uint64_t data = weir_load_u64_relaxed_sys(&message->data);

	if (number < office->last || number > LETTERS)
		port_wrong(office->row, "the host saw letter %llu after %llu", (unsigned long long)number,
			   (unsigned long long)office->last);
	if (data < number)
		port_wrong(office->row, "the host saw letter %llu, but the data of %llu",
			   (unsigned long long)number, (unsigned long long)data);
	if (message->guard_before != GUARD || message->guard_after[0] != GUARD ||
	    message->guard_after[1] != GUARD)
		port_wrong(office->row, "the doorbell's neighbours were stored to");
	office->last = number;
	office->reads++;
	weir_store_u64_relaxed_sys(&message->answer_data, number);
	weir_store_u64_release_sys(&message->answer, number); /* pairs with await_answer() */
}

static void *office_main(void *argument)
{
	struct post_office *office = argument;

	while (office->last < LETTERS && !office->closed) {
		uint64_t number = poll_for_message(office);

		if (number != office->last)
			read_message(office, number);
		else
			sched_yield();
	}
	return NULL;
}

static void run_message(const char *name, uint32_t publish, uint32_t observe, uint64_t window)
{
	struct port_row *row = port_row("%s, %s", name, window == 1 ? "one by one" : "many at once");
	struct weir_context *context = port_context(test_width(0), 1);
	struct port_message_args args = { .publish = publish,
					  .observe = observe,
					  .letters = LETTERS,
					  .window = window,
					  .timeout_ns = MESSAGE_TIMEOUT_NS };
	struct post_office office = { .row = row, .by_doorbell = publish == PORT_MMIO };
	struct test_verdict verdict;
	pthread_t thread;
	void *message;

	must(weir_alloc_host(context, sizeof(struct port_message), &args.message, &message));
	must(weir_alloc(context, sizeof(verdict), &args.verdict));
	office.message = message;
	office.message->guard_before = office.message->guard_after[0] = office.message->guard_after[1] =
		GUARD;
	assert_int_equal(pthread_create(&thread, NULL, office_main, &office), 0);
	must(weir_launch(context, "port_message", 1, 1, &args, sizeof(args)));
	must(weir_sync(context));
	office.closed = true;
	pthread_join(thread, NULL);
	(void)port_verdict(context, args.verdict, row);
	must(weir_copy_from_device(context, &verdict, args.verdict, sizeof(verdict)));
	if (weir_load_u64_relaxed_sys(&verdict.sum) != LETTERS || office.last != LETTERS)
		port_wrong(row, "%llu letters were sent, the host saw up to %llu of %d",
			   (unsigned long long)weir_load_u64_relaxed_sys(&verdict.sum),
			   (unsigned long long)office.last, LETTERS);
	row->iterations = LETTERS;
	port_saw(row, "the host looked in time for %llu", (unsigned long long)office.reads);
	weir_context_close(context);
}

void port_test_message(void **state)
{
	static const struct {
		const char *name;
		uint32_t publish, observe;
	} ways[] = {
		{ "host: store_release_sys, load_acquire_sys", PORT_STORE_RELEASE_SYS,
		  PORT_LOAD_ACQUIRE_SYS },
		{ "host: to_controller, from_controller", PORT_TO_CONTROLLER, PORT_FROM_CONTROLLER },
		{ "host: mmio_store, from_controller", PORT_MMIO, PORT_FROM_CONTROLLER },
	};
	unsigned first = port_table.count;

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!port_wanted(ways[i].name))
			continue;
		run_message(ways[i].name, ways[i].publish, ways[i].observe, 1);
		run_message(ways[i].name, ways[i].publish, ways[i].observe, 64);
	}
	port_end_case(first);
}
