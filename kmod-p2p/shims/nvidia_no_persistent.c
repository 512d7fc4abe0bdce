// SPDX-License-Identifier: GPL-2.0-only
#include <linux/errno.h>

#include "nvidia.h"

int weir_nvidia_persistent_pin(u64 address, u64 bytes, struct nvidia_p2p_page_table **table)
{
	return -EOPNOTSUPP;
}

int weir_nvidia_persistent_unpin(u64 address, struct nvidia_p2p_page_table *table)
{
	return -EOPNOTSUPP;
}
