/* SPDX-License-Identifier: BSD-3-Clause */
/* quality.c: how random an order is, in four numbers. */
#include <errno.h>
#include <stdlib.h>

#include "backend/error.h"
#include "mounted.h"
#include "base/options.h"

static int by_label(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

/* Different labels of the samples @order[0 .. count - 1]; @labels has room for as many. */
static uint32_t labels_in(const struct weir_dataset *dataset, const uint64_t *order, uint32_t count,
			  uint32_t *labels)
{
	uint32_t different = 0;

	for (uint32_t i = 0; i < count; i++)
		labels[i] = dataset->directory.labels[order[i]];
	qsort(labels, count, sizeof(*labels), by_label);
	for (uint32_t i = 0; i < count; i++)
		different += labels[i] != WEIR_DATASET_NO_LABEL && (!i || labels[i] != labels[i - 1]);
	return different;
}

/* Mean number of different labels in whole batches of @order. */
static double coverage_of(const struct weir_dataset *dataset, const uint64_t *order, uint32_t batch,
			  uint32_t *seen)
{
	uint64_t batches = dataset->directory.count / batch;
	double sum = 0;

	for (uint64_t i = 0; i < batches; i++)
		sum += labels_in(dataset, order + i * batch, batch, seen);
	return batches ? sum / (double)batches : 0;
}

static void displace(const uint64_t *order, uint64_t count, struct weir_dataset_quality *quality)
{
	double sum = 0, mean = (double)(count - 1) / 2, variance = 0, covariance = 0;
	uint64_t neighbours = 0;

	for (uint64_t i = 0; i < count; i++) {
		double from = (double)order[i] - mean;

		sum += order[i] > i ? (double)(order[i] - i) : (double)(i - order[i]);
		variance += from * from;
		if (i + 1 < count) {
			covariance += from * ((double)order[i + 1] - mean);
			neighbours += order[i + 1] == order[i] + 1;
		}
	}
	quality->displacement = sum / (double)count / ((double)count / 3);
	quality->autocorrelation = variance > 0 ? covariance / variance : 0;
	quality->neighbours = count > 1 ? (double)neighbours / (double)(count - 1) : 0;
}

/* The order into @order. */
static int list(struct weir_dataset *dataset, const struct weir_dataset_sequence_options *sequence,
		uint64_t *order)
{
	struct weir_dataset_epoch epoch;
	int error = weir_dataset_epoch_open(&epoch, sequence, &dataset->directory);

	if (error)
		return error;
	for (uint64_t i = 0; i < dataset->directory.count; i++)
		order[i] = weir_dataset_epoch_at(&epoch, i);
	weir_dataset_epoch_close(&epoch);
	return 0;
}

static int measure(struct weir_dataset *dataset, const struct weir_dataset_sequence_options *sequence,
		   uint32_t batch, struct weir_dataset_quality *quality, uint64_t *order)
{
	struct weir_dataset_sequence_options uniform = *sequence;
	uint64_t rows = batch < dataset->directory.count ? batch : dataset->directory.count;
	uint32_t *seen = malloc(rows * sizeof(*seen));
	double whole = 0;
	int error = seen ? 0 : weir_fail(ENOMEM, "dataset: no memory to count labels");

	uniform.order = WEIR_DATASET_FULL;
	if (!error)
		error = list(dataset, &uniform, order);
	if (!error && dataset->info.labels)
		whole = coverage_of(dataset, order, batch, seen);
	if (!error)
		error = list(dataset, sequence, order);
	if (!error) {
		quality->coverage = whole > 0 ? coverage_of(dataset, order, batch, seen) / whole : 0;
		displace(order, dataset->directory.count, quality);
	}
	free(seen);
	return error;
}

int weir_dataset_quality(struct weir_dataset *dataset, const struct weir_dataset_sequence_options *given,
			 uint32_t batch, struct weir_dataset_quality *quality, uint64_t *to)
{
	struct weir_dataset_quality result = { .size = sizeof(result) };
	struct weir_dataset_sequence_options sequence;
	uint64_t *order = to;
	int error = weir_dataset_check(dataset, "weir_dataset_quality");

	if (!error)
		error = weir_options_take(&sequence, sizeof(sequence), given, "weir_dataset_quality");
	if (!error &&
	    (!batch || !quality || !weir_dataset_order_name(sequence.order) || !dataset->directory.count))
		error = weir_fail(EINVAL, "weir_dataset_quality: it needs samples, rows of a batch, one of "
					  "the orders, and where to put the result");
	if (error)
		return error;
	if (!sequence.buffer_chunks)
		sequence.buffer_chunks = dataset->default_buffer;
	if (!order)
		order = malloc(dataset->directory.count * sizeof(*order));
	if (!order)
		return weir_fail(ENOMEM, "dataset: no memory to list %llu samples",
				 (unsigned long long)dataset->directory.count);
	error = measure(dataset, &sequence, batch, &result, order);
	if (order != to)
		free(order);
	return error ? error : weir_result_give(quality, &result, sizeof(result), "weir_dataset_quality");
}
