/* SPDX-License-Identifier: BSD-3-Clause */
/* In a build without libdrm nothing is added to what the topology shows. */
#include "gpus.h"

void weir_gpus_drivers(struct weir_gpus *gpus)
{
	(void)gpus;
}
