/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_choice_test.c: by which path a command goes, when one that is held is sent, and what is believed of
 * answers, where nothing carries them: a wire that only counts.
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

#include "backend/error.h"
#include "no_wire.h"
#include "transport/fabrics/paths.h"

enum { HOSTS = 3, QUEUE = 1, MOST = 4, LONG_MS = 600000, JOIN_MS = 60000 };

/* A storage whose path in use is the first of three; the others carry commands, too. */
static struct {
	struct nvmf nvmf;
	struct nvmf ios[HOSTS];
	struct nvmf_path paths[HOSTS];
	struct nvmf_queue queues[HOSTS][QUEUE + 1];
	struct nvmf_request requests[MOST * HOSTS];
	struct shared_u32 doorbells[2 * (QUEUE + 1)];
} made;

static void make_queues(unsigned host)
{
	struct nvmf *nvmf = host ? &made.ios[host] : &made.nvmf;

	nvmf->wire = &no_wire;
	nvmf->queues = made.queues[host];
	nvmf->queue_count = QUEUE + 1;
	nvmf->storage = host ? &made.nvmf : NULL;
	nvmf->number = host ? host + 1 : 0;
	nvmf->associated = true;
	nvmf->keys.policy = made.nvmf.keys.policy;
	for (unsigned i = 0; i <= QUEUE; i++)
		made.queues[host][i] = (struct nvmf_queue){ .nvmf = nvmf,
							    .home = host ? &made.queues[0][i] : NULL,
							    .id = i,
							    .most = MOST,
							    .size = MOST * HOSTS,
							    .connection = { .open = true } };
	made.paths[host] = (struct nvmf_path){ .nvmf = &made.nvmf, .io = &made.ios[host], .host = host };
	store_relaxed_u32(&made.paths[host].live, host != 0);
	nvmf_path_set(&made.nvmf, host, NVME_ANA_OPTIMIZED);
}

static void make(enum nvmf_policy policy)
{
	memset(&made, 0, sizeof(made));
	made.nvmf.keys.policy = policy;
	made.nvmf.keys.hosts.count = HOSTS;
	made.nvmf.paths = made.paths;
	made.nvmf.epoll = -1;
	for (unsigned i = 0; i < HOSTS; i++)
		make_queues(i);
	made.queues[0][QUEUE].requests = made.requests;
}

/* Send the next command; the host that carries it, or -1. */
static int send_next(void)
{
	struct nvmf_queue *carrier = nvmf_carrier(&made.queues[0][QUEUE]);

	if (carrier)
		nvmf_carry(carrier, &made.requests[made.queues[0][QUEUE].inflight++]);
	return carrier ? (int)nvmf_host_of(carrier) : -1;
}

static void the_choice_is_of_the_best_state(void **state)
{
	(void)state;
	make(NVMF_ROUND_ROBIN);
	nvmf_path_set(&made.nvmf, 1, NVME_ANA_NON_OPTIMIZED);
	for (unsigned i = 0; i < MOST; i++) {
		assert_int_equal(send_next(), 2);
		assert_int_equal(send_next(), 0);
	}
	assert_int_equal(send_next(), -1); /* full: none of a lesser state takes their place */
	made.queues[2][QUEUE].connection.open = false;
	made.nvmf.lost = true;
	assert_int_equal(send_next(), 1);
}

static void a_full_path_is_passed_over(void **state)
{
	(void)state;
	make(NVMF_ROUND_ROBIN);
	made.queues[1][QUEUE].most = 1;
	assert_int_equal(send_next(), 1);
	assert_int_equal(send_next(), 2);
	assert_int_equal(send_next(), 0);
	assert_int_equal(send_next(), 2);
	assert_int_equal(made.ios[2].under_way, 2);
}

static void the_fewest_under_way_are_all_queues(void **state)
{
	(void)state;
	make(NVMF_QUEUE_DEPTH);
	made.nvmf.under_way = 2, made.ios[1].under_way = 3, made.ios[2].under_way = 1;
	assert_int_equal(send_next(), 2);
	assert_int_equal(send_next(), 0); /* as many as the last: it comes next */
	assert_int_equal(send_next(), 2);
}

