/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict.h: how the lanes of a test kernel note their mistakes. */
#ifndef WEIR_TESTS_VERDICT_H
#define WEIR_TESTS_VERDICT_H

#include "kernels.h"

WEIR_FN WEIR_GLOBAL struct test_verdict *verdict_at(weir_addr address)
{
	return weir_at(address, struct test_verdict, 0);
}

/* Count a mistake unless the two are the same; the first leaves its details. */
WEIR_FN u32 expect(weir_addr address, u64 where, u64 found, u64 expected)
{
	WEIR_GLOBAL struct test_verdict *verdict = verdict_at(address);

	if (found == expected)
		return 1;
	if (weir_add_u64_relaxed_dev(&verdict->bad, 1) == 0) {
		verdict->where = where;
		verdict->found = found;
		verdict->expected = expected;
	}
	return 0;
}

#endif
