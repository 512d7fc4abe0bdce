/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls with whatever comes, from several processes, on both kinds of node, beside mappings, reads and queue
 * pairs, in processes that fork and are killed: for a kernel that watches itself (KASAN, lockdep) to find
 * something wrong.
 *
 *   vm_p2p fuzz NODE FILE GPU SSD SECONDS SEED
 *
 * In the end it tells how often each call worked, and failed with what; one that never works has not been
 * tested.
 */
#include "p2p.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fakegpu/fake_gpu.h"
#include "p2p_fuzz.h"

enum { NUMBERS = 24, WORDS = 256, ERRNOS = 140 };

static const char *const names[ROWS] = {
	[_IOC_NR(WEIR_P2P_INFO)] = "INFO",
	[_IOC_NR(WEIR_P2P_CLAIM)] = "CLAIM",
	[_IOC_NR(WEIR_P2P_UNCLAIM)] = "UNCLAIM",
	[_IOC_NR(WEIR_P2P_REGISTER)] = "REGISTER",
	[_IOC_NR(WEIR_P2P_DEREGISTER)] = "DEREGISTER",
	[_IOC_NR(WEIR_P2P_VERDICT)] = "VERDICT",
	[_IOC_NR(WEIR_P2P_IMPORT)] = "IMPORT",
	[_IOC_NR(WEIR_P2P_PRP)] = "PRP",
	[_IOC_NR(WEIR_P2P_IO)] = "IO",
	[_IOC_NR(WEIR_P2P_REASON)] = "REASON",
	[_IOC_NR(WEIR_P2P_QUEUE_ADD)] = "QUEUE_ADD",
	[_IOC_NR(WEIR_P2P_QUEUE_REMOVE)] = "QUEUE_REMOVE",
	[_IOC_NR(WEIR_P2P_LOCATE)] = "LOCATE",
	[_IOC_NR(WEIR_P2P_FLUSH)] = "FLUSH",
	[ROW_OTHER] = "other numbers",
	[ROW_ADDRESS] = "REGISTER, by address",
	[ROW_MAP] = "mmap()",
	[ROW_DOORBELLS] = "mmap() of doorbells",
	[ROW_MOVE] = "mremap()",
	[ROW_READ] = "pread()",
	[ROW_TOUCH] = "the CPU's accesses",
	[ROW_CREATE] = "creating queues",
	[ROW_DELETE] = "deleting queues",
	[ROW_COMMAND] = "commands in queues",
	[ROW_REVOKE] = "revoking all",
};

static const uint32_t sizes[NUMBERS] = {
	[_IOC_NR(WEIR_P2P_INFO)] = sizeof(struct weir_p2p_info),
	[_IOC_NR(WEIR_P2P_CLAIM)] = sizeof(struct weir_p2p_claim),
	[_IOC_NR(WEIR_P2P_UNCLAIM)] = sizeof(struct weir_p2p_claim),
	[_IOC_NR(WEIR_P2P_REGISTER)] = sizeof(struct weir_p2p_register),
	[_IOC_NR(WEIR_P2P_DEREGISTER)] = sizeof(struct weir_p2p_deregister),
	[_IOC_NR(WEIR_P2P_VERDICT)] = sizeof(struct weir_p2p_verdict),
	[_IOC_NR(WEIR_P2P_IMPORT)] = sizeof(struct weir_p2p_import),
	[_IOC_NR(WEIR_P2P_PRP)] = sizeof(struct weir_p2p_prp),
	[_IOC_NR(WEIR_P2P_IO)] = sizeof(struct weir_p2p_io),
	[_IOC_NR(WEIR_P2P_REASON)] = sizeof(struct weir_p2p_reason),
	[_IOC_NR(WEIR_P2P_QUEUE_ADD)] = sizeof(struct weir_p2p_queue),
	[_IOC_NR(WEIR_P2P_QUEUE_REMOVE)] = sizeof(struct weir_p2p_deregister),
	[_IOC_NR(WEIR_P2P_LOCATE)] = sizeof(struct weir_p2p_locate),
	[_IOC_NR(WEIR_P2P_FLUSH)] = sizeof(struct weir_p2p_flush),
};

