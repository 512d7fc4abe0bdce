/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/word.h: what whoever claimed or pinned a line does to its words.
 *
 * Owns: taking a claim back, letting go of a pin, and forgetting the error of an earlier occupant. Each is
 * one store or one addition that cannot fail. Never looks for a line, and never chooses, locks or submits:
 * core/cache/writeback.h has the changes of a readable line's word, core/cache/reserve.h the exchange that
 * claims one.
 */
#ifndef WEIR_CORE_WORD_H
#define WEIR_CORE_WORD_H

#include <weir/core/cache/writeback.h>

/* What the claimer of a line leaves there: no error of an earlier occupant. */
WEIR_FN void weir_line_forget_error(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way)
{
	WEIR_GLOBAL weir_shared_u32 *status = weir_line_status(lines, index, way);

	/* line.L4: the claim before the status goes: whoever reads a FAILED line's status looks at its word
	 * again */
	if (weir_load_u32_relaxed_dev(status) != 0)
		weir_store_u32_release_dev(status, 0);
}

/* Take a claim back: no command was submitted, so nobody else may change the word. */
WEIR_FN void weir_line_cancel(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way)
{
	WEIR_GLOBAL weir_shared_u64 *word = &weir_lines_set(lines, index)->word[way];
	u64 busy = weir_load_u64_relaxed_dev(word);

	weir_store_u64_release_dev(word, (busy & WEIR_LINE_VERSIONS) | WEIR_LINE_INVALID);
	weir_add_u64_relaxed_dev(&lines->misses, ~(u64)0);
	weir_add_u64_relaxed_dev(&lines->retracted, 1);
}

WEIR_FN void weir_line_unpin(WEIR_GLOBAL struct weir_set *set, u32 way)
{
	/* release: this lane's reads stay before the line can be claimed again */
	weir_add_u64_acq_rel_dev(&set->word[way], (u64)0 - WEIR_LINE_PIN);
}

#endif
