/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "stripe.h"

#include <errno.h>

#include "backend/error.h"

static const char about[] =
	"usage: weir-graph stripe SET.bel --over F0 F1 [F2 ...] [options]\n"
	"\n"
	"Splits SET.bel.dst, header and all, round-robin into the given files: unit k goes to\n"
	"file k mod n, at byte (k / n) * unit. The last unit is padded with zeros.\n";

static const char notes[] = "Exit status: 0 done, 1 failed, 2 wrong usage.";

static uint64_t unit_bytes = 65536;
static bool over, quiet;
static char *set, *files[GRAPH_STRIPE_FILES_MAX + 1];
static unsigned count;

static const struct tool_option table[] = {
	{ "over", NULL, TOOL_FLAG, &over, 0, 0, "what follows are the 2 to 64 files to write", NULL, NULL },
	{ "unit", "BYTES", TOOL_BYTES, &unit_bytes, 512, 0,
	  "a multiple of 512 up to 256M, with K or M; default 65536", NULL, NULL },
	{ "quiet", NULL, TOOL_FLAG, &quiet, 0, 0, "show no progress", NULL, NULL },
	{ .name = NULL },
};

/* The set; and files, after --over until the next option. */
static int take_word(char *text, const struct tool_option *latest)
{
	bool is_file = latest && latest->to == &over;

	if (!is_file && set)
		return weir_fail(EINVAL, "%s is one argument too many: name the files to write after --over",
				 text);
	if (!is_file)
		set = text;
	else if (count <= GRAPH_STRIPE_FILES_MAX)
		files[count++] = text;
	return 0;
}

static const struct tool_program program = {
	.name = "weir-graph stripe", .about = about, .options = table, .word = take_word, .notes = notes
};

int command_stripe(int argc, char **argv)
{
	struct graph_progress progress;
	struct graph_error error;
	int status = tool_parse(&program, argc, argv);

	if (status >= 0)
		return status;
	if (!set)
		return tool_usage("the set is missing: give SET.bel before --over");
	if (graph_stripe_check(files, count, unit_bytes, &error))
		return tool_usage("%s", error.text);
	graph_progress_init(&progress, quiet ? NULL : stderr, stderr);
	status = graph_stripe(set, files, count, unit_bytes, &progress, &error);
	graph_progress_close(&progress);
	return status ? tool_complain("%s", error.text) : COMMAND_OK;
}
