/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

enum { MOST_OPTIONS = 64, FIRST_KEY = 256, HELP_KEY = 255, NAME_COLUMNS = 22 };

int sample_complain(const struct sample_program *program, const char *sentence)
{
	fprintf(stderr, "%s: %s\n", program->name, sentence);
	return 1;
}

int sample_usage(const struct sample_program *program, const char *sentence)
{
	fprintf(stderr, "%s: %s\nTry %s --help.\n", program->name, sentence, program->name);
	return 2;
}

static void print_help(const struct sample_program *program)
{
	puts(program->about);
	for (const struct sample_option *option = program->options; option->name; option++) {
		char name[64];
		const char *help = option->help;

		snprintf(name, sizeof(name), "--%s %s", option->name, option->value ? option->value : "");
		printf("  %-*s", NAME_COLUMNS, name);
		for (const char *end; (end = strchr(help, '\n')) != NULL; help = end + 1)
			printf("%.*s\n%*s", (int)(end - help), help, NAME_COLUMNS + 2, "");
		puts(help);
	}
}

static bool in_bounds(const struct sample_option *option, double value)
{
	return value >= option->least && (option->most <= 0 || value <= option->most);
}

static bool parse_number(const struct sample_option *option, const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && in_bounds(option, (double)*value);
}

static bool parse_bytes(const struct sample_option *option, const char *text, uint64_t *value)
{
	return weir_parse_bytes(text, value) == 0 && in_bounds(option, (double)*value);
}

static bool take_u32(const struct sample_option *option, const char *text)
{
	uint64_t wide;
	bool good = option->kind == SAMPLE_U32 ? parse_number(option, text, &wide)
					       : parse_bytes(option, text, &wide);

	if (!good || wide > UINT32_MAX)
		return false;
	*(uint32_t *)option->to = (uint32_t)wide;
	return true;
}

static bool take_real(const struct sample_option *option, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	*(double *)option->to = value;
	return end != text && !*end && in_bounds(option, value);
}

/* "a,b,c" in place. */
static bool take_list(struct sample_uris *uris, char *list)
{
	uris->count = 0;
	for (char *uri = strtok(list, ","); uri; uri = strtok(NULL, ",")) {
		if (uris->count == SAMPLE_MOST_URIS)
			return false;
		uris->uri[uris->count++] = uri;
	}
	return uris->count > 0;
}

/* Take one option. Return: false if its value is no good. */
static bool take(const struct sample_option *option, char *text)
{
	if (option->given)
		*option->given = true;
	switch (option->kind) {
	case SAMPLE_FLAG: return *(bool *)option->to = true;
	case SAMPLE_U32:
	case SAMPLE_BYTES_U32: return take_u32(option, text);
	case SAMPLE_U64: return parse_number(option, text, option->to);
	case SAMPLE_REAL: return take_real(option, text);
	case SAMPLE_BYTES: return parse_bytes(option, text, option->to);
	case SAMPLE_TEXT: *(const char **)option->to = text; return true;
	case SAMPLE_LIST: return take_list(option->to, text);
	case SAMPLE_POLICY: return weir_policy_of_name(text, option->to) == 0;
	}
	return false;
}

/* Both ends of what is accepted; numbers without a bound of their own have that of their type. */
static void report_bounds(const struct sample_option *option, char *text, size_t bytes)
{
	bool is_real = option->kind == SAMPLE_REAL,
	     is_short = option->kind == SAMPLE_U32 || option->kind == SAMPLE_BYTES_U32;

	if (option->kind == SAMPLE_FLAG || option->kind == SAMPLE_TEXT || option->kind == SAMPLE_LIST)
		return;
	if (is_real && option->most <= 0)
		snprintf(text, bytes, "; it is a number of %.10g at least", option->least);
	else if (is_real)
		snprintf(text, bytes, "; it is a number from %.10g to %.10g", option->least, option->most);
	else
		snprintf(text, bytes, "; it is a whole number%s from %.0f to %llu",
			 option->kind == SAMPLE_U32 || option->kind == SAMPLE_U64
				 ? ""
				 : " of bytes, or one with K, M, G or T,",
			 option->least,
			 option->most > 0 ? (unsigned long long)option->most
			 : is_short       ? UINT32_MAX
					  : UINT64_MAX);
}

static int refuse(const struct sample_program *program, const struct sample_option *option, const char *text)
{
	char sentence[512], bounds[160] = "";

	if (option->kind == SAMPLE_POLICY)
		snprintf(bounds, sizeof(bounds), "; %s", weir_last_error());
	else if (option->hint)
		snprintf(bounds, sizeof(bounds), "; %s", option->hint);
	else
		report_bounds(option, bounds, sizeof(bounds));
	snprintf(sentence, sizeof(sentence), "--%s does not take \"%s\"%s", option->name, text, bounds);
	return sample_usage(program, sentence);
}

static void fill(const struct sample_program *program, struct option *rows)
{
	unsigned count = 0;

	for (; program->options[count].name && count < MOST_OPTIONS; count++)
		rows[count] =
			(struct option){ program->options[count].name,
					 program->options[count].kind == SAMPLE_FLAG ? no_argument
										     : required_argument,
					 NULL, FIRST_KEY + (int)count };
	rows[count++] = (struct option){ "help", no_argument, NULL, HELP_KEY };
	rows[count] = (struct option){ NULL, 0, NULL, 0 };
}

static int take_operand(const struct sample_program *program, int given, char **argv)
{
	char sentence[512];

	if (given == 0)
		return -1;
	if (given == 1 && program->to) {
		*program->to = argv[0];
		return -1;
	}
	if (program->to)
		snprintf(sentence, sizeof(sentence), "give %s", program->operand);
	else
		snprintf(sentence, sizeof(sentence), "\"%s\" is one argument too many", argv[0]);
	return sample_usage(program, sentence);
}

int sample_parse(const struct sample_program *program, int argc, char **argv)
{
	struct option rows[MOST_OPTIONS + 2];
	char sentence[512];
	int key;

	fill(program, rows);
	opterr = 0;
	while ((key = getopt_long(argc, argv, "", rows, NULL)) != -1) {
		if (key == HELP_KEY) {
			print_help(program);
			return 0;
		}
		if (key < FIRST_KEY) {
			snprintf(sentence, sizeof(sentence), "unknown option or missing value: %s",
				 argv[optind - 1]);
			return sample_usage(program, sentence);
		}
		if (!take(&program->options[key - FIRST_KEY], optarg))
			return refuse(program, &program->options[key - FIRST_KEY], optarg);
	}
	return take_operand(program, argc - optind, argv + optind);
}