/* What came of each call, of all processes. */
static struct tally {
	uint64_t worked;
	uint64_t failed[ERRNOS];
} * tallies;

bool fuzz_report(unsigned row, bool worked)
{
	unsigned error = errno > 0 && errno < ERRNOS ? (unsigned)errno : 0;

	__atomic_fetch_add(worked ? &tallies[row].worked : &tallies[row].failed[error], 1, __ATOMIC_RELAXED);
	return worked;
}

uint64_t fuzz_any(struct fuzzer *fuzzer)
{
	fuzzer->state ^= fuzzer->state << 13;
	fuzzer->state ^= fuzzer->state >> 7;
	fuzzer->state ^= fuzzer->state << 17;
	return fuzzer->state;
}

bool fuzz_one_in(struct fuzzer *fuzzer, uint64_t count)
{
	return fuzz_any(fuzzer) % count == 0;
}

/* What lengths and offsets go wrong at, and what may work. */
static uint64_t number_of(struct fuzzer *fuzzer)
{
	switch (fuzz_any(fuzzer) % 8) {
	case 0: return fuzz_any(fuzzer);
	case 1: return 1ULL << fuzz_any(fuzzer) % 64;
	case 2: return -(1ULL << fuzz_any(fuzzer) % 64);
	case 3: return fuzz_any(fuzzer) % 16;
	default: return fuzz_any(fuzzer) % 64 * 4096;
	}
}

/* One that the GPU calls so, and the shim pins. */
static uint64_t address_of(struct fuzzer *fuzzer)
{
	return fuzz_one_in(fuzzer, 8) ? number_of(fuzzer) : FAKE_GPU_FIRST + fuzz_any(fuzzer) % 64 * 65536;
}

/* A place in a buffer or a length, which few buffers are too small for. */
static uint64_t part_of(struct fuzzer *fuzzer)
{
	return fuzz_one_in(fuzzer, 4) ? number_of(fuzzer) : fuzz_any(fuzzer) % 16 * 512;
}

static int fd_of(struct fuzzer *fuzzer)
{
	struct fake_gpu_export call = { fuzz_any(fuzzer) % 16 * 65536, (fuzz_any(fuzzer) % 16 + 1) * 65536,
					(uint32_t)(fuzz_any(fuzzer) % 3), -1 };

	if (fuzz_one_in(fuzzer, 4))
		return (int)number_of(fuzzer);
	return ioctl(fuzzer->fake, FAKE_GPU_EXPORT, &call) ? -1 : call.fd;
}

static struct weir_p2p_ring ring_of(struct fuzzer *fuzzer, uint32_t handle)
{
	return (struct weir_p2p_ring){ .handle = handle,
				       .offset = fuzz_any(fuzzer) % 4 * 4096,
				       .bytes = fuzz_one_in(fuzzer, 4) ? number_of(fuzzer) : 1024 };
}

static void sensible_range(struct fuzzer *fuzzer, struct weir_p2p_register *call)
{
	bool by_address = fuzz_one_in(fuzzer, 2);

	*call = (struct weir_p2p_register){ .flags = by_address ? WEIR_P2P_BY_ADDRESS : 0,
					    .offset = by_address ? address_of(fuzzer) : number_of(fuzzer),
					    .bytes = by_address && !fuzz_one_in(fuzzer, 8)
							     ? fuzz_any(fuzzer) % 8 * 65536
							     : number_of(fuzzer) };
}

static void sensible_import(struct fuzzer *fuzzer, struct weir_p2p_import *call)
{
	*call = (struct weir_p2p_import){ .flags = fuzz_any(fuzzer) % 2,
					  .ssd = fuzzer->ssd,
					  .fd = fd_of(fuzzer),
					  .eventfd = -1,
					  .offset = fuzz_one_in(fuzzer, 2) ? 0 : number_of(fuzzer),
					  .bytes = fuzz_one_in(fuzzer, 2) ? 0 : number_of(fuzzer) };
}

static void sensible_io(struct fuzzer *fuzzer, uint32_t handle, struct weir_p2p_io *call)
{
	*call = (struct weir_p2p_io){ .handle = handle,
				      .fd = fuzz_one_in(fuzzer, 4) ? (int)number_of(fuzzer) : fuzzer->disk,
				      .file_offset = number_of(fuzzer),
				      .buffer_offset = part_of(fuzzer),
				      .bytes = part_of(fuzzer) };
}

