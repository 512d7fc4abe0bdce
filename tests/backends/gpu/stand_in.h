/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stand_in.h: a run time that is none, for backends/gpu/: two devices, whose streams do nothing before
 * somebody waits for them. It counts what is there, and writes down what it is asked for.
 */
#ifndef WEIR_TESTS_GPU_STAND_IN_H
#define WEIR_TESTS_GPU_STAND_IN_H

#include <stdbool.h>

#include "../../../backends/gpu/gpu.h"

enum { STAND_IN_DEVICES = 2, STAND_IN_RAN = 64, STAND_IN_GATES = 3 };

/* What can fail: letters of the trace. */
enum {
	STAND_IN_STREAM = 'n',
	STAND_IN_EVENT = 'e',
	STAND_IN_KERNELS = 'l',
	STAND_IN_MEMORY = 'm',
	STAND_IN_FREE = 'f',
	STAND_IN_SET = 'z',
	STAND_IN_COPY = 'c',
	STAND_IN_START = 'k',
	STAND_IN_WAIT = 's',
	STAND_IN_RECORD = 'r',
	STAND_IN_BEHIND = 'b',
	STAND_IN_PIN = 'p',
	STAND_IN_POINTER = 'g',
	STAND_IN_CALL = 'q',
};

/**
 * struct stand_in - what it knows, and what it is told to do
 * @current: the device of whoever calls
 * @memory, @streams, @events, @pinned: how many there are
 * @freed: how often something was freed, by the device that was current
 * @fails: the letter of the call that fails, after @good others of it; with @code
 * @lost: the device is of no more use
 * @unset: devices below this number cannot be made the current one
 * @waits: streams wait for gates
 * @bus_id: what it says of a device; "": nothing
 * @trace: letters of the latest calls
 * @ran: first words of the arguments that kernels found, in their order
 * @first, @behind: of the latest order of two streams
 */
struct stand_in {
	int current;
	int memory, streams, events, pinned;
	unsigned freed[STAND_IN_DEVICES];
	char fails;
	unsigned good;
	gpuError_t code;
	bool lost;
	int unset;
	bool waits;
	const char *bus_id;
	char trace[256];
	unsigned traced;
	uint64_t ran[STAND_IN_RAN];
	unsigned ran_count;
	gpuStream_t first, behind;
};

extern struct stand_in stand_in;

/** stand_in_begin() - forget what was asked for; what is there stays */
void stand_in_begin(void);
/** stand_in_asked() - how often a letter is in the trace */
unsigned stand_in_asked(char letter);

#endif
