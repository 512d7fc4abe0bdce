/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_connect_test.c: what a host says when it connects, how often it tries, what it holds back for how
 * long, and what is left of it behind a reset or a failure, over a wire that answers at once.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/nvme_fabrics.h>
#include <weir/weir.h>

#include "no_wire.h"
#include "transport/fabrics/paths.h"

enum { ENTRIES = 16, QUEUES = 2, CNTLID = 7, KEEP_ALIVE_MS = 15000, JOIN_MS = 60000, MOST_TRIES = 20 };
enum { TWICE = 0x181, FOR_GOOD = 0x4181, LARGE_TRANSFER = 1 << 20, LARGE_TRANSFER_LOG2 = 8 };

#define HOST_NQN "nqn.2026-11.test:host"
#define NQN      "nqn.2026-11.test:made"

/** struct said - what the host said, and what is answered */
static struct {
	struct nvme_fabrics_connect connect;
	struct nvme_fabrics_connect_data data;
	unsigned connects, opens, delays, kept;
	u32 refused, refusals; /* the first so many of Connect end with that status */
	u32 no_property;       /* which is refused; 0xffff: none */
	u32 granted;           /* dword 0 of Number of Queues */
	u64 blocks;
	bool loses; /* Keep Alive is not answered, and the connection ends */
} said;

static int create_nothing(struct nvmf_queue *queue, u32 entries)
{
	(void)queue, (void)entries;
	return 0;
}

static void destroy_nothing(struct nvmf_queue *queue)
{
	(void)queue;
}

static int open_at_once(struct nvmf_queue *queue, const struct weir_address *address)
{
	(void)address;
	said.opens++;
	queue->connection.open = true;
	return 0;
}

static u32 answer_fabrics(const struct nvmf_request *request, struct nvme_cqe *cqe)
{
	struct nvme_fabrics_property property;

	memcpy(&property, &request->sqe, sizeof(property));
	if (property.fctype == NVME_FCTYPE_CONNECT) {
		memcpy(&said.connect, &request->sqe, sizeof(said.connect));
		memcpy(&said.data, request->segments[0].iov_base, sizeof(said.data));
		cqe->dw0 = CNTLID;
		return ++said.connects <= said.refusals ? said.refused : 0;
	}
	return property.offset == said.no_property ? NVME_STATUS_INVALID_FIELD : 0;
}

static u32 answer_admin(struct nvmf_queue *queue, const struct nvmf_request *request, struct nvme_cqe *cqe)
{
	u32 feature = request->sqe.cdw10 & 0xff;

	switch (request->sqe.cdw0 & 0xff) {
	case NVME_ADMIN_SET_FEATURES:
		said.delays += feature == NVME_FEATURE_HOST_BEHAVIOR;
		cqe->dw0 = feature == NVME_FEATURE_NUMBER_OF_QUEUES ? said.granted : 0;
		break;
	case NVME_ADMIN_IDENTIFY:
		memset(request->segments[0].iov_base, 0, request->bytes);
		memcpy(request->segments[0].iov_base, &said.blocks, sizeof(said.blocks));
		break;
	case NVME_ADMIN_KEEP_ALIVE:
		said.kept++;
		if (said.loses)
			nvmf_lose(queue->nvmf, "by the test");
		break;
	default: break;
	}
	return 0;
}

static void begin_and_answer(struct nvmf_queue *queue, struct nvmf_request *request)
{
	bool fabrics = (request->sqe.cdw0 & 0xff) == NVME_OPCODE_FABRICS;
	struct nvme_cqe cqe = { .dw3 = request->cid };
	u32 status = fabrics ? answer_fabrics(request, &cqe) : answer_admin(queue, request, &cqe);

	if (queue->nvmf->lost)
		return;
	cqe.dw3 |= status << 17;
	request->granted = request->received = request->bytes;
	nvmf_request_end(queue, request, &cqe);
}

static const struct nvmf_wire wire = { .create = create_nothing,
				       .destroy = destroy_nothing,
				       .open = open_at_once,
				       .close = close_nothing,
				       .send = move_nothing,
				       .receive = move_nothing,
				       .room = any_room,
				       .begin = begin_and_answer };

