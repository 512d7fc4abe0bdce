/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenarios_dataset.k.c: lanes that run what the host launches: both kernels of runtime/dataset/load.k.c, and
 * a program's own. The host's side is the product's, too; it runs in a lane of its own, and is no kernel:
 * nothing is between its calls of primitives.
 *
 * Host: dataset_program.c dataset_runtime.c dataset/agree.c dataset/batch.c dataset/cache.c
 * Host: dataset/plan.c dataset/stream.c
 * Host: dataset/directory.c dataset/interleave.c dataset/order.c dataset/permute.c
 * Host: dataset/share.c base/options.c
 */
#include <dataset/load.k.c>

#include "dataset_stream.h"

void explore_dataset_program(struct scenario_args *args);

/* Rows go round the lanes. */
WEIR_FN void check_rows(const struct dataset_check_args *args)
{
	for (u32 row = (u32)weir_thread(); row < args->count; row += (u32)weir_threads())
		dataset_check_row(args, row);
}

/* Wait until launch @number is there, and all lanes are done with the one before it; what was written until
 * then is seen. Each lane by itself: a kernel that is launched has no collectives around it. */
WEIR_FN void wait_for_launch(WEIR_GLOBAL struct dataset_stream *stream, u32 number)
{
	u32 iteration = 0;

	while (weir_load_u32_acquire_sys(&stream->launched) <= number ||
	       weir_load_u32_acquire_dev(&stream->ended) < number * (u32)weir_threads())
		weir_relax(iteration++);
}

WEIR_FN void run_launches(struct scenario_args *args)
{
	WEIR_GLOBAL struct dataset_stream *stream = weir_at(args->stream, struct dataset_stream, 0);
	u32 kind = DATASET_POST;

	for (u32 number = 0; kind != DATASET_END; number++) {
		struct dataset_launch *launch = &stream->launches[number % DATASET_LAUNCHES];

		wait_for_launch(stream, number);
		kind = launch->kind;
		if (kind == DATASET_POST)
			weir_dataset_post_body(&launch->args.post);
		else if (kind == DATASET_ASSEMBLE)
			weir_dataset_assemble_body(&launch->args.assemble);
		else if (kind == DATASET_CHECK)
			check_rows(&launch->args.check);
		weir_reconverge();
		(void)weir_add_u32_acq_rel_dev(&stream->ended, 1);
		explore_progress();
	}
}

WEIR_KERNEL(dataset, struct scenario_args)
{
	if (weir_thread() == weir_threads())
		explore_dataset_program(args);
	else
		run_launches(args);
}