static void sensible_queue(struct fuzzer *fuzzer, uint32_t handle, struct weir_p2p_queue *call)
{
	*call = (struct weir_p2p_queue){ .ssd = fuzzer->ssd,
					 .qid = fuzz_one_in(fuzzer, 4)
							? (uint32_t)number_of(fuzzer)
							: 1 + (uint32_t)(fuzz_any(fuzzer) % 16),
					 .sq = ring_of(fuzzer, handle),
					 .cq = ring_of(fuzzer, handle) };
}

/* A call as it should be, more or less, on @thing; but for its size. */
static void sensible(struct fuzzer *fuzzer, unsigned nr, const struct thing *thing, void *call)
{
	uint32_t handle = fuzz_one_in(fuzzer, 4) ? (uint32_t)number_of(fuzzer) : thing->handle;

	switch (nr) {
	case _IOC_NR(WEIR_P2P_REGISTER): sensible_range(fuzzer, call); break;
	case _IOC_NR(WEIR_P2P_DEREGISTER): ((struct weir_p2p_deregister *)call)->handle = handle; break;
	case _IOC_NR(WEIR_P2P_QUEUE_REMOVE):
		((struct weir_p2p_deregister *)call)->handle =
			fuzz_one_in(fuzzer, 4) ? handle : fuzzer->pair.handle;
		break;
	case _IOC_NR(WEIR_P2P_IMPORT): sensible_import(fuzzer, call); break;
	case _IOC_NR(WEIR_P2P_IO): sensible_io(fuzzer, handle, call); break;
	case _IOC_NR(WEIR_P2P_QUEUE_ADD): sensible_queue(fuzzer, handle, call); break;
	case _IOC_NR(WEIR_P2P_FLUSH): ((struct weir_p2p_flush *)call)->flags = 0; break;
	case _IOC_NR(WEIR_P2P_PRP):
		*(struct weir_p2p_prp *)call = (struct weir_p2p_prp){ .handle = handle,
								      .offset = part_of(fuzzer),
								      .bytes = part_of(fuzzer) };
		break;
	case _IOC_NR(WEIR_P2P_LOCATE):
		*(struct weir_p2p_locate *)call =
			(struct weir_p2p_locate){ .handle = handle, .offset = number_of(fuzzer) };
		break;
	case _IOC_NR(WEIR_P2P_VERDICT):
		*(struct weir_p2p_verdict *)call =
			(struct weir_p2p_verdict){ .gpu = fuzzer->gpu, .ssd = fuzzer->ssd };
		break;
	case _IOC_NR(WEIR_P2P_CLAIM):
	case _IOC_NR(WEIR_P2P_UNCLAIM):
		*(struct weir_p2p_claim *)call = (struct weir_p2p_claim){
			.gpu = fuzzer->gpu, .bytes = fuzz_one_in(fuzzer, 2) ? 0 : fuzz_any(fuzzer) % 32 << 21
		};
		break;
	default: break;
	}
}

/* What a call that worked gave, for later ones. */
static void keep(struct fuzzer *fuzzer, unsigned nr, unsigned file, const void *call)
{
	struct thing *thing = &fuzzer->things[fuzz_any(fuzzer) % THINGS];

	if (nr == _IOC_NR(WEIR_P2P_REGISTER))
		*thing = (struct thing){ file, ((const struct weir_p2p_register *)call)->handle };
	else if (nr == _IOC_NR(WEIR_P2P_IMPORT))
		*thing = (struct thing){ file, ((const struct weir_p2p_import *)call)->handle };
	else if (nr == _IOC_NR(WEIR_P2P_QUEUE_ADD))
		fuzzer->pair = (struct thing){ file, ((const struct weir_p2p_queue *)call)->handle };
}

