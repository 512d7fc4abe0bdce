/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel module has to refuse: addresses, ranges, lengths, privileges, other processes. */
#include "p2p.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, USER = 1000 };

static void refuse_register(int node, uint64_t offset, uint64_t bytes, uint32_t flags, int error,
			    const char *what)
{
	struct range range;

	expect(node, try_register(node, offset, bytes, flags, &range), error, what);
}

static void ranges(int node)
{
	uint64_t all = bytes_of(node);

	refuse_register(node, 0, 0, 0, EINVAL, "an empty range");
	refuse_register(node, 1, PAGE, 0, EINVAL, "an offset that is not of a page");
	refuse_register(node, 0, PAGE - 1, 0, EINVAL, "a length that is not of pages");
	refuse_register(node, 0, PAGE, 0x80, EINVAL, "an unknown flag");
	refuse_register(node, all, PAGE, 0, ERANGE, "a range behind the end");
	refuse_register(node, all - PAGE, 2 * PAGE, 0, ERANGE, "a range over the end");
	refuse_register(node, 0, all + PAGE, 0, ERANGE, "a range longer than all");
	refuse_register(node, PAGE, -(uint64_t)PAGE, 0, ERANGE, "a length that wraps to 0");
	refuse_register(node, -(uint64_t)PAGE, 2 * PAGE, 0, ERANGE, "an end that wraps");
	refuse_register(node, 0, 1ULL << 63, 0, ERANGE, "a length of 2^63");
	refuse_register(node, 0, 1ULL << 41, 0, ERANGE, "a length of 2^41");
}

static void twice(int node)
{
	struct range range = take(node, 8 * PAGE, 8 * PAGE);

	refuse_register(node, 8 * PAGE, 8 * PAGE, 0, EEXIST, "the same range again");
	refuse_register(node, 15 * PAGE, PAGE, 0, EEXIST, "its last page");
	refuse_register(node, 7 * PAGE, 2 * PAGE, 0, EEXIST, "a page before it and its first");
	refuse_register(node, 0, 64 * PAGE, 0, EEXIST, "all around it");
	expect(node, try_deregister(node, range.handle + 1), ENOENT, "another handle");
	expect(node, try_deregister(node, 0), ENOENT, "handle 0");
	drop(&range);
	expect(node, try_deregister(node, range.handle), ENOENT, "to give it back again");
	expect(node,
	       mmap(NULL, PAGE, PROT_READ, MAP_SHARED, node, (off_t)range.mmap_offset) == MAP_FAILED ? -1 : 0,
	       ENOENT, "to map it after that");
}

static int map(int node, const struct range *range, uint64_t at, uint64_t bytes, int protection, int flags)
{
	return mmap(NULL, bytes, protection, flags, node, (off_t)(range->mmap_offset + at)) == MAP_FAILED ? -1
													  : 0;
}

