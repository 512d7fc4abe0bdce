/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of one file: what is read must not be what is written, nor written twice. */
#ifndef WEIR_TOOLS_GRAPH_APART_H
#define WEIR_TOOLS_GRAPH_APART_H

#include <stdbool.h>

#include "error.h"

/** graph_same_file() - both names lead to one file, or to a name in one directory where none is yet */
bool graph_same_file(const char *a, const char *b);

/**
 * graph_check_apart() - no file of graph @in is a file of graph @out
 *
 * A .bel name stands for the files of its set. Files are compared, not names: links of both kinds are
 * followed.
 *
 * Return: 0; -EINVAL with a sentence.
 */
int graph_check_apart(const char *in, const char *out, struct graph_error *error);

#endif
