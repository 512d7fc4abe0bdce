/* SPDX-License-Identifier: BSD-3-Clause */
/* The load of load.k.c by lanes that leave reaping to a service: kernels with _service behind their names. */
#define WEIR_SERVICE_ONLY
#define PERF_LOAD_KERNEL(name, args_type) WEIR_KERNEL(name##_service, args_type)
#include "load.k.c"
