/* SPDX-License-Identifier: BSD-3-Clause */
/* What the system's graphics drivers know of GPUs, by libdrm; opens no device. */
#include <stdio.h>
#include <stdlib.h>

#include <xf86drm.h>

#include "gpus.h"

static void add(struct weir_gpus *gpus, const drmDevice *device)
{
	const drmPciBusInfo *bus = device->businfo.pci;
	struct weir_gpu_location *gpu =
		weir_gpus_add(gpus, weir_pci_make(bus->domain, bus->bus, bus->dev, bus->func));
	int kind = device->available_nodes & 1 << DRM_NODE_RENDER ? DRM_NODE_RENDER : DRM_NODE_PRIMARY;

	if (!gpu)
		return;
	if (device->available_nodes & 1 << kind)
		snprintf(gpu->node, sizeof(gpu->node), "%s", device->nodes[kind]);
	if (!gpu->vendor_id) { /* the topology does not show it */
		gpu->vendor_id = device->deviceinfo.pci->vendor_id;
		gpu->device_id = device->deviceinfo.pci->device_id;
	}
}

void weir_gpus_drivers(struct weir_gpus *gpus)
{
	drmDevicePtr devices[WEIR_MOST_GPUS];
	int count = drmGetDevices2(0, devices, WEIR_MOST_GPUS);

	if (count > WEIR_MOST_GPUS) /* that many there are, not that many were given */
		count = WEIR_MOST_GPUS;
	if (count <= 0)
		return; /* no driver, or not for this process */
	for (int i = 0; i < count; i++)
		if (devices[i]->bustype == DRM_BUS_PCI)
			add(gpus, devices[i]);
	drmFreeDevices(devices, count);
}
