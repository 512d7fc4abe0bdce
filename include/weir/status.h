/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.h: how a request ended, in one word.
 *
 * Owns: weir_status. Groups say what broke: this request, its queue, its device.
 */
#ifndef WEIR_STATUS_H
#define WEIR_STATUS_H

#include <weir/nvme.h>
#include <weir/port.h>

/**
 * typedef weir_status - result of a device call; 0 is success
 *
 * bits 14:0   for WEIR_STATUS_NVME the completion's status field (Base 2.0,
 *             section 3.3.3.2.1), else one of the WEIR_E_ codes
 * bits 17:16  group: 1 the request, 2 the queue, 3 the device
 * bit  18     the code came from a controller's completion
 */
typedef u32 weir_status;

enum {
	WEIR_OK = 0,
	WEIR_GROUP_REQUEST = 1 << 16,
	WEIR_GROUP_QUEUE = 2 << 16,
	WEIR_GROUP_DEVICE = 3 << 16,
	WEIR_GROUP_MASK = 3 << 16,
	WEIR_STATUS_NVME = 1 << 18,

	/* this request; others go on */
	WEIR_E_INDEX = WEIR_GROUP_REQUEST | 1,     /* index past the end of an array */
	WEIR_E_RANGE = WEIR_GROUP_REQUEST | 2,     /* blocks past the end of a storage */
	WEIR_E_TRANSFER = WEIR_GROUP_REQUEST | 3,  /* more than the transfer limit, or no block */
	WEIR_E_ALIGNMENT = WEIR_GROUP_REQUEST | 4, /* buffer not 4-byte aligned */
	WEIR_E_READ_ONLY = WEIR_GROUP_REQUEST | 5, /* write to a read-only storage */
	WEIR_E_TIMEOUT = WEIR_GROUP_REQUEST | 6,   /* deadline passed; it may still complete */
	WEIR_E_LOCKED = WEIR_GROUP_REQUEST | 7,    /* another lane holds the lock; try again */
	WEIR_E_DEADLOCK = WEIR_GROUP_REQUEST | 8,  /* locked, and the lock chain reported a cycle */
	WEIR_E_SERVICE =
		WEIR_GROUP_REQUEST | 9, /* a kernel that leaves reaping to a service, and none there */
	WEIR_E_POLICY = WEIR_GROUP_REQUEST | 10, /* a kernel built without the policy that its cache has */
	WEIR_E_EVENT = WEIR_GROUP_REQUEST | 11,  /* the event's last request has not ended */
	WEIR_E_SHARED =
		WEIR_GROUP_REQUEST | 12, /* the line is in a buffer that lanes share, or is held by others */
	WEIR_E_UNSHARED = WEIR_GROUP_REQUEST | 13, /* a copy of one's own: nobody would see it change */
	WEIR_E_SHARE_TABLE =
		WEIR_GROUP_REQUEST | 14, /* the cache has a Share Table, the kernel no code for one */
	WEIR_E_TIER =
		WEIR_GROUP_REQUEST | 15, /* the cache has a tier in host memory, the kernel no code for one */
	WEIR_E_WINDOW =
		WEIR_GROUP_REQUEST | 16, /* a buffer outside of the memory that the controller is to reach */
	WEIR_E_WIDTH =
		WEIR_GROUP_REQUEST | 17, /* an accessor of another width than the array's elements have */
	WEIR_E_POOL = WEIR_GROUP_REQUEST | 18, /* no buffer of a pool begins there, or it is free already */

	/* this queue pair */
	WEIR_E_QUEUE_FULL = WEIR_GROUP_QUEUE | 1, /* no slot came free before the deadline */
	WEIR_E_QUEUE_DEAD = WEIR_GROUP_QUEUE | 2, /* the queue was torn down */

