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

#include <weir/core/queue/mlx5.h>

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
				       .completions = WEIR_ADDR(nic.completions),
				       .completion_record = WEIR_ADDR(&nic.completion_records[0]),
				       .send_log2 = SEND_LOG2,
				       .completion_log2 = COMPLETION_LOG2,
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

static void an_inline_capsule_goes_around_the_ring(void **state)
{
	unsigned char capsule[WEIR_MLX5_CAPSULE_BYTES], expected[2][WEIR_MLX5_BLOCK_BYTES] = { { 0 } };
	struct mlx5_wqe_inl_data_seg within = { htobe32(sizeof(capsule) | MLX5_INLINE_SEG) };

	(void)state;
	for (unsigned i = 0; i < sizeof(capsule); i++)
		capsule[i] = (unsigned char)(i * 3 + 1);
	mlx5dv_set_ctrl_seg((void *)expected[0], BLOCKS - 1, MLX5_OPCODE_SEND, 0, NUMBER, 0, 6, 0, 0);
	memcpy(expected[0] + 16, &within, sizeof(within));
	memcpy(expected[0] + 20, capsule, 44);
	memcpy(expected[1], capsule + 44, 20);
	weir_mlx5_put_inline(&nic.mlx5, BLOCKS - 1, WEIR_ADDR(capsule), 0);
	assert_memory_equal(nic.sends[BLOCKS - 1], expected[0], WEIR_MLX5_BLOCK_BYTES);
	assert_memory_equal(nic.sends[0], expected[1], 20);
	assert_int_equal(nic.sends[0][20], 0xee); /* and no byte further */
}

static void a_transfer_has_rdma_cores_bytes(void **state)
{
	static const struct {
		uint32_t own, theirs;
	} opcodes[] = { { WEIR_MLX5_RDMA_WRITE, MLX5_OPCODE_RDMA_WRITE },
			{ WEIR_MLX5_RDMA_READ, MLX5_OPCODE_RDMA_READ } };
	struct {
		struct mlx5_wqe_ctrl_seg control;
		struct mlx5_wqe_raddr_seg there;
		struct mlx5_wqe_data_seg data;
	} expected = { .there = { htobe64(0x8877665544332211), htobe32(0x01020304), 0 } };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		mlx5dv_set_ctrl_seg(&expected.control, 5, (uint8_t)opcodes[i].theirs, 0, NUMBER, 0, 3, 0, 0);
		mlx5dv_set_data_seg(&expected.data, 1 << 20, KEY, 0xfedcba9876543210);
		weir_mlx5_put_transfer(&nic.mlx5, 5, opcodes[i].own, 0x8877665544332211, 0x01020304,
				       0xfedcba9876543210, 1 << 20, KEY, 0);
		assert_memory_equal(nic.sends[5], &expected, sizeof(expected));
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
	const unsigned char *entry = nic.sends[nic.read % BLOCKS], *next = nic.sends[(nic.read + 1) % BLOCKS];
	const struct mlx5_wqe_ctrl_seg *control = (const void *)entry;
	const struct mlx5_wqe_data_seg *data = (const void *)(entry + 16);
	uint32_t head = be32toh(control->opmod_idx_opcode), segments = be32toh(control->qpn_ds) & 0x3f;
	uint32_t bytes = be32toh(data->byte_count);

	assert_int_equal(head >> 8, nic.read & 0xffff);
	assert_int_equal(head & 0xff, MLX5_OPCODE_SEND);
	assert_int_equal(be32toh(control->qpn_ds) >> 8, NUMBER);
	if (bytes & MLX5_INLINE_SEG) {
		bytes &= ~MLX5_INLINE_SEG;
		memcpy(message, entry + 20, 44);
		memcpy(message + 44, next, 20);
	} else {
		assert_int_equal(be32toh(data->lkey), KEY);
		memcpy(message, (void *)(uintptr_t)be64toh(data->addr), bytes);
	}
	if (control->fm_ce_se & MLX5_WQE_CTRL_CQ_UPDATE)
		complete(MLX5_CQE_REQ, (uint16_t)nic.read, bytes, 0);
	nic.read += (segments * 16 + 63) / 64;
	return bytes;
}

