/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_ring_test.c: what is taken from lanes' rings and posted to them, what admin commands make of
 * queues, and what a controller is believed to be, over a wire that only counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/nvme_fabrics.h>

#include "no_wire.h"
#include "transport/fabrics/paths.h"

enum { ENTRIES = 16, QUEUE = 1, PIECES = 3, CID = 5, LONG_MS = 600000, BLOCK_LOG2 = 9 };

/* A storage with one I/O queue pair, and another path whose queue carries commands, too. */
static struct {
	struct nvmf nvmf, other;
	struct nvmf_path paths[2];
	struct nvmf_queue queues[QUEUE + 1], others[QUEUE + 1];
	struct shared_u32 doorbells[2 * (QUEUE + 1)];
} made;

static _Alignas(NVME_PAGE_BYTES) unsigned char sq[NVME_PAGE_BYTES], cq[NVME_PAGE_BYTES], acq[NVME_PAGE_BYTES],
	data[NVME_PAGE_BYTES];
static struct nvmf_queue *const queue = &made.queues[QUEUE], *const admin = &made.queues[0];
static struct nvmf_request *last; /* that was begun */
static unsigned begun;

static int create_nothing(struct nvmf_queue *of, u32 entries)
{
	(void)of, (void)entries;
	return 0;
}

static int open_at_once(struct nvmf_queue *of, const struct weir_address *address)
{
	(void)address;
	of->connection.open = true;
	return 0;
}

/* The host's own commands end at once. */
static void note_begin(struct nvmf_queue *of, struct nvmf_request *request)
{
	const struct nvme_cqe good = { .dw3 = request->cid };

	last = request;
	begun++;
	if (request->cid != NVMF_INTERNAL_CID)
		return;
	request->granted = request->bytes;
	nvmf_request_end(of, request, &good);
}

static struct nvmf_wire wire;

static void make_queue(struct nvmf_queue *of, struct nvmf *nvmf, u32 id)
{
	*of = (struct nvmf_queue){ .nvmf = nvmf, .id = id, .most = ENTRIES, .connection = { .open = true } };
	nvmf->wire = &wire;
	nvmf->queue_count = QUEUE + 1;
	nvmf->associated = true;
}

static void make_rings(void)
{
	nvmf_ring_open(queue, (u64)(uintptr_t)sq, (u64)(uintptr_t)cq, ENTRIES);
	queue->has_sq = queue->has_cq = true;
	queue->requests = calloc(ENTRIES, sizeof(*queue->requests));
	queue->segments = calloc((size_t)ENTRIES * PIECES, sizeof(*queue->segments));
	nvmf_ring_open(admin, (u64)(uintptr_t)sq, (u64)(uintptr_t)acq, ENTRIES);
	memset(cq, 0, sizeof(cq));
	memset(acq, 0, sizeof(acq));
}

static void make(void)
{
	static char uri[] = "nvmf:made";

	memset(&made, 0, sizeof(made));
	wire = no_wire;
	wire.create = create_nothing;
	wire.open = open_at_once;
	wire.begin = note_begin;
	begun = 0;
	for (u32 i = 0; i <= QUEUE; i++) {
		make_queue(&made.queues[i], &made.nvmf, i);
		make_queue(&made.others[i], &made.other, i);
		made.others[i].home = &made.queues[i];
	}
	made.nvmf.queues = made.queues, made.other.queues = made.others;
	made.nvmf.doorbells = made.doorbells;
	made.nvmf.uri = made.other.uri = uri;
	made.nvmf.keys.hosts.count = 1;
	made.nvmf.keys.mdts = (PIECES - 1) * NVME_PAGE_BYTES;
	made.nvmf.keys.ctrl_loss_ms = LONG_MS;
	made.nvmf.controller =
		(struct nvmf_controller){ .nsid = 1, .block_log2 = BLOCK_LOG2, .cap = ENTRIES - 1 };
	make_rings();
	assert_int_equal(weir_dma_map_create(&made.nvmf.dma), 0);
	assert_int_equal(weir_dma_map_add(made.nvmf.dma, sq, sizeof(sq)), 0);
	assert_int_equal(weir_dma_map_add(made.nvmf.dma, cq, sizeof(cq)), 0);
	assert_int_equal(weir_dma_map_add(made.nvmf.dma, data, sizeof(data)), 0);
	(void)weir_dma_view_refresh(made.nvmf.dma, &made.nvmf.view);
}

