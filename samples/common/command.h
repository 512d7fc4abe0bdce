/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * command.h: the command line of a sample, as a table.
 *
 * Owns: parsing, --help, and the sentences about wrong usage. Knows nothing of devices.
 */
#ifndef SAMPLE_COMMAND_H
#define SAMPLE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

enum { SAMPLE_ERROR_BYTES = 1024, SAMPLE_MOST_URIS = 64 };

/** struct sample_uris - storages, in the order given */
struct sample_uris {
	const char *uri[SAMPLE_MOST_URIS];
	unsigned count;
};

/* What an option's value is, and what @to points at. */
enum sample_kind {
	SAMPLE_FLAG,      /* bool */
	SAMPLE_U32,       /* uint32_t */
	SAMPLE_U64,       /* uint64_t */
	SAMPLE_REAL,      /* double */
	SAMPLE_BYTES,     /* uint64_t, "64M" */
	SAMPLE_BYTES_U32, /* uint32_t, "4K" */
	SAMPLE_TEXT,      /* const char * */
	SAMPLE_LIST,      /* struct sample_uris, "a,b,c" */
	SAMPLE_POLICY,    /* enum weir_policy, by name */
};

/**
 * struct sample_option - one option
 * @name: without the dashes
 * @value: what --help calls its value; NULL for a flag
 * @kind: what it is
 * @to: where it goes
 * @least, @most: bounds of a number; @most 0: no bound
 * @help: a line, or several with "\n" between them
 * @hint: added to the complaint about a value that is no good; NULL: the bounds are told
 * @given: NULL, or a bool that becomes true when the option is there
 */
struct sample_option {
	const char *name;
	const char *value;
	enum sample_kind kind;
	void *to;
	double least, most;
	const char *help;
	const char *hint;
	bool *given;
};

/**
 * struct sample_program - a sample as its command line sees it
 * @name: "weir-bfs"
 * @about: usage and what it does: what --help begins with
 * @options: the table, ended by a row without name
 * @operand: what is given without an option, for complaints ("one graph"); NULL: nothing may be
 * @to: receives it, or stays NULL
 */
struct sample_program {
	const char *name;
	const char *about;
	const struct sample_option *options;
	const char *operand;
	const char **to;
};

/**
 * sample_parse() - take a command line apart
 *
 * Return: -1 to go on, else the exit status.
 */
int sample_parse(const struct sample_program *program, int argc, char **argv);

/** sample_usage() - complain about usage; returns exit status 2 */
int sample_usage(const struct sample_program *program, const char *sentence);

/** sample_complain() - say why the sample failed; returns exit status 1 */
int sample_complain(const struct sample_program *program, const char *sentence);

#endif
