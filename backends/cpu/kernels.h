/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.h: kernels by name; WEIR_KERNEL() registers them before main(). */
#ifndef WEIR_CPU_KERNELS_H
#define WEIR_CPU_KERNELS_H

#include <stddef.h>

struct cpu_kernel {
	const char *name;
	void (*entry)(void *args);
	size_t args_bytes;
	struct cpu_kernel *next;
};

/** cpu_kernel_find() - NULL if no kernel of that name was linked in */
const struct cpu_kernel *cpu_kernel_find(const char *name);

#endif