static int unmake(void **state)
{
	(void)state;
	free(queue->requests);
	free(queue->segments);
	weir_dma_view_release(&made.nvmf.view);
	weir_dma_map_destroy(made.nvmf.dma);
	return 0;
}

static int make_one(void **state)
{
	(void)state;
	make();
	return 0;
}

static void make_anew(void)
{
	(void)unmake(NULL);
	make();
}

/* A lane writes a command and rings. */
static void announce(struct nvme_sqe sqe)
{
	sqe.cdw0 |= (u32)CID << 16;
	memcpy(sq + (size_t)queue->tail * sizeof(sqe), &sqe, sizeof(sqe));
	store_relaxed_u32(&made.doorbells[2 * QUEUE],
			  (queue->tail + 1) % ENTRIES); /* relaxed: there is one thread */
}

static struct nvmf_request *taken(u8 opcode)
{
	announce((struct nvme_sqe){
		.cdw0 = opcode, .nsid = 1, .prp1 = (u64)(uintptr_t)data, .cdw12 = sizeof(data) / 512 - 1 });
	assert_int_equal(nvmf_ring_fetch(queue), 1);
	assert_ptr_equal(last, &queue->requests[CID]);
	return last;
}

static void answer(struct nvmf_request *request, u32 status)
{
	const struct nvme_cqe cqe = { .dw3 = request->cid | status << 17 };

	nvmf_request_end(queue, request, &cqe);
}

/* Of entry @index of the completion ring; 0xffff: there is none yet. */
static u32 posted(unsigned index)
{
	const struct nvme_cqe *entry = (const struct nvme_cqe *)(const void *)cq + index;

	return entry->dw3 & 1u << 16 ? entry->dw3 >> 17 : 0xffff;
}

/* ---- rings ---- */

/* A ring that a lane's host has freed is somebody else's memory: nothing is read there, and nothing written.
 */
static void a_ring_that_left_is_left_alone(void **state)
{
	static unsigned char *const rings[] = { sq, cq };
	static unsigned char before[sizeof(cq)];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		make_anew();
		nvmf_ring_check(&made.nvmf);
		assert_false(queue->lost);
		assert_int_equal(weir_dma_map_remove(made.nvmf.dma, rings[i]), 0);
		announce((struct nvme_sqe){ .cdw0 = NVME_OPCODE_FLUSH, .nsid = 1 });
		assert_int_equal(nvmf_ring_fetch(queue), 0);
		assert_true(queue->lost);
		memset(cq, 0xa5, sizeof(cq));
		memcpy(before, cq, sizeof(cq));
		nvmf_ring_post(queue, CID, 0, 0, 0);
		assert_memory_equal(cq, before, sizeof(cq));
		assert_int_equal(begun, 0);
	}
}

/* Where no completion has room no command is taken, until a lane says that it has read some. */
static void a_full_completion_ring_takes_nothing(void **state)
{
	enum { POSTED = 3, READ = 2 };

	(void)state;
	for (unsigned i = 0; i < POSTED; i++)
		nvmf_ring_post(queue, CID, 0, 0, 0);
	queue->cq_free = 0;
	announce((struct nvme_sqe){ .cdw0 = NVME_OPCODE_FLUSH, .nsid = 1 });
	assert_true(nvmf_ring_rung(queue));
	assert_int_equal(nvmf_ring_fetch(queue), 0);
	assert_false(nvmf_ring_rung(queue));
	store_relaxed_u32(&made.doorbells[2 * QUEUE + 1], READ); /* relaxed: there is one thread */
	assert_true(nvmf_ring_rung(queue));
	assert_int_equal(nvmf_ring_fetch(queue), 1);
	assert_int_equal(queue->cq_free, READ - 1);
	assert_false(nvmf_ring_rung(queue));
}

/* Each of a command's ranges goes to the controller, and nothing behind them. */
static void all_ranges_are_sent(void **state)
{
	static const u32 counts[] = { 1, 2, 256 };

	(void)state;
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		make_anew();
		announce((struct nvme_sqe){ .cdw0 = NVME_OPCODE_DSM,
					    .nsid = 1,
					    .prp1 = (u64)(uintptr_t)data,
					    .cdw10 = counts[i] - 1 });
		assert_int_equal(nvmf_ring_fetch(queue), 1);
		assert_int_equal(last->bytes, 16 * counts[i]);
		assert_int_equal(last->way, NVMF_TO_CONTROLLER);
		assert_ptr_equal(last->segments[0].iov_base, data);
		assert_int_equal(last->segments[0].iov_len, 16 * counts[i]);
	}
}

