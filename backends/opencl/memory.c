/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the OpenCL backend.
 *
 * Fine (OPENCL_MEMORY_FINE): all of it is fine-grained shared virtual memory, whatever it is for. Lanes and
 * host threads see it at one address, all the time.
 *
 * Coarse (OPENCL_MEMORY_COARSE): what lanes and host threads both see is a buffer in host memory, mapped when
 * it is allocated and unmapped when it is freed; lanes use the mapped address, and no kernel is given the
 * buffer. Everything else is coarse-grained shared virtual memory, which the host reaches by copies in a
 * queue of their own: they go on while kernels run.
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

void *opencl_memory_shared(struct opencl_backend *backend, size_t bytes, cl_uint align)
{
	cl_svm_mem_flags fine =
		backend->memory == OPENCL_MEMORY_FINE ? CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS : 0;

	void *memory;

	/* One at a time: of two threads that allocate in one context, NVIDIA's OpenCL 3.0 (driver 580) gives
	 * one nothing now and then. */
	pthread_mutex_lock(&backend->device->memory_mutex);
	memory = clSVMAlloc(backend->device->context, CL_MEM_READ_WRITE | fine, bytes, align);
	pthread_mutex_unlock(&backend->device->memory_mutex);
	return memory;
}

void opencl_memory_unshare(struct opencl_backend *backend, void *memory)
{
	pthread_mutex_lock(&backend->device->memory_mutex);
	clSVMFree(backend->device->context, memory);
	pthread_mutex_unlock(&backend->device->memory_mutex);
}

static int no_memory(const struct opencl_backend *backend, size_t bytes)
{
	cl_ulong most = 0;

	(void)clGetDeviceInfo(backend->device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(most), &most, NULL);
	return weir_fail(ENOMEM,
			 "cannot allocate %zu bytes on opencl:%u, which gives %llu in one piece at most",
			 bytes, backend->device->number, (unsigned long long)most);
}

static void free_block(struct opencl_backend *backend, const struct opencl_block *block)
{
	if (!block->buffer) {
		opencl_memory_unshare(backend, block->whole);
		return;
	}
	if (clEnqueueUnmapMemObject(backend->copies, block->buffer, block->whole, 0, NULL, NULL) ==
	    CL_SUCCESS)
		(void)clFinish(backend->copies);
	(void)clReleaseMemObject(block->buffer);
}

/* Host memory that stays mapped. */
static int map(struct opencl_backend *backend, struct opencl_block *block)
{
	size_t whole = block->bytes + NVME_PAGE_BYTES;
	cl_int code = CL_SUCCESS;

	block->buffer = clCreateBuffer(backend->device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
				       whole, NULL, &code);
	if (!code)
		block->whole = clEnqueueMapBuffer(backend->copies, block->buffer, CL_TRUE,
						  CL_MAP_READ | CL_MAP_WRITE, 0, whole, 0, NULL, NULL, &code);
	if (code && block->buffer)
		(void)clReleaseMemObject(block->buffer);
	if (code)
		return opencl_fail(code, "cannot allocate %zu bytes of host memory that opencl:%u sees",
				   block->bytes, backend->device->number);
	block->address = page_of(block->whole);
	memset(pointer(block->address), 0, block->bytes);
	return 0;
}

/* Shared virtual memory, zeroed by whoever reaches it. */
static int share(struct opencl_backend *backend, struct opencl_block *block)
{
	const unsigned char zero = 0;
	cl_int code = CL_SUCCESS;

	block->whole = opencl_memory_shared(backend, block->bytes + NVME_PAGE_BYTES, 0);
	if (!block->whole)
		return no_memory(backend, block->bytes);
	block->address = page_of(block->whole);
	if (backend->memory == OPENCL_MEMORY_FINE) {
		memset(pointer(block->address), 0, block->bytes);
		return 0;
	}
	code = clEnqueueSVMMemFill(backend->copies, pointer(block->address), &zero, sizeof(zero),
				   block->bytes, 0, NULL, NULL);
	if (!code)
		code = clFinish(backend->copies);
	if (!code)
		return 0;
	opencl_memory_unshare(backend, block->whole);
	return opencl_fail(code, "cannot clear %zu bytes on opencl:%u", block->bytes,
			   backend->device->number);
}

static int note(struct opencl_backend *backend, const struct opencl_block *block)
{
	struct opencl_block *blocks;

	pthread_mutex_lock(&backend->mutex);
	blocks = realloc(backend->blocks, (backend->block_count + 1) * sizeof(*blocks));
	if (blocks) {
		backend->blocks = blocks;
		blocks[backend->block_count++] = *block;
		backend->blocks_changed++;
	}
	pthread_mutex_unlock(&backend->mutex);
	return blocks ? 0 : weir_fail(ENOMEM, "no memory to note an allocation");
}

