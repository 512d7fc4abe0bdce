/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p_queue.c: a process plays the GPU: a queue pair of an SSD that keeps the kernel's driver, its rings and
 * data in the fake GPU's memory, its doorbells mapped. Created and deleted through the driver's own admin
 * queue.
 *
 *   vm_p2p queue NODE DISK SSD read LBA COUNT     COUNT times 8 KiB into the window, from DATA on
 *   vm_p2p queue NODE DISK SSD write LBA COUNT    the other way
 *   vm_p2p queue NODE DISK SSD killed             ends by SIGKILL with commands in flight: nothing arrives
 * later vm_p2p queue NODE DISK SSD lied               the same, but it has said that they are deleted: a
 * control vm_p2p queue NODE DISK SSD gone COMMAND       the shell takes SSD or GPU away: doorbells give
 * SIGBUS vm_p2p queue NODE DISK SSD bad                what has to be refused
 */
#include "p2p.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/nvme_ioctl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	DEPTH = 64,
	PAGE = 4096,
	TRANSFER = 2 * PAGE,
	IN_FLIGHT = 48,
	RING_CQ = PAGE, /* offsets in the range */
	DATA = 64 << 10,
	RANGE = 1 << 20,
	POISON = 0xa5,
	ADMIN_DELETE_SQ = 0x00,
	ADMIN_CREATE_SQ = 0x01,
	ADMIN_DELETE_CQ = 0x04,
	ADMIN_CREATE_CQ = 0x05,
	ADMIN_IDENTIFY = 0x06,
	IDENTIFY_CONTROLLER = 1,
	OACS_AT = 256,
	OACS_DOORBELL_BUFFER_CONFIG = 1 << 8,
	ADMIN_GET_FEATURES = 0x0a,
	FEATURE_QUEUES = 0x07,
	COMMAND_WRITE = 0x01,
	COMMAND_READ = 0x02,
};

/** struct pair - a queue pair; @controller: the driver's device file; @bus: of the range; @doorbells: where
 * doorbells are mapped */
struct pair {
	int controller;
	struct range range;
	struct weir_p2p_queue call;
	uint64_t bus;
	volatile uint8_t *doorbells;
	unsigned tail, head, phase;
};

/* Return: NVMe status; gives up where the driver refuses. */
static int admin(int controller, uint8_t opcode, uint32_t cdw10, uint32_t cdw11, void *page, uint32_t *result)
{
	struct nvme_admin_cmd command = { .opcode = opcode,
					  .cdw10 = cdw10,
					  .cdw11 = cdw11,
					  .addr = (uintptr_t)page,
					  .data_len = page ? PAGE : 0 };
	int status = ioctl(controller, NVME_IOCTL_ADMIN_CMD, &command);

	check(status >= 0, "the driver refuses admin command %#x", opcode);
	if (result)
		*result = command.result;
	return status;
}

/* The driver's node of @ssd. A disk's name has the number of its subsystem, which may be another one. */
static int open_controller(const char *ssd, char name[16])
{
	char pattern[80], path[32];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "/sys/bus/pci/devices/%.20s/nvme/nvme*", ssd);
	check(!glob(pattern, 0, NULL, &found) && found.gl_pathc == 1, "%s has no driver", ssd);
	snprintf(name, 16, "%.15s", strrchr(found.gl_pathv[0], '/') + 1);
	globfree(&found);
	snprintf(path, sizeof(path), "/dev/%s", name);
	return open_node(path);
}

/* Its driver then has set them up, and the controller looks there for all queues' doorbells. */
static void refuse_shadow(int controller, const char *name)
{
	static uint8_t page[PAGE] __attribute__((aligned(PAGE)));

	check(!admin(controller, ADMIN_IDENTIFY, IDENTIFY_CONTROLLER, 0, page, NULL), "Identify");
	check(!((page[OACS_AT] | page[OACS_AT + 1] << 8) & OACS_DOORBELL_BUFFER_CONFIG),
	      "%s has shadow doorbells, which its driver uses: those of other queues are of no effect", name);
}

