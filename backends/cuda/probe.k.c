/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled while configuring, to learn whether kernels can be compiled here at all. */
#include <weir/port.h>

struct weir_probe_args {
	weir_addr lane;
};

WEIR_KERNEL(weir_probe, struct weir_probe_args)
{
	*weir_at(args->lane, u32, 0) = weir_lane();
}
