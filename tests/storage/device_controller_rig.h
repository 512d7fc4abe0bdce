/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * storage/device_controller_rig.h: queue pairs, their clients' side and their controller's, in memory of
 * a context, and short ways to run kernels of storage/device_controller.k.c on them.
 */
#ifndef WEIR_TESTS_DEVICE_CONTROLLER_RIG_H
#define WEIR_TESTS_DEVICE_CONTROLLER_RIG_H

#include "../rig/context.h"
#include "device_controller.h"

enum { RIG_QUEUES = 3, RIG_PRP_ENTRIES = 16, RIG_ROWS = 4, PAGE = NVME_PAGE_BYTES, MOST_ITERATIONS = 32 };

/**
 * struct rig_options - a run
 * @width: of waves
 * @queues, @depth_log2: queue pairs
 * @controllers: waves of the controller
 * @clients: waves beside them
 * @claim, @claim_bytes, @share_log2, @rest: as in struct weir_controller_args; 0: no limit
 * @timed: with timing and faults even if there are none
 * @first: ticket, a multiple of twice the depth
 * @blocks: of the medium, 512 bytes each
 * @latency_us, @iops: timing
 * @faults: rows, up to the first whose @of is 0
 */
struct rig_options {
	uint32_t width, queues, depth_log2, controllers, clients, claim, share_log2, rest, rounds;
	uint64_t claim_bytes, first, blocks, latency_us, iops, timeout_us;
	bool timed;
	struct weir_fault_row faults[RIG_ROWS];
};

/** struct rig - a context, with queue pairs in its memory */
struct rig {
	struct rig_options options;
	struct weir_context *context;
	uint64_t doorbells;
	struct weir_queue queues[RIG_QUEUES];
	struct device_controller_args args;
};

static inline void must(int error)
{
	if (error)
		fail_msg("%d: %s", error, weir_last_error());
}

static inline uint64_t rig_memory(struct rig *rig, size_t bytes)
{
	uint64_t address;

	must(weir_alloc(rig->context, bytes, &address));
	return address;
}

static inline uint32_t rig_word(struct rig *rig, uint64_t address)
{
	uint32_t value;

	must(weir_copy_from_device(rig->context, &value, address, sizeof(value)));
	return value;
}

static inline void rig_put(struct rig *rig, uint64_t address, const void *data, size_t bytes)
{
	must(weir_copy_to_device(rig->context, address, data, bytes));
}

static inline uint32_t rig_rows(const struct rig_options *options)
{
	uint32_t count = 0;

	while (count < RIG_ROWS && options->faults[count].of)
		count++;
	return count;
}

/* What a queue's completions wait in. */
static inline uint64_t rig_later(struct rig *rig)
{
	uint32_t depth = 1u << rig->options.depth_log2;
	struct weir_controller_later later = {
		.entries = rig_memory(rig, depth * sizeof(struct weir_controller_entry)),
		.groups = rig_memory(rig, RIG_ROWS * sizeof(uint32_t)),
		.posted = (uint32_t)rig->options.first,
	};
	uint64_t address = rig_memory(rig, sizeof(later));

	weir_store_u32_relaxed_sys(&later.oldest, later.posted);
	weir_store_u32_relaxed_sys(&later.next, later.posted);
	rig_put(rig, address, &later, sizeof(later));
	return address;
}

/* Slots begin free for the turn of the first ticket. */
static inline uint64_t rig_slots(struct rig *rig)
{
	uint32_t depth = 1u << rig->options.depth_log2;
	uint64_t slots = rig_memory(rig, depth * sizeof(struct weir_slot));

	for (uint32_t i = 0; i < depth; i++) {
		struct weir_slot slot;

		memset(&slot, 0, sizeof(slot));
		weir_store_u32_relaxed_sys(&slot.sequence,
					   (uint32_t)(rig->options.first >> rig->options.depth_log2 << 1));
		rig_put(rig, slots + i * sizeof(slot), &slot, sizeof(slot));
	}
	return slots;
}

