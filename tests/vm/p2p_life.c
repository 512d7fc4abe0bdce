/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who ends first: a process, a range, a window, a GPU, an SSD, the module.
 *
 *   fork       the child has no mapping
 *   exec       what was registered is free then
 *   killed     SIGKILL while the kernel reads into the range: nobody gets the range before that has ended
 *   killed-uring   the same by io_uring
 *   inflight   given back by one thread while another reads
 *   gone COMMAND   COMMAND takes the window away, while another thread reads
 *   held COMMAND   COMMAND is to fail, and all goes on
 *   errors COMMAND   COMMAND takes the SSD away while another thread reads
 */
#include "p2p.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20, TIMEOUT_MS = 60000 };

/** struct life - what each step has: a node, a file opened with O_DIRECT, the rest of the arguments */
struct life {
	const char *path;
	const char *file_path;
	int node;
	int file;
	const char *command;
};

static sigjmp_buf back;

static void jump(int number)
{
	siglongjmp(back, number);
}

/* The signal that reading there brings; 0: none. */
static int signal_at(const uint8_t *address)
{
	struct sigaction old_bus, old_segv, action = { .sa_handler = jump };
	volatile int found;

	sigaction(SIGBUS, &action, &old_bus);
	sigaction(SIGSEGV, &action, &old_segv);
	found = sigsetjmp(back, 1);
	if (!found)
		*(volatile const uint8_t *)address;
	sigaction(SIGBUS, &old_bus, NULL);
	sigaction(SIGSEGV, &old_segv, NULL);
	return found;
}

static void sleep_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static long now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void step_fork(struct life *life)
{
	struct range range = take(life->node, 0, MIB);

	range.memory[0] = 7;
	check(signal_of(read_byte, range.memory) == SIGSEGV, "a child has the mapping");
	check(signal_at(range.memory) == 0 && range.memory[0] == 7, "the parent lost it");
	check(pread(life->file, range.memory, MIB, 0) == MIB, "cannot read after fork()");
	drop(&range);
}

static void exec_whole(void *argument)
{
	struct life *life = argument;
	int node = open_node(life->path);
	struct range range = take(node, 0, bytes_of(node));

	range.memory[0] = 7;
	execl("/proc/self/exe", "vm_p2p", "whole", life->path, NULL);
}

static void step_exec(struct life *life)
{
	check(signal_of(exec_whole, life) == 0, "ranges survive exec()");
}

static void read_all(struct life *life, struct range *range)
{
	if (pread(life->file, range->memory, range->bytes, 0) < 0)
		exit(3);
}

static void read_by_uring(struct life *life, struct range *range)
{
	struct io_uring ring;
	struct io_uring_cqe *cqe;

	check(!io_uring_queue_init(8, &ring, 0), "no io_uring");
	io_uring_prep_read(io_uring_get_sqe(&ring), life->file, range->memory, (unsigned)range->bytes, 0);
	check(io_uring_submit(&ring) == 1, "io_uring does not take a read");
	io_uring_wait_cqe(&ring, &cqe);
}

/* Of the parent, until the range is free; how often it was not. */
static struct range take_when_free(int node, unsigned *busy)
{
	long begin = now_ms();
	struct range range;

	for (*busy = 0; try_register(node, 0, MIB, 0, &range); ++*busy) {
		check(errno == EBUSY, "cannot register");
		check(now_ms() - begin < TIMEOUT_MS, "the range of a dead process does not come back");
		sleep_ms(1);
	}
	range.memory = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)range.mmap_offset);
	check(range.memory != MAP_FAILED, "cannot map");
	return range;
}

static void check_unchanged(const struct range *range, uint8_t value)
{
	for (uint64_t i = 0; i < range->bytes; i++)
		check(range->memory[i] == value, "byte %llu was written by a dead process's I/O",
		      (unsigned long long)i);
}

static pid_t begin_reading(struct life *life, void (*way)(struct life *, struct range *))
{
	pid_t child;

	fflush(stdout);
	child = fork();
	check(child >= 0, "fork");
	if (!child) {
		int node = open_node(life->path);
		struct range range = take(node, 0, MIB);

		way(life, &range);
		_exit(0);
	}
	return child;
}

static void kill_while(struct life *life, void (*way)(struct life *, struct range *))
{
	long begin = now_ms();
	pid_t child = begin_reading(life, way);
	struct range range;
	unsigned busy;
	int status;

	sleep_ms(500);
	check(!kill(child, SIGKILL), "kill");
	range = take_when_free(life->node, &busy);
	memset(range.memory, 0x11, MIB);
	printf("free %ld ms after the kill, refused %u times before\n", now_ms() - begin - 500, busy);
	check(busy, "the range was free while I/O was in flight: nothing was tested");
	sleep_ms(1500);
	check_unchanged(&range, 0x11);
	check(waitpid(child, &status, 0) == child && WIFSIGNALED(status),
	      "the child ended by itself: nothing was tested");
	drop(&range);
}

