/* SPDX-License-Identifier: BSD-3-Clause */
/* Which command of a context's storages, if any, memory is in the hands of. */
#include <errno.h>
#include <stdlib.h>

#include "../device/context.h"
#include "../backend/error.h"

/** struct memory - what is to be freed; @quiet: without a sentence */
struct memory {
	uint64_t address;
	size_t bytes;
	bool quiet;
};

static const char *verb(uint32_t opcode)
{
	return opcode == NVME_OPCODE_READ ? "read" : opcode == NVME_OPCODE_WRITE ? "write" : "command";
}

/* Where the issuer of @slot's command is told: the event, or the line's word. */
static int find_target(const struct weir_storage *storage, const struct weir_slot *slot, uint64_t *target)
{
	struct weir_backend *backend = storage->context->backend;

	*target = slot->target;
	if (slot->target_kind != WEIR_TARGET_JOIN)
		return 0;
	return backend->ops->d2h(backend, target, slot->target + offsetof(struct weir_write_join, target),
				 sizeof(*target));
}

/* Slot @index of queue pair @queue is filled: does its command touch [address, address + bytes)? */
static int check_slot(const struct weir_storage *storage, uint32_t queue, uint32_t index,
		      const struct weir_slot *slot, const struct memory *memory)
{
	struct weir_backend *backend = storage->context->backend;
	struct nvme_sqe sqe;
	uint64_t length, lba, target;
	int error = find_target(storage, slot, &target);
	bool reported = !error && target - memory->address < memory->bytes;

	if (error)
		return error;
	if (!reported && (!slot->buffer || slot->buffer >= memory->address + memory->bytes))
		return 0;
	error = backend->ops->d2h(backend, &sqe, storage->rings[queue] + index * sizeof(sqe), sizeof(sqe));
	if (error)
		return error;
	length = ((uint64_t)(sqe.cdw12 & 0xffff) + 1) << storage->disk.block_log2;
	lba = storage->is_part ? sqe.cdw10 : (uint64_t)sqe.cdw11 << 32 | sqe.cdw10;
	if (!reported && slot->buffer + length <= memory->address)
		return 0;
	if (memory->quiet)
		return -EBUSY;
	return weir_fail(
		EBUSY,
		"weir_free: a %s of block %llu (%llu bytes) of \"%s\" is under way with the memory at %#llx "
		"(queue %u), and no lane has seen it end; wait for its event first",
		verb(sqe.cdw0 & 0xff), (unsigned long long)lba, (unsigned long long)length, storage->uri,
		(unsigned long long)(reported ? target : slot->buffer), queue + 1);
}

/* @copies: room for the slots where the host does not share them. Elsewhere a service may reap beside us. */
static int check_queue(const struct weir_storage *storage, uint32_t queue, struct weir_slot *copies,
		       const struct memory *memory)
{
	struct weir_backend *backend = storage->context->backend;
	bool shared = storage->context->shared_memory;
	struct weir_slot *slots = shared ? weir_at(storage->slots[queue], struct weir_slot, 0) : copies;
	int error = shared ? 0
			   : backend->ops->d2h(backend, copies, storage->slots[queue],
					       storage->depth * sizeof(*copies));

	/* Pairs with sq.S1, as cq.R2 does: of a slot that is filled the rest is seen, too. */
	for (uint32_t i = 0; !error && i < storage->depth; i++)
		if (weir_load_u32_acquire_dev(&slots[i].sequence) & 1)
			error = check_slot(storage, queue, i, &slots[i], memory);
	return error;
}

/* Where the host shares the slots nothing is needed that might not be had, so that memory can be given back.
 */
static int check(struct weir_context *context, const struct memory *memory)
{
	bool shared = context->shared_memory;
	int error = 0;

	for (struct weir_storage *storage = context->open; storage && !error; storage = storage->next) {
		struct weir_slot *slots = shared ? NULL : malloc(storage->depth * sizeof(*slots));

		if (!slots && !shared)
			return weir_fail(ENOMEM, "weir_free: no memory to list the commands under way");
		for (uint32_t i = 0; i < storage->disk.queue_count && !error; i++)
			error = check_queue(storage, i, slots, memory);
		free(slots);
	}
	return error;
}

int weir_inflight_check(struct weir_context *context, uint64_t address, size_t bytes)
{
	return check(context, &(struct memory){ .address = address, .bytes = bytes });
}

bool weir_inflight(struct weir_context *context, uint64_t address, size_t bytes)
{
	return check(context, &(struct memory){ .address = address, .bytes = bytes, .quiet = true }) != 0;
}
