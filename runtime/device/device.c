/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of devices: each backend's, in the backends' order. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../backend/backend.h"
#include "context.h"
#include "../backend/error.h"

/* The rows of a backend: its devices, or one that says why it has none. */
static uint32_t row_count(const struct weir_backend_ops *ops, int *error)
{
	uint32_t count = 1;

	*error = !ops ? -ENODEV : ops->devices ? ops->devices(&count) : 0;
	return *error ? 1 : count;
}

static void describe(const char *name, bool several, uint32_t row, int error, struct weir_device *device)
{
	device->error = error;
	if (error || !several)
		snprintf(device->name, sizeof(device->name), "%s", name);
	else
		snprintf(device->name, sizeof(device->name), "%s:%u", name, row);
	if (error)
		snprintf(device->why, sizeof(device->why), "%.255s", weir_last_error());
}

/* Device @index of all. Return: 0; -ENOENT behind the last one. */
static int find_row(uint32_t index, struct weir_device *device)
{
	const struct weir_backend_ops *ops;
	const char *name;

	for (size_t i = 0; (name = weir_backend_at(i, &ops)); i++) {
		int error;
		uint32_t rows = row_count(ops, &error);

		if (index < rows) {
			describe(name, ops && ops->devices, index, error, device);
			return 0;
		}
		index -= rows;
	}
	return -ENOENT;
}

int weir_device_at(uint32_t index, struct weir_device *out)
{
	struct weir_device device = { .size = sizeof(device) };
	char before[1024];
	int given = weir_given(out, "weir_device_at", "device");
	int error;

	if (given)
		return given;
	snprintf(before, sizeof(before), "%s", weir_last_error());
	error = find_row(index, &device);
	(void)weir_fail(0, "%s", before); /* a backend without a device says so in its row */
	return error ? error : weir_result_give(out, &device, sizeof(device), "weir_device_at");
}
