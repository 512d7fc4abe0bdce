/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/volume/placement.h: from a block of a volume to the engines that have it.
 *
 * Owns: the hash of a block's stripe unit and the look-up in a map's table. Lanes, clients, engines and the
 * daemon go the same way: whoever has the same map finds the same engines. Who fills the table:
 * runtime/volume/placement.h. Source: GNStor, section 4.2; weighted rendezvous is straw2 of CRUSH.
 */
#ifndef WEIR_CORE_PLACEMENT_H
#define WEIR_CORE_PLACEMENT_H

#include <weir/core/mix.h>
#include <weir/nvme_volume.h>

enum {
	WEIR_PLACEMENT_GROUPS = 65536,
	WEIR_PLACEMENT_NONE = 0xff, /* fewer engines than replicas */
};

/**
 * weir_placement_group() - the group of block @vba of volume @vid
 * @unit_log2: the volume's
 *
 * The upper 16 bits of a mixer.
 */
WEIR_FN u32 weir_placement_group(u32 vid, u64 vba, u32 unit_log2)
{
	u64 state = (u64)vid << 48 ^ vba >> unit_log2;

	return (u32)(weir_mix_next(&state) >> 48);
}

/**
 * weir_placement_engine() - index in the map of replica @replica, 0 to 3, of group @group
 * @table: device address of a map's table, a word for each group, replica 0 in its lowest byte
 *
 * Relaxed: a table never changes; a new map has a new one.
 */
WEIR_FN u32 weir_placement_engine(weir_addr table, u32 group, u32 replica)
{
	return (*weir_at(table, u32, group) >> (8 * replica)) & 0xff;
}

#endif
