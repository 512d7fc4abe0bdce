/* SPDX-License-Identifier: BSD-3-Clause */
#include "stripe.h"
#include "apart.h"
#include "bel.h"
#include "number.h"
#include "space.h"

#include <errno.h>
#include <stdlib.h>

struct striping {
	const struct graph_input *input;
	struct graph_output outputs[GRAPH_STRIPE_FILES_MAX];
	unsigned count;
	uint64_t unit_bytes;
	unsigned char *unit;
};

int graph_stripe_check(char *const files[], unsigned count, uint64_t unit_bytes, struct graph_error *error)
{
	if (count < 2 || count > GRAPH_STRIPE_FILES_MAX)
		return graph_fail(error, -EINVAL, "cannot stripe over %u files: name 2 to %u after --over",
				  count, GRAPH_STRIPE_FILES_MAX);
	if (!unit_bytes || unit_bytes % 512 || unit_bytes > GRAPH_STRIPE_UNIT_MAX)
		return graph_fail(error, -EINVAL,
				  "a unit of %llu bytes is not possible: give a multiple of 512 up to 256M",
				  (unsigned long long)unit_bytes);
	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; j < i; j++)
			if (!strcmp(files[i], files[j]))
				return graph_fail(
					error, -EINVAL,
					"%s is named twice after --over: each unit needs a file of its own",
					files[i]);
	return 0;
}

static int write_unit(struct striping *job, uint64_t unit, struct graph_error *error)
{
	uint64_t at = unit * job->unit_bytes;
	uint64_t left = job->input->bytes - at;
	size_t bytes = (size_t)(left < job->unit_bytes ? left : job->unit_bytes);
	int status = graph_input_read_at(job->input, at, job->unit, bytes, error);

	if (status)
		return status;
	memset(job->unit + bytes, 0, job->unit_bytes - bytes);
	return graph_output_write_at(&job->outputs[unit % job->count], unit / job->count * job->unit_bytes,
				     job->unit, job->unit_bytes, error);
}

static int write_units(struct striping *job, struct graph_progress *progress, struct graph_error *error)
{
	uint64_t units = (job->input->bytes + job->unit_bytes - 1) / job->unit_bytes;

	graph_progress_begin(progress, "striping", units, "units");
	for (uint64_t unit = 0; unit < units; unit++) {
		int status = write_unit(job, unit, error);
		if (status)
			return status;
		graph_progress_add(progress, 1);
	}
	graph_progress_end(progress);
	return graph_outputs_commit(job->outputs, job->count, error);
}

static int create_outputs(struct striping *job, char *const files[], struct graph_error *error)
{
	int status = 0;

	for (unsigned i = 0; i < job->count && !status; i++) {
		uint64_t share = job->input->bytes / job->count + job->unit_bytes;
		status = graph_space_check(files[i], share, 0, error);
		if (!status)
			status = graph_output_create(&job->outputs[i], files[i], error);
	}
	return status;
}

static int stripe(struct striping *job, char *const files[], struct graph_progress *progress,
		  struct graph_error *error)
{
	int status = create_outputs(job, files, error);

	if (!status)
		status = write_units(job, progress, error);
	for (unsigned i = 0; i < job->count; i++)
		graph_output_discard(&job->outputs[i]);
	return status;
}

int graph_stripe(const char *set, char *const files[], unsigned count, uint64_t unit_bytes,
		 struct graph_progress *progress, struct graph_error *error)
{
	struct graph_bel bel;
	struct graph_bel_files members;
	int status = graph_stripe_check(files, count, unit_bytes, error);

	for (unsigned i = 0; i < count && !status; i++) {
		status = graph_check_apart(set, files[i], error);
		for (unsigned j = 0; j < i && !status; j++)
			if (graph_same_file(files[j], files[i]))
				status = graph_fail(
					error, -EINVAL,
					"%s and %s are the same file: each unit needs a file of its own",
					files[j], files[i]);
	}
	if (!status)
		status = graph_bel_files_open(set, &bel, &members, error);
	if (status)
		return status;
	struct striping *job = calloc(1, sizeof(*job));
	unsigned char *unit = malloc(unit_bytes);
	if (job && unit) {
		job->input = &members.dst;
		job->count = count;
		job->unit_bytes = unit_bytes;
		job->unit = unit;
		status = stripe(job, files, progress, error);
	} else {
		status = graph_fail_memory(error, unit_bytes, "one unit");
	}
	free(unit);
	free(job);
	graph_bel_files_close(&members);
	return status;
}
