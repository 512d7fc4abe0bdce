/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_file: in the guest, a program that has libweir read files into the fake GPU's memory.
 *
 *   vm_file move GPU FILE PATH      FILE's first 8 MiB to the GPU's memory, the first 4 MiB of them back to FILE at 12 MiB:
 *                                   by libweir, and where it gives a pointer by pread(), preadv2() and io_uring on that; the
 *                                   way has to be PATH
 *   vm_file plain GPU FILE PATH     the same with FILE opened without O_DIRECT
 *   vm_file route GPU FILE PATH     the way has to be PATH
 *   vm_file flushed GPU FILE        each kind of read is seen by the GPU as soon as it has ended, where the host has to flush
 *   vm_file wrong GPU FILE          what has to be refused
 *   vm_file calls GPU FILE          system calls of a read
 *   vm_file cost GPU FILE           reads between marks that count.c sees
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/file.h>

#include "mark.h"

enum { MIB = 1 << 20, BYTES = 8 << 20, PART = 2 << 20, KEPT = 4 << 20, BACK_AT = 12 << 20, ROUNDS = 64, BLOCK = 4096 };

static void give_up(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("vm_file: ", stdout);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
	fflush(stdout);
	_exit(1);
}

#define check(holds, ...)                   \
	do {                                \
		if (!(holds))               \
			give_up(__VA_ARGS__); \
	} while (0)

#define must(call) check((call) >= 0, "%s: %s", #call, weir_last_error())

/** struct bed - memory of the GPU that is registered, and a file */
struct bed {
	struct weir_context *context;
	struct weir_registration *memory;
	struct weir_registration_info info;
	struct weir_file_route route;
	uint64_t address;
	int file;
};

static void begin(struct bed *bed, const char *gpu, const char *path, int flags)
{
	setenv("WEIR_FAKE_GPU", gpu, 1);
	must(weir_context_open("fake", NULL, &bed->context));
	must(weir_alloc(bed->context, BYTES, &bed->address));
	must(weir_register(bed->context, bed->address, BYTES, NULL, &bed->memory));
	bed->info.size = sizeof(bed->info);
	must(weir_registration_info(bed->memory, &bed->info));
	bed->file = open(path, O_RDWR | O_CLOEXEC | flags);
	check(bed->file >= 0, "cannot open %s: %s", path, strerror(errno));
	bed->route.size = sizeof(bed->route);
	must(weir_file_route(bed->memory, bed->file, &bed->route));
	printf("memory from chunk %u\n", (unsigned)((bed->address - (1ULL << 32)) >> 16));
	printf("registered: %s: %s\n", weir_file_path_name((enum weir_file_path)bed->info.path), bed->info.reason);
	printf("route: %s: %s\n", weir_file_path_name((enum weir_file_path)bed->route.path), bed->route.reason);
}

static void end(struct bed *bed)
{
	must(weir_deregister(bed->memory));
	must(weir_free(bed->context, bed->address));
	close(bed->file);
	weir_context_close(bed->context);
}

static void by_calls(struct bed *bed, size_t first)
{
	size_t done = 0, length;

	for (; done < PART; done += length) {
		length = (size_t)512 << (done / 512 * 2654435761u >> 7) % 12;
		length = length < PART - done ? length : PART - done;
		must(weir_file_read(bed->memory, bed->file, length, (off_t)(first + done), first + done));
	}
}

static void by_batch(struct bed *bed, size_t first)
{
	static struct weir_file_io io[PART / 16384];

	for (size_t i = 0; i < PART / 16384; i++)
		io[i] = (struct weir_file_io){ .registration = bed->memory, .file = bed->file, .operation = WEIR_FILE_READ,
					       .at = first + i * 16384, .offset = first + i * 16384, .bytes = 16384 };
	must(weir_file_batch(bed->context, io, PART / 16384));
}

/* The program's own calls on the pointer. */
static void by_pointer(struct bed *bed, size_t first)
{
	char *memory = (char *)bed->info.host + first;
	struct iovec parts[2] = { { memory + MIB, MIB / 2 }, { memory + MIB + MIB / 2, MIB / 2 } };

	check(pread(bed->file, memory, MIB, (off_t)first) == MIB, "pread(): %s", strerror(errno));
	check(preadv2(bed->file, parts, 2, (off_t)(first + MIB), 0) == MIB, "preadv2(): %s", strerror(errno));
}

