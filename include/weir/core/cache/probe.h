/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/probe.h: what the words of a set, as seen in one look, allow.
 *
 * Owns: which ways are clean, dirty, being written back, lately used or not writable, as bits. Never
 * changes anything: what it tells is a hint, and whoever acts on it exchanges the word that was seen, or
 * looks again.
 */
#ifndef WEIR_CORE_PROBE_H
#define WEIR_CORE_PROBE_H

#include <weir/core/cache/writeback.h>

/* The ways of a set that have some property, as bits. */
WEIR_FN u32 weir_probe_dirty(struct weir_probe probe)
{
	u32 ways = 0;

	for (u32 way = 0; way < WEIR_WAYS; way++) {
		u64 word = weir_probe_word(probe, way);

		ways |= (u32)(weir_line_state(word) == WEIR_LINE_MODIFIED && weir_line_evictable(word))
			<< way;
	}
	return ways;
}

WEIR_FN u32 weir_probe_clean(struct weir_probe probe)
{
	u32 ways = 0;

	for (u32 way = 0; way < WEIR_WAYS; way++) {
		u64 word = weir_probe_word(probe, way);

		ways |= (u32)(weir_line_state(word) != WEIR_LINE_MODIFIED && weir_line_evictable(word))
			<< way;
	}
	return ways;
}

WEIR_FN u32 weir_probe_writing(struct weir_probe probe)
{
	u32 ways = 0;

	for (u32 way = 0; way < WEIR_WAYS; way++) {
		u64 word = weir_probe_word(probe, way);

		ways |= (u32)(weir_line_readable(word) && weir_line_under_way(word)) << way;
	}
	return ways;
}

WEIR_FN u32 weir_probe_used(struct weir_probe probe)
{
	u32 ways = 0;

	for (u32 way = 0; way < WEIR_WAYS; way++)
		ways |= (u32)((weir_probe_word(probe, way) & WEIR_LINE_USED) != 0) << way;
	return ways;
}

/*
 * Might a claim get something done? @writing: bit 0: this lane could submit a write-back; bit 1: even if
 * another one of the set is under way. Where not, the set's lock is left to others.
 */
WEIR_FN u32 weir_probe_promises(struct weir_probe probe, u32 writing)
{
	return weir_probe_clean(probe) ||
	       (weir_probe_dirty(probe) && (weir_probe_writing(probe) ? writing & 2 : writing & 1));
}

/* Those of the dirty lines @ways whose last write-back failed, untold so far. */
WEIR_FN u32 weir_set_unwritable(WEIR_GLOBAL struct weir_set_policy *policy, u32 ways)
{
	u32 unwritable = 0;

	/* relaxed: a hint; who begins a write-back looks again (writeback.W3) */
	for (u32 way = 0; way < WEIR_WAYS; way++)
		if ((ways >> way) & 1)
			unwritable |= weir_status_sticky(weir_load_u32_relaxed_dev(&policy->status[way]))
				      << way;
	return unwritable;
}

#endif