/** struct row - a command that is refused before it is sent */
struct row {
	u32 cdw0, nsid, status;
};

static void commands_that_are_not_sent(void **state)
{
	static const struct row rows[] = {
		{ NVME_OPCODE_READ, 2, NVME_STATUS_INVALID_NAMESPACE },
		{ NVME_OPCODE_WRITE, 2, NVME_STATUS_INVALID_NAMESPACE },
		{ NVME_OPCODE_COMPARE, 2, NVME_STATUS_INVALID_NAMESPACE },
		{ NVME_OPCODE_WRITE_ZEROES, 2, NVME_STATUS_INVALID_NAMESPACE },
		{ NVME_OPCODE_READ | 0x100, 1, NVME_STATUS_INVALID_FIELD },
		{ NVME_OPCODE_WRITE | NVME_PSDT_SGL, 1, NVME_STATUS_INVALID_FIELD },
		{ 0x7e, 1, NVME_STATUS_INVALID_OPCODE },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		make_anew();
		announce((struct nvme_sqe){
			.cdw0 = rows[i].cdw0, .nsid = rows[i].nsid, .prp1 = (u64)(uintptr_t)data });
		assert_int_equal(nvmf_ring_fetch(queue), 1);
		assert_int_equal(begun, 0);
		assert_int_equal(posted(0), rows[i].status | NVME_STATUS_DNR);
		assert_int_equal(queue->requests[CID].state, NVMF_FREE);
		assert_int_equal(queue->inflight, 0);
	}
}

/* ---- requests ---- */

/* What a lost connection had brought of a command's data counts no more, nor does its digest. */
static void a_command_is_sent_again_from_its_beginning(void **state)
{
	struct nvmf_request *request = taken(NVME_OPCODE_READ);

	(void)state;
	request->received = request->granted = 512;
	request->corrupt = true;
	nvmf_dissociate(&made.nvmf);
	assert_int_equal(request->state, NVMF_HELD);
	assert_int_equal(queue->carried, 0);
	queue->connection.open = true;
	nvmf_send_again(&made.nvmf);
	assert_int_equal(request->state, NVMF_SENT);
	assert_int_equal(begun, 2);
	assert_int_equal(request->received + request->granted + request->sending, 0);
	assert_false(request->corrupt || request->answered);
	assert_int_equal(load_relaxed_u64(&made.nvmf.counters.resent), 1);
	assert_int_equal(made.nvmf.resent_open, 1);
	request->received = request->bytes;
	answer(request, 0);
	assert_int_equal(posted(0), 0);
	assert_int_equal(made.nvmf.resent_open, 0);
	assert_int_equal(queue->inflight, 0);
}

/* A controller may leave hints where they are; what it is to write or to compare it has to ask for. */
static void what_a_controller_may_leave(void **state)
{
	static const struct {
		u8 opcode;
		u32 status;
	} rows[] = { { NVME_OPCODE_DSM, 0 },
		     { NVME_OPCODE_WRITE, NVME_STATUS_DATA_TRANSFER_ERROR },
		     { NVME_OPCODE_COMPARE, NVME_STATUS_DATA_TRANSFER_ERROR },
		     { NVME_OPCODE_READ, NVME_STATUS_DATA_TRANSFER_ERROR } };

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		make_anew();
		answer(taken(rows[i].opcode), 0);
		assert_int_equal(posted(0) & NVME_STATUS_CODE_MASK, rows[i].status);
	}
}

/* A digest that was wrong is an error that passes; an error of the controller's own stays what it is. */
static void one_error_of_two(void **state)
{
	struct nvmf_request *request = taken(NVME_OPCODE_READ);

	(void)state;
	request->received = request->bytes;
	request->corrupt = true;
	answer(request, 0);
	assert_int_equal(posted(0), NVME_STATUS_TRANSIENT_TRANSPORT);
	request = taken(NVME_OPCODE_READ);
	request->corrupt = true;
	answer(request, NVME_STATUS_UNRECOVERED_READ | NVME_STATUS_DNR);
	assert_int_equal(posted(1), NVME_STATUS_UNRECOVERED_READ | NVME_STATUS_DNR);
}

