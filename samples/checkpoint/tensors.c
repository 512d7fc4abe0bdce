/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensors.h"

#include <errno.h>
#include <stdlib.h>

enum { APART = 256 };

static int parse(struct tensors *tensors, const char *header, uint64_t header_bytes, uint64_t data_bytes,
		 char *error)
{
	char what[MODEL_ERROR_BYTES] = "";
	uint64_t length = 0;
	int code = model_length((const unsigned char *)header, header_bytes + data_bytes, &length, what);

	if (!code && length != header_bytes - MODEL_LENGTH_BYTES)
		return sample_fail(error, -EINVAL, "the checkpoint's header is not as long as it says");
	if (!code)
		code = model_parse(header + MODEL_LENGTH_BYTES, length, header_bytes + data_bytes,
				   &tensors->model, what);
	for (size_t i = 0; i < tensors->model.count && !code; i++)
		if (tensors->model.tensors[i].bytes % CHECKPOINT_UNIT)
			return sample_fail(error, -EINVAL,
					   "tensor \"%.200s\" has %llu bytes, which are no multiple of %d",
					   tensors->model.tensors[i].name,
					   (unsigned long long)tensors->model.tensors[i].bytes,
					   CHECKPOINT_UNIT);
	return code ? sample_fail(error, code, "the checkpoint's header: %.900s", what) : 0;
}

/* Where each of them is. */
static int place(struct tensors *tensors, char *error)
{
	size_t count = tensors->model.count;
	struct checkpoint_tensor *table = calloc(count + 1, sizeof(*table));
	uint64_t bytes = 0;
	int code;

	if (!table)
		return sample_fail(error, -ENOMEM, "no memory for %zu tensors", count);
	for (size_t i = 0; i < count; i++) {
		table[i] = (struct checkpoint_tensor){ .address = bytes,
						       .begin = tensors->model.tensors[i].begin,
						       .bytes = tensors->model.tensors[i].bytes };
		bytes += sample_round_up(table[i].bytes, APART);
	}
	code = weir_alloc(tensors->context, bytes + APART, &tensors->memory);
	for (size_t i = 0; i < count; i++)
		table[i].address += tensors->memory;
	if (!code)
		code = weir_alloc(tensors->context, (count + 1) * sizeof(*table), &tensors->args.tensors);
	if (!code)
		code = weir_copy_to_device(tensors->context, tensors->args.tensors, table,
					   count * sizeof(*table));
	free(table);
	return sample_pass(error, code);
}

int tensors_open(struct tensors *tensors, struct weir_context *context, const struct sample_storage *storage,
		 uint64_t waves, const char *header, uint64_t header_bytes, uint64_t data_bytes, char *error)
{
	struct weir_context_info info = { .size = sizeof(info) };
	uint64_t pieces = (data_bytes + storage->span.piece_bytes - 1) / storage->span.piece_bytes;
	int code;

	*tensors = (struct tensors){ .context = context, .args.span = storage->span };
	code = parse(tensors, header, header_bytes, data_bytes, error);
	if (!code)
		code = place(tensors, error);
	if (!code)
		code = sample_pass(error, weir_context_info(context, &info));
	if (code)
		return code;
	tensors->args.count = tensors->model.count;
	tensors->args.bytes = data_bytes;
	tensors->args.waves = waves < pieces ? waves : pieces;
	code = weir_alloc(context, tensors->args.waves * storage->span.piece_bytes, &tensors->args.buffers);
	if (!code)
		code = weir_alloc(context,
				  (tensors->args.waves * info.wave_lanes + SAMPLE_BLOCK_LANES) *
					  sizeof(struct weir_event),
				  &tensors->args.events);
	if (!code)
		code = weir_alloc(context, sizeof(uint64_t), &tensors->args.sum);
	return sample_pass(error, code);
}

int tensors_run(struct tensors *tensors, const char *kernel, char *error)
{
	return sample_pass(error, sample_run_waves(tensors->context, kernel, tensors->args.waves,
						   &tensors->args, sizeof(tensors->args)));
}

int tensors_sum(struct tensors *tensors, uint64_t *sum, char *error)
{
	uint64_t none = 0;
	int code = sample_pass(error,
			       weir_copy_to_device(tensors->context, tensors->args.sum, &none, sizeof(none)));

	if (!code)
		code = tensors_run(tensors, "checkpoint_sum", error);
	return code ? code
		    : sample_pass(error, weir_copy_from_device(tensors->context, sum, tensors->args.sum,
							       sizeof(*sum)));
}

int tensors_compare(const float *values, uint64_t at, uint64_t bytes, uint64_t seed, const char *way,
		    char *error)
{
	uint64_t first = at / sizeof(float);

	for (uint64_t i = 0; i < bytes / sizeof(float); i++) {
		float right = (float)(sample_scramble(seed + first + i) >> 40) * 0x1p-24f - 0.5f;

		if (values[i] != right)
			return sample_fail(
				error, -EBADMSG,
				"WRONG DATA: %s, number %llu of the data is %.9g, not %.9g; please "
				"report this",
				way, (unsigned long long)(first + i), (double)values[i], (double)right);
	}
	return 0;
}

int tensors_check(struct tensors *tensors, uint64_t seed, const char *way, char *error)
{
	uint64_t at = tensors->memory;
	int code = 0;

	for (size_t i = 0; i < tensors->model.count && !code; i++) {
		const struct model_tensor *tensor = &tensors->model.tensors[i];
		float *values = malloc(tensor->bytes + 1);

		code = values ? sample_pass(error, weir_copy_from_device(tensors->context, values, at,
									 tensor->bytes))
			      : sample_fail(error, -ENOMEM, "no memory for a tensor");
		if (!code)
			code = tensors_compare(values, tensor->begin, tensor->bytes, seed, way, error);
		at += sample_round_up(tensor->bytes, APART);
		free(values);
	}
	return code;
}

void tensors_close(struct tensors *tensors)
{
	if (tensors->context) {
		(void)weir_free(tensors->context, tensors->memory);
		(void)weir_free(tensors->context, tensors->args.tensors);
		(void)weir_free(tensors->context, tensors->args.buffers);
		(void)weir_free(tensors->context, tensors->args.events);
		(void)weir_free(tensors->context, tensors->args.sum);
	}
	model_free(&tensors->model);
	*tensors = (struct tensors){ .context = NULL };
}
