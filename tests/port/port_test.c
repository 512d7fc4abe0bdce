/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What docs/porting.md promises of every primitive, on the device at hand. The lanes only
 * act and note; here it is judged. The litmus tests are in port_litmus.c. At the end there is one
 * table of everything (docs/porting.md, "The portability suite").
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../rig/context.h"
#include "port.h"
#include "port_table.h"

enum {
	BLOCKS = 4,
	THREADS = 64,
	LANES = BLOCKS * THREADS,
	RMW_ROUNDS = 24,
	NARROW_ROUNDS = 64,
	WHOLE_ROUNDS = 2000,
	WHOLE_LAUNCHES = 4,
	GROUP_ROUNDS = 6,
	RELAXES = 50,
};

#define OPERATION_ROW(what, bits, order, scope)                                                              \
	{ #what "_u" #bits "_" #order "_" #scope, PORT_KIND_##what,                                          \
	  PORT_##what##_##bits##_##order##_##scope, bits },
static const struct operation {
	const char *name;
	uint32_t kind, number, bits;
} OPERATIONS[] = {
	PORT_OPERATIONS(OPERATION_ROW){ "data_add_u32", PORT_KIND_add, PORT_DATA_ADD_32, 32 },
	{ "data_add_u64", PORT_KIND_add, PORT_DATA_ADD_64, 64 },
	{ "data_cas_u32", PORT_KIND_cas, PORT_DATA_CAS_32, 32 },
	{ "data_cas_u64", PORT_KIND_cas, PORT_DATA_CAS_64, 64 },
};

enum { OPERATION_COUNT = sizeof(OPERATIONS) / sizeof(OPERATIONS[0]) };

static uint64_t most_of(const struct operation *operation)
{
	return operation->bits == 32 ? UINT32_MAX : UINT64_MAX;
}

/* Counting goes over the end of 32 bits: round, or on into the upper half. */
static uint64_t first_of(const struct operation *operation)
{
	if (operation->kind == PORT_KIND_and)
		return most_of(operation);
	return operation->kind == PORT_KIND_add || operation->kind == PORT_KIND_cas ? UINT32_MAX - 100 : 0;
}

/* Every number from the first on came back once, and the word has gone past them all. */
static void judge_count(struct port_row *row, const struct operation *operation, const uint64_t *olds,
			uint64_t last)
{
	enum { COUNT = LANES * RMW_ROUNDS };
	static bool seen[COUNT];

	memset(seen, 0, sizeof(seen));
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t index = (olds[i] - first_of(operation)) & most_of(operation);

		if (index >= COUNT || olds[i] > most_of(operation) || seen[index])
			port_wrong(row, "lane %llu got %#llx, %s", (unsigned long long)(i / RMW_ROUNDS),
				   (unsigned long long)olds[i],
				   index < COUNT ? "as another lane did" : "which nobody stored");
		else
			seen[index] = true;
	}
	if (last != ((first_of(operation) + COUNT) & most_of(operation)))
		port_wrong(row, "%d changes left %#llx", COUNT, (unsigned long long)last);
}

/* What lanes exchanged is what they got, with the first value in and the last one left. */
static void judge_exchange(struct port_row *row, const uint64_t *olds, uint64_t last)
{
	enum { COUNT = LANES * RMW_ROUNDS };
	static bool seen[COUNT + 1];

	memset(seen, 0, sizeof(seen));
	for (uint64_t i = 0; i <= COUNT; i++) {
		uint64_t value = i < COUNT ? olds[i] : last;

		if (value > COUNT || seen[value])
			port_wrong(row, "lane %llu got %#llx, %s", (unsigned long long)(i / RMW_ROUNDS),
				   (unsigned long long)value,
				   value > COUNT ? "which nobody stored" : "as another lane did");
		else
			seen[value] = true;
	}
}

/* Of a word's bits each lane changed one: the olds are a chain, each one bit further than the one before. */
static void judge_bits_of(struct port_row *row, const struct operation *operation, const uint64_t *olds,
			  uint32_t round, uint32_t word, uint64_t last)
{
	uint64_t words = LANES / operation->bits, at[65] = { 0 },
		 flip = operation->kind == PORT_KIND_and ? most_of(operation) : 0;
	uint64_t met = 0;

	for (uint64_t bit = 0; bit < operation->bits; bit++) {
		uint64_t old = olds[(bit * words + word) * RMW_ROUNDS + round] ^ flip;
		uint32_t before = weir_popcount(old);

		if (before >= operation->bits || met >> before & 1 || old >> bit & 1 ||
		    old > most_of(operation)) {
			port_wrong(row, "bit %llu of word %u: the old value was %#llx",
				   (unsigned long long)bit, word, (unsigned long long)(old ^ flip));
			return;
		}
		met |= (uint64_t)1 << before;
		at[before] |= old;
		at[before + 1] |= old | (uint64_t)1 << bit; /* where it went: what the next one found */
	}
	for (uint32_t i = 1; i <= operation->bits; i++)
		if (weir_popcount(at[i]) != i)
			port_wrong(row, "word %u: old values %#llx do not follow each other", word,
				   (unsigned long long)at[i]);
	if (last != (most_of(operation) ^ flip))
		port_wrong(row, "word %u ended as %#llx", word, (unsigned long long)last);
}