static inline void rig_queue(struct rig *rig, uint32_t index, struct weir_controller_queue *other)
{
	uint32_t depth = 1u << rig->options.depth_log2, id = index + 1;
	struct weir_queue *queue = &rig->queues[index];

	*queue = (struct weir_queue){
		.sq = rig_memory(rig, depth * sizeof(struct nvme_sqe)),
		.cq = rig_memory(rig, depth * sizeof(struct nvme_cqe)),
		.slots = rig_slots(rig),
		.prp_lists = rig_memory(rig, depth * RIG_PRP_ENTRIES * sizeof(uint64_t)),
		.sq_doorbell = rig->doorbells + 8 * id,
		.cq_doorbell = rig->doorbells + 8 * id + 4,
		.depth = depth,
		.depth_log2 = rig->options.depth_log2,
		.prp_entries = RIG_PRP_ENTRIES,
		.nsid = 1,
		.block_log2 = 9,
		.path = WEIR_PATH_DIRECT,
		.id = id,
		.doorbell_kind = WEIR_DOORBELL_DEVICE,
	};
	weir_store_u64_relaxed_sys(&queue->tail, rig->options.first);
	weir_store_u64_relaxed_sys(&queue->committed, rig->options.first);
	weir_store_u64_relaxed_sys(&queue->reap, rig->options.first << 1);
	weir_store_u64_relaxed_sys(&queue->rung, rig->options.first);
	*other = (struct weir_controller_queue){
		.sq = queue->sq,
		.cq = queue->cq,
		.doorbells = queue->sq_doorbell,
		.later = rig_later(rig),
		.depth_log2 = rig->options.depth_log2,
		.id = id,
	};
	weir_store_u64_relaxed_sys(&other->head, (uint32_t)rig->options.first);
}

static inline void rig_controller(struct rig *rig, const struct weir_controller_queue *others)
{
	const struct rig_options *options = &rig->options;
	uint32_t rows = rig_rows(options);

	rig->args.controller = (struct weir_controller_args){
		.queues = rig_memory(rig, options->queues * sizeof(*others)),
		.medium = rig_memory(rig, options->blocks * 512),
		.rate = rig_memory(rig, sizeof(uint64_t)),
		.faults = rig_memory(rig, sizeof(options->faults)),
		.blocks = options->blocks,
		.latency_ns = options->latency_us * 1000,
		.iops = options->iops,
		.queue_count = options->queues,
		.block_log2 = 9,
		.claim = options->claim ? options->claim : ~0u,
		.share_log2 = options->share_log2,
		.claim_bytes = options->claim_bytes ? options->claim_bytes : ~0ull,
		.rest = options->rest,
		.fault_count = rows,
	};
	rig_put(rig, rig->args.controller.queues, others, options->queues * sizeof(*others));
	rig_put(rig, rig->args.controller.faults, options->faults, sizeof(options->faults));
	rig->args.timed = options->timed || options->latency_us || options->iops || rows;
}

static inline uint32_t rig_lanes(const struct rig *rig)
{
	return (rig->options.controllers + rig->options.clients) * rig->options.width;
}

static inline void rig_clients(struct rig *rig)
{
	struct device_controller_args *args = &rig->args;
	uint32_t lanes = rig_lanes(rig);

	args->disk = (struct weir_disk){ .abi_version = WEIR_ABI_VERSION,
					 .queues = rig_memory(rig, sizeof(rig->queues)),
					 .queue_count = rig->options.queues,
					 .block_log2 = 9,
					 .blocks = rig->options.blocks,
					 .max_blocks = DEVICE_CONTROLLER_MOST_BLOCKS,
					 .timeout_ns = test_patient_us(20000000) * 1000 };
	rig_put(rig, args->disk.queues, rig->queues, sizeof(rig->queues));
	args->events = rig_memory(rig, lanes * sizeof(struct weir_event));
	args->buffers = rig_memory(rig, (size_t)lanes * 2 * DEVICE_CONTROLLER_MOST_BLOCKS * 512 + 4096);
	args->results = rig_memory(
		rig, (size_t)lanes * rig->options.rounds * sizeof(struct device_controller_result) + 1);
	args->finished = rig_memory(rig, sizeof(uint32_t));
	args->wrong = rig_memory(rig, sizeof(uint32_t));
	args->controllers = rig->options.controllers;
	args->rounds = rig->options.rounds;
	args->timeout_us = rig->options.timeout_us;
}

static inline void rig_open(struct rig *rig, const struct rig_options *options)
{
	struct weir_controller_queue others[RIG_QUEUES];

	*rig = (struct rig){ .options = *options };
	must(weir_context_open(
		test_context_name(),
		WEIR_OPTIONS(context, .workers = 2, .wave_lanes = test_on_cpu() ? options->width : 0),
		&rig->context));
	rig->doorbells = rig_memory(rig, 8 * (RIG_QUEUES + 1));
	for (uint32_t i = 0; i < options->queues; i++)
		rig_queue(rig, i, &others[i]);
	rig_controller(rig, others);
	rig_clients(rig);
}

/* What device_controller_word() says, in every block of the medium. */
static inline void rig_fill_medium(struct rig *rig)
{
	uint64_t words[64];

	for (uint64_t lba = 0; lba < rig->options.blocks; lba++) {
		for (uint64_t i = 0; i < 64; i++)
			words[i] = device_controller_word(lba, i);
		rig_put(rig, rig->args.controller.medium + lba * 512, words, sizeof(words));
	}
}

