/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WEIR_OPENCL_TESTS_ADD_H
#define WEIR_OPENCL_TESTS_ADD_H

#include <weir/port.h>

/** struct opencl_add_args - the kernel opencl_add: each lane adds its number + 1 to a word */
struct opencl_add_args {
	weir_addr sum;
};

#endif
