/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of weir-graph: each parses its arguments, calls the library and prints the sentence. */
#ifndef WEIR_TOOLS_GRAPH_COMMAND_H
#define WEIR_TOOLS_GRAPH_COMMAND_H

#include "error.h"
#include "progress.h"

#include <getopt.h>

/** enum command_status - exit statuses */
enum command_status { COMMAND_OK = 0, COMMAND_FAILED = 1, COMMAND_USAGE = 2 };

int command_generate(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_info(int argc, char **argv);
int command_stripe(int argc, char **argv);

/** command_usage() - "weir-graph <command>: <why>; see weir-graph <command> --help"; returns COMMAND_USAGE */
int command_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** command_bad_option() - the sentence for what getopt_long() did not accept: it returned ? or : */
int command_bad_option(const char *command, int found, char **argv);

/** command_failed() - print a library's sentence; returns COMMAND_FAILED */
int command_failed(const char *text);

/** command_help() - print a help text; returns COMMAND_OK, or COMMAND_FAILED when that was not possible */
int command_help(const char *text);

/** command_flush() - everything printed arrived; returns COMMAND_OK or COMMAND_FAILED */
int command_flush(void);

/** command_number() - the u64 of option @name; false after printing a sentence */
bool command_number(const char *command, const char *name, const char *text, uint64_t *value);

/** command_bytes() - a size with an optional suffix, at least @least; false after printing a sentence */
bool command_bytes(const char *command, const char *name, const char *text, uint64_t least, uint64_t *value);

#endif
