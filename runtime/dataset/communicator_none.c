/* SPDX-License-Identifier: BSD-3-Clause */
/* communicator_none.c: in builds without MPI. */
#include "communicator.h"

#include <errno.h>

#include "backend/error.h"

int weir_dataset_communicator_mpi(struct weir_dataset_communicator *communicator)
{
	(void)communicator;
	return weir_fail(ENOTSUP, "dataset: this build has no MPI; install libopenmpi-dev or libmpich-dev "
				  "and build anew, or run one process");
}