	/* this device */
	WEIR_E_DEVICE_DEAD = WEIR_GROUP_DEVICE | 1, /* the controller failed */
	WEIR_E_DEVICE_GONE = WEIR_GROUP_DEVICE | 2, /* the controller no longer answers: it was removed */
	WEIR_E_CLOSED = WEIR_GROUP_DEVICE | 3,      /* the host has closed the storage, or the cache */
};

/** weir_status_from_nvme() - the status of a completion whose dw3 is @dw3 */
WEIR_FN weir_status weir_status_from_nvme(u32 dw3)
{
	u32 field = (dw3 >> 17) & 0x7fffu;

	return field ? ((u32)WEIR_STATUS_NVME | (u32)WEIR_GROUP_REQUEST | field) : (u32)WEIR_OK;
}

/** weir_status_nvme() - the NVMe status code (SCT and SC) in @status, 0 if it has none */
WEIR_FN u32 weir_status_nvme(weir_status status)
{
	return (status & WEIR_STATUS_NVME) ? (status & NVME_STATUS_CODE_MASK) : 0;
}

/* Kinds of statuses that weir_status_retry_kind() tells apart: of these the first ones are the controller's
 * wish. */
enum { WEIR_RETRY_KIND_WISHES = 8, WEIR_RETRY_KINDS = 11 };

/* The NVMe status code of a kind, 1 to WEIR_RETRY_KINDS; 0: there is none. */
WEIR_FN u32 weir_status_retry_code(u32 kind)
{
	switch (kind) {
	case 1: return NVME_STATUS_COMMAND_INTERRUPTED;
	case 2: return NVME_STATUS_TRANSIENT_TRANSPORT;
	case 3: return NVME_STATUS_NAMESPACE_NOT_READY;
	case 4: return NVME_STATUS_PATH_INTERNAL;
	case 5: return NVME_STATUS_PATH_INACCESSIBLE;
	case 6: return NVME_STATUS_PATH_TRANSITION;
	case 7: return NVME_STATUS_PATH_CONTROLLER;
	case 8: return NVME_STATUS_PATH_HOST;
	case 9: return NVME_STATUS_ABORT_REQUESTED;
	case 10: return NVME_STATUS_ABORTED_SQ_DELETED;
	case 11: return NVME_STATUS_ABORTED_BY_HOST;
	default: return 0;
	}
}

/* The kind of @status, 0 if another try is of no use. Only of statuses that are errors: nothing fast. */
WEIR_FN u32 weir_status_retry_kind(weir_status status)
{
	u32 code = weir_status_nvme(status);

	if (code == 0 || (status & NVME_STATUS_DNR))
		return 0;
	for (u32 kind = 1; kind <= WEIR_RETRY_KINDS; kind++)
		if (weir_status_retry_code(kind) == code)
			return kind;
	return 0;
}

/**
 * weir_status_is_retryable() - the controller says of a command that ended with @status that it is worth
 * another try
 *
 * DNR is clear, and the code tells of a state that passes: the command was interrupted, the
 * namespace is not ready, or the way to it was disturbed (Base 2.0, section 3.3.3.2.1). Not those whose
 * cause the next try meets again, such as media errors, nor commands that the host itself ended
 * (weir_status_retryable()).
 */
WEIR_FN u32 weir_status_is_retryable(weir_status status)
{
	u32 kind = weir_status_retry_kind(status);

	return kind != 0 && kind <= WEIR_RETRY_KIND_WISHES;
}

/**
 * weir_status_retryable() - weir_status_is_retryable(), or the command was ended without an answer of the
 * controller's
 *
 * It was aborted, its queue pair was deleted, or its controller reset, since no answer came in time. Nobody
 * knows whether it was carried out. So a read or a flush is worth another try, and so is the write-back of a
 * line, which nobody else writes; not any other write: what it wrote may have been seen and overwritten
 * since.
 */
WEIR_FN u32 weir_status_retryable(weir_status status)
{
	return weir_status_retry_kind(status) != 0;
}

#endif
