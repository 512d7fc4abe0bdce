/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the OpenCL backend: fine-grained shared virtual memory, whatever it is for. Lanes and
 * host threads see it at one address, all the time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/nvme.h>

#include "opencl.h"

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

/* Implementations align to their largest type, which is no page. */
static uint64_t page_of(const void *memory)
{
	return ((uint64_t)(uintptr_t)memory + NVME_PAGE_BYTES - 1) & ~(uint64_t)(NVME_PAGE_BYTES - 1);
}

int opencl_allocate(struct weir_backend *base, size_t bytes, enum weir_memory kind, void **host, uint64_t *device)
{
	struct opencl_backend *backend = opencl_of(base);
	struct opencl_block *blocks = realloc(backend->blocks, (backend->block_count + 1) * sizeof(*blocks));
	void *whole;

	(void)kind;
	if (!blocks)
		return weir_fail(ENOMEM, "no memory to note an allocation");
	backend->blocks = blocks;
	whole = clSVMAlloc(backend->device->context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS,
			   bytes + NVME_PAGE_BYTES, 0);
	if (!whole) {
		cl_ulong most = 0;

		(void)clGetDeviceInfo(backend->device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(most), &most, NULL);
		return weir_fail(ENOMEM, "cannot allocate %zu bytes on opencl:%u, which gives %llu in one piece at most", bytes,
				 backend->device->number, (unsigned long long)most);
	}
	blocks[backend->block_count++] = (struct opencl_block){ whole, page_of(whole) };
	backend->blocks_changed++;
	*device = page_of(whole);
	*host = memset(pointer(*device), 0, bytes);
	return 0;
}

void opencl_release(struct weir_backend *base, uint64_t device, size_t bytes, enum weir_memory kind)
{
	struct opencl_backend *backend = opencl_of(base);

	(void)bytes;
	(void)kind;
	for (size_t i = 0; i < backend->block_count; i++)
		if (backend->blocks[i].address == device) {
			clSVMFree(backend->device->context, backend->blocks[i].whole);
			backend->blocks[i] = backend->blocks[--backend->block_count];
			backend->blocks_changed++;
			return;
		}
}

int opencl_copy_in(struct weir_backend *base, uint64_t device, const void *host, size_t bytes)
{
	(void)base;
	memcpy(pointer(device), host, bytes);
	return 0;
}

int opencl_copy_out(struct weir_backend *base, void *host, uint64_t device, size_t bytes)
{
	(void)base;
	memcpy(host, pointer(device), bytes);
	return 0;
}

cl_int opencl_memory_tell(struct opencl_backend *backend, cl_kernel kernel)
{
	void **wholes = malloc((backend->block_count + 1) * sizeof(*wholes));
	cl_int code = CL_SUCCESS;

	if (!wholes)
		return CL_OUT_OF_HOST_MEMORY;
	for (size_t i = 0; i < backend->block_count; i++)
		wholes[i] = backend->blocks[i].whole;
	if (backend->block_count)
		code = clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, backend->block_count * sizeof(*wholes), wholes);
	free(wholes);
	return code;
}

void opencl_memory_end(struct opencl_backend *backend)
{
	while (backend->block_count)
		clSVMFree(backend->device->context, backend->blocks[--backend->block_count].whole);
	free(backend->blocks);
}
