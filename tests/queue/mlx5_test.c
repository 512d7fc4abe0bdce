/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mlx5_test.c: entries for NICs of the mlx5 family, against bytes that rdma-core's own code makes of the same
 * request; and against a NIC that is a function here: it believes its doorbell record and its register alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/mlx5dv.h>

#include <cmocka.h>

#include <weir/core/queue/cq.h>
#include <weir/core/queue/sq.h>

enum {
	SEND_LOG2 = 3,
	BLOCKS = 1 << SEND_LOG2,
	COMPLETION_LOG2 = 2,
	COMPLETIONS = 1 << COMPLETION_LOG2,
	NUMBER = 0x123456,
	LAPS = 200000, /* of entries: the NIC's 16 bits of index go around three times */
};

#define KEY 0xa1b2c3d4u

/** struct nic - @read: blocks that it has carried out; @wrote: completions */
struct nic {
	_Alignas(64) unsigned char sends[BLOCKS][WEIR_MLX5_BLOCK_BYTES];
	_Alignas(64) struct mlx5_cqe64 completions[COMPLETIONS];
	__be32 send_records[2];
	__be32 completion_records[2];
	uint32_t doorbell[2];
	struct weir_mlx5 mlx5;
	uint32_t read;
	uint32_t wrote;
};

static struct nic nic;

static int begin(void **state)
{
	(void)state;
	memset(&nic, 0xee, sizeof(nic));
	nic.read = nic.wrote = 0;
	nic.doorbell[0] = nic.doorbell[1] = 0;
	for (unsigned i = 0; i < COMPLETIONS; i++)
		nic.completions[i].op_own = MLX5_CQE_INVALID << 4;
	nic.mlx5 = (struct weir_mlx5){ .sends = WEIR_ADDR(nic.sends),
				       .send_record = WEIR_ADDR(&nic.send_records[MLX5_SND_DBR]),
				       .doorbell = WEIR_ADDR(nic.doorbell),
				       .sent = { .entries = WEIR_ADDR(nic.completions),
						 .record = WEIR_ADDR(&nic.completion_records[0]),
						 .log2 = COMPLETION_LOG2 },
				       .send_log2 = SEND_LOG2,
				       .number = NUMBER };
	return 0;
}

/* ---- bytes ---- */

static void a_send_has_rdma_cores_bytes(void **state)
{
	struct {
		struct mlx5_wqe_ctrl_seg control;
		struct mlx5_wqe_data_seg data;
	} expected;

	(void)state;
	for (uint32_t index = 0xfff0; index < 0x10010; index++) {
		mlx5dv_set_ctrl_seg(&expected.control, (uint16_t)index, MLX5_OPCODE_SEND, 0, NUMBER,
				    MLX5_WQE_CTRL_CQ_UPDATE, 2, 0, 0);
		expected.control.dci_stream_channel_id = 0;
		mlx5dv_set_data_seg(&expected.data, 64, KEY, 0x1122334455667788);
		weir_mlx5_put_send(&nic.mlx5, index, 0x1122334455667788, 64, KEY, WEIR_MLX5_SIGNALED);
		assert_memory_equal(nic.sends[index % BLOCKS], &expected, sizeof(expected));
	}
}

/* A keyed SGL, Base 2.0, 4.1.2; as all commands over RDMA have one, a Flush has an empty one. */
static void data_is_named_by_a_keyed_sgl(void **state)
{
	static const struct {
		uint32_t opcode, blocks;
	} commands[] = { { NVME_OPCODE_READ, 1 }, { NVME_OPCODE_WRITE, 2048 }, { NVME_OPCODE_FLUSH, 0 } };
	struct weir_queue queue = { .nic = WEIR_ADDR(&nic.mlx5), .block_log2 = 12 };

	(void)state;
	nic.mlx5.data_key = KEY;
	for (unsigned i = 0; i < 3; i++) {
		struct nvme_sqe sqe = { .cdw0 = commands[i].opcode | 0x12340000,
					.prp1 = 0x1122334455667788,
					.prp2 = ~0ull };
		struct nvme_sqe expected = sqe;
		uint32_t bytes = commands[i].blocks << 12, key = bytes ? KEY : 0;
		struct nvme_sgl_keyed sgl = { .address = sqe.prp1, .type = NVME_SGL_KEYED };

		memcpy(sgl.bytes, &bytes, sizeof(sgl.bytes));
		memcpy(sgl.key, &key, sizeof(sgl.key));
		memcpy(&expected.prp1, &sgl, sizeof(sgl));
		sqe.cdw12 = expected.cdw12 = commands[i].blocks ? (commands[i].blocks - 1) | NVME_RW_FUA : 0;
		expected.cdw0 |= NVME_PSDT_SGL;
		weir_nic_address(&queue, &sqe);
		assert_memory_equal(&sqe, &expected, sizeof(sqe));
	}
}

/* ---- a NIC ---- */

