/* SPDX-License-Identifier: BSD-3-Clause */
#include "tool_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

#include "../../backend/error.h"

enum {
	MOST_OPTIONS = 64,
	WORD_KEY = 1,
	VERSION_KEY = 256,
	FIRST_KEY = 257,
	NAME_COLUMNS = 22,
	SENTENCE_BYTES = 1024
};

/* The name of the program whose command line was parsed last. */
static const char *current = "weir";

/* Of "weir-graph convert" the tool is the first word. One call of the system: lines of several processes,
 * such as the ranks of a job, do not mix. */
static void print_sentence(const char *format, va_list arguments)
{
	char sentence[SENTENCE_BYTES];

	vsnprintf(sentence, sizeof(sentence), format, arguments);
	fprintf(stderr, "%.*s: %s\n", (int)strcspn(current, " "), current, sentence);
}

int tool_complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_sentence(format, arguments);
	va_end(arguments);
	return 1;
}

int tool_failed(void)
{
	return tool_complain("%s", weir_last_error());
}

/* What weir_last_error() says is wrong with the command line. */
static int usage(void)
{
	fprintf(stderr, "%.*s: %s; see %s --help\n", (int)strcspn(current, " "), current, weir_last_error(),
		current);
	return 2;
}

int tool_usage(const char *format, ...)
{
	char sentence[SENTENCE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	weir_fail(EINVAL, "%s", sentence);
	return usage();
}

/* A name and its help, whose further lines are indented. */
static void print_row(const char *name, const char *help)
{
	printf("  %-*s", NAME_COLUMNS, name);
	if (strlen(name) >= NAME_COLUMNS)
		printf("\n%*s", NAME_COLUMNS + 2, "");
	for (const char *end; (end = strchr(help, '\n')) != NULL; help = end + 1)
		printf("%.*s\n%*s", (int)(end - help), help, NAME_COLUMNS + 2, "");
	puts(help);
}

/* -o OUT, which programs of before have; it is not in the help. One letter with a help is a name: --x. */
static bool is_letter(const struct tool_option *option)
{
	return option->name[0] && !option->name[1] && !option->help;
}

static void print_option(const struct tool_option *option)
{
	char name[64];

	snprintf(name, sizeof(name), "--%s%s%s", option->name, option->value ? " " : "",
		 option->value ? option->value : "");
	if (!*option->name)
		printf("\n%s\n", option->help);
	else if (!is_letter(option))
		print_row(name, option->help);
}

static int print_help(const struct tool_program *program)
{
	puts(program->about);
	for (const struct tool_option *option = program->options; option->name; option++)
		print_option(option);
	print_row("--help", "print this");
	print_row("--version", "print the version");
	if (program->notes)
		printf("\n%s\n", program->notes);
	return 0;
}

static int print_version(const struct tool_program *program)
{
	printf("%s %s\n", program->name, weir_version());
	return 0;
}

static bool is_in_bounds(const struct tool_option *option, double value)
{
	return value >= option->least && (option->most <= 0 || value <= option->most);
}

static bool parse_number(const struct tool_option *option, const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && is_in_bounds(option, (double)*value);
}

static bool parse_bytes(const struct tool_option *option, const char *text, uint64_t *value)
{
	return weir_parse_bytes(text, value) == 0 && is_in_bounds(option, (double)*value);
}

static bool take_u32(const struct tool_option *option, const char *text)
{
	uint64_t wide;
	bool good = option->kind == TOOL_U32 ? parse_number(option, text, &wide)
					     : parse_bytes(option, text, &wide);

	if (!good || wide > UINT32_MAX)
		return false;
	*(uint32_t *)option->to = (uint32_t)wide;
	return true;
}

static bool take_real(const struct tool_option *option, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	*(double *)option->to = value;
	return end != text && !*end && is_in_bounds(option, value);
}

static bool take_one(struct tool_names *names, const char *name)
{
	if (!*name || names->count == TOOL_MOST_NAMES)
		return false;
	names->item[names->count++] = name;
	return true;
}

/* "a,b,c" in place. */
static bool take_list(struct tool_names *names, char *list)
{
	names->count = 0;
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ","))
		if (!take_one(names, name))
			return false;
	return names->count > 0;
}

