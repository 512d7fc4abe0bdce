/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.c: the medium, the controller, and the queues that are laid out for a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/core/cache/policy.h>

#include "../../runtime/storage/forward.h"
#include "../../runtime/storage/dma.h"
#include "../../runtime/transport/virtual/state.h"
#include "explore.h"
#include "rig.h"
#include "rig_parts.h"
#include "scenarios.h"

enum {
	MOST_QUEUES = 4,
	MOST_DEPTH = 16,
	ADMIN_ENTRIES = 16,
	ADMIN_POLLS = 100000,
	IN_FLIGHT = 64,
	UNRECOVERED_READ = 0x281,
};

struct rig rig;
static size_t arena_used;
static u64 polls; /* of the host, in this run: time goes on while it waits, too */

/* The medium: blocks in memory; a poll ends one request, whichever chance picks. */
struct explore_medium {
	struct weir_medium base;
	struct weir_io *pending[IN_FLIGHT];
	u32 count;
	bool closing; /* end everything, in order */
};

static struct explore_medium medium;
u64 (*rig_blocks)[SCENARIO_BLOCK_WORDS];
static struct weir_virtual *controller;
static struct weir_dma_map *dma;
static bool faulty;                                  /* the controller has a fault table */
static struct weir_forward forwards[MOST_QUEUES][2]; /* SQ and CQ doorbells, shape.forwarded */
static bool shadowing, placing;                      /* the doorbells have shadows; lanes read the medium */
static unsigned char *admin_sq, *admin_cq;
static u32 *shadow, *event_index; /* pages of a word for each doorbell */
static u32 admin_tail, admin_head;

static void die(const char *what)
{
	fprintf(stderr, "weir-explore: %s (seed %#llx)\n", what, (unsigned long long)run.seed);
	exit(2);
}

static bool medium_submit(struct weir_medium *base, struct weir_io *io)
{
	(void)base;
	if (medium.count == IN_FLIGHT)
		return false;
	medium.pending[medium.count++] = io;
	if (rig.shape.replicas)
		rig_note_placed(io);
	return true;
}

static void move_data(const struct weir_io *io)
{
	unsigned char *block = (unsigned char *)rig_blocks + io->offset_bytes;

	for (unsigned i = 0; i < io->iov_count; i++) {
		bool read = io->kind == WEIR_IO_READ;

		memory_device_write(read ? io->iov[i].iov_base : block, read ? block : io->iov[i].iov_base,
				    io->iov[i].iov_len);
		block += io->iov[i].iov_len;
	}
}

/* The first of the queue pairs that end with the storage that dies. */
u32 rig_first_dying(void)
{
	return rig.shape.partner ? rig.shape.queues / 2 : 0;
}

/* Of a controller that has failed. */
static bool was_stopped(const struct weir_io *io)
{
	const struct virtual_request *request = (const struct virtual_request *)io;

	return rig.stop_step && run.steps >= rig.stop_step && io->kind != WEIR_IO_FLUSH &&
	       request->queue->id > rig_first_dying();
}

static bool never_ends(const struct weir_io *io)
{
	return !medium.closing && (io->offset_bytes == rig.lost_lba * SCENARIO_BLOCK_BYTES ||
				   was_stopped(io) || (rig.shape.replicas && rig_waits_placed(io)));
}

static unsigned medium_poll(struct weir_medium *base, unsigned thread)
{
	u32 index = medium.count > 1 && !medium.closing ? (u32)random_below(medium.count) : 0, tries = 0;
	struct weir_io *io;

	(void)base;
	(void)thread;
	while (tries < medium.count && never_ends(medium.pending[index])) {
		index = index + 1 < medium.count ? index + 1 : 0;
		tries++;
	}
	if (tries == medium.count)
		return 0;
	io = medium.pending[index];
	medium.pending[index] = medium.pending[--medium.count];
	io->status = io->offset_bytes == rig.bad_lba * SCENARIO_BLOCK_BYTES ? UNRECOVERED_READ : 0;
	if (rig.shape.replicas && !medium.closing)
		io->status = (u16)rig_move_placed(io);
	else if (!io->status && !medium.closing && io->bytes)
		move_data(io);
	io->done(io);
	return 1;
}

static void medium_close(struct weir_medium *base)
{
	(void)base;
}

static const struct weir_medium_ops medium_ops = {
	.size = sizeof(medium_ops),
	.submit = medium_submit,
	.poll = medium_poll,
	.close = medium_close,
};