static struct nvmf *made(const char *body, unsigned queues)
{
	struct nvmf_keys keys = { .connect_ms = JOIN_MS,
				  .keep_alive_ms = KEEP_ALIVE_MS,
				  .mdts = LARGE_TRANSFER,
				  .host = { .nqn = HOST_NQN, .id = { 1, 2, 3 } } };
	struct nvmf *nvmf = NULL;

	memset(&said, 0, sizeof(said));
	said.no_property = 0xffff;
	assert_int_equal(weir_address_parse("nvmf:made", body, &keys.hosts, keys.nqn, sizeof(keys.nqn)), 0);
	assert_int_equal(nvmf_new("nvmf:made", &keys, queues, &nvmf), 0);
	nvmf_connection_close(&nvmf->queues[0]);
	nvmf->wire->destroy(&nvmf->queues[0]);
	nvmf->wire = &wire;
	for (unsigned i = 1; i <= queues; i++)
		nvmf->queues[i].size = ENTRIES;
	return nvmf;
}

static struct nvmf *made_one(void)
{
	return made("tcp://127.0.0.1:1/" NQN, QUEUES);
}

/* ---- Connect ---- */

/* Each queue says how long it is, zero based; the admin queue alone says how long the host may be silent. */
static void what_is_said_to_connect(void **state)
{
	static const u8 id[16] = { 1, 2, 3 };
	struct nvmf *nvmf = made_one();
	u32 status;

	(void)state;
	assert_int_equal(nvmf_associate(nvmf), 0);
	assert_int_equal(said.connect.qid, 0);
	assert_int_equal(said.connect.sqsize, NVMF_ADMIN_ENTRIES - 1);
	assert_int_equal(said.connect.kato, KEEP_ALIVE_MS);
	assert_int_equal(said.data.cntlid, NVME_CNTLID_DYNAMIC);
	assert_memory_equal(said.data.hostid, id, sizeof(id));
	assert_string_equal(said.data.subnqn, NQN);
	assert_string_equal(said.data.hostnqn, HOST_NQN);
	assert_int_equal(nvmf->queues[0].most, NVMF_ADMIN_ENTRIES - 1);
	assert_int_equal(nvmf_connect_queue(&nvmf->queues[2], &status), 0);
	assert_int_equal(said.connect.qid, 2);
	assert_int_equal(said.connect.sqsize, ENTRIES - 1);
	assert_int_equal(said.connect.kato, 0);
	assert_int_equal(said.data.cntlid, CNTLID);
	assert_memory_equal(said.data.hostid, id, sizeof(id));
	assert_int_equal(nvmf->queues[2].most, ENTRIES - 1);
	nvmf->controller.maxcmd = 3;
	assert_int_equal(nvmf_connect_queue(&nvmf->queues[1], &status), 0);
	assert_int_equal(nvmf->queues[1].most, 3);
	nvmf_free(nvmf);
}

/* A queue whose number a controller has not given again yet is tried once more, some times; where it is
 * refused for good, once. */
static void a_refusal_that_passes_is_tried_again(void **state)
{
	static const struct {
		u32 refused;
		unsigned refusals, connects;
	} rows[] = { { TWICE, 2, 3 },
		     { TWICE, MOST_TRIES - 1, MOST_TRIES },
		     { TWICE, 2 * MOST_TRIES, MOST_TRIES },
		     { FOR_GOOD, 2 * MOST_TRIES, 1 } };

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nvmf *nvmf = made_one();
		bool good = rows[i].refusals < rows[i].connects;
		u32 status = 1;

		said.refused = rows[i].refused;
		said.refusals = rows[i].refusals;
		assert_int_equal(nvmf_connect_queue(&nvmf->queues[1], &status) == 0, good);
		assert_int_equal(status, good ? 0 : rows[i].refused);
		assert_int_equal(said.connects, rows[i].connects);
		assert_int_equal(said.opens, rows[i].connects);
		assert_int_equal(nvmf->queues[1].connection.open, good);
		nvmf_free(nvmf);
	}
}

