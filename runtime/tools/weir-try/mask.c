/* SPDX-License-Identifier: BSD-3-Clause */
#include "try.h"

#include <string.h>

#include "tree.h"

enum { SHORTEST = 4 }; /* fewer letters than these could be anything */

static void mask(char *text, const char *serial)
{
	size_t length = strlen(serial);

	for (char *at = strstr(text, serial); at && length >= SHORTEST; at = strstr(at + length, serial))
		memset(at, '*', length);
}

void try_mask(char *text)
{
	struct tree_names addresses, names;
	char path[PATH_MAX], serial[TREE_NAME_BYTES];

	tree_controllers(&addresses);
	for (unsigned i = 0; i < addresses.count; i++) {
		if (!tree_path(path, "/sys/bus/pci/devices/%s/nvme", addresses.name[i]))
			continue;
		tree_list(path, &names);
		if (!names.count || !tree_path(path, "/sys/bus/pci/devices/%s/nvme/%s/serial",
					       addresses.name[i], names.name[0]))
			continue;
		tree_read(serial, sizeof(serial), path);
		for (size_t end = strlen(serial); end && serial[end - 1] == ' '; end--)
			serial[end - 1] = '\0';
		mask(text, serial);
	}
}
