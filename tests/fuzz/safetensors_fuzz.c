/* SPDX-License-Identifier: BSD-3-Clause */
/* safetensors_fuzz.c: headers of model files; every refusal has a sentence, and tensors that are taken cover
 * the data. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char error[MODEL_ERROR_BYTES] = "";
	uint64_t length = 0, end = 0;
	struct model model;
	int code;

	if (bytes < MODEL_LENGTH_BYTES)
		return 0;
	code = model_length(data, bytes, &length, error);
	fuzz_must(code == 0 || (code == -EINVAL && error[0]));
	fuzz_must(code != 0 || length <= bytes - MODEL_LENGTH_BYTES);
	if (code)
		return 0;
	code = model_parse((const char *)data + MODEL_LENGTH_BYTES, length, bytes, &model, error);
	fuzz_must(code == 0 || ((code == -EINVAL || code == -ENOMEM) && error[0] && !model.tensors));
	for (size_t i = 0; code == 0 && i < model.count; i++) {
		fuzz_must(model.tensors[i].begin == end && model_bits(model.tensors[i].dtype));
		end += model.tensors[i].bytes;
	}
	fuzz_must(code != 0 || (end == model.data_bytes && model.data + end == bytes));
	if (code == 0)
		model_free(&model);
	return 0;
}
