/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked while configuring: are the run time, the driver's stand-in for linking and the headers there? */
#include "../on_cuda.h"

int main(void)
{
	hipModule_t module;
	int count;

	return hipGetDeviceCount(&count) || hipModuleLoadData(&module, NULL);
}