/* Rarely, or nothing else lives; and a child shall not write to rings that its parent has just filled. */
static bool leave_out(struct fuzzer *fuzzer, unsigned nr)
{
	switch (nr) {
	case _IOC_NR(WEIR_P2P_UNCLAIM): return !fuzz_one_in(fuzzer, 32);
	case _IOC_NR(WEIR_P2P_CLAIM): return fuzzer->files[RANGES] >= 0 && !fuzz_one_in(fuzzer, 8);
	case _IOC_NR(WEIR_P2P_IO): return fuzzer->child;
	default: return false;
	}
}

static bool ask(struct fuzzer *fuzzer, unsigned nr, unsigned file, uint32_t *words)
{
	unsigned row = nr < NUMBERS && sizes[nr] ? nr : ROW_OTHER;
	void *address = fuzz_one_in(fuzzer, 64) ? (void *)number_of(fuzzer) : words;
	bool user = fuzz_one_in(fuzzer, 32);
	int result;

	if (nr == _IOC_NR(WEIR_P2P_REGISTER) && words[1] & WEIR_P2P_BY_ADDRESS)
		row = ROW_ADDRESS;
	if (user)
		check(!seteuid(65534), "seteuid");
	result = ioctl(fuzzer->files[file],
		       _IOC(_IOC_READ | _IOC_WRITE, WEIR_P2P_MAGIC, nr, nr < NUMBERS ? sizes[nr] : 8),
		       address);
	fuzz_report(row, !result);
	if (user)
		check(!seteuid(0), "seteuid");
	return !result && address == words;
}

/* For calls on what there is, mostly where that is. */
static unsigned file_for(struct fuzzer *fuzzer, unsigned nr, const struct thing *thing)
{
	unsigned any = fuzz_any(fuzzer) % FILES;

	if (fuzz_one_in(fuzzer, 8))
		return any;
	switch (nr) {
	case _IOC_NR(WEIR_P2P_DEREGISTER):
	case _IOC_NR(WEIR_P2P_PRP):
	case _IOC_NR(WEIR_P2P_IO):
	case _IOC_NR(WEIR_P2P_QUEUE_ADD):
	case _IOC_NR(WEIR_P2P_LOCATE): return thing->file;
	case _IOC_NR(WEIR_P2P_QUEUE_REMOVE): return fuzzer->pair.file;
	default: return any;
	}
}

static void make_call(struct fuzzer *fuzzer)
{
	unsigned nr = fuzz_one_in(fuzzer, 64) ? fuzz_any(fuzzer) % 256 : fuzz_any(fuzzer) % NUMBERS;
	uint32_t bytes = nr < NUMBERS ? sizes[nr] : 8, words[WORDS];
	const struct thing *thing = &fuzzer->things[fuzz_any(fuzzer) % THINGS];
	unsigned file = file_for(fuzzer, nr, thing);

	if (leave_out(fuzzer, nr) || (!bytes && !fuzz_one_in(fuzzer, 16)))
		return;
	for (unsigned i = 0; i < WORDS; i++)
		words[i] = fuzz_one_in(fuzzer, 2) ? 0 : (uint32_t)number_of(fuzzer);
	if (!fuzz_one_in(fuzzer, 4))
		sensible(fuzzer, nr, thing, words);
	words[0] = fuzz_one_in(fuzzer, 16) ? (uint32_t)number_of(fuzzer) : bytes;
	if (bytes && fuzz_one_in(fuzzer, 16))
		words[fuzz_any(fuzzer) % (bytes / 4)] = (uint32_t)number_of(fuzzer);
	if (ask(fuzzer, nr, file, words))
		keep(fuzzer, nr, file, words);
}

static sigjmp_buf out;

static void on_bus(int number)
{
	siglongjmp(out, number);
}

bool fuzz_guarded(void (*run)(void *), void *argument)
{
	if (sigsetjmp(out, 1)) {
		errno = EFAULT;
		return fuzz_report(ROW_TOUCH, false);
	}
	run(argument);
	return fuzz_report(ROW_TOUCH, true);
}

static void touch(void *address)
{
	*(volatile uint8_t *)address = 1;
	read_byte(address);
}