/* A controller that does not say what it can do is left. */
static void an_association_that_fails_is_closed(void **state)
{
	static const u32 offsets[] = { NVME_PROPERTY_CAP, NVME_PROPERTY_VS };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct nvmf *nvmf = made_one();

		said.no_property = offsets[i];
		assert_int_equal(nvmf_associate(nvmf), -EIO);
		assert_non_null(strstr(weir_last_error(), "refuses Property Get of property"));
		assert_int_equal(said.opens, 1);
		assert_false(nvmf->queues[0].connection.open || nvmf->associated);
		nvmf_free(nvmf);
	}
}

/* Whoever asks for more than this host can give, or cannot give what it is asked for, is not connected to. */
static void what_authentication_takes(void **state)
{
	struct nvmf *nvmf = made_one();

	(void)state;
	assert_int_equal(nvmf_authenticate(&nvmf->queues[0], 0), 0);
	assert_int_equal(nvmf_authenticate(&nvmf->queues[0], NVME_CONNECT_ATR >> 16), -EACCES);
	assert_non_null(strstr(weir_last_error(), "give dhchap_secret=FILE"));
	nvmf->keys.secret.bytes = 32;
	assert_int_equal(nvmf_authenticate(&nvmf->queues[0], (NVME_CONNECT_ATR | NVME_CONNECT_ASCR) >> 16),
			 -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "asks for a secure channel"));
	nvmf->keys.controller_secret.bytes = 32;
	assert_int_equal(nvmf_authenticate(&nvmf->queues[0], 0), -EACCES);
	assert_non_null(strstr(weir_last_error(), "the controller does not authenticate"));
	nvmf_free(nvmf);
}

/* ---- the line of a TCP connection ---- */

/* What one connection was to send is not sent by the next. There is room for all of a queue's commands, and
 * for as many R2Ts of each as were agreed. */
static void a_line_ends_with_its_connection(void **state)
{
	enum { COMMANDS = 5 };
	struct nvmf_request request = { .cid = 5 };
	const struct nvmf_pdu pdu = { .request = &request };
	struct nvmf *nvmf = made_one();
	struct nvmf_queue tcp = { .nvmf = nvmf, .id = 1 };
	u32 room;

	(void)state;
	assert_int_equal(nvmf_wire_tcp.create(&tcp, COMMANDS), 0);
	room = nvmf_wire_tcp.room(&tcp);
	assert_true(room >= (COMMANDS + NVMF_INTERNAL) * (NVMF_MOST_R2T + 1));
	for (unsigned i = 0; i < COMMANDS; i++)
		nvmf_line_put(&tcp.connection, &pdu);
	assert_int_equal(nvmf_wire_tcp.room(&tcp), room - COMMANDS);
	tcp.connection.batch->count = tcp.connection.batch->pdus = 1;
	tcp.connection.reader.have = tcp.connection.reader.end = 3;
	tcp.connection.ending = tcp.connection.readable = true;
	nvmf_wire_tcp.close(&tcp);
	assert_int_equal(nvmf_wire_tcp.room(&tcp), room);
	assert_int_equal(tcp.connection.line_head, tcp.connection.line_tail);
	assert_int_equal(tcp.connection.batch->count + tcp.connection.batch->pdus, 0);
	assert_int_equal(tcp.connection.reader.have + tcp.connection.reader.end, 0);
	assert_false(tcp.connection.ending || tcp.connection.readable);
	nvmf_wire_tcp.destroy(&tcp);
	nvmf_free(nvmf);
}

/* ---- the namespace that lanes know ---- */

/* Beyond 2^32 blocks, too. What was found to be another one is not what the next look compares with. */
static void a_namespace_that_shrank(void **state)
{
	const u64 blocks = ((u64)1 << 32) + 5;
	static const u64 fewer[] = { 5, ((u64)1 << 32) + 4, 0xffffffff };
	struct nvmf *nvmf = made_one();

	(void)state;
	nvmf->controller.nsid = 1;
	nvmf->controller.blocks = blocks;
	for (unsigned i = 0; i < sizeof(fewer) / sizeof(fewer[0]); i++)
		for (unsigned again = 0; again < 2; again++) {
			said.blocks = fewer[i];
			assert_int_equal(nvmf_check_namespace(nvmf), -ENOSPC);
			assert_true(nvmf->controller.blocks == blocks);
		}
	said.blocks = blocks;
	assert_int_equal(nvmf_check_namespace(nvmf), 0);
	said.blocks = 3 * blocks;
	assert_int_equal(nvmf_check_namespace(nvmf), 0);
	assert_true(nvmf->controller.blocks == 3 * blocks);
	nvmf_free(nvmf);
}

