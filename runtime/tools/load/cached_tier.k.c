/* SPDX-License-Identifier: BSD-3-Clause */
/* The load of cached.k.c through caches with a tier in host memory: kernels with _tier behind their names. */
#ifndef WEIR_TIER
#define WEIR_TIER
#endif
#define PERF_CACHED_KERNEL(name, args_type) WEIR_KERNEL(name##_tier, args_type)
#include "cached.k.c"