static void use(struct fuzzer *fuzzer, struct map *map)
{
	size_t part = 4096 * (fuzz_any(fuzzer) % 8 + 1);
	void *moved;

	if (fuzz_one_in(fuzzer, 8)) {
		fuzz_guarded(touch, map->memory);
	} else if (fuzz_one_in(fuzzer, 16)) {
		moved = mremap(map->memory, map->bytes, map->bytes + fuzz_any(fuzzer) % 2 * 4096,
			       MREMAP_MAYMOVE);
		if (fuzz_report(ROW_MOVE, moved != MAP_FAILED))
			map->memory = moved;
	} else if (!fuzzer->child) {
		fuzz_report(ROW_READ,
			    pread(fuzzer->disk, map->memory, part < map->bytes ? part : 4096, 0) > 0);
	}
}

static void map_new(struct fuzzer *fuzzer, struct map *map)
{
	const struct thing *thing = &fuzzer->things[fuzz_any(fuzzer) % THINGS];
	bool doorbells = fuzz_one_in(fuzzer, 8);
	uint64_t offset =
		doorbells ? 1ULL << 61 | (uint64_t)fuzzer->pair.handle << 40 : (uint64_t)thing->handle << 40;
	unsigned file = thing->file == CONTROL || fuzz_one_in(fuzzer, 8) ? fuzz_any(fuzzer) % FILES
			: doorbells                                      ? fuzzer->pair.file
									 : thing->file;
	void *memory;

	map->bytes = doorbells && !fuzz_one_in(fuzzer, 4) ? 4096 : (size_t)(fuzz_any(fuzzer) % 32 + 1) * 4096;
	if (fuzz_one_in(fuzzer, 8))
		offset += number_of(fuzzer) & ~4095ULL;
	memory = mmap(NULL, map->bytes, PROT_READ | PROT_WRITE,
		      fuzz_one_in(fuzzer, 16) ? MAP_PRIVATE : MAP_SHARED, fuzzer->files[file], (off_t)offset);
	if (!fuzz_report(doorbells ? ROW_DOORBELLS : ROW_MAP, memory != MAP_FAILED))
		return;
	if (doorbells) /* it is not for this to ring */
		munmap(memory, map->bytes);
	else
		map->memory = memory;
}

static void map_or_use(struct fuzzer *fuzzer)
{
	struct map *map = &fuzzer->maps[fuzz_any(fuzzer) % MAPS];

	if (map->memory && !fuzz_one_in(fuzzer, 4)) {
		use(fuzzer, map);
		return;
	}
	if (map->memory)
		munmap(map->memory, map->bytes);
	map->memory = NULL;
	map_new(fuzzer, map);
}

static void reopen(struct fuzzer *fuzzer, unsigned which)
{
	if (which == QUEUES)
		fuzz_queue_forget(fuzzer);
	if (fuzzer->files[which] >= 0)
		close(fuzzer->files[which]);
	fuzzer->files[which] = open(which == CONTROL ? WEIR_P2P_CONTROL : fuzzer->path, O_RDWR | O_CLOEXEC);
}

/* Buffers that were exported or opened by chance. */
static void close_others(struct fuzzer *fuzzer)
{
	for (int fd = 3; fd < 64; fd++) {
		bool ours = fd == fuzzer->disk || fd == fuzzer->fake || fd == fuzzer->controller;

		for (unsigned i = 0; i < FILES; i++)
			ours |= fd == fuzzer->files[i];
		if (!ours)
			close(fd);
	}
}

/* The fake GPU's driver takes back what is pinned by address. */
static void revoke_all(void)
{
	int file = open("/sys/module/fake_shim/parameters/revoke", O_WRONLY | O_CLOEXEC);

	fuzz_report(ROW_REVOKE, write(file, "1", 1) == 1);
	close(file);
}

/* With all of its parent's files, but none of what that has mapped. */
static void live_shortly(struct fuzzer *fuzzer)
{
	fuzzer->child = true;
	fuzzer->state ^= fuzzer->state << 9 | 1;
	memset(fuzzer->maps, 0, sizeof(fuzzer->maps));
	for (unsigned i = 0; i < 128; i++) {
		make_call(fuzzer);
		map_or_use(fuzzer);
	}
	_exit(0);
}

