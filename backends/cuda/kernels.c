/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct cuda_kernel *kernels;

void weir_cuda_register_kernel(const char *name, const void *entry, size_t args_bytes, uint32_t block_lanes)
{
	struct cuda_kernel *kernel = malloc(sizeof(*kernel));

	if (!kernel) {
		fprintf(stderr, "weir: out of memory registering kernel %s\n", name);
		abort();
	}
	pthread_mutex_lock(&mutex);
	*kernel = (struct cuda_kernel){ name, entry, args_bytes, block_lanes, kernels };
	kernels = kernel;
	pthread_mutex_unlock(&mutex);
}

const struct cuda_kernel *cuda_kernels(void)
{
	const struct cuda_kernel *first;

	pthread_mutex_lock(&mutex);
	first = kernels;
	pthread_mutex_unlock(&mutex);
	return first;
}

const struct cuda_kernel *cuda_kernel_find(const char *name)
{
	const struct cuda_kernel *kernel = cuda_kernels();

	while (kernel && strcmp(kernel->name, name))
		kernel = kernel->next;
	return kernel;
}

/* The list outlives every context; let go of it when the library goes. */
__attribute__((destructor)) static void forget_kernels(void)
{
	while (kernels) {
		struct cuda_kernel *next = (struct cuda_kernel *)(uintptr_t)kernels->next;

		free(kernels);
		kernels = next;
	}
}