static void judge_bits(struct port_row *row, const struct operation *operation, const uint64_t *olds,
		       const uint64_t *words)
{
	uint32_t count = LANES / operation->bits;

	for (uint32_t round = 0; round < RMW_ROUNDS; round++)
		for (uint32_t word = 0; word < count; word++)
			judge_bits_of(row, operation, olds, round, word,
				      words[round * count + word] & most_of(operation));
}

static void run_operation_at(struct weir_context *context, const struct operation *operation,
			     struct port_row *row)
{
	enum { WORDS = RMW_ROUNDS * LANES / 32 };
	static uint64_t olds[LANES * RMW_ROUNDS], words[WORDS];
	struct port_rmw_args args = { .operation = operation->number,
				      .kind = operation->kind,
				      .bits = operation->bits,
				      .rounds = RMW_ROUNDS };

	for (size_t i = 0; i < WORDS; i++)
		words[i] = first_of(operation);
	must(weir_alloc(context, sizeof(words), &args.words));
	must(weir_alloc(context, sizeof(olds), &args.olds));
	must(weir_alloc(context, sizeof(weir_shared_u64), &args.company));
	must(weir_copy_to_device(context, args.words, words, sizeof(words)));
	must(weir_launch(context, "port_rmw", BLOCKS, THREADS, &args, sizeof(args)));
	must(weir_sync(context));
	must(weir_copy_from_device(context, words, args.words, sizeof(words)));
	must(weir_copy_from_device(context, olds, args.olds, sizeof(olds)));
	row->iterations += LANES * RMW_ROUNDS;
	if (operation->kind == PORT_KIND_or || operation->kind == PORT_KIND_and)
		judge_bits(row, operation, olds, words);
	else if (operation->kind == PORT_KIND_exchange)
		judge_exchange(row, olds, words[0] & most_of(operation));
	else
		judge_count(row, operation, olds, words[0] & most_of(operation));
	must(weir_free(context, args.company));
	must(weir_free(context, args.olds));
	must(weir_free(context, args.words));
}

static void run_operation(const struct operation *operation)
{
	struct port_row *row = port_row("%s", operation->name);

	for (size_t w = 0; w < test_width_count(); w++) {
		struct weir_context *context = port_context(test_width(w), 2);

		run_operation_at(context, operation, row);
		weir_context_close(context);
	}
	port_saw(row, "each old value exactly once");
}

static void test_atomics(void **state)
{
	unsigned first = port_table.count;

	(void)state;
	for (size_t i = 0; i < OPERATION_COUNT; i++)
		if (port_wanted(OPERATIONS[i].name))
			run_operation(&OPERATIONS[i]);
	port_end_case(first);
}

/* All bytes are what their lanes stored last, and nothing around them was touched. */
static void judge_narrow(struct port_row *row, const uint8_t *bytes, uint32_t width)
{
	for (uint32_t i = 0; i < PORT_GUARD; i++)
		if (bytes[i] != 0xa5 || bytes[PORT_GUARD + LANES * width + i] != 0xa5)
			port_wrong(row, "a byte outside, %u from it, was changed", i);
	for (uint32_t index = 0; index < LANES; index++) {
		uint64_t value = port_value(index + NARROW_ROUNDS), both[2] = { value, ~value };

		if (memcmp(bytes + PORT_GUARD + index * width, both, width))
			port_wrong(row, "element %u is not what its lane stored last", index);
	}
}

static void run_narrow_at(struct weir_context *context, uint32_t width, struct port_row *row)
{
	uint8_t bytes[2 * PORT_GUARD + LANES * 16];
	struct port_narrow_args args = { .bytes = width, .blocks = BLOCKS, .rounds = NARROW_ROUNDS };

	memset(bytes, 0xa5, sizeof(bytes));
	must(weir_alloc(context, sizeof(bytes), &args.data));
	must(weir_alloc(context, sizeof(struct test_verdict), &args.verdict));
	must(weir_alloc(context, sizeof(weir_shared_u64), &args.company));
	must(weir_copy_to_device(context, args.data, bytes, sizeof(bytes)));
	must(weir_launch(context, "port_narrow", BLOCKS, THREADS, &args, sizeof(args)));
	(void)port_verdict(context, args.verdict, row);
	must(weir_copy_from_device(context, bytes, args.data, sizeof(bytes)));
	judge_narrow(row, bytes, width);
	row->iterations += LANES * NARROW_ROUNDS;
	must(weir_free(context, args.company));
	must(weir_free(context, args.verdict));
	must(weir_free(context, args.data));
}

