/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of devices: each backend's, in the backends' order. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend.h"
#include "context.h"
#include "error.h"

/* The rows of @backend: its devices, or one that says why it has none. */
static uint32_t row_count(const struct weir_backend_ops *backend, int *error)
{
	uint32_t count = 1;

	*error = backend->devices ? backend->devices(&count) : 0;
	return *error ? 1 : count;
}

static void describe(const struct weir_backend_ops *backend, uint32_t row, int error, struct weir_device *device)
{
	device->error = error;
	if (error || !backend->devices)
		snprintf(device->name, sizeof(device->name), "%s", backend->name);
	else
		snprintf(device->name, sizeof(device->name), "%s:%u", backend->name, row);
	if (error)
		snprintf(device->why, sizeof(device->why), "%.255s", weir_last_error());
}

int weir_device_at(uint32_t index, struct weir_device *out)
{
	struct weir_device device = { .size = sizeof(device) };

	for (size_t i = 0; weir_backends[i]; i++) {
		int error;
		uint32_t rows = row_count(weir_backends[i], &error);

		if (index < rows) {
			describe(weir_backends[i], index, error, &device);
			return weir_result_give(out, &device, sizeof(device), "weir_device_at");
		}
		index -= rows;
	}
	return -ENOENT;
}
