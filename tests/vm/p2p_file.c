/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_file: in the guest, a program that has libweir read files into the fake GPU's memory.
 *
 *   vm_file move GPU FILE PATH      FILE's first 8 MiB to the GPU's memory, the first 4 MiB of them back to
 * FILE at 12 MiB: by libweir, and where it gives a pointer by pread(), preadv2() and io_uring on that; the
 *                                   way has to be PATH
 *   vm_file plain GPU FILE PATH     the same with FILE opened without O_DIRECT
 *   vm_file route GPU FILE PATH     the way has to be PATH
 *   vm_file flushed GPU FILE        each kind of read is seen by the GPU as soon as it has ended, where the
 * host has to flush vm_file wrong GPU FILE          what has to be refused vm_file calls GPU FILE system
 * calls of a read vm_file cost GPU FILE           reads between marks that count.c sees
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

enum {
	MIB = 1 << 20,
	BYTES = 8 << 20,
	PART = 2 << 20,
	KEPT = 4 << 20,
	BACK_AT = 12 << 20,
	ROUNDS = 64,
	BLOCK = 4096
};

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

#define check(holds, ...)                                                                                    \
	do {                                                                                                 \
		if (!(holds))                                                                                \
			give_up(__VA_ARGS__);                                                                \
	} while (0)

#define must(call) check((call) >= 0, "%s: %s", #call, weir_last_error())

/** struct fixture - memory of the GPU that is registered, and a file */
struct fixture {
	struct weir_context *context;
	struct weir_registration *memory;
	struct weir_registration_info info;
	struct weir_file_route route;
	uint64_t address;
	int file;
};

static void begin(struct fixture *fixture, const char *gpu, const char *path, int flags)
{
	setenv("WEIR_FAKE_GPU", gpu, 1);
	must(weir_context_open("fake", NULL, &fixture->context));
	must(weir_alloc(fixture->context, BYTES, &fixture->address));
	must(weir_register(fixture->context, fixture->address, BYTES, NULL, &fixture->memory));
	fixture->info.size = sizeof(fixture->info);
	must(weir_registration_info(fixture->memory, &fixture->info));
	fixture->file = open(path, O_RDWR | O_CLOEXEC | flags);
	check(fixture->file >= 0, "cannot open %s: %s", path, strerror(errno));
	fixture->route.size = sizeof(fixture->route);
	must(weir_file_route(fixture->memory, fixture->file, &fixture->route));
	printf("memory from chunk %u\n", (unsigned)((fixture->address - (1ULL << 32)) >> 16));
	printf("registered: %s: %s\n", weir_file_path_name((enum weir_file_path)fixture->info.path),
	       fixture->info.reason);
	printf("route: %s: %s\n", weir_file_path_name((enum weir_file_path)fixture->route.path),
	       fixture->route.reason);
}

static void end(struct fixture *fixture)
{
	must(weir_deregister(fixture->memory));
	must(weir_free(fixture->context, fixture->address));
	close(fixture->file);
	weir_context_close(fixture->context);
}

static void by_calls(struct fixture *fixture, size_t first)
{
	size_t done = 0, length;

	for (; done < PART; done += length) {
		length = (size_t)512 << (done / 512 * 2654435761u >> 7) % 12;
		length = length < PART - done ? length : PART - done;
		must(weir_file_read(fixture->memory, fixture->file, length, (off_t)(first + done),
				    first + done));
	}
}

static void by_batch(struct fixture *fixture, size_t first)
{
	static struct weir_file_io io[PART / 16384];

	for (size_t i = 0; i < PART / 16384; i++)
		io[i] = (struct weir_file_io){ .registration = fixture->memory,
					       .file = fixture->file,
					       .operation = WEIR_FILE_READ,
					       .at = first + i * 16384,
					       .offset = first + i * 16384,
					       .bytes = 16384 };
	must(weir_file_batch(fixture->context, io, PART / 16384));
}

