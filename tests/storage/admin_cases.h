/* SPDX-License-Identifier: BSD-3-Clause */
/* admin_cases.h: the transport behind admin_test, which is next to nothing, and cases of other files. */
#ifndef WEIR_TESTS_ADMIN_CASES_H
#define WEIR_TESTS_ADMIN_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nvme/types.h>

#include "storage/admin.h"

enum { QUEUES = 4, RING = 32, COMMANDS = 8, CAP_TIMEOUT_500_MS = 1 << 24, CC_SHUTDOWN_NORMAL = 1 << 14 };

/**
 * struct rig - a transport with next to nothing behind it
 * @csts: what CSTS reads as, but for the shutdown status; READY and 0 follow CC.EN where @follows
 * @answers: so many more admin commands are completed
 * @shuts: a shutdown comes to its end
 * @shut_fails: and then CSTS says, too, that the controller failed
 * @shut_unready: and that it is not ready
 * @entry_us: RTD3 Entry Latency
 * @shutdowns: how often one was asked for
 * @shut_reads: a shutdown takes so many more looks at CSTS
 * @cut_short: CC.EN was cleared before it had ended
 * @stop_reads: CSTS stays for so many more looks after CC.EN was cleared
 * @cap: CAP
 * @statuses, @results: of the commands, in their order
 * @fill: what a command leaves in the data page, instead of Identify Controller with @entry_us alone
 */
struct rig {
	struct weir_transport transport;
	struct weir_admin admin;
	uint32_t csts, cc;
	bool follows, shuts, shut_fails, shut_unready;
	unsigned answers, answered, shutdowns;
	uint32_t entry_us;
	uint32_t doorbell[2];
	unsigned shut_reads, cut_short, stop_reads;
	uint64_t cap;
	uint32_t statuses[COMMANDS], results[COMMANDS];
	void (*fill)(struct rig *rig, const struct nvme_sqe *sqe, void *page);
	struct nvme_id_ctrl controller;
	struct nvme_id_ns space;
	uint32_t namespaces[3];
	uint8_t descriptors[16];
};

/* The admin queue's: its rings, and the page of data. */
extern uint8_t pages[WEIR_ADMIN_MEMORY_BYTES];

/* A controller that was brought up. */
void open_rig(struct rig *rig);

/* Cases of admin_identify.c. */
void test_namespaces(void **state);
void test_default_namespace(void **state);
void test_command_sets(void **state);
void test_transfer_limits(void **state);
void test_formats(void **state);
void test_capacities(void **state);
void test_hostile_names(void **state);

#endif
