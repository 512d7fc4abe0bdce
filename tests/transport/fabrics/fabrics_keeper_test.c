/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_keeper_test.c: what a keeper makes of the runtime's registers and of time, and what is known of
 * hosts, over a wire that answers at once.
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

#include "backend/error.h"
#include "no_wire.h"
#include "transport/fabrics/paths.h"

enum { ENTRIES = 16, LONG_MS = 600000, KEEP_ALIVE_MS = 10000, JOIN_MS = 60000, NS_OF_A_MS = 1000000 };

static _Alignas(NVME_PAGE_BYTES) unsigned char asq[2 * NVME_PAGE_BYTES], acq[NVME_PAGE_BYTES];
static struct shared_u32 doorbells[4];
static u32 csts;      /* that the controller says */
static u32 cc;        /* that it was given last */
static unsigned kept; /* Keep Alives */

static bool nobody_is_there;

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
	if (nobody_is_there)
		return weir_fail(ETIMEDOUT, "nobody answers");
	queue->connection.open = true;
	return 0;
}

/* All commands are good; Keep Alive has no answer. */
static void begin(struct nvmf_queue *queue, struct nvmf_request *request)
{
	struct nvme_fabrics_property property;
	struct nvme_cqe cqe = { .dw3 = request->cid };

	memcpy(&property, &request->sqe, sizeof(property));
	if (property.opcode == NVME_OPCODE_FABRICS && property.fctype == NVME_FCTYPE_PROPERTY_SET)
		cc = (u32)property.value;
	if (property.opcode == NVME_OPCODE_FABRICS && property.fctype == NVME_FCTYPE_PROPERTY_GET &&
	    property.offset == NVME_PROPERTY_CSTS)
		cqe.dw0 = csts;
	request->granted = request->received = request->bytes;
	if (property.opcode == NVME_ADMIN_KEEP_ALIVE)
		kept++;
	else
		nvmf_request_end(queue, request, &cqe);
}

static const struct nvmf_wire wire = { .create = create_nothing,
				       .destroy = destroy_nothing,
				       .open = open_at_once,
				       .close = close_nothing,
				       .send = move_nothing,
				       .receive = move_nothing,
				       .room = any_room,
				       .begin = begin };

static struct nvmf *made(const char *body, unsigned queues)
{
	struct nvmf_keys keys = { .connect_ms = JOIN_MS,
				  .ctrl_loss_ms = LONG_MS,
				  .keep_alive_ms = KEEP_ALIVE_MS,
				  .mdts = 2 * NVME_PAGE_BYTES };
	struct nvmf *nvmf = NULL;

	csts = cc = 0;
	kept = 0;
	assert_int_equal(weir_address_parse("nvmf:made", body, &keys.hosts, keys.nqn, sizeof(keys.nqn)), 0);
	assert_int_equal(nvmf_new("nvmf:made", &keys, queues, &nvmf), 0);
	nvmf_connection_close(&nvmf->queues[0]);
	nvmf->wire->destroy(&nvmf->queues[0]);
	nvmf->wire = &wire;
	nvmf->doorbells = doorbells;
	assert_int_equal(weir_dma_map_create(&nvmf->dma), 0);
	return nvmf;
}

static struct nvmf *made_one(void)
{
	return made("tcp://127.0.0.1:1/nqn.2026-11.test:made", 0);
}

static void end(struct nvmf *nvmf)
{
	struct weir_dma_map *dma = nvmf->dma;

	nvmf_free(nvmf);
	weir_dma_map_destroy(dma);
}

/* ---- registers ---- */

/* A thread keeps the storage until CSTS has one of @bits. */
static u32 keep_until(struct nvmf *nvmf, u32 bits)
{
	u32 now = 0;

	assert_int_equal(nvmf_keeper_start(nvmf), 0);
	while (!(now & bits)) /* acquire: pairs with publish() in keeper.c */
		now = load_acquire_u32(&nvmf->registers.csts);
	assert_int_equal(nvmf_keeper_stop(nvmf, JOIN_MS), 0);
	return now;
}

