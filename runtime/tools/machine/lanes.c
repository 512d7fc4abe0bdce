/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernels can run on, as the PCI bus shows it. */
#include "machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESOURCE_MEMORY = 0x200, MEBIBYTE_SHIFT = 20 };

/* Lines of "start end flags": the first six are the BARs. */
static void read_bars(struct lanes *lanes)
{
	char path[PATH_MAX];
	FILE *file;

	if (!tree_path(path, "/sys/bus/pci/devices/%s/resource", lanes->function.address) ||
	    !(file = fopen(path, "re")))
		return;
	for (unsigned i = 0; i < CHECK_BARS; i++) {
		uint64_t start, end, flags;

		if (fscanf(file, "%" SCNx64 " %" SCNx64 " %" SCNx64, &start, &end, &flags) != 3)
			break;
		if ((flags & RESOURCE_MEMORY) && end > start)
			lanes->bars[lanes->bar_count++] =
				(struct bar){ .index = i, .bytes = end - start + 1 };
	}
	fclose(file);
}

/* resourceN_resize: bit n stands for a size of 2^n MiB. */
static void read_could(struct lanes *lanes)
{
	for (unsigned i = 0; i < CHECK_BARS; i++) {
		char name[TREE_NAME_BYTES], text[TREE_NAME_BYTES];
		uint64_t sizes;

		put_text(name, sizeof(name), "resource%u_resize", i);
		tree_attribute(text, lanes->function.address, name);
		sizes = strtoull(text, NULL, 16);
		for (unsigned bit = 0; bit < 64 - MEBIBYTE_SHIFT; bit++)
			if ((sizes >> bit & 1) &&
			    (UINT64_C(1) << (bit + MEBIBYTE_SHIFT)) > lanes->could_bytes)
				lanes->could_bytes = UINT64_C(1) << (bit + MEBIBYTE_SHIFT);
	}
}

uint64_t lanes_largest(const struct lanes *lanes)
{
	uint64_t largest = 0;

	for (unsigned i = 0; i < lanes->bar_count; i++)
		largest = lanes->bars[i].bytes > largest ? lanes->bars[i].bytes : largest;
	return largest;
}

/* Some drivers say how much memory there is. */
static void read_memory(struct lanes *lanes)
{
	char text[TREE_NAME_BYTES];

	tree_attribute(text, lanes->function.address, "mem_info_vram_total");
	lanes->memory_bytes = strtoull(text, NULL, 10);
}

static void read_gpu(struct lanes *lanes)
{
	char path[PATH_MAX];

	group_type(lanes->group_type, lanes->function.group);
	lanes->numa_node = numa_node(lanes->function.address);
	if (lanes->function.driver[0] && tree_path(path, "/sys/module/%s/version", lanes->function.driver))
		tree_read(lanes->driver_version, sizeof(lanes->driver_version), path);
	read_bars(lanes);
	read_could(lanes);
	read_memory(lanes);
}

struct lanes *lanes_add(struct lanes_list *list, const char *address)
{
	unsigned at = 1;

	while (at < list->count && strcmp(list->item[at].function.address, address) < 0)
		at++;
	if (at < list->count && !strcmp(list->item[at].function.address, address))
		return &list->item[at];
	if (list->count == CHECK_DEVICES)
		return NULL;
	memmove(&list->item[at + 1], &list->item[at], (list->count - at) * sizeof(list->item[0]));
	memset(&list->item[at], 0, sizeof(list->item[0]));
	put_text(list->item[at].function.address, TREE_NAME_BYTES, "%s", address);
	list->item[at].numa_node = -1;
	list->count++;
	return &list->item[at];
}

static void add_class(struct lanes_list *list, const char *prefix)
{
	struct tree_names addresses;
	struct tree_function function;

	tree_of_class(prefix, &addresses);
	for (unsigned i = 0; i < addresses.count; i++) {
		struct lanes *lanes = tree_function(addresses.name[i], &function)
					      ? lanes_add(list, addresses.name[i])
					      : NULL;

		if (!lanes)
			continue;
		lanes->function = function;
		read_gpu(lanes);
	}
}

/* Which BAR shows the memory is the driver's business: none that is smaller shows all of it. */
static void judge_visible(struct lanes *lanes)
{
	uint64_t largest = lanes_largest(lanes);

	if (!largest)
		return;
	if (lanes->memory_bytes)
		lanes->visible = largest >= lanes->memory_bytes ? YES : NO;
	else if (lanes->could_bytes > largest)
		lanes->visible = NO;
}

void lanes_read(struct lanes_list *list)
{
	memset(list, 0, sizeof(*list));
	list->count = 1;
	list->item[0] = (struct lanes){ .host = true,
					.name = "cpu",
					.device = "cpu",
					.usable = YES,
					.host_writes = YES,
					.numa_node = -1 };
	add_class(list, "0x03"); /* displays */
	add_class(list, "0x12"); /* processing accelerators */
	backends_ask(list);
	for (unsigned i = 1; i < list->count; i++)
		judge_visible(&list->item[i]);
}
