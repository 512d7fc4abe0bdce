/* SPDX-License-Identifier: BSD-3-Clause */
#include "values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../../runtime/tools/options/tool_output.h"
#include "device.h"

static bool is_text(const char *path)
{
	size_t length = strlen(path);

	return length > 4 && !strcmp(path + length - 4, ".txt");
}

static bool write_line(FILE *file, const void *values, uint64_t index, enum sample_value kind)
{
	int length = -1;

	switch (kind) {
	case SAMPLE_VALUE_U32:
		length = fprintf(file, "%" PRIu64 " %" PRIu32 "\n", index, ((const uint32_t *)values)[index]);
		break;
	case SAMPLE_VALUE_U64:
		length = fprintf(file, "%" PRIu64 " %" PRIu64 "\n", index, ((const uint64_t *)values)[index]);
		break;
	case SAMPLE_VALUE_F32:
		length = fprintf(file, "%" PRIu64 " %.9g\n", index, (double)((const float *)values)[index]);
		break;
	case SAMPLE_VALUE_F64:
		length = fprintf(file, "%" PRIu64 " %.17g\n", index, ((const double *)values)[index]);
		break;
	}
	return length > 0;
}

int sample_write_values(const char *path, const void *values, uint64_t count, enum sample_value kind,
			char *error)
{
	uint64_t bytes = kind == SAMPLE_VALUE_U64 || kind == SAMPLE_VALUE_F64 ? 8 : 4;
	FILE *file = fopen(path, "we");
	bool whole = file != NULL;
	int code;

	if (whole && !is_text(path))
		whole = fwrite(values, bytes, count, file) == count;
	for (uint64_t i = 0; whole && is_text(path) && i < count; i++)
		whole = write_line(file, values, i, kind);
	if (file)
		whole = tool_output_end(file, path, whole);
	code = whole ? 0 : errno;
	return code ? sample_fail(error, -code, "cannot write %s: %s; choose another --output", path,
				  strerror(code))
		    : 0;
}
