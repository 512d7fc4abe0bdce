/* SPDX-License-Identifier: BSD-3-Clause */
/* histogram.h: what the host hands to the kernel. */
#include <weir/abi.h>

struct histogram_args {
	struct weir_array values; /* the file, as an array of u32 */
	weir_addr bins;           /* 256 counters in device memory */
};