static bool take_word(const struct tool_word *word, const char *text)
{
	for (uint32_t i = 0; word->words[i]; i++)
		if (*text && !strcmp(word->words[i], text)) {
			*word->to = i;
			return true;
		}
	return false;
}

static bool take_text(const char **to, const char *text)
{
	*to = text;
	return *text;
}

static bool take_parsed(const struct tool_parser *parser, const char *text)
{
	return parser->parse(parser->to, text) == 0;
}

/* Return: false if its value is no good. */
static bool take(const struct tool_option *option, char *text)
{
	if (option->given)
		*option->given = true;
	switch (option->kind) {
	case TOOL_FLAG: return *(bool *)option->to = true;
	case TOOL_U32:
	case TOOL_BYTES_U32: return take_u32(option, text);
	case TOOL_U64: return parse_number(option, text, option->to);
	case TOOL_REAL: return take_real(option, text);
	case TOOL_BYTES: return parse_bytes(option, text, option->to);
	case TOOL_TEXT: return take_text(option->to, text);
	case TOOL_LIST: return take_list(option->to, text);
	case TOOL_EACH: return take_one(option->to, text);
	case TOOL_POLICY: return weir_policy_of_name(text, option->to) == 0;
	case TOOL_WORD: return take_word(option->to, text);
	case TOOL_PARSED: return take_parsed(option->to, text);
	}
	return false;
}

static bool is_number(enum tool_kind kind)
{
	return kind == TOOL_U32 || kind == TOOL_U64 || kind == TOOL_REAL || kind == TOOL_BYTES ||
	       kind == TOOL_BYTES_U32;
}

/* Both ends of what is accepted; numbers without a bound of their own have that of their type. */
static void report_bounds(const struct tool_option *option, char *text, size_t bytes)
{
	bool is_short = option->kind == TOOL_U32 || option->kind == TOOL_BYTES_U32,
	     is_plain = option->kind == TOOL_U32 || option->kind == TOOL_U64;
	unsigned long long most = option->most > 0 ? (unsigned long long)option->most
				  : is_short       ? UINT32_MAX
						   : UINT64_MAX;

	if (option->kind == TOOL_REAL && option->most <= 0)
		snprintf(text, bytes, "; it is a number of %.10g at least", option->least);
	else if (option->kind == TOOL_REAL)
		snprintf(text, bytes, "; it is a number from %.10g to %.10g", option->least, option->most);
	else
		snprintf(text, bytes, "; it is a whole number%s from %.0f to %llu",
			 is_plain ? "" : " of bytes, or one with K, M, G or T,", option->least, most);
}

static void report_words(const struct tool_word *word, char *text, size_t bytes)
{
	size_t used = (size_t)snprintf(text, bytes, "; it is one of");

	for (uint32_t i = 0; word->words[i]; i++)
		if (*word->words[i] && used < bytes)
			used += (size_t)snprintf(text + used, bytes - used, " %s", word->words[i]);
}

static int refuse(const struct tool_option *option, const char *text)
{
	char why[256] = "";

	if (option->kind == TOOL_PARSED && !option->hint)
		return -EINVAL;
	if (option->kind == TOOL_POLICY)
		snprintf(why, sizeof(why), "; %s", weir_last_error());
	else if (option->hint)
		snprintf(why, sizeof(why), "; %s", option->hint);
	else if (option->kind == TOOL_WORD)
		report_words(option->to, why, sizeof(why));
	else if (is_number(option->kind))
		report_bounds(option, why, sizeof(why));
	return weir_fail(EINVAL, "--%s does not take \"%s\"%s", option->name, text, why);
}

/* Take one option. Return: 0, or a negative errno with a sentence. */
static int accept(const struct tool_option *option, char *text)
{
	return take(option, text) ? 0 : refuse(option, text);
}

/* What getopt_long() wants: @rows of long names, and @letters of short ones. */
static void fill(const struct tool_program *program, struct option *rows, char *letters)
{
	const struct tool_option *options = program->options;

	letters += sprintf(letters, "%s:h", program->word ? "-" : "");
	for (int i = 0; options[i].name && i < MOST_OPTIONS; i++) {
		bool is_flag = options[i].kind == TOOL_FLAG;

		if (is_letter(&options[i]))
			letters += sprintf(letters, "%c%s", options[i].name[0], is_flag ? "" : ":");
		else if (*options[i].name)
			*rows++ = (struct option){ options[i].name, is_flag ? no_argument : required_argument,
						   NULL, FIRST_KEY + i };
	}
	*rows++ = (struct option){ "help", no_argument, NULL, 'h' };
	*rows++ = (struct option){ "version", no_argument, NULL, VERSION_KEY };
	*rows = (struct option){ NULL, 0, NULL, 0 };
}

