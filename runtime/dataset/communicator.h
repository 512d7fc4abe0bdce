/* SPDX-License-Identifier: BSD-3-Clause */
/* communicator.h: the communicator of MPI; communicator_mpi.c has it, communicator_none.c stands for it in
 * builds without. */
#ifndef WEIR_DATASET_COMMUNICATOR_H
#define WEIR_DATASET_COMMUNICATOR_H

#include <weir/dataset.h>

/** weir_dataset_communicator_mpi() - make @communicator that of MPI_COMM_WORLD. Return: 0; -ENOTSUP, -EIO
 * with a sentence */
int weir_dataset_communicator_mpi(struct weir_dataset_communicator *communicator);

#endif