static void by_ring(struct bed *bed, size_t first)
{
	struct io_uring ring;
	struct io_uring_cqe *cqe;

	check(!io_uring_queue_init(8, &ring, 0), "no io_uring");
	for (size_t i = 0; i < 8; i++)
		io_uring_prep_read(io_uring_get_sqe(&ring), bed->file, (char *)bed->info.host + first + i * PART / 8, PART / 8,
				   first + i * PART / 8);
	check(io_uring_submit(&ring) == 8, "io_uring");
	for (size_t i = 0; i < 8; i++) {
		check(!io_uring_wait_cqe(&ring, &cqe), "io_uring");
		check(cqe->res == PART / 8, "a read ended with %d", cqe->res);
		io_uring_cqe_seen(&ring, cqe);
	}
	io_uring_queue_exit(&ring);
}

/* What the GPU finds is what the host reads. */
static void compare(struct bed *bed, const char *path)
{
	char *found = malloc(BYTES), *want = malloc(BYTES);
	int plain = open(path, O_RDONLY | O_CLOEXEC);

	check(found && want && pread(plain, want, BYTES, 0) == BYTES, "no memory, or no file");
	must(weir_copy_out(bed->context, found, bed->address, BYTES));
	for (size_t i = 0; i < BYTES; i++)
		check(found[i] == want[i], "byte %zu is %02x, not %02x", i, found[i] & 255, want[i] & 255);
	close(plain);
	free(found);
	free(want);
}

static int move(char **argv, int flags)
{
	struct weir_file_stats stats = { .size = sizeof(stats) };
	struct bed bed = { 0 };
	bool own, module;

	begin(&bed, argv[0], argv[1], flags);
	check(!strcmp(argv[2], weir_file_path_name((enum weir_file_path)bed.route.path)), "the way is not %s", argv[2]);
	module = bed.route.path == WEIR_FILE_MODULE;
	own = bed.info.host && module;
	by_calls(&bed, 0);
	by_batch(&bed, PART);
	own ? by_pointer(&bed, 2 * PART) : by_calls(&bed, 2 * PART);
	own ? by_ring(&bed, 3 * PART) : by_batch(&bed, 3 * PART);
	compare(&bed, argv[1]);
	must(weir_file_write(bed.memory, bed.file, KEPT, BACK_AT, 0));
	must(weir_file_stats(bed.context, &stats));
	printf("read %llu, written %llu, by the SSD itself %llu, copied %llu\n", (unsigned long long)stats.read_bytes,
	       (unsigned long long)stats.written_bytes, (unsigned long long)stats.module_bytes, (unsigned long long)stats.copied_bytes);
	check(module ? stats.module_bytes > KEPT + PART : !stats.module_bytes, "the counters say otherwise");
	fsync(bed.file);
	end(&bed);
	return 0;
}

static int do_move(char **argv)
{
	return move(argv, O_DIRECT);
}

static int do_plain(char **argv)
{
	return move(argv, 0);
}

/* Nothing later flushes for it. */
static void is_seen(struct bed *bed, const char *want, size_t bytes, const char *what)
{
	char *found = malloc(bytes);

	check(found, "no memory");
	must(weir_copy_out(bed->context, found, bed->address, bytes));
	check(!memcmp(found, want, bytes), "the GPU does not see %s", what);
	memset(found, 0, bytes);
	must(weir_copy_in(bed->context, bed->address, found, bytes));
	free(found);
}

static int do_route(char **argv)
{
	struct bed bed = { 0 };

	begin(&bed, argv[0], argv[1], O_DIRECT);
	check(!strcmp(argv[2], weir_file_path_name((enum weir_file_path)bed.route.path)), "the way is not %s", argv[2]);
	end(&bed);
	return 0;
}