static const struct tool_option *option_of(const struct tool_program *program, int key)
{
	const struct tool_option *option = program->options;

	if (key >= FIRST_KEY)
		return &option[key - FIRST_KEY];
	while (!is_letter(option) || option->name[0] != key)
		option++;
	return option;
}

/* What getopt_long() did not accept: of a short option it says the letter, of a long one it may be in @word.
 */
static int refuse_word(int key, const char *word)
{
	char letter[] = { '-', (char)optopt, '\0' };

	if (optopt > 0 && optopt < VERSION_KEY && optopt != 'h')
		word = letter;
	if (key == ':')
		return weir_fail(EINVAL, "%s needs a value", word);
	if (optopt >= VERSION_KEY || optopt == 'h')
		return weir_fail(EINVAL, "%s: this option takes no value", word);
	return weir_fail(EINVAL, "%s is no option", word);
}

static int take_operand(const struct tool_program *program, int given, char **argv)
{
	if (program->all)
		*program->all = argv;
	if (given == 0 || program->all)
		return 0;
	if (given == 1 && program->to) {
		*program->to = argv[0];
		return 0;
	}
	if (program->to)
		return weir_fail(EINVAL, "give %s", program->operand);
	return weir_fail(EINVAL, "\"%s\" is one argument too many", argv[0]);
}

/* At exit: who reads what a program printed must not take a part of it for all. */
static void check_output(void)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		_exit(tool_complain("cannot write to standard output: %s; check where it goes",
				    strerror(errno)));
}

int tool_parse(const struct tool_program *program, int argc, char **argv)
{
	static bool checked;
	struct option rows[MOST_OPTIONS + 3];
	char letters[2 * MOST_OPTIONS + 4];
	const struct tool_option *latest = NULL;
	int key, error = 0;

	if (!checked)
		checked = atexit(check_output) == 0;
	fill(program, rows, letters);
	current = program->name;
	opterr = 0;
	optind = 0; /* from the front, though another command line was parsed before */
	while (!error && (key = getopt_long(argc, argv, letters, rows, NULL)) != -1) {
		if (key == 'h')
			return print_help(program);
		if (key == VERSION_KEY)
			return print_version(program);
		if (key == '?' || key == ':')
			error = refuse_word(key, argv[optind - 1]);
		else if (key == WORD_KEY)
			error = program->word(optarg, latest);
		else
			error = accept(latest = option_of(program, key), optarg);
	}
	for (; program->word && !error && optind < argc; optind++) /* words after -- */
		error = program->word(argv[optind], latest);
	if (!error)
		error = take_operand(program, argc - optind, argv + optind);
	return error ? usage() : -1;
}

int tool_set(const struct tool_program *program, const char *name, char *value)
{
	const struct tool_option *option = program->options;

	while (option->name && strcmp(option->name, name) != 0)
		option++;
	if (!option->name || !*name)
		return weir_fail(EINVAL, "--%s is no option", name);
	return accept(option, value);
}

static int refuse_command(const struct tool_command *commands, const char *word)
{
	char names[256] = "";
	size_t used = 0;

	for (; commands->name && used < sizeof(names); commands++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
					 !used              ? ""
					 : commands[1].name ? ", "
							    : " or ",
					 commands->name);
	if (word)
		return tool_usage("there is no command %s: give %s", word, names);
	return tool_usage("a command is missing: give %s", names);
}

int tool_run(const struct tool_program *program, const struct tool_command *commands)
{
	const struct tool_command *command = commands;
	char **words = *program->all;
	int count = 0;

	if (!*words)
		return refuse_command(commands, NULL);
	while (command->name && strcmp(command->name, words[0]) != 0)
		command++;
	if (!command->name)
		return refuse_command(commands, words[0]);
	words++;
	while (words[count])
		count++;
	if (count && !command->operands)
		return tool_usage("%s takes nothing more: \"%s\"", command->name, words[0]);
	if (count < command->least || (command->most && count > command->most))
		return tool_usage("give %s %s", command->name, command->operands);
	return command->run(words);
}
