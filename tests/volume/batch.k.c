/* SPDX-License-Identifier: BSD-3-Clause */
/* Batched I/O: blocks are written, read again by the callback of the write, and compared by that of the read.
 */
#include "batch.h"

enum { GOOD = 0, FAILED = 1, WRONG = 2, GIVEN_UP = 3 };
enum { NOTHING_US = 30000000 }; /* for what is done at once, on any machine */

WEIR_FN u64 word_of(u64 lba, u64 word)
{
	return (lba + 1) * 0x9e3779b97f4a7c15u + word;
}

WEIR_FN u32 block_words(WEIR_GLOBAL struct test_batch_args *args)
{
	return (1u << args->batches.disk.block_log2) / 8;
}

WEIR_FN struct weir_io_request request_of(WEIR_GLOBAL struct test_batch_args *args, u32 opcode, u64 lba,
					  weir_addr buffer)
{
	struct weir_io_request request;

	request.opcode = opcode;
	request.blocks = 1;
	request.lba = args->past ? args->batches.disk.blocks : lba;
	request.buffer = buffer;
	request.argument = lba;
	request.callback = opcode == NVME_OPCODE_WRITE ? TEST_BATCH_WRITTEN : TEST_BATCH_READ;
	return request;
}

/* The first and last word of a block, and nothing between them: that is what the storage is tested by. */
WEIR_FN void fill(WEIR_GLOBAL struct test_batch_args *args, weir_addr buffer, u64 lba)
{
	*weir_at(buffer, u64, 0) = word_of(lba, 0);
	*weir_at(buffer, u64, block_words(args) - 1) = word_of(lba, 1);
}

WEIR_FN u32 wrong_words(WEIR_GLOBAL struct test_batch_args *args, weir_addr buffer, u64 lba)
{
	return (weir_data_load_u64(buffer) != word_of(lba, 0)) +
	       (weir_data_load_u64(buffer + (block_words(args) - 1) * 8) != word_of(lba, 1));
}

/* What a lane is at: the request that it wants to submit next, if any. */
struct step {
	u32 wants;
	struct weir_io_request request;
};

/* A request has ended: what its callback does. Return: what comes next. */
WEIR_FN struct step ended_step(WEIR_GLOBAL struct test_batch_args *args, struct weir_io_ended ended,
			       struct step step, WEIR_GLOBAL u64 *result)
{
	u64 lba = ended.argument;

	if (!ended.ended)
		return step;
	result[ended.status == WEIR_OK ? GOOD : FAILED]++;
	if (ended.status == WEIR_OK && ended.callback == TEST_BATCH_WRITTEN) {
		*weir_at(ended.buffer, u64, 0) = 0;
		*weir_at(ended.buffer, u64, block_words(args) - 1) = 0;
		step.wants = 1;
		step.request = request_of(args, NVME_OPCODE_READ, lba, ended.buffer);
		return step;
	}
	if (ended.status == WEIR_OK)
		result[WRONG] += wrong_words(args, ended.buffer, lba);
	result[FAILED] +=
		weir_pool_free(weir_at(args->batches.pool, struct weir_pool, 0), ended.buffer) != WEIR_OK;
	return step;
}

/* A lane's block of round @r, in a new buffer. */
WEIR_FN struct step next_block(WEIR_GLOBAL struct test_batch_args *args, u32 r, WEIR_GLOBAL u64 *result)
{
	u64 lba = (weir_thread() * args->rounds + r) % args->batches.disk.blocks;
	weir_addr buffer = weir_pool_take(weir_at(args->batches.pool, struct weir_pool, 0),
					  (u64)1 << args->batches.disk.block_log2, 0);
	struct step step;

	if (buffer)
		fill(args, buffer, lba);
	result[GIVEN_UP] += !buffer;
	step.wants = buffer != 0;
	step.request = request_of(args, NVME_OPCODE_WRITE, lba, buffer);
	return step;
}