/* ---- what waits, and a reset ---- */

/* For as long as a controller may take to notice that nobody hears it: since its last Keep Alive, and its own
 * time to notice. */
static void changes_wait_as_long_as_a_controller_may_take(void **state)
{
	static const u64 rows[][2] = { { 10000, 20000 }, { 500, 2000 }, { 1500, 3000 }, { 0, 0 } };
	struct nvmf *nvmf = made_one();

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		u64 before = nvmf_now_ns();

		nvmf->keys.keep_alive_ms = rows[i][0];
		nvmf->hold_ns = 0;
		nvmf_hold_changes(nvmf, 1);
		assert_true(nvmf->hold_ns >= before + rows[i][1] * 1000000);
		assert_true(nvmf->hold_ns <= nvmf_now_ns() + rows[i][1] * 1000000);
		assert_int_equal(nvmf->late_queue, 1);
	}
	nvmf_free(nvmf);
}

/* Another path with a queue for each of the storage's, and its admin queue. */
static struct {
	struct nvmf_path paths[2];
	struct nvmf io, probe;
	struct nvmf_queue ios[QUEUES + 1], admin;
	struct shared_u32 doorbells[2 * (QUEUES + 1)];
	struct nvmf_request requests[ENTRIES];
} two;

static struct nvmf *made_two(void)
{
	struct nvmf *nvmf = made("tcp://127.0.0.1:1,127.0.0.1:2/" NQN, QUEUES);

	memset(&two, 0, sizeof(two));
	two.io = (struct nvmf){ .wire = &wire,
				.storage = nvmf,
				.number = 2,
				.queues = two.ios,
				.queue_count = QUEUES + 1,
				.keys = nvmf->keys,
				.epoll = -1,
				.uri = nvmf->uri };
	two.probe = (struct nvmf){ .wire = &wire,
				   .queues = &two.admin,
				   .queue_count = 1,
				   .keys = nvmf->keys,
				   .epoll = -1,
				   .uri = nvmf->uri,
				   .sleeper.file = -1,
				   .controller.cap = ENTRIES - 1 };
	two.admin = (struct nvmf_queue){ .nvmf = &two.probe, .connection = { .open = true } };
	for (unsigned i = 0; i <= QUEUES; i++)
		two.ios[i] = (struct nvmf_queue){ .nvmf = &two.io, .id = i, .home = &nvmf->queues[i] };
	two.paths[1] = (struct nvmf_path){
		.nvmf = nvmf, .host = 1, .io = &two.io, .probe = &two.probe, .check_ns = UINT64_MAX
	};
	nvmf->paths = two.paths;
	nvmf->enabled = true;
	nvmf->queues[1].has_sq = nvmf->queues[2].has_sq = true;
	nvmf_path_set(nvmf, 0, NVME_ANA_OPTIMIZED);
	nvmf_path_set(nvmf, 1, NVME_ANA_OPTIMIZED);
	said.granted = 0xffffffff;
	return nvmf;
}

static void end_two(struct nvmf *nvmf)
{
	nvmf->paths = NULL;
	nvmf->queues[1].requests = NULL;
	nvmf_free(nvmf);
}

static bool is_live(void)
{
	return load_relaxed_u32(&two.paths[1].live); /* relaxed: there is one thread */
}

static bool is_open(unsigned id)
{
	return two.ios[id].connection.open;
}

/* A thread keeps the storage until it has seen the reset. */
static void wait_for_reset(struct nvmf *nvmf)
{
	bool stopping = true;

	assert_int_equal(nvmf_keeper_start(nvmf), 0);
	while (stopping) {
		pthread_mutex_lock(&nvmf->mutex);
		stopping = nvmf_stopping(nvmf);
		pthread_mutex_unlock(&nvmf->mutex);
	}
	assert_int_equal(nvmf_keeper_stop(nvmf, JOIN_MS), 0);
}

