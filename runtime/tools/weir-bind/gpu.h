/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu.h: windows of the kernel module weir_p2p over GPUs' memory: list, claim, give back. */
#ifndef WEIR_BIND_GPU_H
#define WEIR_BIND_GPU_H

#include "tree.h"

/**
 * struct gpu_options - of weir-bind gpu
 * @dry_run: say what would be done, and do nothing
 * @json: the list is one JSON object
 * @bar: which BAR; -1: the largest one with memory
 * @group: who may open the nodes, besides root; NULL: nobody
 */
struct gpu_options {
	bool dry_run;
	bool json;
	int bar;
	const char *group;
};

/**
 * gpu_run() - weir-bind gpu COMMAND
 * @command: list, claim or unclaim
 * @addresses: PCI functions; none: list all GPUs
 * @options: what was said
 *
 * Return: exit status.
 */
int gpu_run(const char *command, const struct tree_names *addresses, const struct gpu_options *options);

#endif