static void failover_and_admin_commands_stay(void **state)
{
	(void)state;
	make(NVMF_FAILOVER);
	assert_int_equal(send_next(), 0);
	make(NVMF_ROUND_ROBIN);
	assert_ptr_equal(nvmf_carrier(&made.queues[0][0]), &made.queues[0][0]);
}

/* A controller answers what it has, and not what another one has. */
static void answers_are_of_the_path_that_was_asked(void **state)
{
	(void)state;
	make(NVMF_ROUND_ROBIN);
	made.requests[0].cid = 0;
	assert_int_equal(send_next(), 1);
	assert_null(nvmf_request_of(&made.queues[0][QUEUE], 0));
	assert_null(nvmf_request_of(&made.queues[2][QUEUE], 0));
	assert_ptr_equal(nvmf_request_of(&made.queues[1][QUEUE], 0), &made.requests[0]);
}

static struct nvmf_request command_of(u8 opcode)
{
	return (struct nvmf_request){ .sqe.cdw0 = opcode };
}

static bool waits(u8 opcode)
{
	const struct nvmf_request request = command_of(opcode);

	return nvmf_must_wait(&made.nvmf, &request);
}

/* What has no answer makes later changes wait, and nothing else. */
static void changes_wait_for_a_late_one(void **state)
{
	(void)state;
	make(NVMF_FAILOVER);
	made.nvmf.keys.keep_alive_ms = LONG_MS;
	made.requests[0] = command_of(NVME_OPCODE_READ);
	made.requests[1] = command_of(NVME_OPCODE_WRITE_ZEROES);
	assert_int_equal(send_next(), 0);
	assert_false(nvmf_has_late(&made.queues[0][QUEUE]));
	assert_int_equal(send_next(), 0);
	assert_true(nvmf_has_late(&made.queues[0][QUEUE]));
	made.requests[1].answered = true;
	assert_false(nvmf_has_late(&made.queues[0][QUEUE]));
	assert_false(waits(NVME_OPCODE_WRITE));
	nvmf_hold_changes(&made.nvmf, QUEUE);
	assert_true(waits(NVME_OPCODE_WRITE) && waits(NVME_OPCODE_WRITE_ZEROES) && waits(NVME_OPCODE_DSM));
	assert_false(waits(NVME_OPCODE_READ) || waits(NVME_OPCODE_FLUSH));
	assert_true(made.nvmf.rerouted);
	assert_int_equal(made.nvmf.retry_ns, made.nvmf.hold_ns);
}

/* Whose queue's number each controller has given again has no late change; another one's queue may. */
static void a_late_change_ends_with_its_queue(void **state)
{
	(void)state;
	make(NVMF_FAILOVER);
	made.nvmf.keys.keep_alive_ms = LONG_MS;
	nvmf_hold_changes(&made.nvmf, QUEUE);
	nvmf_end_hold(&made.nvmf, QUEUE + 1);
	assert_true(waits(NVME_OPCODE_WRITE));
	nvmf_end_hold(&made.nvmf, QUEUE);
	assert_false(waits(NVME_OPCODE_WRITE));
	assert_int_equal(made.nvmf.retry_ns, 0); /* at once */
	nvmf_hold_changes(&made.nvmf, QUEUE);
	nvmf_hold_changes(&made.nvmf, QUEUE + 1);
	nvmf_end_hold(&made.nvmf, QUEUE + 1);
	assert_true(waits(NVME_OPCODE_WRITE)); /* the first one's is still late */
	made.nvmf.hold_ns = 0;
	nvmf_hold_changes(&made.nvmf, QUEUE);
	nvmf_hold_until(&made.nvmf, 0); /* a path is lost */
	nvmf_end_hold(&made.nvmf, QUEUE);
	assert_true(waits(NVME_OPCODE_WRITE));
}

