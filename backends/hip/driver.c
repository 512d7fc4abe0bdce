/* SPDX-License-Identifier: BSD-3-Clause */
/* Why there is no device: the run time says no more than that there is none. */
#include <errno.h>
#include <unistd.h>

#include "../../runtime/backend/error.h"
#include "../gpu/gpu.h"

#define DRIVER "/dev/kfd"

int gpu_no_device(gpuError_t code)
{
	if (access(DRIVER, F_OK))
		return weir_fail(ENODEV,
				 "no HIP device: the amdgpu driver is not loaded here (there is no " DRIVER
				 ")");
	if (access(DRIVER, R_OK | W_OK))
		return weir_fail(ENODEV, "no HIP device: " DRIVER
					 " may not be used by this user; join the group that owns it");
	return weir_fail(ENODEV, "no HIP device: the run time shows none to this process (%s)",
			 hipGetErrorName(code ? code : hipErrorNoDevice));
}
