/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume/lanes.h: what lanes need to send commands to the engines of a volume by themselves.
 *
 * Owns: queue pairs to engines, each engine a storage of its own behind the volume's, and struct weir_placed,
 * which the volume's disk leads to. Lanes that cannot, or were refused, have the volume's own controller.
 */
#ifndef WEIR_VOLUME_LANES_H
#define WEIR_VOLUME_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/core/volume/placement.h>
#include <weir/weir.h>

struct weir_lanes;

/**
 * struct weir_lanes_options - a volume for lanes
 * @uris: of engines, @engines of them
 * @vid, @client, @unit_log2, @replicas: as of struct nvme_volume
 * @queues: queue pairs to each engine
 * @depth: of each, a power of two
 */
struct weir_lanes_options {
	const char *const *uris;
	unsigned engines;
	uint16_t vid;
	uint16_t client;
	uint32_t unit_log2;
	uint32_t replicas;
	uint32_t queues;
	uint32_t depth;
};

/**
 * weir_lanes_open() - open queue pairs to engines, and have lanes of @storage know of them
 * @storage: the volume's, on which no lane runs yet
 *
 * An engine that is not reached, or takes less by one command than the volume does, is left out:
 * weir_lanes_has(). Until weir_lanes_map() lanes place nothing.
 * Return: 0 or a negative errno with a sentence.
 */
int weir_lanes_open(struct weir_storage *storage, const struct weir_lanes_options *options,
		    struct weir_lanes **out);
/** weir_lanes_has() - whether engine @engine of the options was reached */
bool weir_lanes_has(const struct weir_lanes *lanes, unsigned engine);
/** weir_lanes_part() - the storage that engine @engine is; NULL: it was not reached */
struct weir_storage *weir_lanes_part(const struct weir_lanes *lanes, unsigned engine);
/**
 * weir_lanes_map() - have lanes go by a map from now on; one thread at a time
 * @epoch: its epoch
 * @table: WEIR_PLACEMENT_GROUPS words: of each replica the engine's number in the options,
 * WEIR_PLACED_HIDDEN or WEIR_PLACED_NOBODY
 *
 * Return: 0, or a negative errno with a sentence: lanes have no map.
 */
int weir_lanes_map(struct weir_lanes *lanes, uint32_t epoch, const uint32_t *table);
/** weir_lanes_no_map() - have lanes leave all commands to the host until weir_lanes_map() */
void weir_lanes_no_map(struct weir_lanes *lanes);
/** weir_lanes_lease() - have lanes write under lease @epoch; 0: they leave writes to the host */
void weir_lanes_lease(struct weir_lanes *lanes, uint32_t epoch);
/** weir_lanes_refused() - commands that engines refused; *@unequal: writes that not all engines may have,
 * those included that no lane has waited for to the end */
uint64_t weir_lanes_refused(const struct weir_lanes *lanes, uint64_t *unequal);
/** weir_lanes_close() - NULL-safe; no lane of the volume runs. What lanes wrote is durable when the volume's
 * own controller has been shut down */
void weir_lanes_close(struct weir_lanes *lanes);

#endif
