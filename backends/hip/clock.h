/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h: how fast the counter of a device runs: clock.c, or clock_assumed.c where the run time cannot
 * tell.
 */
#ifndef WEIR_HIP_CLOCK_H
#define WEIR_HIP_CLOCK_H

#include "../gpu/gpu.h"

/** hip_clock_khz() - rate of the device's constant-rate counter; 0: not known, so the port's own is right */
uint32_t hip_clock_khz(const struct gpu_backend *backend);

#endif
