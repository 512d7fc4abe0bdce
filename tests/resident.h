/* SPDX-License-Identifier: BSD-3-Clause */
/* resident.h: arguments of the kernel in resident.k.c. */
#ifndef WEIR_TESTS_RESIDENT_H
#define WEIR_TESTS_RESIDENT_H

#include <weir/abi.h>

#include "../runtime/kernels/controller.h"

enum { RESIDENT_MOST_BLOCKS = 24 };

/**
 * struct resident_args - wave 0 is the controller, the others are its clients
 * @controller: its queue pairs and medium
 * @disk: the same queue pairs, as clients see them
 * @events: struct weir_event per lane
 * @buffers: 2 x RESIDENT_MOST_BLOCKS blocks of 512 bytes per lane
 * @finished: weir_shared_u32, client lanes that are done
 * @wrong: weir_shared_u32, requests that failed or gave other words
 * @rounds: writes, each read back, per lane
 */
struct resident_args {
	struct weir_controller_args controller;
	struct weir_disk disk;
	weir_addr events;
	weir_addr buffers;
	weir_addr finished;
	weir_addr wrong;
	u32 rounds;
	u32 padding;
};

#endif
