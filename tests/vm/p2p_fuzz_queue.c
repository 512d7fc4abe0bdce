/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fuzzer's queue pairs: created and deleted through the driver's admin queue, and used; they end in
 * order, unannounced, or with their file, while other processes' resets take them away. What is in a ring is
 * never left to chance, and is a read into the queue's own range: the controller reaches all memory. Each
 * process has a place in the window and a number of its own.
 */
#include "p2p_fuzz.h"

#include <errno.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	PLACE = 32 << 20, /* where no import lies, and few ranges */
	PAGE = 4096,
	CQ = PAGE,
	DATA = 2 * PAGE,
	RANGE = 4 * PAGE,
	DEPTH = 8,
	DELETE_SQ = 0x00,
	CREATE_SQ = 0x01,
	DELETE_CQ = 0x04,
	CREATE_CQ = 0x05,
	READ = 0x02,
};

int fuzz_queue_controller(struct fuzzer *fuzzer, const char *disk)
{
	char path[64];
	unsigned number;
	FILE *file;

	check(sscanf(disk, "/dev/nvme%un", &number) == 1, "%s is no disk", disk);
	snprintf(path, sizeof(path), "/sys/class/nvme/nvme%u/queue_count", number);
	file = fopen(path, "re");
	check(file && fscanf(file, "%u", &fuzzer->first_qid) == 1, "no %s", path);
	fclose(file);
	snprintf(path, sizeof(path), "/dev/nvme%u", number);
	return open_node(path);
}

static unsigned qid_of(const struct fuzzer *fuzzer)
{
	return fuzzer->first_qid + fuzzer->number;
}

/* Return: whether the controller did it; it may be in a reset. */
static bool admin(struct fuzzer *fuzzer, unsigned row, uint8_t opcode, uint32_t cdw10, uint32_t cdw11,
		  void *page)
{
	struct nvme_admin_cmd command = { .opcode = opcode,
					  .cdw10 = cdw10,
					  .cdw11 = cdw11,
					  .addr = (uintptr_t)page,
					  .data_len = page ? PAGE : 0,
					  .timeout_ms = 5000 };
	int status = ioctl(fuzzer->controller, NVME_IOCTL_ADMIN_CMD, &command);

	if (status > 0)
		errno = EREMOTEIO; /* the controller's status */
	return fuzz_report(row, !status);
}

static void delete (struct fuzzer *fuzzer)
{
	admin(fuzzer, ROW_DELETE, DELETE_SQ, qid_of(fuzzer), 0, NULL);
	admin(fuzzer, ROW_DELETE, DELETE_CQ, qid_of(fuzzer), 0, NULL);
}

static bool call(struct fuzzer *fuzzer, unsigned long number, void *argument)
{
	return fuzz_report(_IOC_NR(number), !ioctl(fuzzer->files[QUEUES], number, argument));
}

static void clear(void *memory)
{
	memset(memory, 0, 2 * PAGE);
}

static bool take_range(struct fuzzer *fuzzer)
{
	struct queue *queue = &fuzzer->queue;
	struct weir_p2p_register range = { .size = sizeof(range),
					   .offset = PLACE + fuzzer->number * RANGE,
					   .bytes = RANGE };
	struct weir_p2p_locate location = { .size = sizeof(location) };
	void *memory;

	if (!call(fuzzer, WEIR_P2P_REGISTER, &range))
		return false;
	queue->range = location.handle = range.handle;
	memory = mmap(NULL, RANGE, PROT_READ | PROT_WRITE, MAP_SHARED, fuzzer->files[QUEUES],
		      (off_t)range.mmap_offset);
	if (!fuzz_report(ROW_MAP, memory != MAP_FAILED))
		return false;
	queue->memory = memory;
	if (!call(fuzzer, WEIR_P2P_LOCATE, &location) || !fuzz_guarded(clear, memory))
		return false;
	queue->bus = location.address;
	return true;
}

static bool add(struct fuzzer *fuzzer)
{
	struct queue *queue = &fuzzer->queue;
	void *doorbells;

	queue->call = (struct weir_p2p_queue){
		.size = sizeof(queue->call),
		.ssd = fuzzer->ssd,
		.qid = qid_of(fuzzer),
		.sq = { .handle = queue->range, .bytes = DEPTH * 64 },
		.cq = { .handle = queue->range, .offset = CQ, .bytes = DEPTH * 16 }
	};
	if (!call(fuzzer, WEIR_P2P_QUEUE_ADD, &queue->call))
		return false;
	fuzzer->pair = (struct thing){ QUEUES, queue->call.handle };
	doorbells = mmap(NULL, queue->call.mmap_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 fuzzer->files[QUEUES], (off_t)queue->call.mmap_offset);
	if (!fuzz_report(ROW_DOORBELLS, doorbells != MAP_FAILED))
		return false;
	queue->doorbells = doorbells;
	return true;
}