/* The program's own calls on the pointer. */
static void by_pointer(struct fixture *fixture, size_t first)
{
	char *memory = (char *)fixture->info.host + first;
	struct iovec parts[2] = { { memory + MIB, MIB / 2 }, { memory + MIB + MIB / 2, MIB / 2 } };

	check(pread(fixture->file, memory, MIB, (off_t)first) == MIB, "pread(): %s", strerror(errno));
	check(preadv2(fixture->file, parts, 2, (off_t)(first + MIB), 0) == MIB, "preadv2(): %s",
	      strerror(errno));
}

static void by_ring(struct fixture *fixture, size_t first)
{
	struct io_uring ring;
	struct io_uring_cqe *cqe;

	check(!io_uring_queue_init(8, &ring, 0), "no io_uring");
	for (size_t i = 0; i < 8; i++)
		io_uring_prep_read(io_uring_get_sqe(&ring), fixture->file,
				   (char *)fixture->info.host + first + i * PART / 8, PART / 8,
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
static void compare(struct fixture *fixture, const char *path)
{
	char *found = malloc(BYTES), *want = malloc(BYTES);
	int plain = open(path, O_RDONLY | O_CLOEXEC);

	check(found && want && pread(plain, want, BYTES, 0) == BYTES, "no memory, or no file");
	must(weir_copy_from_device(fixture->context, found, fixture->address, BYTES));
	for (size_t i = 0; i < BYTES; i++)
		check(found[i] == want[i], "byte %zu is %02x, not %02x", i, found[i] & 255, want[i] & 255);
	close(plain);
	free(found);
	free(want);
}

static int move(char **argv, int flags)
{
	struct weir_file_stats stats = { .size = sizeof(stats) };
	struct fixture fixture = { 0 };
	bool own, module;

	begin(&fixture, argv[0], argv[1], flags);
	check(!strcmp(argv[2], weir_file_path_name((enum weir_file_path)fixture.route.path)),
	      "the way is not %s", argv[2]);
	module = fixture.route.path == WEIR_FILE_MODULE;
	own = fixture.info.host && module;
	by_calls(&fixture, 0);
	by_batch(&fixture, PART);
	own ? by_pointer(&fixture, 2 * PART) : by_calls(&fixture, 2 * PART);
	own ? by_ring(&fixture, 3 * PART) : by_batch(&fixture, 3 * PART);
	compare(&fixture, argv[1]);
	must(weir_file_write(fixture.memory, fixture.file, KEPT, BACK_AT, 0));
	must(weir_file_stats(fixture.context, &stats));
	printf("read %llu, written %llu, through pages of the module %llu, copied %llu\n",
	       (unsigned long long)stats.read_bytes, (unsigned long long)stats.written_bytes,
	       (unsigned long long)stats.module_bytes, (unsigned long long)stats.copied_bytes);
	check(module ? stats.module_bytes > KEPT + PART : !stats.module_bytes, "the counters say otherwise");
	fsync(fixture.file);
	end(&fixture);
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
static void is_seen(struct fixture *fixture, const char *want, size_t bytes, const char *what)
{
	char *found = malloc(bytes);

	check(found, "no memory");
	must(weir_copy_from_device(fixture->context, found, fixture->address, bytes));
	check(!memcmp(found, want, bytes), "the GPU does not see %s", what);
	memset(found, 0, bytes);
	must(weir_copy_to_device(fixture->context, fixture->address, found, bytes));
	free(found);
}

static int do_route(char **argv)
{
	struct fixture fixture = { 0 };

	begin(&fixture, argv[0], argv[1], O_DIRECT);
	check(!strcmp(argv[2], weir_file_path_name((enum weir_file_path)fixture.route.path)),
	      "the way is not %s", argv[2]);
	end(&fixture);
	return 0;
}

static int do_flushed(char **argv)
{
	struct fixture fixture = { 0 };
	char *want = malloc(PART);
	int plain = open(argv[1], O_RDONLY | O_CLOEXEC);

	check(want && pread(plain, want, PART, 0) == PART, "no memory, or no file");
	begin(&fixture, argv[0], argv[1], O_DIRECT);
	check(fixture.route.path == WEIR_FILE_MODULE, "the way is another");
	check(!fixture.info.host, "there is a pointer, by which nobody flushes");
	for (int i = 0; i < 2; i++) {
		must(weir_file_read(fixture.memory, fixture.file, BLOCK, 0, 0));
		is_seen(&fixture, want, BLOCK, "a small read");
		must(weir_file_read(fixture.memory, fixture.file, MIB, 0, 0));
		is_seen(&fixture, want, MIB, "a large read");
		by_batch(&fixture, 0);
		is_seen(&fixture, want, PART, "a batch");
		must(i % 2 ? weir_file_detach(fixture.context, fixture.file)
			   : weir_file_attach(fixture.context, fixture.file));
	}
	printf("each read was seen\n");
	end(&fixture);
	close(plain);
	free(want);
	return 0;
}

static void refused(int64_t result, int error, const char *words)
{
	check(result == error && strstr(weir_last_error(), words), "%lld instead of %d, saying \"%s\"",
	      (long long)result, error, weir_last_error());
	printf("refused: %s\n", weir_last_error());
}

/* Memory that is not weir's: ranges that overlap are not to be had twice, so one goes by staging. */
static void wrong_foreign(struct fixture *fixture)
{
	uint64_t foreign = (1ULL << 32) + (48 << 20);
	struct weir_registration *one, *two;

	must(weir_register(fixture->context, foreign + 70000, 100000, NULL, &one));
	must(weir_register(fixture->context, foreign + 70000, 1000000, NULL, &two));
	must(weir_registration_info(one, &fixture->info));
	check(fixture->info.path == WEIR_FILE_MODULE, "the reason is %s", fixture->info.reason);
	must(weir_registration_info(two, &fixture->info));
	check(fixture->info.path == WEIR_FILE_BOUNCE && strstr(fixture->info.reason, "registered already"),
	      "the reason is %s", fixture->info.reason);
	must(weir_deregister(one));
	must(weir_deregister(two));
	must(weir_register(fixture->context, foreign + 70000, 1000000,
			   WEIR_OPTIONS(register, .path = WEIR_FILE_MODULE), &two));
	must(weir_deregister(two));
	refused(weir_register(fixture->context, (1ULL << 32) + (64 << 20), 1 << 20,
			      WEIR_OPTIONS(register, .path = WEIR_FILE_MODULE), &two),
		-EFAULT, "no memory of the fake GPU");
}

static int do_wrong(char **argv)
{
	struct weir_registration *one, *two, *three;
	struct fixture fixture = { 0 };

	begin(&fixture, argv[0], argv[1], O_DIRECT);
	/* Parts of an allocation have pages together, until it is freed. */
	must(weir_register(fixture.context, fixture.address + 4096, 100,
			   WEIR_OPTIONS(register, .path = WEIR_FILE_MODULE), &one));
	refused(weir_register(fixture.context, 4096, 4096, WEIR_OPTIONS(register, .path = WEIR_FILE_MODULE),
			      &two),
		-EFAULT, "no memory of the fake GPU");
	must(weir_deregister(fixture.memory)); /* the pages stay, for the other */
	check(pread(fixture.file, (char *)fixture.info.host, BLOCK, 0) == BLOCK,
	      "pages went with another's registration");
	must(weir_deregister(one));
	must(weir_register(fixture.context, fixture.address + 70000, 100000, NULL, &one));
	must(weir_register(fixture.context, fixture.address + 70000, BYTES - 70000, NULL, &three));
	must(weir_registration_info(three, &fixture.info));
	check(fixture.info.path == WEIR_FILE_MODULE, "the reason is %s", fixture.info.reason);
	must(weir_deregister(one));
	must(weir_deregister(three));
	wrong_foreign(&fixture);
	must(weir_register(fixture.context, fixture.address, BYTES, NULL, &fixture.memory));
	refused(weir_file_attach(fixture.context, 999), -EBADF, "is no open file descriptor");
	refused(weir_file_detach(fixture.context, fixture.file), -ENOENT, "is not attached");
	must(weir_file_attach(fixture.context, fixture.file));
	refused(weir_file_attach(fixture.context, fixture.file), -EEXIST, "is attached already");
	must(weir_file_detach(fixture.context, fixture.file));
	end(&fixture);
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

static unsigned calls_of(char **argv, bool attach)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child) {
		struct fixture fixture = { 0 };
		pid_t own;

		begin(&fixture, argv[0], argv[1], O_DIRECT);
		if (attach)
			must(weir_file_attach(fixture.context, fixture.file));
		must(weir_file_read(fixture.memory, fixture.file, 2 * BLOCK, 0, 0));
		fflush(stdout);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		own = getpid();
		kill(own, SIGUSR1);
		for (int i = 0; i < ROUNDS; i++)
			must(weir_file_read(fixture.memory, fixture.file, 2 * BLOCK, i * BLOCK,
					    (size_t)i * BLOCK));
		kill(own, SIGUSR1);
		_exit(0);
	}
	check(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "the child does not stop");
	ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD);
	ptrace(PTRACE_SYSCALL, child, 0, 0);
	return count_calls(child);
}

/* Of three times: the kernel may begin a call again, which counts twice then. */
static unsigned least_calls_of(char **argv, bool attach)
{
	unsigned least = calls_of(argv, attach);

	for (int i = 0; i < 2; i++) {
		unsigned calls = calls_of(argv, attach);

		least = calls < least ? calls : least;
	}
	return least;
}

static int do_calls(char **argv)
{
	unsigned plain = least_calls_of(argv, false), attached = least_calls_of(argv, true);

	printf("system calls of %d reads: %u; of a file that is attached: %u\n", ROUNDS, plain, attached);
	return 0;
}

static int do_cost(char **argv)
{
	static const size_t sizes[] = { BLOCK, 4 * BLOCK, 16 * BLOCK };
	struct fixture fixture = { 0 };
	char *host = aligned_alloc(BLOCK, 64 << 10);

	begin(&fixture, argv[0], argv[1], O_DIRECT);
	must(weir_file_attach(fixture.context, fixture.file));
	memset(host, 1, 64 << 10);
	for (unsigned size = 0; size < 3; size++) {
		for (int i = 0; i < ROUNDS; i++) {
			off_t at = i * (64 << 10);

			mark(1);
			check(pread(fixture.file, host, sizes[size], at) == (ssize_t)sizes[size], "pread()");
			mark(2);
			check(pread(fixture.file, (char *)fixture.info.host, sizes[size], at) ==
				      (ssize_t)sizes[size],
			      "pread()");
			mark(3);
			check(weir_file_read(fixture.memory, fixture.file, sizes[size], at, 0) ==
				      (ssize_t)sizes[size],
			      "weir_file_read()");
			mark(4);
		}
		mark(5);
	}
	for (int i = 0; i < ROUNDS; i++) {
		struct weir_registration *part;

		mark(6);
		must(weir_register(fixture.context, fixture.address + (64 << 10), 64 << 10, NULL, &part));
		must(weir_deregister(part));
		mark(7);
	}
	must(weir_file_detach(fixture.context, fixture.file));
	end(&fixture);
	return 0;
}

static const struct {
	const char *name;
	int arguments;
	int (*run)(char **argv);
} steps[] = {
	{ "move", 3, do_move },       { "plain", 3, do_plain }, { "route", 3, do_route },
	{ "flushed", 2, do_flushed }, { "wrong", 2, do_wrong }, { "calls", 2, do_calls },
	{ "cost", 2, do_cost },
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