/* The first number that is the driver's not, and is among those that the controller has. */
static uint32_t free_queue(int controller, const char *name)
{
	uint32_t granted = 0;
	unsigned used = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/nvme/%s/queue_count", name);
	file = fopen(path, "re");
	check(file && fscanf(file, "%u", &used) == 1, "no %s", path);
	fclose(file);
	check(!admin(controller, ADMIN_GET_FEATURES, FEATURE_QUEUES, 0, NULL, &granted), "Get Features");
	check(used <= (granted & 0xffff) + 1 && used <= (granted >> 16) + 1, "all %u queues are the driver's",
	      used);
	return used; /* with the admin queue: so many are numbered 0 to used - 1 */
}

static struct weir_p2p_queue request(const struct range *range, const char *ssd, uint32_t qid)
{
	return (struct weir_p2p_queue){
		.size = sizeof(struct weir_p2p_queue),
		.ssd = function_at(ssd, 0),
		.qid = qid,
		.sq = { .handle = range->handle, .bytes = DEPTH * 64 },
		.cq = { .handle = range->handle, .offset = RING_CQ, .bytes = DEPTH * 16 }
	};
}

static const char *why(int node)
{
	static struct weir_p2p_reason said;

	said.size = sizeof(said);
	return ioctl(node, WEIR_P2P_REASON, &said) ? "" : said.text;
}

static void create(struct pair *pair)
{
	uint32_t size = (DEPTH - 1) << 16 | pair->call.qid;

	memset(pair->range.memory, 0, 2 * PAGE);
	check(!admin(pair->controller, ADMIN_CREATE_CQ, size, 1, pair->range.memory + RING_CQ, NULL),
	      "Create CQ");
	check(!admin(pair->controller, ADMIN_CREATE_SQ, size, pair->call.qid << 16 | 1, pair->range.memory,
		     NULL),
	      "Create SQ");
	pair->tail = pair->head = 0;
	pair->phase = 1;
}

static volatile uint8_t *map_doorbells(const struct pair *pair)
{
	void *doorbells = mmap(NULL, pair->call.mmap_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			       pair->range.node, (off_t)pair->call.mmap_offset);

	check(doorbells != MAP_FAILED, "doorbells: %s", why(pair->range.node));
	return doorbells;
}

static struct pair begin(char **argv, uint64_t first)
{
	struct pair pair = { .range = take(open_node(argv[0]), first, RANGE) };
	struct weir_p2p_locate location = { .size = sizeof(location), .handle = pair.range.handle };
	char name[16];

	pair.controller = open_controller(argv[2], name);
	refuse_shadow(pair.controller, name);
	pair.call = request(&pair.range, argv[2], free_queue(pair.controller, name));
	check(!ioctl(pair.range.node, WEIR_P2P_QUEUE_ADD, &pair.call), "%s", why(pair.range.node));
	check(!ioctl(pair.range.node, WEIR_P2P_LOCATE, &location), "%s", why(pair.range.node));
	check(location.bytes == RANGE && location.address == pair.call.sq_address,
	      "a range by offset is not contiguous");
	pair.bus = location.address;
	create(&pair);
	pair.doorbells = map_doorbells(&pair);
	return pair;
}

static void remove_pair(struct pair *pair)
{
	struct weir_p2p_deregister call = { sizeof(call), pair->call.handle };

	check(!ioctl(pair->range.node, WEIR_P2P_QUEUE_REMOVE, &call), "%s", why(pair->range.node));
}

static void finish(struct pair *pair)
{
	check(!admin(pair->controller, ADMIN_DELETE_SQ, pair->call.qid, 0, NULL, NULL), "Delete SQ");
	check(!admin(pair->controller, ADMIN_DELETE_CQ, pair->call.qid, 0, NULL, NULL), "Delete CQ");
	munmap((void *)pair->doorbells, pair->call.mmap_bytes);
	remove_pair(pair);
	drop(&pair->range);
}

static void ring(struct pair *pair, unsigned which, unsigned value)
{
	volatile uint32_t *register_word = (volatile uint32_t *)(pair->doorbells + pair->call.doorbell +
								 which * pair->call.doorbell_stride);

	/* the ring before its doorbell: the controller reads it after that */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*register_word = value;
}

static void put(volatile uint8_t *entry, unsigned at, uint32_t value)
{
	*(volatile uint32_t *)(entry + at) = value;
}

