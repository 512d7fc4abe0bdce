/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls with whatever comes, from several processes, on both kinds of node, beside mappings and reads: for a kernel that watches
 * itself (KASAN, lockdep) to find something wrong.
 *
 *   vm_p2p fuzz NODE FILE GPU SSD SECONDS SEED
 */
#include "p2p.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fakegpu/fake_gpu.h"

enum { PROCESSES = 3, CALLS = 11, WORDS = 64, MAPS = 8 };

/** struct fuzzer - one process; @ranges, @maps: of the last ones that worked */
struct fuzzer {
	uint64_t state;
	const char *path;
	struct weir_p2p_function gpu;
	struct weir_p2p_function ssd;
	int files[2];
	int disk;
	int fake;
	uint64_t offsets[MAPS];
	uint32_t handles[MAPS];
	void *maps[MAPS];
	size_t bytes[MAPS];
	uint64_t worked[CALLS];
	uint64_t called;
	uint64_t reads;
};

static uint64_t any(struct fuzzer *fuzzer)
{
	fuzzer->state ^= fuzzer->state << 13;
	fuzzer->state ^= fuzzer->state >> 7;
	fuzzer->state ^= fuzzer->state << 17;
	return fuzzer->state;
}

/* What lengths and offsets go wrong at, and what may work. */
static uint64_t number_of(struct fuzzer *fuzzer)
{
	switch (any(fuzzer) % 8) {
	case 0: return any(fuzzer);
	case 1: return 1ULL << any(fuzzer) % 64;
	case 2: return -(1ULL << any(fuzzer) % 64);
	case 3: return any(fuzzer) % 16;
	default: return any(fuzzer) % 64 * 4096;
	}
}

static uint32_t handle_of(struct fuzzer *fuzzer)
{
	return any(fuzzer) % 4 ? fuzzer->handles[any(fuzzer) % MAPS] : (uint32_t)number_of(fuzzer);
}

static int fd_of(struct fuzzer *fuzzer)
{
	struct fake_gpu_export call = { any(fuzzer) % 16 * 65536, (any(fuzzer) % 16 + 1) * 65536, (uint32_t)(any(fuzzer) % 3), -1 };

	if (any(fuzzer) % 4 == 0)
		return (int)number_of(fuzzer);
	return ioctl(fuzzer->fake, FAKE_GPU_EXPORT, &call) ? -1 : call.fd;
}

/* A call as it should be, more or less. */
static void sensible(struct fuzzer *fuzzer, unsigned nr, uint32_t *words)
{
	if (nr == _IOC_NR(WEIR_P2P_REGISTER))
		*(struct weir_p2p_register *)words = (struct weir_p2p_register){ .size = sizeof(struct weir_p2p_register),
			.offset = number_of(fuzzer), .bytes = number_of(fuzzer) };
	if (nr == _IOC_NR(WEIR_P2P_DEREGISTER))
		*(struct weir_p2p_deregister *)words = (struct weir_p2p_deregister){ sizeof(struct weir_p2p_deregister),
			handle_of(fuzzer) };
	if (nr == _IOC_NR(WEIR_P2P_IMPORT))
		*(struct weir_p2p_import *)words = (struct weir_p2p_import){ .size = sizeof(struct weir_p2p_import),
			.flags = any(fuzzer) % 2, .ssd = fuzzer->ssd, .fd = fd_of(fuzzer), .eventfd = -1,
			.offset = any(fuzzer) % 2 ? 0 : number_of(fuzzer), .bytes = any(fuzzer) % 2 ? 0 : number_of(fuzzer) };
	if (nr == _IOC_NR(WEIR_P2P_PRP))
		*(struct weir_p2p_prp *)words = (struct weir_p2p_prp){ .size = sizeof(struct weir_p2p_prp),
			.handle = handle_of(fuzzer), .offset = number_of(fuzzer), .bytes = number_of(fuzzer) };
	if (nr == _IOC_NR(WEIR_P2P_IO))
		*(struct weir_p2p_io *)words = (struct weir_p2p_io){ .size = sizeof(struct weir_p2p_io),
			.handle = handle_of(fuzzer), .fd = any(fuzzer) % 4 ? fuzzer->disk : (int)number_of(fuzzer),
			.file_offset = number_of(fuzzer), .buffer_offset = number_of(fuzzer), .bytes = number_of(fuzzer) };
	if (nr == _IOC_NR(WEIR_P2P_VERDICT))
		*(struct weir_p2p_verdict *)words = (struct weir_p2p_verdict){ .size = sizeof(struct weir_p2p_verdict),
			.gpu = fuzzer->gpu, .ssd = fuzzer->ssd };
	if (nr == _IOC_NR(WEIR_P2P_CLAIM) || nr == _IOC_NR(WEIR_P2P_UNCLAIM))
		*(struct weir_p2p_claim *)words = (struct weir_p2p_claim){ .size = sizeof(struct weir_p2p_claim),
			.gpu = fuzzer->gpu, .bytes = any(fuzzer) % 2 ? 0 : any(fuzzer) % 32 << 21 };
}

