/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "info.h"

static const char name[] = "info";

static const char help[] =
	"usage: weir-graph info FILE [options]\n"
	"\n"
	"Tells what a graph file is: format, vertices, edges, degrees, weights, size. Without\n"
	"--check only headers and sizes are read and held against each other.\n"
	"\n"
	"  --check         read everything: offsets monotone, neighbours in range, degrees,\n"
	"                  direction, self loops, repeated edges. Text is sorted for this in\n"
	"                  a temporary file in $TMPDIR or /tmp\n"
	"  --json          print one JSON object; what is not known is null\n"
	"  --memory BYTES  budget for sorting text, with K, M, G or T; default 512M\n"
	"  --quiet         show no progress\n"
	"\n"
	"Exit status: 0 good, 1 damaged or unreadable, 2 wrong usage.\n";

enum { CHECK = 256, JSON, MEMORY, QUIET };

static const struct option long_options[] = {
	{ "check", no_argument, NULL, CHECK },
	{ "json", no_argument, NULL, JSON },
	{ "memory", required_argument, NULL, MEMORY },
	{ "quiet", no_argument, NULL, QUIET },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	struct graph_info_options options;
	bool json;
	bool quiet;
	bool help;
};

static int take_option(int option, char **argv, struct arguments *arguments)
{
	switch (option) {
	case CHECK: arguments->options.check = true; return COMMAND_OK;
	case JSON: arguments->json = true; return COMMAND_OK;
	case QUIET: arguments->quiet = true; return COMMAND_OK;
	case 'h': arguments->help = true; return COMMAND_OK;
	case MEMORY:
		return command_bytes(name, "--memory", optarg, GRAPH_MEMORY_MIN_BYTES,
				     &arguments->options.memory_bytes)
			       ? COMMAND_OK
			       : COMMAND_USAGE;
	default: return command_bad_option(name, option, argv);
	}
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
	int option, status = COMMAND_OK;
	enum graph_format format;
	struct graph_error error;

	while (!status && !arguments->help &&
	       (option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1)
		status = take_option(option, argv, arguments);
	if (status || arguments->help)
		return status;
	if (argc - optind != 1)
		return command_usage(name, "give the name of one graph file (%d given)", argc - optind);
	return graph_format_of(argv[optind], &format, &error) ? command_usage(name, "%s", error.text)
							      : COMMAND_OK;
}

/* What is known is shown even when the check found damage; the sentence follows on stderr. */
static int show(const char *path, const struct arguments *arguments, const struct graph_info *info,
		int failed, struct graph_error *error)
{
	struct graph_error printing;
	int status = 0;

	if (arguments->json)
		status = graph_info_print_json(stdout, path, info, failed ? error->text : NULL, &printing);
	else
		graph_info_print(stdout, path, info);
	if (status)
		return command_failed(printing.text);
	status = command_flush();
	return failed ? command_failed(error->text) : status;
}

int command_info(int argc, char **argv)
{
	struct arguments arguments = { .options = { .memory_bytes = GRAPH_MEMORY_DEFAULT_BYTES } };
	struct graph_progress progress;
	struct graph_info info;
	struct graph_error error;
	bool opened;
	int status = parse(argc, argv, &arguments);

	if (status)
		return status;
	if (arguments.help)
		return command_help(help);
	graph_progress_init(&progress, arguments.quiet ? NULL : stderr, stderr);
	arguments.options.progress = &progress;
	status = graph_info_read(argv[optind], &arguments.options, &info, &opened, &error);
	graph_progress_close(&progress);
	return opened ? show(argv[optind], &arguments, &info, status, &error) : command_failed(error.text);
}
