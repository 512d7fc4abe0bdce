/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of weir-graph: each parses its arguments, calls the library and prints the sentence. */
#ifndef WEIR_TOOLS_GRAPH_COMMAND_H
#define WEIR_TOOLS_GRAPH_COMMAND_H

#include "error.h"
#include "progress.h"
#include "tool_options.h"

/** enum command_status - exit statuses */
enum command_status { COMMAND_OK = 0, COMMAND_FAILED = 1, COMMAND_USAGE = 2 };

int command_generate(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_info(int argc, char **argv);
int command_stripe(int argc, char **argv);

#endif
