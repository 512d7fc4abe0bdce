/* SPDX-License-Identifier: BSD-3-Clause */
/* Text files, line by line, with line numbers for the sentences. */
#ifndef WEIR_TOOLS_GRAPH_LINES_H
#define WEIR_TOOLS_GRAPH_LINES_H

#include "input.h"

/** struct graph_lines - a text file being read; @number counts from 1 */
struct graph_lines {
	struct graph_input input;
	char *buffer;
	size_t begin;
	size_t filled;
	uint64_t position; /* next byte of the file to fetch */
	uint64_t number;
	const char *text; /* the current line, without its end; not terminated by a zero */
	size_t bytes;
};

/** graph_lines_open() - open a text file */
int graph_lines_open(struct graph_lines *lines, const char *path, struct graph_error *error);

/** graph_lines_close() - close it and free the buffer */
void graph_lines_close(struct graph_lines *lines);

/** graph_lines_rewind() - start again at the first line */
void graph_lines_rewind(struct graph_lines *lines);

/** graph_lines_next() - go to the next line; *more is false after the last one */
int graph_lines_next(struct graph_lines *lines, bool *more, struct graph_error *error);

/** graph_lines_next_data() - the same, passing over blank lines and comments that begin with # or % */
int graph_lines_next_data(struct graph_lines *lines, bool *more, struct graph_error *error);

/**
 * graph_lines_numbers() - the current line as unsigned decimal numbers between blanks
 *
 * Return: how many numbers the line has (@capacity + 1 for any more than @capacity), or -1 when it holds
 * something else or a number beyond 64 bits.
 */
int graph_lines_numbers(const struct graph_lines *lines, uint64_t *numbers, int capacity);

/** graph_lines_fail() - a sentence "<path>, line <number> ("<start of it>"): <why>"; returns -EILSEQ */
int graph_lines_fail(const struct graph_lines *lines, struct graph_error *error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