/* A thread keeps the storage until @done. */
static void keep_made(bool (*done)(void))
{
	bool is_done = false;

	made.nvmf.doorbells = made.doorbells;
	assert_int_equal(pthread_mutex_init(&made.nvmf.mutex, NULL), 0);
	assert_int_equal(weir_sleeper_open(&made.nvmf.sleeper), 0);
	made.nvmf.started = made.nvmf.joined = false;
	store_relaxed_u32(&made.nvmf.registers.stop, 0); /* relaxed: the thread begins later */
	assert_int_equal(nvmf_keeper_start(&made.nvmf), 0);
	while (!is_done) {
		pthread_mutex_lock(&made.nvmf.mutex);
		is_done = done();
		pthread_mutex_unlock(&made.nvmf.mutex);
	}
	assert_int_equal(nvmf_keeper_stop(&made.nvmf, JOIN_MS), 0);
	weir_sleeper_close(&made.nvmf.sleeper);
	pthread_mutex_destroy(&made.nvmf.mutex);
}

static bool is_reset(void)
{
	return !nvmf_stopping(&made.nvmf);
}

static void reset_made(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		store_relaxed_u32(&made.paths[i].live, 0); /* relaxed, as the next: the thread begins later */
	store_relaxed_u32(&made.nvmf.registers.stop, 0);
	store_relaxed_u32(&made.nvmf.registers.falls, made.nvmf.falls_done + 1);
	keep_made(is_reset);
}

static void a_reset_forgets_no_late_change(void **state)
{
	(void)state;
	make(NVMF_FAILOVER);
	made.nvmf.keys.keep_alive_ms = LONG_MS;
	reset_made();
	assert_false(waits(NVME_OPCODE_WRITE));
	make(NVMF_FAILOVER);
	made.nvmf.keys.keep_alive_ms = LONG_MS;
	made.requests[0] = command_of(NVME_OPCODE_WRITE);
	assert_int_equal(send_next(), 0);
	reset_made();
	assert_int_equal(made.requests[0].state, NVMF_FREE);
	assert_true(waits(NVME_OPCODE_WRITE));
	reset_made(); /* once more, with nothing under way */
	assert_true(waits(NVME_OPCODE_WRITE));
}

static int create_nothing(struct nvmf_queue *queue, u32 entries)
{
	(void)queue, (void)entries;
	return 0;
}

static int open_in_vain(struct nvmf_queue *queue, const struct weir_address *address)
{
	(void)queue, (void)address;
	return weir_fail(ETIMEDOUT, "nobody answers");
}

static bool is_left(void)
{
	return !nvmf_multipath_io(&made.nvmf, 1);
}

/* A try to connect that a reset has ended was not the path's fault: it is the next one's path, too. */
static void a_try_that_was_given_up_refuses_no_path(void **state)
{
	(void)state;
	make(NVMF_FAILOVER);
	store_relaxed_u32(&made.nvmf.registers.falls, 1); /* relaxed, as the next: there is one thread */
	nvmf_path_refuse(&made.nvmf, true);
	assert_int_equal(nvmf_path_state(&made.nvmf, 0), NVME_ANA_OPTIMIZED);
	assert_int_equal(nvmf_path_rank_now(&made.nvmf, 0), nvmf_path_rank(NVME_ANA_OPTIMIZED));
	assert_int_equal(made.nvmf.host, 0);
	made.nvmf.falls_done = 1;
	nvmf_path_refuse(&made.nvmf, true);
	assert_int_equal(nvmf_path_rank_now(&made.nvmf, 0), nvmf_path_rank(NVMF_PATH_LOST));
	assert_int_equal(made.nvmf.host, 1);
}

/* A path that does not answer when a queue is created again may still carry out what it has of others. */
static void a_path_without_a_queue_is_silent(void **state)
{
	static struct nvmf probe = { .sleeper.file = -1 };
	struct nvmf_wire deaf = no_wire;
	u64 now = nvmf_now_ns();

	(void)state;
	make(NVMF_ROUND_ROBIN);
	deaf.create = create_nothing;
	deaf.open = open_in_vain;
	made.nvmf.uri = made.ios[1].uri = strdup("nvmf:made");
	made.nvmf.keys.keep_alive_ms = LONG_MS;
	made.nvmf.enabled = true;
	made.paths[1].probe = &probe;
	made.paths[1].granted = QUEUE;
	made.ios[1].wire = &deaf;
	made.requests[0] = command_of(NVME_OPCODE_WRITE);
	assert_int_equal(send_next(), 1);
	assert_false(nvmf_multipath_connect(&made.nvmf, QUEUE));
	assert_true(made.ios[1].lost);
	keep_made(is_left);
	assert_int_equal(made.requests[0].state, NVMF_HELD);
	assert_true(made.nvmf.hold_ns - now > (u64)LONG_MS * 1000000);
	free(made.nvmf.uri);
}

