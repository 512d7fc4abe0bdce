/* SPDX-License-Identifier: BSD-3-Clause */
/* graph_layout.h: graphs in other layouts than the one lanes read. */
#ifndef SAMPLE_GRAPH_LAYOUT_H
#define SAMPLE_GRAPH_LAYOUT_H

/**
 * graph_layout_take() - a file in another layout than .bel becomes a .bel set, for as long as the program
 * runs
 * @path: .sg, .wsg, .el, .wel or .mtx is replaced by the set's name, in a folder of its own below TMPDIR, or
 * else /tmp; any other name, and NULL, stay as they are
 *
 * The arrays of a .sg file begin at byte 17, which no array of aligned elements can. It says on stderr what
 * it does. The folder goes at exit.
 *
 * Return: 0 or a negative errno with a sentence in @error.
 */
int graph_layout_take(const char **path, char *error);

#endif
