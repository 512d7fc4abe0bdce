/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cqe_fuzz.c: a queue pair whose controller writes any entries into the completion ring. Whatever it writes,
 * no command completes that was not in flight, none completes twice, and nothing outside the buffers is
 * touched.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/wait.h>

#include "fuzz.h"

enum { DEPTH = 8, DEPTH_LOG2 = 3, BLOCK = 512, MOST_STEPS = 400, FLYING = DEPTH - 1 };

/** struct rig - a queue pair in plain memory, and the requests of a lane */
struct rig {
	struct nvme_sqe sq[DEPTH];
	struct nvme_cqe cq[DEPTH];
	struct weir_slot slots[DEPTH];
	uint64_t lists[DEPTH * 2];
	uint32_t doorbell[2];
	_Alignas(16) uint8_t staging[DEPTH * BLOCK * 2];
	_Alignas(128) struct weir_queue queue;
	struct weir_fault fault;
	struct weir_disk disk;
	struct weir_event event[FLYING];
	_Alignas(16) uint8_t buffer[FLYING][BLOCK];
	bool flying[FLYING];  /* submitted, and not yet told */
	uint64_t reported;    /* requests that were told of their end, since the start */
	uint32_t cq_position; /* of the controller */
};

static void set_up(struct rig *rig, bool pull)
{
	memset(rig, 0, sizeof(*rig));
	rig->queue.sq = WEIR_ADDR(rig->sq);
	rig->queue.cq = WEIR_ADDR(rig->cq);
	rig->queue.slots = WEIR_ADDR(rig->slots);
	rig->queue.prp_lists = WEIR_ADDR(rig->lists);
	rig->queue.sq_doorbell = WEIR_ADDR(&rig->doorbell[0]);
	rig->queue.cq_doorbell = WEIR_ADDR(&rig->doorbell[1]);
	rig->queue.staging = pull ? WEIR_ADDR(rig->staging) : 0;
	rig->queue.staging_log2 = 10;
	rig->queue.depth = DEPTH;
	rig->queue.depth_log2 = DEPTH_LOG2;
	rig->queue.prp_entries = 2;
	rig->queue.nsid = 1;
	rig->queue.block_log2 = 9;
	rig->queue.path = pull ? WEIR_PATH_PULL : WEIR_PATH_DIRECT;
	rig->queue.id = 1;
	rig->disk = (struct weir_disk){ .abi_version = WEIR_ABI_VERSION,
					.queues = WEIR_ADDR(&rig->queue),
					.queue_count = 1,
					.block_log2 = 9,
					.blocks = 1024,
					.max_blocks = 2,
					.timeout_ns = 1000,
					.fault = WEIR_ADDR(&rig->fault) };
}

/* A request of the event's, unless one is under way. */
static void submit(struct rig *rig, unsigned which)
{
	if (!rig->flying[which]) /* which reaps, too, if there is no room */
		rig->flying[which] = weir_read_async(&rig->disk, which, 1, WEIR_ADDR(rig->buffer[which]),
						     &rig->event[which]) == WEIR_OK;
}

/* An entry as the input has it; often one of the ring's turn, and of a command that was fetched. */
static void post(struct rig *rig, struct fuzz *fuzz)
{
	struct nvme_cqe *cqe = &rig->cq[rig->cq_position % DEPTH];
	uint32_t words[3], phase = (~(rig->cq_position >> DEPTH_LOG2)) & 1;
	uint8_t how;

	(void)fuzz_take(fuzz, &how, 1);
	(void)fuzz_take(fuzz, words, sizeof(words));
	cqe->dw0 = words[0];
	cqe->dw2 = how & 1 ? 1u << 16 : words[1];
	cqe->dw3 = words[2];
	if (how & 2)
		cqe->dw3 = (cqe->dw3 & 0xffff0000) | (rig->sq[words[2] % DEPTH].cdw0 >> 16);
	if (how & 4)
		cqe->dw3 = (cqe->dw3 & ~(1u << 16)) | phase << 16;
	if (how & 8)
		cqe->dw3 &= 0x1ffff;
	if (((cqe->dw3 >> 16) & 1) == phase)
		rig->cq_position++;
}

static void take_reported(struct rig *rig)
{
	for (unsigned i = 0; i < FLYING; i++)
		if (rig->flying[i] && (rig->event[i].word.value_ & WEIR_EVENT_DONE)) {
			rig->flying[i] = false;
			rig->reported++;
		}
}

/* Each command that is done told its event, once; whatever else came is counted as rogue, and tells nobody.
 */
static void check(struct rig *rig)
{
	take_reported(rig);
	fuzz_must(rig->queue.completed.value_ == rig->reported);
	fuzz_must(!(rig->queue.reap.value_ & 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct rig rig;
	struct fuzz fuzz = { data, bytes };
	uint8_t step = 0;

	(void)fuzz_take(&fuzz, &step, 1);
	set_up(&rig, step & 1);
	for (unsigned i = 0; i < MOST_STEPS && fuzz_take(&fuzz, &step, 1); i++) {
		if (step % 4 == 0)
			post(&rig, &fuzz);
		else if (step % 4 == 1)
			(void)weir_cq_reap(&rig.queue, 1);
		else
			submit(&rig, (step >> 2) % FLYING);
		check(&rig);
	}
	return 0;
}
