/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "number.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

int command_usage(const char *command, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "weir-graph %s: ", command);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "; see weir-graph %s --help\n", command);
	return COMMAND_USAGE;
}

int command_bad_option(const char *command, int found, char **argv)
{
	char letter[] = { '-', (char)optopt, '\0' };
	/* getopt names a short option by its letter only, and a long one by its place only. */
	const char *option =
		optopt > 0 && optopt < 256 && strncmp(argv[optind - 1], "--", 2) ? letter : argv[optind - 1];

	if (found == ':')
		return command_usage(command, "%s needs a value", option);
	return command_usage(command, "%s is no option of this command", option);
}

int command_failed(const char *text)
{
	fprintf(stderr, "weir-graph: %s\n", text);
	return COMMAND_FAILED;
}

int command_flush(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return COMMAND_OK;
	fprintf(stderr, "weir-graph: cannot write to standard output: %s; check where it goes\n",
		strerror(errno));
	return COMMAND_FAILED;
}

int command_help(const char *text)
{
	fputs(text, stdout);
	return command_flush();
}

bool command_number(const char *command, const char *name, const char *text, uint64_t *value)
{
	if (graph_parse_u64(text, value))
		return true;
	command_usage(command, "%s %s is not an unsigned decimal number", name, text);
	return false;
}

bool command_bytes(const char *command, const char *name, const char *text, uint64_t least, uint64_t *value)
{
	if (!graph_parse_bytes(text, value)) {
		command_usage(command, "%s %s is not a size: give bytes, or a number with K, M, G or T", name,
			      text);
		return false;
	}
	if (*value >= least)
		return true;
	command_usage(command, "%s %s is too small: give %llu bytes or more", name, text,
		      (unsigned long long)least);
	return false;
}