static unsigned kept_alive; /* how often the path's admin queue was */

/* Each command ends at once, and well. */
static void answer_at_once(struct nvmf_queue *queue, struct nvmf_request *request)
{
	const struct nvme_cqe good = { .dw3 = request->cid };

	kept_alive += !queue->id && (request->sqe.cdw0 & 0xff) == NVME_ADMIN_KEEP_ALIVE;
	request->granted = request->received = request->bytes;
	nvmf_request_end(queue, request, &good);
}

/* It takes so long that Keep Alive is due meanwhile. */
static int open_slowly(struct nvmf_queue *queue, const struct weir_address *address)
{
	(void)address;
	made.paths[1].check_ns = 0;
	queue->connection.open = true;
	return 0;
}

/* While a path's queues are connected one after the other, its admin queue is kept alive. */
static void a_path_is_kept_while_its_queues_are_connected(void **state)
{
	static struct nvmf_queue admin;
	static struct nvmf probe = { .queues = &admin, .queue_count = 1, .keys.keep_alive_ms = LONG_MS };
	struct nvmf_wire slow = no_wire;

	(void)state;
	make(NVMF_ROUND_ROBIN);
	slow.create = create_nothing;
	slow.open = open_slowly;
	slow.begin = answer_at_once;
	admin.nvmf = &probe;
	probe.wire = made.ios[1].wire = &slow;
	made.nvmf.keys.mdts = NVME_PAGE_BYTES;
	made.nvmf.enabled = made.queues[0][QUEUE].has_sq = true;
	made.queues[1][QUEUE].connection.open = made.ios[1].associated = false;
	made.paths[1].probe = &probe;
	made.paths[1].check_ns = UINT64_MAX;
	store_relaxed_u32(&made.paths[1].live, 0); /* relaxed: there is one thread */
	assert_int_equal(pthread_mutex_init(&made.nvmf.mutex, NULL), 0);
	kept_alive = 0;
	assert_true(nvmf_multipath_tend(&made.paths[1]));
	assert_non_null(nvmf_multipath_io(&made.nvmf, 1));
	assert_int_equal(kept_alive, 1);
	pthread_mutex_destroy(&made.nvmf.mutex);
}

static bool is_away(void)
{
	return made.nvmf.lost_ns != 0;
}

/* A connection ends while changes wait for one that may be late: they go on waiting as long as before. */
static void a_loss_holds_no_shorter(void **state)
{
	struct nvmf_wire deaf = no_wire;
	u64 until = nvmf_now_ns() + (u64)LONG_MS * 1000000;

	(void)state;
	make(NVMF_FAILOVER);
	deaf.create = create_nothing;
	deaf.open = open_in_vain;
	made.nvmf.wire = &deaf;
	made.nvmf.uri = strdup("nvmf:made");
	made.nvmf.keys.ctrl_loss_ms = LONG_MS;
	made.nvmf.enabled = true;
	made.nvmf.hold_ns = until;
	nvmf_lose(&made.nvmf, "by the test");
	keep_made(is_away);
	assert_true(made.nvmf.hold_ns == until);
	free(made.nvmf.uri);
}

/* A command was answered before all of it was sent, and the connection ends: it has ended, and is not carried
 * out once more. */