/* Each capsule arrives once, with its bytes, and completes once, while all indices wrap. */
static void a_nic_carries_out_each_entry_once(void **state)
{
	unsigned char capsule[WEIR_MLX5_CAPSULE_BYTES], message[WEIR_MLX5_CAPSULE_BYTES];
	struct weir_mlx5_completion completion;
	uint32_t next = 0, taken = 0;

	(void)state;
	for (uint32_t i = 0; i < LAPS; i++) {
		uint32_t at = next;

		memset(capsule, (int)(i & 0xff), sizeof(capsule));
		memcpy(capsule, &i, sizeof(i));
		if (i % 3) {
			weir_mlx5_put_send(&nic.mlx5, at, WEIR_ADDR(capsule), sizeof(capsule), KEY,
					   WEIR_MLX5_SIGNALED);
			next += WEIR_MLX5_SEND_BLOCKS;
		} else {
			weir_mlx5_put_inline(&nic.mlx5, at, WEIR_ADDR(capsule), WEIR_MLX5_SIGNALED);
			next += WEIR_MLX5_INLINE_BLOCKS;
		}
		assert_false(weir_mlx5_try_completion(&nic.mlx5, taken, &completion));
		weir_mlx5_ring(&nic.mlx5, at, next);
		assert_int_equal(be32toh(nic.send_records[MLX5_SND_DBR]), next & 0xffff);
		assert_memory_equal(nic.doorbell, nic.sends[at % BLOCKS], sizeof(nic.doorbell));
		assert_int_equal(carry_out(message), sizeof(capsule));
		assert_memory_equal(message, capsule, sizeof(capsule));
		assert_int_equal(nic.read, next);
		assert_true(weir_mlx5_try_completion(&nic.mlx5, taken, &completion));
		assert_int_equal(completion.kind, WEIR_MLX5_SENT);
		assert_int_equal(completion.index, at & 0xffff);
		weir_mlx5_took(&nic.mlx5, ++taken);
		assert_int_equal(be32toh(nic.completion_records[0]), taken & 0xffffff);
	}
	assert_int_equal(taken, nic.wrote);
	assert_int_equal(be32toh(nic.send_records[MLX5_RCV_DBR]),
			 0xeeeeeeee); /* the other half is not ours */
}

/* Several entries by one ring: the register has the last one. Completions of the lap before are no news. */
static void a_batch_is_rung_once(void **state)
{
	unsigned char capsule[WEIR_MLX5_CAPSULE_BYTES] = { 1 }, message[WEIR_MLX5_CAPSULE_BYTES];
	struct weir_mlx5_completion completion;

	(void)state;
	for (uint32_t i = 0; i < COMPLETIONS; i++)
		weir_mlx5_put_send(&nic.mlx5, i, WEIR_ADDR(capsule), sizeof(capsule), KEY,
				   WEIR_MLX5_SIGNALED);
	weir_mlx5_ring(&nic.mlx5, COMPLETIONS - 1, COMPLETIONS);
	assert_memory_equal(nic.doorbell, nic.sends[COMPLETIONS - 1], sizeof(nic.doorbell));
	for (uint32_t i = 0; i < COMPLETIONS; i++)
		(void)carry_out(message);
	for (uint32_t i = 0; i < COMPLETIONS; i++)
		assert_true(weir_mlx5_try_completion(&nic.mlx5, i, &completion));
	assert_false(weir_mlx5_try_completion(&nic.mlx5, COMPLETIONS, &completion));
}

static void responses_and_failures_are_told_apart(void **state)
{
	struct weir_mlx5_completion completion = { 0 };

	(void)state;
	complete(MLX5_CQE_RESP_SEND, 3, 16, 0x55);
	complete(MLX5_CQE_REQ_ERR, 4, 0, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
	complete(MLX5_CQE_RESP_ERR, 5, 0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	complete(MLX5_CQE_RESP_SEND_INV, 6, 16, 0);
	assert_true(weir_mlx5_try_completion(&nic.mlx5, 0, &completion));
	assert_true(completion.kind == WEIR_MLX5_RECEIVED && completion.bytes == 16 && completion.index == 3);
	assert_int_equal(completion.syndrome, 0);
	assert_true(weir_mlx5_try_completion(&nic.mlx5, 1, &completion));
	assert_true(completion.kind == WEIR_MLX5_SEND_FAILED);
	assert_int_equal(completion.syndrome, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
	assert_true(weir_mlx5_try_completion(&nic.mlx5, 2, &completion));
	assert_true(completion.kind == WEIR_MLX5_RECEIVE_FAILED);
	assert_int_equal(completion.syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	assert_true(weir_mlx5_try_completion(&nic.mlx5, 3, &completion));
	assert_int_equal(completion.kind, WEIR_MLX5_RECEIVED_INVALIDATED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_send_has_rdma_cores_bytes, begin),
		cmocka_unit_test_setup(an_inline_capsule_goes_around_the_ring, begin),
		cmocka_unit_test_setup(a_transfer_has_rdma_cores_bytes, begin),
		cmocka_unit_test_setup(a_nic_carries_out_each_entry_once, begin),
		cmocka_unit_test_setup(a_batch_is_rung_once, begin),
		cmocka_unit_test_setup(responses_and_failures_are_told_apart, begin),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("mlx5", tests, NULL, NULL);
}