/* What is written is counted once it is, and changes blocks; what is compared, or was refused, does not. */
static void changes_are_noted_with_their_success(void **state)
{
	static const struct {
		u8 opcode;
		u32 status;
		bool changes;
	} rows[] = {
		{ NVME_OPCODE_WRITE, 0, true },        { NVME_OPCODE_WRITE, NVME_STATUS_WRITE_FAULT, false },
		{ NVME_OPCODE_WRITE_ZEROES, 0, true }, { NVME_OPCODE_DSM, 0, true },
		{ NVME_OPCODE_COMPARE, 0, false },     { NVME_OPCODE_FLUSH, 0, false }
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nvmf_request *request;
		bool counts;

		make_anew();
		request = taken(rows[i].opcode);
		request->granted = request->bytes;
		counts = request->way == NVMF_TO_CONTROLLER && !rows[i].status;
		answer(request, rows[i].status);
		assert_int_equal(made.nvmf.wrote, rows[i].changes);
		assert_int_equal(load_relaxed_u32(&made.nvmf.registers.changed), rows[i].changes);
		assert_int_equal(load_relaxed_u64(&made.nvmf.counters.bytes_out),
				 counts ? request->bytes : 0);
	}
}

/* The host's own commands that nobody waits for: what a refusal of each says, and what an answer does. */
static void answers_to_nobody(void **state)
{
	const struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_ASYNC_EVENT };
	const u32 event = (u32)NVME_LOG_ANA << 16 | 3 << 8;
	static const unsigned which[] = { NVMF_EVENT, NVMF_STATUS, NVMF_KEEP_ALIVE };

	(void)state;
	for (unsigned good = 0; good < 2; good++) {
		made.nvmf.silent_ns = 1;
		for (unsigned i = 0; i < sizeof(which) / sizeof(which[0]); i++) {
			const struct nvme_cqe cqe = { .dw0 = i ? NVME_CSTS_FATAL : event,
						      .dw3 = good ? 0
								  : (u32)NVME_STATUS_INVALID_FIELD << 17 };

			nvmf_command_start(admin, which[i], &sqe, NULL, 0, NVMF_NO_DATA);
			nvmf_request_end(admin, &admin->internal[which[i]], &cqe);
			assert_int_equal(admin->internal[which[i]].state, NVMF_FREE);
		}
		assert_int_equal(made.nvmf.event, good ? event : 0);
		assert_int_equal(made.nvmf.lost, good);
		assert_true(made.nvmf.silent_ns == 0); /* any answer to Keep Alive is one */
	}
}

/* Each status that is of a path says the path's state, and the command waits. */
static void a_paths_status_is_its_state(void **state)
{
	static const u32 rows[][2] = { { NVME_STATUS_PATH_PERSISTENT_LOSS, NVME_ANA_PERSISTENT_LOSS },
				       { NVME_STATUS_PATH_INACCESSIBLE, NVME_ANA_INACCESSIBLE },
				       { NVME_STATUS_PATH_TRANSITION, NVME_ANA_CHANGE } };

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nvmf_request *request;

		make_anew();
		request = taken(NVME_OPCODE_FLUSH);
		answer(request, rows[i][0]);
		assert_int_equal(request->state, NVMF_HELD);
		assert_int_equal(nvmf_path_state(&made.nvmf, 0), rows[i][1]);
		assert_true(made.nvmf.rerouted && made.nvmf.rerouted_ns);
		assert_int_equal(posted(0), 0xffff);
		made.nvmf.rerouted_ns = 1; /* long ago: it has no time any more */
		made.nvmf.keys.ctrl_loss_ms = 0;
		request->carrier = queue;
		nvmf_request_send(queue, request);
		answer(request, rows[i][0]);
		assert_int_equal(posted(0), rows[i][0]);
	}
}

/* ---- queues, as the runtime asks for them ---- */

static u32 ask(u8 opcode, u32 id, u32 size, u32 cdw11, const void *at)
{
	const struct nvme_sqe sqe = {
		.cdw0 = opcode, .prp1 = (u64)(uintptr_t)at, .cdw10 = id | (size - 1) << 16, .cdw11 = cdw11
	};

	admin->cq_tail = 0;
	admin->phase = 1;
	nvmf_bridge_begin(admin, &sqe);
	return ((const struct nvme_cqe *)(const void *)acq)->dw3 >> 17;
}

static u32 create(u8 opcode, u32 id, u32 size, const void *at)
{
	return ask(opcode, id, size, opcode == NVME_ADMIN_CREATE_SQ ? id << 16 | 1 : 1, at);
}