u64 rig_clock_ns(void *unused)
{
	(void)unused;
	return (run.steps + polls) * STEP_NS;
}

void *rig_allocate(size_t bytes, size_t align)
{
	size_t start = (arena_used + align - 1) / align * align;

	if (start + bytes > ARENA_BYTES)
		die("the arena is too small for this scenario");
	arena_used = start + bytes;
	memset(arena + start, 0, bytes);
	return arena + start;
}

static void wait_ready(u32 wanted)
{
	for (u32 i = 0; i < ADMIN_POLLS; i++) {
		weir_virtual_poll(controller, 0);
		if ((weir_virtual_read32(controller, NVME_REGISTER_CSTS) & NVME_CSTS_READY) == wanted)
			return;
	}
	die("the controller does not start or stop");
}

static void enable(void)
{
	weir_virtual_write32(controller, NVME_REGISTER_AQA, (ADMIN_ENTRIES - 1) << 16 | (ADMIN_ENTRIES - 1));
	weir_virtual_write64(controller, NVME_REGISTER_ASQ, (u64)(uintptr_t)admin_sq);
	weir_virtual_write64(controller, NVME_REGISTER_ACQ, (u64)(uintptr_t)admin_cq);
	weir_virtual_write32(controller, NVME_REGISTER_CC,
			     NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16);
	wait_ready(NVME_CSTS_READY);
	admin_tail = admin_head = 0;
}

static void disable(void)
{
	weir_virtual_write32(controller, NVME_REGISTER_CC, 0);
	wait_ready(0);
	memset(admin_cq, 0, ADMIN_ENTRIES * sizeof(struct nvme_cqe));
}

static bool fatal(void)
{
	return weir_virtual_read32(controller, NVME_REGISTER_CSTS) & NVME_CSTS_FATAL;
}

/* One admin command, from start to end, or until the controller has failed. */
static void admin(struct nvme_sqe sqe)
{
	volatile u32 *doorbells = weir_virtual_doorbells(controller);
	struct nvme_cqe *cqe = (struct nvme_cqe *)admin_cq + admin_head % ADMIN_ENTRIES;
	u32 phase = ((admin_head / ADMIN_ENTRIES) & 1) ^ 1;

	sqe.cdw0 |= (admin_tail & 0xff) << 16;
	memcpy(admin_sq + admin_tail % ADMIN_ENTRIES * sizeof(sqe), &sqe, sizeof(sqe));
	doorbells[0] = ++admin_tail % ADMIN_ENTRIES;
	for (u32 i = 0; ((cqe->dw3 >> 16) & 1) != phase; i++) {
		if (fatal())
			return;
		if (i == ADMIN_POLLS)
			die("an admin command does not end");
		polls++;
		weir_virtual_poll(controller, 0);
	}
	if (cqe->dw3 >> 17)
		die("an admin command was refused");
	doorbells[1] = ++admin_head % ADMIN_ENTRIES;
}

/* The admin queue's words are left alone, as many hosts do. */
static void configure_shadow(void)
{
	admin((struct nvme_sqe){ .cdw0 = NVME_ADMIN_DOORBELL_BUFFER_CONFIG,
				 .prp1 = (u64)(uintptr_t)shadow,
				 .prp2 = (u64)(uintptr_t)event_index });
}

/* A controller that does wrong what @shape says. */
static void create_controller(const struct rig_shape *shape)
{
	struct weir_virtual_options options = {
		.size = sizeof(options),
		.medium = &medium.base,
		.dma = dma,
		.threads = 1,
		.max_queue_pairs = MOST_QUEUES,
		.max_queue_entries = ADMIN_ENTRIES,
		.max_transfer_bytes = 4096,
		.fetch_batch = 1,
		.clock_ns = rig_clock_ns,
		.faults = shape->fault_count ? shape->faults : NULL,
		.fault_count = shape->fault_count,
		.shadow_doorbells = shape->shadow,
	};

	memset(admin_cq, 0, ADMIN_ENTRIES * sizeof(struct nvme_cqe));
	placing = shape->places;
	medium.base.memory = placing ? rig_blocks : NULL;
	if (weir_virtual_create(&options, &controller) || weir_virtual_answer_places(controller) != placing)
		die("no controller");
	enable();
	faulty = shape->fault_count != 0;
	shadowing = shape->shadow;
	if (shadowing)
		configure_shadow();
}

