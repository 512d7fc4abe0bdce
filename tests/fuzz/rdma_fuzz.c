/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_fuzz.c: a host of NVMe/RDMA that sends anything to a target, over verbs of this process: private data
 * of any bytes, or capsules that are well-formed but for what they ask, with keys that are right or not. The
 * first byte of the input says how far the connection has come before. Once the host has gone the target has
 * no connection left, and no registration; memory of the host that it gave no key for is untouched.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../transport/fabrics/rdma_raw.h"

#include "fuzz.h"

#define NQN "nqn.2026-11.org.example:fuzz"

enum { RECORDS_MOST = 64, PRIVATE_MOST = 56 };

static struct weir_target *target;
static struct raw admin, queue;
static unsigned port;

static void make_target(void)
{
	static const char *const at = "rdma://127.0.0.1:0";
	const struct weir_target_namespace_options spaces[] = { { .uri = "virt:256K?block=512&mdts=16K" },
								{ .uri = "virt:64K", .read_only = true } };
	const struct weir_target_subsystem_options subsystem = { .nqn = NQN,
								 .namespaces = spaces,
								 .namespace_count = 2 };
	const struct weir_target_options options = { .size = sizeof(options),
						     .listen = &at,
						     .listen_count = 1,
						     .subsystems = &subsystem,
						     .subsystem_count = 1,
						     .threads = 1 };

	fuzz_must(weir_target_create(&options, &target) == 0);
	port = (unsigned)atoi(strrchr(weir_target_address(target, 0), ':') + 1);
}

static void come(struct raw *raw, uint16_t qid, uint16_t cntlid)
{
	raw_open(raw, target, port, qid);
	raw_connect(raw, NQN, qid, cntlid);
	fuzz_must(!raw->refused && !(raw->last.dw3 >> 17));
}

/* A capsule: its bytes, then how many follow, and whether its SGL is good. */
static void put(struct raw *raw, struct fuzz *fuzz)
{
	struct nvme_sqe sqe = { .cdw0 = 0 };
	uint16_t bytes = 0;
	uint8_t kind = 0;

	(void)fuzz_take(fuzz, &sqe, sizeof(sqe));
	(void)fuzz_take(fuzz, &bytes, sizeof(bytes));
	(void)fuzz_take(fuzz, &kind, 1);
	if (kind & 1) {
		raw_command(raw, &sqe, bytes % (RAW_DATA / 2), raw->key + (kind & 2));
	} else {
		memcpy(raw->capsule, &sqe, sizeof(sqe));
		raw_send(raw, bytes % sizeof(raw->capsule));
	}
	if (kind & 4)
		raw_settle(raw);
}

static void try_private_data(struct fuzz *fuzz)
{
	uint8_t data[PRIVATE_MOST] = { 0 }, bytes = 0;

	(void)fuzz_take(fuzz, &bytes, 1);
	(void)fuzz_take(fuzz, data, bytes % PRIVATE_MOST);
	(void)weir_rdma_check_accept(data, bytes % PRIVATE_MOST);
	fuzz_must(weir_rdma_reject_text(weir_rdma_check_reject(data, bytes % PRIVATE_MOST)) != NULL);
	raw_begin(&admin, target, port, data, bytes % PRIVATE_MOST);
	put(&admin, fuzz);
	raw_settle(&admin);
	raw_end(&admin);
}

static void try_capsules(uint8_t stage, struct fuzz *fuzz)
{
	struct raw *raw = &admin;
	uint8_t more;

	come(&admin, 0, NVME_CNTLID_DYNAMIC);
	if (stage & 1) {
		uint16_t cntlid = (uint16_t)admin.last.dw0;

		raw_enable(&admin);
		come(&queue, 1, cntlid);
		raw = &queue;
	}
	memset(raw->data + RAW_DATA / 2, 0xa5, RAW_DATA / 2);
	for (unsigned i = 0; i < RECORDS_MOST && fuzz_take(fuzz, &more, 1); i++)
		put(raw, fuzz);
	raw_settle(raw);
	for (unsigned i = RAW_DATA / 2; i < RAW_DATA && stage & 1; i++)
		fuzz_must(raw->data[i] == 0xa5);
	if (raw == &queue)
		raw_end(&queue);
	raw_end(&admin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz fuzz = { data, size };
	struct weir_target_stats stats;
	uint8_t stage = 0;
	int live;

	if (!target)
		make_target();
	live = fake_verbs.live;
	(void)fuzz_take(&fuzz, &stage, 1);
	fake_verbs.late = stage & 4;
	if (stage & 2)
		try_private_data(&fuzz);
	else
		try_capsules(stage, &fuzz);
	weir_target_stats(target, &stats);
	fuzz_must(stats.connections == 0);
	fuzz_must(fake_verbs.live == live);
	return 0;
}
