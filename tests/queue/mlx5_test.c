/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mlx5_test.c: entries for NICs of the mlx5 family, against bytes that rdma-core's own code makes of the same
 * request; and against a NIC that is a function here: it believes its doorbell record and its register alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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

enum { DEPTH = 4, ALONE = 1 };

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
					  .depth_log2 = 2,
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

/* Where the NIC's counts stand when lanes come, near their wraps; and commands enough for all of them to go
 * round. */
enum {
	FIRST_SENT = 0xfffff3,
	FIRST_RECEIVED = 0xfffffe,
	FIRST_SEND = 0xfff0,
	FIRST_RECEIVE = 0xfffa,
	COMMANDS = 200000,
	PAIR_ID = 9,
};

static uint32_t answers;

/* A response comes to the command in @capsule. It has neither a phase nor a queue. */
static void respond(const unsigned char *capsule, uint32_t status)
{
	uint32_t cdw0, number = FIRST_RECEIVED + answers;
	struct nvme_cqe *message = &pair.messages[answers % (2 * DEPTH)];
	struct mlx5_cqe64 *entry = &pair.received[number % COMPLETIONS];

	memcpy(&cdw0, capsule, sizeof(cdw0));
	message->dw2 = 0x77777777;
	message->dw3 = cdw0 >> 16 | (answers & 1) << 16 | status << 17;
	memset(entry, 0x77, sizeof(*entry));
	entry->op_own = MLX5_CQE_RESP_SEND << 4;
	mlx5dv_set_cqe_owner(entry, number >> COMPLETION_LOG2 & 1);
	answers++;
}

static void open_used_pair(void)
{
	open_pair();
	pair.queue.id = PAIR_ID;
	pair.queue.block_log2 = 9;
	nic.mlx5.receive_record = WEIR_ADDR(&nic.send_records[MLX5_RCV_DBR]);
	nic.mlx5.capsule_key = KEY;
	nic.mlx5.first_send = FIRST_SEND;
	nic.mlx5.first_receive = FIRST_RECEIVE;
	nic.mlx5.sent.first = FIRST_SENT;
	nic.mlx5.received.first = FIRST_RECEIVED;
	weir_store_u32_relaxed_dev(&nic.mlx5.sent_blocks, FIRST_SEND);
	nic.read = FIRST_SEND;
	nic.wrote = FIRST_SENT;
	answers = 0;
}

/* Submit @count reads and have the NIC carry them to the other end, which answers the last one first. The NIC
 * may be late to find out that the last one has arrived: until then nobody is told of that. */
static void exchange(struct weir_event *events, uint32_t count, uint32_t first, bool late)
{
	_Alignas(64) unsigned char capsules[DEPTH][NVME_CAPSULE_COMMAND_BYTES];
	struct mlx5_cqe64 *last = &nic.completions[(nic.wrote + count - 1) % COMPLETIONS];
	uint8_t owned;

	for (uint32_t i = 0; i < count; i++) {
		struct weir_request request = { .opcode = NVME_OPCODE_READ,
						.blocks = 1,
						.lba = first + i,
						.target_kind = WEIR_TARGET_EVENT,
						.target = WEIR_ADDR(&events[i]) };

		weir_event_reset(&events[i]);
		assert_int_equal(weir_sq_try_submit(&pair.queue, ALONE, ALONE, request, weir_age_none()), 1);
		assert_int_equal(carry_out(capsules[i]), NVME_CAPSULE_COMMAND_BYTES);
	}
	assert_int_equal(nic.read, FIRST_SEND + first + count);
	for (uint32_t i = count; i-- > 0;)
		respond(capsules[i], (first + i) % 3 ? 0 : NVME_STATUS_WRITE_FAULT);
	owned = last->op_own;
	if (late) {
		last->op_own = MLX5_CQE_INVALID << 4;
		assert_int_equal(weir_cq_reap(&pair.queue, ALONE), 0);
		assert_true(weir_event_test(&events[count - 1]) == 0);
	}
	last->op_own = owned;
	assert_int_equal(weir_cq_reap(&pair.queue, ALONE), count);
	assert_int_equal(weir_cq_reap(&pair.queue, ALONE), 0); /* and the NIC is told */
}

/* Each command is told once how the other end answered it, and the NIC has its memory and its entries again,
 * while all counts go round. */
static void a_pair_goes_on_while_counts_wrap(void **state)
{
	uint32_t count;

	(void)state;
	open_used_pair();
	for (uint32_t done = 0; done < COMMANDS; done += count) {
		struct weir_event events[DEPTH];

		count = 1 + done % (DEPTH - 1);
		exchange(events, count, done, done % 5 == 0);
		for (uint32_t i = 0; i < count; i++)
			assert_int_equal(weir_status_nvme(weir_event_status(weir_event_test(&events[i]))),
					 (done + i) % 3 ? 0 : NVME_STATUS_WRITE_FAULT);
		assert_int_equal(be32toh(nic.send_records[MLX5_SND_DBR]),
				 (FIRST_SEND + done + count) & 0xffff);
		assert_int_equal(be32toh(nic.send_records[MLX5_RCV_DBR]),
				 (FIRST_RECEIVE + done + count) & 0xffff);
		assert_int_equal(be32toh(nic.completion_records[0]), (FIRST_SENT + done + count) & 0xffffff);
		assert_int_equal(be32toh(nic.completion_records[1]),
				 (FIRST_RECEIVED + done + count) & 0xffffff);
	}
	assert_true(weir_load_u64_relaxed_dev(&pair.queue.completed) >= COMMANDS);
	assert_true(weir_load_u64_relaxed_dev(&pair.queue.rogue) == 0);
	assert_int_equal(weir_load_u32_relaxed_sys(&nic.mlx5.failed), 0);
}

/* What the NIC says of a failure is kept for the host, of a send or of what was to come, the last one. */
static void a_failure_is_kept(void **state)
{
	static const uint8_t kinds[] = { MLX5_CQE_REQ_ERR, MLX5_CQE_RESP_ERR };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct mlx5_cqe64 *entry;
		uint32_t number = i ? FIRST_RECEIVED : FIRST_SENT;

		begin(NULL);
		open_used_pair();
		entry = i ? &pair.received[number % COMPLETIONS] : &nic.completions[number % COMPLETIONS];
		memset(entry, 0, sizeof(*entry));
		((struct mlx5_err_cqe *)entry)->syndrome = MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
		entry->op_own = (uint8_t)(kinds[i] << 4);
		mlx5dv_set_cqe_owner(entry, number >> COMPLETION_LOG2 & 1);
		if (i == 0)
			weir_nic_reap_sent(&pair.queue);
		else
			assert_int_equal(weir_nic_arrived(&pair.queue, 0), 0);
		assert_int_equal(weir_load_u32_relaxed_sys(&nic.mlx5.failed),
				 MLX5_CQE_SYNDROME_LOCAL_PROT_ERR + 1);
	}
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
		cmocka_unit_test_setup(a_pair_goes_on_while_counts_wrap, begin),
		cmocka_unit_test_setup(a_failure_is_kept, begin),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("mlx5", tests, NULL, NULL);
}
