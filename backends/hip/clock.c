/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"

uint32_t hip_clock_khz(const struct gpu_backend *backend)
{
	int khz = 0;

	if (hipDeviceGetAttribute(&khz, hipDeviceAttributeWallClockRate, backend->device) != hipSuccess)
		(void)hipGetLastError();
	return khz > 0 ? (uint32_t)khz : 0;
}