static u32 started_with(const void *sq, const void *cq, u32 entries, u32 says)
{
	struct nvmf *nvmf = made_one();
	u32 now;

	if (sq)
		assert_int_equal(weir_dma_map_add(nvmf->dma, asq, sizeof(asq)), 0);
	if (cq)
		assert_int_equal(weir_dma_map_add(nvmf->dma, acq, sizeof(acq)), 0);
	csts = says;
	/* relaxed, as the others: the thread begins later */
	store_relaxed_u64(&nvmf->registers.asq, (u64)(uintptr_t)asq);
	store_relaxed_u64(&nvmf->registers.acq, (u64)(uintptr_t)acq);
	store_relaxed_u32(&nvmf->registers.aqa, (entries - 1) << 16 | (entries - 1));
	store_relaxed_u32(&nvmf->registers.cc, NVME_CC_ENABLE);
	now = keep_until(nvmf, NVME_CSTS_READY | NVME_CSTS_FATAL);
	assert_int_equal(nvmf->queues[0].has_sq, now == NVME_CSTS_READY);
	assert_int_equal(load_relaxed_u32(&nvmf->registers.connected), now == NVME_CSTS_READY);
	assert_int_equal(cc, NVME_CC_ENABLE);
	end(nvmf);
	return now;
}

/* Both of its admin queue's rings are memory that it may touch, of a length that there is; and it says itself
 * that it is ready, and not that it has failed. */
static void a_controller_starts_with_rings_that_it_reaches(void **state)
{
	(void)state;
	assert_int_equal(started_with(asq, acq, ENTRIES, NVME_CSTS_READY), NVME_CSTS_READY);
	assert_int_equal(started_with(asq, acq, NVMF_ADMIN_RING, NVME_CSTS_READY), NVME_CSTS_READY);
	assert_int_equal(started_with(asq, NULL, ENTRIES, NVME_CSTS_READY), NVME_CSTS_FATAL);
	assert_int_equal(started_with(NULL, acq, ENTRIES, NVME_CSTS_READY), NVME_CSTS_FATAL);
	assert_int_equal(started_with(asq, acq, 1, NVME_CSTS_READY), NVME_CSTS_FATAL);
	assert_int_equal(started_with(asq, acq, NVMF_ADMIN_RING + 1, NVME_CSTS_READY), NVME_CSTS_FATAL);
	assert_int_equal(started_with(asq, acq, ENTRIES, NVME_CSTS_READY | NVME_CSTS_FATAL), NVME_CSTS_FATAL);
}

/** struct end_row - of a shutdown: what the controller says, what was written and not flushed, and what the
 * runtime sees then */
struct end_row {
	u32 says;
	bool wrote, unflushed, associated;
	u32 sees;
};

/* It is complete when the controller says so, and all that was written is durable; else it has failed. */
static void a_shutdown_is_complete_or_has_failed(void **state)
{
	static const struct end_row rows[] = {
		{ NVME_CSTS_SHUTDOWN_DONE, false, false, true, NVME_CSTS_READY | NVME_CSTS_SHUTDOWN_DONE },
		{ NVME_CSTS_SHUTDOWN_DONE, true, false, true, NVME_CSTS_READY | NVME_CSTS_FATAL },
		{ NVME_CSTS_SHUTDOWN_DONE, false, true, true, NVME_CSTS_READY | NVME_CSTS_FATAL },
		{ NVME_CSTS_SHUTDOWN_DONE, false, false, false, NVME_CSTS_READY | NVME_CSTS_FATAL },
		{ NVME_CSTS_READY | NVME_CSTS_FATAL, false, false, true, NVME_CSTS_READY | NVME_CSTS_FATAL },
	};
	const u32 value = NVME_CC_ENABLE | 1u << 14; /* a normal shutdown */

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nvmf *nvmf = made_one();

		csts = rows[i].says;
		nvmf->enabled = nvmf->began = true;
		nvmf->wrote = rows[i].wrote;
		nvmf->unflushed = rows[i].unflushed;
		nvmf->associated = nvmf->queues[0].connection.open = rows[i].associated;
		nvmf->lost_ns = !rows[i].associated;
		nvmf->again_ns = UINT64_MAX;
		nvmf->alive_ns = UINT64_MAX;
		store_relaxed_u32(&nvmf->registers.csts, NVME_CSTS_READY); /* relaxed: as above */
		store_relaxed_u32(&nvmf->registers.cc, value);
		assert_int_equal(keep_until(nvmf, NVME_CSTS_SHUTDOWN_MASK | NVME_CSTS_FATAL), rows[i].sees);
		assert_int_equal(cc, rows[i].associated ? value : 0);
		end(nvmf);
	}
}