/* The four steps, again and again, until the lane has written and read all of its blocks. */
WEIR_KERNEL(test_batch, struct test_batch_args)
{
	WEIR_GLOBAL u64 *result = weir_at(args->results, u64, weir_thread() * 4);
	u32 next = 0, busy = 0, vain = 0;
	struct step step;

	step.wants = 0;
	step.request = request_of(args, NVME_OPCODE_READ, 0, 0);
	while (step.wants || busy || next < args->rounds) {
		struct weir_io_ended ended;
		u32 sent;

		if (!step.wants && !busy)
			step = next_block(args, next++, result);
		sent = weir_batch_submit(&args->batches, step.wants, step.request);
		weir_batch_commit(&args->batches);
		busy |= sent;
		step.wants &= !sent;
		ended = weir_batch_dispatch(&args->batches, weir_batch_poll(&args->batches));
		if (ended.ended)
			busy = 0;
		step = ended_step(args, ended, step, result);
		vain = ended.ended || sent ? 0 : vain + 1;
		if (vain)
			weir_relax(vain);
	}
}

/* The same by synchronous calls; every third lane has no request. */
WEIR_KERNEL(test_batch_io, struct test_batch_args)
{
	WEIR_GLOBAL u64 *result = weir_at(args->results, u64, weir_thread() * 4);
	WEIR_GLOBAL struct weir_pool *pool = weir_at(args->batches.pool, struct weir_pool, 0);
	u32 want = weir_lane() % 3 != 2;
	weir_addr buffer = weir_pool_take(pool, want ? (u64)1 << args->batches.disk.block_log2 : 0, 0);

	want = buffer != 0;
	for (u32 r = 0; r < args->rounds; r++) {
		u64 lba = (weir_thread() * args->rounds + r) % args->batches.disk.blocks;
		weir_status status;

		if (want)
			fill(args, buffer, lba);
		weir_reconverge();
		status = weir_batch_io(&args->batches, want, request_of(args, NVME_OPCODE_WRITE, lba, buffer),
				       0);
		result[status == WEIR_OK ? GOOD : FAILED] += want;
		if (want)
			*weir_at(buffer, u64, 0) = 0;
		weir_reconverge();
		status = weir_batch_io(&args->batches, want, request_of(args, NVME_OPCODE_READ, lba, buffer),
				       0);
		result[status == WEIR_OK ? GOOD : FAILED] += want;
		if (want && status == WEIR_OK)
			result[WRONG] += wrong_words(args, buffer, lba);
		weir_reconverge();
	}
	if (want)
		result[FAILED] += weir_pool_free(pool, buffer) != WEIR_OK;
}

/* All lanes submit, in two calls, and ring once; then the wave waits for all that it has. */
WEIR_KERNEL(test_batch_wait, struct test_batch_args)
{
	WEIR_GLOBAL u64 *result = weir_at(args->results, u64, weir_thread() * 4);
	WEIR_GLOBAL struct weir_pool *pool = weir_at(args->batches.pool, struct weir_pool, 0);
	weir_addr buffer = weir_pool_take(pool, (u64)1 << args->batches.disk.block_log2, 0);
	u32 even = weir_lane() % 2 == 0, sent, busy;
	u64 begun = weir_clock_ns();

	result[GIVEN_UP] += weir_batch_wait(&args->batches, NOTHING_US) != 0; /* nothing is pending */
	result[GIVEN_UP] += weir_clock_ns() - begun >= (u64)NOTHING_US * 1000;
	fill(args, buffer, weir_thread());
	sent = weir_batch_submit(&args->batches, even,
				 request_of(args, NVME_OPCODE_WRITE, weir_thread(), buffer));
	sent |= weir_batch_submit(&args->batches, 1,
				  request_of(args, NVME_OPCODE_WRITE, weir_thread(), buffer));
	busy = sent;
	result[GIVEN_UP] += weir_is_in(weir_batch_pending(&args->batches)) != busy;
	while (busy) {
		struct weir_io_ended mine =
			weir_batch_dispatch(&args->batches, weir_batch_wait(&args->batches, 0));

		if (mine.ended) {
			result[mine.status == WEIR_OK ? GOOD : FAILED]++;
			busy = 0;
		}
	}
	result[GIVEN_UP] += !sent + weir_is_in(weir_batch_pending(&args->batches));
	result[FAILED] += weir_pool_free(pool, buffer) != WEIR_OK;
}
