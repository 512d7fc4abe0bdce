/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of a user's own, outside of the tree: adds the numbers of lanes on the device named. */
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

#include "count.h"

enum { BLOCKS = 3, THREADS = 32, LANES = BLOCKS * THREADS };

static void check(int code)
{
	if (code == 0)
		return;
	fprintf(stderr, "count: %s\n", weir_last_error());
	exit(1);
}

int main(int argc, char **argv)
{
	struct weir_context *context;
	struct count_args args;
	uint64_t sum = 0;

	check(weir_context_open(argc > 1 ? argv[1] : "auto", NULL, &context));
	check(weir_alloc(context, sizeof(sum), &args.sum));
	check(weir_copy_to_device(context, args.sum, &sum, sizeof(sum)));
	check(weir_launch(context, "outside_count", BLOCKS, THREADS, &args, sizeof(args)));
	check(weir_sync(context));
	check(weir_copy_from_device(context, &sum, args.sum, sizeof(sum)));
	weir_free(context, args.sum);
	weir_context_close(context);
	printf("%llu\n", (unsigned long long)sum);
	return sum == (uint64_t)LANES * (LANES + 1) / 2 ? 0 : 1;
}