/* @data: place in the range. */
static void submit(struct pair *pair, uint8_t opcode, uint64_t lba, uint64_t data)
{
	volatile uint8_t *entry = pair->range.memory + 64 * pair->tail;
	uint64_t prp1 = pair->bus + data, prp2 = prp1 + PAGE;

	for (unsigned i = 0; i < 64; i += 4)
		put(entry, i, 0);
	put(entry, 0, opcode | pair->tail << 16);
	put(entry, 4, 1);
	put(entry, 24, (uint32_t)prp1);
	put(entry, 28, (uint32_t)(prp1 >> 32));
	put(entry, 32, (uint32_t)prp2);
	put(entry, 36, (uint32_t)(prp2 >> 32));
	put(entry, 40, (uint32_t)lba);
	put(entry, 44, (uint32_t)(lba >> 32));
	put(entry, 48, TRANSFER / 512 - 1);
	pair->tail = (pair->tail + 1) % DEPTH;
	ring(pair, 0, pair->tail);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void reap(struct pair *pair)
{
	volatile uint32_t *word = (volatile uint32_t *)(pair->range.memory + RING_CQ + 16 * pair->head + 12);
	double begin = seconds();

	while ((*word >> 16 & 1) != pair->phase)
		check(seconds() - begin < 30, "no completion in entry %u: it is %#x", pair->head, *word);
	check(!(*word >> 17), "a command ended with status %#x", *word >> 17);
	pair->head = (pair->head + 1) % DEPTH;
	if (!pair->head)
		pair->phase ^= 1;
	ring(pair, 1, pair->head);
}

static int move(char **argv, uint8_t opcode)
{
	uint64_t lba = number(argv[4]), count = number(argv[5]);
	struct pair pair = begin(argv, 0);

	check(DATA + count * TRANSFER <= RANGE, "%llu are too many", (unsigned long long)count);
	for (uint64_t i = 0; i < count; i++) {
		submit(&pair, opcode, lba + i * (TRANSFER / 512), DATA + i * TRANSFER);
		if (i % 8 == 7 || i + 1 == count)
			for (unsigned j = (unsigned)(i % 8) + 1; j; j--)
				reap(&pair);
	}
	printf("queue %u moved %llu bytes; rings at 0 and %u, data at %u\n", pair.call.qid,
	       (unsigned long long)(count * TRANSFER), RING_CQ, DATA);
	finish(&pair);
	return 0;
}

/* In a child: commands in flight, then as its parent wants. */
static void leave_some(char **argv, bool lie, int reported)
{
	struct pair pair = begin(argv, 0);

	memset(pair.range.memory + DATA, POISON, IN_FLIGHT * TRANSFER);
	for (unsigned i = 0; i < IN_FLIGHT; i++)
		submit(&pair, COMMAND_READ, i * (TRANSFER / 512), DATA + i * TRANSFER);
	if (lie)
		remove_pair(&pair);
	check(write(reported, "", 1) == 1, "pipe");
	for (;;)
		pause();
}

/* How many bytes of the poisoned arrive, of those that commands of a dead process read. */
static uint64_t arrivals(char **argv)
{
	struct range range = take(open_node(argv[0]), 0, RANGE);
	uint64_t count = 0;

	memset(range.memory + DATA, POISON, IN_FLIGHT * TRANSFER);
	sleep(4);
	for (uint64_t i = 0; i < IN_FLIGHT * TRANSFER; i++)
		count += range.memory[DATA + i] != POISON;
	drop(&range);
	return count;
}

static void killed(char **argv, bool lie)
{
	int reported[2], status;
	char byte;
	pid_t child;

	check(!pipe(reported), "pipe");
	fflush(stdout);
	child = fork();
	check(child >= 0, "fork");
	if (!child)
		leave_some(argv, lie, reported[1]);
	close(reported[1]);
	check(read(reported[0], &byte, 1) == 1, "the child ended");
	kill(child, SIGKILL);
	check(waitpid(child, &status, 0) == child && WIFSIGNALED(status), "waitpid");
}

static int do_killed(char **argv)
{
	uint64_t count;

	killed(argv, false);
	count = arrivals(argv);
	check(!count, "%llu bytes arrived after the end of who had asked for them",
	      (unsigned long long)count);
	printf("nothing arrived\n");
	return 0;
}

static int do_lied(char **argv)
{
	uint64_t count;

	killed(argv, true);
	count = arrivals(argv);
	check(count, "nothing arrived: nothing was in flight");
	printf("%llu bytes arrived\n", (unsigned long long)count);
	return 0;
}

static sigjmp_buf out;

static void on_signal(int number)
{
	siglongjmp(out, number);
}

/* The signal that ringing gives; 0: none. */
static int ringing(struct pair *pair)
{
	struct sigaction action = { .sa_handler = on_signal };
	int number;

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	number = sigsetjmp(out, 1);
	if (!number)
		ring(pair, 1, pair->head);
	return number;
}

static int do_gone(char **argv)
{
	struct pair pair = begin(argv, 0);

	submit(&pair, COMMAND_READ, 0, DATA);
	reap(&pair);
	check(!ringing(&pair), "doorbells are not there");
	fflush(stdout);
	check(!system(argv[4]), "\"%s\" failed", argv[4]);
	check(ringing(&pair) == SIGBUS, "doorbells are there still");
	printf("doorbells are gone\n");
	return 0;
}

static void refuse_map(struct pair *pair, int node, uint64_t bytes, int protection, int flags, int error,
		       const char *what)
{
	void *memory = mmap(NULL, bytes, protection, flags, node, (off_t)pair->call.mmap_offset);

	expect(node, memory == MAP_FAILED ? -1 : 0, error, what);
}

static void refuse_add(struct pair *pair, int node, struct weir_p2p_queue call, int error, const char *what)
{
	(void)pair;
	expect(node, ioctl(node, WEIR_P2P_QUEUE_ADD, &call), error, what);
}

static void bad_maps(struct pair *pair, char **argv)
{
	const int both = PROT_READ | PROT_WRITE;
	uint64_t bytes = pair->call.mmap_bytes;
	int node = pair->range.node, other = open_node(argv[0]);
	void *doorbells = (void *)pair->doorbells;

	refuse_map(pair, node, bytes, both, MAP_SHARED, EBUSY, "mapping doorbells twice");
	refuse_map(pair, other, bytes, both, MAP_SHARED, ENOENT, "another file's doorbells");
	check(mremap(doorbells, bytes, 2 * bytes, MREMAP_MAYMOVE) == MAP_FAILED, "doorbells grew");
	check(mremap(doorbells, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)doorbells + (1 << 30)) ==
		      MAP_FAILED,
	      "doorbells moved");
	check(signal_of(read_byte, doorbells) == SIGSEGV, "a child has doorbells");
	munmap(doorbells, bytes);
	refuse_map(pair, node, 2 * bytes, both, MAP_SHARED, EINVAL, "mapping more than the doorbells");
	refuse_map(pair, node, bytes, both, MAP_PRIVATE, EINVAL, "a private mapping of doorbells");
	refuse_map(pair, node, bytes, both | PROT_EXEC, MAP_SHARED, EINVAL, "doorbells to be executed");
	check(!seteuid(65534), "seteuid");
	refuse_map(pair, node, bytes, both, MAP_SHARED, EPERM, "doorbells without privileges");
	check(!seteuid(0), "seteuid");
	pair->doorbells = map_doorbells(pair);
	close(other);
}