/* Nothing of what was before is there behind a reset: no ring, no command, no other path's queue, and nothing
 * that was to be done. */
static void a_reset_leaves_nothing(void **state)
{
	struct nvmf *nvmf = made_two();

	(void)state;
	nvmf->doorbells = two.doorbells;
	for (unsigned i = 0; i < 2 * (QUEUES + 1); i++)
		store_relaxed_u32(&two.doorbells[i],
				  9); /* relaxed, as all of this: the thread begins later */
	nvmf->queues[1].requests = two.requests;
	two.requests[0] = (struct nvmf_request){
		.state = NVMF_SENT, .carrier = &two.ios[1], .sqe.cdw0 = NVME_OPCODE_READ, .resent = true
	};
	nvmf->queues[1].inflight = two.ios[1].carried = two.io.under_way = 1;
	two.io.associated = two.ios[1].connection.open = nvmf->queues[2].connection.open = true;
	store_relaxed_u32(&two.paths[1].live, 1);
	nvmf->moving = nvmf->rerouted = nvmf->events_due = nvmf->retry_delays = true;
	nvmf->event = nvmf->resent_open = 1;
	nvmf->lost_ns = nvmf->silent_ns = nvmf->rerouted_ns = 1;
	store_relaxed_u32(&nvmf->registers.connected, 1);
	store_relaxed_u32(&nvmf->registers.csts, NVME_CSTS_READY);
	store_relaxed_u32(&nvmf->registers.falls, 1);
	wait_for_reset(nvmf);
	for (unsigned i = 0; i < 2 * (QUEUES + 1); i++)
		assert_int_equal(load_relaxed_u32(&two.doorbells[i]), 0);
	assert_false(is_live() || is_open(1) || nvmf->queues[2].connection.open);
	assert_false(nvmf->queues[1].has_sq || nvmf->queues[2].has_sq);
	assert_int_equal(two.requests[0].state, NVMF_FREE);
	assert_int_equal(nvmf->queues[1].inflight + two.ios[1].carried + two.io.under_way, 0);
	assert_false(nvmf->enabled || nvmf->moving || nvmf->rerouted || nvmf->events_due ||
		     nvmf->retry_delays);
	assert_int_equal(nvmf->event + nvmf->resent_open, 0);
	assert_true(!nvmf->lost_ns && !nvmf->silent_ns && !nvmf->rerouted_ns);
	assert_int_equal(load_relaxed_u32(&nvmf->registers.connected), 0);
	assert_int_equal(load_relaxed_u32(&nvmf->registers.csts), 0);
	end_two(nvmf);
}

/* ---- queues at another path ---- */

/* As many as there are of both kinds. */
static void a_path_has_the_queues_that_it_was_granted(void **state)
{
	static const struct {
		u32 granted;
		bool second;
	} rows[] = { { 1 << 16 | 1, true }, { 1, false }, { 1 << 16, false }, { 0xffffffff, true } };

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nvmf *nvmf = made_two();

		said.granted = rows[i].granted;
		assert_true(nvmf_multipath_tend(&two.paths[1]));
		assert_true(is_live() && is_open(1));
		assert_int_equal(is_open(2), rows[i].second);
		assert_int_equal(two.ios[1].size, ENTRIES);
		end_two(nvmf);
	}
}

/* Whose transfers are shorter than lanes' commands may be carries none. */
static void a_path_with_shorter_transfers_is_not_used(void **state)
{
	(void)state;
	for (u8 mdts = 0; mdts <= LARGE_TRANSFER_LOG2 + 1; mdts++) {
		struct nvmf *nvmf = made_two();
		bool good = !mdts || mdts >= LARGE_TRANSFER_LOG2;

		two.probe.controller.mdts = mdts;
		assert_true(nvmf_multipath_tend(&two.paths[1]));
		assert_int_equal(is_live(), good);
		assert_int_equal(is_open(1), good);
		assert_int_equal(two.paths[1].refused, !good);
		end_two(nvmf);
	}
}

