/* SPDX-License-Identifier: BSD-3-Clause */
#include "model.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

enum { SHOWN_NAME = 80 };

/** struct dtype - a kind of element */
struct dtype {
	const char *name;
	unsigned bits;
};

static const struct dtype dtypes[] = {
	{ "BOOL", 8 },    { "U8", 8 },   { "I8", 8 },   { "F8_E5M2", 8 }, { "F8_E4M3", 8 },
	{ "F8_E8M0", 8 }, { "I16", 16 }, { "U16", 16 }, { "F16", 16 },    { "BF16", 16 },
	{ "I32", 32 },    { "U32", 32 }, { "F32", 32 }, { "F64", 64 },    { "I64", 64 },
	{ "U64", 64 },    { "C64", 64 }, { "F4", 4 },   { "F6_E2M3", 6 }, { "F6_E3M2", 6 },
};

static const struct dtype *find_dtype(const char *name)
{
	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
		if (!strcmp(dtypes[i].name, name))
			return &dtypes[i];
	return NULL;
}

unsigned model_bits(const char *name)
{
	const struct dtype *dtype = find_dtype(name);

	return dtype ? dtype->bits : 0;
}

__attribute__((format(printf, 2, 3))) static int refuse(char *error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, MODEL_ERROR_BYTES, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

/* The same, of a tensor. Its name may be as long as it likes. */
__attribute__((format(printf, 3, 4))) static int refuse_tensor(char *error, const char *name,
							       const char *format, ...)
{
	char what[MODEL_ERROR_BYTES - 2 * SHOWN_NAME];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	return refuse(error, "tensor \"%.80s\": %s", name, what);
}

int model_length(const unsigned char *first, uint64_t file_bytes, uint64_t *bytes, char *error)
{
	uint64_t length = 0;

	if (file_bytes < MODEL_LENGTH_BYTES)
		return refuse(error,
			      "the file has %llu bytes; a safetensors file begins with 8 that give the "
			      "length of its header",
			      (unsigned long long)file_bytes);
	for (unsigned i = MODEL_LENGTH_BYTES; i-- > 0;)
		length = length << 8 | first[i];
	if (length > MODEL_MOST_HEADER)
		return refuse(error,
			      "its first 8 bytes say that the header has %llu bytes, and at most %d can be: "
			      "this is no safetensors "
			      "file",
			      (unsigned long long)length, MODEL_MOST_HEADER);
	if (length > file_bytes - MODEL_LENGTH_BYTES)
		return refuse(error,
			      "the header has %llu bytes by its own account, but only %llu follow: the file "
			      "is cut short, or no "
			      "safetensors file",
			      (unsigned long long)length,
			      (unsigned long long)(file_bytes - MODEL_LENGTH_BYTES));
	if (length < 2)
		return refuse(error, "the header has %llu bytes; the shortest is {}",
			      (unsigned long long)length);
	*bytes = length;
	return 0;
}

/* A count in JSON: an integer, not negative. */
static bool take_count(const json_t *value, uint64_t *count)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*count = (uint64_t)json_integer_value(value);
	return true;
}

static int take_dtype(const json_t *entry, struct model_tensor *tensor, unsigned *bits, char *error)
{
	const json_t *value = json_object_get(entry, "dtype");
	const struct dtype *dtype;

	if (!json_is_string(value))
		return refuse_tensor(error, tensor->name, "it has no dtype, which is a text such as \"F16\"");
	dtype = find_dtype(json_string_value(value));
	if (!dtype)
		return refuse_tensor(error, tensor->name, "its dtype \"%.40s\" is not known",
				     json_string_value(value));
	tensor->dtype = dtype->name;
	*bits = dtype->bits;
	return 0;
}

/* Bytes that a shape comes to. */
static int take_shape(const json_t *entry, const struct model_tensor *tensor, unsigned bits, uint64_t *bytes,
		      char *error)
{
	const json_t *shape = json_object_get(entry, "shape");
	uint64_t count, all = bits;

	if (!json_is_array(shape))
		return refuse_tensor(error, tensor->name, "it has no shape, which is a list of counts");
	if (json_array_size(shape) > MODEL_MOST_DIMENSIONS)
		return refuse_tensor(error, tensor->name, "its shape has %zu dimensions; %d are the most",
				     json_array_size(shape), MODEL_MOST_DIMENSIONS);
	for (size_t i = 0; i < json_array_size(shape); i++) {
		if (!take_count(json_array_get(shape, i), &count))
			return refuse_tensor(error, tensor->name, "dimension %zu of its shape is no count",
					     i);
		if (__builtin_mul_overflow(all, count, &all))
			return refuse_tensor(error, tensor->name, "its shape comes to more than 2^64 bits");
	}
	if (all % 8)
		return refuse_tensor(error, tensor->name,
				     "its shape comes to %llu bits, which are no whole bytes",
				     (unsigned long long)all);
	*bytes = all / 8;
	return 0;
}