static void maps(int node)
{
	struct range range = take(node, 8 * PAGE, 8 * PAGE);

	expect(node, map(node, &range, 0, 9 * PAGE, PROT_READ, MAP_SHARED), ERANGE,
	       "to map more than it has");
	expect(node, map(node, &range, 7 * PAGE, 2 * PAGE, PROT_READ, MAP_SHARED), ERANGE,
	       "to map over its end");
	expect(node, map(node, &range, 8 * PAGE, PAGE, PROT_READ, MAP_SHARED), ERANGE,
	       "to map behind its end");
	expect(node, map(node, &range, 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE), EINVAL,
	       "a private mapping");
	expect(node, map(node, &range, 0, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED), EACCES, "to execute");
	expect(-1, mprotect(range.memory, PAGE, PROT_READ | PROT_EXEC), EACCES,
	       "to execute what is mapped already");
	expect(node, mmap(NULL, PAGE, PROT_READ, MAP_SHARED, node, 0) == MAP_FAILED ? -1 : 0, ENOENT,
	       "to map offset 0");
	expect(node, mremap(range.memory, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED ? -1 : 0, EFAULT,
	       "to make the mapping longer");
	drop(&range);
}

/* A file of somebody else: the same node, opened again. */
static void others(int node, const char *path)
{
	struct range range = take(node, 8 * PAGE, 8 * PAGE), got;
	int other = open_node(path);

	refuse_register(other, 8 * PAGE, 8 * PAGE, 0, EBUSY, "somebody else's range");
	refuse_register(other, 0, 9 * PAGE, 0, EBUSY, "a part of somebody else's range");
	expect(other, map(other, &range, 0, PAGE, PROT_READ, MAP_SHARED), ENOENT,
	       "to map somebody else's range");
	expect(other, try_deregister(other, range.handle), ENOENT, "to give back somebody else's range");
	memset(range.memory, 0x5a, range.bytes);
	drop(&range);
	got = take(other, 8 * PAGE, 8 * PAGE);
	drop(&got);
	close(other);
}

struct user_try {
	const char *path;
	int node;
};

static void become_user(void)
{
	check(!setgroups(0, NULL) && !setgid(USER) && !setuid(USER), "cannot become a user");
}

static void user_opens(void *argument)
{
	become_user();
	expect(-1, open(argument, O_RDWR), EACCES, "a user's opening of a node");
}

/* A node that was granted to a user, whose ranges hold nothing of others. */
static void user_registers(void *argument)
{
	struct user_try *try = argument;
	struct range range;

	become_user();
	check(!try_register(try->node, 8 * PAGE, 8 * PAGE, 0, &range),
	      "a user cannot register what was granted");
	check(range.wiped == 1, "it was not wiped");
	range.memory = mmap(NULL, range.bytes, PROT_READ, MAP_SHARED, try->node, (off_t)range.mmap_offset);
	check(range.memory != MAP_FAILED, "a user cannot map");
	for (uint64_t i = 0; i < range.bytes; i++)
		check(!range.memory[i], "a user sees byte %#x of somebody else's", range.memory[i]);
	drop(&range);
}

static void user_with_driver(void *argument)
{
	struct user_try *try = argument;

	become_user();
	refuse_register(try->node, 8 * PAGE, 8 * PAGE, 0, EPERM,
			"a user's range by offset, of a GPU with a driver");
}

static bool has_driver(const char *gpu)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver", gpu);
	return !access(path, F_OK);
}

static void users(const char *path, const char *gpu)
{
	struct user_try try = { path, open_node(path) };
	struct range range = take(try.node, 8 * PAGE, 8 * PAGE);

	memset(range.memory, 0x5a, range.bytes);
	drop(&range);
	check(!signal_of(user_opens, (void *)path), "a user opened %s", path);
	check(!signal_of(user_opens, WEIR_P2P_CONTROL), "a user opened the control node");
	check(!signal_of(has_driver(gpu) ? user_with_driver : user_registers, &try), "a user's range");
	close(try.node);
}

static int claim(int control, struct weir_p2p_function gpu, uint64_t offset, uint64_t bytes, uint32_t flags)
{
	struct weir_p2p_claim call = { sizeof(call), flags, gpu, offset, bytes };

	return ioctl(control, WEIR_P2P_CLAIM, &call);
}

static void user_claims(void *control)
{
	become_user();
	expect(-1, claim(*(int *)control, (struct weir_p2p_function){ 0 }, 0, 0, 0), EPERM, "a user's claim");
}

