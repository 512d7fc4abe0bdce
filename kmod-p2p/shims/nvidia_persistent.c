// SPDX-License-Identifier: GPL-2.0-only
#include <linux/types.h> /* the next one uses its types, and includes nothing */

#include <nv-p2p.h>

#include "nvidia.h"

int weir_nvidia_persistent_pin(u64 address, u64 bytes, struct nvidia_p2p_page_table **table)
{
	return nvidia_p2p_get_pages_persistent(address, bytes, table, 0);
}

int weir_nvidia_persistent_unpin(u64 address, struct nvidia_p2p_page_table *table)
{
	return nvidia_p2p_put_pages_persistent(address, table, 0);
}