/* As of any controller: those of 64 bits whole, and a start has time to connect, too. */
static void registers_of_a_controller_on_a_network(void **state)
{
	static const u64 rows[][2] = { { 1, 40 }, { 39, 40 }, { 40, 40 }, { 41, 41 }, { 255, 255 } };
	const u64 others = ~((u64)0xff << 24), far = ((u64)0x12345678 << 32) | 0x9abcd000;
	const struct weir_transport_ops *ops = &weir_transport_nvmf;
	struct nvmf *nvmf = made_one();
	struct weir_transport *transport = &nvmf->base;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		nvmf->controller.cap = (others & 0xfedcba9876543210) | rows[i][0] << 24;
		assert_true(ops->read64(transport, NVME_REGISTER_CAP) ==
			    ((others & 0xfedcba9876543210) | rows[i][1] << 24));
	}
	nvmf->controller.vs = 0x20000;
	assert_int_equal(ops->read32(transport, NVME_REGISTER_VS), 0x20000);
	ops->write64(transport, NVME_REGISTER_ASQ, far);
	ops->write64(transport, NVME_REGISTER_ACQ, 2 * far);
	ops->write32(transport, NVME_REGISTER_AQA, 77);
	assert_true(load_relaxed_u64(&nvmf->registers.asq) == far); /* relaxed: there is one thread */
	assert_true(load_relaxed_u64(&nvmf->registers.acq) == 2 * far);
	assert_int_equal(load_relaxed_u32(&nvmf->registers.aqa), 77);
	for (unsigned i = 0; i < 2; i++)
		assert_true(ops->doorbell(transport, i) == (u64)(uintptr_t)&doorbells[i]);
	end(nvmf);
}

/* A reset is what ends a controller that was enabled, as often as that is. */
static void resets_are_falls_of_enable(void **state)
{
	static const u32 values[] = { 0, 1, 1, 0x4001, 0, 0, 0x4000, 1, 0 };
	const struct weir_transport_ops *ops = &weir_transport_nvmf;
	struct nvmf *nvmf = made_one();
	unsigned falls = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		falls += i && (values[i - 1] & 1) && !(values[i] & 1);
		ops->write32(&nvmf->base, NVME_REGISTER_CC, values[i]);
		assert_int_equal(ops->read32(&nvmf->base, NVME_REGISTER_CC), values[i]);
		assert_int_equal(load_relaxed_u32(&nvmf->registers.falls), falls); /* relaxed: as above */
		assert_int_equal(nvmf_stopping(nvmf), falls != 0);
	}
	end(nvmf);
}

/* It is away while it is looked for; one that has failed, or was given up, is not, and is waited for by
 * nobody.
 */