void rig_create(void)
{
	medium.base = (struct weir_medium){ .ops = &medium_ops,
					    .bytes = RIG_BLOCKS_BYTES,
					    .end_bytes = RIG_BLOCKS_BYTES,
					    .block_bytes = SCENARIO_BLOCK_BYTES,
					    .path = "explorer" };
	admin_sq = rig_allocate(4096, 4096);
	admin_cq = rig_allocate(4096, 4096);
	shadow = rig_allocate(4096, 4096);
	event_index = rig_allocate(4096, 4096);
	rig_blocks = rig_allocate(RIG_BLOCKS_BYTES, 4096);
	if (weir_dma_map_create(&dma) || weir_dma_map_add(dma, arena, ARENA_BYTES))
		die("no DMA map");
	create_controller(&(struct rig_shape){ .queues = 0 });
}

static void watch_queue(struct weir_queue *queue, u32 index)
{
	static const char *const names[MOST_QUEUES][12] = {
#define NAMES(q)                                                                                             \
	{ "queue" q,         "queue" q ".tail",      "queue" q ".pending",  "queue" q ".reap",               \
	  "sq" q "[%u]",     "cq" q "[%u]",          "queue" q ".slot[%u]", "queue" q ".committed",          \
	  "queue" q ".rung", "queue" q ".completed", "queue" q ".failed",   "queue" q ".rogue" }
		NAMES("0"),
		NAMES("1"),
		NAMES("2"),
		NAMES("3"),
#undef NAMES
	};
	const char *const *name = names[index];
	struct weir_slot *slots = (struct weir_slot *)(uintptr_t)queue->slots;

	watch(queue, sizeof(*queue), sizeof(*queue), WATCH_NONE, name[0], sizeof(*queue));
	watch(&queue->tail, 8, 8, WATCH_DATA, name[1], 8);
	watch(&queue->pending, 8, 8, WATCH_DATA, name[2], 8);
	watch(&queue->committed, 8, 8, WATCH_DATA, name[7], 8);
	watch(&queue->reap, 8, 8, WATCH_LOCK, name[3], 8);
	watch(&queue->rung, 8, 8, WATCH_DATA, name[8], 8);
	watch(&queue->completed, 8, 8, WATCH_DATA, name[9], 8);
	watch(&queue->failed, 8, 8, WATCH_DATA, name[10], 8);
	watch((void *)(uintptr_t)queue->sq, queue->depth * 64, 64, WATCH_DATA, name[4], 64);
	watch((void *)(uintptr_t)queue->cq, queue->depth * 16, 16, WATCH_DATA, name[5], 16);
	watch(slots, queue->depth * sizeof(*slots), 4, WATCH_SEQUENCE, name[6], sizeof(*slots));
	for (u32 i = 0; i < queue->depth; i++)
		watch_guard(&slots[i], &queue->reap);
}

static void lay_out_staging(struct weir_queue *queue)
{
	unsigned char *staging = rig_allocate(queue->depth << LINE_LOG2, 4096);

	queue->staging = (weir_addr)(uintptr_t)staging;
	queue->staging_log2 = LINE_LOG2;
	watch(staging, queue->depth << LINE_LOG2, 1 << LINE_LOG2, WATCH_DATA, "staging[%u]", 1 << LINE_LOG2);
}

static void lay_out_shadow(struct weir_queue *queue)
{
	u32 *words = &shadow[2 * queue->id], *events = &event_index[2 * queue->id];

	queue->shadow = (weir_addr)(uintptr_t)words;
	memset(words, 0, 8);
	memset(events, 0, 8);
	watch(words, 8, 4, WATCH_DATA, "shadow doorbell[%u]", 4);
	watch(events, 8, 4, WATCH_DATA, "EventIdx[%u]", 4);
}

/* Lanes' doorbells become words; what they were, and the shadows, are the forwarding thread's. */
static void lay_out_words(struct weir_queue *queue, u32 index)
{
	u32 *words = rig_allocate(8, 8);
	weir_addr doorbells[2] = { queue->sq_doorbell, queue->cq_doorbell };

	for (u32 i = 0; i < 2; i++)
		forwards[index][i] =
			(struct weir_forward){ .word = (weir_addr)(uintptr_t)&words[i],
					       .doorbell = doorbells[i],
					       .shadow = queue->shadow ? queue->shadow + 4 * i : 0 };
	queue->sq_doorbell = forwards[index][0].word;
	queue->cq_doorbell = forwards[index][1].word;
	queue->shadow = 0;
	watch(words, 8, 4, WATCH_DATA, "forwarded doorbell[%u]", 4);
}

