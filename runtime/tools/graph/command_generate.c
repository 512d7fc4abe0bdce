/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "generate.h"

#include <string.h>

static const char about[] =
	"usage: weir-graph generate kron|urand --scale S [options] -o OUT\n"
	"\n"
	"Writes a random undirected graph of 2^S vertices with the parameters of the GAP\n"
	"benchmark suite. Each edge is stored both ways; self loops and repeated edges are\n"
	"removed; neighbour lists ascend. The same kind, scale, degree and seed give the\n"
	"same bytes on any machine, with any number of threads and any memory budget.\n"
	"\n"
	"  kron                  Kronecker, A, B, C = 0.57, 0.19, 0.19, vertex ids permuted\n"
	"  urand                 both ends of each edge uniform";

static const char notes[] = "Nothing appears under the name OUT before it is complete.\n"
			    "Exit status: 0 done, 1 failed, 2 wrong usage.";

static struct graph_generate_options options = { .size = sizeof(options), .seed = 1 };
static const char *out;
static bool quiet;
static char **words;

static const struct tool_option table[] = {
	{ "scale", "S", TOOL_U32, &options.scale, 1, GRAPH_SCALE_MAX, "2^S vertices", NULL, NULL },
	{ "degree", "D", TOOL_U32, &options.degree, 1, 0, "D * 2^S edges are drawn; default 16", NULL, NULL },
	{ "seed", "N", TOOL_U64, &options.seed, 0, 0, "default 1", NULL, NULL },
	{ "weights", NULL, TOOL_FLAG, &options.weighted, 0, 0,
	  "also write weights, 1 to 255, the same both ways\n(always for .wsg and .wel; .sg and .el cannot "
	  "hold them)",
	  NULL, NULL },
	{ "memory", "BYTES", TOOL_BYTES, &options.memory_bytes, GRAPH_MEMORY_MIN_BYTES, 0,
	  "budget, with K, M, G or T; default 512M. Sorting goes through\na temporary file next to OUT", NULL,
	  NULL },
	{ "threads", "N", TOOL_U32, &options.threads, 1, 0, "default: one per CPU available", NULL, NULL },
	{ "output", "OUT", TOOL_TEXT, &out, 0, 0,
	  "or -o OUT: .bel .sg .wsg .el .wel or .mtx; OUT.bel stands for the\nfiles OUT.bel.col, OUT.bel.dst "
	  "and, with "
	  "weights, OUT.bel.val",
	  NULL, NULL },
	{ "o", "OUT", TOOL_TEXT, &out, 0, 0, NULL, NULL, NULL },
	{ "quiet", NULL, TOOL_FLAG, &quiet, 0, 0, "show no progress", NULL, NULL },
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-graph generate", .about = about, .options = table, .all = &words, .notes = notes
};

static int take_kind(void)
{
	if (!words[0])
		return tool_usage("the kind of graph is missing: give kron or urand");
	if (words[1])
		return tool_usage("%s is one argument too many", words[1]);
	if (!strcmp(words[0], "kron"))
		options.kind = GRAPH_KRONECKER;
	else if (!strcmp(words[0], "urand"))
		options.kind = GRAPH_UNIFORM;
	else
		return tool_usage("%s is no kind of graph: give kron or urand", words[0]);
	if (!options.scale)
		return tool_usage("--scale is missing: give 1 to %u, for 2^scale vertices", GRAPH_SCALE_MAX);
	return out ? COMMAND_OK : tool_usage("-o is missing: give the name of the output");
}

int command_generate(int argc, char **argv)
{
	struct graph_generate_options settled;
	struct graph_error error;
	int status = tool_parse(&program, argc, argv);

	if (status >= 0)
		return status;
	options.report = quiet ? NULL : stderr;
	status = take_kind();
	if (status)
		return status;
	if (graph_generate_settle(&options, out, &settled, &error))
		return tool_usage("%s", error.text);
	if (graph_generate(&options, out, error.text, sizeof(error.text)))
		return tool_complain("%s", error.text);
	return COMMAND_OK;
}