static void complete(uint32_t kind, uint16_t index, uint32_t bytes, uint8_t syndrome)
{
	struct mlx5_cqe64 *entry = &nic.completions[nic.wrote % COMPLETIONS];

	memset(entry, 0x77, sizeof(*entry));
	entry->byte_cnt = htobe32(bytes);
	entry->wqe_counter = htobe16(index);
	((struct mlx5_err_cqe *)entry)->syndrome = syndrome;
	entry->op_own = (uint8_t)(kind << 4);
	mlx5dv_set_cqe_owner(entry, nic.wrote >> COMPLETION_LOG2 & 1);
	nic.wrote++;
}

/* The bytes of the message in the entry at @read. */
static uint32_t carry_out(unsigned char *message)
{
	const unsigned char *entry = nic.sends[nic.read % BLOCKS];
	const struct mlx5_wqe_ctrl_seg *control = (const void *)entry;
	const struct mlx5_wqe_data_seg *data = (const void *)(entry + 16);
	uint32_t head = be32toh(control->opmod_idx_opcode), segments = be32toh(control->qpn_ds) & 0x3f;
	uint32_t bytes = be32toh(data->byte_count);

	assert_int_equal(head >> 8, nic.read & 0xffff);
	assert_int_equal(head & 0xff, MLX5_OPCODE_SEND);
	assert_int_equal(be32toh(control->qpn_ds) >> 8, NUMBER);
	assert_int_equal(be32toh(data->lkey), KEY);
	memcpy(message, (void *)(uintptr_t)be64toh(data->addr), bytes);
	if (control->fm_ce_se & MLX5_WQE_CTRL_CQ_UPDATE)
		complete(MLX5_CQE_REQ, (uint16_t)nic.read, bytes, 0);
	nic.read += (segments * 16 + 63) / 64;
	return bytes;
}

/* Each capsule arrives once, with its bytes, and completes once, while all indices wrap. */
static void a_nic_carries_out_each_entry_once(void **state)
{
	unsigned char capsule[NVME_CAPSULE_COMMAND_BYTES], message[NVME_CAPSULE_COMMAND_BYTES];
	struct weir_mlx5_completion completion;
	uint32_t next = 0, taken = 0;

	(void)state;
	for (uint32_t i = 0; i < LAPS; i++) {
		uint32_t at = next++;

		memset(capsule, (int)(i & 0xff), sizeof(capsule));
		memcpy(capsule, &i, sizeof(i));
		weir_mlx5_put_send(&nic.mlx5, at, WEIR_ADDR(capsule), sizeof(capsule), KEY,
				   WEIR_MLX5_SIGNALED);
		assert_false(weir_mlx5_try_completion(&nic.mlx5.sent, taken, &completion));
		weir_mlx5_ring(&nic.mlx5, next);
		assert_int_equal(be32toh(nic.send_records[MLX5_SND_DBR]), next & 0xffff);
		assert_memory_equal(nic.doorbell, nic.sends[at % BLOCKS], sizeof(nic.doorbell));
		assert_int_equal(carry_out(message), sizeof(capsule));
		assert_memory_equal(message, capsule, sizeof(capsule));
		assert_int_equal(nic.read, next);
		assert_true(weir_mlx5_try_completion(&nic.mlx5.sent, taken, &completion));
		assert_int_equal(completion.kind, WEIR_MLX5_SENT);
		assert_int_equal(completion.index, at & 0xffff);
		weir_mlx5_took(&nic.mlx5.sent, ++taken);
		assert_int_equal(be32toh(nic.completion_records[0]), taken & 0xffffff);
	}
	assert_int_equal(taken, nic.wrote);
	assert_int_equal(be32toh(nic.send_records[MLX5_RCV_DBR]),
			 0xeeeeeeee); /* the other half is not ours */
}

/* Several entries by one ring: the register has the last one. Completions of the lap before are no news. */
static void a_batch_is_rung_once(void **state)
{
	unsigned char capsule[NVME_CAPSULE_COMMAND_BYTES] = { 1 }, message[NVME_CAPSULE_COMMAND_BYTES];
	struct weir_mlx5_completion completion;

	(void)state;
	for (uint32_t i = 0; i < COMPLETIONS; i++)
		weir_mlx5_put_send(&nic.mlx5, i, WEIR_ADDR(capsule), sizeof(capsule), KEY,
				   WEIR_MLX5_SIGNALED);
	weir_mlx5_ring(&nic.mlx5, COMPLETIONS);
	assert_memory_equal(nic.doorbell, nic.sends[COMPLETIONS - 1], sizeof(nic.doorbell));
	for (uint32_t i = 0; i < COMPLETIONS; i++)
		(void)carry_out(message);
	for (uint32_t i = 0; i < COMPLETIONS; i++)
		assert_true(weir_mlx5_try_completion(&nic.mlx5.sent, i, &completion));
	assert_false(weir_mlx5_try_completion(&nic.mlx5.sent, COMPLETIONS, &completion));
}