static void who_is_away(void **state)
{
	const struct weir_transport_ops *ops = &weir_transport_nvmf;
	struct nvmf *nvmf = made_one();

	(void)state;
	assert_true(ops->away(&nvmf->base));
	assert_int_equal(ops->restart(&nvmf->base), 0);         /* it is not enabled: nobody connects */
	store_relaxed_u32(&nvmf->registers.cc, NVME_CC_ENABLE); /* relaxed: there is one thread */
	store_relaxed_u32(&nvmf->registers.connected, 1);
	store_relaxed_u32(&nvmf->registers.csts, NVME_CSTS_READY);
	assert_false(ops->away(&nvmf->base));
	assert_int_equal(ops->restart(&nvmf->base), 0);
	store_relaxed_u32(&nvmf->registers.connected, 0);
	assert_true(ops->away(&nvmf->base));
	store_relaxed_u32(&nvmf->registers.csts, NVME_CSTS_FATAL);
	assert_false(ops->away(&nvmf->base));
	assert_int_equal(ops->restart(&nvmf->base), 0);
	store_relaxed_u32(&nvmf->registers.csts, UINT32_MAX);
	assert_false(ops->away(&nvmf->base));
	assert_int_equal(ops->restart(&nvmf->base), -ENOTCONN);
	end(nvmf);
}

/* ---- Keep Alive ---- */

/* Once in half of its time, one at a time; silence is longer than all of it. */
static void keep_alive_has_its_times(void **state)
{
	const u64 limit = KEEP_ALIVE_MS * (u64)NS_OF_A_MS, at = 5 * limit;
	const struct nvme_cqe good = { .dw3 = NVMF_INTERNAL_CID + NVMF_KEEP_ALIVE };
	struct nvmf *nvmf = made_one();
	struct nvmf_queue *admin = &nvmf->queues[0];

	(void)state;
	nvmf->associated = true;
	nvmf->alive_ns = at;
	nvmf_keep_alive(nvmf, at - 1);
	assert_int_equal(kept, 0);
	nvmf_keep_alive(nvmf, at);
	assert_int_equal(kept, 1);
	assert_true(nvmf->alive_ns == at + limit / 2 && nvmf->silent_ns == at);
	nvmf_keep_alive(nvmf, at + limit); /* it is due, and the last one has no answer */
	assert_int_equal(kept, 1);
	assert_false(nvmf->lost);
	nvmf_request_end(admin, &admin->internal[NVMF_KEEP_ALIVE], &good);
	assert_true(nvmf->silent_ns == 0);
	nvmf_keep_alive(nvmf, at + limit + 1);
	assert_int_equal(kept, 2);
	nvmf_keep_alive(nvmf, at + 2 * limit + 1);
	assert_false(nvmf->lost || nvmf->silent);
	nvmf_keep_alive(nvmf, at + 2 * limit + 2);
	assert_true(nvmf->lost && nvmf->silent);
	assert_int_equal(kept, 2);
	end(nvmf);
}

/* Not of one that is away, nor where none was agreed on. */
static void keep_alive_is_of_an_association(void **state)
{
	struct nvmf *nvmf = made_one();

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		nvmf->associated = i != 0;
		nvmf->lost = i == 1;
		nvmf->keys.keep_alive_ms = i == 2 ? 0 : KEEP_ALIVE_MS;
		nvmf_keep_alive(nvmf, nvmf_now_ns());
		assert_int_equal(kept, i == 3);
	}
	end(nvmf);
}

/* A new association has been silent for no time, and is kept before half of its own has passed. */
static void an_association_begins_its_times(void **state)
{
	const u64 half = KEEP_ALIVE_MS * (u64)NS_OF_A_MS / 2;
	struct nvmf *nvmf = made_one();
	u64 before = nvmf_now_ns();

	(void)state;
	nvmf->silent_ns = 1;
	assert_int_equal(nvmf_associate(nvmf), 0);
	assert_true(nvmf->associated && !nvmf->silent_ns);
	assert_true(nvmf->alive_ns >= before + half && nvmf->alive_ns <= nvmf_now_ns() + half);
	end(nvmf);
}

/** struct loss - of a connection: whether its controller fell silent, and which way data of a command goes
 * that it had; how long that waits */
struct loss {
	bool silent;
	enum nvmf_way way;
	unsigned wait_ms;
};

