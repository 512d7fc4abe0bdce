/* SPDX-License-Identifier: BSD-3-Clause */
/* communicator.c: a job of one process, and the choice between it and MPI. */
#include "communicator.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/error.h"
#include "mounted.h"

static int gather_alone(struct weir_dataset_communicator *communicator, const void *mine, size_t bytes,
			void **all, size_t *counts)
{
	(void)communicator;
	*all = malloc(bytes ? bytes : 1);
	if (!*all)
		return weir_fail(ENOMEM, "dataset: no memory to gather %zu bytes", bytes);
	if (bytes)
		memcpy(*all, mine, bytes);
	counts[0] = bytes;
	return 0;
}

static void close_alone(struct weir_dataset_communicator *communicator)
{
	free(communicator);
}

void weir_dataset_communicator_alone(struct weir_dataset_communicator *communicator)
{
	*communicator = (struct weir_dataset_communicator){
		.size = sizeof(*communicator), .ranks = 1, .gather = gather_alone, .close = close_alone
	};
}

/* What mpirun of Open MPI, MPICH (Hydra) and Slurm set in the environment. */
static bool under_mpirun(void)
{
	return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE") || getenv("PMIX_RANK");
}

int weir_dataset_communicator_open(const char *name, struct weir_dataset_communicator **out)
{
	struct weir_dataset_communicator *communicator;
	bool automatic, mpi;

	if (!name || !out)
		return weir_fail(EINVAL, "weir_dataset_communicator_open: it needs a name, `single`, `mpi` "
					 "or `auto`, and where to put it");
	automatic = strcmp(name, "auto") == 0;
	mpi = strcmp(name, "mpi") == 0 || (automatic && under_mpirun());
	if (!mpi && !automatic && strcmp(name, "single") != 0)
		return weir_fail(EINVAL,
				 "weir_dataset_communicator_open: there is no '%s'; name single, mpi or auto",
				 name);
	communicator = calloc(1, sizeof(*communicator));
	if (!communicator)
		return weir_fail(ENOMEM, "dataset: no memory for a communicator");
	weir_dataset_communicator_alone(communicator);
	if (mpi) {
		int error = weir_dataset_communicator_mpi(communicator);

		if (error) {
			free(communicator);
			return error;
		}
	}
	*out = communicator;
	return 0;
}
