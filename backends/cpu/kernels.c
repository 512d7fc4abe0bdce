/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/port.h>

#include "kernels.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct cpu_kernel *kernels;

void weir_cpu_register_kernel(const char *name, void (*entry)(void *), size_t args_bytes)
{
	struct cpu_kernel *kernel = malloc(sizeof(*kernel));

	if (!kernel) {
		fprintf(stderr, "weir: out of memory registering kernel %s\n", name);
		abort();
	}
	pthread_mutex_lock(&mutex);
	*kernel = (struct cpu_kernel){ name, entry, args_bytes, kernels };
	kernels = kernel;
	pthread_mutex_unlock(&mutex);
}

const struct cpu_kernel *cpu_kernel_find(const char *name)
{
	struct cpu_kernel *kernel;

	pthread_mutex_lock(&mutex);
	for (kernel = kernels; kernel && strcmp(kernel->name, name); kernel = kernel->next)
		;
	pthread_mutex_unlock(&mutex);
	return kernel;
}

/* The list outlives every context; let go of it when the library goes. */
__attribute__((destructor)) static void forget_kernels(void)
{
	while (kernels) {
		struct cpu_kernel *next = kernels->next;

		free(kernels);
		kernels = next;
	}
}
