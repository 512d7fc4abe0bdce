/* SPDX-License-Identifier: BSD-3-Clause */
#include "make.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../runtime/tools/options/tool_output.h"
#include "../common/device.h"

enum { LEAST_WIDTH = 64, PIECE_WORDS = 8192, LENGTH_BYTES = 8 };

/** struct part - a tensor of each layer, as multiples of the width */
struct part {
	const char *name;
	unsigned rows; /* 0: a vector */
	unsigned columns;
};

static const struct part parts[] = {
	{ "input_layernorm.weight", 0, 1 },
	{ "self_attn.q_proj.weight", 4, 4 },
	{ "self_attn.k_proj.weight", 1, 4 },
	{ "self_attn.v_proj.weight", 1, 4 },
	{ "self_attn.o_proj.weight", 4, 4 },
	{ "mlp.gate_proj.weight", 14, 4 },
	{ "mlp.up_proj.weight", 14, 4 },
	{ "mlp.down_proj.weight", 4, 14 },
	{ "post_attention_layernorm.weight", 0, 1 },
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]), LAYER_SQUARES = 16 + 4 + 4 + 16 + 56 + 56 + 56 };

/* One tensor's entry; BF16, so two bytes each. Return: its bytes. */
static uint64_t add_entry(json_t *root, unsigned layer, const struct part *part, uint64_t width,
			  uint64_t begin)
{
	uint64_t rows = part->rows * width, columns = part->columns * width,
		 bytes = 2 * (rows ? rows : 1) * columns;
	char name[128];
	json_t *entry = json_object(), *shape = json_array(), *offsets = json_array();

	snprintf(name, sizeof(name), "model.layers.%u.%s", layer, part->name);
	if (rows)
		json_array_append_new(shape, json_integer((json_int_t)rows));
	json_array_append_new(shape, json_integer((json_int_t)columns));
	json_array_append_new(offsets, json_integer((json_int_t)begin));
	json_array_append_new(offsets, json_integer((json_int_t)(begin + bytes)));
	json_object_set_new(entry, "dtype", json_string("BF16"));
	json_object_set_new(entry, "shape", shape);
	json_object_set_new(entry, "data_offsets", offsets);
	json_object_set_new(root, name, entry);
	return bytes;
}

/* As many layers as a real model of that size may have, of a width that comes to about as many bytes. */
static char *make_header(uint64_t bytes, uint64_t *data)
{
	unsigned layers = bytes > (1u << 28) ? 32 : 4;
	uint64_t width = LEAST_WIDTH;
	json_t *root = json_object();
	char *text;

	while (2 * layers * LAYER_SQUARES * (width + 8) * (width + 8) <= bytes)
		width += 8;
	*data = 0;
	json_object_set_new(root, "__metadata__", json_pack("{s:s}", "format", "pt"));
	for (unsigned layer = 0; layer < layers; layer++)
		for (size_t i = 0; i < PARTS; i++)
			*data += add_entry(root, layer, &parts[i], width, *data);
	text = json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(root);
	return text;
}

static bool write_data(FILE *file, uint64_t bytes, uint64_t seed)
{
	static uint64_t words[PIECE_WORDS];
	bool good = true;

	for (uint64_t at = 0; at < bytes && good; at += sizeof(words)) {
		size_t count = bytes - at < sizeof(words) ? (size_t)(bytes - at) : sizeof(words);

		for (size_t i = 0; i < PIECE_WORDS; i++)
			words[i] = sample_scramble(seed + at / 8 + i);
		good = fwrite(words, 1, count, file) == count;
	}
	return good;
}

int make_model(const char *path, uint64_t bytes, uint64_t seed, char *error)
{
	FILE *file = fopen(path, "we");
	unsigned char length[LENGTH_BYTES];
	uint64_t data;
	char *header = make_header(bytes, &data);
	bool good = file && header;

	for (unsigned i = 0; header && i < LENGTH_BYTES; i++)
		length[i] = (unsigned char)((uint64_t)strlen(header) >> 8 * i);
	good = good && fwrite(length, 1, sizeof(length), file) == sizeof(length) &&
	       fputs(header, file) >= 0 && write_data(file, data, seed);
	if (file)
		good = tool_output_end(file, path, good);
	free(header);
	return good ? 0
		    : sample_fail(error, errno ? -errno : -EIO, "cannot write %s: %s", path, strerror(errno));
}
