/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_none.c: a build without librdmacm and libibverbs. */
#include <errno.h>

#include "../backend/error.h"
#include "parts.h"

int target_rdma_listen(const char *text, const struct addrinfo *info, struct target_listener *listener)
{
	(void)info;
	(void)listener;
	return weir_fail(
		ENOTSUP,
		"cannot listen at %s: this build has no RDMA transport; build weir with librdmacm-dev and "
		"libibverbs-dev, or write tcp://",
		text);
}

void target_rdma_listen_end(struct target_listener *listener)
{
	(void)listener;
}

void target_rdma_accept(struct weir_target *target, u16 index)
{
	(void)target;
	(void)index;
}
