/* SPDX-License-Identifier: BSD-3-Clause */
/* commands.c: index, upload, info, verify and order. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <weir/core/mix.h>

#include "tool.h"

int tool_index(struct tool *tool)
{
	struct weir_dataset_index_options options = { .size = sizeof(options),
						      .format = tool->format,
						      .checks = tool->checks,
						      .progress = tool_progress };

	if (tool->manifest && tool->operand_count > 1)
		return tool_complain("index: --manifest names one file; give one storage at a time");
	for (int i = 0; i < tool->operand_count; i++)
		if (strncmp(tool->operands[i], "file:", 5) != 0 && !tool->manifest)
			return tool_complain(
				"index %s: give --manifest FILE; only file: has a place for it by itself",
				tool->operands[i]);
	if (tool_open(tool, 0, true))
		return tool_failed();
	for (unsigned i = 0; i < tool->storage_count; i++) {
		if (weir_dataset_index(tool->storages[i], tool->manifests[i], &options))
			return tool_failed();
		printf("%s\n", tool->manifests[i]);
	}
	return TOOL_OK;
}

/* By the first rank alone: others would write to the same storages. Return: 0 or a negative errno. */
static int upload_once(struct tool *tool)
{
	struct weir_dataset_index_options options = { .size = sizeof(options),
						      .format = tool->format,
						      .checks = tool->checks,
						      .progress = tool_progress };
	int error;

	if (tool->communicator->rank)
		return 0;
	error = tool_open(tool, 1, true);
	return error ? error
		     : weir_dataset_upload(tool->storages, tool->storage_count, tool->operands[0], &options);
}

/* The other ranks wait for how it ends. */
int tool_upload(struct tool *tool)
{
	if (weir_dataset_communicator_open("auto", &tool->communicator))
		return tool_failed();
	return weir_dataset_agree(tool->communicator, upload_once(tool)) ? tool_failed() : TOOL_OK;
}

int tool_info(struct tool *tool)
{
	struct weir_dataset_info info = { .size = sizeof(info) };

	if (!tool_mount(tool))
		return TOOL_FAILED;
	if (weir_dataset_info(tool->dataset, &info))
		return tool_failed();
	if (tool->communicator->rank)
		return TOOL_OK;
	printf("samples         %" PRIu64 "\nbytes           %" PRIu64
	       "\nlengths         %u to %u\nlabels          %u\nstorages        %u\n",
	       info.samples, info.bytes, info.shortest_bytes, info.longest_bytes, info.labels, info.storages);
	printf("chunks          %" PRIu64 " of %u\nrow             %u\ndirectory       %" PRIu64
	       " bytes, %.2f per sample\n",
	       info.chunks, info.chunk_bytes, info.row_bytes, info.directory_bytes,
	       info.samples ? (double)info.directory_bytes / (double)info.samples : 0);
	printf("cache           %" PRIu64 "\nmount           %.1f ms\nranks           %u\n", info.cache_bytes,
	       (double)info.mount_us / 1e3, tool->communicator->ranks);
	return TOOL_OK;
}

/** struct epoch - what was read of one; @numbers: a sum over the numbers of the samples, to which as many
 * others do not come */
struct epoch {
	uint64_t samples, bytes, numbers;
};

/* One epoch; every sample once over all ranks. Return: 0, what weir_dataset_bread() returned, or -ECANCELED.
 */
static int read_epoch(struct tool *tool, uint64_t total, struct epoch *epoch)
{
	struct weir_dataset_batch batch = { .size = sizeof(batch) };

	do {
		int error = weir_dataset_bread(tool->dataset, tool->batch, &batch);

		if (error)
			return error;
		for (uint32_t i = 0; i < batch.count; i++) {
			epoch->bytes += batch.host_lengths[i];
			epoch->numbers += weir_mix_u64(batch.samples[i] + 1);
		}
		epoch->samples += batch.count;
		if (tool_progress(NULL, epoch->samples, total))
			return -ECANCELED;
	} while (batch.count);
	return 0;
}

/* Over all ranks. */
static int sum(struct tool *tool, uint64_t *value)
{
	size_t *counts = malloc(tool->communicator->ranks * sizeof(*counts));
	uint64_t total = 0;
	void *all = NULL;

	if (!counts || tool->communicator->gather(tool->communicator, value, sizeof(*value), &all, counts)) {
		free(counts);
		return tool_failed();
	}
	for (uint32_t i = 0; i < tool->communicator->ranks; i++)
		total += ((uint64_t *)all)[i];
	*value = total;
	free(all);
	free(counts);
	return TOOL_OK;
}

