/* SPDX-License-Identifier: BSD-3-Clause */
/* survey.h: all that weir-check finds on a machine, in its order, as text or as one JSON object. */
#ifndef WEIR_MACHINE_SURVEY_H
#define WEIR_MACHINE_SURVEY_H

#include "../options/tool_options.h"
#include "machine.h"

/**
 * struct survey - what to examine, and how to print it
 * @gpus: these alone; @ssds: likewise, PCI addresses; of none, all
 * @json: print one JSON object (docs/hardware.md has its keys)
 */
struct survey {
	struct tool_names gpus, ssds;
	bool json;
};

/** survey_print() - examine, and print to the standard output. Return: the exit status (machine.h). */
int survey_print(const struct survey *survey);

#endif
