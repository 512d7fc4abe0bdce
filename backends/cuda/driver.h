/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.h: functions of CUDA's driver, to which nothing is linked. */
#ifndef WEIR_CUDA_DRIVER_H
#define WEIR_CUDA_DRIVER_H

/** cuda_driver_entry() - a function of the driver's, as of its version @version; NULL if it has none */
void *cuda_driver_entry(const char *name, unsigned version);

#endif