static int do_flushed(char **argv)
{
	struct bed bed = { 0 };
	char *want = malloc(PART);
	int plain = open(argv[1], O_RDONLY | O_CLOEXEC);

	check(want && pread(plain, want, PART, 0) == PART, "no memory, or no file");
	begin(&bed, argv[0], argv[1], O_DIRECT);
	check(bed.route.path == WEIR_FILE_MODULE, "the way is another");
	check(!bed.info.host, "there is a pointer, by which nobody flushes");
	for (int i = 0; i < 2; i++) {
		must(weir_file_read(bed.memory, bed.file, BLOCK, 0, 0));
		is_seen(&bed, want, BLOCK, "a small read");
		must(weir_file_read(bed.memory, bed.file, MIB, 0, 0));
		is_seen(&bed, want, MIB, "a large read");
		by_batch(&bed, 0);
		is_seen(&bed, want, PART, "a batch");
		must(i % 2 ? weir_file_detach(bed.context, bed.file) : weir_file_attach(bed.context, bed.file));
	}
	printf("each read was seen\n");
	end(&bed);
	close(plain);
	free(want);
	return 0;
}

static void refused(int64_t result, int error, const char *words)
{
	check(result == error && strstr(weir_last_error(), words), "%lld instead of %d, saying \"%s\"", (long long)result, error,
	      weir_last_error());
	printf("refused: %s\n", weir_last_error());
}

/* Memory that is not weir's: ranges that overlap are not to be had twice, so one goes by staging. */
static void wrong_foreign(struct bed *bed)
{
	uint64_t foreign = (1ULL << 32) + (48 << 20);
	struct weir_registration *one, *two;

	must(weir_register(bed->context, foreign + 70000, 100000, NULL, &one));
	must(weir_register(bed->context, foreign + 70000, 1000000, NULL, &two));
	must(weir_registration_info(one, &bed->info));
	check(bed->info.path == WEIR_FILE_MODULE, "the reason is %s", bed->info.reason);
	must(weir_registration_info(two, &bed->info));
	check(bed->info.path == WEIR_FILE_BOUNCE && strstr(bed->info.reason, "registered already"), "the reason is %s", bed->info.reason);
	must(weir_deregister(one));
	must(weir_deregister(two));
	must(weir_register(bed->context, foreign + 70000, 1000000, WEIR_OPTIONS(register, .path = WEIR_FILE_MODULE), &two));
	must(weir_deregister(two));
	refused(weir_register(bed->context, (1ULL << 32) + (64 << 20), 1 << 20, WEIR_OPTIONS(register, .path = WEIR_FILE_MODULE), &two), -EFAULT,
		"no memory of the fake GPU");
}

static int do_wrong(char **argv)
{
	struct weir_registration *one, *two, *three;
	struct bed bed = { 0 };

	begin(&bed, argv[0], argv[1], O_DIRECT);
	/* Parts of an allocation have pages together, until it is freed. */
	must(weir_register(bed.context, bed.address + 4096, 100, WEIR_OPTIONS(register, .path = WEIR_FILE_MODULE), &one));
	refused(weir_register(bed.context, 4096, 4096, WEIR_OPTIONS(register, .path = WEIR_FILE_MODULE), &two), -EFAULT,
		"no memory of the fake GPU");
	must(weir_deregister(bed.memory)); /* the pages stay, for the other */
	check(pread(bed.file, (char *)bed.info.host, BLOCK, 0) == BLOCK, "pages went with another's registration");
	must(weir_deregister(one));
	must(weir_register(bed.context, bed.address + 70000, 100000, NULL, &one));
	must(weir_register(bed.context, bed.address + 70000, BYTES - 70000, NULL, &three));
	must(weir_registration_info(three, &bed.info));
	check(bed.info.path == WEIR_FILE_MODULE, "the reason is %s", bed.info.reason);
	must(weir_deregister(one));
	must(weir_deregister(three));
	wrong_foreign(&bed);
	must(weir_register(bed.context, bed.address, BYTES, NULL, &bed.memory));
	refused(weir_file_attach(bed.context, 999), -EBADF, "is no open file descriptor");
	refused(weir_file_detach(bed.context, bed.file), -ENOENT, "is not attached");
	must(weir_file_attach(bed.context, bed.file));
	refused(weir_file_attach(bed.context, bed.file), -EEXIST, "is attached already");
	must(weir_file_detach(bed.context, bed.file));
	end(&bed);
	return 0;
}

