/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-graph: make, convert, describe and stripe graph files. */
#include "command.h"
#include "output.h"

#include <signal.h>

static const char about[] = "usage: weir-graph COMMAND ...\n"
			    "\n"
			    "  generate  write a random graph (GAP benchmark suite: kron, urand)\n"
			    "  convert   from any of .bel .sg .wsg .el .wel .mtx to any other\n"
			    "  info      what a graph file is, and with --check whether it is whole\n"
			    "  stripe    spread the neighbours of a .bel set over several files\n";

static const char notes[] = "weir-graph COMMAND --help says more.\n"
			    "Exit status: 0 done, 1 failed, 2 wrong usage.";

static const struct tool_option options[] = { { .name = NULL } };
static char **words;

static const struct tool_program program = {
	.name = "weir-graph", .about = about, .options = options, .all = &words, .notes = notes
};

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "generate", command_generate },
	{ "convert", command_convert },
	{ "info", command_info },
	{ "stripe", command_stripe },
};

/* Leave nothing half-written behind, then die of the signal, so that the caller sees which one it was. */
static void die(int number)
{
	graph_outputs_unlink();
	signal(number, SIG_DFL);
	raise(number); /* blocked in here: delivered on return */
}

static void catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
	struct sigaction before, action = { .sa_handler = die };

	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		/* What the caller ignores (nohup does) stays ignored. */
		if (!sigaction(numbers[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	/* A write beyond the file size limit then fails with EFBIG, for which there is a sentence. */
	signal(SIGXFSZ, SIG_IGN);
}

int main(int argc, char **argv)
{
	int status;

	catch_signals();
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	status = tool_parse(&program, argc, argv);
	if (status >= 0)
		return status;
	if (!words[0])
		return tool_usage("a command is missing: give generate, convert, info or stripe");
	return tool_usage("there is no command %s: give generate, convert, info or stripe", words[0]);
}