/* The thread's scan of all words, in either direction. Return: one had changed. */
static bool forward_doorbells(void)
{
	u32 count = rig.shape.forwarded ? 2 * rig.shape.queues : 0,
	    first = count ? (u32)random_below(count) : 0;
	bool changed = false;

	for (u32 i = 0; i < count; i++) {
		u32 at = (first + i) % count;

		changed |= weir_forward_step(&forwards[at / 2][at % 2]) != WEIR_FORWARD_NOTHING;
	}
	return changed;
}

static void lay_out_queue(struct weir_queue *queue, u32 index)
{
	const struct rig_shape *shape = &rig.shape;
	volatile u32 *doorbells = weir_virtual_doorbells(controller);
	u64 first = shape->iteration * shape->depth;
	u32 size = (shape->depth - 1) << 16 | (index + 1);
	weir_addr sq, cq;
	struct weir_slot *slots;

	queue->sq = (weir_addr)(uintptr_t)rig_allocate(shape->depth * 64, 4096);
	queue->cq = (weir_addr)(uintptr_t)rig_allocate(shape->depth * 16, 4096);
	queue->prp_lists = (weir_addr)(uintptr_t)rig_allocate(shape->depth * 8, 4096);
	slots = rig_allocate(shape->depth * sizeof(*slots), 64);
	queue->records =
		(weir_addr)(uintptr_t)rig_allocate(shape->depth * sizeof(struct weir_retry_record), 64);
	queue->slots = (weir_addr)(uintptr_t)slots;
	queue->id = index + 1;
	queue->sq_doorbell = (weir_addr)(uintptr_t)&doorbells[2 * queue->id];
	queue->cq_doorbell = (weir_addr)(uintptr_t)&doorbells[2 * queue->id + 1];
	if (shape->shadow)
		lay_out_shadow(queue);
	if (shape->forwarded)
		lay_out_words(queue, index);
	queue->depth = shape->depth;
	queue->depth_log2 = (u32)__builtin_ctz(shape->depth);
	queue->prp_entries = queue->nsid = 1;
	queue->block_log2 = 9;
	queue->path = shape->pull ? WEIR_PATH_PULL : WEIR_PATH_DIRECT;
	queue->doorbell_kind = shape->on_device ? WEIR_DOORBELL_DEVICE : WEIR_DOORBELL_BUS;
	if (shape->pull)
		lay_out_staging(queue);
	queue->medium = shape->places ? (weir_addr)(uintptr_t)rig_blocks : 0;
	queue->tail.value_ = queue->committed.value_ = queue->rung.value_ = first;
	queue->reap.value_ = first << 1;
	for (u32 i = 0; i < shape->depth; i++) {
		slots[i].sequence.value_ = (u32)(shape->iteration << 1);
		((struct nvme_cqe *)(uintptr_t)queue->cq)[i].dw3 = 0x8000; /* no ticket of a run comes near */
	}
	sq = queue->sq;
	cq = queue->cq;
	if (shape->nic)
		rig_lay_out_nic(queue, index);
	watch_queue(queue, index);
	admin((struct nvme_sqe){ .cdw0 = NVME_ADMIN_CREATE_CQ, .prp1 = cq, .cdw10 = size, .cdw11 = 1 });
	admin((struct nvme_sqe){
		.cdw0 = NVME_ADMIN_CREATE_SQ, .prp1 = sq, .cdw10 = size, .cdw11 = queue->id << 16 | 1 });
}

/* The queue pairs become those of two storages. */
static void part(struct weir_disk *disks)
{
	disks[0].queue_count /= 2;
	disks[1] = disks[0];
	disks[1].id = 1;
	disks[1].queues += disks[0].queue_count * sizeof(struct weir_queue);
}

