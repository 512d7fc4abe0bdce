/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-info: the devices that weir can run on, and what it knows of them. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include <weir/weir.h>

#include "gpus_list.h"
#include "tool_options.h"

static const char about[] =
	"usage: weir-info [--json] [DEVICE...]\n"
	"\n"
	"The devices that weir sees, the one that \"auto\" takes first, or those named.\n"
	"Without a name also the GPUs of the machine, those too that no backend can use,\n"
	"and how far each disk is from them.\n"
	"Ends with status 1 if one that was named, or every one, cannot be used.\n";

/** struct row - a device, opened for a moment; @name: as it was given, or the device's */
struct row {
	const char *name;
	struct weir_device device;
	struct weir_context_info info;
};

/* Open and ask; what goes wrong becomes the row's own error. */
static void poll(struct row *row)
{
	struct weir_context *context;
	int error = row->device.error;

	row->info.size = sizeof(row->info);
	if (error)
		return;
	error = weir_context_open(row->name, NULL, &context);
	if (!error) {
		error = weir_context_info(context, &row->info);
		weir_context_close(context);
	}
	row->device.error = error;
	if (error)
		snprintf(row->device.why, sizeof(row->device.why), "%.255s", weir_last_error());
}

/* Row @index: of the devices named, or of all. Return: false behind the last one. */
static bool next_row(char **names, uint32_t index, struct row *row)
{
	memset(row, 0, sizeof(*row));
	row->device.size = sizeof(row->device);
	row->name = *names ? names[index] : row->device.name;
	if (*names ? !names[index] : weir_device_at(index, &row->device) != 0)
		return false;
	poll(row);
	return true;
}

/* By enum weir_peer_writes. */
static const struct {
	const char *word, *sentence;
} peer_writes[] = {
	{ "unknown", "whether lanes see their writes in order is not known" },
	{ "flushed", "the host has to flush their writes before lanes read them" },
	{ "ordered", "its lanes see their writes in order" },
	{ "ordered-all", "lanes of every device see their writes in order" },
};

static size_t peer_writes_index(const struct weir_context_info *info)
{
	return info->peer_writes < sizeof(peer_writes) / sizeof(peer_writes[0]) ? info->peer_writes : 0;
}

static double gibibytes(uint64_t bytes)
{
	return (double)bytes / (1 << 30);
}

static void print_ability(const char *name, uint32_t has, const char *what, const char *why)
{
	printf("  %-8s %s%s\n", name, has ? what : "no: ", has ? "" : why);
}

static void print_text(const struct row *row)
{
	const struct weir_context_info *info = &row->info;

	if (row->device.error) {
		printf("%-10s none: %s\n", row->name, row->device.why);
		return;
	}
	printf("%-10s %s\n", row->name, info->name);
	printf("  lanes    %u groups at once, waves of %u", info->workers, info->wave_lanes);
	if (info->block_lanes != UINT32_MAX)
		printf(", blocks of %u at most", info->block_lanes);
	printf("\n  memory   %.1f GiB", gibibytes(info->memory_bytes));
	if (info->memory_free_bytes)
		printf(", %.1f of them free", gibibytes(info->memory_free_bytes));
	printf("\n");
	printf("  place    %s%s, ", *info->pci_address ? "PCI " : "no PCI device",
	       *info->pci_address ? info->pci_address : "");
	if (info->numa_node < 0)
		printf("no NUMA node\n");
	else
		printf("NUMA node %d\n", info->numa_node);
	printf("  sharing  dma-buf %s; other PCI devices %s\n", info->dma_buf ? "yes" : "no",
	       info->peer_dma ? "reach its memory" : "do not reach its memory");
	if (info->peer_dma)
		printf("           %s\n", peer_writes[peer_writes_index(info)].sentence);
	print_ability("doorbell", info->map_registers, "lanes can ring those of other PCI devices",
		      info->map_registers_why);
	print_ability("host", info->register_host, "lanes can use pages that others allocated",
		      info->register_host_why);
	print_ability("export", info->export_memory, "any part of its memory as a dma-buf",
		      info->export_memory_why);
}

static json_t *as_json(const struct row *row)
{
	const struct weir_context_info *info = &row->info;

	if (row->device.error)
		return json_pack("{s:s, s:b, s:s, s:s}", "device", row->name, "usable", 0, "error",
				 strerror(-row->device.error), "why", row->device.why);
	return json_pack("{s:s, s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:s?, s:o, s:b, s:b, s:s, s:b, s:s, s:b, "
			 "s:s, s:b, s:s}",
			 "device", row->name, "usable", 1, "name", info->name, "workers",
			 (json_int_t)info->workers, "wave_lanes", (json_int_t)info->wave_lanes, "block_lanes",
			 (json_int_t)info->block_lanes, "memory_bytes", (json_int_t)info->memory_bytes,
			 "memory_free_bytes", (json_int_t)info->memory_free_bytes, "pci_address",
			 *info->pci_address ? info->pci_address : NULL, "numa_node",
			 info->numa_node < 0 ? json_null() : json_integer(info->numa_node), "dma_buf",
			 (int)info->dma_buf, "peer_dma", (int)info->peer_dma, "peer_writes",
			 peer_writes[peer_writes_index(info)].word, "map_registers", (int)info->map_registers,
			 "map_registers_why", info->map_registers_why, "register_host",
			 (int)info->register_host, "register_host_why", info->register_host_why,
			 "export_memory", (int)info->export_memory, "export_memory_why",
			 info->export_memory_why);
}

/* All rows. Return: the exit status. */
static int list(char **names, bool json)
{
	json_t *rows = json_array();
	unsigned usable = 0, count = 0;
	struct row row;

	if (!json)
		printf("weir %s\n", weir_version());
	for (; next_row(names, count, &row); count++) {
		usable += row.device.error == 0;
		if (json)
			json_array_append_new(rows, as_json(&row));
		else
			print_text(&row);
	}
	if (json) {
		json_t *root = json_pack("{s:s, s:O}", "version", weir_version(), "devices", rows);

		if (!*names)
			json_object_set_new(root, "gpus", gpus_json());
		json_dumpf(root, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(root);
	}
	json_decref(rows);
	if (!*names && !json)
		gpus_print();
	return (*names ? usable == count : usable > 0) ? 0 : 1;
}

int main(int argc, char **argv)
{
	char **names;
	bool json = false;
	const struct tool_option options[] = {
		{ .name = "json", .kind = TOOL_FLAG, .to = &json, .help = "print one JSON object" },
		{ .name = NULL },
	};
	const struct tool_program program = {
		.name = "weir-info", .about = about, .options = options, .all = &names
	};
	int status = tool_parse(&program, argc, argv);

	return status >= 0 ? status : list(names, json);
}