static void bad_adds(struct pair *pair, char **argv)
{
	struct weir_p2p_queue good = request(&pair->range, argv[2], pair->call.qid + 1), call;
	int node = pair->range.node, other = open_node(argv[0]);
	struct range range;

	call = good, call.qid = pair->call.qid;
	refuse_add(pair, node, call, EEXIST, "the same queue twice");
	range = take(other, RANGE, RANGE);
	call.sq.handle = call.cq.handle = range.handle;
	refuse_add(pair, other, call, EBUSY, "somebody else's queue");
	call = good;
	refuse_add(pair, other, call, ENOENT, "a ring in another file's range");
	drop(&range);
	call = good, call.sq.handle = 12345;
	refuse_add(pair, node, call, ENOENT, "a ring that is not registered");
	call = good, call.cq.offset = 64;
	refuse_add(pair, node, call, EINVAL, "a ring that begins with no page");
	call = good, call.cq.offset = RANGE - PAGE, call.cq.bytes = 2 * PAGE;
	refuse_add(pair, node, call, EINVAL, "a ring beyond its range");
	call = good, call.sq.bytes = ~0ULL;
	refuse_add(pair, node, call, EINVAL, "an endless ring");
	call = good, call.sq.offset = ~0ULL << 12;
	refuse_add(pair, node, call, EINVAL, "a ring far away");
	call = good, call.sq.bytes = 0;
	refuse_add(pair, node, call, EINVAL, "an empty ring");
	call = good, call.qid = 0;
	refuse_add(pair, node, call, EINVAL, "the admin queue");
	call = good, call.qid = 65536;
	refuse_add(pair, node, call, EINVAL, "queue 65536");
	call = good, call.qid = 60000;
	refuse_add(pair, node, call, ERANGE, "a queue without doorbells");
	call = good, call.flags = 1;
	refuse_add(pair, node, call, EINVAL, "unknown flags");
	call = good, call.reserved = 1;
	refuse_add(pair, node, call, EINVAL, "a queue with more than is known");
	call = good, call.sq.reserved = 1;
	refuse_add(pair, node, call, EINVAL, "a submission ring with more than is known");
	call = good, call.cq.reserved = 1;
	refuse_add(pair, node, call, EINVAL, "a completion ring with more than is known");
	call = good, call.ssd.device = 30;
	refuse_add(pair, node, call, ENODEV, "an SSD that is not there");
	call = good, call.ssd = function_at("0000:00:00.0", 0);
	refuse_add(pair, node, call, ENXIO, "what is no SSD");
	check(!seteuid(65534), "seteuid");
	refuse_add(pair, node, good, EPERM, "a queue without privileges");
	check(!seteuid(0), "seteuid");
	close(other);
}

