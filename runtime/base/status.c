/* SPDX-License-Identifier: BSD-3-Clause */
/* Device statuses for people. */
#include <stdio.h>

#include <weir/nvme_volume.h>
#include <weir/status.h>
#include <weir/weir.h>

struct text {
	uint32_t status;
	const char *text;
};

static const struct text own[] = {
	{ WEIR_OK, "success" },
	{ WEIR_E_INDEX, "index past the end of the array" },
	{ WEIR_E_RANGE, "blocks past the end of the storage" },
	{ WEIR_E_TRANSFER, "more blocks than one command may move, or none" },
	{ WEIR_E_ALIGNMENT, "buffer not 4-byte aligned" },
	{ WEIR_E_READ_ONLY, "the storage is read-only" },
	{ WEIR_E_TIMEOUT, "no completion before the deadline" },
	{ WEIR_E_LOCKED, "another lane holds the lock" },
	{ WEIR_E_DEADLOCK, "lanes wait for each other's locks; see weir_chain_report()" },
	{ WEIR_E_SERVICE, "the kernel needs a service: open the context with service_waves" },
	{ WEIR_E_POLICY, "its kernel was built without the cache's policy: -DWEIR_USER_POLICY=" },
	{ WEIR_E_EVENT, "the event's last request has not ended; wait for it before using it again" },
	{ WEIR_E_SHARED, "other lanes share the buffer; try again when they have let go" },
	{ WEIR_E_UNSHARED, "not a shared buffer but a copy; write it with weir_async_write()" },
	{ WEIR_E_SHARE_TABLE, "the cache has a Share Table: build the kernel with -DWEIR_SHARE_TABLE" },
	{ WEIR_E_TIER, "the cache has a tier in host memory: build the kernel with -DWEIR_TIER" },
	{ WEIR_E_WINDOW, "buffer outside of the memory that the controller reaches; use weir_alloc()" },
	{ WEIR_E_WIDTH, "the accessor's width is not that of the array's elements" },
	{ WEIR_E_POOL, "no buffer of the pool begins there, or it was given back already" },
	{ WEIR_E_QUEUE_FULL, "no free queue slot before the deadline" },
	{ WEIR_E_QUEUE_DEAD, "the queue is gone" },
	{ WEIR_E_DEVICE_DEAD, "the controller failed" },
	{ WEIR_E_DEVICE_GONE, "the controller no longer answers: was it removed?" },
	{ WEIR_E_CLOSED, "the host has closed the storage, or the array's cache" },
};

static const struct text nvme[] = {
	{ NVME_STATUS_INVALID_OPCODE, "invalid opcode" },
	{ NVME_STATUS_INVALID_FIELD, "invalid field in command" },
	{ NVME_STATUS_CID_CONFLICT, "command identifier conflict" },
	{ NVME_STATUS_DATA_TRANSFER_ERROR, "data transfer error: memory not registered" },
	{ NVME_STATUS_INTERNAL_ERROR, "internal error" },
	{ NVME_STATUS_ABORT_REQUESTED, "aborted on request" },
	{ NVME_STATUS_ABORTED_SQ_DELETED, "aborted: queue deleted" },
	{ NVME_STATUS_INVALID_NAMESPACE, "invalid namespace" },
	{ NVME_STATUS_INVALID_PRP_OFFSET, "invalid PRP offset" },
	{ NVME_STATUS_COMMAND_INTERRUPTED, "command interrupted" },
	{ NVME_STATUS_TRANSIENT_TRANSPORT, "transient transport error" },
	{ NVME_STATUS_LBA_OUT_OF_RANGE, "LBA out of range" },
	{ NVME_STATUS_CAPACITY_EXCEEDED, "no space left behind the storage" },
	{ NVME_STATUS_NAMESPACE_NOT_READY, "namespace not ready" },
	{ NVME_STATUS_READ_ONLY_RANGE, "write to a read-only range" },
	{ NVME_STATUS_WRITE_FAULT, "media write fault" },
	{ NVME_STATUS_UNRECOVERED_READ, "unrecovered read error" },
	{ NVME_STATUS_COMPARE_FAILURE, "compare failure" },
	{ NVME_STATUS_PATH_INTERNAL, "internal path error" },
	{ NVME_STATUS_PATH_INACCESSIBLE, "path inaccessible" },
	{ NVME_STATUS_PATH_TRANSITION, "path in transition" },
	{ NVME_STATUS_PATH_CONTROLLER, "controller pathing error" },
	{ NVME_STATUS_PATH_HOST, "host pathing error" },
	{ NVME_STATUS_ABORTED_BY_HOST, "not answered, ended by the host" },
	{ NVME_STATUS_VOLUME_UNKNOWN, "engine: there is no such volume" },
	{ NVME_STATUS_VOLUME_CLIENT, "engine: the host is not the client that it says" },
	{ NVME_STATUS_VOLUME_DENIED, "engine: the client has no right to do that" },
	{ NVME_STATUS_VOLUME_STALE_LEASE, "engine: the volume has another lease now" },
	{ NVME_STATUS_VOLUME_STALE_MAP, "engine: the array has another map now" },
	{ NVME_STATUS_VOLUME_MISPLACED, "engine: the block is not placed on this one" },
	{ NVME_STATUS_VOLUME_OLD_VERSION, "engine: a newer version of the block is here" },
	{ NVME_STATUS_VOLUME_NOT_HERE, "engine: the block may not have been copied here yet" },
	{ NVME_STATUS_VOLUME_NO_MAP, "engine: it has been given no map since it started" },
};

static const char *find(const struct text *table, size_t count, uint32_t status)
{
	for (size_t i = 0; i < count; i++)
		if (table[i].status == status)
			return table[i].text;
	return "unknown";
}

void weir_status_text(uint32_t status, char text[80])
{
	uint32_t code = weir_status_nvme(status);

	if (!text)
		return;
	if (status & WEIR_STATUS_NVME)
		snprintf(text, 80, "%s (NVMe status %x:%02x)",
			 find(nvme, sizeof(nvme) / sizeof(nvme[0]), code), code >> 8, code & 0xff);
	else
		snprintf(text, 80, "%s", find(own, sizeof(own) / sizeof(own[0]), status));
}
