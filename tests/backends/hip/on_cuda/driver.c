/* SPDX-License-Identifier: BSD-3-Clause */
/* Why there is no device, where the backend runs on CUDA. */
#include <errno.h>
#include <unistd.h>

#include "../../../../runtime/backend/error.h"
#include "../../../../backends/gpu/gpu.h"

#define DRIVER "/dev/nvidiactl"

int gpu_no_device(hipError_t code)
{
	if (access(DRIVER, F_OK))
		return weir_fail(
			ENODEV,
			"no HIP device: this build has HIP on CUDA, and the NVIDIA driver is not loaded here "
			"(there is no " DRIVER ")");
	return weir_fail(
		ENODEV,
		"no HIP device: this build has HIP on CUDA, which shows none to this process: %s (%s)",
		hipGetErrorString(code ? code : hipErrorNoDevice),
		hipGetErrorName(code ? code : hipErrorNoDevice));
}
