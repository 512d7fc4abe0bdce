/* SPDX-License-Identifier: BSD-3-Clause */
#include "hip.h"

uint32_t hip_clock_khz(const struct hip_backend *backend)
{
	int khz = 0;

	if (hipDeviceGetAttribute(&khz, hipDeviceAttributeWallClockRate, backend->device) != hipSuccess)
		(void)hipGetLastError();
	return khz > 0 ? (uint32_t)khz : 0;
}