static void run_narrow(const char *name, uint32_t bytes)
{
	struct port_row *row = port_row("%s", name);

	for (size_t w = 0; w < test_width_count(); w++) {
		struct weir_context *context = port_context(test_width(w), 2);

		run_narrow_at(context, bytes, row);
		weir_context_close(context);
	}
	port_saw(row, "own values read back, neighbours untouched");
}

static uint64_t run_whole_once(struct weir_context *context, uint32_t data, struct port_row *row)
{
	struct port_whole_args args = { .data = data, .blocks = BLOCKS, .rounds = WHOLE_ROUNDS };
	uint64_t changes;

	must(weir_alloc(context, 64, &args.word));
	must(weir_alloc(context, sizeof(struct test_verdict), &args.verdict));
	must(weir_alloc(context, sizeof(weir_shared_u64), &args.company));
	must(weir_launch(context, "port_whole", BLOCKS, 8, &args, sizeof(args)));
	changes = port_verdict(context, args.verdict, row);
	row->iterations += BLOCKS / 2 * 8 * WHOLE_ROUNDS;
	must(weir_free(context, args.company));
	must(weir_free(context, args.verdict));
	must(weir_free(context, args.word));
	return changes;
}

static void run_whole(const char *name, uint32_t data)
{
	struct port_row *row = port_row("%s", name);
	struct weir_context *context = port_context(test_width(0), BLOCKS);
	uint64_t changes = 0;

	for (int times = 0; times < WHOLE_LAUNCHES; times++)
		changes += run_whole_once(context, data, row);
	port_saw(row, "none torn; %llu looks saw another value than the look before",
		 (unsigned long long)changes);
	weir_context_close(context);
}

static void test_data_accesses(void **state)
{
	static const struct {
		const char *name;
		uint32_t bytes;
	} narrows[] = {
		{ "data_store_u8, data_load_u8", 1 },      { "data_store_u16, data_load_u16", 2 },
		{ "data_store_u32, data_load_u32", 4 },    { "data_store_u64, data_load_u64", 8 },
		{ "data_store_u128, data_load_u128", 16 },
	};
	static const struct {
		const char *name;
		uint32_t data;
	} wholes[] = {
		{ "u64 words, relaxed: seen whole", PORT_DATA_WORD },
		{ "data u16: seen whole", PORT_DATA_U16 },
		{ "data u32: seen whole", PORT_DATA_U32 },
		{ "data u64: seen whole", PORT_DATA_U64 },
		{ "data u128: each half seen whole", PORT_DATA_U128 },
	};
	unsigned first = port_table.count;

	(void)state;
	for (size_t i = 0; i < sizeof(narrows) / sizeof(narrows[0]); i++)
		if (port_wanted(narrows[i].name))
			run_narrow(narrows[i].name, narrows[i].bytes);
	for (size_t i = 0; i < sizeof(wholes) / sizeof(wholes[0]); i++)
		if (port_wanted(wholes[i].name))
			run_whole(wholes[i].name, wholes[i].data);
	port_end_case(first);
}

static const struct grid {
	uint32_t blocks, threads, workers;
} GRIDS[] = {
	{ 1, 1, 2 },  { 1, 3, 1 },  { 3, 1, 2 },   { 5, 37, 2 },
	{ 2, 65, 1 }, { 7, 64, 2 }, { 3, 130, 2 }, { 1, 1500, 1 },
};

/** struct collectives - a kernel that passes them; @good: what each lane adds if it comes to the end */
struct collectives {
	const char *kernel, *name;
	uint64_t rounds, good;
};

static void run_groups(const struct collectives *kind, const struct grid *grid, uint32_t width,
		       struct port_row *row)
{
	struct weir_context *context = port_context(width, grid->workers);
	struct port_groups_args args = { .block_threads = grid->threads, .rounds = kind->rounds };
	uint64_t lanes = (uint64_t)grid->blocks * grid->threads, found;

	must(weir_alloc(context, sizeof(struct test_verdict), &args.verdict));
	must(weir_alloc(context, lanes * 8, &args.words));
	must(weir_launch(context, kind->kernel, grid->blocks, grid->threads, &args, sizeof(args)));
	found = port_verdict(context, args.verdict, row);
	if (found != lanes * kind->good)
		port_wrong(row, "width %u: %llu of %llu lanes came to the end", width,
			   (unsigned long long)(found / kind->good), (unsigned long long)lanes);
	row->iterations += lanes * kind->rounds;
	weir_context_close(context);
}