int opencl_allocate(struct weir_backend *base, size_t bytes, enum weir_memory kind, void **host,
		    uint64_t *device)
{
	struct opencl_backend *backend = opencl_of(base);
	struct opencl_block block = { .bytes = bytes };
	bool mapped = backend->memory == OPENCL_MEMORY_COARSE && kind == WEIR_MEMORY_HOST;
	int error = mapped ? map(backend, &block) : share(backend, &block);

	*host = NULL;
	if (error)
		return error;
	error = note(backend, &block);
	if (error) {
		free_block(backend, &block);
		return error;
	}
	*device = block.address;
	if (mapped || backend->memory == OPENCL_MEMORY_FINE)
		*host = pointer(block.address);
	return 0;
}

void opencl_release(struct weir_backend *base, uint64_t device, size_t bytes, enum weir_memory kind)
{
	struct opencl_backend *backend = opencl_of(base);
	struct opencl_block gone = { .whole = NULL };

	(void)bytes;
	(void)kind;
	pthread_mutex_lock(&backend->mutex);
	for (size_t i = 0; i < backend->block_count && !gone.whole; i++)
		if (backend->blocks[i].address == device) {
			gone = backend->blocks[i];
			backend->blocks[i] = backend->blocks[--backend->block_count];
			backend->blocks_changed++;
		}
	pthread_mutex_unlock(&backend->mutex);
	if (gone.whole)
		free_block(backend, &gone);
}

/* Does the host see what lies there? */
static bool seen(struct opencl_backend *backend, uint64_t address)
{
	bool found = backend->memory == OPENCL_MEMORY_FINE;

	pthread_mutex_lock(&backend->mutex);
	for (size_t i = 0; i < backend->block_count && !found; i++)
		found = backend->blocks[i].buffer && address >= backend->blocks[i].address &&
			address - backend->blocks[i].address < backend->blocks[i].bytes;
	pthread_mutex_unlock(&backend->mutex);
	return found;
}

/*
 * A processor copies by the threads that run lanes, and all of these lanes may be waiting for just this
 * word (a watchdog's). Its memory is the host's own, which then stores it.
 */
static bool is_word_of_system(const struct opencl_backend *backend, size_t bytes)
{
	return bytes <= sizeof(uint64_t) && opencl_device_is_system(&backend->device->record);
}

static int copy(struct opencl_backend *backend, uint64_t device, void *to, const void *from, size_t bytes)
{
	cl_int code = CL_SUCCESS;

	if (is_word_of_system(backend, bytes) || seen(backend, device))
		memcpy(to, from, bytes);
	else if (bytes)
		code = clEnqueueSVMMemcpy(backend->copies, CL_TRUE, to, from, bytes, 0, NULL, NULL);
	return code ? opencl_fail(code, "cannot copy %zu bytes from %p to %p on opencl:%u", bytes, from, to,
				  backend->device->number)
		    : 0;
}

int opencl_h2d(struct weir_backend *base, uint64_t device, const void *host, size_t bytes)
{
	return copy(opencl_of(base), device, pointer(device), host, bytes);
}

int opencl_d2h(struct weir_backend *base, void *host, uint64_t device, size_t bytes)
{
	return copy(opencl_of(base), device, host, pointer(device), bytes);
}

/* Buffers that are mapped cannot be told of: only shared virtual memory has addresses by OpenCL's lights. */
static cl_int notify(struct opencl_backend *backend, cl_kernel kernel)
{
	void **wholes = malloc((backend->block_count + 1) * sizeof(*wholes));
	cl_int code = CL_SUCCESS;
	size_t count = 0;

	if (!wholes)
		return CL_OUT_OF_HOST_MEMORY;
	for (size_t i = 0; i < backend->block_count; i++)
		if (!backend->blocks[i].buffer)
			wholes[count++] = backend->blocks[i].whole;
	if (count)
		code = clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, count * sizeof(*wholes),
					   wholes);
	free(wholes);
	return code;
}

cl_int opencl_memory_notify(struct opencl_backend *backend, struct opencl_kernel *kernel)
{
	cl_int code = CL_SUCCESS;

	pthread_mutex_lock(&backend->mutex); /* threads that read files allocate meanwhile */
	if (kernel->blocks_reported != backend->blocks_changed)
		code = notify(backend, kernel->kernel);
	if (!code)
		kernel->blocks_reported = backend->blocks_changed;
	pthread_mutex_unlock(&backend->mutex);
	return code;
}

void opencl_memory_end(struct opencl_backend *backend)
{
	while (backend->block_count)
		free_block(backend, &backend->blocks[--backend->block_count]);
	free(backend->blocks);
}
