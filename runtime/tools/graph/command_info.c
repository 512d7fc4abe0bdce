/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "info.h"

static const char about[] =
	"usage: weir-graph info FILE [options]\n"
	"\n"
	"Tells what a graph file is: format, vertices, edges, degrees, weights, size. Without\n"
	"--check only headers and sizes are read and held against each other.\n";

static const char notes[] = "Exit status: 0 good, 1 damaged or unreadable, 2 wrong usage.";

static struct graph_info_options options = { .memory_bytes = GRAPH_MEMORY_DEFAULT_BYTES };
static bool json, quiet;
static const char *path;

static const struct tool_option table[] = {
	{ "check", NULL, TOOL_FLAG, &options.check, 0, 0,
	  "read everything: offsets monotone, neighbours in range, degrees,\ndirection, self loops, repeated "
	  "edges. "
	  "Text is sorted for this in\na temporary file in $TMPDIR or /tmp",
	  NULL, NULL },
	{ "json", NULL, TOOL_FLAG, &json, 0, 0, "print one JSON object; what is not known is null", NULL,
	  NULL },
	{ "memory", "BYTES", TOOL_BYTES, &options.memory_bytes, GRAPH_MEMORY_MIN_BYTES, 0,
	  "budget for sorting text, with K, M, G or T; default 512M", NULL, NULL },
	{ "quiet", NULL, TOOL_FLAG, &quiet, 0, 0, "show no progress", NULL, NULL },
	{ .name = NULL },
};

static const struct tool_program program = { .name = "weir-graph info",
					     .about = about,
					     .options = table,
					     .operand = "the name of one graph file",
					     .to = &path,
					     .notes = notes };

/* What is known is shown even when the check found damage; the sentence follows on stderr. */
static int show(const struct graph_info *info, int failed, struct graph_error *error)
{
	struct graph_error printing;

	if (json && graph_info_print_json(stdout, path, info, failed ? error->text : NULL, &printing))
		return tool_complain("%s", printing.text);
	if (!json)
		graph_info_print(stdout, path, info);
	return failed ? tool_complain("%s", error->text) : COMMAND_OK;
}

static int check_name(void)
{
	enum graph_format format;
	struct graph_error error;

	if (!path)
		return tool_usage("give the name of one graph file");
	return graph_format_of(path, &format, &error) ? tool_usage("%s", error.text) : COMMAND_OK;
}

int command_info(int argc, char **argv)
{
	struct graph_progress progress;
	struct graph_info info;
	struct graph_error error;
	bool opened;
	int status = tool_parse(&program, argc, argv);

	if (status >= 0)
		return status;
	status = check_name();
	if (status)
		return status;
	graph_progress_init(&progress, quiet ? NULL : stderr, stderr);
	options.progress = &progress;
	status = graph_info_read(path, &options, &info, &opened, &error);
	graph_progress_close(&progress);
	return opened ? show(&info, status, &error) : tool_complain("%s", error.text);
}
