/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume/placement.h: the table of a map, which core/volume/placement.h looks engines up in.
 *
 * Owns: which engines a group has. The same map gives the same table on every machine: all of the arithmetic
 * is on integers. Source: weighted rendezvous, Thaler and Ravishankar 1998; the draw of straw2 (CRUSH).
 */
#ifndef WEIR_RUNTIME_VOLUME_PLACEMENT_H
#define WEIR_RUNTIME_VOLUME_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/core/volume/placement.h>

/**
 * weir_placement_build() - fill the table of a map
 * @map: engines that are OUT, or have weight 0, get no groups
 * @table: out: WEIR_PLACEMENT_GROUPS words; a byte is an index in @map->engines, replica 0 in the lowest,
 * or WEIR_PLACEMENT_NONE
 *
 * An engine keeps its groups whatever becomes of others: by a change of one engine only the groups that it
 * gets or had change, and the engines that stay keep their order. Replicas of a group are in different
 * domains as far as there are; then domains are used again.
 *
 * Return: 0 or -EINVAL with a sentence.
 */
int weir_placement_build(const struct nvme_volume_map *map, uint32_t *table);
/** weir_placement_is_same() - whether two maps give the same table: it need not be filled again */
bool weir_placement_is_same(const struct nvme_volume_map *a, const struct nvme_volume_map *b);

#endif
