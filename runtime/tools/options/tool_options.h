/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_options.h: the command line of a tool or a sample, as a table.
 *
 * Owns: parsing, --help, --version, commands, and the sentences about wrong usage. Knows nothing of devices.
 */
#ifndef WEIR_TOOL_OPTIONS_H
#define WEIR_TOOL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { TOOL_MOST_NAMES = 64 };

/** struct tool_names - values of one option, in the order given */
struct tool_names {
	const char *item[TOOL_MOST_NAMES];
	unsigned count;
};

/* What an option's value is, and what @to points at. */
enum tool_kind {
	TOOL_FLAG,      /* bool */
	TOOL_U32,       /* uint32_t */
	TOOL_U64,       /* uint64_t */
	TOOL_REAL,      /* double */
	TOOL_BYTES,     /* uint64_t, "64M" */
	TOOL_BYTES_U32, /* uint32_t, "4K" */
	TOOL_TEXT,      /* const char * */
	TOOL_LIST,      /* struct tool_names, "a,b,c" */
	TOOL_EACH,      /* struct tool_names, one more each time the option is given */
	TOOL_POLICY,    /* enum weir_policy, by name */
	TOOL_WORD,      /* struct tool_word, one of several words */
	TOOL_PARSED,    /* struct tool_parser, anything else */
};

/**
 * struct tool_word - the value of a TOOL_WORD
 * @words: what it may be, ended by NULL; an empty word stands for no word and is never accepted
 * @to: receives the index of the word
 */
struct tool_word {
	const char *const *words;
	uint32_t *to;
};

/**
 * struct tool_parser - the value of a TOOL_PARSED
 * @parse: takes @text into @to; returns 0, or not 0: with a whole sentence in weir_last_error(),
 *          unless the option has a hint
 * @to: what @parse is called with
 */
struct tool_parser {
	int (*parse)(void *to, const char *text);
	void *to;
};

/**
 * struct tool_option - one option, or with an empty @name a heading of --help, which is @help
 * @name: without the dashes; of one letter: a short option, which --help does not list
 * @value: what --help calls its value; NULL for a flag
 * @kind: what it is
 * @to: where it goes
 * @least, @most: bounds of a number; @most 0: no bound
 * @help: a line, or several with "\n" between them
 * @hint: added to the complaint about a value that is not accepted; NULL: the bounds are added
 * @given: NULL, or a bool that becomes true when the option is there
 */
struct tool_option {
	const char *name;
	const char *value;
	enum tool_kind kind;
	void *to;
	double least, most;
	const char *help;
	const char *hint;
	bool *given;
};

/**
 * struct tool_program - a tool or sample as its command line sees it
 * @name: "weir-bfs"
 * @about: usage and what it does: what --help begins with
 * @options: the table, ended by a row without name
 * @operand: what is given without an option, for complaints ("one graph"); NULL: nothing may be
 * @to: receives it, or stays NULL
 * @all: if not NULL, receives all that is given without an option, ended by NULL
 * @word: if not NULL, takes each word that is no option, and the latest option before it, or NULL; 0, or a
 *        negative errno with a sentence
 * @notes: what --help ends with, or NULL
 */
struct tool_program {
	const char *name;
	const char *about;
	const struct tool_option *options;
	const char *operand;
	const char **to;
	char ***all;
	int (*word)(char *text, const struct tool_option *latest);
	const char *notes;
};

/**
 * tool_parse() - take a command line apart
 *
 * From then on a program whose standard output could not be written ends with exit status 1 and a sentence.
 *
 * Return: -1 to go on, else the exit status.
 */
int tool_parse(const struct tool_program *program, int argc, char **argv);

/**
 * tool_set() - one option by its name, as if the command line had it
 *
 * Return: 0, or a negative errno with a sentence in weir_last_error().
 */
int tool_set(const struct tool_program *program, const char *name, char *value);

/**
 * struct tool_command - one of several commands of a tool
 * @name: the first word of the command line that is no option
 * @operands: what follows, for complaints: "NAME SIZE"; NULL: nothing may
 * @least, @most: how many words that is; @most 0: no limit
 * @run: carries the command out; its operands end with NULL; returns the exit status
 */
struct tool_command {
	const char *name;
	const char *operands;
	int least, most;
	int (*run)(char **operands);
};

/**
 * tool_run() - carry out the command that the command line names
 * @program: whose @all has the words
 * @commands: the table, ended by a row without name
 *
 * Return: the exit status.
 */
int tool_run(const struct tool_program *program, const struct tool_command *commands);

/** tool_usage() - print a sentence about wrong usage, as the tool whose command line was parsed last; returns
 * exit status 2
 */
int tool_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** tool_complain() - print why the program failed, likewise; returns exit status 1 */
int tool_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** tool_failed() - print weir_last_error(); returns exit status 1 */
int tool_failed(void);

#endif