static void responses_and_failures_are_told_apart(void **state)
{
	struct weir_mlx5_completion completion = { 0 };

	(void)state;
	complete(MLX5_CQE_RESP_SEND, 3, 16, 0x55);
	complete(MLX5_CQE_REQ_ERR, 4, 0, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
	complete(MLX5_CQE_RESP_ERR, 5, 0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	complete(MLX5_CQE_RESP_SEND_INV, 6, 16, 0);
	assert_true(weir_mlx5_try_completion(&nic.mlx5.sent, 0, &completion));
	assert_true(completion.kind == WEIR_MLX5_RECEIVED && completion.index == 3);
	assert_int_equal(completion.syndrome, 0);
	assert_true(weir_mlx5_try_completion(&nic.mlx5.sent, 1, &completion));
	assert_true(completion.kind == WEIR_MLX5_SEND_FAILED);
	assert_int_equal(completion.syndrome, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
	assert_true(weir_mlx5_try_completion(&nic.mlx5.sent, 2, &completion));
	assert_true(completion.kind == WEIR_MLX5_RECEIVE_FAILED);
	assert_int_equal(completion.syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	assert_true(weir_mlx5_try_completion(&nic.mlx5.sent, 3, &completion));
	assert_int_equal(completion.kind, WEIR_MLX5_RECEIVED_INVALIDATED);
}

/* ---- a queue pair ---- */

enum { DEPTH = 2, ALONE = 1 };

/** struct pair - a queue pair by way of the NIC above */
struct pair {
	struct weir_queue queue;
	struct weir_slot slots[DEPTH];
	struct nvme_sqe sq[DEPTH];
	struct nvme_cqe cq[DEPTH], messages[2 * DEPTH];
	struct mlx5_cqe64 received[COMPLETIONS];
	uint32_t doorbells[2];
};

static struct pair pair __attribute__((aligned(128)));

static void open_pair(void)
{
	memset(&pair, 0, sizeof(pair));
	pair.queue = (struct weir_queue){ .sq = WEIR_ADDR(pair.sq),
					  .cq = WEIR_ADDR(pair.cq),
					  .slots = WEIR_ADDR(pair.slots),
					  .sq_doorbell = WEIR_ADDR(&pair.doorbells[0]),
					  .cq_doorbell = WEIR_ADDR(&pair.doorbells[1]),
					  .depth = DEPTH,
					  .depth_log2 = 1,
					  .doorbell_kind = WEIR_DOORBELL_NIC,
					  .nic = WEIR_ADDR(&nic.mlx5) };
	for (unsigned i = 0; i < COMPLETIONS; i++)
		pair.received[i].op_own = MLX5_CQE_INVALID << 4;
	nic.mlx5.messages = WEIR_ADDR(pair.messages);
	nic.mlx5.received = (struct weir_mlx5_cq){ .entries = WEIR_ADDR(pair.received),
						   .record = WEIR_ADDR(&nic.completion_records[1]),
						   .log2 = COMPLETION_LOG2 };
}

/*
 * A response is here, but the NIC has failed to find out that its command arrived: so it is no entry of the
 * ring, for good. Once the pair is dead its command ends nevertheless.
 */
static void a_command_ends_whose_arrival_is_never_known(void **state)
{
	struct weir_event event = { { 0 } };
	struct weir_request request = { .opcode = NVME_OPCODE_FLUSH,
					.target_kind = WEIR_TARGET_EVENT,
					.target = WEIR_ADDR(&event) };

	(void)state;
	open_pair();
	assert_int_equal(weir_sq_try_submit(&pair.queue, ALONE, ALONE, request, weir_age_none()), 1);
	pair.received[0].op_own = MLX5_CQE_RESP_SEND << 4;
	complete(MLX5_CQE_REQ_ERR, 0, 0, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
	assert_int_equal(weir_cq_reap(&pair.queue, ALONE), 0);
	assert_true(weir_load_u32_relaxed_sys(&nic.mlx5.failed) != 0);
	assert_true(weir_event_test(&event) == 0);
	weir_store_u32_relaxed_sys(&pair.queue.dead, WEIR_E_QUEUE_DEAD);
	assert_int_equal(weir_cq_reap(&pair.queue, ALONE), 1);
	assert_int_equal(weir_event_status(weir_event_test(&event)), WEIR_E_QUEUE_DEAD);
	assert_true(weir_load_u32_relaxed_sys(&pair.queue.dead) & WEIR_QUEUE_ENDED);
	assert_int_equal(weir_cq_reap(&pair.queue, ALONE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_send_has_rdma_cores_bytes, begin),
		cmocka_unit_test_setup(data_is_named_by_a_keyed_sgl, begin),
		cmocka_unit_test_setup(a_nic_carries_out_each_entry_once, begin),
		cmocka_unit_test_setup(a_batch_is_rung_once, begin),
		cmocka_unit_test_setup(responses_and_failures_are_told_apart, begin),
		cmocka_unit_test_setup(a_command_ends_whose_arrival_is_never_known, begin),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("mlx5", tests, NULL, NULL);
}
