/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked while configuring: is the run time one that the host side can do with? */
#include <hip/hip_runtime_api.h>

int main(void)
{
	uint32_t mask = 1;
	hipStream_t stream;
	void *memory;

	return hipHostMalloc(&memory, 4096, hipHostMallocCoherent) ||
	       hipExtStreamCreateWithCUMask(&stream, 1, &mask) || hipStreamWriteValue32(stream, memory, 1, 0);
}