/* What this host said of itself at one path it says at the others. */
static void retry_delays_are_known_at_each_path(void **state)
{
	(void)state;
	for (unsigned knows = 0; knows < 2; knows++) {
		struct nvmf *nvmf = made_two();

		nvmf->retry_delays = knows;
		assert_true(nvmf_multipath_tend(&two.paths[1]));
		assert_true(is_live());
		assert_int_equal(said.delays, knows);
		end_two(nvmf);
	}
}

/* Its admin queue ends while queues are connected: those that were are closed again. */
static void a_path_that_is_lost_keeps_no_queue(void **state)
{
	struct nvmf *nvmf = made_two();

	(void)state;
	two.paths[1].check_ns = 0; /* Keep Alive is due behind the first */
	said.loses = true;
	assert_false(nvmf_multipath_tend(&two.paths[1]));
	assert_int_equal(said.kept, 1);
	assert_int_equal(said.connects, 1);
	assert_false(is_live() || is_open(1) || is_open(2));
	end_two(nvmf);
}

/* A queue that is created again is connected at each path that has it; one that refuses it is lost, and no
 * silence. */
static void a_created_queue_is_connected_at_each_path(void **state)
{
	struct nvmf *nvmf = made_two();

	(void)state;
	assert_true(nvmf_multipath_tend(&two.paths[1]));
	two.paths[1].granted = 1;
	nvmf_multipath_disconnect(nvmf, 1);
	nvmf_multipath_disconnect(nvmf, 2);
	assert_false(is_open(1) || is_open(2));
	assert_true(nvmf_multipath_connect(nvmf, 1));
	assert_true(nvmf_multipath_connect(nvmf, 2)); /* it was not granted there */
	assert_true(is_open(1) && !is_open(2) && !nvmf_multipath_lost(nvmf, 1));
	said.refused = FOR_GOOD;
	said.refusals = said.connects + 1;
	assert_false(nvmf_multipath_connect(nvmf, 1));
	assert_true(nvmf_multipath_lost(nvmf, 1) && nvmf_multipath_any_lost(nvmf));
	assert_false(is_open(1) || two.io.silent);
	assert_false(nvmf_multipath_connect(nvmf, 1)); /* nothing is asked of it any more */
	assert_int_equal(said.connects, said.refusals);
	assert_int_equal(nvmf_multipath_end(nvmf, 1), NVMF_BROKEN);
	assert_false(is_live() || nvmf_multipath_any(nvmf));
	end_two(nvmf);
}

/* One that is not wanted any more keeps its queues as long as they have commands. */
static void a_path_is_left_when_nothing_is_under_way(void **state)
{
	struct nvmf *nvmf = made_two();

	(void)state;
	assert_true(nvmf_multipath_tend(&two.paths[1]));
	assert_true(is_live());
	nvmf_path_set(nvmf, 1, NVME_ANA_INACCESSIBLE);
	two.io.under_way = 1;
	assert_true(nvmf_multipath_tend(&two.paths[1]));
	assert_true(is_live() && is_open(1) && is_open(2));
	two.io.under_way = 0;
	nvmf->late_queue = 1;
	assert_true(nvmf_multipath_tend(&two.paths[1]));
	assert_false(is_live() || is_open(1) || is_open(2));
	assert_int_equal(nvmf->late_queue, 0);
	end_two(nvmf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_said_to_connect),
		cmocka_unit_test(a_refusal_that_passes_is_tried_again),
		cmocka_unit_test(an_association_that_fails_is_closed),
		cmocka_unit_test(what_authentication_takes),
		cmocka_unit_test(a_line_ends_with_its_connection),
		cmocka_unit_test(a_namespace_that_shrank),
		cmocka_unit_test(changes_wait_as_long_as_a_controller_may_take),
		cmocka_unit_test(a_reset_leaves_nothing),
		cmocka_unit_test(a_path_has_the_queues_that_it_was_granted),
		cmocka_unit_test(a_path_with_shorter_transfers_is_not_used),
		cmocka_unit_test(retry_delays_are_known_at_each_path),
		cmocka_unit_test(a_path_that_is_lost_keeps_no_queue),
		cmocka_unit_test(a_created_queue_is_connected_at_each_path),
		cmocka_unit_test(a_path_is_left_when_nothing_is_under_way),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("fabrics_connect", tests, NULL, NULL);
}
