/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "convert.h"

static const char name[] = "convert";

static const char help[] =
	"usage: weir-graph convert IN OUT [options]\n"
	"\n"
	"Converts between .bel .sg .wsg .el .wel and .mtx, chosen by the extensions. Edges\n"
	"are kept as they are, and weights where both formats hold them; text is sorted on\n"
	"the way. For formats that say whether a graph is directed, a graph that stores\n"
	"each edge both ways counts as undirected.\n"
	"\n"
	"  --symmetrize    store each edge both ways, remove self loops and repeated edges\n"
	"                  (of different weights the smallest stays)\n"
	"  --vertices N    for .el and .wel input: the number of vertices; default: one\n"
	"                  more than the largest id\n"
	"  --force         write a row for each vertex of text, where more than 2^20 vertices are\n"
	"                  more than 1024 for each edge, which is refused otherwise\n"
	"  --memory BYTES  budget, with K, M, G or T; default 512M. Sorting goes through\n"
	"                  a temporary file next to OUT\n"
	"  --quiet         show no progress (notes are always shown)\n"
	"\n"
	"  .el .wel  \"u v\" or \"u v weight\" per line, from 0; # and % begin comment lines\n"
	"  .mtx      coordinate, pattern or integer, general or symmetric\n"
	"  .bel      little-endian set: .col = u64 V+1, u64 type, V+1 u64 offsets;\n"
	"            .dst = u64 E, u64 type, E u64 neighbours; .val = u64 E, u64 type,\n"
	"            E u32 weights. The type written is the bytes of an element: 8, 8, 4;\n"
	"            any type is accepted\n"
	"  .sg .wsg  GAPBS serialized graphs\n"
	"\n"
	"OUT is another file than IN. Nothing appears under the name OUT before it is complete.\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage.\n";

enum { SYMMETRIZE = 256, FORCE, VERTICES, MEMORY, QUIET };

static const struct option long_options[] = {
	{ "symmetrize", no_argument, NULL, SYMMETRIZE },
	{ "force", no_argument, NULL, FORCE },
	{ "vertices", required_argument, NULL, VERTICES },
	{ "memory", required_argument, NULL, MEMORY },
	{ "quiet", no_argument, NULL, QUIET },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	struct graph_convert_options options;
	bool quiet;
	bool help;
};

static bool take_vertices(const char *text, uint64_t *vertices)
{
	if (!command_number(name, "--vertices", text, vertices))
		return false;
	if (*vertices && *vertices <= (uint64_t)UINT32_MAX + 1)
		return true;
	command_usage(name, "--vertices %s is out of range: give 1 to 2^32", text);
	return false;
}

static int take_option(int option, char **argv, struct arguments *arguments)
{
	struct graph_convert_options *options = &arguments->options;

	switch (option) {
	case SYMMETRIZE: options->symmetrize = true; return COMMAND_OK;
	case FORCE: options->force = true; return COMMAND_OK;
	case QUIET: arguments->quiet = true; return COMMAND_OK;
	case 'h': arguments->help = true; return COMMAND_OK;
	case VERTICES: return take_vertices(optarg, &options->vertices) ? COMMAND_OK : COMMAND_USAGE;
	case MEMORY:
		return command_bytes(name, "--memory", optarg, GRAPH_MEMORY_MIN_BYTES, &options->memory_bytes)
			       ? COMMAND_OK
			       : COMMAND_USAGE;
	default: return command_bad_option(name, option, argv);
	}
}

static int check_names(char **names, const struct arguments *arguments)
{
	enum graph_format in, out;
	struct graph_error error;

	if (graph_format_of(names[0], &in, &error) || graph_format_of(names[1], &out, &error))
		return command_usage(name, "%s", error.text);
	if (arguments->options.vertices && in != GRAPH_EL && in != GRAPH_WEL)
		return command_usage(
			name, "--vertices is for .el and .wel input, and %s says itself how many it has",
			names[0]);
	return COMMAND_OK;
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
	int option, status = COMMAND_OK;

	while (!status && !arguments->help &&
	       (option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1)
		status = take_option(option, argv, arguments);
	if (status || arguments->help)
		return status;
	if (argc - optind != 2)
		return command_usage(name, "give two names, IN and OUT (%d given)", argc - optind);
	return check_names(argv + optind, arguments);
}

int command_convert(int argc, char **argv)
{
	struct arguments arguments = { .options = { .memory_bytes = GRAPH_MEMORY_DEFAULT_BYTES } };
	struct graph_progress progress;
	struct graph_error error;
	int status = parse(argc, argv, &arguments);

	if (status)
		return status;
	if (arguments.help)
		return command_help(help);
	graph_progress_init(&progress, arguments.quiet ? NULL : stderr, stderr);
	arguments.options.progress = &progress;
	status = graph_convert(argv[optind], argv[optind + 1], &arguments.options, &error);
	graph_progress_close(&progress);
	return status ? command_failed(error.text) : COMMAND_OK;
}
