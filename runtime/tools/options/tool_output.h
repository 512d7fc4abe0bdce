/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_output.h: the end of a file that a tool or a sample has written.
 *
 * Owns: that no part of a file passes for the whole.
 */
#ifndef WEIR_TOOL_OUTPUT_H
#define WEIR_TOOL_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/**
 * tool_output_end() - close @file, which was written at @path
 * @whole: all of it was written; else errno says why not
 *
 * Where that, or its close, has failed the file is removed. A device, a pipe or a link at @path stays.
 *
 * Return: it is whole; else errno says why not.
 */
bool tool_output_end(FILE *file, const char *path, bool whole);

#endif