/* Of a child between two signals of its own. */
static unsigned count_calls(pid_t child)
{
	unsigned signals = 0, stops = 0;
	int status;

	while (waitpid(child, &status, 0) == child && !WIFEXITED(status)) {
		bool call = WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);

		check(!WIFSIGNALED(status), "the child ended by signal %d", WTERMSIG(status));
		stops += call && signals == 1;
		signals += !call && WSTOPSIG(status) == SIGUSR1;
		ptrace(PTRACE_SYSCALL, child, 0, 0);
	}
	check(WEXITSTATUS(status) == 0 && signals == 2, "the child failed");
	return stops / 2 - 1; /* each call stops twice; the second signal is one */
}

static unsigned calls_of(char **argv, bool attach, size_t bytes)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child) {
		struct bed bed = { 0 };
		pid_t own;

		begin(&bed, argv[0], argv[1], O_DIRECT);
		if (attach)
			must(weir_file_attach(bed.context, bed.file));
		must(weir_file_read(bed.memory, bed.file, bytes, 0, 0));
		fflush(stdout);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		own = getpid();
		kill(own, SIGUSR1);
		for (int i = 0; i < ROUNDS; i++)
			must(weir_file_read(bed.memory, bed.file, bytes, i * BLOCK, (size_t)i * BLOCK));
		kill(own, SIGUSR1);
		_exit(0);
	}
	check(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "the child does not stop");
	ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD);
	ptrace(PTRACE_SYSCALL, child, 0, 0);
	return count_calls(child);
}

static int do_calls(char **argv)
{
	unsigned plain = calls_of(argv, false, 2 * BLOCK), attached = calls_of(argv, true, 2 * BLOCK);

	printf("system calls of %d reads: %u; of a file that is attached: %u\n", ROUNDS, plain, attached);
	return 0;
}

static int do_cost(char **argv)
{
	static const size_t sizes[] = { BLOCK, 4 * BLOCK, 16 * BLOCK };
	struct bed bed = { 0 };
	char *host = aligned_alloc(BLOCK, 64 << 10);

	begin(&bed, argv[0], argv[1], O_DIRECT);
	must(weir_file_attach(bed.context, bed.file));
	memset(host, 1, 64 << 10);
	for (unsigned size = 0; size < 3; size++) {
		for (int i = 0; i < ROUNDS; i++) {
			off_t at = i * (64 << 10);

			mark(1);
			check(pread(bed.file, host, sizes[size], at) == (ssize_t)sizes[size], "pread()");
			mark(2);
			check(pread(bed.file, (char *)bed.info.host, sizes[size], at) == (ssize_t)sizes[size], "pread()");
			mark(3);
			check(weir_file_read(bed.memory, bed.file, sizes[size], at, 0) == (ssize_t)sizes[size], "weir_file_read()");
			mark(4);
		}
		mark(5);
	}
	for (int i = 0; i < ROUNDS; i++) {
		struct weir_registration *part;

		mark(6);
		must(weir_register(bed.context, bed.address + (64 << 10), 64 << 10, NULL, &part));
		must(weir_deregister(part));
		mark(7);
	}
	must(weir_file_detach(bed.context, bed.file));
	end(&bed);
	return 0;
}

static const struct {
	const char *name;
	int arguments;
	int (*run)(char **argv);
} steps[] = {
	{ "move", 3, do_move }, { "plain", 3, do_plain }, { "route", 3, do_route }, { "flushed", 2, do_flushed },
	{ "wrong", 2, do_wrong }, { "calls", 2, do_calls }, { "cost", 2, do_cost },
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; argc > 1 && i < sizeof(steps) / sizeof(*steps); i++)
		if (!strcmp(argv[1], steps[i].name) && argc - 2 >= steps[i].arguments)
			return steps[i].run(argv + 2);
	fprintf(stderr, "usage: vm_file STEP ARGUMENT...: see its source\n");
	return 2;
}