static void queues_are_created_within_limits(void **state)
{
	static unsigned char elsewhere[NVME_PAGE_BYTES];
	const u32 dnr = NVME_STATUS_DNR;

	(void)state;
	queue->has_sq = queue->has_cq = queue->connection.open = false;
	assert_int_equal(create(NVME_ADMIN_CREATE_SQ, QUEUE, ENTRIES, sq), NVME_STATUS_INVALID_CQ | dnr);
	assert_int_equal(create(NVME_ADMIN_CREATE_CQ, 0, ENTRIES, cq), NVME_STATUS_INVALID_QID | dnr);
	assert_int_equal(create(NVME_ADMIN_CREATE_CQ, QUEUE + 1, ENTRIES, cq), NVME_STATUS_INVALID_QID | dnr);
	assert_int_equal(create(NVME_ADMIN_CREATE_CQ, QUEUE, 1, cq), NVME_STATUS_INVALID_QUEUE_SIZE | dnr);
	assert_int_equal(create(NVME_ADMIN_CREATE_CQ, QUEUE, ENTRIES + 1, cq),
			 NVME_STATUS_INVALID_QUEUE_SIZE | dnr);
	assert_int_equal(create(NVME_ADMIN_CREATE_CQ, QUEUE, ENTRIES, elsewhere),
			 NVME_STATUS_INVALID_FIELD | dnr);
	assert_int_equal(create(NVME_ADMIN_CREATE_CQ, QUEUE, ENTRIES, cq), 0);
	assert_int_equal(create(NVME_ADMIN_CREATE_CQ, QUEUE, ENTRIES, cq), NVME_STATUS_INVALID_QID | dnr);
	assert_int_equal(create(NVME_ADMIN_CREATE_SQ, QUEUE, ENTRIES - 1, sq),
			 NVME_STATUS_INVALID_QUEUE_SIZE | dnr);
	assert_int_equal(create(NVME_ADMIN_CREATE_SQ, QUEUE, ENTRIES, elsewhere),
			 NVME_STATUS_INVALID_FIELD | dnr);
	assert_int_equal(create(NVME_ADMIN_CREATE_SQ, QUEUE, ENTRIES, sq), 0);
	assert_true(queue->has_sq && queue->connection.open);
	assert_int_equal(queue->most, ENTRIES - 1);
	assert_int_equal(create(NVME_ADMIN_CREATE_SQ, QUEUE, ENTRIES, sq), NVME_STATUS_INVALID_QID | dnr);
}

/* A queue that is deleted is gone at each path, and with it what was to be sent again for its lanes. */
static void a_deleted_queue_is_gone_everywhere(void **state)
{
	const u32 dnr = NVME_STATUS_DNR;

	(void)state;
	made.nvmf.keys.hosts.count = 2;
	made.nvmf.paths = made.paths;
	made.other.storage = &made.nvmf;
	made.paths[1] = (struct nvmf_path){ .nvmf = &made.nvmf, .io = &made.other, .host = 1 };
	store_relaxed_u32(&made.paths[1].live, 1); /* relaxed: there is one thread */
	queue->requests[3].state = NVMF_HELD;
	queue->requests[3].resent = true;
	made.nvmf.resent_open = 1;
	assert_int_equal(ask(NVME_ADMIN_DELETE_CQ, QUEUE, 1, 0, NULL),
			 NVME_STATUS_INVALID_QUEUE_DELETION | dnr);
	assert_int_equal(ask(NVME_ADMIN_DELETE_SQ, QUEUE + 1, 1, 0, NULL), NVME_STATUS_INVALID_QID | dnr);
	assert_int_equal(ask(NVME_ADMIN_DELETE_SQ, QUEUE, 1, 0, NULL), 0);
	assert_false(queue->connection.open);
	assert_false(made.others[QUEUE].connection.open);
	assert_true(made.others[0].connection.open && admin->connection.open);
	assert_int_equal(made.nvmf.resent_open, 0);
	assert_int_equal(queue->requests[3].state, NVMF_FREE);
	assert_int_equal(ask(NVME_ADMIN_DELETE_SQ, QUEUE, 1, 0, NULL), NVME_STATUS_INVALID_QID | dnr);
	assert_int_equal(ask(NVME_ADMIN_DELETE_CQ, QUEUE, 1, 0, NULL), 0);
	assert_int_equal(ask(NVME_ADMIN_DELETE_CQ, QUEUE, 1, 0, NULL), NVME_STATUS_INVALID_QID | dnr);
}