static int take_offsets(const json_t *entry, struct model_tensor *tensor, uint64_t data_bytes, char *error)
{
	const json_t *offsets = json_object_get(entry, "data_offsets");
	uint64_t end;

	if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
	    !take_count(json_array_get(offsets, 0), &tensor->begin) ||
	    !take_count(json_array_get(offsets, 1), &end))
		return refuse_tensor(
			error, tensor->name,
			"it has no data_offsets, which are two counts: where it begins and ends");
	if (end < tensor->begin)
		return refuse_tensor(error, tensor->name, "it ends at %llu, before it begins at %llu",
				     (unsigned long long)end, (unsigned long long)tensor->begin);
	if (end > data_bytes)
		return refuse_tensor(
			error, tensor->name,
			"it ends at byte %llu of the data, and the file has %llu of them: it is cut short",
			(unsigned long long)end, (unsigned long long)data_bytes);
	tensor->bytes = end - tensor->begin;
	return 0;
}

static int take_tensor(const char *name, const json_t *entry, struct model *model, char *error)
{
	struct model_tensor *tensor = &model->tensors[model->count];
	uint64_t bytes = 0;
	unsigned bits = 0;
	int code;

	if (!json_is_object(entry))
		return refuse_tensor(error, name,
				     "what is said of it is no object with dtype, shape and data_offsets");
	tensor->name = strdup(name);
	if (!tensor->name)
		return refuse(error, "no memory for the names of tensors"), -ENOMEM;
	model->count++;
	code = take_dtype(entry, tensor, &bits, error);
	if (!code)
		code = take_shape(entry, tensor, bits, &bytes, error);
	if (!code)
		code = take_offsets(entry, tensor, model->data_bytes, error);
	if (!code && bytes != tensor->bytes)
		code = refuse_tensor(error, name,
				     "its dtype and shape come to %llu bytes, its data_offsets to %llu",
				     (unsigned long long)bytes, (unsigned long long)tensor->bytes);
	return code;
}

static int check_metadata(const json_t *metadata, char *error)
{
	const char *key;
	json_t *value;

	if (!json_is_object(metadata))
		return refuse(error, "\"__metadata__\" is no object");
	json_object_foreach((json_t *)(uintptr_t)metadata, key, value) if (
		!json_is_string(value)) return refuse(error,
						      "\"__metadata__\": the value of \"%.80s\" is no text",
						      key);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct model_tensor *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* empty ones first */
}

/* Side by side, from the first byte of the data to the last. */
static int check_cover(const struct model *model, char *error)
{
	uint64_t end = 0;

	for (size_t i = 0; i < model->count; i++) {
		const struct model_tensor *tensor = &model->tensors[i];

		if (tensor->begin < end)
			return refuse_tensor(error, tensor->name,
					     "it begins at %llu, within \"%.80s\", which ends at %llu",
					     (unsigned long long)tensor->begin, model->tensors[i - 1].name,
					     (unsigned long long)end);
		if (tensor->begin > end)
			return refuse_tensor(error, tensor->name,
					     "it begins at %llu, and nobody has the %llu bytes before",
					     (unsigned long long)tensor->begin,
					     (unsigned long long)(tensor->begin - end));
		end = tensor->begin + tensor->bytes;
	}
	if (end != model->data_bytes)
		return refuse(error,
			      "the tensors end at byte %llu of the data, and the file has %llu of them",
			      (unsigned long long)end, (unsigned long long)model->data_bytes);
	return 0;
}

static int take_entries(json_t *root, struct model *model, char *error)
{
	const char *name;
	json_t *entry;
	int code = 0;

	model->tensors = calloc(json_object_size(root) + 1, sizeof(*model->tensors));
	if (!model->tensors)
		return refuse(error, "no memory for %zu tensors", json_object_size(root)), -ENOMEM;
	json_object_foreach(root, name, entry)
	{
		code = strcmp(name, "__metadata__") ? take_tensor(name, entry, model, error)
						    : check_metadata(entry, error);
		if (code)
			return code;
	}
	qsort(model->tensors, model->count, sizeof(*model->tensors), compare);
	return check_cover(model, error);
}

int model_parse(const char *header, uint64_t bytes, uint64_t file_bytes, struct model *model, char *error)
{
	json_error_t what;
	json_t *root;
	int code;

	*model = (struct model){ .data = MODEL_LENGTH_BYTES + bytes,
				 .data_bytes = file_bytes - MODEL_LENGTH_BYTES - bytes };
	if (bytes == 0 || header[0] != '{')
		return refuse(error, "the header does not begin with {");
	root = json_loadb(header, bytes, JSON_REJECT_DUPLICATES, &what);
	if (!root)
		return refuse(error, "the header is no JSON, at byte %d: %s", what.position, what.text);
	code = take_entries(root, model, error);
	json_decref(root);
	if (code)
		model_free(model);
	return code;
}

void model_free(struct model *model)
{
	for (size_t i = 0; i < model->count; i++)
		free(model->tensors[i].name);
	free(model->tensors);
	model->tensors = NULL;
	model->count = 0;
}