/* What a silent controller may still write waits until it must have noticed; nothing else does. */
static void changes_alone_wait_behind_a_loss(void **state)
{
	static const struct loss rows[] = { { true, NVMF_TO_CONTROLLER, KEEP_ALIVE_MS },
					    { true, NVMF_NO_DATA, KEEP_ALIVE_MS },
					    { true, NVMF_TO_HOST, 0 },
					    { false, NVMF_TO_CONTROLLER, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nvmf *nvmf = made("tcp://127.0.0.1:1/nqn.2026-11.test:made", 1);
		struct nvmf_queue *queue = &nvmf->queues[1];
		bool lost = false;

		nobody_is_there = true;
		queue->size = ENTRIES;
		queue->requests = calloc(ENTRIES, sizeof(*queue->requests));
		queue->requests[5] =
			(struct nvmf_request){ .state = NVMF_SENT, .carrier = queue, .way = (u8)rows[i].way };
		queue->inflight = queue->carried = nvmf->under_way = 1;
		nvmf->enabled = nvmf->began = nvmf->associated = true;
		queue->connection.open = nvmf->queues[0].connection.open = true;
		nvmf->alive_ns = UINT64_MAX;
		nvmf->silent = rows[i].silent;
		nvmf_path_set(nvmf, 0, NVME_ANA_OPTIMIZED);
		nvmf_lose(nvmf, "by the test");
		store_relaxed_u32(&nvmf->registers.connected, 1); /* relaxed: the thread begins later */
		assert_int_equal(nvmf_keeper_start(nvmf), 0);
		while (!lost) {
			pthread_mutex_lock(&nvmf->mutex);
			lost = nvmf->lost_ns != 0;
			pthread_mutex_unlock(&nvmf->mutex);
		}
		assert_int_equal(nvmf_keeper_stop(nvmf, JOIN_MS), 0);
		assert_true(nvmf->hold_ns - nvmf->lost_ns == rows[i].wait_ms * (u64)NS_OF_A_MS);
		assert_int_equal(queue->requests[5].state, NVMF_HELD);
		assert_int_equal(queue->inflight, 1);
		assert_int_equal(queue->carried + nvmf->under_way, 0);
		assert_false(queue->connection.open || nvmf->queues[0].connection.open || nvmf->associated);
		assert_int_equal(nvmf_path_state(nvmf, 0), NVMF_PATH_LOST);
		assert_int_equal(load_relaxed_u32(&nvmf->registers.connected), 0);
		nobody_is_there = false;
		end(nvmf);
	}
}

/* ---- hosts ---- */

enum { HOSTS = 4 };

static struct nvmf *made_several(void)
{
	struct nvmf *nvmf = made("tcp://h:1,h:2,h:3,h:4/nqn.2026-11.test:made", 0);

	assert_int_equal(nvmf->keys.hosts.count, HOSTS);
	return nvmf;
}

/* The best state first; of equal ones that behind the one in use. */
static void hosts_have_an_order(void **state)
{
	static const u32 states[] = { NVME_ANA_OPTIMIZED, NVME_ANA_NON_OPTIMIZED, NVMF_PATH_UNKNOWN,
				      NVME_ANA_CHANGE,    NVME_ANA_INACCESSIBLE,  NVME_ANA_PERSISTENT_LOSS,
				      NVMF_PATH_LOST };
	struct nvmf *nvmf = made_several();
	unsigned order[WEIR_ADDRESS_MOST];

	(void)state;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		assert_int_equal(nvmf_path_rank(states[i]), i);
	nvmf->host = 2;
	nvmf_path_set(nvmf, 0, NVME_ANA_NON_OPTIMIZED);
	nvmf_path_set(nvmf, 1, NVME_ANA_OPTIMIZED);
	nvmf_path_set(nvmf, 2, NVME_ANA_NON_OPTIMIZED);
	nvmf_path_set(nvmf, 3, NVME_ANA_NON_OPTIMIZED);
	assert_int_equal(nvmf_path_order(nvmf, order), HOSTS);
	assert_int_equal(order[0], 1);
	assert_int_equal(order[1], 2);
	assert_int_equal(order[2], 3);
	assert_int_equal(order[3], 0);
	assert_true(nvmf_path_is_better(nvmf));
	nvmf->host = 1;
	assert_false(nvmf_path_is_better(nvmf));
	nvmf->host = 0;
	nvmf_path_set(nvmf, 0, NVMF_PATH_UNKNOWN);
	assert_false(nvmf_path_is_better(nvmf)); /* nothing is known of it yet */
	end(nvmf);
}

/* A host that was connected to and cannot be used is the last for half a minute; one that was not, for as
 * long as its state says. The next one comes first, and behind the last the first. */
static void a_host_is_refused_for_a_while(void **state)
{
	const u64 while_ns = 30000 * (u64)NS_OF_A_MS;
	struct nvmf *nvmf = made_several();
	u64 before = nvmf_now_ns();

	(void)state;
	for (unsigned i = 0; i < HOSTS; i++)
		nvmf_path_set(nvmf, i, NVME_ANA_OPTIMIZED);
	nvmf->host = HOSTS - 1;
	nvmf_path_refuse(nvmf, true);
	assert_int_equal(nvmf->host, 0);
	assert_true(nvmf->refused_ns[HOSTS - 1] >= before + while_ns);
	assert_true(nvmf->refused_ns[HOSTS - 1] <= nvmf_now_ns() + while_ns);
	nvmf_path_set(nvmf, HOSTS - 1, NVME_ANA_OPTIMIZED); /* its thread finds nothing wrong */
	assert_int_equal(nvmf_path_rank_now(nvmf, HOSTS - 1), nvmf_path_rank(NVMF_PATH_LOST));
	nvmf->refused_ns[HOSTS - 1] = 1; /* long ago */
	assert_int_equal(nvmf_path_rank_now(nvmf, HOSTS - 1), nvmf_path_rank(NVME_ANA_OPTIMIZED));
	nvmf_path_refuse(nvmf, false);
	assert_int_equal(nvmf->host, 1);
	assert_true(nvmf->refused_ns[0] == 0);
	assert_int_equal(nvmf_path_state(nvmf, 0), NVMF_PATH_LOST);
	end(nvmf);
}

/* What may be late makes changes wait, until its time has come; then they are sent, and so are those behind.
 */
static void changes_wait_until_their_time(void **state)
{
	const struct nvmf_request change = { .sqe.cdw0 = NVME_OPCODE_WRITE };
	struct nvmf *nvmf = made_one();

	(void)state;
	nvmf->hold_ns = nvmf_now_ns() + LONG_MS * (u64)NS_OF_A_MS;
	assert_true(nvmf_must_wait(nvmf, &change));
	assert_true(nvmf->rerouted && nvmf->retry_ns == nvmf->hold_ns);
	nvmf->hold_ns = nvmf_now_ns();
	assert_false(nvmf_must_wait(nvmf, &change));
	assert_true(nvmf->hold_ns == 0);
	nvmf->hold_ns = 5;
	nvmf_hold_until(nvmf, 3); /* what held longer holds as long */
	assert_true(nvmf->hold_ns == 5 && nvmf->retry_ns == 5);
	end(nvmf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_controller_starts_with_rings_that_it_reaches),
		cmocka_unit_test(a_shutdown_is_complete_or_has_failed),
		cmocka_unit_test(registers_of_a_controller_on_a_network),
		cmocka_unit_test(resets_are_falls_of_enable),
		cmocka_unit_test(who_is_away),
		cmocka_unit_test(keep_alive_has_its_times),
		cmocka_unit_test(keep_alive_is_of_an_association),
		cmocka_unit_test(an_association_begins_its_times),
		cmocka_unit_test(changes_alone_wait_behind_a_loss),
		cmocka_unit_test(hosts_have_an_order),
		cmocka_unit_test(a_host_is_refused_for_a_while),
		cmocka_unit_test(changes_wait_until_their_time),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("fabrics_keeper", tests, NULL, NULL);
}