static void step_killed(struct life *life)
{
	kill_while(life, read_all);
}

static void step_killed_uring(struct life *life)
{
	kill_while(life, read_by_uring);
}

/** struct reader - a thread that reads into a range; @result: of the last pread(), or errno negated */
struct reader {
	struct life *life;
	struct range *range;
	bool again;
	atomic_bool stop;
	atomic_uint rounds;
	ssize_t result;
};

static void *reader_main(void *argument)
{
	struct reader *reader = argument;

	do {
		reader->result = pread(reader->life->file, reader->range->memory, reader->range->bytes, 0);
		if (reader->result < 0)
			reader->result = -errno;
		atomic_fetch_add(&reader->rounds, 1);
	} while (reader->again && reader->result > 0 && !atomic_load(&reader->stop));
	return NULL;
}

static void step_inflight(struct life *life)
{
	struct range range = take(life->node, 0, MIB);
	struct reader reader = { .life = life, .range = &range };
	long begin = now_ms();
	pthread_t thread;

	check(!pthread_create(&thread, NULL, reader_main, &reader), "no thread");
	sleep_ms(500);
	check(!try_deregister(life->node, range.handle), "cannot deregister");
	printf("given back after %ld ms\n", now_ms() - begin - 500);
	check(now_ms() - begin > 600, "it did not wait for the I/O in flight, or there was none");
	pthread_join(thread, NULL);
	check(reader.result > 0, "the read in flight ended with %zd", reader.result);
	check(signal_at(range.memory) == SIGBUS, "the mapping works still");
	expect(-1, (int)pread(life->file, range.memory, 4096, 0), EFAULT, "to read into what was given back");
	munmap(range.memory, MIB);
	range = take(life->node, 0, MIB);
	drop(&range);
}

static pthread_t begin_again(struct reader *reader)
{
	pthread_t thread;

	reader->again = true;
	check(!pthread_create(&thread, NULL, reader_main, reader), "no thread");
	while (atomic_load(&reader->rounds) < 2)
		sleep_ms(5);
	return thread;
}

static void step_gone(struct life *life)
{
	struct range range = take(life->node, 0, MIB), next;
	struct reader reader = { .life = life, .range = &range };
	pthread_t thread = begin_again(&reader);

	check(system(life->command) == 0, "%s", life->command);
	check(signal_at(range.memory) == SIGBUS, "the mapping works still");
	pthread_join(thread, NULL);
	printf("reads ended with %zd after %u\n", reader.result, atomic_load(&reader.rounds));
	check(reader.result == -EFAULT || reader.result >= 0, "unexpected");
	expect(-1, try_register(life->node, MIB, MIB, 0, &next), ENODEV, "to register when it is gone");
	expect(-1, try_deregister(life->node, range.handle), ENOENT, "to give back when it is gone");
	munmap(range.memory, MIB);
}

static void step_held(struct life *life)
{
	struct range range = take(life->node, 0, MIB);
	struct reader reader = { .life = life, .range = &range };
	pthread_t thread = begin_again(&reader);

	check(system(life->command) != 0, "succeeded: %s", life->command);
	atomic_store(&reader.stop, true);
	pthread_join(thread, NULL);
	check(reader.result == MIB && signal_at(range.memory) == 0, "what was held is gone");
	drop(&range);
}

static void step_errors(struct life *life)
{
	struct range range = take(life->node, 0, MIB);
	struct reader reader = { .life = life, .range = &range };
	pthread_t thread = begin_again(&reader);

	check(system(life->command) == 0, "%s", life->command);
	pthread_join(thread, NULL);
	printf("reads ended with %zd after %u\n", reader.result, atomic_load(&reader.rounds));
	check(reader.result < MIB, "the SSD is gone, reads go on");
	check(signal_at(range.memory) == 0, "the mapping is gone");
	drop(&range);
}

static const struct {
	const char *name;
	void (*run)(struct life *life);
} steps[] = {
	{ "fork", step_fork },         { "exec", step_exec },
	{ "killed", step_killed },     { "killed-uring", step_killed_uring },
	{ "inflight", step_inflight }, { "gone", step_gone },
	{ "held", step_held },         { "errors", step_errors },
};

int do_life(char **argv)
{
	struct life life = {
		.path = argv[0], .file_path = argv[1], .node = open_node(argv[0]), .command = argv[3]
	};

	life.file = open(argv[1], O_RDWR | O_DIRECT | O_CLOEXEC);
	check(life.file >= 0, "cannot open %s", argv[1]);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if (!strcmp(argv[2], steps[i].name)) {
			steps[i].run(&life);
			printf("%s: good\n", argv[2]);
			return 0;
		}
	give_up("no step %s", argv[2]);
}