/* @epoch is of all ranks. */
static int check_epoch(const struct epoch *epoch, const struct weir_dataset_info *info)
{
	uint64_t numbers = 0;

	if (epoch->samples != info->samples || epoch->bytes != info->bytes)
		return tool_complain("%" PRIu64 " samples with %" PRIu64
				     " bytes were read, and there are %" PRIu64 " with %" PRIu64,
				     epoch->samples, epoch->bytes, info->samples, info->bytes);
	for (uint64_t i = 0; i < info->samples; i++)
		numbers += weir_mix_u64(i + 1);
	return numbers == epoch->numbers
		       ? TOOL_OK
		       : tool_complain("%" PRIu64
				       " samples were read, as many as there are, but not each of them once",
				       epoch->samples);
}

int tool_verify(struct tool *tool)
{
	struct weir_dataset_info info = { .size = sizeof(info) };
	struct weir_dataset_sequence_options sequence = { .size = sizeof(sequence),
							  .seed = tool->seed,
							  .order = tool->order };
	struct epoch epoch = { 0 };
	int error;

	if (!tool_mount(tool))
		return TOOL_FAILED;
	error = weir_dataset_info(tool->dataset, &info);
	if (!error)
		error = weir_dataset_sequence(tool->dataset, &sequence);
	if (!error)
		error = read_epoch(tool, info.samples / tool->communicator->ranks, &epoch);
	error = weir_dataset_agree(tool->communicator,
				   error); /* or others would wait in sum() for this rank */
	if (error == -ECANCELED)
		return tool_complain("stopped after %" PRIu64 " samples", epoch.samples);
	if (error)
		return tool_failed();
	if (sum(tool, &epoch.samples) || sum(tool, &epoch.bytes) || sum(tool, &epoch.numbers) ||
	    check_epoch(&epoch, &info))
		return TOOL_FAILED;
	if (!tool->communicator->rank)
		printf("%" PRIu64 " samples, %" PRIu64 " bytes, %u ranks: all there\n", epoch.samples,
		       epoch.bytes, tool->communicator->ranks);
	return TOOL_OK;
}

/* A point for some positions of each order. */
static int plot(const char *path, uint64_t *const orders[3], uint64_t samples)
{
	uint64_t step = samples / 4000 + 1;
	char command[600];
	int status;
	FILE *to;

	if (strpbrk(path, "'\n\"\\"))
		return tool_complain("--plot: a file name with quotes is not for gnuplot");
	signal(SIGPIPE, SIG_IGN); /* a gnuplot that is not there, or ends early, is told by its exit status */
	to = popen("gnuplot", "w");
	if (!to)
		return tool_complain("cannot start gnuplot: %s", strerror(errno));
	snprintf(command, sizeof(command),
		 "set terminal svg size 1200,420\nset output '%.400s'\nset multiplot layout 1,3\nunset key\n"
		 "set xlabel 'position'\nset ylabel 'sample'\n",
		 path);
	fputs(command, to);
	for (unsigned order = 0; order < 3; order++) {
		fprintf(to, "set title '%s'\nplot '-' with dots lc rgb 'black'\n",
			weir_dataset_order_name(order));
		for (uint64_t i = 0; i < samples; i += step)
			fprintf(to, "%" PRIu64 " %" PRIu64 "\n", i, orders[order][i]);
		fputs("e\n", to);
	}
	status = pclose(to);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return tool_complain("--plot needs gnuplot: apt-get install gnuplot-nox");
	return status == 0 ? TOOL_OK : tool_complain("gnuplot could not write %s", path);
}

int tool_order(struct tool *tool)
{
	struct weir_dataset_info info = { .size = sizeof(info) };
	uint64_t *orders[3] = { NULL };
	int status = TOOL_OK;

	if (!tool_mount(tool))
		return TOOL_FAILED;
	if (weir_dataset_info(tool->dataset, &info))
		return tool_failed();
	printf("%-16s %10s %14s %17s %12s   batch %u\n", "order", "coverage", "displacement",
	       "autocorrelation", "neighbours", tool->batch);
	for (uint32_t order = 0; order < 3 && status == TOOL_OK; order++) {
		struct weir_dataset_sequence_options sequence = { .size = sizeof(sequence),
								  .seed = tool->seed,
								  .order = order,
								  .buffer_chunks = tool->buffer_chunks };
		struct weir_dataset_quality quality = { .size = sizeof(quality) };

		orders[order] = malloc(info.samples * sizeof(uint64_t));
		if (!orders[order] ||
		    weir_dataset_quality(tool->dataset, &sequence, tool->batch, &quality, orders[order]))
			status = tool_failed();
		else
			printf("%-16s %10.3f %14.3f %17.4f %12.4f\n", weir_dataset_order_name(order),
			       quality.coverage, quality.displacement, quality.autocorrelation,
			       quality.neighbours);
	}
	if (status == TOOL_OK && tool->plot)
		status = plot(tool->plot, orders, info.samples);
	for (unsigned order = 0; order < 3; order++)
		free(orders[order]);
	return status;
}