static void an_answer_before_the_end_counts(void **state)
{
	struct nvme_cqe cqes[MOST * HOSTS] = { { .dw3 = 0 } };
	const struct nvme_cqe refused = { .dw3 = (u32)NVME_STATUS_WRITE_FAULT << 17 };
	struct nvmf_queue *queue = &made.queues[0][QUEUE];

	(void)state;
	make(NVMF_FAILOVER);
	queue->cq = cqes;
	queue->phase = 1;
	made.requests[0] = command_of(NVME_OPCODE_WRITE);
	assert_int_equal(send_next(), 0);
	made.requests[0].sending = 1;
	nvmf_request_end(queue, &made.requests[0], &refused);
	assert_int_equal(made.requests[0].state, NVMF_SENT);
	nvmf_dissociate(&made.nvmf);
	assert_int_equal(made.requests[0].state, NVMF_FREE);
	assert_int_equal(cqes[0].dw3, 1u << 16 | (u32)NVME_STATUS_WRITE_FAULT << 17);
}

/* Whoever waits for an answer in vain has met a silence, which is no end of a connection: what else the
 * controller has it may still carry out. */
static void a_command_without_an_answer_is_a_silence(void **state)
{
	const struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_KEEP_ALIVE };
	struct nvmf_queue *admin = &made.queues[0][0];
	struct nvme_cqe cqe;

	(void)state;
	make(NVMF_FAILOVER);
	assert_int_equal(nvmf_command(admin, &sqe, NULL, 0, NVMF_NO_DATA, "Keep Alive", &cqe, 1), -ETIMEDOUT);
	assert_true(made.nvmf.lost && made.nvmf.silent);
	make(NVMF_FAILOVER);
	store_relaxed_u32(&made.nvmf.registers.stop, 1); /* relaxed: there is one thread */
	assert_int_equal(nvmf_command(admin, &sqe, NULL, 0, NVMF_NO_DATA, "Keep Alive", &cqe, 1), -ECANCELED);
	assert_true(made.nvmf.lost && !made.nvmf.silent);
}

/* A command that a lost path had is sent again before anything new is taken from its ring. */
static void nothing_new_before_what_is_held(void **state)
{
	static const struct nvme_sqe ring[MOST * HOSTS];
	struct nvmf_queue *queue = &made.queues[0][QUEUE];

	(void)state;
	make(NVMF_FAILOVER);
	made.nvmf.keys.mdts = NVME_PAGE_BYTES;
	made.nvmf.doorbells = made.doorbells;
	queue->sq = (const unsigned char *)ring;
	queue->tail = 1;
	queue->cq_free = MOST * HOSTS;
	queue->has_sq = true;
	made.requests[MOST].state = NVMF_HELD;
	nvmf_hold_until(&made.nvmf, 1);
	assert_int_equal(made.nvmf.resent_open, 1);
	assert_int_equal(nvmf_ring_fetch(queue), 0);
	nvmf_send_again(&made.nvmf);
	assert_int_equal(made.requests[MOST].state, NVMF_SENT);
	assert_int_equal(nvmf_ring_fetch(queue), 0);
}

/* A head of the completion ring that no lane can have read to is not believed: what is there stays. */
static void a_head_past_what_was_posted(void **state)
{
	enum { ENTRIES = MOST * HOSTS, HEAD = 2, TAIL = 5, FREE = ENTRIES - 1 - (TAIL - HEAD) };
	static const u32 wrong[] = { TAIL + 1, ENTRIES - 1, HEAD - 1, 0, ENTRIES, UINT32_MAX };
	struct nvmf_queue *queue = &made.queues[0][QUEUE];

	(void)state;
	make(NVMF_FAILOVER);
	made.nvmf.doorbells = made.doorbells;
	queue->has_sq = true;
	queue->cq_head = HEAD;
	queue->cq_tail = TAIL;
	queue->cq_free = FREE - ENTRIES / 2; /* others are promised, so that the head is looked at */
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		store_relaxed_u32(&made.doorbells[2 * QUEUE + 1],
				  wrong[i]); /* relaxed: there is one thread */
		assert_int_equal(nvmf_ring_fetch(queue), 0);
		assert_int_equal(queue->cq_head, HEAD);
		assert_int_equal(queue->cq_free, FREE - ENTRIES / 2);
	}
	store_relaxed_u32(&made.doorbells[2 * QUEUE + 1], TAIL);
	assert_int_equal(nvmf_ring_fetch(queue), 0);
	assert_int_equal(queue->cq_head, TAIL);
	assert_int_equal(queue->cq_free, FREE - ENTRIES / 2 + TAIL - HEAD);
}

