/* SPDX-License-Identifier: BSD-3-Clause */
#include "p2p_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void give_up(const char *format, ...)
{
	const char *why = strerror(errno);
	va_list args;

	va_start(args, format);
	fputs("vm_p2p: ", stdout);
	vprintf(format, args);
	printf(" (%s)\n", why);
	va_end(args);
	fflush(stdout);
	_exit(1);
}

static const char *reason(int node)
{
	static struct weir_p2p_reason said;

	said.size = sizeof(said);
	if (ioctl(node, WEIR_P2P_REASON, &said))
		return "nobody says why";
	return said.text;
}

void expect(int node, int result, int error, const char *what)
{
	int found = errno;

	check(result == -1, "%s was not refused", what);
	check(found == error, "%s failed with errno %d, not %d: %s", what, found, error,
	      node < 0 ? "" : reason(node));
	printf("%s: refused (%d)%s%s\n", what, error, node < 0 ? "" : ": ", node < 0 ? "" : reason(node));
}

uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	check(*text && !*end, "%s is no number", text);
	return value;
}

struct weir_p2p_function function_at(const char *address, unsigned bar)
{
	unsigned domain, bus, device, function;

	check(sscanf(address, "%x:%x:%x.%x", &domain, &bus, &device, &function) == 4, "%s is no PCI address",
	      address);
	return (struct weir_p2p_function){ domain, (__u8)bus, (__u8)device, (__u8)function, (__u8)bar };
}

int open_node(const char *path)
{
	int node = open(path, O_RDWR | O_CLOEXEC);

	check(node >= 0, "cannot open %s", path);
	return node;
}

int try_register(int node, uint64_t offset, uint64_t bytes, uint32_t flags, struct range *range)
{
	struct weir_p2p_register call = {
		.size = sizeof(call), .flags = flags, .offset = offset, .bytes = bytes
	};
	int result = ioctl(node, WEIR_P2P_REGISTER, &call);

	*range = (struct range){ node, call.handle, call.wiped, bytes, call.mmap_offset, NULL };
	return result;
}

struct range take(int node, uint64_t offset, uint64_t bytes)
{
	struct range range;

	check(!try_register(node, offset, bytes, 0, &range), "cannot register %#llx bytes from %#llx: %s",
	      (unsigned long long)bytes, (unsigned long long)offset, reason(node));
	range.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)range.mmap_offset);
	check(range.memory != MAP_FAILED, "cannot map: %s", reason(node));
	return range;
}

int try_deregister(int node, uint32_t handle)
{
	struct weir_p2p_deregister call = { sizeof(call), handle };

	return ioctl(node, WEIR_P2P_DEREGISTER, &call);
}

void drop(struct range *range)
{
	if (range->memory)
		munmap(range->memory, range->bytes);
	check(!try_deregister(range->node, range->handle), "cannot deregister: %s", reason(range->node));
}

uint64_t bytes_of(int node)
{
	struct weir_p2p_info info = { .size = sizeof(info) };

	check(!ioctl(node, WEIR_P2P_INFO, &info), "no information");
	check(info.abi == WEIR_P2P_ABI && info.page_bytes == 4096, "another ABI");
	return info.bytes;
}

int signal_of(void (*run)(void *), void *argument)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	check(child >= 0, "fork");
	if (!child) {
		run(argument);
		_exit(0);
	}
	check(waitpid(child, &status, 0) == child, "waitpid");
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

void read_byte(void *address)
{
	*(volatile uint8_t *)address;
}