static void have_child(struct fuzzer *fuzzer)
{
	pid_t child;

	while (waitpid(-1, NULL, WNOHANG) > 0)
		fuzzer->children--;
	if (fuzzer->children > 1)
		return;
	child = fork();
	check(child >= 0, "fork");
	if (!child)
		live_shortly(fuzzer);
	fuzzer->children++;
	if (fuzz_one_in(fuzzer, 2))
		kill(child, SIGKILL);
}

static void step(struct fuzzer *fuzzer)
{
	for (unsigned i = 0; i < FILES; i++)
		if (fuzzer->files[i] < 0 || fuzz_one_in(fuzzer, 4096))
			reopen(fuzzer, i);
	if (fuzz_one_in(fuzzer, 32))
		close_others(fuzzer);
	if (fuzz_one_in(fuzzer, 512))
		revoke_all();
	if (fuzz_one_in(fuzzer, 256))
		have_child(fuzzer);
	if (fuzz_one_in(fuzzer, 16))
		fuzz_queue(fuzzer);
	make_call(fuzzer);
	map_or_use(fuzzer);
}

static pid_t begin(struct fuzzer *fuzzer, uint64_t seed)
{
	pid_t child;

	fuzzer->state = seed * 0x9e3779b97f4a7c15u | 1;
	child = fork();
	check(child >= 0, "fork");
	if (child)
		return child;
	signal(SIGBUS, on_bus);
	for (;;)
		step(fuzzer);
}

/* Return: a call that has not worked yet, or NULL. */
static const char *never_worked(void)
{
	for (unsigned row = 0; row < ROWS; row++)
		if (names[row] && row != ROW_OTHER && !tallies[row].worked)
			return names[row];
	return NULL;
}

/*
 * Each process until it is killed, whatever it does then. For so many seconds; a slow machine goes on until
 * each call has worked, at most ten times as long.
 */
static void run(struct fuzzer *fuzzer, uint64_t seed, time_t seconds)
{
	pid_t children[PROCESSES] = { 0 };
	time_t since = time(NULL);
	int status;

	for (unsigned i = 0;
	     time(NULL) < since + seconds || (never_worked() && time(NULL) < since + 10 * seconds); i++) {
		pid_t *child = &children[i % PROCESSES];

		if (*child)
			check(!kill(*child, SIGKILL) && waitpid(*child, &status, 0) == *child &&
				      WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
			      "a process ended by itself: %#x", status);
		fuzzer->number = i % PROCESSES;
		*child = begin(fuzzer, seed + i);
		usleep(500000 + (useconds_t)(fuzz_any(fuzzer) % 1000000));
	}
	for (unsigned i = 0; i < PROCESSES; i++)
		if (children[i])
			kill(children[i], SIGKILL);
	while (wait(NULL) > 0)
		;
}

static void report(void)
{
	const char *never = never_worked();

	for (unsigned row = 0; row < ROWS; row++) {
		if (!names[row])
			continue;
		printf("%-22s worked %llu", names[row], (unsigned long long)tallies[row].worked);
		for (unsigned error = 0; error < ERRNOS; error++)
			if (tallies[row].failed[error])
				printf(", %s %llu", error ? strerrorname_np((int)error) : "?",
				       (unsigned long long)tallies[row].failed[error]);
		printf("\n");
	}
	check(!never, "never worked, so that it was not tested: %s", never);
	check(!tallies[ROW_OTHER].worked, "a call without a meaning works");
}

int do_fuzz(char **argv)
{
	struct fuzzer fuzzer = { .path = argv[0],
				 .gpu = function_at(argv[2], 2),
				 .ssd = function_at(argv[3], 0),
				 .files = { -1, -1, -1 } };

	fuzzer.disk = open(argv[1], O_RDONLY | O_DIRECT | O_CLOEXEC);
	fuzzer.fake = open_node("/dev/fake_gpu");
	fuzzer.controller = fuzz_queue_controller(&fuzzer, argv[1]);
	check(!prctl(PR_SET_CHILD_SUBREAPER, 1), "subreaper");
	tallies = mmap(NULL, ROWS * sizeof(*tallies), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		       0);
	check(tallies != MAP_FAILED, "no memory");
	fflush(stdout);
	run(&fuzzer, number(argv[5]), (time_t)number(argv[4]));
	report();
	return 0;
}
