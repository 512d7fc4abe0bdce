/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "stripe.h"

static const char name[] = "stripe";

static const char help[] =
	"usage: weir-graph stripe SET.bel --over F0 F1 [F2 ...] [options]\n"
	"\n"
	"Splits SET.bel.dst, header and all, round-robin into the given files: unit k goes to\n"
	"file k mod n, at byte (k / n) * unit. The last unit is padded with zeros.\n"
	"\n"
	"  --over F0 F1 ...  2 to 64 files to write\n"
	"  --unit BYTES      a multiple of 512 up to 256M, with K or M; default 65536\n"
	"  --quiet           show no progress\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage.\n";

enum { OVER = 256, UNIT, QUIET };

static const struct option long_options[] = {
	{ "over", no_argument, NULL, OVER },
	{ "unit", required_argument, NULL, UNIT },
	{ "quiet", no_argument, NULL, QUIET },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	char *set;
	char *files[GRAPH_STRIPE_FILES_MAX + 1];
	unsigned count;
	uint64_t unit_bytes;
	bool over; /* names belong to --over until the next option */
	bool quiet;
	bool help;
};

static int take_name(char *text, struct arguments *arguments)
{
	if (arguments->over) {
		if (arguments->count <= GRAPH_STRIPE_FILES_MAX)
			arguments->files[arguments->count++] = text;
		return COMMAND_OK;
	}
	if (arguments->set)
		return command_usage(
			name, "%s is one argument too many: name the files to write after --over", text);
	arguments->set = text;
	return COMMAND_OK;
}

static int take_option(int option, char **argv, struct arguments *arguments)
{
	if (option == 1)
		return take_name(optarg, arguments);
	arguments->over = option == OVER;
	switch (option) {
	case OVER: return COMMAND_OK;
	case QUIET: arguments->quiet = true; return COMMAND_OK;
	case 'h': arguments->help = true; return COMMAND_OK;
	case UNIT:
		return command_bytes(name, "--unit", optarg, 512, &arguments->unit_bytes) ? COMMAND_OK
											  : COMMAND_USAGE;
	default: return command_bad_option(name, option, argv);
	}
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
	struct graph_error error;
	int option, status = COMMAND_OK;

	/* The leading - keeps names in order, so that those after --over can be told from the others. */
	while (!status && !arguments->help &&
	       (option = getopt_long(argc, argv, "-:h", long_options, NULL)) != -1)
		status = take_option(option, argv, arguments);
	for (; !status && !arguments->help && optind < argc; optind++) /* names after -- */
		status = take_name(argv[optind], arguments);
	if (status || arguments->help)
		return status;
	if (!arguments->set)
		return command_usage(name, "the set is missing: give SET.bel before --over");
	if (graph_stripe_check(arguments->files, arguments->count, arguments->unit_bytes, &error))
		return command_usage(name, "%s", error.text);
	return COMMAND_OK;
}

int command_stripe(int argc, char **argv)
{
	struct arguments arguments = { .unit_bytes = 65536 };
	struct graph_progress progress;
	struct graph_error error;
	int status = parse(argc, argv, &arguments);

	if (status)
		return status;
	if (arguments.help)
		return command_help(help);
	graph_progress_init(&progress, arguments.quiet ? NULL : stderr, stderr);
	status = graph_stripe(arguments.set, arguments.files, arguments.count, arguments.unit_bytes,
			      &progress, &error);
	graph_progress_close(&progress);
	return status ? command_failed(error.text) : COMMAND_OK;
}