/* ---- what a controller says of itself ---- */

enum { IOCCSZ = 1792, ICDOFF = 1800, SGLS = 536, OACS_HIGH = 257, MDTS = 77 };

static void data_within_capsules(void **state)
{
	static const struct {
		u32 ioccsz, sgls, bytes;
		u16 icdoff;
	} rows[] = {
		{ 4 + 512, NVME_SGLS_SUPPORTED | NVME_SGLS_OFFSET, 8192, 0 },
		{ 4 + 512, NVME_SGLS_SUPPORTED | NVME_SGLS_OFFSET, 0, 1 },
		{ 4 + 512, NVME_SGLS_SUPPORTED, 0, 0 },
		{ 4, NVME_SGLS_SUPPORTED | NVME_SGLS_OFFSET, 0, 0 },
		{ 3, NVME_SGLS_SUPPORTED | NVME_SGLS_OFFSET, 0, 0 },
		{ 0x10000004, NVME_SGLS_SUPPORTED | NVME_SGLS_OFFSET, 65536, 0 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		u8 page[NVME_IDENTIFY_BYTES] = { 0 };

		memcpy(page + IOCCSZ, &rows[i].ioccsz, sizeof(rows[i].ioccsz));
		memcpy(page + ICDOFF, &rows[i].icdoff, sizeof(rows[i].icdoff));
		memcpy(page + SGLS, &rows[i].sgls, sizeof(rows[i].sgls));
		page[OACS_HIGH] = 3;
		page[MDTS] = (u8)i;
		nvmf_note_controller(&made.nvmf, page);
		assert_int_equal(made.nvmf.controller.capsule_data, rows[i].bytes);
		assert_int_equal(page[OACS_HIGH], 2); /* shadow doorbells are not carried over a network */
		assert_int_equal(made.nvmf.controller.mdts, i);
		assert_int_equal(page[MDTS], 1); /* two pages, as the keys have it: 0 would be no limit */
	}
}

/* Blocks are as long as the format in use says, of up to 64, and there are more than 2^32 of them. */
static void the_format_of_a_namespace(void **state)
{
	enum { NLBAF = 25, FLBAS = 26, FORMATS = 128 };
	static const struct {
		u8 nlbaf, flbas;
		u32 log2;
	} rows[] = { { 0, 0, 9 }, { 1, 0x31, 12 }, { 15, 0x21, 12 }, { 20, 0x21, 10 }, { 63, 0x4f, 11 } };
	const u64 blocks = ((u64)1 << 33) + 7;
	u8 page[NVME_IDENTIFY_BYTES] = { 0 };
	struct iovec segment = { page, sizeof(page) };
	struct nvmf_request request = {
		.sqe = { .cdw0 = NVME_ADMIN_IDENTIFY, .nsid = 7, .cdw10 = NVME_CNS_NAMESPACE },
		.segments = &segment,
		.segment_count = 1
	};

	(void)state;
	memcpy(page, &blocks, sizeof(blocks));
	page[FORMATS + 2] = 9;
	page[FORMATS + 4 * 1 + 2] = 12;
	page[FORMATS + 4 * 17 + 2] = 10;
	page[FORMATS + 4 * 47 + 2] = 11;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		page[NLBAF] = rows[i].nlbaf;
		page[FLBAS] = rows[i].flbas;
		nvmf_bridge_end(admin, &request);
		assert_int_equal(made.nvmf.controller.block_log2, rows[i].log2);
		assert_true(made.nvmf.controller.blocks == blocks);
		assert_int_equal(made.nvmf.controller.nsid, 7);
		assert_int_equal(load_relaxed_u32(&made.nvmf.registers.nsid), 7);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_one, unmake)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_ring_that_left_is_left_alone),
		CASE(a_full_completion_ring_takes_nothing),
		CASE(all_ranges_are_sent),
		CASE(commands_that_are_not_sent),
		CASE(a_command_is_sent_again_from_its_beginning),
		CASE(what_a_controller_may_leave),
		CASE(one_error_of_two),
		CASE(changes_are_noted_with_their_success),
		CASE(answers_to_nobody),
		CASE(a_paths_status_is_its_state),
		CASE(queues_are_created_within_limits),
		CASE(a_deleted_queue_is_gone_everywhere),
		CASE(data_within_capsules),
		CASE(the_format_of_a_namespace),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("fabrics_ring", tests, NULL, NULL);
}
