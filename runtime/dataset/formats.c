/* SPDX-License-Identifier: BSD-3-Clause */
/* formats.c: which format a source is of. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend/error.h"
#include "source.h"

static const struct weir_dataset_format *const formats[] = {
	&weir_dataset_format_folder, &weir_dataset_format_tar,     &weir_dataset_format_tfrecord,
	&weir_dataset_format_mds,    &weir_dataset_format_cifar10, &weir_dataset_format_cifar100,
	&weir_dataset_format_fixed,
};

enum { FORMATS = sizeof(formats) / sizeof(formats[0]), HEAD_BYTES = 512 };

static const struct weir_dataset_format *by_name(const char *name, size_t bytes)
{
	for (unsigned i = 0; i < FORMATS; i++)
		if (strlen(formats[i]->name) == bytes && memcmp(formats[i]->name, name, bytes) == 0)
			return formats[i];
	weir_fail(EINVAL,
		  "dataset: there is no format '%s'; the formats are folder, tar, tfrecord, mds, cifar10, "
		  "cifar100, fixed:BYTES",
		  name);
	return NULL;
}

static int by_content(struct weir_dataset_source *source, const struct weir_dataset_format **format)
{
	size_t bytes = source->bytes < HEAD_BYTES ? (size_t)source->bytes : HEAD_BYTES;
	unsigned char head[HEAD_BYTES];
	int error = weir_dataset_source_read(source, 0, head, bytes);

	for (unsigned i = 0; i < FORMATS && !error; i++)
		if (formats[i]->matches && formats[i]->matches(source, head, bytes)) {
			*format = formats[i];
			return 0;
		}
	return error ? error
		     : weir_fail(EINVAL,
				 "dataset: '%s' is neither tar, TFRecord nor MDS; name its format, such as "
				 "cifar10 or fixed:4096",
				 source->name);
}

int weir_dataset_formats_index(struct weir_dataset_source *source, struct weir_dataset_list *list)
{
	const char *name = list->options && list->options->format ? list->options->format : "auto",
		   *colon = strchr(name, ':');
	size_t bytes = colon ? (size_t)(colon - name) : strlen(name);
	const struct weir_dataset_format *format = &weir_dataset_format_folder;
	bool folder = source->folder;
	int error = 0;

	if (strcmp(name, "auto") != 0)
		format = by_name(name, bytes);
	else if (!folder)
		error = by_content(source, &format);
	if (error || !format)
		return error ? error : -EINVAL;
	if ((format == &weir_dataset_format_folder) != folder)
		return weir_fail(EINVAL, "dataset: '%s' is %s folder, and the format is '%s'; name another",
				 source->name, folder ? "a" : "no", name);
	error = format->index(source, colon ? colon + 1 : "", list);
	if (!error && !list->count)
		error = weir_fail(EINVAL, "dataset: '%s' has no samples", source->name);
	return error;
}
