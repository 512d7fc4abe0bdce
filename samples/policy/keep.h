/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keep.h: a replacement policy of one's own: the lines of one array stay.
 *
 * This header is all there is to it. Give it to the build, -Duser_policy=samples/policy/keep.h,
 * or to the compiler of a program's kernels, -DWEIR_USER_POLICY='"keep.h"', and ask
 * for WEIR_POLICY_USER. The cache's policy_parameter is the device address of a struct
 * keep_range; a line with a key in it goes only if all lines of its set have. Where the others
 * are busy or pinned just now, the answer is "not now", and the reader asks again in
 * its next turn. Among the others: second chance, as clock.
 */
#ifndef KEEP_H
#define KEEP_H

#include <weir/core/cache/policies.h>

/** struct keep_range - keys to keep, from @first on up to @end; weir_array.extent tells an array's */
struct keep_range {
	u64 first;
	u64 end;
};

/* Mask of ways that hold lines of the range; none without a range. */
WEIR_FN u32 keep_ways(struct weir_miss miss)
{
	WEIR_GLOBAL struct keep_range *range = weir_at(miss.parameter, struct keep_range, 0);
	u32 ways = 0;

	for (u32 way = 0; way < WEIR_WAYS && miss.parameter != 0; way++) {
		u64 key = weir_probe_key(miss.probe, way);

		ways |= (u32)(key >= range->first && key < range->end) << way;
	}
	return ways;
}

WEIR_FN struct weir_choice weir_user_choose(WEIR_GLOBAL struct weir_set_policy *policy, struct weir_miss miss)
{
	u32 kept = keep_ways(miss);

	(void)policy;
	miss.evictable &= kept == WEIR_ALL_WAYS ? kept : ~kept;
	return weir_clock_choose(miss);
}

WEIR_FN void weir_user_chosen(WEIR_GLOBAL struct weir_set_policy *policy, struct weir_miss miss,
			      struct weir_choice choice)
{
	(void)policy;
	(void)miss;
	(void)choice;
}

#endif
