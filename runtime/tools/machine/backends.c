/* SPDX-License-Identifier: BSD-3-Clause */
/* What the backends of this build know of GPUs; of another machine, what weir-info --json said there. */
#include "machine.h"

#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <weir/weir.h>

/* Do host threads put data where the device's lanes use it? A storage in memory tells. */
static enum answer ask_host_writes(struct weir_context *context)
{
	struct weir_storage_options options = { .size = sizeof(options), .queues = 1, .depth = 16 };
	struct weir_storage_info info = { .size = sizeof(info) };
	struct weir_storage *storage;
	enum answer answer = UNKNOWN;

	if (weir_storage_open(context, "virt:1M?threads=1", &options, &storage) != 0)
		return UNKNOWN;
	if (weir_storage_info(storage, &info) == 0)
		answer = !strncmp(info.path, "direct", 6) ? YES : NO;
	weir_storage_close(storage);
	return answer;
}

static void ask_device(struct lanes *lanes)
{
	struct weir_context_info info = { .size = sizeof(info) };
	struct weir_context *context;

	if (weir_context_open(lanes->device, NULL, &context) != 0) {
		lanes->usable = NO;
		put_text(lanes->why, sizeof(lanes->why), "%s", weir_last_error());
		return;
	}
	if (weir_context_info(context, &info) == 0) {
		if (info.memory_bytes)
			lanes->memory_bytes = info.memory_bytes;
		lanes->dma_buf = info.dma_buf ? YES : NO;
		lanes->peer_dma = info.peer_dma ? YES : NO;
		lanes->registers = info.map_registers ? YES : NO;
		put_text(lanes->registers_why, sizeof(lanes->registers_why), "%s", info.map_registers_why);
		lanes->export = info.export_memory ? YES : NO;
		put_text(lanes->export_why, sizeof(lanes->export_why), "%s", info.export_memory_why);
	}
	lanes->host_writes = ask_host_writes(context);
	weir_context_close(context);
}

static void take_gpu(struct lanes_list *list, const struct weir_gpu *gpu)
{
	struct lanes *lanes = lanes_add(list, gpu->pci_address);

	if (!lanes)
		return;
	put_text(lanes->vendor, sizeof(lanes->vendor), "%s", gpu->vendor);
	put_text(lanes->model, sizeof(lanes->model), "%s", gpu->model);
	put_text(lanes->device, sizeof(lanes->device), "%s", gpu->device);
	put_text(lanes->why, sizeof(lanes->why), "%s", gpu->why);
	lanes->usable = gpu->number < 0 ? NO : YES;
	if (gpu->number < 0)
		return;
	put_text(lanes->name, sizeof(lanes->name), "gpu:%d", (int)gpu->number);
	ask_device(lanes);
}

static void ask_here(struct lanes_list *list)
{
	struct weir_gpu gpu = { .size = sizeof(gpu) };
	struct weir_gpus *gpus;

	if (weir_gpus_open(&gpus) != 0) {
		for (unsigned i = 1; i < list->count; i++)
			put_text(list->item[i].why, CHECK_TEXT, "%s", weir_last_error());
		return;
	}
	for (uint32_t i = 0; weir_gpu_at(gpus, i, &gpu) == 0; i++)
		take_gpu(list, &gpu);
	weir_gpus_close(gpus);
}

static void copy_string(const json_t *object, const char *key, char *text, size_t bytes)
{
	const char *value = json_string_value(json_object_get(object, key));

	put_text(text, bytes, "%s", value ? value : "");
}

static enum answer copy_answer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_boolean(value) ? json_is_true(value) ? YES : NO : UNKNOWN;
}

static void take_row(struct lanes_list *list, const json_t *row)
{
	const char *address = json_string_value(json_object_get(row, "pci_address"));
	const json_t *number = json_object_get(row, "number");
	char full[TREE_NAME_BYTES];
	struct lanes *lanes = address && tree_address(address, full) ? lanes_add(list, full) : NULL;

	if (!lanes)
		return;
	copy_string(row, "vendor", lanes->vendor, sizeof(lanes->vendor));
	copy_string(row, "model", lanes->model, sizeof(lanes->model));
	copy_string(row, "device", lanes->device, sizeof(lanes->device));
	copy_string(row, "why", lanes->why, sizeof(lanes->why));
	lanes->usable = json_is_integer(number) ? YES : json_is_null(number) ? NO : UNKNOWN;
	if (json_is_integer(number))
		put_text(lanes->name, sizeof(lanes->name), "gpu:%d", (int)json_integer_value(number));
}

static void take_device(struct lanes_list *list, const json_t *row)
{
	const char *name = json_string_value(json_object_get(row, "device"));
	json_int_t bytes = json_integer_value(json_object_get(row, "memory_bytes"));

	for (unsigned i = 1; i < list->count && name; i++) {
		struct lanes *lanes = &list->item[i];

		if (strcmp(lanes->device, name))
			continue;
		if (bytes > 0)
			lanes->memory_bytes = (uint64_t)bytes;
		lanes->dma_buf = copy_answer(row, "dma_buf");
		lanes->peer_dma = copy_answer(row, "peer_dma");
		lanes->registers = copy_answer(row, "map_registers");
		copy_string(row, "map_registers_why", lanes->registers_why, sizeof(lanes->registers_why));
		lanes->export = copy_answer(row, "export_memory");
		copy_string(row, "export_memory_why", lanes->export_why, sizeof(lanes->export_why));
	}
}

static void ask_file(struct lanes_list *list)
{
	char path[PATH_MAX];
	json_t *root = tree_path(path, "/weir-info.json") ? json_load_file(path, 0, NULL) : NULL, *row;
	size_t index;

	for (unsigned i = 1; i < list->count; i++)
		put_text(list->item[i].why, CHECK_TEXT,
			 "the machine is one in a folder, and weir-info.json there does not say");
	json_array_foreach(json_object_get(root, "gpus"), index, row) take_row(list, row);
	json_array_foreach(json_object_get(root, "devices"), index, row) take_device(list, row);
	json_decref(root);
}

void backends_ask(struct lanes_list *list)
{
	if (tree_root[0])
		ask_file(list);
	else
		ask_here(list);
}