static void claims(int control, const char *address, unsigned bar)
{
	struct weir_p2p_function gpu = function_at(address, bar), wrong = gpu;

	expect(control, claim(control, gpu, 0, 0, 0), EEXIST, "to claim it again");
	expect(control, claim(control, gpu, 0, 0, 1), EINVAL, "an unknown flag");
	expect(control, claim(control, gpu, 4096, 2 << 20, 0), EINVAL, "an offset that is not of 2 MiB");
	expect(control, claim(control, gpu, 0, 4096, 0), EINVAL, "a length that is not of 2 MiB");
	expect(control, claim(control, gpu, 2 << 20, -(uint64_t)(2 << 20), 0), EINVAL, "a length that wraps");
	expect(control, claim(control, gpu, 1ULL << 62, 0, 0), EINVAL, "an offset far behind the end");
	wrong.bus = 0x77;
	expect(control, claim(control, wrong, 0, 0, 0), ENODEV, "a function that is not there");
	wrong = gpu;
	wrong.domain = 0x10000;
	expect(control, claim(control, wrong, 0, 0, 0), ENODEV, "a domain that is not there");
	wrong.domain = 0xffffffff;
	expect(control, claim(control, wrong, 0, 0, 0), EINVAL, "a domain that is no number of one");
	wrong = gpu;
	wrong.device = 32;
	expect(control, claim(control, wrong, 0, 0, 0), EINVAL, "device 32");
	wrong = gpu;
	wrong.bar = 5;
	expect(control, claim(control, wrong, 0, 0, 0), ENXIO, "a BAR that is not there");
	wrong.bar = 200;
	expect(control, claim(control, wrong, 0, 0, 0), ENXIO, "BAR 200");
	check(!signal_of(user_claims, &control), "a user claims");
}

static void calls(int control, int node)
{
	struct weir_p2p_info info = { .size = sizeof(info) };
	struct {
		struct weir_p2p_info info;
		uint64_t more[4];
	} larger = { .info.size = sizeof(larger) };

	expect(node, ioctl(node, WEIR_P2P_CLAIM, &info), ENOTTY, "a claim on a window's node");
	expect(control, ioctl(control, WEIR_P2P_REGISTER, &info), ENOTTY, "a range of the control node");
	expect(node, ioctl(node, _IOWR(WEIR_P2P_MAGIC, 255, info), &info), ENOTTY, "call 255");
	expect(node, ioctl(node, _IOWR('Q', 0, info), &info), ENOTTY, "somebody else's call");
	expect(node, ioctl(node, WEIR_P2P_INFO, NULL), EFAULT, "no structure");
	info.size = 4;
	expect(node, ioctl(node, WEIR_P2P_INFO, &info), EINVAL, "a structure of 4 bytes");
	info.size = 0xffffffff;
	expect(node, ioctl(node, WEIR_P2P_INFO, &info), EINVAL, "a structure of 4 GiB");
	check(!ioctl(node, WEIR_P2P_INFO, &larger), "a newer program's structure is refused");
	larger.more[3] = 1;
	expect(node, ioctl(node, WEIR_P2P_INFO, &larger), E2BIG, "a newer program's wish");
}

static int verdict(int control, struct weir_p2p_function gpu, struct weir_p2p_function ssd)
{
	struct weir_p2p_verdict call = { .size = sizeof(call), .gpu = gpu, .ssd = ssd };

	return ioctl(control, WEIR_P2P_VERDICT, &call);
}

static void verdicts(int control, const char *gpu_address, unsigned bar, const char *ssd_address)
{
	struct weir_p2p_function gpu = function_at(gpu_address, bar), ssd = function_at(ssd_address, 0),
				 wrong = gpu;
	struct weir_p2p_verdict more = { .size = sizeof(more), .gpu = gpu, .ssd = ssd, .reserved = 1 };

	expect(control, verdict(control, ssd, gpu), ENXIO, "a GPU in place of the SSD");
	wrong.bar = 5;
	expect(control, verdict(control, wrong, ssd), ENXIO, "a verdict for a BAR that is not there");
	wrong.bus = 0x77;
	expect(control, verdict(control, wrong, ssd), ENODEV, "a verdict for a GPU that is not there");
	expect(control, verdict(control, gpu, wrong), ENODEV, "a verdict for an SSD that is not there");
	expect(control, ioctl(control, WEIR_P2P_VERDICT, &more), EINVAL, "a verdict with more than is known");
}

int do_bad(char **argv)
{
	int control = open_node(argv[0]), node = open_node(argv[1]);
	unsigned bar = (unsigned)number(argv[3]);

	ranges(node);
	twice(node);
	maps(node);
	others(node, argv[1]);
	users(argv[1], argv[2]);
	claims(control, argv[2], bar);
	calls(control, node);
	verdicts(control, argv[2], bar, argv[4]);
	puts("all refused");
	return 0;
}
