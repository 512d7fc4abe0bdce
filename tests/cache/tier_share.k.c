/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of share.k.c for caches that have a tier in host memory, too: with _tier behind their names. */
#ifndef WEIR_TIER
#define WEIR_TIER
#endif
#define TEST_SHARE_KERNEL(name, args_type) WEIR_KERNEL(name##_tier, args_type)
#include "../share/share.k.c"
