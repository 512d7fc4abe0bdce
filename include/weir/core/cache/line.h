/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/line.h: the words of cache lines, and hits.
 *
 * Owns: where a key's line may be, and reading one that is there. A hit probes the set's
 * four words (one memory sector), loads the data and loads the word again: the same
 * occupant means the data is good. No atomics, no pin, any lane by itself. Whether the
 * line is dirty, or being written back, is no reader's business (docs/cache.md).
 */
#ifndef WEIR_CORE_LINE_H
#define WEIR_CORE_LINE_H

#include <weir/core/cache/policy.h>

/* u64 words one read returns at most. */
enum { WEIR_RUN = 8 };

/**
 * struct weir_words - consecutive 8-byte words of a line, by value
 * @word: the words asked for
 * @status: how the read ended
 */
struct weir_words {
	u64 word[WEIR_RUN];
	weir_status status;
};

/** struct weir_found - outcome of a probe: the word seen, and its way (WEIR_WAYS: absent) */
struct weir_found {
	u64 word;
	u32 way;
};

/* key modulo sets: the product is short of the quotient by one at most. */
WEIR_FN u64 weir_lines_index(WEIR_GLOBAL struct weir_lines *lines, u64 key)
{
	u64 rest = key - weir_mulhi(key, lines->set_magic) * lines->sets;

	return rest >= lines->sets ? rest - lines->sets : rest;
}

WEIR_FN WEIR_GLOBAL struct weir_set *weir_lines_set(WEIR_GLOBAL struct weir_lines *lines, u64 index)
{
	return weir_at(lines->words, struct weir_set, index);
}

WEIR_FN WEIR_GLOBAL struct weir_set_policy *weir_lines_policy(WEIR_GLOBAL struct weir_lines *lines, u64 index)
{
	return weir_at(lines->policies, struct weir_set_policy, index);
}

WEIR_FN weir_addr weir_line_data(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way)
{
	return lines->data + ((index * WEIR_WAYS + way) << lines->line_log2);
}

/** weir_line_holds() - @word is a line for @key, in whatever state; INVALID words have key 0, which no line
 * has */
WEIR_FN u32 weir_line_holds(u64 word, u64 key)
{
	return (word ^ (key << WEIR_LINE_KEY_SHIFT)) < ((u64)1 << WEIR_LINE_KEY_SHIFT);
}

WEIR_FN struct weir_found weir_found_in(struct weir_found found, u64 word, u32 way, u64 key)
{
	if (weir_line_holds(word, key)) {
		found.word = word;
		found.way = way;
	}
	return found;
}

/** weir_set_probe() - the words of a set: two accesses of one sector */
WEIR_FN struct weir_probe weir_set_probe(WEIR_GLOBAL struct weir_set *set)
{
	struct weir_probe probe;

	/* line.L1: pairs with line.L0; relaxed, and ordered by weir_probe_find(), once for all four */
	probe.low = weir_data_load_u128(WEIR_ADDR(&set->word[0]));
	probe.high = weir_data_load_u128(WEIR_ADDR(&set->word[2]));
	return probe;
}

/* @key among what was seen; what a readable line guards may be loaded afterwards, by way of the result. */
WEIR_FN struct weir_found weir_probe_find(struct weir_probe probe, u64 key)
{
	struct weir_found found;

	found.word = 0;
	found.way = WEIR_WAYS;
	found = weir_found_in(found, probe.low.low, 0, key);
	found = weir_found_in(found, probe.low.high, 1, key);
	found = weir_found_in(found, probe.high.low, 2, key);
	found = weir_found_in(found, probe.high.high, 3, key);
	found.way = weir_depend(found.way, found.word);
	return found;
}

/** weir_set_find() - look for @key in @set; what a readable line guards may be loaded afterwards, by way of
 * the result */
WEIR_FN struct weir_found weir_set_find(WEIR_GLOBAL struct weir_set *set, u64 key)
{
	return weir_probe_find(weir_set_probe(set), key);
}

/* What a line's word may do while its occupant stays. */
#define WEIR_LINE_PASSING (WEIR_LINE_PINS | WEIR_LINE_USED | WEIR_LINE_BIT_CLEAN | WEIR_LINE_BIT_WRITING)

/* Two looks at a word saw the same occupant; of a readable one, that it stayed readable. */
WEIR_FN u32 weir_line_same(u64 a, u64 b)
{
	return ((a ^ b) & ~(u64)WEIR_LINE_PASSING) == 0;
}

/*
 * line.L2: the data loads stay before this second look; whoever reuses the line stores
 * its word (claim) before its data (completion), so old data cannot pass.
 */
WEIR_FN u32 weir_line_unchanged(WEIR_GLOBAL struct weir_set *set, struct weir_found found)
{
	weir_order_loads();
	return weir_line_same(weir_load_u64_relaxed_dev(&set->word[found.way]), found.word);
}

