/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const answer_words[] = { "unknown", "no", "yes" }; /* enum answer */
const char *const iommu_words[] = { "unknown", "off", "translated", "passthrough",
				    "mixed" }; /* enum iommu_mode */
const char *const place_words[] = {
	"unknown", "switch", "root-port", "host-bridge", "numa-node", "across"
}; /* enum place */

/* By enum place. */
static const char *const place_sentences[] = {
	"where they meet is not known",
	"below one switch",
	"below one root port",
	"through one host bridge",
	"below different host bridges of one NUMA node",
	"across NUMA nodes",
};

const char *lanes_label(const struct lanes *lanes)
{
	return lanes->host ? lanes->name : lanes->function.address;
}

static const char *or_words(const char *text, const char *otherwise)
{
	return text[0] ? text : otherwise;
}

static void print_bytes(uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	unsigned unit = 0;

	for (; value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		value /= 1024;
	printf("%.*f %s", value < 100 && unit ? 1 : 0, value, units[unit]);
}

static void print_config(const struct machine *machine)
{
	printf("  config   ");
	if (!machine->config_file[0]) {
		printf("not known: there is no /proc/config.gz or /boot/config-%s that can be read\n",
		       or_words(machine->kernel, "VERSION"));
		return;
	}
	printf("%s:", machine->config_file);
	for (unsigned i = 0; i < CONFIGS; i++)
		printf(" %s=%c", config_names[i], machine->config[i]);
	printf("\n");
}

static void print_vfio(const struct machine *machine)
{
	printf("  VFIO     driver vfio-pci %s, vfio_iommu_type1 %s, /dev/vfio/vfio ",
	       answer_words[machine->vfio_pci], answer_words[machine->vfio_type1]);
	if (machine->vfio_node)
		printf("cannot be opened: %s\n", strerror(machine->vfio_node));
	else
		printf("yes\n");
}

void text_machine(const struct machine *machine)
{
	printf("machine\n  kernel   %s\n", or_words(machine->kernel, "not known"));
	print_config(machine);
	printf("  IOMMU    %s", iommu_words[machine->iommu]);
	if (machine->groups)
		printf(", %u groups", machine->groups);
	printf("%s%s\n", machine->iommu_options[0] ? "; booted with " : "", machine->iommu_options);
	print_vfio(machine);
	printf("  memory   ");
	if (machine->memlock_bytes == MEMLOCK_UNKNOWN)
		printf("how much may be locked is not known");
	else if (machine->memlock_bytes == MEMLOCK_UNLIMITED)
		printf("all may be locked");
	else
		print_bytes(machine->memlock_bytes);
	printf("%s\n", machine->memlock_bytes < MEMLOCK_UNLIMITED ? " may be locked" : "");
	printf("  module   weir_p2p loaded: %s%s%s\n", answer_words[machine->module],
	       machine->module_version[0] ? ", version " : "", machine->module_version);
	if (!machine->pci)
		printf("  PCI      the bus cannot be seen: no /sys/bus/pci/devices\n");
}

static void print_group(const struct tree_function *function, const char *type, int node)
{
	printf("  place    ");
	if (node < 0)
		printf("NUMA node not known");
	else
		printf("NUMA node %d", node);
	printf(", IOMMU group %s%s%s%s\n", or_words(function->group, "none"), type[0] ? " (" : "", type,
	       type[0] ? ")" : "");
}

/* What a GPU does for controllers, or why it does not. */
static void print_ability(const char *name, enum answer answer, const char *yes, const char *no,
			  const char *why)
{
	if (answer == UNKNOWN)
		printf("  %-8s not known\n", name);
	else
		printf("  %-8s %s%s%s\n", name, answer == YES ? yes : no, answer == NO && why[0] ? ": " : "",
		       answer == NO ? why : "");
}

static void print_bars(const struct lanes *lanes)
{
	printf("  BARs     %s", lanes->bar_count ? "" : "not known");
	for (unsigned i = 0; i < lanes->bar_count; i++) {
		printf("%s%u: ", i ? ", " : "", lanes->bars[i].index);
		print_bytes(lanes->bars[i].bytes);
	}
	if (lanes->could_bytes > lanes_largest(lanes)) {
		printf("; one could have ");
		print_bytes(lanes->could_bytes);
	}
	printf("\n  memory   ");
	if (lanes->memory_bytes)
		print_bytes(lanes->memory_bytes);
	else
		printf("size not known");
	printf(", all of it in a BAR: %s\n", answer_words[lanes->visible]);
}

void text_lanes(const struct lanes *lanes)
{
	if (lanes->host) {
		printf("cpu\n  lanes    on the host's processors\n");
		return;
	}
	printf("GPU %s  %s%s[%s]\n", lanes->function.address, lanes->vendor, lanes->vendor[0] ? " " : "",
	       or_words(lanes->function.id, "?"));
	if (lanes->model[0])
		printf("  model    %s\n", lanes->model);
	if (lanes->usable == YES)
		printf("  name     %s, which is %s\n", lanes->name, lanes->device);
	else
		printf("  name     %s: %s\n",
		       lanes->usable == NO ? "none, no backend can use it" : "not known", lanes->why);
	printf("  driver   %s%s%s\n", or_words(lanes->function.driver, "none"),
	       lanes->driver_version[0] ? " " : "", lanes->driver_version);
	print_bars(lanes);
	printf("  sharing  dma-buf %s; other devices reach its memory: %s\n", answer_words[lanes->dma_buf],
	       answer_words[lanes->peer_dma]);
	print_ability("doorbell", lanes->registers, "its lanes ring them",
		      "a host thread rings them for its lanes", lanes->registers_why);
	print_ability("export", lanes->export, "its memory as a dma-buf", "no dma-buf of its memory",
		      lanes->export_why);
	print_group(&lanes->function, lanes->group_type, lanes->numa_node);
}

static void print_nodes(const struct ssd *ssd)
{
	for (unsigned i = 0; i < ssd->node_count; i++) {
		const struct node *node = &ssd->nodes[i];
		const char *can = node->readable && node->writable ? "read and write"
				  : node->readable                 ? "read"
								   : "neither read nor write";

		printf("  %-8s %s: ", i ? "" : "disks", node->name);
		if (node->there)
			printf("this user may %s", can);
		else
			printf("not in /dev");
		printf("%s%s\n", node->used[0] ? "; " : "", node->used);
	}
	if (!ssd->node_count)
		printf("  disks    none\n");
}

void text_ssd(const struct ssd *ssd)
{
	printf("SSD %s  %s%s[%s]\n", ssd->function.address, ssd->model, ssd->model[0] ? " " : "",
	       ssd->function.id);
	printf("  driver   %s%s%s\n", or_words(ssd->function.driver, "none"),
	       ssd->firmware[0] ? "; firmware " : "", ssd->firmware);
	print_nodes(ssd);
	print_group(&ssd->function, ssd->group_type, ssd->numa_node);
	if (ssd->others.count) {
		printf("  group    shared with");
		for (unsigned i = 0; i < ssd->others.count; i++)
			printf(" %s", ssd->others.name[i]);
		printf("\n");
	}
	if (ssd->iommu_bits)
		printf("  IOMMU    addresses of %u bits\n", ssd->iommu_bits);
}

static void print_verdict(const char *name, const struct verdict *verdict)
{
	printf("  %-8s %s", name, answer_words[verdict->answer]);
	if (verdict->answer == YES && verdict->use[0])
		printf(": %s", verdict->use);
	printf("\n");
	for (unsigned i = 0; i < verdict->count; i++) {
		const struct reason *reason = &verdict->reasons[i];

		printf("    %s %s\n", reason->answer == NO ? "-" : "?", reason->why);
		if (reason->remedy[0])
			printf("      > %s\n", reason->remedy);
	}
}

static void print_way(const struct pair *pair)
{
	const struct host_bridge *a = &pair->bridges[0], *b = &pair->bridges[1];

	printf("  way      %s%s%s; bridges redirect (ACS): %s", place_sentences[pair->location],
	       pair->meet[0] ? ", " : "", pair->meet, answer_words[pair->acs]);
	for (unsigned i = 0; i < pair->hop_count; i++)
		if (pair->hops[i].redirects == YES)
			printf(" %s", pair->hops[i].address);
	printf("\n  bridge   ");
	if (!a->id[0])
		printf("not known");
	else if (!strcmp(a->address, b->address))
		printf("%s lets peers talk, says Linux: %s", a->id, answer_words[a->listed]);
	else
		printf("%s and %s let peers talk, says Linux: %s, %s", a->id, or_words(b->id, "?"),
		       answer_words[a->listed_apart], answer_words[b->listed_apart]);
	printf("\n");
}

void text_pair(const struct pair *pair)
{
	printf("\n%s with SSD %s\n", lanes_label(pair->lanes), pair->ssd->function.address);
	if (!pair->lanes->host) {
		print_way(pair);
		print_verdict("peers", &pair->peer);
	}
	for (unsigned i = 0; i < PATHS; i++)
		print_verdict(path_names[i], &pair->paths[i]);
}