void rig_open(const struct rig_shape *shape)
{
	polls = 0;
	rig = (struct rig){ .shape = *shape, .bad_lba = ~(u64)0, .lost_lba = ~(u64)0 };
	if (shape->fault_count || faulty || shape->shadow != shadowing ||
	    shape->places != placing) { /* a fault table is a controller's for life */
		weir_virtual_destroy(controller);
		create_controller(shape);
	}
	arena_used =
		4 * 4096 + RIG_BLOCKS_BYTES; /* behind the admin rings, the doorbells' pages and blocks */
	watch_begin();
	for (u32 lba = 0; lba < SCENARIO_BLOCKS; lba++)
		for (u32 word = 0; word < SCENARIO_BLOCK_WORDS; word++)
			rig_blocks[lba][word] = scenario_word(lba, 0, word);
	if (shape->places)
		watch(rig_blocks, RIG_BLOCKS_BYTES, SCENARIO_BLOCK_BYTES, WATCH_DATA, "block[%u]",
		      SCENARIO_BLOCK_BYTES);
	rig.queues = rig_allocate(shape->queues * sizeof(struct weir_queue), 128);
	for (u32 i = 0; i < shape->queues; i++)
		lay_out_queue(&rig.queues[i], i);
	rig.disk = rig_allocate(2 * sizeof(*rig.disk), 64);
	*rig.disk = (struct weir_disk){ .abi_version = WEIR_ABI_VERSION,
					.queues = (weir_addr)(uintptr_t)rig.queues,
					.queue_count = shape->queues,
					.block_log2 = 9,
					.blocks = SCENARIO_BLOCKS,
					.max_blocks = 1,
					.timeout_ns = shape->timeout_ns };
	rig.fault = rig_allocate(sizeof(*rig.fault), 64);
	rig.disk->fault = (weir_addr)(uintptr_t)rig.fault;
	if (shape->partner)
		part(rig.disk);
	if (shape->replicas)
		rig_lay_out_placed();
	rig_lay_out_cache();
}

/* What the controller changed of @words, which were @before, gets a past. */
static void remember_changes(u32 *words, const u32 *before, u32 count)
{
	for (u32 w = 0; w < count; w++) {
		u32 new = words[w];

		if (new == before[w])
			continue;
		words[w] = before[w];
		memory_device_write(&words[w], &new, 4);
	}
}

/* Return: it happened just now. */
static bool declare_dead(void)
{
	u32 word = WEIR_E_DEVICE_DEAD | (rig.unsafe ? WEIR_QUEUE_UNSAFE : 0), first = rig_first_dying();
	u64 announced = rig.queues[first].committed.value_ - rig.shape.iteration * rig.shape.depth;

	if (rig.dead_after && announced >= rig.dead_after)
		rig.stop_step = rig.dead_step = run.steps;
	if (!rig.dead_step || run.steps < rig.dead_step || rig.queues[first].dead.value_)
		return false;
	for (u32 i = first; i < rig.shape.queues; i++)
		rig.queues[i].dead.value_ = word;
	return true;
}

/*
 * Step the controller. In weak memory its completion entries and EventIdx words get a past as well:
 * what it wrote is found by comparison.
 */
bool rig_poll(void)
{
	static struct nvme_cqe before[MOST_QUEUES][MOST_DEPTH];
	u32 count = rig.shape.queues, depth = rig.shape.depth, events[2 * (MOST_QUEUES + 1)];
	bool something, died = declare_dead(), early = rig.shape.forwarded && random_below(2),
			rang = early && forward_doorbells();

	for (u32 i = 0; run.weak && i < count; i++)
		memcpy(before[i], (void *)(uintptr_t)rig.queues[i].cq, depth * sizeof(struct nvme_cqe));
	memcpy(events, event_index, sizeof(events));
	something = weir_virtual_poll(controller, 0) != 0 || died || rang;
	something |= rig_step_placed();
	if (!something && !early) /* late, but not for ever */
		something = forward_doorbells();
	if (run.weak)
		remember_changes(event_index, events, sizeof(events) / sizeof(*events));
	for (u32 i = 0; run.weak && something && !rig.shape.nic && i < count; i++)
		remember_changes((u32 *)(uintptr_t)rig.queues[i].cq, (u32 *)before[i], depth * 4);
	something |= rig_step_nics();
	if (something) {
		memory_wake();
		run.hash = (run.hash ^ 977) * 1099511628211ull;
	}
	return something;
}

void rig_close(void)
{
	medium.closing = true;
	for (u32 i = 0; i < rig.shape.queues && !fatal(); i++) {
		admin((struct nvme_sqe){ .cdw0 = NVME_ADMIN_DELETE_SQ, .cdw10 = i + 1 });
		admin((struct nvme_sqe){ .cdw0 = NVME_ADMIN_DELETE_CQ, .cdw10 = i + 1 });
	}
	if (fatal()) { /* perhaps only now, by a command it still fetched */
		disable();
		enable();
	}
	medium.closing = false;
}
