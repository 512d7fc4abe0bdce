/* SPDX-License-Identifier: BSD-3-Clause */
#include "shapes.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8 };

/** struct part - a tensor of each layer, its sides as multiples of the width */
struct part {
	const char *name;
	unsigned rows; /* 0: a vector */
	unsigned columns;
};

static const struct part parts[] = {
	{ "ln_1.weight", 0, 1 },      { "ln_1.bias", 0, 1 },          { "attn.c_attn.weight", 1, 3 },
	{ "attn.c_attn.bias", 0, 3 }, { "attn.c_proj.weight", 1, 1 }, { "attn.c_proj.bias", 0, 1 },
	{ "ln_2.weight", 0, 1 },      { "ln_2.bias", 0, 1 },          { "mlp.c_fc.weight", 1, 4 },
	{ "mlp.c_fc.bias", 0, 4 },    { "mlp.c_proj.weight", 4, 1 },  { "mlp.c_proj.bias", 0, 1 },
};

static const char *const moments[] = { "", "optimizer.exp_avg.", "optimizer.exp_avg_sq." };

/* An entry of F32 behind those before it; rows 0: a vector. */
static void add(json_t *root, const char *moment, const char *name, uint64_t rows, uint64_t columns,
		uint64_t *end)
{
	json_t *entry = json_object(), *shape = json_array(), *offsets = json_array();
	char key[128];

	snprintf(key, sizeof(key), "%s%s", moment, name);
	if (rows)
		json_array_append_new(shape, json_integer((json_int_t)rows));
	json_array_append_new(shape, json_integer((json_int_t)columns));
	json_array_append_new(offsets, json_integer((json_int_t)*end));
	*end += (rows ? rows : 1) * columns * sizeof(float);
	json_array_append_new(offsets, json_integer((json_int_t)*end));
	json_object_set_new(entry, "dtype", json_string("F32"));
	json_object_set_new(entry, "shape", shape);
	json_object_set_new(entry, "data_offsets", offsets);
	json_object_set_new(root, key, entry);
}

static void add_model(json_t *root, const struct shapes *shapes, const char *moment, uint64_t *end)
{
	char name[64];

	add(root, moment, "wte.weight", shapes->vocabulary, shapes->width, end);
	add(root, moment, "wpe.weight", shapes->positions, shapes->width, end);
	for (uint64_t layer = 0; layer < shapes->layers; layer++)
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			snprintf(name, sizeof(name), "h.%" PRIu64 ".%s", layer, parts[i].name);
			add(root, moment, name, parts[i].rows * shapes->width,
			    parts[i].columns * shapes->width, end);
		}
	add(root, moment, "ln_f.weight", 0, shapes->width, end);
	add(root, moment, "ln_f.bias", 0, shapes->width, end);
}

/* The length before it, spaces behind it. */
static char *frame(const char *text, uint64_t *bytes)
{
	uint64_t length = strlen(text), json;
	char *header;

	*bytes = (LENGTH_BYTES + length + SHAPES_HEADER_UNIT - 1) / SHAPES_HEADER_UNIT * SHAPES_HEADER_UNIT;
	header = malloc(*bytes);
	if (!header)
		return NULL;
	json = *bytes - LENGTH_BYTES;
	for (unsigned i = 0; i < LENGTH_BYTES; i++)
		header[i] = (char)(json >> 8 * i);
	memcpy(header + LENGTH_BYTES, text, length);
	memset(header + LENGTH_BYTES + length, ' ', json - length);
	return header;
}

char *shapes_header(const struct shapes *shapes, uint64_t step, uint64_t *bytes)
{
	json_t *root = json_object();
	char number[24], *text, *header = NULL;
	uint64_t end = 0;

	snprintf(number, sizeof(number), "%" PRIu64, step);
	json_object_set_new(root, "__metadata__", json_pack("{s:s,s:s}", "format", "pt", "step", number));
	for (unsigned i = 0; i < (shapes->optimizer ? 3 : 1); i++)
		add_model(root, shapes, moments[i], &end);
	text = json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(root);
	if (text)
		header = frame(text, bytes);
	free(text);
	return header;
}