static void make_call(struct fuzzer *fuzzer)
{
	static const unsigned sizes[CALLS] = { 48, 32, 32, 40, 8, 304, 56, 48, 48, 264, 8 };
	unsigned nr = (unsigned)(any(fuzzer) % CALLS), slot = (unsigned)(any(fuzzer) % MAPS);
	uint32_t words[WORDS * 4];

	/* Rarely, or nothing else lives. */
	if ((nr == _IOC_NR(WEIR_P2P_UNCLAIM) && any(fuzzer) % 512) || (nr == _IOC_NR(WEIR_P2P_CLAIM) && any(fuzzer) % 8))
		return;
	for (unsigned i = 0; i < WORDS * 4; i++)
		words[i] = any(fuzzer) % 2 ? 0 : (uint32_t)number_of(fuzzer);
	words[0] = any(fuzzer) % 16 ? sizes[nr] : (uint32_t)number_of(fuzzer);
	if (any(fuzzer) % 4)
		sensible(fuzzer, nr, words);
	if (any(fuzzer) % 16 == 0)
		words[any(fuzzer) % (sizes[nr] / 4)] = (uint32_t)number_of(fuzzer);
	fuzzer->called++;
	if (ioctl(fuzzer->files[any(fuzzer) % 2], _IOC(_IOC_READ | _IOC_WRITE, WEIR_P2P_MAGIC, nr, sizes[nr]),
		any(fuzzer) % 64 ? words : (void *)number_of(fuzzer)))
		return;
	fuzzer->worked[nr]++;
	if (nr == _IOC_NR(WEIR_P2P_REGISTER)) {
		fuzzer->handles[slot] = words[8];
		fuzzer->offsets[slot] = (uint64_t)words[8] << 40;
	} else if (nr == _IOC_NR(WEIR_P2P_IMPORT)) {
		fuzzer->handles[slot] = ((struct weir_p2p_import *)words)->handle;
	}
}

static void map_or_use(struct fuzzer *fuzzer)
{
	unsigned slot = (unsigned)(any(fuzzer) % MAPS);
	size_t bytes = (size_t)(any(fuzzer) % 32 + 1) * 4096;
	void *map;

	if (fuzzer->maps[slot] && any(fuzzer) % 4) {
		size_t part = 4096 * (any(fuzzer) % 8 + 1);

		fuzzer->reads += pread(fuzzer->disk, fuzzer->maps[slot], part < fuzzer->bytes[slot] ? part : 4096, 0) > 0;
		return;
	}
	if (fuzzer->maps[slot])
		munmap(fuzzer->maps[slot], fuzzer->bytes[slot]);
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, any(fuzzer) % 16 ? MAP_SHARED : MAP_PRIVATE, fuzzer->files[1],
		(off_t)(fuzzer->offsets[any(fuzzer) % MAPS] + (any(fuzzer) % 4 ? 0 : number_of(fuzzer) & ~4095ULL)));
	fuzzer->maps[slot] = map == MAP_FAILED ? NULL : map;
	fuzzer->bytes[slot] = bytes;
}

static void reopen(struct fuzzer *fuzzer, unsigned which)
{
	if (fuzzer->files[which] >= 0)
		close(fuzzer->files[which]);
	fuzzer->files[which] = open(which ? fuzzer->path : WEIR_P2P_CONTROL, O_RDWR | O_CLOEXEC);
}

/* Buffers that were exported or opened by chance. */
static void close_others(struct fuzzer *fuzzer)
{
	for (int fd = 3; fd < 64; fd++)
		if (fd != fuzzer->files[0] && fd != fuzzer->files[1] && fd != fuzzer->disk && fd != fuzzer->fake)
			close(fd);
}

static void fuzz(struct fuzzer *fuzzer, time_t seconds)
{
	time_t end = time(NULL) + seconds;

	fuzzer->files[0] = fuzzer->files[1] = -1;
	for (uint64_t i = 0; i % 64 || time(NULL) < end; i++) {
		if (i % 1024 == 0) {
			reopen(fuzzer, 0);
			reopen(fuzzer, 1);
		}
		if (i % 32 == 0)
			close_others(fuzzer);
		if (fuzzer->files[1] < 0)
			reopen(fuzzer, 1);
		make_call(fuzzer);
		map_or_use(fuzzer);
	}
	printf("%llu calls; worked:", (unsigned long long)fuzzer->called);
	for (unsigned i = 0; i < CALLS; i++)
		printf(" %llu", (unsigned long long)fuzzer->worked[i]);
	printf("; %llu reads\n", (unsigned long long)fuzzer->reads);
	check(fuzzer->worked[_IOC_NR(WEIR_P2P_REGISTER)] && fuzzer->worked[_IOC_NR(WEIR_P2P_IMPORT)], "nothing was tested");
}

int do_fuzz(char **argv)
{
	struct fuzzer fuzzer = { .path = argv[0], .gpu = function_at(argv[2], 2), .ssd = function_at(argv[3], 0) };
	int status, failed = 0;

	fuzzer.disk = open(argv[1], O_RDONLY | O_DIRECT | O_CLOEXEC);
	fuzzer.fake = open_node("/dev/fake_gpu");
	for (unsigned i = 0; i < PROCESSES; i++) {
		fflush(stdout);
		fuzzer.state = (number(argv[5]) + i) * 0x9e3779b97f4a7c15u | 1;
		if (!fork()) {
			fuzz(&fuzzer, (time_t)number(argv[4]));
			exit(0);
		}
	}
	while (wait(&status) > 0)
		failed |= status;
	check(!failed, "a fuzzing process ended with %#x", failed);
	return 0;
}