/* Whatever an earlier process has left under this number goes first: its ring is not there any more. */
static bool create(struct fuzzer *fuzzer)
{
	struct queue *queue = &fuzzer->queue;
	uint32_t id = qid_of(fuzzer), size = (DEPTH - 1) << 16 | id;

	delete (fuzzer);
	queue->created = admin(fuzzer, ROW_CREATE, CREATE_CQ, size, 1, queue->memory + CQ) &&
			 admin(fuzzer, ROW_CREATE, CREATE_SQ, size, id << 16 | 1, queue->memory);
	queue->tail = queue->head = 0;
	queue->phase = 1;
	return queue->created;
}

static void ring(const struct queue *queue, unsigned which, unsigned value)
{
	/* the ring before its doorbell: the controller reads it after that */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint32_t *)(queue->doorbells + queue->call.doorbell +
			       which * queue->call.doorbell_stride) = value;
}

static void submit(void *argument)
{
	struct queue *queue = argument;
	uint64_t data = queue->bus + DATA;
	uint32_t entry[16] = { READ | queue->tail << 16,
			       1, [6] = (uint32_t)data, [7] = (uint32_t)(data >> 32), [12] = 7 };

	for (unsigned i = 0; i < 16; i++)
		((volatile uint32_t *)(queue->memory + 64 * queue->tail))[i] = entry[i];
	queue->tail = (queue->tail + 1) % DEPTH;
	ring(queue, 0, queue->tail);
}

/* For a second, or until others' resets have it wait for nothing. */
static void reap(void *argument)
{
	struct queue *queue = argument;
	volatile uint32_t *word = (volatile uint32_t *)(queue->memory + CQ + 16 * queue->head + 12);
	struct timespec pause = { 0, 1000000 };

	queue->created = false;
	for (unsigned i = 0; i < 1000 && !queue->created; i++) {
		queue->created = (*word >> 16 & 1) == queue->phase;
		if (!queue->created)
			nanosleep(&pause, NULL);
	}
	errno = queue->created ? EREMOTEIO : ETIMEDOUT;
	if (!fuzz_report(ROW_COMMAND, queue->created && !(*word >> 17)))
		return;
	queue->head = (queue->head + 1) % DEPTH;
	queue->phase ^= !queue->head;
	ring(queue, 1, queue->head);
}

void fuzz_queue_forget(struct fuzzer *fuzzer)
{
	struct queue *queue = &fuzzer->queue;

	if (queue->doorbells)
		munmap(queue->doorbells, queue->call.mmap_bytes);
	if (queue->memory)
		munmap(queue->memory, RANGE);
	memset(queue, 0, sizeof(*queue));
}

/* In order; without deleting, as one does who lies; or not at all: the next one needs the file to be closed
 * first. */
static void finish(struct fuzzer *fuzzer)
{
	struct weir_p2p_deregister pair = { sizeof(pair), fuzzer->queue.call.handle };
	struct weir_p2p_deregister range = { sizeof(range), fuzzer->queue.range };

	if (fuzz_one_in(fuzzer, 8)) {
		fuzz_queue_forget(fuzzer);
		close(fuzzer->files[QUEUES]);
		fuzzer->files[QUEUES] = -1;
		return;
	}
	if (!fuzz_one_in(fuzzer, 8))
		delete (fuzzer);
	call(fuzzer, WEIR_P2P_QUEUE_REMOVE, &pair);
	call(fuzzer, WEIR_P2P_DEREGISTER, &range);
	fuzz_queue_forget(fuzzer);
}

void fuzz_queue(struct fuzzer *fuzzer)
{
	struct queue *queue = &fuzzer->queue;

	if (!queue->created) {
		if (queue->memory)
			finish(fuzzer);
		else if (!take_range(fuzzer) || !add(fuzzer) || !create(fuzzer))
			finish(fuzzer);
	} else if (fuzz_one_in(fuzzer, 8)) {
		finish(fuzzer);
	} else {
		if (fuzz_guarded(submit, queue) && !fuzz_one_in(fuzzer, 8))
			fuzz_guarded(reap, queue);
		else
			queue->created = false; /* it may be in flight: no more of this one */
	}
}
