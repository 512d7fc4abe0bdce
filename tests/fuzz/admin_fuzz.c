/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admin_fuzz.c: bringing up a controller that answers anything: capabilities, Identify pages, results,
 * statuses and command identifiers all come of the input. Once that has ended the controller is gone: its
 * registers read as ones.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/admin.h"
#include "backend/error.h"

#include "fuzz.h"

enum { DOORBELLS = 64, STEP_BYTES = 24 };

/** struct rig - a transport with nothing behind it, and the host's three pages */
struct rig {
	struct weir_transport transport;
	struct fuzz fuzz;
	uint32_t cc;
	uint32_t doorbell[DOORBELLS];
	uint32_t answered, phase, head;
};

static _Alignas(4096) uint8_t pages[WEIR_ADMIN_MEMORY_BYTES], shadow[WEIR_ADMIN_SHADOW_BYTES];

static struct rig *rig_of(struct weir_transport *transport)
{
	return (struct rig *)(void *)transport;
}

static uint64_t read64(struct weir_transport *transport, uint32_t offset)
{
	struct rig *rig = rig_of(transport);
	uint64_t value = 0;

	(void)offset;
	(void)fuzz_take(&rig->fuzz, &value, sizeof(value));
	return value & ~((uint64_t)0xfe << 24); /* a timeout that the fuzzer can wait for */
}

/* One entry, and a data page that repeats a few bytes. */
static void answer(struct rig *rig)
{
	struct nvme_cqe *cqe = (struct nvme_cqe *)(void *)(pages + NVME_PAGE_BYTES) + rig->head;
	uint8_t step[STEP_BYTES], at;
	uint32_t words[3];

	memset(pages + 2 * NVME_PAGE_BYTES, 0, NVME_PAGE_BYTES);
	for (unsigned i = 0; i < 16 && fuzz_take(&rig->fuzz, &at, 1) && at; i++) {
		if (!fuzz_take(&rig->fuzz, step, sizeof(step)))
			break;
		memcpy(pages + 2 * NVME_PAGE_BYTES + (size_t)(at % 160) * STEP_BYTES, step, sizeof(step));
	}
	(void)fuzz_take(&rig->fuzz, words, sizeof(words));
	cqe->dw0 = words[0];
	cqe->dw2 = words[1];
	cqe->dw3 = (words[2] & 3 ? 0 : words[2] & 0xfffe0000) | (words[2] & 0xffff) | rig->phase << 16;
	rig->answered++;
	rig->head = (rig->head + 1) % 32;
	if (rig->head == 0)
		rig->phase ^= 1;
}

static uint32_t read32(struct weir_transport *transport, uint32_t offset)
{
	struct rig *rig = rig_of(transport);

	if (rig->fuzz.bytes == 0)
		return 0xffffffff;
	if (offset == NVME_REGISTER_CC)
		return rig->cc;
	if (rig->doorbell[0] != rig->answered % 32)
		answer(rig);
	if (rig->cc & NVME_CC_SHUTDOWN_MASK)
		return NVME_CSTS_SHUTDOWN_DONE;
	return rig->cc & NVME_CC_ENABLE ? NVME_CSTS_READY : 0;
}

static void write64(struct weir_transport *transport, uint32_t offset, uint64_t value)
{
	(void)transport, (void)offset, (void)value;
}

static void write32(struct weir_transport *transport, uint32_t offset, uint32_t value)
{
	if (offset == NVME_REGISTER_CC)
		rig_of(transport)->cc = value;
}

static uint64_t doorbell(struct weir_transport *transport, unsigned index)
{
	fuzz_must(index < DOORBELLS);
	return (uint64_t)(uintptr_t)&rig_of(transport)->doorbell[index];
}

static void bring_up(struct weir_admin *admin, struct rig *rig)
{
	struct weir_namespace space;
	unsigned granted = 0;
	int error;

	memset(&space, 0x55, sizeof(space));
	if (weir_admin_enable(admin, &rig->transport, pages, 4096) != 0)
		return;
	error = weir_admin_identify(admin, 0, false, &space);
	fuzz_must(error <= 0 && (error == 0 || weir_last_error()[0]));
	if (error == 0) {
		fuzz_must(space.nsid != 0 && (space.block_log2 == 9 || space.block_log2 == 12));
		fuzz_must(space.blocks != 0 && space.blocks <= UINT64_MAX >> space.block_log2);
		fuzz_must(space.max_transfer_bytes >= 4096);
		fuzz_must(memchr(space.model, 0, sizeof(space.model)) &&
			  memchr(space.serial, 0, sizeof(space.serial)));
		if (weir_admin_queue_count(admin, 8, &granted) == 0) {
			fuzz_must(granted >= 1 && granted <= 8);
			(void)weir_admin_create_queue(admin, 1, 16, 8192, 12288);
			(void)weir_admin_delete_queue(admin, 1);
			(void)weir_admin_shadow(admin, shadow, 16384);
			(void)weir_admin_delete_queue(admin, 2);
		}
	}
	weir_admin_disable(admin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct weir_transport_ops ops = { .size = sizeof(ops),
						       .scheme = "fuzz",
						       .read64 = read64,
						       .read32 = read32,
						       .write64 = write64,
						       .write32 = write32,
						       .doorbell = doorbell };
	struct rig rig = { .transport = { .ops = &ops }, .fuzz = { data, bytes }, .phase = 1 };
	struct weir_admin admin = { .phase = 0 };

	memset(pages, 0, sizeof(pages));
	bring_up(&admin, &rig);
	return 0;
}