static void bad_rest(struct pair *pair)
{
	struct weir_p2p_locate location = { .size = sizeof(location),
					    .handle = pair->range.handle,
					    .offset = RANGE };
	struct weir_p2p_deregister other = { sizeof(other), pair->call.handle + 7 };
	struct weir_p2p_flush flush = { .size = sizeof(flush), .flags = 2 };
	int node = pair->range.node, status;

	expect(node, try_deregister(node, pair->range.handle), EBUSY, "giving back a range with queues");
	expect(node, ioctl(node, WEIR_P2P_QUEUE_REMOVE, &other), ENOENT,
	       "removing a queue that is not there");
	expect(node, ioctl(node, WEIR_P2P_LOCATE, &location), ERANGE, "a place beyond the range");
	expect(node, ioctl(node, WEIR_P2P_FLUSH, &flush), EINVAL, "a flush with unknown flags");
	/* Invalid Queue Identifier: the controller itself has those of the driver. */
	status = admin(pair->controller, ADMIN_CREATE_CQ, (DEPTH - 1) << 16 | 1, 1,
		       pair->range.memory + 2 * PAGE, NULL);
	check((status & 0x7ff) == 0x101, "creating the driver's queue 1 again: status %#x", status);
}

static int do_refused(char **argv)
{
	struct pair pair = begin(argv, 0);

	bad_maps(&pair, argv);
	bad_adds(&pair, argv);
	bad_rest(&pair);
	submit(&pair, COMMAND_READ, 0, DATA); /* and it works all the same */
	reap(&pair);
	finish(&pair);
	return 0;
}

int do_flush(char **argv)
{
	struct weir_p2p_flush call = { .size = sizeof(call) };
	int node = open_node(argv[0]);

	check(!ioctl(node, WEIR_P2P_FLUSH, &call), "%s", why(node));
	return 0;
}

int do_queue(char **argv)
{
	const char *step = argv[3];

	if (!strcmp(step, "read") || !strcmp(step, "write"))
		return move(argv, step[0] == 'r' ? COMMAND_READ : COMMAND_WRITE);
	if (!strcmp(step, "killed"))
		return do_killed(argv);
	if (!strcmp(step, "lied"))
		return do_lied(argv);
	if (!strcmp(step, "gone"))
		return do_gone(argv);
	if (!strcmp(step, "bad"))
		return do_refused(argv);
	give_up("no step %s", step);
}