static inline void rig_run(struct rig *rig, const char *kernel)
{
	must(weir_launch(rig->context, kernel, 1, rig_lanes(rig), &rig->args, sizeof(rig->args)));
	must(weir_sync(rig->context));
	assert_int_equal(rig_word(rig, rig->args.finished), rig->options.clients * rig->options.width);
}

static inline struct device_controller_result rig_result(struct rig *rig, uint32_t index)
{
	struct device_controller_result result;

	must(weir_copy_from_device(rig->context, &result, rig->args.results + index * sizeof(result),
				   sizeof(result)));
	return result;
}

static inline uint32_t rig_results(const struct rig *rig)
{
	return rig->options.clients * rig->options.width * rig->options.rounds;
}

/* A client's queue after the run. */
static inline struct weir_queue rig_queue_after(struct rig *rig, uint32_t index)
{
	struct weir_queue queue;

	must(weir_copy_from_device(rig->context, &queue, rig->args.disk.queues + index * sizeof(queue),
				   sizeof(queue)));
	return queue;
}

/* One command of a client that is the host: its number is its ticket and its identifier. */
static inline void put_command(struct rig *rig, uint32_t ticket, uint32_t opcode, uint64_t lba,
			       uint32_t blocks, uint64_t prp1, uint64_t prp2)
{
	uint32_t mask = (1u << rig->options.depth_log2) - 1;
	struct nvme_sqe sqe = { .cdw0 = opcode | ticket << 16,
				.nsid = 1,
				.prp1 = prp1,
				.prp2 = prp2,
				.cdw10 = (uint32_t)lba,
				.cdw11 = (uint32_t)(lba >> 32),
				.cdw12 = blocks - 1 };

	rig_put(rig, rig->queues[0].sq + (ticket & mask) * sizeof(sqe), &sqe, sizeof(sqe));
}

static inline void ring(struct rig *rig, uint64_t doorbell, uint32_t ticket)
{
	uint32_t value = ticket & ((1u << rig->options.depth_log2) - 1);

	rig_put(rig, doorbell, &value, sizeof(value));
}

/* Reads of @blocks blocks each, into one buffer; tickets from @first on. */
static inline void announce(struct rig *rig, uint32_t first, uint32_t count, uint32_t blocks)
{
	for (uint32_t i = 0; i < count; i++)
		put_command(rig, first + i, NVME_OPCODE_READ, 0, blocks, rig->args.buffers,
			    rig->args.buffers + PAGE);
	ring(rig, rig->queues[0].sq_doorbell, first + count);
}

/* @iterations turns of the controller, one wave; what each served. */
static inline void take_iterations(struct rig *rig, uint32_t iterations, uint32_t served[MOST_ITERATIONS])
{
	struct device_controller_iterations_args args = { .controller = rig->args.controller,
							  .iterations = iterations,
							  .timed = rig->args.timed,
							  .served = rig_memory(
								  rig, MOST_ITERATIONS * sizeof(uint32_t)) };

	must(weir_launch(rig->context, "test_device_controller_iterations", 1, rig->options.width, &args,
			 sizeof(args)));
	must(weir_sync(rig->context));
	must(weir_copy_from_device(rig->context, served, args.served, iterations * sizeof(*served)));
}

static inline struct nvme_cqe completion(struct rig *rig, uint32_t position)
{
	uint32_t mask = (1u << rig->options.depth_log2) - 1;
	struct nvme_cqe cqe;

	must(weir_copy_from_device(rig->context, &cqe, rig->queues[0].cq + (position & mask) * sizeof(cqe),
				   sizeof(cqe)));
	return cqe;
}

/* The completion of ticket @ticket is at @position, with @status, fresh, and reports @head. */
static inline void completed(struct rig *rig, uint32_t position, uint32_t ticket, uint32_t status,
			     uint32_t head)
{
	uint32_t mask = (1u << rig->options.depth_log2) - 1;
	struct nvme_cqe cqe = completion(rig, position);

	assert_int_equal(cqe.dw3 & 0xffff, ticket & 0xffff);
	assert_int_equal(cqe.dw3 >> 16 & 1, ~(position >> rig->options.depth_log2) & 1);
	assert_int_equal(cqe.dw3 >> 17, status);
	assert_int_equal(cqe.dw2, (head & mask) | 1 << 16);
}

static inline struct rig_options one_wave(uint32_t width)
{
	return (struct rig_options){ .width = width,
				     .queues = 1,
				     .depth_log2 = 5,
				     .controllers = 1,
				     .clients = 1,
				     .rounds = 1,
				     .blocks = 256 };
}

static inline uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* @run once for each width of waves. */
static inline void for_widths(void (*run)(uint32_t width))
{
	for (size_t i = 0; i < test_width_count(); i++)
		run(test_width(i));
}

#endif
