/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock chain, the host's side: its table, and its report in words. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../device/context.h"
#include "../backend/error.h"

enum { DEFAULT_RETRY_LIMIT = 2, TEXT_BYTES = 900, NAME_BYTES = 80 };

/* A holder has 32 bits in a lock's word, and 0 is nobody. */
static const uint64_t MOST_LANES = UINT32_MAX - 1;

int weir_chain_create(struct weir_context *context, const struct weir_chain_options *given, uint64_t *chain)
{
	struct weir_chain_options options;
	struct weir_chain table;
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_chain_create");

	if (error || (error = weir_given(chain, "weir_chain_create", "chain")) != 0)
		return error;
	*chain = 0;
	error = weir_options_take(&options, sizeof(options), given, "lock chain");
	if (error)
		return error;
	if (options.lanes == 0 || options.lanes > MOST_LANES)
		return weir_fail(EINVAL,
				 "lock chain of %llu lanes: give the lanes of the largest launch, 1 to %llu",
				 (unsigned long long)options.lanes, (unsigned long long)MOST_LANES);
	error = weir_alloc(context, sizeof(table) + options.lanes * sizeof(struct weir_chain_lane), chain);
	if (error)
		return error;
	memset(&table, 0, sizeof(table));
	table.abi_version = WEIR_ABI_VERSION;
	table.retry_limit = options.retry_limit ? options.retry_limit : DEFAULT_RETRY_LIMIT;
	table.lanes = options.lanes;
	table.records = *chain + sizeof(table);
	table.own_wave = options.own_wave;
	error = weir_copy_to_device(context, *chain, &table, sizeof(table));
	if (error) {
		(void)weir_free(context, *chain);
		*chain = 0;
	}
	return error;
}

/** struct words - how a report is told: the names, and the sentence so far */
struct words {
	const char *const *names;
	size_t name_count;
	char text[TEXT_BYTES];
	size_t length;
};

static void __attribute__((format(printf, 2, 3))) say(struct words *words, const char *format, ...)
{
	size_t room = sizeof(words->text) - words->length;
	va_list arguments;
	int wrote;

	va_start(arguments, format);
	wrote = vsnprintf(words->text + words->length, room, format, arguments);
	va_end(arguments);
	words->length += (size_t)wrote < room ? (size_t)wrote : room - 1;
}

/* A lock as people know it. */
static const char *name_of(const struct words *words, uint32_t name, char text[NAME_BYTES])
{
	if (name < words->name_count && words->names[name])
		snprintf(text, NAME_BYTES, "\"%.60s\"", words->names[name]);
	else
		snprintf(text, NAME_BYTES, "lock %u", name);
	return text;
}

/* Where to begin, so that the same cycle reads the same whoever found it. */
static uint64_t lowest_lane(const struct weir_chain *chain)
{
	uint64_t first = 0;

	for (uint64_t i = 1; chain->length <= WEIR_CHAIN_LINKS && i < chain->length; i++)
		if (chain->link[i].lane < chain->link[first].lane)
			first = i;
	return first;
}

static void say_cycle(struct words *words, const struct weir_chain *chain)
{
	uint64_t reported = chain->length < WEIR_CHAIN_LINKS ? chain->length : WEIR_CHAIN_LINKS;
	uint64_t first = lowest_lane(chain);
	char holds[NAME_BYTES], wants[NAME_BYTES];

	say(words, "lock cycle");
	for (uint64_t i = 0; i < reported; i++) {
		const struct weir_chain_link *link = &chain->link[(first + i) % reported];

		say(words, "%s lane %llu (wave %llu) holds %s and wants %s", i ? ";" : ":",
		    (unsigned long long)link->lane, (unsigned long long)link->wave,
		    name_of(words, link->holds, holds), name_of(words, link->wants, wants));
	}
	if (chain->length > reported)
		say(words, "; and so on through %llu more lanes to the first",
		    (unsigned long long)(chain->length - reported));
}