/* A command by the CID of one that is under way, or waits to be sent again, is refused; that one stays. */
static void a_cid_names_one_command(void **state)
{
	static const u8 states[] = { NVMF_SENT, NVMF_HELD };
	static const struct nvme_sqe ring[] = { { .cdw0 = NVME_OPCODE_FLUSH | (u32)MOST << 16, .nsid = 1 } };
	struct nvmf_queue *queue = &made.queues[0][QUEUE];

	(void)state;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct nvme_cqe cqes[MOST * HOSTS] = { { .dw3 = 0 } };

		make(NVMF_FAILOVER);
		made.nvmf.keys.mdts = NVME_PAGE_BYTES;
		made.nvmf.doorbells = made.doorbells;
		queue->sq = (const unsigned char *)ring;
		queue->cq = cqes;
		queue->tail = queue->phase = 1;
		queue->cq_free = MOST * HOSTS - 1;
		queue->has_sq = true;
		store_relaxed_u32(&made.doorbells[2 * QUEUE], 1); /* relaxed: there is one thread */
		made.requests[MOST].state = states[i];
		made.requests[MOST].sqe.cdw0 = NVME_OPCODE_WRITE | (u32)MOST << 16;
		assert_int_equal(nvmf_ring_fetch(queue), 1);
		assert_int_equal(cqes[0].dw3, MOST | 1u << 16 | (u32)NVME_STATUS_CID_CONFLICT << 17);
		assert_int_equal(made.requests[MOST].state, states[i]);
		assert_int_equal(made.requests[MOST].sqe.cdw0 & 0xff, NVME_OPCODE_WRITE);
	}
}

static unsigned event_requests;

/* Answers what the host waits for, and keeps what it does not. */
static void begin_and_answer(struct nvmf_queue *queue, struct nvmf_request *request)
{
	const struct nvme_cqe good = { .dw3 = 0 };

	if ((u8)request->sqe.cdw0 == NVME_ADMIN_ASYNC_EVENT)
		event_requests++;
	else
		nvmf_request_end(queue, request, &good);
}

/* A CID names one command at a time: the request that the controller has is no other's. */
static void one_event_request_at_a_time(void **state)
{
	struct nvmf_wire answers = no_wire;
	const struct nvme_cqe event = { .dw0 = (u32)NVME_LOG_ANA << 16 };
	struct nvmf_queue *admin = &made.queues[0][0];
	u32 now;

	(void)state;
	make(NVMF_FAILOVER);
	answers.begin = begin_and_answer;
	made.nvmf.wire = &answers;
	made.nvmf.controller.oaes = ~0u;
	event_requests = 0;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(nvmf_events_begin(&made.nvmf), 0);
	assert_int_equal(event_requests, 1);
	nvmf_request_end(admin, &admin->internal[NVMF_EVENT], &event);
	assert_int_equal(nvmf_events_take(&made.nvmf, 1, &now), 0);
	assert_int_equal(event_requests, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_choice_is_of_the_best_state),
		cmocka_unit_test(a_full_path_is_passed_over),
		cmocka_unit_test(the_fewest_under_way_are_all_queues),
		cmocka_unit_test(failover_and_admin_commands_stay),
		cmocka_unit_test(answers_are_of_the_path_that_was_asked),
		cmocka_unit_test(changes_wait_for_a_late_one),
		cmocka_unit_test(a_late_change_ends_with_its_queue),
		cmocka_unit_test(a_reset_forgets_no_late_change),
		cmocka_unit_test(a_try_that_was_given_up_refuses_no_path),
		cmocka_unit_test(a_path_without_a_queue_is_silent),
		cmocka_unit_test(a_path_is_kept_while_its_queues_are_connected),
		cmocka_unit_test(a_loss_holds_no_shorter),
		cmocka_unit_test(an_answer_before_the_end_counts),
		cmocka_unit_test(a_command_without_an_answer_is_a_silence),
		cmocka_unit_test(nothing_new_before_what_is_held),
		cmocka_unit_test(a_head_past_what_was_posted),
		cmocka_unit_test(a_cid_names_one_command),
		cmocka_unit_test(one_event_request_at_a_time),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
