/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <string.h>

static json_t *answer_json(enum answer answer)
{
	return json_string(answer_words[answer]);
}

static json_t *text_json(const char *text)
{
	json_t *string = text[0] ? json_string(text) : NULL;

	return string ? string : json_null(); /* what is no UTF-8 is no text */
}

static json_t *bytes_json(uint64_t bytes)
{
	return bytes ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *node_json(int node)
{
	return node < 0 ? json_null() : json_integer(node);
}

static json_t *config_json(const struct machine *machine)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < CONFIGS; i++) {
		char text[2] = { machine->config[i], '\0' };

		json_object_set_new(object, config_names[i], text_json(text));
	}
	return object;
}

static json_t *memlock_json(uint64_t bytes)
{
	if (bytes == MEMLOCK_UNKNOWN)
		return json_null();
	return bytes == MEMLOCK_UNLIMITED ? json_string("unlimited") : json_integer((json_int_t)bytes);
}

json_t *json_machine(const struct machine *machine)
{
	return json_pack("{s:o, s:o, s:o, s:b, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kernel",
			 text_json(machine->kernel), "config_file", text_json(machine->config_file), "config",
			 config_json(machine), "pci", (int)machine->pci, "iommu", iommu_words[machine->iommu],
			 "iommu_groups", (json_int_t)machine->groups, "iommu_options",
			 text_json(machine->iommu_options), "vfio_pci", answer_json(machine->vfio_pci),
			 "vfio_iommu_type1", answer_json(machine->vfio_type1), "vfio_node",
			 text_json(machine->vfio_node ? strerror(machine->vfio_node) : "ok"), "memlock_bytes",
			 memlock_json(machine->memlock_bytes), "module", answer_json(machine->module),
			 "module_version", text_json(machine->module_version), "io_uring",
			 answer_json(machine->uring));
}

static json_t *bars_json(const struct lanes *lanes)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < lanes->bar_count; i++)
		json_array_append_new(list, json_pack("{s:I, s:I}", "index", (json_int_t)lanes->bars[i].index,
						      "bytes", (json_int_t)lanes->bars[i].bytes));
	return list;
}

/* Keys that only a GPU has. */
static void add_gpu(json_t *object, const struct lanes *lanes)
{
	const struct tree_function *function = &lanes->function;
	json_t *more = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"vendor", text_json(lanes->vendor), "model", text_json(lanes->model), "id",
		text_json(function->id), "driver", text_json(function->driver), "driver_version",
		text_json(lanes->driver_version), "iommu_group", text_json(function->group),
		"iommu_group_type", text_json(lanes->group_type), "numa_node", node_json(lanes->numa_node),
		"bars", bars_json(lanes), "bar_could_bytes", bytes_json(lanes->could_bytes), "memory_bytes",
		bytes_json(lanes->memory_bytes), "memory_visible", answer_json(lanes->visible), "dma_buf",
		answer_json(lanes->dma_buf), "peer_dma", answer_json(lanes->peer_dma), "map_registers",
		answer_json(lanes->registers), "map_registers_why", text_json(lanes->registers_why),
		"export_memory", answer_json(lanes->export), "export_memory_why",
		text_json(lanes->export_why));

	json_object_update(object, more);
	json_decref(more);
}

json_t *json_lanes(const struct lanes *lanes)
{
	json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "lanes", lanes_label(lanes),
				   "pci_address", text_json(lanes->function.address), "name",
				   text_json(lanes->name), "device", text_json(lanes->device), "usable",
				   answer_json(lanes->usable), "why", text_json(lanes->why));

	if (!lanes->host)
		add_gpu(object, lanes);
	return object;
}

static json_t *nodes_json(const struct ssd *ssd)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < ssd->node_count; i++) {
		const struct node *node = &ssd->nodes[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:b, s:b, s:b, s:o}", "name", node->name, "there",
						(int)node->there, "readable", (int)node->readable, "writable",
						(int)node->writable, "used", text_json(node->used)));
	}
	return list;
}

static json_t *names_json(const struct tree_names *names)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < names->count; i++)
		json_array_append_new(list, json_string(names->name[i]));
	return list;
}

json_t *json_ssd(const struct ssd *ssd)
{
	const struct tree_function *function = &ssd->function;

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "pci_address",
			 function->address, "id", text_json(function->id), "model", text_json(ssd->model),
			 "firmware", text_json(ssd->firmware), "driver", text_json(function->driver),
			 "iommu_group", text_json(function->group), "iommu_group_type",
			 text_json(ssd->group_type), "iommu_group_others", names_json(&ssd->others),
			 "iommu_bits", bytes_json(ssd->iommu_bits), "numa_node", node_json(ssd->numa_node),
			 "blocks", nodes_json(ssd), "used", text_json(ssd->used));
}

static json_t *verdict_json(const struct verdict *verdict)
{
	json_t *reasons = json_array();

	for (unsigned i = 0; i < verdict->count; i++) {
		const struct reason *reason = &verdict->reasons[i];

		json_array_append_new(
			reasons, json_pack("{s:o, s:o, s:o}", "answer", answer_json(reason->answer), "why",
					   text_json(reason->why), "remedy", text_json(reason->remedy)));
	}
	return json_pack("{s:o, s:o, s:o}", "answer", answer_json(verdict->answer), "use",
			 text_json(verdict->answer == YES ? verdict->use : ""), "reasons", reasons);
}

static json_t *hops_json(const struct pair *pair)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < pair->hop_count; i++)
		json_array_append_new(list, json_pack("{s:s, s:o}", "pci_address", pair->hops[i].address,
						      "redirects", answer_json(pair->hops[i].redirects)));
	return list;
}

static json_t *host_bridge_json(const struct host_bridge *bridge)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "pci_address", text_json(bridge->address), "id",
			 text_json(bridge->id), "listed", answer_json(bridge->listed), "listed_apart",
			 answer_json(bridge->listed_apart));
}

/* What the way of a GPU's data is; the host's has none. */
static json_t *way_json(const struct pair *pair)
{
	if (pair->lanes->host)
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:o, s:[o, o], s:o}", "place", place_words[pair->location], "meet",
			 text_json(pair->meet), "acs", answer_json(pair->acs), "bridges", hops_json(pair),
			 "host_bridges", host_bridge_json(&pair->bridges[0]),
			 host_bridge_json(&pair->bridges[1]), "peers", verdict_json(&pair->peer));
}

json_t *json_pair(const struct pair *pair)
{
	json_t *paths = json_object();

	for (unsigned i = 0; i < PATHS; i++)
		json_object_set_new(paths, path_names[i], verdict_json(&pair->paths[i]));
	return json_pack("{s:s, s:s, s:o, s:o, s:I}", "lanes", lanes_label(pair->lanes), "ssd",
			 pair->ssd->function.address, "way", way_json(pair), "paths", paths, "status",
			 (json_int_t)pair_status(pair));
}
