/* SPDX-License-Identifier: BSD-3-Clause */
#include "sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "safetensors.h"

enum { APART = 256, PIECE_BYTES = 1 << 20 };

/* A tensor's sum as the host reads it. */
static int sum_file(int file, uint64_t offset, uint64_t bytes, uint64_t *sum, char *error)
{
	static u64 words[PIECE_BYTES / 8];

	*sum = 0;
	for (uint64_t at = 0; at < bytes; at += PIECE_BYTES) {
		uint64_t count = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
		ssize_t got = pread(file, words, count, (off_t)(offset + at));

		if (got != (ssize_t)count)
			return sample_fail(error, -EIO, "cannot read %llu bytes at %llu: %s",
					   (unsigned long long)count, (unsigned long long)(offset + at),
					   got < 0 ? strerror(errno) : "the file became shorter");
		for (uint64_t i = 0; i * 8 < count; i++)
			*sum += safetensors_term(words[i], at / 8 + i, count - i * 8);
	}
	return 0;
}

static int lay_out(struct sums *sums, int file, char *error)
{
	int code = 0;

	for (size_t i = 0; i < sums->model->count && !code; i++) {
		const struct model_tensor *tensor = &sums->model->tensors[i];

		sums->at[i] = sums->bytes;
		sums->bytes += (tensor->bytes + APART - 1) / APART * APART;
		code = sum_file(file, sums->model->data + tensor->begin, tensor->bytes, &sums->right[i],
				error);
	}
	sums->bytes += sums->bytes ? 0 : APART;
	return code;
}

int sums_open(struct sums *sums, struct weir_context *context, const struct model *model, int file,
	      char *error)
{
	int code;

	*sums = (struct sums){ .context = context, .model = model };
	sums->at = calloc(model->count + 1, sizeof(*sums->at));
	sums->right = calloc(model->count + 1, sizeof(*sums->right));
	if (!sums->at || !sums->right)
		return sample_fail(error, -ENOMEM, "no memory for the sums of %zu tensors", model->count);
	code = lay_out(sums, file, error);
	if (!code)
		code = sample_pass(error, weir_alloc(context, sums->bytes, &sums->memory));
	if (!code)
		code = sample_pass(error,
				   weir_alloc(context, (model->count + 1) * sizeof(struct safetensors_offset),
					      &sums->indices));
	return code;
}

static int launch(struct sums *sums, const char *kernel, char *error)
{
	struct safetensors_args args = { .indices = sums->indices,
					 .count = sums->model->count,
					 .memory = sums->memory,
					 .words = sums->bytes / 8 };
	uint32_t blocks;
	int code = sample_blocks(sums->context, args.words / 64, &blocks);

	return sample_pass(error,
			   code ? code : sample_run(sums->context, kernel, blocks, &args, sizeof(args)));
}

int sums_poison(struct sums *sums, char *error)
{
	return launch(sums, "safetensors_poison", error);
}

static int compare(const struct sums *sums, const struct safetensors_offset *indices, const char *way,
		   char *error)
{
	for (size_t i = 0; i < sums->model->count; i++) {
		u64 sum;

		memcpy(&sum, &indices[i].sum, sizeof(sum));
		if (sum != sums->right[i])
			return sample_fail(error, -EBADMSG,
					   "WRONG DATA: %s, tensor \"%.200s\" is not on the device what it "
					   "is in the file; please "
					   "report this",
					   way, sums->model->tensors[i].name);
	}
	return 0;
}

int sums_check(struct sums *sums, const char *way, char *error)
{
	size_t bytes = sums->model->count * sizeof(struct safetensors_offset);
	struct safetensors_offset *indices = calloc(sums->model->count + 1, sizeof(*indices));
	int code = indices ? 0 : sample_fail(error, -ENOMEM, "no memory for the sums");

	for (size_t i = 0; i < sums->model->count && !code; i++) {
		indices[i].address = sums->memory + sums->at[i];
		indices[i].bytes = sums->model->tensors[i].bytes;
	}
	if (!code)
		code = sample_pass(error, weir_copy_to_device(sums->context, sums->indices, indices, bytes));
	if (!code)
		code = launch(sums, "safetensors_sum", error);
	if (!code)
		code = sample_pass(error,
				   weir_copy_from_device(sums->context, indices, sums->indices, bytes));
	if (!code)
		code = compare(sums, indices, way, error);
	free(indices);
	return code;
}

void sums_close(struct sums *sums)
{
	free(sums->at);
	free(sums->right);
}
