/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.h: kernels by name; WEIR_KERNEL() registers them before main(). */
#ifndef WEIR_CUDA_KERNELS_H
#define WEIR_CUDA_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct cuda_kernel - one kernel linked into this process
 * @name: for weir_launch()
 * @entry: the host's stand-in, by which the run time knows the kernel
 * @args_bytes: size of its argument structure
 * @block_lanes: most lanes per block it was built for
 * @next: one registered earlier
 */
struct cuda_kernel {
	const char *name;
	const void *entry;
	size_t args_bytes;
	uint32_t block_lanes;
	const struct cuda_kernel *next;
};

/** weir_cuda_register_kernel() - what <weir/port/cuda.h> declares, for C */
__attribute__((visibility("default"))) void weir_cuda_register_kernel(const char *name, const void *entry,
								       size_t args_bytes, uint32_t block_lanes);

/** cuda_kernels() - all of them, the latest first; NULL if there is none */
const struct cuda_kernel *cuda_kernels(void);

/** cuda_kernel_find() - NULL if no kernel of that name was linked in */
const struct cuda_kernel *cuda_kernel_find(const char *name);

#endif
