/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled while configuring: does the run time know the rate of the device's counter? */
#include <hip/hip_runtime_api.h>

int main(void)
{
	int khz;

	return hipDeviceGetAttribute(&khz, hipDeviceAttributeWallClockRate, 0);
}
