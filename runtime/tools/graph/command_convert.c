/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "convert.h"

static const char about[] =
	"usage: weir-graph convert IN OUT [options]\n"
	"\n"
	"Converts between .bel .sg .wsg .el .wel and .mtx, chosen by the extensions. Edges\n"
	"are kept as they are, and weights where both formats hold them; text is sorted on\n"
	"the way. For formats that say whether a graph is directed, a graph that stores\n"
	"each edge both ways counts as undirected.\n";

static const char notes[] =
	"  .el .wel  \"u v\" or \"u v weight\" per line, from 0; # and % begin comment lines\n"
	"  .mtx      coordinate, pattern or integer, general or symmetric\n"
	"  .bel      little-endian set: .col = u64 V+1, u64 type, V+1 u64 offsets;\n"
	"            .dst = u64 E, u64 type, E u64 neighbours; .val = u64 E, u64 type,\n"
	"            E u32 weights. The type written is the bytes of an element: 8, 8, 4;\n"
	"            any type is accepted\n"
	"  .sg .wsg  GAPBS serialized graphs\n"
	"\n"
	"OUT is another file than IN. Nothing appears under the name OUT before it is complete.\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage.";

static struct graph_convert_options options = { .memory_bytes = GRAPH_MEMORY_DEFAULT_BYTES };
static bool quiet;
static char **names;

static const struct tool_option table[] = {
	{ "symmetrize", NULL, TOOL_FLAG, &options.symmetrize, 0, 0,
	  "store each edge both ways, remove self loops and repeated edges\n(of different weights the "
	  "smallest stays)",
	  NULL, NULL },
	{ "vertices", "N", TOOL_U64, &options.vertices, 1, (double)UINT32_MAX + 1,
	  "for .el and .wel input: the number of vertices; default: one\nmore than the largest id", NULL,
	  NULL },
	{ "force", NULL, TOOL_FLAG, &options.force, 0, 0,
	  "write a row for each vertex of text, where more than 2^20 vertices\nare more than 1024 for each "
	  "edge, "
	  "which is refused otherwise",
	  NULL, NULL },
	{ "memory", "BYTES", TOOL_BYTES, &options.memory_bytes, GRAPH_MEMORY_MIN_BYTES, 0,
	  "budget, with K, M, G or T; default 512M. Sorting goes through\na temporary file next to OUT", NULL,
	  NULL },
	{ "quiet", NULL, TOOL_FLAG, &quiet, 0, 0, "show no progress (notes are always shown)", NULL, NULL },
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-graph convert", .about = about, .options = table, .all = &names, .notes = notes
};

static int check_names(void)
{
	enum graph_format in, out;
	struct graph_error error;

	if (!names[0] || !names[1] || names[2])
		return tool_usage("give two names, IN and OUT");
	if (graph_format_of(names[0], &in, &error) || graph_format_of(names[1], &out, &error))
		return tool_usage("%s", error.text);
	if (options.vertices && in != GRAPH_EL && in != GRAPH_WEL)
		return tool_usage("--vertices is for .el and .wel input, and %s says itself how many it has",
				  names[0]);
	return COMMAND_OK;
}

int command_convert(int argc, char **argv)
{
	struct graph_progress progress;
	struct graph_error error;
	int status = tool_parse(&program, argc, argv);

	if (status >= 0)
		return status;
	status = check_names();
	if (status)
		return status;
	graph_progress_init(&progress, quiet ? NULL : stderr, stderr);
	options.progress = &progress;
	status = graph_convert(names[0], names[1], &options, &error);
	graph_progress_close(&progress);
	return status ? tool_complain("%s", error.text) : COMMAND_OK;
}
