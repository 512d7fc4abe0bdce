/* SPDX-License-Identifier: BSD-3-Clause */
#include "window.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "../../kmod-p2p/weir_p2p.h"
#include "error.h"

/* The module keeps the reason of its last refusal alone, whoever called: of one for another errno, or of what
 * the system itself refused (no memory, say), it knows nothing. */
const char *weir_window_reason(int node)
{
	static _Thread_local struct weir_p2p_reason reason;
	int error = errno;
	bool known;

	reason = (struct weir_p2p_reason){ .size = sizeof(reason) };
	known = !ioctl(node, WEIR_P2P_REASON, &reason) && reason.error == (unsigned)error;
	errno = error;
	return known && error ? reason.text : strerror(error);
}

static int fail(const char *name, int node, int error)
{
	const char *text;

	errno = error;
	text = weir_window_reason(node);
	return weir_fail(error, "\"%s\": %s", name, text);
}

/* What is behind @node, and how large. */
static int poll(int node, const char *name, uint64_t *bytes)
{
	struct weir_p2p_info info = { .size = sizeof(info) };

	if (ioctl(node, WEIR_P2P_INFO, &info))
		return weir_fail(EINVAL,
				 "\"%s\" is no window of the kernel module weir_p2p, such as "
				 "/dev/weir_p2p/0000:65:00.0-2",
				 name);
	if (info.abi != WEIR_P2P_ABI)
		return weir_fail(
			ENOTSUP,
			"\"%s\" is of ABI %u, and this library of %u; load the module of this version", name,
			info.abi, WEIR_P2P_ABI);
	if (!info.bytes)
		return weir_fail(EINVAL,
				 "\"%s\" is the module's control node; give a window, such as "
				 "/dev/weir_p2p/0000:65:00.0-2",
				 name);
	*bytes = info.bytes;
	return 0;
}

int weir_window_take(int node, const char *name, struct weir_window *out)
{
	struct weir_p2p_register call = { .size = sizeof(call) };
	uint64_t bytes = 0;
	void *memory;
	int error = poll(node, name, &bytes);

	if (error)
		return error;
	call.bytes = bytes;
	if (ioctl(node, WEIR_P2P_REGISTER, &call))
		return fail(name, node, errno);
	memory = mmap(NULL, call.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)call.mmap_offset);
	if (memory == MAP_FAILED)
		return fail(name, node, errno);
	*out = (struct weir_window){
		.node = node, .handle = call.handle, .host = memory, .bytes = call.bytes, .name = name
	};
	return 0;
}

void weir_window_leave(struct weir_window *window)
{
	if (window->host)
		munmap(window->host, window->bytes);
	window->host = NULL;
}

int weir_window_locate(const struct weir_window *window, uint64_t *bus_offset)
{
	struct weir_p2p_locate location = { .size = sizeof(location), .handle = window->handle };

	if (ioctl(window->node, WEIR_P2P_LOCATE, &location))
		return fail(window->name, window->node, errno);
	if (location.bytes < window->bytes)
		return weir_fail(
			ENOTSUP, "\"%s\": only %llu of its %llu bytes are contiguous for a controller",
			window->name, (unsigned long long)location.bytes, (unsigned long long)window->bytes);
	*bus_offset = location.address - (uint64_t)(uintptr_t)window->host;
	return 0;
}
