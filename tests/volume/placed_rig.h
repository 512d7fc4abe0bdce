/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * placed_rig.h: engines in this process, and a volume's own controller that is a plain storage here, so that
 * whatever lanes leave to it is counted.
 */
#ifndef WEIR_TESTS_PLACED_RIG_H
#define WEIR_TESTS_PLACED_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "volume/lanes.h"

#include "placed.h"

enum {
	ENGINES = 3,
	BLOCKS = 1024,
	UNIT_LOG2 = 2,
	VID = 7,
	CLIENT = 3,
	LEASE = 5,
	EPOCH = 9,
	LANES = 64,
	MOST_BLOCKS = 32, /* of a command */
};

/**
 * struct fixture - @volume: the plain storage; @page: for admin commands' data
 * @unit_log2, @transfer_bytes: 0: the usual ones
 * @served: lanes take the volume for one with a service
 * @uri: of the plain storage, @engines: of each engine; NULL: without faults
 */
struct fixture {
	struct weir_context *context;
	struct weir_storage *volume;
	struct weir_lanes *lanes;
	struct nvme_volume_map map;
	uint32_t table[WEIR_PLACEMENT_GROUPS];
	uint32_t replicas;
	uint32_t unit_log2;
	uint32_t transfer_bytes;
	bool served;
	const char *uri;
	const char *engines[ENGINES];
	uint64_t page;
	struct test_placed_args args;
	uint64_t results[3];
};

void rig_must(int error);
/** rig_begin() - a context with waves of @width lanes, a volume of @replicas; queue pairs of @depth */
void rig_begin(struct fixture *fixture, uint32_t width, uint32_t replicas, uint32_t depth);
void rig_end(struct fixture *fixture);
void rig_give_map(struct fixture *fixture, unsigned engine, uint32_t epoch);
void rig_give_lease(struct fixture *fixture, unsigned engine, uint32_t epoch);
/** rig_launch() - every block of the arguments once, by commands of @blocks */
void rig_launch(struct fixture *fixture, uint32_t opcode, uint32_t blocks, uint64_t generation);
/** rig_run() - the same of all blocks: all end well, and nothing is wrong */
void rig_run(struct fixture *fixture, uint32_t opcode, uint32_t blocks, uint64_t generation);
/** rig_get() - the first word of each block, through a cache: none is an error, or wrong */
void rig_get(struct fixture *fixture, uint64_t generation);
/** rig_commands_to() - commands that engine @engine has had */
uint64_t rig_commands_to(struct fixture *fixture, unsigned engine);
/** rig_commands_forwarded() - those that lanes left to the volume's controller */
uint64_t rig_commands_forwarded(struct fixture *fixture);
/** rig_placed_on() - commands of @blocks that all replicas of all blocks make for engine @engine */
uint64_t rig_placed_on(struct fixture *fixture, unsigned engine, uint32_t blocks);

/* Cases of placed_host.c. */
void a_new_map_leaves_the_one_before(void **state);
void each_join_counts(void **state);
void engines_are_opened_for_the_volume(void **state);

#endif
