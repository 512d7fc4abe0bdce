/* SPDX-License-Identifier: BSD-3-Clause */
/* survey.h: all that weir-check finds on a machine, in its order, as text or as one JSON object. */
#ifndef WEIR_MACHINE_SURVEY_H
#define WEIR_MACHINE_SURVEY_H

#include "machine.h"

/** struct survey_names - values of an option */
struct survey_names {
	const char *item[CHECK_DEVICES];
	unsigned count;
};

/**
 * struct survey - what to look at, and how to print it
 * @gpus: these alone; @ssds: likewise, PCI addresses; of none, all
 * @json: print one JSON object (docs/hardware.md has its keys)
 */
struct survey {
	struct survey_names gpus, ssds;
	bool json;
};

/** survey_print() - look, and print to the standard output. Return: the exit status (machine.h). */
int survey_print(const struct survey *survey);

#endif