/* The same for a few words, all loaded already: a look at them is the order. */
WEIR_FN u32 weir_line_unchanged_by(WEIR_GLOBAL struct weir_set *set, struct weir_found found,
				   struct weir_words words)
{
	u64 mixed = words.word[0];

	for (u32 i = 1; i < WEIR_RUN; i++)
		mixed ^= words.word[i];
	/* line.L2: in the rare case that another word is looked at, the line counts as changed */
	return weir_line_same(weir_load_u64_relaxed_dev(&set->word[weir_depend(found.way, mixed)]),
			      found.word);
}

/*
 * @count words, 0 to WEIR_RUN, from @data on, a multiple of 8: a single one by itself, more by pairs that
 * begin at multiples of 16, half as many accesses. What a pair has beyond them lies in the same line, and is
 * given, too; the rest is 0.
 */
WEIR_FN struct weir_words weir_line_load(weir_addr data, u32 count)
{
	u32 odd = (u32)(data >> 3) & 1, pairs = count > 1;
	u64 word[WEIR_RUN + 2];
	struct weir_words words;

	for (u32 i = 0; i < WEIR_RUN + 2; i += 2) {
		struct weir_u128 pair;

		pair.low = pair.high = 0;
		if (pairs && i < odd + count)
			pair = weir_data_load_u128(data + (i - (u64)odd) * sizeof(u64));
		word[i] = pair.low;
		word[i + 1] = pair.high;
	}
	for (u32 i = 0; i < WEIR_RUN; i++)
		words.word[i] = odd ? word[i + 1] : word[i];
	if (count == 1)
		words.word[0] = weir_data_load_u64(data);
	words.status = WEIR_OK;
	return words;
}

/**
 * weir_lines_try_read() - read words of a resident line, or fail at once
 * @lines: the cache
 * @key: line
 * @offset: byte offset in the line, a multiple of 8
 * @count: words, 0 to WEIR_RUN
 *
 * The hit path: no atomics, no pin, any lane by itself.
 *
 * Return: status 0 and the words; any other status means: not resident just now.
 */
WEIR_FN struct weir_words weir_lines_try_read(WEIR_GLOBAL struct weir_lines *lines, u64 key, u32 offset,
					      u32 count)
{
	u64 index = weir_lines_index(lines, key);
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	struct weir_found found = weir_set_find(set, key);
	struct weir_words words;

	if (!weir_line_readable(found.word)) {
		words = weir_line_load(0, 0);
		words.status = WEIR_E_TIMEOUT;
		return words;
	}
	words = weir_line_load(weir_line_data(lines, index, found.way) + offset, count);
	if (!weir_line_unchanged_by(set, found, words))
		words.status = WEIR_E_TIMEOUT;
	else
		weir_policy_hit(set, found.way, found.word);
	return words;
}

/** struct weir_four - four elements, or where they are */
struct weir_four {
	u64 value[4];
};

/** struct weir_hits - words of four lines; bit k of @missing: line k is not resident just now */
struct weir_hits {
	struct weir_four four;
	u32 missing;
};

/**
 * weir_lines_try_four() - read a word each of four lines, or fail at once
 * @lines: the cache
 * @key_base: key of the line at byte 0
 * @byte: where, multiples of 8
 *
 * weir_lines_try_read(), with all looks, then all data, then all second looks in flight.
 */
WEIR_FN struct weir_hits weir_lines_try_four(WEIR_GLOBAL struct weir_lines *lines, u64 key_base,
					     struct weir_four byte)
{
	u64 mask = ((u64)1 << lines->line_log2) - 1, index[4];
	struct weir_found found[4];
	struct weir_probe probe[4];
	struct weir_hits hits;

	for (u32 k = 0; k < 4; k++) {
		index[k] = weir_lines_index(lines, key_base + (byte.value[k] >> lines->line_log2));
		probe[k] = weir_set_probe(weir_lines_set(lines, index[k]));
	}
	for (u32 k = 0; k < 4; k++) {
		found[k] = weir_probe_find(probe[k], key_base + (byte.value[k] >> lines->line_log2));
		/* Where there is no line, any address will do. */
		hits.four.value[k] = weir_data_load_u64(
			weir_line_data(lines, index[k], found[k].way % WEIR_WAYS) + (byte.value[k] & mask));
	}
	hits.missing = 0;
	for (u32 k = 0; k < 4; k++) {
		WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index[k]);
		/* line.L2, as in weir_line_unchanged_by() */
		u64 word = weir_load_u64_relaxed_dev(
			&set->word[weir_depend(found[k].way % WEIR_WAYS, hits.four.value[k])]);

		if (!weir_line_readable(found[k].word) || !weir_line_same(word, found[k].word))
			hits.missing |= 1u << k;
		else
			weir_policy_hit(set, found[k].way, found[k].word);
	}
	return hits;
}

#endif
