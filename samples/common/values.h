/* SPDX-License-Identifier: BSD-3-Clause */
/* values.h: results of samples as files, so that others can compare. */
#ifndef SAMPLE_VALUES_H
#define SAMPLE_VALUES_H

#include <stdint.h>

/** enum sample_value - what results are made of */
enum sample_value {
	SAMPLE_VALUE_U32,
	SAMPLE_VALUE_U64,
	SAMPLE_VALUE_F32,
	SAMPLE_VALUE_F64,
};

/** SAMPLE_OUTPUT_OPTION() - a row of a table of options: where results go; @what each of them is */
#define SAMPLE_OUTPUT_OPTION(path, what)                                                                     \
	{                                                                                                    \
		.name = "output", .value = "FILE", .kind = TOOL_TEXT, .to = &(path),                         \
		.help = "write " what " of every vertex to FILE, little-endian, in the vertices' order;\n"   \
			"to a FILE.txt as text, a line for each: its number and the value"                   \
	}

/**
 * sample_write_values() - results become a file
 * @path: one that ends with .txt is text: lines of an index and a value, with as many digits as tell floats
 * apart; else the bytes
 * @values: @count of them
 * @kind: what they are
 *
 * Return: 0 or a negative errno with a sentence in @error.
 */
int sample_write_values(const char *path, const void *values, uint64_t count, enum sample_value kind,
			char *error);

#endif
