/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/fault.h: what a virtual controller does wrong on command.
 *
 * Owns: the rows of a fault table, as a program or a line of text gives them.
 * A row says which commands it is for, which of these it strikes, and how.
 */
#ifndef WEIR_VIRTUAL_FAULT_H
#define WEIR_VIRTUAL_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "../../kernels/fault_row.h"

/** enum weir_virtual_fault_opcode - the commands a row is for */
enum weir_virtual_fault_opcode {
	WEIR_VIRTUAL_FAULT_ANY,
	WEIR_VIRTUAL_FAULT_READ,
	WEIR_VIRTUAL_FAULT_WRITE,
	WEIR_VIRTUAL_FAULT_FLUSH,
	WEIR_VIRTUAL_FAULT_OPCODES,
};

/**
 * struct weir_virtual_fault - a row of the table
 * @kind: what happens
 * @opcode: only these commands
 * @queue: only commands from this I/O submission queue; 0 = any
 * @lba: with @blocks: only commands on one of these blocks
 * @blocks: how many; 0 = any command, also those that name no block
 * @after: the first so many commands are spared
 * @every: of the others each n-th is matched, the n-th first; 0 = 1
 * @chance: and of these so many per mille, by lot; 0 = all
 * @count: at most so many in all, resets or not; 0 = no limit
 * @seed: of the lots and of the order of SHUFFLE
 * @us: LATE and STALL: microseconds
 * @of: SHUFFLE and BURST: completions held; fewer when no other can come
 * @code: STATUS: status code and type, 11 bits, as NVME_STATUS_...
 * @dnr: STATUS: with "do not retry"
 * @crd: STATUS: with this Command Retry Delay, 1 to 3, if the host knows of them (Host Behavior Support)
 * @cid_given: STRAY: @cid counts; else the entry is for the lowest identifier
 *             of the queue that is not in flight
 * @cid: STRAY: the identifier, in flight or not
 *
 * Zeros are the defaults, so a row names only what it needs. A command may be
 * matched by several rows; of two rows of one kind the later one tells how. Lots
 * depend on @seed and on the number of the command among those the row is for,
 * so that one thread always draws the same.
 *
 * DUPLICATE and STRAY need room in the completion queue beyond what fetched
 * commands were promised; without it they do not happen, and do not count.
 */
struct weir_virtual_fault {
	enum weir_virtual_fault_kind kind;
	enum weir_virtual_fault_opcode opcode;
	uint32_t queue;
	uint64_t lba;
	uint64_t blocks;
	uint64_t after;
	uint64_t every;
	uint64_t count;
	uint32_t chance;
	uint64_t seed;
	uint32_t us;
	uint32_t of;
	uint32_t code;
	bool dnr;
	uint32_t crd;
	bool cid_given;
	uint16_t cid;
};

/**
 * weir_virtual_faults_parse() - read a table from text
 * @text: rows with ',' between them; a row is a kind and fields, key=value,
 *        with ':' between them: late:us=500:every=7,status:code=0x281:op=read.
 *        Numbers are decimal or 0x...; op=read|write|flush|any, lba=FIRST-LAST
 *        or lba=ONE, the rest as the members are called
 * @rows: the result
 * @most: room in @rows
 * @count: how many there are
 *
 * Return: 0; -EINVAL, with a sentence that names the row and the field.
 */
int weir_virtual_faults_parse(const char *text, struct weir_virtual_fault *rows, unsigned most,
			      unsigned *count);

/** weir_virtual_fault_row() - a row as controllers use it, with nothing counted yet */
struct weir_fault_row weir_virtual_fault_row(const struct weir_virtual_fault *fault);

/** weir_virtual_faults_check() - -EINVAL, with a sentence, for a table that cannot be */
int weir_virtual_faults_check(const struct weir_virtual_fault *rows, unsigned count);

#endif
