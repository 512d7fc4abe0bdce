/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "generate.h"

#include <errno.h>
#include <string.h>

static const char name[] = "generate";

static const char help[] =
	"usage: weir-graph generate kron|urand --scale S [options] -o OUT\n"
	"\n"
	"Writes a random undirected graph of 2^S vertices with the parameters of the GAP\n"
	"benchmark suite. Each edge is stored both ways; self loops and repeated edges are\n"
	"removed; neighbour lists ascend. The same kind, scale, degree and seed give the\n"
	"same bytes on any machine, with any number of threads and any memory budget.\n"
	"\n"
	"  kron            Kronecker, A, B, C = 0.57, 0.19, 0.19, vertex ids permuted\n"
	"  urand           both ends of each edge uniform\n"
	"  --scale S       1 to 32\n"
	"  --degree D      D * 2^S edges are drawn; default 16\n"
	"  --seed N        default 1\n"
	"  --weights       also write weights, 1 to 255, the same both ways\n"
	"                  (always for .wsg and .wel; .sg and .el cannot hold them)\n"
	"  --memory BYTES  budget, with K, M, G or T; default 512M. Sorting goes through\n"
	"                  a temporary file next to OUT\n"
	"  --threads N     default: one per CPU available\n"
	"  -o, --output OUT  .bel .sg .wsg .el .wel or .mtx; OUT.bel stands for the files\n"
	"                  OUT.bel.col, OUT.bel.dst and, with weights, OUT.bel.val\n"
	"  --quiet         show no progress\n"
	"\n"
	"Nothing appears under the name OUT before it is complete.\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage.\n";

enum { SCALE = 256, DEGREE, SEED, WEIGHTS, MEMORY, THREADS, QUIET };

static const struct option long_options[] = {
	{ "scale", required_argument, NULL, SCALE },
	{ "degree", required_argument, NULL, DEGREE },
	{ "seed", required_argument, NULL, SEED },
	{ "weights", no_argument, NULL, WEIGHTS },
	{ "memory", required_argument, NULL, MEMORY },
	{ "threads", required_argument, NULL, THREADS },
	{ "output", required_argument, NULL, 'o' },
	{ "quiet", no_argument, NULL, QUIET },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	struct graph_generate_options options;
	const char *kind;
	const char *out;
	bool scale_given;
	bool help;
};

/* Numbers that do not fit an unsigned are out of any range: let the range check say so. */
static unsigned clamp(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (unsigned)value;
}

static bool take_number(int option, const char *text, struct arguments *arguments)
{
	struct graph_generate_options *options = &arguments->options;
	const char *label = option == SCALE    ? "--scale"
			    : option == DEGREE ? "--degree"
			    : option == SEED   ? "--seed"
					       : "--threads";
	uint64_t value;

	if (!command_number(name, label, text, &value))
		return false;
	if ((option == DEGREE || option == THREADS) && !value) {
		command_usage(name, "%s 0 is out of range: give 1 or more", label);
		return false;
	}
	if (option == SCALE) {
		options->scale = clamp(value);
		arguments->scale_given = true;
	} else if (option == DEGREE) {
		options->degree = clamp(value);
	} else if (option == THREADS) {
		options->threads = clamp(value);
	} else {
		options->seed = value;
	}
	return true;
}

/* Returns COMMAND_OK, or COMMAND_USAGE after the sentence. */
static int take_option(int option, char **argv, struct arguments *arguments)
{
	struct graph_generate_options *options = &arguments->options;

	switch (option) {
	case 'o': arguments->out = optarg; return COMMAND_OK;
	case 'h': arguments->help = true; return COMMAND_OK;
	case WEIGHTS: options->weighted = true; return COMMAND_OK;
	case QUIET: options->report = NULL; return COMMAND_OK;
	case MEMORY:
		return command_bytes(name, "--memory", optarg, GRAPH_MEMORY_MIN_BYTES, &options->memory_bytes)
			       ? COMMAND_OK
			       : COMMAND_USAGE;
	case SCALE:
	case DEGREE:
	case SEED:
	case THREADS: return take_number(option, optarg, arguments) ? COMMAND_OK : COMMAND_USAGE;
	default: return command_bad_option(name, option, argv);
	}
}

static int take_kind(int argc, char **argv, struct arguments *arguments)
{
	if (optind == argc)
		return command_usage(name, "the kind of graph is missing: give kron or urand");
	if (argc - optind > 1)
		return command_usage(name, "%s is one argument too many", argv[optind + 1]);
	arguments->kind = argv[optind];
	if (!strcmp(arguments->kind, "kron"))
		arguments->options.kind = GRAPH_KRONECKER;
	else if (!strcmp(arguments->kind, "urand"))
		arguments->options.kind = GRAPH_UNIFORM;
	else
		return command_usage(name, "%s is no kind of graph: give kron or urand", arguments->kind);
	if (!arguments->scale_given)
		return command_usage(name, "--scale is missing: give 1 to %u, for 2^scale vertices",
				     GRAPH_SCALE_MAX);
	if (!arguments->out)
		return command_usage(name, "-o is missing: give the name of the output");
	return COMMAND_OK;
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
	int option, status = COMMAND_OK;

	while (!status && !arguments->help &&
	       (option = getopt_long(argc, argv, ":o:h", long_options, NULL)) != -1)
		status = take_option(option, argv, arguments);
	if (status || arguments->help)
		return status;
	return take_kind(argc, argv, arguments);
}

int command_generate(int argc, char **argv)
{
	struct arguments arguments = {
		.options = { .size = sizeof(arguments.options), .seed = 1, .report = stderr }
	};
	struct graph_generate_options settled;
	struct graph_error error;
	int status = parse(argc, argv, &arguments);

	if (status)
		return status;
	if (arguments.help)
		return command_help(help);
	if (graph_generate_settle(&arguments.options, arguments.out, &settled, &error))
		return command_usage(name, "%s", error.text);
	if (graph_generate(&arguments.options, arguments.out, error.text, sizeof(error.text)))
		return command_failed(error.text);
	return COMMAND_OK;
}
