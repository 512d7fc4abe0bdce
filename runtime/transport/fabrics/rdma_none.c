/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_none.c: a build without librdmacm and libibverbs. */
#include "nvmf.h"

const struct nvmf_wire *const nvmf_wire_rdma;
