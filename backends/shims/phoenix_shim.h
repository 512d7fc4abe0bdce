/* SPDX-License-Identifier: BSD-3-Clause */
/* phoenix_shim.h: what phoenix.c and phoenix_batch.c have in common. */
#ifndef WEIR_PHOENIX_SHIM_H
#define WEIR_PHOENIX_SHIM_H

#include "phoenix.h"
#include "shim.h"

enum { PHOENIX_DEVICES = 16 };

#pragma GCC visibility push(hidden)

/** phoenix_device() - NULL, and errno: no such device, or not open */
struct shim *phoenix_device(int number);

#pragma GCC visibility pop

#endif