static void run_collectives(const struct collectives *kind)
{
	struct port_row *row = port_row("%s", kind->name);

	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t g = 0; g < sizeof(GRIDS) / sizeof(GRIDS[0]); g++)
			if (GRIDS[g].threads <= test_device()->block_lanes)
				run_groups(kind, &GRIDS[g], test_width(w), row);
	port_saw(row, "%zu wave width%s, blocks of 1 to 1500 lanes", test_width_count(),
		 test_width_count() > 1 ? "s" : "");
}

static void test_collectives(void **state)
{
	static const struct collectives kinds[] = {
		{ "port_groups", "collectives: whole waves, halves, weir_active()", 3, 3 },
		{ "port_leaving", "collectives: lanes leave one by one", 1, 1 },
		{ "port_nested", "collectives: any masks, nested; wave_sync", GROUP_ROUNDS, GROUP_ROUNDS },
	};
	unsigned first = port_table.count;

	(void)state;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		if (port_wanted(kinds[k].name))
			run_collectives(&kinds[k]);
	port_end_case(first);
}

static void judge_scalar(const struct port_scalar *found, struct port_row *bits, struct port_row *clock)
{
	__extension__ typedef unsigned __int128 wide;
	uint64_t high = (uint64_t)((wide)found->a * found->b >> 64);

	if (found->high != high)
		port_wrong(bits, "mulhi(%#llx, %#llx) is %#llx, not %#llx", (unsigned long long)found->a,
			   (unsigned long long)found->b, (unsigned long long)found->high,
			   (unsigned long long)high);
	if (found->ones != (uint32_t)__builtin_popcountll(found->a))
		port_wrong(bits, "popcount(%#llx) is %u", (unsigned long long)found->a, found->ones);
	if (found->lowest != (uint32_t)__builtin_ctzll(found->a))
		port_wrong(bits, "lowest_bit(%#llx) is %u", (unsigned long long)found->a, found->lowest);
	if (found->forgotten != found->a)
		port_wrong(bits, "forget(%#llx) is %#llx", (unsigned long long)found->a,
			   (unsigned long long)found->forgotten);
	if (found->back)
		port_wrong(clock, "it went back %llu times in %d", (unsigned long long)found->back, RELAXES);
}

static uint64_t now_ns(void)
{
	return weir_clock_ns(); /* the host's */
}

static void test_scalars(void **state)
{
	static struct port_scalar results[LANES];
	unsigned first = port_table.count;
	struct port_row *bits = port_row("mulhi, popcount, lowest_bit, forget"),
			*clock = port_row("clock_ns forward, relax returns");

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct weir_context *context = port_context(test_width(w), 2);
		struct port_scalar_args args = { .relaxes = RELAXES };
		uint64_t least = UINT64_MAX, most = 0, took = now_ns();

		must(weir_alloc(context, sizeof(results), &args.results));
		must(weir_launch(context, "port_scalar", BLOCKS, THREADS, &args, sizeof(args)));
		must(weir_sync(context));
		took = now_ns() - took;
		must(weir_copy_from_device(context, results, args.results, sizeof(results)));
		for (size_t i = 0; i < LANES; i++) {
			judge_scalar(&results[i], bits, clock);
			least = results[i].began < least ? results[i].began : least;
			most = results[i].ended > most ? results[i].ended : most;
		}
		if (least >= most)
			port_wrong(clock, "it stood still over %d pauses of %d lanes", RELAXES, LANES);
		/* Timeouts need no better rate than this; the launch's own time may be longer, and clocks
		 * tick coarsely. */
		if ((most - least) / 4 > took + 2000000)
			port_wrong(clock, "lanes counted %llu us, the host %llu us",
				   (unsigned long long)(most - least) / 1000,
				   (unsigned long long)took / 1000);
		bits->iterations += LANES;
		clock->iterations += LANES * RELAXES;
		port_saw(clock, "%llu us of lanes within %llu us of the host's",
			 (unsigned long long)(most - least) / 1000, (unsigned long long)took / 1000);
		weir_context_close(context);
	}
	port_saw(bits, "as the host computes them");
	port_end_case(first);
}

static int print_table(void **state)
{
	(void)state;
	port_table_print(test_device()->name);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_atomics),     cmocka_unit_test(test_data_accesses),
		cmocka_unit_test(test_collectives), cmocka_unit_test(test_scalars),
		cmocka_unit_test(port_test_lock),   cmocka_unit_test(port_test_messages),
		cmocka_unit_test(port_test_shapes), cmocka_unit_test(port_test_message),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("port", tests, NULL, print_table);
}