static void say_wave(struct words *words, const struct weir_chain *chain)
{
	char wants[NAME_BYTES];

	say(words,
	    "lock wait within a wave: lane %llu (wave %llu) wants %s, which lane %llu of the same wave keeps",
	    (unsigned long long)chain->link[0].lane, (unsigned long long)chain->link[0].wave,
	    name_of(words, chain->link[0].wants, wants), (unsigned long long)chain->link[1].lane);
}

/** struct leftovers - what the records say: lanes that took part; the first that kept a lock */
struct leftovers {
	uint64_t used;
	uint64_t keepers;
	uint64_t lane;
	struct weir_chain_lane record;
};

/* Read each record, and make it new. */
static int collect(struct weir_context *context, const struct weir_chain *chain, struct leftovers *left)
{
	static const struct weir_chain_lane unused;
	struct weir_chain_lane record;

	memset(left, 0, sizeof(*left));
	for (uint64_t i = 0; i < chain->lanes; i++) {
		uint64_t address = chain->records + i * sizeof(record);
		int error = weir_copy_from_device(context, &record, address, sizeof(record));

		if (error)
			return error;
		left->used += record.takes != 0 || record.trying != 0;
		if (record.held && left->keepers++ == 0) {
			left->lane = i;
			left->record = record;
		}
		error = weir_copy_to_device(context, address, &unused, sizeof(unused));
		if (error)
			return error;
	}
	return 0;
}

static int clear(struct weir_context *context, uint64_t address, struct weir_chain table)
{
	weir_store_u32_relaxed_sys(&table.claimed, 0);
	weir_store_u64_relaxed_sys(&table.past, 0);
	return weir_copy_to_device(context, address, &table, sizeof(table));
}

static int notify(struct words *words, const struct weir_chain *chain, const struct leftovers *left)
{
	uint64_t past = weir_load_u64_relaxed_sys((weir_shared_u64 *)(uintptr_t)&chain->past);
	char name[NAME_BYTES];

	if (weir_load_u32_relaxed_sys((weir_shared_u32 *)(uintptr_t)&chain->claimed) == 2) {
		if (chain->kind == WEIR_CHAIN_WAVE)
			say_wave(words, chain);
		else
			say_cycle(words, chain);
		return weir_fail(EDEADLK, "%s", words->text);
	}
	if (past)
		return weir_fail(ERANGE,
				 "lock chain: lane %llu had no record among %llu; create it for all lanes of "
				 "the launch",
				 (unsigned long long)past - 1, (unsigned long long)chain->lanes);
	if (left->keepers)
		return weir_fail(EOWNERDEAD, "lane %llu (wave %llu) ended and kept %s%s",
				 (unsigned long long)left->lane,
				 (unsigned long long)weir_load_u64_relaxed_sys(
					 (weir_shared_u64 *)(uintptr_t)&left->record.wave),
				 name_of(words, left->record.holder_name[0], name),
				 left->keepers > 1 ? "; other lanes kept locks too" : "");
	if (!left->used)
		return weir_fail(
			ENODATA,
			"lock chain: no lane took or tried a lock with it; was the kernel built with "
			"-DWEIR_LOCK_CHAIN?");
	return 0;
}

int weir_chain_report(struct weir_context *context, uint64_t address, const char *const *names,
		      size_t name_count)
{
	struct words words = { .names = names, .name_count = name_count };
	struct weir_chain table;
	struct leftovers left;
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_chain_report");

	if (!error && name_count)
		error = weir_given(names, "weir_chain_report", "names");
	if (!error)
		error = weir_copy_from_device(context, &table, address, sizeof(table));
	if (!error && (table.abi_version != WEIR_ABI_VERSION || table.records != address + sizeof(table)))
		error = weir_fail(EINVAL, "lock chain: what is at %#llx is not from weir_chain_create()",
				  (unsigned long long)address);
	if (!error)
		error = collect(context, &table, &left);
	if (!error)
		error = clear(context, address, table);
	return error ? error : notify(&words, &table, &left);
}
